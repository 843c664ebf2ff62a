//! Signs that several rules look at.

use measure::finding::{Evidence, From};
use measure::quantile;
use measure::said;
use measure::signal::{Role, Signal, Signals};
use measure::stage::Stages;

use super::{client, number};
use crate::view::{Seen, View};

/// The wait before the first step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Queue {
    /// Its mean, ms.
    pub(super) ms: f64,
    /// Its share of TTFT from the send.
    pub(super) of_ttft: f64,
    /// True where the server told it; else it is what TTFT has above that of the
    /// quickest requests.
    pub(super) is_told: bool,
}

/// The wait before the first step, told by the server or guessed.
pub(super) fn queue(view: &View<'_>) -> Option<Queue> {
    let ttft_ms = view.ttft_ms().filter(|ms| *ms > 0.0)?;
    let of = |ms: f64, is_told| Queue { ms, of_ttft: (ms / ttft_ms).clamp(0.0, 1.0), is_told };
    if let Some(ms) = view.queue_ms() {
        return Some(of(ms, true));
    }
    let queued = view.flow.streams.filter(|streams| streams.queued > 0.2);
    queued.and(view.quick_ttft_ms()).map(|quick| of((ttft_ms - quick).max(0.0), false))
}

/// What the server was like while requests waited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waiting {
    /// Mean number that waited, over the whole window.
    pub(super) depth: f64,
    /// Share of the scrapes at which one or more waited.
    pub(super) time: f64,
    /// Requests that ran then: the median.
    pub(super) running: f64,
    /// True where a limit holds them: at most one apart, or within 5 %, and near
    /// the most that ever ran.
    pub(super) is_held: bool,
    /// KV usage then: the median.
    pub(super) kv: f64,
}

/// That of a run; none where the server does not tell its queue.
pub(super) fn waiting(view: &View<'_>) -> Option<Waiting> {
    let signals = view.signals()?;
    let depth = signals.gauge(Signal::QueueDepth)?;
    let (running, kv) = (signals.gauge(Signal::Running)?, signals.gauge(Signal::KvUsage));
    let usual = Waiting {
        depth: depth.mean,
        time: f64::from(u8::from(depth.mean >= 0.5)),
        running: running.mean,
        is_held: running.mean >= 0.9 * running.max,
        kv: kv.map_or(0.0, |kv| kv.max),
    };
    let depths = signals.series.get(&Signal::QueueDepth).map_or(&[][..], Vec::as_slice);
    let waits: Vec<_> = depths.iter().filter(|(_, n)| *n >= 1.0).map(|(at, _)| *at).collect();
    if depths.is_empty() {
        return Some(usual);
    }
    let then = |signal| at_instants(signals, signal, &waits);
    let (runs, usage) = (then(Signal::Running), then(Signal::KvUsage));
    let at = |values: &[f64], share| quantile::linear(values, share);
    let (low, high) = (at(&runs, 0.1).unwrap_or(0.0), at(&runs, 0.9).unwrap_or(0.0));
    let near = |a: f64, b: f64| a >= b - 1.0 || a >= 0.95 * b;
    Some(Waiting {
        time: waits.len() as f64 / depths.len() as f64,
        running: at(&runs, 0.5).unwrap_or(0.0),
        is_held: waits.len() >= 3 && near(low, high) && near(low, running.max),
        kv: at(&usage, 0.5).unwrap_or(0.0),
        ..usual
    })
}

/// Values of a series at some of its instants, sorted.
fn at_instants(signals: &Signals, signal: Signal, instants: &[measure::At]) -> Vec<f64> {
    let series = signals.series.get(&signal).map_or(&[][..], Vec::as_slice);
    let mut values: Vec<f64> = series
        .iter()
        .filter(|(at, _)| instants.binary_search(at).is_ok())
        .map(|(_, value)| *value)
        .collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Which limit requests wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// A seat.
    Seats,
    /// Blocks of the KV cache.
    Kv,
    /// Tokens of a step.
    Tokens,
}

/// Share of the seats that counts as all of them: a seat that is free for a step
/// is seen by some scrapes.
pub(super) const ALL_SEATS: f64 = 0.9;
/// KV usage from which on there is no room for another prompt.
pub(super) const KV_FULL: f64 = 0.95;

/// The limit that binds while requests wait, by what is at its end.
pub(super) fn limit(view: &View<'_>) -> Option<Limit> {
    let waiting = waiting(view).filter(|waiting| waiting.depth >= 0.3 || waiting.time >= 0.2)?;
    if is_kv_full(view, &waiting) {
        return Some(Limit::Kv);
    }
    match view.seats() {
        Some(seats) if waiting.running >= ALL_SEATS * seats => Some(Limit::Seats),
        Some(_) => Some(Limit::Tokens),
        None if waiting.is_held && waiting.time >= 0.15 => Some(Limit::Seats),
        None => Some(Limit::Tokens),
    }
}

/// True where a typical prompt did not fit into what was free of the KV cache
/// while requests waited.
fn is_kv_full(view: &View<'_>, waiting: &Waiting) -> bool {
    let capacity = view.signal(Signal::KvCapacity);
    let prompt = view.at_share(0.5, |seen| seen.input);
    let no_room = capacity.zip(prompt).is_some_and(|(capacity, prompt)| {
        let engines = view.engines().max(1) as f64;
        (1.0 - waiting.kv) * capacity / engines < prompt
    });
    waiting.kv >= KV_FULL || (waiting.kv >= 0.8 && no_room)
}

/// Share of the engine's time that prompts take: by the bound where model and
/// accelerator are known, at the 60 % of the peak that engines sustain; else by
/// how much longer the mean step is than the quickest.
pub(super) fn prompt_time(view: &View<'_>) -> Option<f64> {
    let by_bound = || {
        let token_ms = view.bounds?.prompt_token_ms / 0.6;
        let computed = view
            .signals()
            .and_then(|signals| signals.rate(Signal::PromptComputed))
            .or(view.summary.throughput.input_computed_tok_s)
            .or(view.summary.throughput.input_tok_s)?;
        Some(computed * token_ms / 1e3 / view.engines().max(1) as f64)
    };
    let by_steps = || {
        let mixture = view.mixture.filter(|mixture| mixture.delivery_ms > 0.0)?;
        Some(1.0 - mixture.floor_ms / mixture.delivery_ms)
    };
    by_bound().or_else(by_steps).map(|share| share.clamp(0.0, 1.0))
}

/// What a prompt of this load takes to be computed without others beside it, ms:
/// the quickest TTFTs less what lies before the engine.
pub(super) fn own_prefill_ms(view: &View<'_>, stages: &Stages) -> Option<f64> {
    let before = ["network", "gateway", "front_end"];
    let outside: f64 = stages
        .stages
        .iter()
        .filter(|stage| before.contains(&stage.id))
        .map(|stage| stage.mean_ms.max(0.0))
        .sum();
    let quick = (view.quick_ttft_ms()? - outside).max(0.0);
    Some(view.prefill_ms().map_or(quick, |mean| mean.min(quick)))
}

/// The longest prompts and the tokens of a step: one that fills whole steps holds
/// up all that come after it.
pub(super) fn long_prompts(view: &View<'_>) -> Vec<Evidence> {
    let longest = view.at_share(0.99, Seen::uncached).map(|tokens| {
        client(said!("longest prompts to compute, P99", "需计算的长输入 P99"), tokens, "tokens")
    });
    let budget = view.token_budget().map(|budget| {
        let told = view.signal(Signal::TokenBudget).is_some();
        let from = if told { From::Server } else { From::Given };
        number(said!("token budget of a step", "单步 token 预算"), budget, "tokens", from)
    });
    longest.into_iter().chain(budget).collect()
}

/// Mean of a stage over the mean TTFT that was split.
pub(super) fn stage<'s>(stages: &'s Stages, id: &str) -> Option<&'s measure::stage::Stage> {
    stages.stages.iter().find(|stage| stage.id == id)
}

/// Share of prompt tokens that others have in common by design; none where it is
/// not known.
pub(super) fn shared(view: &View<'_>) -> Option<f64> {
    let tokens = f64::from(view.summary.facts.workload.prefix_tokens?);
    let (input, _) = view.lengths()?;
    Some((tokens / input.max(1.0)).min(1.0))
}

/// Share of prompt tokens that could have been found, and the share that was.
/// None where the first is not known, or little, or nobody tells the second.
pub(super) fn prefix(view: &View<'_>) -> Option<(f64, f64)> {
    // Who comes before the first prompt is computed finds nothing.
    let first_s = view.courses.iter().filter_map(|course| course.first_token_s);
    let first_s = first_s.fold(f64::INFINITY, f64::min);
    let early = view.seen.iter().filter(|seen| seen.sent_s < first_s).count();
    let late = 1.0 - early as f64 / view.seen.len().max(1) as f64;
    let shared = shared(view)? * late;
    // A cache that is off counts no look-up.
    let asked = view.signals().and_then(|signals| signals.increase(Signal::PrefixQueries));
    let hits = if asked == Some(0.0) { Some(0.0) } else { view.hit_rate() };
    (shared >= 0.2 && view.seen.len() >= 20).then_some((shared, hits?))
}

/// How much of what is wrong lost hits explain: of the time of prompts the part
/// that they would spare, and as much of the slow steps.
pub(super) fn prefix_part(view: &View<'_>, stages: &Stages, shared: f64, hits: f64) -> f64 {
    let spared = ((shared - hits) / (1.0 - hits).max(1e-6)).clamp(0.0, 1.0);
    let outside: f64 = ["client_wait", "network", "gateway", "front_end"]
        .iter()
        .filter_map(|id| stage(stages, id))
        .map(|stage| stage.share.max(0.0))
        .sum();
    let gaps = view.mixture.map_or(0.0, |mixture| mixture.excess());
    explains(view, spared * (1.0 - outside).max(0.0), spared * gaps, 0.9 * spared)
}

/// True where requests in flight and TTFT grow while they come, and fewer end
/// than come.
pub(super) fn grows(view: &View<'_>) -> bool {
    let flow = &view.flow;
    let in_flight = flow.in_flight.is_some_and(|trend| trend.grows(1.0));
    let ttft = flow.ttft.is_some_and(|trend| trend.grows(10.0));
    view.summary.facts.load.kind.has_schedule()
        && in_flight
        && ttft
        && flow.deficit().is_some_and(|deficit| deficit > 0.05)
}

/// How many times the throughput would be with twice the batch: near 2 where a
/// step takes as long for many as for few, near 1 where its time is that of its
/// tokens. By the bounds where model and accelerator are known, else by how much
/// longer the mean step is than the quickest.
pub(super) fn batch_gain(view: &View<'_>) -> Option<f64> {
    let mixture = view.mixture.filter(|mixture| mixture.delivery_ms > 0.0)?;
    let by_steps = || {
        // Stalls are no part of what a step costs.
        let all = mixture.delivery_ms * (1.0 - mixture.stalled.excess);
        let quickest = view.steps.iter().map(|(_, ms)| *ms).fold(mixture.floor_ms, f64::min);
        let fixed = quickest.min(all);
        2.0 * all / (2.0 * all - fixed)
    };
    let by_bound = || {
        let bounds = view.bounds?;
        let prompts = prompt_time(view)?;
        let own = 1.0 - bounds.kv_share;
        // Twice the batch reads weights once and keys and values twice.
        let twice = if bounds.step_limit == measure::hardware::roofline::Limit::Memory {
            own + 2.0 * bounds.kv_share
        } else {
            2.0
        };
        Some(1.0 / (prompts + (1.0 - prompts) * twice / 2.0))
    };
    Some(by_bound().map_or_else(by_steps, |bound| bound.min(by_steps())))
}

/// The gain from which on a larger batch is a remedy.
pub(super) const BATCH_HELPS: f64 = 1.2;

/// The least and the most of a signal over the accelerators that tell it; none
/// with fewer than two.
pub(super) fn spread(view: &View<'_>, signal: Signal) -> Option<(f64, f64)> {
    let devices = view.instances(|role| role == Role::Device);
    let each: Vec<f64> =
        devices.filter_map(|device| device.readings.get(&signal)?.value()).collect();
    let least = each.iter().copied().fold(f64::INFINITY, f64::min);
    (each.len() >= 2).then(|| (least, each.iter().copied().fold(0.0, f64::max)))
}

/// Bytes between accelerators over the peak of their links, both directions. None
/// where the accelerator was not named or nobody counts them.
pub(super) fn link_share(view: &View<'_>) -> Option<f64> {
    let bytes_s = view.signal(Signal::LinkBytes)?;
    let each = 2.0 * view.deployment.accelerator.as_ref()?.link_bytes_per_s;
    let devices = view.instances(|role| role == Role::Device);
    let told = devices.filter(|one| one.readings.contains_key(&Signal::LinkBytes)).count();
    let count = if told > 0 { told as f64 } else { f64::from(view.deployment.accelerators()?) };
    (each > 0.0).then(|| bytes_s / (count * each))
}

/// How much a cause explains of what is wrong: its parts of TTFT, of TPOT and of
/// the longest gaps, by how far each is from what is asked of it.
pub(super) fn explains(view: &View<'_>, of_ttft: f64, of_tpot: f64, of_gaps: f64) -> f64 {
    let [ttft, tpot, gaps] = view.wrong.weights();
    ttft * of_ttft.clamp(0.0, 1.0) + tpot * of_tpot.clamp(0.0, 1.0) + gaps * of_gaps.clamp(0.0, 1.0)
}

/// P99 of the gaps between tokens over the undisturbed gap.
pub(super) fn gap_tail(view: &View<'_>) -> Option<f64> {
    let base = view.mixture?.base_ms;
    (base > 0.0).then_some(view.figure("icl_ms", "p99")? / base)
}
