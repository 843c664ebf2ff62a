//! Q5: requests come in bursts that are served on average only.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::fit;
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "bursts",
    code: "Q5",
    class: Class::Queueing,
    title: text("arrivals come in bursts", "到达呈突发"),
    symptom: text(
        "P99 of TTFT is many times its median while the mean load is moderate",
        "平均负载不高，但 P99 TTFT 数倍于中位数",
    ),
    required: text("the queue has spikes and returns to 0", "队列出现尖峰并回落到 0"),
    check: text(
        "the same requests at even distances lose the tail",
        "以均匀间隔重放同样的请求，长尾消失",
    ),
    command: "goodput bench {target} --burstiness 100",
    advice: &[Advice {
        text: text(
            "keep headroom, scale out faster, or let a token bucket smooth what need not be answered at once",
            "保留余量、更快扩容，或用令牌桶平滑不急的请求",
        ),
        flags: &[],
    }],
    improves: &["ttft_ms", "attainment"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let scatter = view.flow.scatter.filter(|scatter| *scatter >= 2.0)?;
    if signs::grows(view) {
        return None;
    }
    let (middle, tail) =
        (view.at_share(0.5, |seen| seen.ttft_ms)?, view.at_share(0.99, |seen| seen.ttft_ms)?);
    let quick = view.quick_ttft_ms()?;
    let by_crowd = crowding(view)?;
    if tail < 2.0 * middle.min(2.0 * quick) || by_crowd < 0.3 {
        return None;
    }
    let depth = view.signals().and_then(|signals| signals.gauge(Signal::QueueDepth));
    let spikes = depth.is_some_and(|depth| depth.max >= 3.0 && depth.mean < 0.5 * depth.max);
    let mut evidence = vec![
        client(
            said!(
                "squared variation of the distances between arrivals (1 for Poisson)",
                "到达间隔的平方变异系数（泊松为 1）"
            ),
            scatter,
            "",
        ),
        client(said!("P99 over median TTFT", "P99 与中位 TTFT 之比"), tail / middle, ""),
        client(
            said!(
                "correlation of TTFT with how many came just before",
                "TTFT 与此前到达数的相关系数"
            ),
            by_crowd,
            "",
        ),
    ];
    evidence.extend(depth.map(|depth| server(said!("waiting, most", "最大等待数"), depth.max, "")));
    evidence
        .extend(depth.map(|depth| server(said!("waiting, mean", "平均等待数"), depth.mean, "")));
    let confidence = match (depth, spikes) {
        (Some(_), true) => Confidence::Confirmed,
        (Some(_), false) => Confidence::Likely,
        (None, _) => Confidence::Possible,
    };
    let says = said!(
        "arrivals scatter {scatter:.1} times as much as random ones, and P99 TTFT is {times:.1} times the \
         median",
        "到达的离散度为随机到达的 {scatter:.1} 倍，P99 TTFT 为中位数的 {times:.1} 倍",
        scatter = scatter,
        times = tail / middle,
    );
    let of_ttft = view.ttft_ms().map_or(0.0, |ttft| 1.0 - quick / ttft);
    Some(Case::new(confidence, signs::explains(view, of_ttft.max(0.5), 0.3, 0.3), says, evidence))
}

/// Correlation of TTFT with how many others were sent in the second before.
fn crowding(view: &View<'_>) -> Option<f64> {
    let sent: Vec<f64> = view.seen.iter().map(|seen| seen.sent_s).collect();
    let pairs: Vec<(f64, f64)> = view
        .seen
        .iter()
        .enumerate()
        .filter_map(|(place, seen)| {
            let from = sent.partition_point(|at| *at < seen.sent_s - 1.0);
            Some(((place - from.min(place)) as f64, seen.ttft_ms?))
        })
        .collect();
    fit::correlation(&pairs)
}
