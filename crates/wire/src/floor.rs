//! The instrument's floor as a file: what `goodput selftest` found on this
//! machine.

use measure::facts::Floor;
use serde::{Deserialize, Serialize};

/// The name of the file in the folder of runs.
pub const FILE: &str = "instrument-floor.json";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FloorForm {
    measured_at: String,
    machine: String,
    lateness_us: [f64; 3],
    client_lag_us: [f64; 3],
    stamp_us: [f64; 2],
    gap_us: [f64; 2],
    cpu_us_per_chunk: f64,
    highest_valid_chunks_s: f64,
}

impl From<&Floor> for FloorForm {
    fn from(floor: &Floor) -> Self {
        Self {
            measured_at: floor.measured_at.clone(),
            machine: floor.machine.clone(),
            lateness_us: floor.lateness_us,
            client_lag_us: floor.client_lag_us,
            stamp_us: floor.stamp_us,
            gap_us: floor.gap_us,
            cpu_us_per_chunk: floor.cpu_us_per_chunk,
            highest_valid_chunks_s: floor.highest_valid_chunks_s,
        }
    }
}

impl From<FloorForm> for Floor {
    fn from(form: FloorForm) -> Self {
        Self {
            measured_at: form.measured_at,
            machine: form.machine,
            lateness_us: form.lateness_us,
            client_lag_us: form.client_lag_us,
            stamp_us: form.stamp_us,
            gap_us: form.gap_us,
            cpu_us_per_chunk: form.cpu_us_per_chunk,
            highest_valid_chunks_s: form.highest_valid_chunks_s,
        }
    }
}

/// The floor as a JSON value, as summaries hold it.
pub fn to_json(floor: &Floor) -> serde_json::Value {
    serde_json::to_value(FloorForm::from(floor)).unwrap_or_default()
}

/// The floor as a file.
pub fn encode(floor: &Floor) -> Vec<u8> {
    format!("{:#}\n", to_json(floor)).into_bytes()
}

/// Reads a file of [`encode`]; `None` when it is none, since a floor can be
/// found again at any time.
pub fn decode(bytes: &[u8]) -> Option<Floor> {
    serde_json::from_slice::<FloorForm>(bytes).ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_comes_back_and_nonsense_is_none() {
        let floor = Floor {
            measured_at: "2026-11-29T00:00:00Z".to_owned(),
            lateness_us: [1.0, 2.5, 3.0],
            highest_valid_chunks_s: 40_000.0,
            ..Floor::default()
        };
        assert_eq!(decode(&encode(&floor)), Some(floor));
        assert_eq!(decode(b"{}"), None);
        assert_eq!(decode(b""), None);
    }
}
