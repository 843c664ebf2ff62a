//! What the user says of the machines that serve: nothing of it can be seen from
//! outside, and figures that need it are absent without it.

use std::fmt;

use crate::hardware::lookup::nearest;
use crate::hardware::{Accelerator, ModelShape, Precision};

/// The machines behind a target, as far as they were named.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deployment {
    /// The model's shape: `--model-shape`.
    pub model: Option<ModelShape>,
    /// What computes: `--accelerator`.
    pub accelerator: Option<Accelerator>,
    /// Accelerators of the deployment by what they do, as `prefill=8,decode=16`
    /// or one unnamed number: `--topology`.
    pub topology: Vec<(String, u32)>,
    /// Accelerators of one engine that compute a layer together:
    /// `--tensor-parallel`.
    pub tensor_parallel: Option<u32>,
    /// Stages of layers of one engine, one behind the other:
    /// `--pipeline-parallel`; one where nothing is said.
    pub pipeline_parallel: Option<u32>,
    /// Precision of the weights: `--weights`.
    pub weights: Option<Precision>,
    /// Precision of keys and values: `--kv-cache-dtype`.
    pub kv_cache: Option<Precision>,
    /// Price of one accelerator for an hour: `--gpu-price-per-hour`.
    pub price_per_hour: Option<f64>,
    /// Seats of an engine, which no vLLM metric tells: `--max-num-seqs`.
    pub seats: Option<u32>,
    /// Token budget of a step, likewise: `--max-num-batched-tokens`.
    pub token_budget: Option<u32>,
}

/// What accelerators are there for, as a topology names it.
pub const ROLES: &[&str] = &["prefill", "decode", "both"];

/// The most accelerators of a deployment.
pub const MOST_ACCELERATORS: u32 = 1_000_000;

impl Deployment {
    /// All accelerators, busy or not.
    pub fn accelerators(&self) -> Option<u32> {
        let counts = self.topology.iter().map(|(_, count)| *count);
        let all = counts.fold(0_u32, u32::saturating_add);
        (all > 0).then_some(all)
    }

    /// This, and where it says nothing what `beneath` says.
    #[must_use]
    pub fn over(self, beneath: &Self) -> Self {
        let topology =
            if self.topology.is_empty() { beneath.topology.clone() } else { self.topology };
        Self {
            model: self.model.or_else(|| beneath.model.clone()),
            accelerator: self.accelerator.or(beneath.accelerator),
            topology,
            tensor_parallel: self.tensor_parallel.or(beneath.tensor_parallel),
            pipeline_parallel: self.pipeline_parallel.or(beneath.pipeline_parallel),
            weights: self.weights.or(beneath.weights),
            kv_cache: self.kv_cache.or(beneath.kv_cache),
            price_per_hour: self.price_per_hour.or(beneath.price_per_hour),
            seats: self.seats.or(beneath.seats),
            token_budget: self.token_budget.or(beneath.token_budget),
        }
    }
}

/// A text that is no topology, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError(String);

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TopologyError {}

/// Reads a number of accelerators, or `prefill=8,decode=16`.
///
/// # Errors
///
/// What is no whole number above 0, a role that is none of [`ROLES`] or is there
/// twice, more accelerators than [`MOST_ACCELERATORS`].
pub fn topology(text: &str) -> Result<Vec<(String, u32)>, TopologyError> {
    let shown: String = text.chars().take(60).collect();
    let wrong = |rule: String| TopologyError(format!("{shown:?}: {rule}"));
    let count = |text: &str| {
        let count = text.trim().parse::<u32>().ok();
        count.filter(|count| (1..=MOST_ACCELERATORS).contains(count)).ok_or_else(|| {
            wrong(format!(
                "{:?} is not a whole number from 1 to {MOST_ACCELERATORS}; write 8, or \
                 prefill=8,decode=16",
                text.trim().chars().take(20).collect::<String>()
            ))
        })
    };
    if !text.contains('=') {
        return Ok(vec![(String::new(), count(text)?)]);
    }
    let mut parts: Vec<(String, u32)> = Vec::new();
    for part in text.split(',') {
        let (role, number) = part.split_once('=').unwrap_or((part, ""));
        let role = role.trim();
        if !ROLES.contains(&role) {
            let near = nearest(role, ROLES.iter().copied()).join(", ");
            let role: String = role.chars().take(20).collect();
            return Err(wrong(format!("there is no role {role:?}; there are {near}")));
        }
        if parts.iter().any(|(known, _)| known == role) {
            return Err(wrong(format!("{role} is there twice")));
        }
        parts.push((role.to_owned(), count(number)?));
    }
    let all = parts.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
    if all > u64::from(MOST_ACCELERATORS) {
        return Err(wrong(format!("{all} accelerators are more than {MOST_ACCELERATORS}")));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topology_is_a_number_or_numbers_by_role() {
        let plain = |parts: &[(&str, u32)]| -> Vec<(String, u32)> {
            parts.iter().map(|(role, count)| ((*role).to_owned(), *count)).collect()
        };
        assert_eq!(topology(" 8"), Ok(plain(&[("", 8)])));
        let apart = topology("prefill=8, decode=16");
        assert_eq!(apart, Ok(plain(&[("prefill", 8), ("decode", 16)])));
        let deployment = Deployment { topology: apart.unwrap(), ..Deployment::default() };
        assert_eq!(deployment.accelerators(), Some(24));
        assert_eq!(Deployment::default().accelerators(), None);
    }

    #[test]
    fn what_is_no_topology_is_told_with_the_rule() {
        for (text, word) in [
            ("", "from 1"),
            ("0", "from 1"),
            ("8x", "prefill=8"),
            ("prefil=8", "no role \"prefil\"; there are prefill"),
            ("prefill=8,prefill=2", "twice"),
            ("prefill=8,decode", "from 1"),
            ("prefill=900000,decode=900000", "1800000 accelerators"),
        ] {
            let error = topology(text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        assert!(topology(&"é=".repeat(1_000_000)).unwrap_err().to_string().len() < 300);
    }

    #[test]
    fn what_is_given_again_wins_and_the_rest_stays() {
        let stored = Deployment {
            topology: topology("8").unwrap(),
            tensor_parallel: Some(4),
            price_per_hour: Some(2.0),
            ..Deployment::default()
        };
        let given = Deployment { price_per_hour: Some(3.0), ..Deployment::default() };
        let both = given.over(&stored);
        assert_eq!((both.price_per_hour, both.tensor_parallel), (Some(3.0), Some(4)));
        assert_eq!(both.accelerators(), Some(8));
    }
}
