//! C2: stages of a pipeline wait for each other.

use measure::finding::{Class, Confidence, From};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, number, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "pipeline_bubbles",
    code: "C2",
    class: Class::Communication,
    title: text("stages of the pipeline idle", "流水线存在气泡"),
    symptom: text(
        "TPOT is the sum of the stages and few tokens a second come at few users",
        "TPOT 等于各级之和，并发小时吞吐低",
    ),
    required: text(
        "accelerators idle more than 40 % of the time while requests run, with two or more stages",
        "两级以上流水线，有请求运行时加速器空闲超过 40 %",
    ),
    check: text(
        "with four times the users four times as many tokens come",
        "并发增至四倍，吞吐也接近四倍",
    ),
    command: "for c in 1 4 16 64; do goodput bench {target} -c $c -n $((10*c)); done",
    advice: &[
        Advice {
            text: text(
                "more requests in flight: several for each stage",
                "提高在途请求数：每级数个",
            ),
            flags: &[("vllm", "--max-num-seqs"), ("sglang", "--max-running-requests")],
        },
        Advice {
            text: text(
                "fewer stages; inside a machine divide layers instead",
                "减少流水线级数；机内改用张量并行",
            ),
            flags: &[
                ("vllm", "--pipeline-parallel-size, --tensor-parallel-size"),
                ("sglang", "--pp-size, --tp-size"),
            ],
        },
    ],
    improves: &["per_gpu_output_tok_s", "goodput_req_s"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let stages = view.deployment.pipeline_parallel.filter(|stages| *stages >= 2)?;
    let busy = view.signal(Signal::GpuBusy).filter(|share| *share < 0.6)?;
    let engines = view.engines().max(1) as f64;
    let running = view.signal(Signal::Running)? / engines;
    if running < 1.0 {
        return None;
    }
    let each = running / f64::from(stages);
    let mut evidence: Vec<_> = told(view, Signal::GpuBusy).into_iter().collect();
    evidence.push(server(said!("running requests for each stage", "每级的运行请求数"), each, ""));
    let said = said!("stages of layers", "流水线级数");
    evidence.push(number(said, f64::from(stages), "", From::Given));
    // With enough in flight for every stage something else leaves them idle.
    let confidence = if each < 4.0 { Confidence::Likely } else { Confidence::Possible };
    let says = said!(
        "accelerators are busy {busy:.0} % of the time while {running:.0} requests run in {stages} \
         stages",
        "{stages} 级流水线，{running:.0} 个请求在运行，加速器只有 {busy:.0} % 的时间忙碌",
        busy = 100.0 * busy,
        running = running,
        stages = stages,
    );
    let missing = said!(
        "each accelerator by itself over time: in a pipeline they are busy in turns",
        "逐卡随时间的忙碌情况：流水线中各卡应轮流忙碌"
    );
    let share = signs::explains(view, 0.2, 1.0 - busy, 0.1);
    Some(Case::new(confidence, share, says, evidence).missing([missing]))
}
