//! D5: so many answers are written at a time that arithmetic is the limit.

use measure::finding::{Class, Confidence};
use measure::hardware::roofline::Limit;
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "decode_compute_bound",
    code: "D5",
    class: Class::Compute,
    title: text("decoding has reached the peak of arithmetic", "解码已受算力限制"),
    symptom: text(
        "TPOT grows in proportion to the batch while tokens a second stay",
        "TPOT 随批大小成正比上升，吞吐不再增加",
    ),
    required: text(
        "matrix units above 60 %, memory below 60 %, few prompts in the steps",
        "张量单元活跃高于 60 %，显存活跃低于 60 %，步中预填充很少",
    ),
    check: text(
        "computing in FP8 moves the plateau; with half the batch TPOT halves",
        "改用 FP8 计算后平台上移；批减半则 TPOT 减半",
    ),
    command: "for c in 1 4 16 64; do goodput bench {target} -c $c -n $((10*c)); done",
    advice: &[
        Advice {
            text: text("compute in FP8 or FP4; check quality", "以 FP8/FP4 计算；需检查质量"),
            flags: &[("vllm", "--quantization"), ("sglang", "--quantization")],
        },
        Advice {
            text: text(
                "more replicas, or fewer seats each so that the objective holds",
                "增加副本，或减少每副本席位以满足目标",
            ),
            flags: &[("vllm", "--max-num-seqs"), ("sglang", "--max-running-requests")],
        },
    ],
    improves: &["tpot_ms", "attainment"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let tensor = view.signal(Signal::TensorActive).filter(|share| *share >= 0.6)?;
    let memory = view.signal(Signal::DramActive).filter(|share| *share < 0.6)?;
    let prompts = signs::prompt_time(view).unwrap_or(0.0);
    let batch = view.running_batch()?;
    if prompts > 0.35 || batch < 8.0 {
        return None;
    }
    let mut evidence: Vec<_> = [Signal::TensorActive, Signal::DramActive]
        .into_iter()
        .filter_map(|s| told(view, s))
        .collect();
    evidence.push(client(said!("answers written at a time", "同时解码的请求数"), batch, ""));
    evidence.push(server(
        said!("share of the time for prompts", "预填充占用的时间比例"),
        prompts,
        "",
    ));
    let limit = view.bounds.map(|bounds| bounds.step_limit);
    let step = view.bounds.map(|bounds| {
        bound(said!("least time of such a step", "该步的理论下界"), bounds.step_ms, "ms")
    });
    let (confidence, against) = match limit {
        Some(Limit::Compute) => {
            evidence.extend(step);
            (Confidence::Confirmed, None)
        }
        // By the shape of the model such a step reads longer than it multiplies.
        Some(Limit::Memory) => (Confidence::Possible, step),
        None => (Confidence::Likely, None),
    };
    let says = said!(
        "matrix units are active {tensor:.0} % of their peak and memory {memory:.0} %, with \
         {batch:.0} answers at a time",
        "张量单元活跃 {tensor:.0} %，显存活跃 {memory:.0} %，同时解码 {batch:.0} 个请求",
        tensor = 100.0 * tensor,
        memory = 100.0 * memory,
        batch = batch,
    );
    let share = signs::explains(view, 0.1, 0.8 * tensor, 0.2);
    Some(Case::new(confidence, share, says, evidence).against(against))
}
