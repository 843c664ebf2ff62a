//! What model and accelerator could do with this work, by the roofline.

use measure::hardware::Precision;
use measure::hardware::roofline::{Bound, Limit, Work};

use super::View;

/// The least times of this run's work on the machines that the user named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The mean prompt, less what was cached, by itself, ms.
    pub prefill_ms: f64,
    /// What limits it.
    pub prefill_limit: Limit,
    /// A decode step of the batch that ran, ms.
    pub step_ms: f64,
    /// What limits it.
    pub step_limit: Limit,
    /// The same step with weights only, ms.
    pub weights_ms: f64,
    /// Share of its bytes that are keys and values.
    pub kv_share: f64,
    /// The batch that it was computed for.
    pub batch: f64,
    /// Tokens of context that each sequence had.
    pub context: f64,
    /// One token of a prompt at the peak of arithmetic, ms.
    pub prompt_token_ms: f64,
}

impl Bounds {
    /// Those of a run; none where model or accelerator are not known, or the
    /// accelerator has no peak for the weights' precision.
    pub(super) fn of(view: &View<'_>) -> Option<Self> {
        let deployment = view.deployment;
        let (model, accelerator) = (deployment.model.as_ref()?, deployment.accelerator.as_ref()?);
        let weights = deployment.weights.unwrap_or(Precision::Bf16);
        let kv = deployment.kv_cache.unwrap_or(Precision::Bf16);
        let compute = accelerator.compute_precision(weights);
        let together = deployment.tensor_parallel.unwrap_or(1);
        let bound = |work: Work| -> Option<Bound> { work.bound(accelerator, compute, together) };
        let (input, output) = view.lengths()?;
        let cached = view.mean(|seen| seen.cached).unwrap_or(0.0).min(input);
        let prompt = bound(Work::prefill(model, weights, kv, input - cached, cached))?;
        let engines = view.engines().max(1) as f64;
        let batch = (view.running_batch()? / engines).max(1.0);
        let context = input + output / 2.0;
        let work = Work::decode(model, weights, kv, batch, context);
        let step = bound(work)?;
        let bare = bound(Work::decode(model, weights, kv, batch, 0.0))?;
        let cache_bytes = batch * model.kv_bytes_of_context(kv, context);
        let many = 1_000.0;
        let row = Work { flops: many * model.linear_flops_per_token(), bytes: 0.0 };
        Some(Self {
            prefill_ms: 1e3 * prompt.seconds(),
            prefill_limit: prompt.limit(),
            step_ms: 1e3 * step.seconds(),
            step_limit: step.limit(),
            weights_ms: 1e3 * bare.memory_s,
            kv_share: cache_bytes / work.bytes,
            batch,
            context,
            prompt_token_ms: 1e3 * bound(row)?.compute_s / many,
        })
    }
}
