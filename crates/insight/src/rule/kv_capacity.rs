//! K1: the KV cache holds fewer tokens than the load needs at a time.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::signs::{self, Limit};
use super::{Advice, Case, Rule, client, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "kv_capacity",
    code: "K1",
    class: Class::KvCapacity,
    title: text("the KV cache is too small for this load", "KV 缓存容量不足"),
    symptom: text(
        "requests wait or stall; the more tokens they hold, the fewer run",
        "请求等待或停顿；单个请求占用的 token 越多，可运行的越少",
    ),
    required: text(
        "KV usage near 100 % while requests wait or are preempted, and free seats",
        "有请求等待或被抢占时 KV 占用接近 100 %，且仍有空席位",
    ),
    check: text(
        "with half the prompt length the concurrency at which TTFT jumps doubles",
        "把输入长度减半，TTFT 跳升处的并发数翻倍",
    ),
    command: "goodput probe {target} --only lengths,ladder,contexts --max-concurrency 64",
    advice: &[
        Advice {
            text: text(
                "give the KV cache more of the memory; too much ends in out-of-memory errors",
                "为 KV 缓存分配更多显存；过多会导致显存不足",
            ),
            flags: &[
                ("vllm", "--gpu-memory-utilization"),
                ("sglang", "--mem-fraction-static"),
                ("llama_cpp", "--ctx-size"),
            ],
        },
        Advice {
            text: text(
                "keep keys and values in FP8: twice the tokens; check quality",
                "以 FP8 保存 KV：容量翻倍；需检查质量",
            ),
            flags: &[("vllm", "--kv-cache-dtype fp8"), ("sglang", "--kv-cache-dtype fp8_e5m2")],
        },
        Advice {
            text: text(
                "spread the model over more accelerators, which leaves each more memory",
                "增加张量并行，使每卡留出更多显存",
            ),
            flags: &[("vllm", "--tensor-parallel-size"), ("sglang", "--tp-size")],
        },
        Advice {
            text: text("limit the length of answers", "限制回答长度"),
            flags: &[("vllm", "--max-model-len"), ("sglang", "--context-length")],
        },
    ],
    improves: &["ttft_ms", "preemptions_per_request", "goodput_req_s"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let usage = view.signals()?.gauge(Signal::KvUsage)?;
    let preemptions = view.preemptions_per_request().unwrap_or(0.0);
    let waits = signs::limit(view) == Some(Limit::Kv);
    if usage.max < 0.9 || !(waits || preemptions > 0.02) {
        return None;
    }
    let queue = signs::queue(view);
    let of_ttft = queue.filter(|_| waits).map_or(0.0, |queue| queue.of_ttft);
    let stalls = view.mixture.map_or(0.0, |mixture| mixture.stalled.excess);
    let stalled = if preemptions > 0.02 { stalls } else { 0.0 };
    if of_ttft < 0.2 && stalled < 0.02 && preemptions < 0.1 {
        return None;
    }
    let capacity = view.signal(Signal::KvCapacity);
    let demand = view.kv_demand_tokens();
    let seats_free = view.seats().zip(view.most(Signal::Running));
    let seats_full = seats_free.is_some_and(|(seats, most)| most >= signs::ALL_SEATS * seats);
    let futile = signs::batch_gain(view).filter(|gain| *gain < signs::BATCH_HELPS);
    let mut evidence = vec![
        server(said!("KV usage, most", "KV 占用峰值"), usage.max, ""),
        server(said!("preemptions a request", "每请求抢占次数"), preemptions, ""),
    ];
    evidence.extend(queue.map(|queue| server(said!("queue time", "排队时间"), queue.ms, "ms")));
    evidence.extend(
        view.signals()?
            .gauge(Signal::QueueDepth)
            .map(|depth| server(said!("waiting, mean", "平均等待数"), depth.mean, "")),
    );
    evidence.extend(capacity.map(|tokens| {
        server(said!("tokens that the KV cache holds", "KV 容量（token）"), tokens, "tokens")
    }));
    evidence.extend(demand.map(|tokens| {
        client(
            said!(
                "tokens held at a time, X·(E2E − Q)·(S + O/2)",
                "同时占用的 token：X·(E2E − Q)·(S + O/2)"
            ),
            tokens,
            "tokens",
        )
    }));
    let confidence = match (seats_full, futile) {
        (_, Some(_)) if signs::grows(view) => Confidence::Possible,
        (false, None) => Confidence::Confirmed,
        (true, Some(_)) => Confidence::Possible,
        _ => Confidence::Likely,
    };
    let against = [
        seats_free
            .filter(|_| seats_full)
            .map(|(seats, _)| server(said!("seats, all taken too", "席位（也已占满）"), seats, "")),
        futile.map(|gain| {
            client(said!("throughput with twice the batch", "批翻倍后的吞吐倍数"), gain, "")
        }),
    ];
    let says = said!(
        "the KV cache is {usage:.0} % full at most, with {preemptions:.2} preemptions a request, and \
         {queued:.0} % of TTFT is waiting",
        "KV 占用最高 {usage:.0} %，每请求抢占 {preemptions:.2} 次，TTFT 的 {queued:.0} % 是等待",
        usage = 100.0 * usage.max,
        preemptions = preemptions,
        queued = 100.0 * of_ttft,
    );
    let of_tpot = stalled;
    let of_gaps = if stalled > 0.02 { 0.8 } else { 0.0 };
    let share = signs::explains(view, of_ttft, of_tpot, of_gaps);
    Some(Case::new(confidence, share, says, evidence).against(against.into_iter().flatten()))
}
