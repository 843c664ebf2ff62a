//! V8: the first requests wait for an engine that is not ready.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, text};
use crate::view::{View, at_share};

pub(super) static RULE: Rule = Rule {
    id: "cold_start",
    code: "V8",
    class: Class::Workload,
    title: text("the engine was not warm when the run began", "压测开始时引擎尚未就绪"),
    symptom: text(
        "the first requests take many times the median, the rest is flat",
        "最初的请求耗时数倍于中位数，其后平稳",
    ),
    required: text(
        "no token leaves the engine although requests run or wait",
        "请求在运行或等待，而引擎没有输出任何 token",
    ),
    check: text(
        "after a warm-up of each shape the first requests are like the rest",
        "各形状预热之后，最初的请求与其余一致",
    ),
    command: "goodput bench {target} --num-warmups 8",
    advice: &[Advice {
        text: text("warm up before measuring", "压测前先预热"),
        flags: &[("vllm", "--optimization-level")],
    }],
    improves: &["ttft_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let began = view.seen.first()?.sent_s;
    let firsts = view.courses.iter().filter_map(|course| course.first_token_s);
    let ready = firsts.fold(f64::INFINITY, f64::min);
    let waited_ms = (ready - began) * 1e3;
    // Those who came after what had piled up was gone.
    let settled = ready + 2.0 * waited_ms / 1e3;
    let later: Vec<f64> = view
        .seen
        .iter()
        .filter(|seen| seen.sent_s > settled)
        .filter_map(|seen| seen.ttft_ms)
        .collect();
    if later.len() < 10 || waited_ms < 300.0 {
        return None;
    }
    let usual = at_share(later, 0.5)?;
    // Many that come together are computed together, which takes its time.
    let together =
        view.seen.iter().filter(|seen| seen.sent_s < began + 0.1 * waited_ms / 1e3).count() as f64;
    if waited_ms < 4.0 * usual * together.clamp(1.0, 32.0) {
        return None;
    }
    let early: Vec<f64> = view
        .seen
        .iter()
        .filter(|seen| seen.sent_s < ready)
        .filter_map(|seen| seen.ttft_ms)
        .collect();
    let count = early.len();
    let excess: f64 = early.iter().map(|ms| (ms - usual).max(0.0)).sum();
    let all: f64 =
        view.seen.iter().filter_map(|seen| seen.ttft_ms).map(|ms| (ms - usual).max(0.0)).sum();
    let share = if all > 0.0 { excess / all } else { 0.0 };
    let mut evidence = vec![
        client(
            said!("first send to first token of any request", "首次发送到任一请求首 token"),
            waited_ms,
            "ms",
        ),
        client(said!("median TTFT later", "其后的 TTFT 中位数"), usual, "ms"),
        client(said!("requests that waited for it", "受影响的请求"), count as f64, "requests"),
    ];
    let waits = view.most(Signal::QueueDepth).filter(|most| *most >= 1.0);
    let runs = view.most(Signal::Running).filter(|most| *most >= 1.0);
    evidence.extend(waits.map(|most| server(said!("waiting, most", "最大等待数"), most, "")));
    let confidence = match (waits.or(runs), waited_ms > 1_000.0) {
        (Some(_), true) => Confidence::Confirmed,
        (Some(_), false) => Confidence::Likely,
        (None, _) => Confidence::Possible,
    };
    let says = said!(
        "no token came for {waited:.1} s after the first send; later the median TTFT is {usual:.0} ms",
        "首次发送后 {waited:.1} s 内没有任何 token；其后 TTFT 中位数为 {usual:.0} ms",
        waited = waited_ms / 1e3,
        usual = usual,
    );
    Some(Case::new(confidence, share.max(0.3), says, evidence))
}
