//! V3: a closed loop asks less when the server slows down, and hides the queue
//! that users would see.

use measure::facts::LoadKind;
use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, text};
use crate::fit;
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "hidden_queue",
    code: "V3",
    class: Class::Workload,
    title: text("the closed loop hides a queue", "闭环压测掩盖了排队"),
    symptom: text(
        "with a fixed number of users fewer requests come whenever the server is slower",
        "并发固定时，服务变慢则到达变少",
    ),
    required: text("no queue at the server at any time", "服务端始终没有排队"),
    check: text(
        "at 0.9 of this throughput in an open loop P99 TTFT is far higher",
        "以该吞吐的 0.9 倍做开环压测，P99 TTFT 明显更高",
    ),
    command: "for r in 1 2 4 8; do goodput bench {target} --request-rate $r --duration 30s; done",
    advice: &[Advice {
        text: text(
            "measure with arrivals that do not wait for answers",
            "改用不等待回答的开环到达",
        ),
        flags: &[],
    }],
    improves: &["ttft_ms", "attainment"],
    seen_live: true,
    judge,
};

/// Parts that the run is cut into.
const PARTS: usize = 12;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    if view.summary.facts.load.kind != LoadKind::Closed || view.most(Signal::QueueDepth) > Some(1.0)
    {
        return None;
    }
    let (first, last) = (view.seen.first()?.sent_s, view.seen.last()?.sent_s);
    let width = (last - first) / PARTS as f64;
    if width <= 0.0 || view.seen.len() < 10 * PARTS {
        return None;
    }
    let mut parts = [(0.0, 0.0); PARTS];
    for seen in &view.seen {
        let place = (((seen.sent_s - first) / width) as usize).min(PARTS - 1);
        parts[place].0 += 1.0;
        parts[place].1 += seen.e2el_ms.unwrap_or(0.0);
    }
    let pairs: Vec<(f64, f64)> =
        parts.iter().filter(|(n, _)| *n > 0.0).map(|(n, sum)| (*n, sum / n)).collect();
    let against = fit::correlation(&pairs)?;
    let latencies = pairs.iter().map(|(_, ms)| *ms);
    let (least, most) =
        latencies.fold((f64::INFINITY, 0.0f64), |(low, high), ms| (low.min(ms), high.max(ms)));
    if against > -0.7 || most < 1.3 * least {
        return None;
    }
    let evidence = vec![
        client(said!("correlation of arrivals and latency", "到达与延迟的相关系数"), against, ""),
        client(
            said!("longest over shortest mean latency", "平均延迟的最大与最小之比"),
            most / least,
            "",
        ),
    ];
    let says = said!(
        "latency rose {times:.1} times within the run and arrivals fell with it (correlation \
         {against:.2}): no queue could form",
        "压测期间延迟升至 {times:.1} 倍而到达随之减少（相关系数 {against:.2}）：排队无从形成",
        times = most / least,
        against = against,
    );
    Some(Case::new(Confidence::Possible, 0.2, says, evidence))
}
