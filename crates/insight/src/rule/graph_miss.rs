//! D4: batches of a size for which no graph was recorded are launched kernel by
//! kernel.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "graph_miss",
    code: "D4",
    class: Class::Misconfiguration,
    title: text("decode steps run without a recorded graph", "解码步未命中 CUDA graph"),
    symptom: text("TPOT jumps at a certain number of users", "并发到某个数值时 TPOT 突然跳升"),
    required: text(
        "a tenth or more of the steps without a graph. SGLang counts them; vLLM writes them to its log only (--cudagraph-metrics)",
        "十分之一以上的步未使用 graph。SGLang 有计数；vLLM 只写入日志（--cudagraph-metrics）",
    ),
    check: text(
        "TPOT just below and just above the largest recorded size",
        "比较最大捕获尺寸上下两侧的 TPOT",
    ),
    command: "for c in 1 4 16 64; do goodput bench {target} -c $c -n $((10*c)); done",
    advice: &[
        Advice {
            text: text(
                "record graphs up to the batch that runs; each takes some memory",
                "把捕获上限提高到实际批大小；每个 graph 占一些显存",
            ),
            flags: &[
                ("vllm", "--max-cudagraph-capture-size"),
                ("sglang", "--cuda-graph-max-bs-decode"),
            ],
        },
        Advice {
            text: text(
                "record sizes that are nearer to each other, so that less is padded",
                "加密捕获尺寸，减少填充",
            ),
            flags: &[("vllm", "--cudagraph-capture-sizes")],
        },
    ],
    improves: &["tpot_ms"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let eager = signals.increase(Signal::EagerSteps)?;
    let steps = signals.increase(Signal::Steps).filter(|steps| *steps >= 50.0)?;
    let part = eager / steps;
    if part < 0.1 {
        return None;
    }
    let mut evidence =
        vec![server(said!("share of steps without a graph", "未使用 graph 的步数比例"), part, "")];
    evidence.extend(told(view, Signal::Steps));
    evidence
        .extend(view.running_batch().map(|batch| {
            client(said!("answers written at a time", "同时解码的请求数"), batch, "")
        }));
    evidence.extend(
        view.mean(|seen| seen.tpot_ms).map(|ms| client(said!("TPOT, mean", "平均 TPOT"), ms, "ms")),
    );
    let slow = view.mixture.map_or(0.0, |mixture| mixture.slow.share);
    let confidence = match (part >= 0.5, slow >= 0.1) {
        (true, _) => Confidence::Confirmed,
        (false, true) => Confidence::Likely,
        (false, false) => Confidence::Possible,
    };
    let says = said!(
        "{share:.0} % of {steps:.0} steps ran without a recorded graph",
        "{steps:.0} 步中有 {share:.0} % 未使用 CUDA graph",
        share = 100.0 * part,
        steps = steps,
    );
    let missing = said!(
        "what a step with a graph takes at this batch: the same load with more sizes recorded",
        "该批大小下使用 graph 的步长：增加捕获尺寸后重测"
    );
    let share = signs::explains(view, 0.0, 0.4 * part, 0.5 * part);
    Some(Case::new(confidence, share, says, evidence).missing([missing]))
}
