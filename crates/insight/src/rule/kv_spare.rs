//! K3: most of the KV cache is never used.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "kv_spare",
    code: "K3",
    class: Class::Underload,
    title: text("most of the KV cache is never used", "KV 缓存大部分闲置"),
    symptom: text("objectives are met with room to spare", "目标轻松达成"),
    required: text(
        "KV usage below a tenth at all times, no queue",
        "KV 占用始终低于十分之一，无排队",
    ),
    check: text("with half the blocks nothing changes", "块数减半后没有变化"),
    command: "goodput bench {target}",
    advice: &[Advice {
        text: text(
            "smaller or fewer accelerators, longer contexts, a larger batch, or another model beside it",
            "更小或更少的加速器、更长上下文、更大的批，或与其他模型共置",
        ),
        flags: &[("vllm", "--gpu-memory-utilization"), ("sglang", "--mem-fraction-static")],
    }],
    improves: &["cost_per_million_tokens", "kv_cache_usage"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let usage = view.signals()?.gauge(Signal::KvUsage).filter(|usage| usage.max < 0.1)?;
    let waits = view.most(Signal::QueueDepth).unwrap_or(0.0);
    if waits > 1.0 || view.wrong.is_anything() || view.in_flight()? > 4.0 {
        return None;
    }
    let mut evidence = vec![server(said!("KV usage, most", "KV 占用峰值"), usage.max, "")];
    evidence.extend(
        view.signal(Signal::KvCapacity)
            .map(|tokens| server(said!("KV capacity", "KV 容量"), tokens, "tokens")),
    );
    let says = said!(
        "at most {usage:.1} % of the KV cache was in use, and no latency is near its limit",
        "KV 占用最高 {usage:.1} %，且所有延迟都远低于目标",
        usage = 100.0 * usage.max,
    );
    Some(Case::new(Confidence::Possible, 0.3, says, evidence))
}
