//! The peaks of one accelerator, as its vendor states them.

use super::Precision;

/// Dense peaks by the precision of the operands, operations a second, a sum
/// and a product being two. Figures that vendors give with sparsity are
/// halved. `None` where it has no such units, or none that are stated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlopsPerSecond {
    /// 32-bit floating point outside tensor cores.
    pub fp32: Option<f64>,
    /// bf16 and fp16, sums in fp32.
    pub bf16: Option<f64>,
    /// 8-bit floating point.
    pub fp8: Option<f64>,
    /// 8-bit integers.
    pub int8: Option<f64>,
    /// 4-bit floating point.
    pub fp4: Option<f64>,
}

/// One accelerator: what a driver shows as one device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accelerator {
    /// Its name in commands.
    pub id: &'static str,
    /// Its name in texts.
    pub name: &'static str,
    /// What else it is called.
    pub aliases: &'static [&'static str],
    /// Memory as its vendor states it, a GB being 10⁹ bytes. What a driver
    /// shows differs by some percent.
    pub memory_bytes: f64,
    /// Peak bandwidth of that memory, bytes a second.
    pub bandwidth_bytes_per_s: f64,
    /// Dense peaks.
    pub flops: FlopsPerSecond,
    /// Board power, W; `None` where it is not published.
    pub watts: Option<f64>,
    /// Peak bandwidth to its neighbours in one direction, bytes a second.
    /// Vendors state both directions together, and this is half of that.
    pub link_bytes_per_s: f64,
    /// What leads to its neighbours.
    pub link: &'static str,
    /// Where the figures are from.
    pub source: &'static str,
    /// True where the figures were read in that source.
    pub verified: bool,
}

impl Accelerator {
    /// Everything that it is called, its id first.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let mut names = vec![self.id, self.name];
        names.extend(self.aliases);
        names
    }

    /// The dense peak for operands of this precision, operations a second.
    /// Weights of int4 are widened before they are multiplied, and so have the
    /// peak of bf16. `None` where the accelerator has no such units.
    pub fn flops_per_s(&self, precision: Precision) -> Option<f64> {
        match precision {
            Precision::Fp32 => self.flops.fp32,
            Precision::Bf16 | Precision::Int4 => self.flops.bf16,
            Precision::Fp8 => self.flops.fp8,
            Precision::Int8 => self.flops.int8,
            Precision::Fp4 => self.flops.fp4,
        }
    }

    /// The precision in which weights of another are multiplied here: their
    /// own where the accelerator has units for it, else bf16, to which kernels
    /// widen what they read.
    pub fn compute_precision(&self, weights: Precision) -> Precision {
        match self.flops_per_s(weights) {
            Some(_) if weights != Precision::Int4 => weights,
            _ => Precision::Bf16,
        }
    }
}
