//! V1: far less is asked of the server than it can give.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "underload",
    code: "V1",
    class: Class::Underload,
    title: text("the load is far below what the server can give", "负载远低于服务能力"),
    symptom: text(
        "latency is that of a request by itself, and nobody waits",
        "延迟与单个请求独占时相同，无人等待",
    ),
    required: text(
        "no queue, few requests running, an almost empty KV cache",
        "无排队，运行请求很少，KV 几乎为空",
    ),
    check: text(
        "with twice the load throughput doubles and latency stays",
        "负载翻倍时吞吐翻倍而延迟不变",
    ),
    command: "goodput probe {target} --only ladder --max-concurrency 64",
    advice: &[
        Advice {
            text: text("raise the rate or the number of users", "提高到达速率或并发用户数"),
            flags: &[],
        },
        Advice {
            text: text(
                "serve with fewer or cheaper accelerators, if this is the load to come",
                "若实际负载就是如此，可减少或更换更便宜的加速器",
            ),
            flags: &[],
        },
    ],
    improves: &["mbu", "cost_per_million_tokens"],
    seen_live: true,
    judge,
};

/// Requests at a time up to which an engine's batch is nearly empty.
const FEW: f64 = 4.0;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let engines = view.engines().max(1) as f64;
    let in_flight = view.in_flight()? / engines;
    let waits = view.most(Signal::QueueDepth).unwrap_or(0.0);
    let usage = view.signals().and_then(|signals| signals.gauge(Signal::KvUsage));
    let streams = view.flow.streams?;
    let queue = signs::queue(view).map_or(0.0, |queue| queue.of_ttft);
    if in_flight > FEW || waits > 1.0 || queue > 0.2 || usage.is_some_and(|usage| usage.mean > 0.1)
    {
        return None;
    }
    // What is slow with few requests is not slow for want of more.
    if view.wrong.is_anything() {
        return None;
    }
    let seats_free = view.seats().is_none_or(|seats| in_flight * engines < 0.5 * seats);
    let prompts = signs::prompt_time(view).unwrap_or(0.0);
    if !seats_free || streams.waiting > 0.6 * engines || (prompts > 0.3 && view.bounds.is_some()) {
        return None;
    }
    let mut evidence = vec![client(
        said!("requests in flight at a time", "平均在途请求数"),
        in_flight * engines,
        "",
    )];
    evidence
        .extend(usage.map(|usage| server(said!("KV usage, mean", "平均 KV 占用"), usage.mean, "")));
    evidence.extend(
        view.signals()
            .and_then(|signals| signals.gauge(Signal::Running))
            .map(|running| server(said!("running, mean", "平均运行数"), running.mean, "")),
    );
    evidence.extend(view.seats().map(|seats| server(said!("seats", "席位"), seats, "")));
    let says = said!(
        "{in_flight:.1} requests are in flight on average and nobody waits: the figures are those of \
         an almost idle server",
        "平均只有 {in_flight:.1} 个在途请求且无人等待：这些数字反映的是几乎空闲的服务",
        in_flight = in_flight * engines,
    );
    let confidence = if usage.is_some() && in_flight < FEW / 2.0 {
        Confidence::Likely
    } else {
        Confidence::Possible
    };
    let share = 1.0 - in_flight / (2.0 * FEW);
    Some(Case::new(confidence, share, says, evidence))
}
