//! What the user says of the machines that serve: nothing of it can be seen from
//! outside, and figures that need it are absent without it.

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

impl Deployment {
    /// All accelerators, busy or not.
    pub fn accelerators(&self) -> Option<u32> {
        let all: u32 = self.topology.iter().map(|(_, count)| count).sum();
        (all > 0).then_some(all)
    }
}
