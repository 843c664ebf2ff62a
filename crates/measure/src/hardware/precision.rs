//! How many bits a weight, a cached key or an operand of a product has.

use std::fmt;

/// A format of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 32-bit floating point.
    Fp32,
    /// 16-bit floating point, bf16 and fp16 alike: they cost the same.
    Bf16,
    /// 8-bit floating point, E4M3 and E5M2 alike.
    Fp8,
    /// 8-bit integers.
    Int8,
    /// 4-bit integers, as GPTQ and AWQ store weights.
    Int4,
    /// 4-bit floating point, MXFP4 and NVFP4 alike.
    Fp4,
}

impl Precision {
    /// All of them, widest first.
    pub const ALL: &'static [Self] =
        &[Self::Fp32, Self::Bf16, Self::Fp8, Self::Int8, Self::Int4, Self::Fp4];

    /// Bytes of one value, without the scales that blocks of quantized values
    /// share: MXFP4 has one byte more for 32 values, NVFP4 one for 16.
    pub const fn bytes_per_value(self) -> f64 {
        match self {
            Self::Fp32 => 4.0,
            Self::Bf16 => 2.0,
            Self::Fp8 | Self::Int8 => 1.0,
            Self::Int4 | Self::Fp4 => 0.5,
        }
    }

    /// Its usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Int8 => "int8",
            Self::Int4 => "int4",
            Self::Fp4 => "fp4",
        }
    }

    /// Reads a name, its case aside: those of [`Precision::name`], and what
    /// engines and configurations call the same.
    ///
    /// # Errors
    ///
    /// [`PrecisionError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, PrecisionError> {
        match text.trim().to_ascii_lowercase().as_str() {
            "fp32" | "float32" | "float" => Ok(Self::Fp32),
            "bf16" | "bfloat16" | "fp16" | "float16" | "half" => Ok(Self::Bf16),
            "fp8" | "fp8_e4m3" | "fp8_e5m2" | "float8_e4m3fn" => Ok(Self::Fp8),
            "int8" | "w8a8" => Ok(Self::Int8),
            "int4" | "w4a16" => Ok(Self::Int4),
            "fp4" | "mxfp4" | "nvfp4" => Ok(Self::Fp4),
            _ => Err(PrecisionError { found: text.chars().take(40).collect() }),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no precision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrecisionError {
    /// Its first characters.
    pub found: String,
}

impl fmt::Display for PrecisionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Precision::ALL.iter().map(|one| one.name()).collect();
        write!(f, "{:?} is no precision; write fp16 or one of {}", self.found, names.join(", "))
    }
}

impl std::error::Error for PrecisionError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_others_are_told_the_names() {
        for one in Precision::ALL {
            assert_eq!(Precision::parse(&one.name().to_uppercase()), Ok(*one));
        }
        assert_eq!(Precision::parse("fp16"), Ok(Precision::Bf16));
        assert_eq!(Precision::parse("NVFP4"), Ok(Precision::Fp4));
        let error = Precision::parse("fp6").unwrap_err().to_string();
        assert!(error.contains("\"fp6\"") && error.contains("int4"), "{error}");
    }
}
