//! K6: memory is full because the engine took it at its start, not because it is
//! used.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "reserved_memory",
    code: "K6",
    class: Class::Underload,
    title: text("memory is reserved and not used", "显存是被预留，而不是被用满"),
    symptom: text("memory looks full while nobody waits", "显存看似已满，却没有请求等待"),
    required: text(
        "memory constant from the beginning, KV usage below 30 % at all times",
        "显存占用自始不变，KV 占用始终低于 30 %",
    ),
    check: text(
        "compare KV usage, not memory, between an idle and a busy server",
        "比较空闲与繁忙时的 KV 占用，而不是显存",
    ),
    command: "for c in 1 4 16 64; do goodput bench {target} -c $c -n $((10*c)); done",
    advice: &[Advice {
        text: text(
            "judge by KV usage, preemptions, prefix hits and P99 together; nothing needs to be mended",
            "结合 KV 占用、抢占、前缀命中与 P99 判断；无需调整",
        ),
        flags: &[],
    }],
    improves: &["cost_per_million_tokens"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let used = signals.gauge(Signal::MemoryUsed)?;
    let all = view.signal(Signal::MemoryTotal).filter(|bytes| *bytes > 0.0)?;
    let kv = signals.gauge(Signal::KvUsage).filter(|usage| usage.max < 0.3)?;
    let waits = view.most(Signal::QueueDepth).unwrap_or(0.0);
    let (full, moved) = (used.min / all, (used.max - used.min) / all);
    if full < 0.85 || moved > 0.02 || waits > 1.0 || view.wrong.is_anything() {
        return None;
    }
    let evidence = vec![
        server(said!("memory taken, least", "显存占用最小值"), full, ""),
        server(said!("its change over the run", "测试期间的变化"), moved, ""),
        server(said!("KV usage, most", "KV 占用峰值"), kv.max, ""),
    ];
    let says = said!(
        "{full:.0} % of the memory was taken from the beginning to the end, and at most {kv:.0} % of \
         the KV cache in it was in use",
        "显存自始至终占用 {full:.0} %，而其中 KV 缓存最多只用了 {kv:.0} %",
        full = 100.0 * full,
        kv = 100.0 * kv.max,
    );
    Some(Case::new(Confidence::Possible, 0.1, says, evidence))
}
