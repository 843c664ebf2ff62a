//! Q1: requests wait although the KV cache has room, because all seats are
//! taken.

use measure::finding::{Class, Confidence, From};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::signs::{self, Limit};
use super::{Advice, Case, Rule, client, number, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "seat_limit",
    code: "Q1",
    class: Class::Queueing,
    title: text("all seats are taken", "席位已满"),
    symptom: text(
        "TTFT grows with the number of users above the seat limit; TPOT does not",
        "并发超过席位上限后 TTFT 随并发增长，而 TPOT 不变",
    ),
    required: text(
        "running requests at the seat limit while others wait, room in the KV cache, no preemptions",
        "有请求等待时运行数等于席位上限，KV 有空余，无抢占",
    ),
    check: text(
        "the concurrency at which TTFT jumps stays where it is when prompts are four times as long",
        "把输入长度增至四倍后，TTFT 跳升处的并发数不变",
    ),
    command: "goodput probe {target} --only lengths,ladder,contexts --max-concurrency 64",
    advice: &[Advice {
        text: text(
            "allow more requests at once; TPOT grows with the batch",
            "提高可同时运行的请求数；批量增大时 TPOT 会上升",
        ),
        flags: &[
            ("vllm", "--max-num-seqs"),
            ("sglang", "--max-running-requests"),
            ("llama_cpp", "--parallel"),
        ],
    }],
    improves: &["ttft_ms", "goodput_req_s"],
    seen_live: true,
    judge,
};

/// Share of TTFT from which on waiting is what is wrong.
const MATTERS: f64 = 0.3;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    match signs::waiting(view) {
        Some(_) => by_server(view, signs::queue(view).filter(|queue| queue.of_ttft >= MATTERS)?),
        None => by_client(view),
    }
}

fn by_server(view: &View<'_>, queue: signs::Queue) -> Option<Case> {
    let waiting = signs::waiting(view)?;
    if signs::limit(view) != Some(Limit::Seats) || view.preemptions_per_request() > Some(0.02) {
        return None;
    }
    let seats = view.seats();
    // More seats do not help an engine that computes all the time.
    let futile = signs::batch_gain(view).filter(|gain| *gain < signs::BATCH_HELPS);
    let missing = seats.is_none().then(|| {
        said!(
            "the seat limit itself, which the engine does not tell: give --max-num-seqs",
            "席位上限本身（引擎未给出）：请用 --max-num-seqs 指定"
        )
    });
    let confidence = match (seats, futile, queue.is_told) {
        (_, Some(_), _) if signs::grows(view) => Confidence::Possible,
        (Some(_), None, true) => Confidence::Confirmed,
        (None, Some(_), _) => Confidence::Possible,
        _ => Confidence::Likely,
    };
    let mut evidence = vec![
        server(said!("queue time", "排队时间"), queue.ms, "ms"),
        server(said!("its share of TTFT", "占 TTFT 比例"), queue.of_ttft, ""),
        server(said!("running while others wait", "有请求等待时的运行数"), waiting.running, ""),
        server(said!("waiting, mean", "平均等待数"), waiting.depth, ""),
        server(said!("KV usage while others wait", "有请求等待时的 KV 占用"), waiting.kv, ""),
    ];
    evidence.extend(view.preemptions_per_request().map(|preemptions| {
        server(said!("preemptions a request", "每请求抢占次数"), preemptions, "")
    }));
    evidence.extend(seats.map(|seats| {
        let told = view.signal(Signal::SeatLimit).is_some();
        let from = if told { From::Server } else { From::Given };
        number(said!("seats", "席位"), seats, "", from)
    }));
    evidence.extend(signs::long_prompts(view));
    let says = said!(
        "{share:.0} % of TTFT is waiting: {running:.0} requests run, {depth:.1} wait, and {free:.0} % \
         of the KV cache is free",
        "TTFT 的 {share:.0} % 是等待：运行 {running:.0} 个，等待 {depth:.1} 个，KV 还空 {free:.0} %",
        share = 100.0 * queue.of_ttft,
        running = waiting.running,
        depth = waiting.depth,
        free = 100.0 * (1.0 - waiting.kv),
    );
    let share = signs::explains(view, queue.of_ttft, 0.0, 0.0);
    let against = futile.map(|gain| {
        client(said!("throughput with twice the batch", "批翻倍后的吞吐倍数"), gain, "")
    });
    Some(Case::new(confidence, share, says, evidence).against(against).missing(missing))
}

/// Prompts that are computed at a time, at most, for all that is known.
const PREFILLING: f64 = 4.0;

/// Seats or blocks, as one: from outside both hold the number of answers that
/// come at a time.
fn by_client(view: &View<'_>) -> Option<Case> {
    let streams = view.flow.streams?;
    // Where half as many wait as are answered, what each holds may differ.
    let crowded = streams.waiting >= 0.5 * streams.answered;
    let even = streams.evenness.filter(|even| *even >= if crowded { 0.6 } else { 0.85 })?;
    let ttft_ms = view.ttft_ms()?;
    let queue_ms = view.queue_ms().unwrap_or((ttft_ms - view.least_ttft_ms()?).max(0.0));
    // Where ever more wait, the quickest of them waited long too; but of those who
    // wait only so many have their prompts computed.
    let of_those = 1.0 - PREFILLING / streams.waiting.max(PREFILLING);
    let of_ttft = (queue_ms / ttft_ms).max(of_those);
    let futile = signs::batch_gain(view).is_some_and(|gain| gain < signs::BATCH_HELPS);
    let waits = streams.queued >= 0.4 && streams.waiting >= 0.12 * streams.answered;
    if !waits || of_ttft < 0.5 || futile {
        return None;
    }
    let evidence = vec![
        client(said!("TTFT above that of the quickest", "高出最快请求的 TTFT"), queue_ms, "ms"),
        client(
            said!("answers that come at a time, most", "同时返回的回答数峰值"),
            streams.most_answered,
            "",
        ),
        client(
            said!("low over high of them while others wait", "有请求等待时其低值与高值之比"),
            even,
            "",
        ),
        client(
            said!("waiting for a first token, mean", "平均等待首 token 的请求数"),
            streams.waiting,
            "",
        ),
    ];
    let says = said!(
        "about {answered:.0} answers come at a time however many wait ({waiting:.1} on average): \
         seats or KV blocks hold them",
        "无论有多少请求等待（平均 {waiting:.1} 个），同时返回的回答约为 {answered:.0} 个：受席位或 KV 块限制",
        answered = streams.most_answered,
        waiting = streams.waiting,
    );
    let missing = said!(
        "the server's metrics: seats and KV blocks look alike from outside",
        "服务端指标：仅从外部无法区分席位与 KV 块"
    );
    let share = signs::explains(view, of_ttft, 0.0, 0.0);
    Some(Case::new(Confidence::Possible, share, says, evidence).missing([missing]))
}
