//! Q2: requests wait for room in the KV cache while seats are free.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::signs::{self, Limit};
use super::{Advice, Case, Rule, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "kv_admission",
    code: "Q2",
    class: Class::KvCapacity,
    title: text("requests wait for room in the KV cache", "请求在等待 KV 空间"),
    symptom: text(
        "TTFT jumps at a concurrency that falls as prompts grow",
        "TTFT 在某一并发处跳升，且该并发随输入变长而降低",
    ),
    required: text(
        "requests wait, seats are free, KV usage above 95 %",
        "有请求等待，席位未满，KV 占用高于 95 %",
    ),
    check: text(
        "with half the prompt length the concurrency at which TTFT jumps doubles",
        "把输入长度减半，TTFT 跳升处的并发数翻倍",
    ),
    command: "for c in 1 4 16 64; do goodput bench {target} -c $c -n $((10*c)); done",
    advice: &[Advice {
        text: text(
            "make room: more KV memory, smaller keys and values, shorter prompts",
            "腾出空间：更多 KV 显存、更小的 KV、更短的输入",
        ),
        flags: &[("vllm", "--gpu-memory-utilization"), ("sglang", "--mem-fraction-static")],
    }],
    improves: &["ttft_ms", "goodput_req_s"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let queue = signs::queue(view).filter(|queue| queue.of_ttft >= 0.3)?;
    let waiting = signs::waiting(view)?;
    if signs::limit(view) != Some(Limit::Kv) {
        return None;
    }
    let seats = view.seats();
    if seats.is_some_and(|seats| waiting.running >= signs::ALL_SEATS * seats) {
        return None;
    }
    let mut evidence = vec![
        server(said!("queue time", "排队时间"), queue.ms, "ms"),
        server(said!("running while others wait", "有请求等待时的运行数"), waiting.running, ""),
        server(said!("waiting, mean", "平均等待数"), waiting.depth, ""),
        server(said!("KV usage while others wait", "有请求等待时的 KV 占用"), waiting.kv, ""),
    ];
    evidence.extend(
        view.signal(Signal::KvCapacity)
            .map(|tokens| server(said!("KV capacity", "KV 容量"), tokens, "tokens")),
    );
    evidence.extend(signs::long_prompts(view));
    let futile = signs::batch_gain(view).is_some_and(|gain| gain < signs::BATCH_HELPS);
    let confidence = match (seats, queue.is_told) {
        _ if futile && signs::grows(view) => Confidence::Possible,
        (Some(_), true) => Confidence::Confirmed,
        _ => Confidence::Likely,
    };
    let says = said!(
        "{running:.0} requests run and {depth:.1} wait while the KV cache is {kv:.0} % full",
        "运行 {running:.0} 个、等待 {depth:.1} 个请求，此时 KV 占用 {kv:.0} %",
        running = waiting.running,
        depth = waiting.depth,
        kv = 100.0 * waiting.kv,
    );
    let missing = seats.is_none().then(|| {
        said!("the seat limit: give --max-num-seqs", "席位上限：请用 --max-num-seqs 指定")
    });
    let share = signs::explains(view, queue.of_ttft, 0.0, 0.0);
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}
