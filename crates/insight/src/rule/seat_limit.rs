//! Q1: requests wait although the KV cache has room, because all seats are
//! taken.

use measure::finding::{Class, Confidence, From};
use measure::metric::Text;
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, number};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "seat_limit",
    code: "Q1",
    class: Class::Queueing,
    title: Text { en: "all seats are taken", zh: "席位已满" },
    symptom: Text {
        en: "TTFT grows with the number of users above the seat limit; TPOT does not",
        zh: "并发超过席位上限后 TTFT 随并发增长，而 TPOT 不变",
    },
    required: Text {
        en: "running requests at the seat limit, requests waiting, KV cache below 90 %, no preemptions",
        zh: "运行数等于席位上限，有请求等待，KV 占用低于 90 %，无抢占",
    },
    check: Text {
        en: "the concurrency at which TTFT jumps stays where it is when prompts are four times as long",
        zh: "把输入长度增至四倍后，TTFT 跳升处的并发数不变",
    },
    command: "goodput probe {target} --only ladder",
    advice: &[Advice {
        text: Text {
            en: "allow more requests at once; TPOT grows with the batch",
            zh: "提高可同时运行的请求数；批量增大时 TPOT 会上升",
        },
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
/// KV usage from which on the cache may be what requests wait for.
const KV_FULL: f64 = 0.9;
/// Share of the seats that counts as all of them.
const ALL_SEATS: f64 = 0.95;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let (queue_ms, ttft_ms) = (view.server_ms(Signal::QueueTime)?, view.figure("ttft_ms", "mean")?);
    let share = (queue_ms / ttft_ms).min(1.0);
    let (running, kv) = (signals.gauge(Signal::Running)?, signals.gauge(Signal::KvUsage)?);
    let waiting = signals.gauge(Signal::QueueDepth)?;
    if share < MATTERS || kv.max > KV_FULL || waiting.mean < 0.5 {
        return None;
    }
    let seats = view.seats();
    if seats.is_some_and(|seats| running.max < ALL_SEATS * seats) {
        return None;
    }
    let preemptions = view.preemptions_per_request().unwrap_or(0.0);
    if preemptions > 0.01 {
        return None;
    }
    let mut evidence = vec![
        number(said!("queue time", "排队时间"), queue_ms, "ms", From::Server),
        number(said!("share of TTFT", "占 TTFT 比例"), share, "", From::Server),
        number(said!("requests running, most", "最大运行数"), running.max, "", From::Server),
        number(said!("requests waiting, mean", "平均等待数"), waiting.mean, "", From::Server),
        number(said!("KV cache, most", "KV 占用峰值"), kv.max, "", From::Server),
    ];
    evidence.extend(seats.map(|seats| number(said!("seats", "席位"), seats, "", From::Server)));
    let missing = match seats {
        Some(_) => Vec::new(),
        None => vec![said!(
            "the seat limit itself, which the engine does not tell: give --max-num-seqs",
            "席位上限本身（引擎未给出）：请用 --max-num-seqs 指定"
        )],
    };
    Some(Case {
        confidence: if seats.is_some() { Confidence::Confirmed } else { Confidence::Likely },
        share,
        says: said!(
            "{share:.0} % of TTFT is waiting while {running:.0} requests run and the KV cache is \
             {kv:.0} % full at most",
            "TTFT 的 {share:.0} % 是等待；此时运行 {running:.0} 个请求，KV 占用最高 {kv:.0} %",
            share = 100.0 * share,
            running = running.max,
            kv = 100.0 * kv.max,
        ),
        evidence,
        against: Vec::new(),
        missing,
    })
}
