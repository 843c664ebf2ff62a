//! Q6: requests wait for an adapter, a grammar or a remote cache, and not for
//! room.

use std::collections::BTreeSet;

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::signs::{self, Limit};
use super::{Advice, Case, Rule, client, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "deferred",
    code: "Q6",
    class: Class::Queueing,
    title: text(
        "requests wait for an adapter, a grammar or a remote cache",
        "请求在等待适配器、语法或远端缓存",
    ),
    symptom: text(
        "requests of some kind wait although seats and memory are free",
        "席位与显存空闲，某类请求却在等待",
    ),
    required: text(
        "deferred requests; or free seats, a free KV cache and several adapters",
        "存在 deferred 等待；或席位与 KV 空闲且使用多个适配器",
    ),
    check: text("the same prompts without adapter do not wait", "同样的输入不带适配器时不再等待"),
    command: "goodput bench {target}",
    advice: &[
        Advice {
            text: text("give more adapters a place at once", "允许同时驻留更多适配器"),
            flags: &[("vllm", "--max-loras"), ("sglang", "--max-loras-per-batch")],
        },
        Advice {
            text: text("keep adapters in host memory", "在主机内存缓存适配器"),
            flags: &[("vllm", "--max-cpu-loras")],
        },
    ],
    improves: &["ttft_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let deferred = view.signal(Signal::QueueDeferred).unwrap_or(0.0)
        + view.signal(Signal::GrammarQueue).unwrap_or(0.0);
    let adapters: BTreeSet<&str> =
        view.records.iter().filter_map(|record| record.planned.label("adapter")).collect();
    let queue = signs::queue(view).filter(|queue| queue.is_told)?;
    let waiting = signs::waiting(view)?;
    let is_free = signs::limit(view) != Some(Limit::Kv)
        && view.seats().is_none_or(|seats| waiting.running < 0.7 * seats)
        && waiting.kv < 0.85;
    let waits = adapters.len() >= 2 && is_free && queue.of_ttft >= 0.2;
    if deferred < 0.2 && !waits {
        return None;
    }
    let mut evidence = vec![
        server(said!("queue time", "排队时间"), queue.ms, "ms"),
        server(said!("running while others wait", "有请求等待时的运行数"), waiting.running, ""),
        server(said!("KV usage while others wait", "有请求等待时的 KV 占用"), waiting.kv, ""),
        client(said!("adapters asked for", "请求的适配器数"), adapters.len() as f64, ""),
    ];
    if deferred > 0.0 {
        evidence.push(server(said!("deferred, mean", "平均 deferred 数"), deferred, ""));
    }
    let confidence = if deferred >= 0.2 { Confidence::Confirmed } else { Confidence::Likely };
    let says = said!(
        "{share:.0} % of TTFT is waiting while {running:.0} run and the KV cache is {kv:.0} % full: \
         {adapters} adapters take turns",
        "TTFT 的 {share:.0} % 是等待，而仅运行 {running:.0} 个请求、KV 占用 {kv:.0} %：{adapters} 个适配器轮流驻留",
        share = 100.0 * queue.of_ttft,
        running = waiting.running,
        kv = 100.0 * waiting.kv,
        adapters = adapters.len(),
    );
    let missing = (deferred < 0.2).then(|| {
        said!(
            "a count of deferred requests, or a run without adapters",
            "deferred 等待数，或不带适配器的对照压测"
        )
    });
    let share = signs::explains(view, queue.of_ttft, 0.3, 0.5);
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}
