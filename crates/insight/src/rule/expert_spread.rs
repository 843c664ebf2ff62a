//! D8: each answer more makes a step read more experts.

use measure::finding::{Class, Confidence};
use measure::hardware::FeedForward;
use measure::hardware::Precision;
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "expert_spread",
    code: "D8",
    class: Class::Bandwidth,
    title: text("answers of a batch read different experts", "批内请求分散到不同专家"),
    symptom: text(
        "TPOT rises quickly from one user to some thirty, and hardly beyond",
        "TPOT 在 1 到约 32 并发间快速上升，之后趋平",
    ),
    required: text(
        "memory busy, and a batch that touches a growing part of the experts",
        "显存活跃高，且当前批触及的专家比例仍在上升",
    ),
    check: text(
        "TPOT over the number of users follows the experts touched, and flattens once all are",
        "TPOT 随并发的曲线与触及专家数一致，全部触及后趋平",
    ),
    command: "for c in 1 4 16 64; do goodput bench {target} -c $c -n $((10*c)); done",
    advice: &[
        Advice {
            text: text(
                "a larger batch, beyond the point at which all experts are read anyway",
                "增大批，越过所有专家都会被读取的点",
            ),
            flags: &[("vllm", "--max-num-seqs"), ("sglang", "--max-running-requests")],
        },
        Advice {
            text: text(
                "spread experts over accelerators, so that each reads its own",
                "启用专家并行，各卡只读自己的专家",
            ),
            flags: &[("vllm", "--enable-expert-parallel"), ("sglang", "--ep-size")],
        },
        Advice {
            text: text("experts in FP4 or FP8; check quality", "专家权重用 FP4/FP8；需检查质量"),
            flags: &[("vllm", "--quantization"), ("sglang", "--quantization")],
        },
    ],
    improves: &["tpot_ms", "mbu"],
    seen_live: false,
    judge,
};

/// A batch that touches every expert.
const ALL: f64 = 1e6;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let memory = view.signal(Signal::DramActive).filter(|share| *share >= 0.6)?;
    let model = view.deployment.model.as_ref()?;
    let FeedForward::Mixture { experts, .. } = model.feed_forward else { return None };
    let (bounds, mixture) = (view.bounds?, view.mixture?);
    let weights = view.deployment.weights.unwrap_or(Precision::Bf16);
    let read = |batch: f64| model.weight_bytes_read(weights, batch);
    let (times, of_all) = (read(bounds.batch) / read(1.0), read(bounds.batch) / read(ALL));
    if times < 2.0 || of_all > 0.9 || bounds.kv_share > 0.5 {
        return None;
    }
    let over = mixture.base_ms / bounds.step_ms;
    let mut evidence = vec![
        bound(
            said!("weights of a step over those of one answer", "该批读取权重与单请求之比"),
            times,
            "",
        ),
        bound(said!("of all weights", "占全部权重"), of_all, ""),
        bound(said!("batch of one engine", "单引擎批大小"), bounds.batch, ""),
        client(said!("undisturbed step over its bound", "正常步长与下界之比"), over, ""),
    ];
    evidence.extend(told(view, Signal::DramActive));
    let confidence = if over < 2.0 { Confidence::Likely } else { Confidence::Possible };
    let says = said!(
        "a batch of {batch:.0} reads {times:.1} times the weights that one answer needs, {part:.0} % of \
         all {experts} experts' layers, and memory is busy {memory:.0} %",
        "大小为 {batch:.0} 的批读取的权重是单请求的 {times:.1} 倍（{experts} 个专家，占全部权重的 {part:.0} %），显存活跃 {memory:.0} %",
        batch = bounds.batch,
        times = times,
        part = 100.0 * of_all,
        experts = experts,
        memory = 100.0 * memory,
    );
    let share = signs::explains(view, 0.1, 1.0 - 1.0 / times, 0.1);
    Some(Case::new(confidence, share, says, evidence))
}
