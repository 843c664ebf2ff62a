//! Files that describe an engine: the settings of the engine model that differ
//! from its usual ones, and where they come from. Versioned, and readable
//! forever.

use serde::{Deserialize, Serialize};

/// Version of the form.
pub const VERSION: u32 = 1;

/// The most bytes of a file.
pub const MOST_BYTES: u64 = 1 << 20;

/// A described engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Engine {
    /// Version of the form.
    pub format_version: u32,
    /// Version of goodput that wrote it.
    pub written_by: String,
    /// Names and values of settings, as `--set` takes them.
    pub settings: Vec<(String, String)>,
    /// Settings that were fitted to runs.
    #[serde(default)]
    pub fitted: Vec<FittedSetting>,
    /// Root mean square of the relative errors of the fit.
    #[serde(default)]
    pub relative_error: Option<f64>,
    /// Mean time of TTFT that passed outside of the servers of these runs, ms, and
    /// so is in no setting; null where only client records were fitted, and it is
    /// in the front end's.
    #[serde(default)]
    pub outside_ms: Option<f64>,
    /// The runs that it was fitted to.
    #[serde(default)]
    pub runs: Vec<String>,
}

/// One setting that was fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedSetting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// The lower end of its 95 % interval; null where the runs do not say.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// False where the runs do not determine it.
    pub determined: bool,
}

/// Why a file describes no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Not JSON of this form.
    #[error("is no description of an engine, as sim fit --to writes one: {0}")]
    Form(#[from] serde_json::Error),
    /// Written by a later version.
    #[error("has format version {0}; this goodput reads up to {VERSION}: take a newer one")]
    Newer(u32),
}

/// The file of an engine.
pub fn encode(engine: &Engine) -> Vec<u8> {
    let mut bytes =
        serde_json::to_vec_pretty(engine).expect("names, texts and numbers are JSON always");
    bytes.push(b'\n');
    bytes
}

/// Reads a file.
///
/// # Errors
/// What it lacks, or that a later version wrote it.
pub fn decode(bytes: &[u8]) -> Result<Engine, EngineError> {
    #[derive(Deserialize)]
    struct Head {
        format_version: u32,
    }
    let head: Head = serde_json::from_slice(bytes)?;
    if head.format_version > VERSION {
        return Err(EngineError::Newer(head.format_version));
    }
    Ok(serde_json::from_slice(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_back() {
        let engine = Engine {
            format_version: VERSION,
            written_by: "goodput 0.1.0".to_owned(),
            settings: vec![("max_num_seqs".to_owned(), "64".to_owned())],
            fitted: vec![FittedSetting {
                name: "step_overhead_us".to_owned(),
                value: 310.5,
                low: Some(290.0),
                high: None,
                determined: false,
            }],
            relative_error: Some(0.031),
            outside_ms: Some(4.2),
            runs: vec!["01ABC".to_owned()],
        };
        assert_eq!(decode(&encode(&engine)).unwrap(), engine);
    }

    #[test]
    fn a_file_of_another_kind_or_a_later_version_is_told() {
        let other = decode(b"{\"settings\": []}").unwrap_err().to_string();
        assert!(other.contains("format_version"), "{other}");
        let later = decode(b"{\"format_version\": 9, \"anything\": 1}").unwrap_err();
        assert!(later.to_string().contains("take a newer one"));
        assert!(decode(b"\xff").is_err());
    }
}
