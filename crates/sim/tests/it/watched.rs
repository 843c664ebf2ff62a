//! One replica, driven to its end with everything that it says written down.

use sim::{Cost, Ended, Limits, Listener, Policy, Replica, Sink, StepReport, Submission};

/// What a replica said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Log {
    /// Request, instant, tokens.
    pub(crate) tokens: Vec<(u64, u64, u32)>,
    pub(crate) ended: Vec<Ended>,
    pub(crate) steps: Vec<StepReport>,
}

impl Sink for Log {
    fn tokens(&mut self, id: u64, at_ns: u64, tokens: u32) {
        self.tokens.push((id, at_ns, tokens));
    }

    fn ended(&mut self, ended: &Ended) {
        self.ended.push(*ended);
    }
}

impl Listener for Log {
    fn step(&mut self, report: &StepReport) {
        self.steps.push(*report);
    }
}

impl Log {
    /// What became of each request, in the order of their numbers.
    pub(crate) fn by_id(&self) -> Vec<Ended> {
        let mut ended = self.ended.clone();
        ended.sort_by_key(|one| one.id);
        ended
    }

    /// The instants of one request's tokens.
    pub(crate) fn instants_of(&self, id: u64) -> Vec<u64> {
        self.tokens.iter().filter(|(of, ..)| *of == id).map(|(_, at_ns, _)| *at_ns).collect()
    }

    /// All gaps between tokens of the same request, nanoseconds, sorted.
    pub(crate) fn gaps_ns(&self, of: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut last = std::collections::HashMap::new();
        let mut gaps = Vec::new();
        for (id, at_ns, _) in self.tokens.iter().filter(|(id, ..)| of(*id)) {
            if let Some(before) = last.insert(*id, *at_ns) {
                gaps.push(at_ns - before);
            }
        }
        gaps.sort_unstable();
        gaps
    }
}

/// A client that leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leave {
    pub(crate) at_ns: u64,
    pub(crate) id: u64,
}

/// More steps than any case here can need: a test that reaches them hangs.
const MOST_STEPS: usize = 3_000_000;

/// Lets requests come at their instants, clients leave at theirs, and the
/// replica work until nothing is left.
pub(crate) fn serve(mut replica: Replica, mut requests: Vec<Submission>, leaves: &[Leave]) -> Log {
    let log = serve_on(&mut replica, &mut requests, leaves);
    assert!(replica.is_idle(), "nothing is left to do, yet {:?}", replica.gauges());
    assert_eq!(replica.gauges().kv_usage, 0.0, "an empty engine holds no block");
    log
}

/// The same on a replica that is kept.
pub(crate) fn serve_on(
    replica: &mut Replica,
    requests: &mut Vec<Submission>,
    leaves: &[Leave],
) -> Log {
    requests.sort_by_key(|request| request.arrived_ns);
    let mut leaves = leaves.to_vec();
    leaves.sort_by_key(|leave| leave.at_ns);
    let mut log = Log::default();
    let mut coming = requests.drain(..).peekable();
    let mut leaving = leaves.into_iter().peekable();
    loop {
        let arrival = coming.peek().map(|request| request.arrived_ns);
        let leave = leaving.peek().map(|leave| leave.at_ns);
        let Some(now_ns) = [arrival, leave, replica.next_ns()].into_iter().flatten().min() else {
            return log;
        };
        while let Some(request) = coming.next_if(|request| request.arrived_ns == now_ns) {
            replica.submit(request);
        }
        while let Some(leave) = leaving.next_if(|leave| leave.at_ns == now_ns) {
            replica.abort(leave.id, now_ns, &mut log);
        }
        replica.advance(now_ns, &mut log);
        replica.kick(now_ns);
        assert!(log.steps.len() < MOST_STEPS, "the engine does not come to an end");
    }
}

/// An engine with room for all and no surprises; tests change what they are
/// about.
pub(crate) fn roomy() -> Limits {
    Limits {
        max_num_seqs: 256,
        max_num_batched_tokens: 8192,
        max_model_len: 8192,
        block_size: 16,
        blocks: 1 << 16,
        enable_prefix_caching: true,
        enable_chunked_prefill: true,
        long_prefill_token_threshold: 0,
        policy: Policy::FirstCome,
        watermark_blocks: 0,
        reserve_full_isl: true,
        depth: 1,
        plans_ahead: false,
        max_loras: 0,
        speculation: None,
        window: None,
        seed: 1,
    }
}

/// A request with a prompt of its own.
pub(crate) fn request(id: u64, arrived_ns: u64, prompt: u32, output: u32) -> Submission {
    Submission {
        id,
        prompt: sim::Content::own(id, prompt),
        answer: !id,
        limit: output,
        natural: None,
        priority: 0,
        adapter: None,
        arrived_ns,
        transferred: 0,
    }
}

/// A replica whose steps all take so many nanoseconds.
pub(crate) fn steady(limits: Limits, step_ns: u64) -> Replica {
    Replica::new(limits, Cost::constant(step_ns as f64 * 1e-9))
}

/// The mean and half the width of its 99 % interval, of independent samples:
/// Student's t at 0.995 with n − 1 degrees of freedom, from the usual tables
/// (Fisher and Yates).
pub(crate) fn mean_and_margin_99(samples: &[f64]) -> (f64, f64) {
    let t = match samples.len() {
        20 => 2.861,
        30 => 2.756,
        50 => 2.680,
        n if n >= 400 => 2.59,
        n => panic!("no quantile is written down for {n} samples"),
    };
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, t * (variance / n).sqrt())
}

/// The value at or below which this share of sorted samples lies.
pub(crate) fn quantile(sorted: &[u64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize] as f64
}
