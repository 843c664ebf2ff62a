//! How long a step takes, term by term.
//!
//! A step takes the longest of what its arithmetic, its memory traffic and its
//! collectives take at the rates that the accelerators sustain, and a fixed
//! overhead besides. Of arithmetic and memory traffic the shorter may hide behind
//! the longer in part only. Every term is kept, so that the share of the peaks that a
//! run reached (MFU, MBU) is known exactly and not estimated.

use crate::scheduler::Work;

/// The coefficients of one replica's steps. Rates are those of all its
/// accelerators that work on one stage together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating point operations for each computed token, attention aside.
    pub flops_per_token: f64,
    /// For each pair of tokens in a prompt.
    pub flops_per_prefill_pair: f64,
    /// For each pair of tokens in an answer.
    pub flops_per_decode_pair: f64,
    /// For each token whose successor is drawn.
    pub flops_per_sampled: f64,
    /// The share of pairs and context that layers with a window have.
    pub window_share: f64,
    /// Peak of the accelerators, operations a second; 0 takes no time.
    pub peak_flops_per_s: f64,
    /// The share of it that is sustained, 0 to 1.
    pub compute_efficiency: f64,
    /// Bytes of weights that every step reads.
    pub weight_bytes: f64,
    /// Bytes of the experts that a router chooses from.
    pub routed_bytes: f64,
    /// The share of experts that one token takes, 0 to 1.
    pub routed_share: f64,
    /// Bytes of keys and values of one token, on all accelerators together.
    pub kv_bytes_per_token: f64,
    /// Peak of the memories, bytes a second; 0 takes no time.
    pub peak_bytes_per_s: f64,
    /// The share of it that is sustained, 0 to 1.
    pub memory_efficiency: f64,
    /// The share of the shorter of arithmetic and memory traffic that does not run
    /// beside the longer, 0 to 1.
    pub in_turn_share: f64,
    /// Bytes that each accelerator sends for one computed token.
    pub link_bytes_per_token: f64,
    /// What a link sustains, bytes a second; 0 takes no time.
    pub link_bytes_per_s: f64,
    /// What the collectives of a step take besides, seconds.
    pub link_latency_s: f64,
    /// Stages that a step passes one after the other.
    pub stages: f64,
    /// What the accelerators take for a step besides, seconds.
    pub step_overhead_s: f64,
    /// What drafting takes, as a share of the step.
    pub draft_share: f64,
    /// What loading an adapter takes, seconds.
    pub adapter_load_s: f64,
    /// What the scheduler takes for a step, seconds.
    pub host_s: f64,
    /// What it takes for each sequence in it, seconds.
    pub host_per_sequence_s: f64,
}

/// What one step takes and moves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepCost {
    /// The arithmetic, seconds.
    pub compute_s: f64,
    /// The memory traffic, seconds.
    pub memory_s: f64,
    /// The collectives, seconds.
    pub collective_s: f64,
    /// From the first stage's begin to the last one's end, seconds.
    pub device_s: f64,
    /// The scheduler's work before it, seconds.
    pub host_s: f64,
    /// Floating point operations.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
}

impl Cost {
    /// Steps that all take so long, whatever is in them.
    pub fn constant(step_s: f64) -> Self {
        Self { step_overhead_s: step_s, stages: 1.0, ..Self::default() }
    }

    /// What a step takes.
    pub fn of(&self, work: &Work) -> StepCost {
        let tokens = f64::from(work.tokens);
        let narrow = self.window_share;
        let in_window = |all: u64, seen: u64| {
            if narrow == 0.0 {
                all as f64
            } else {
                (1.0 - narrow) * all as f64 + narrow * seen as f64
            }
        };
        let all_pairs = work.prefill_pairs + work.decode_pairs;
        let kept = if all_pairs == 0 {
            1.0
        } else {
            in_window(all_pairs, work.window_pairs) / all_pairs as f64
        };
        let flops = tokens * self.flops_per_token
            + kept
                * (work.prefill_pairs as f64 * self.flops_per_prefill_pair
                    + work.decode_pairs as f64 * self.flops_per_decode_pair)
            + f64::from(work.sampled) * self.flops_per_sampled;
        let routed = if self.routed_bytes > 0.0 {
            // Of E experts with k a token, E · (1 − (1 − k ÷ E)^tokens) are
            // read on average.
            self.routed_bytes * (1.0 - (1.0 - self.routed_share).powi(work.tokens as i32))
        } else {
            0.0
        };
        let context = in_window(work.context, work.window_context);
        let bytes = self.weight_bytes + routed + context * self.kv_bytes_per_token;
        let compute_s = over(flops, self.peak_flops_per_s * self.compute_efficiency);
        let memory_s = over(bytes, self.peak_bytes_per_s * self.memory_efficiency);
        let collective_s =
            self.link_latency_s + over(tokens * self.link_bytes_per_token, self.link_bytes_per_s);
        let both_s = compute_s.max(memory_s) + self.in_turn_share * compute_s.min(memory_s);
        let longest = both_s.max(collective_s);
        StepCost {
            compute_s,
            memory_s,
            collective_s,
            device_s: longest * (1.0 + self.draft_share)
                + self.step_overhead_s
                + f64::from(work.adapter_loads) * self.adapter_load_s,
            host_s: self.host_s + f64::from(work.sequences) * self.host_per_sequence_s,
            flops,
            bytes,
        }
    }
}

fn over(amount: f64, per_second: f64) -> f64 {
    if per_second > 0.0 { amount / per_second } else { 0.0 }
}
