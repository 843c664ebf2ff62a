//! The time that no engine goes below: work divided by peaks.
//!
//! The roofline model (Williams, Waterman and Patterson 2009): a step takes at
//! least as long as its operations at peak rate, and at least as long as its
//! bytes at peak bandwidth. Communication and the host come on top.

use super::{Accelerator, ModelShape, Precision};

/// What a step has to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Floating point operations.
    pub flops: f64,
    /// Bytes to or from memory.
    pub bytes: f64,
}

/// Which peak a step is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Operations a second.
    Compute,
    /// Bytes a second.
    Memory,
}

/// The least time of a step, seconds, by each of the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Its operations at the peak rate.
    pub compute_s: f64,
    /// Its bytes at the peak bandwidth.
    pub memory_s: f64,
}

impl Bound {
    /// The longer of the two, seconds.
    pub fn seconds(&self) -> f64 {
        self.compute_s.max(self.memory_s)
    }

    /// Which one it is.
    pub fn limit(&self) -> Limit {
        if self.compute_s > self.memory_s { Limit::Compute } else { Limit::Memory }
    }
}

impl Work {
    /// One step that decodes a token for each of `sequences`, after `context`
    /// cached tokens each. Weights are read once for all of them, their KV
    /// cache for each.
    pub fn decode(
        model: &ModelShape,
        weights: Precision,
        kv: Precision,
        sequences: f64,
        context: f64,
    ) -> Self {
        let each = model.linear_flops_per_token()
            + model.logits_flops()
            + model.attention_flops(1.0, context);
        let cache = model.kv_bytes_of_context(kv, context);
        Self {
            flops: sequences * each,
            bytes: model.weight_bytes_read(weights, sequences) + sequences * cache,
        }
    }

    /// A step that reads `new` tokens of one prompt after `cached` tokens of
    /// it, and gives the logits of the last one. The cache of the old tokens
    /// is read, that of all is kept.
    pub fn prefill(
        model: &ModelShape,
        weights: Precision,
        kv: Precision,
        new: f64,
        cached: f64,
    ) -> Self {
        let linear = new * model.linear_flops_per_token() + model.logits_flops();
        let written = new * model.kv_bytes_per_token(kv);
        Self {
            flops: linear + model.attention_flops(new, cached),
            bytes: model.weight_bytes_read(weights, new)
                + model.kv_bytes_of_context(kv, cached)
                + written,
        }
    }

    /// The least time on `count` accelerators that share the work evenly, with
    /// operands of the precision `compute`. `None` where the accelerator has
    /// no peak for it; [`Accelerator::compute_precision`] names one that it has.
    pub fn bound(
        &self,
        accelerator: &Accelerator,
        compute: Precision,
        count: u32,
    ) -> Option<Bound> {
        let count = f64::from(count.max(1));
        let rate = accelerator.flops_per_s(compute)?;
        Some(Bound {
            compute_s: self.flops / (count * rate),
            memory_s: self.bytes / (count * accelerator.bandwidth_bytes_per_s),
        })
    }
}

/// How many tokens a step must have before it multiplies longer than it reads
/// weights: rate · bytes of a weight ÷ (2 · bandwidth). The KV cache, which no
/// batch shares, is left out. `None` without a peak for the precision.
pub fn ridge_tokens(accelerator: &Accelerator, weights: Precision) -> Option<f64> {
    let rate = accelerator.flops_per_s(weights)?;
    Some(rate * weights.bytes_per_value() / (2.0 * accelerator.bandwidth_bytes_per_s))
}

/// Bytes that each of `tensor_parallel` accelerators sends in one step over
/// `tokens` tokens: two all-reduces a layer of tokens · hidden values, of which
/// a ring sends 2 · (n − 1) ÷ n. Short steps are bound by the latency of the
/// all-reduces instead.
pub fn all_reduce_bytes(
    model: &ModelShape,
    activations: Precision,
    tokens: f64,
    tensor_parallel: u32,
) -> f64 {
    let parts = f64::from(tensor_parallel.max(1));
    let each = tokens * f64::from(model.hidden) * activations.bytes_per_value();
    2.0 * f64::from(model.layers) * each * 2.0 * (parts - 1.0) / parts
}
