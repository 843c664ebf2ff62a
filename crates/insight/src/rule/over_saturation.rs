//! Q4: more comes than can be served, so that everything grows while it lasts.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::fit;
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "over_saturation",
    code: "Q4",
    class: Class::Queueing,
    title: text("more requests come than can be served", "到达超过服务能力（过饱和）"),
    symptom: text(
        "requests in flight and TTFT grow all the time; fewer end than come",
        "在途请求与 TTFT 持续增长，完成速率低于到达速率",
    ),
    required: text("the queue grows over the whole run", "队列在整个压测期间增长"),
    check: text("at half the rate the queue is gone", "速率减半后排队消失"),
    command: "for r in 1 2 4 8; do goodput bench {target} --request-rate $r --duration 30s; done",
    advice: &[
        Advice {
            text: text(
                "refuse what cannot be served in time, at the gateway or the engine",
                "在网关或引擎处拒绝来不及服务的请求",
            ),
            flags: &[("sglang", "--max-queued-requests")],
        },
        Advice {
            text: text("add replicas", "增加副本"),
            flags: &[("vllm", "--data-parallel-size"), ("sglang", "--dp-size")],
        },
        Advice {
            text: text(
                "find the highest rate that meets the objectives, and stay below it",
                "找出满足目标的最高速率并低于它运行",
            ),
            flags: &[],
        },
    ],
    improves: &["ttft_ms", "attainment", "goodput_req_s"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    if view.is_watched {
        return by_queue(view);
    }
    if !signs::grows(view) {
        return None;
    }
    let (in_flight, ttft) = (view.flow.in_flight?, view.flow.ttft?);
    let (offered, ended) = (view.flow.offered_rps?, view.flow.ended_rps?);
    let deficit = view.flow.deficit()?;
    let depth = view.signals().and_then(|signals| signals.series.get(&Signal::QueueDepth));
    let queue = depth.and_then(|series| {
        let points: Vec<(f64, f64)> =
            series.iter().map(|(at, depth)| (at.ms() / 1e3, *depth)).collect();
        // The queue empties when no more come.
        let top = points.iter().map(|(_, depth)| *depth).fold(0.0, f64::max);
        let until = points.iter().rposition(|(_, depth)| *depth >= 0.95 * top)?;
        fit::trend(&points[..=until])
    });
    let grows_inside = queue.is_some_and(|trend| trend.p < 0.01 && trend.change() > 2.0);
    let mut evidence = vec![
        client(said!("requests that came a second", "每秒到达"), offered, "req/s"),
        client(said!("that ended meanwhile", "同期每秒完成"), ended, "req/s"),
        client(said!("growth of the number in flight", "在途请求数的增长"), in_flight.slope, "1/s"),
        client(said!("growth of TTFT", "TTFT 的增长"), ttft.slope, "ms/s"),
    ];
    evidence.extend(
        queue.map(|trend| server(said!("growth of the queue", "队列的增长"), trend.slope, "1/s")),
    );
    let confidence = match (grows_inside, deficit > 0.1) {
        (true, true) => Confidence::Confirmed,
        (true, false) => Confidence::Likely,
        (false, _) => Confidence::Possible,
    };
    let says = said!(
        "{offered:.2} requests come and {ended:.2} end a second; TTFT grows by {slope:.0} ms each second",
        "每秒到达 {offered:.2}、完成 {ended:.2} 个请求；TTFT 每秒增长 {slope:.0} ms",
        offered = offered,
        ended = ended,
        slope = ttft.slope,
    );
    // What TTFT has above that of undisturbed requests came with the queue.
    let quick = view.quick_ttft_ms().unwrap_or(0.0);
    let of_ttft = view.ttft_ms().map_or(0.0, |ttft| 1.0 - quick / ttft);
    let missing =
        (!grows_inside).then(|| said!("the server's queue over time", "服务端队列随时间的变化"));
    let share = signs::explains(view, of_ttft.max(0.5), 0.3, 0.3);
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}

/// A server that is watched: its queue grows by more than a tenth of what ends.
fn by_queue(view: &View<'_>) -> Option<Case> {
    let signals = view.signals()?;
    let depths = signals.series.get(&Signal::QueueDepth)?;
    let points: Vec<(f64, f64)> =
        depths.iter().map(|(at, depth)| (at.ms() / 1e3, *depth)).collect();
    let trend = fit::trend(&points).filter(|trend| trend.grows(5.0))?;
    let ended = signals.rate(Signal::Finished)?;
    let waiting = signals.latest(Signal::QueueDepth)?;
    if trend.slope < 0.1 * ended || trend.change() < 0.5 * waiting {
        return None;
    }
    let evidence = vec![
        server(said!("growth of the queue", "队列的增长"), trend.slope, "1/s"),
        server(said!("requests that ended a second", "每秒完成"), ended, "req/s"),
        server(said!("waiting now", "当前等待数"), waiting, ""),
    ];
    let says = said!(
        "the queue grows by {slope:.2} requests a second while {ended:.2} end: {waiting:.0} wait now",
        "队列每秒增长 {slope:.2} 个请求，同时每秒完成 {ended:.2} 个；当前 {waiting:.0} 个在等待",
        slope = trend.slope,
        ended = ended,
        waiting = waiting,
    );
    let missing = said!(
        "whether it goes on: a burst looks the same for as long as it lasts",
        "是否持续：突发流量在其持续期间看起来也是如此"
    );
    let share = signs::queue(view).map_or(0.5, |queue| queue.of_ttft);
    Some(Case::new(Confidence::Likely, share, says, evidence).missing([missing]))
}
