//! Figures that a server or a device tells of itself.

use measure::finding::From;
use measure::said::said;
use measure::signal::Signal;

use super::{Found, Known, input, no_signal, of_signal, short};
use crate::view::View;

/// The mean of a gauge over the window.
pub(super) fn gauge(view: &View<'_>, signal: Signal) -> Known<Found> {
    let gauge = view.signals().and_then(|signals| signals.gauge(signal));
    let gauge = gauge.ok_or_else(|| no_signal(view, signal))?;
    let largest = short(gauge.max);
    let most = input(said!("at most {largest}", "最大 {largest}", largest = largest), From::Server);
    Ok(Found { value: gauge.mean, inputs: vec![of_signal(signal, gauge.mean), most] })
}

/// The share of the devices' memory that is taken.
pub(super) fn memory(view: &View<'_>) -> Known<Found> {
    let mean = |signal| {
        let gauge = view.signals().and_then(|signals| signals.gauge(signal));
        gauge.map(|gauge| gauge.mean).ok_or_else(|| no_signal(view, signal))
    };
    let (used, total) = (mean(Signal::MemoryUsed)?, mean(Signal::MemoryTotal)?);
    let inputs = vec![of_signal(Signal::MemoryUsed, used), of_signal(Signal::MemoryTotal, total)];
    Ok(Found { value: used / total, inputs })
}

/// Cached over queried prompt tokens: the engine's counters, else what answers
/// say of their own prompts.
pub(super) fn prefix_hit_rate(view: &View<'_>) -> Known<Found> {
    let increase = |signal| view.signals().and_then(|signals| signals.increase(signal));
    let queries = increase(Signal::PrefixQueries).filter(|queries| *queries > 0.0);
    if let Some((hits, queries)) = increase(Signal::PrefixHits).zip(queries) {
        let inputs =
            vec![of_signal(Signal::PrefixHits, hits), of_signal(Signal::PrefixQueries, queries)];
        return Ok(Found { value: hits / queries, inputs });
    }
    let tokens = &view.summary.tokens;
    let told = tokens.cached_share.zip(tokens.cached.zip(tokens.input));
    let (share, (cached, prompt)) = told.ok_or_else(|| no_signal(view, Signal::PrefixHits))?;
    let words = said!(
        "{cached} of {prompt} prompt tokens, by the usage of answers",
        "{prompt} 个输入 token 中的 {cached} 个（来自回答的 usage）",
        cached = cached,
        prompt = prompt,
    );
    Ok(Found { value: share, inputs: vec![input(words, From::Client)] })
}

/// Preemptions over requests that finished.
pub(super) fn preemptions(view: &View<'_>) -> Known<Found> {
    let increase = |signal| {
        let increase = view.signals().and_then(|signals| signals.increase(signal));
        increase.ok_or_else(|| no_signal(view, signal))
    };
    let preemptions = increase(Signal::Preemptions)?;
    let finished = increase(Signal::Finished)?;
    if finished <= 0.0 {
        return Err(said!("no request finished in the window", "窗口内没有请求结束"));
    }
    let inputs =
        vec![of_signal(Signal::Preemptions, preemptions), of_signal(Signal::Finished, finished)];
    Ok(Found { value: preemptions / finished, inputs })
}
