//! C3: tokens travel to their experts and back, and the links are the limit.

use measure::finding::{Class, Confidence};
use measure::hardware::FeedForward;
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "expert_exchange",
    code: "C3",
    class: Class::Communication,
    title: text("the exchange between experts takes the time", "专家并行的 all-to-all 占主导"),
    symptom: text(
        "TPOT grows with the number of ranks and not with the batch",
        "TPOT 随秩数上升，而不随批大小",
    ),
    required: text(
        "links above 30 % of their peak while matrix units and memory are below half",
        "互联带宽超过峰值 30 %，而张量单元与显存活跃都低于一半",
    ),
    check: text(
        "another backend for the exchange changes the step",
        "更换 all-to-all 后端后步长改变",
    ),
    command: "goodput bench {target} -c 1 -n 20 --isl 64 --osl 256",
    advice: &[
        Advice {
            text: text(
                "a backend for low latency where answers are written, one for throughput where prompts are computed",
                "解码用低时延后端，预填充用高吞吐后端",
            ),
            flags: &[("vllm", "--all2all-backend"), ("sglang", "--moe-a2a-backend")],
        },
        Advice {
            text: text("overlap two halves of a batch", "双批重叠"),
            flags: &[("vllm", "--enable-dbo"), ("sglang", "--enable-two-batch-overlap")],
        },
        Advice {
            text: text("keep experts inside one NVLink domain", "把专家限制在同一 NVLink 域内"),
            flags: &[],
        },
    ],
    improves: &["tpot_ms", "step_over_bound"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let model = view.deployment.model.as_ref()?;
    let FeedForward::Mixture { experts, .. } = model.feed_forward else { return None };
    let link = signs::link_share(view).filter(|share| *share >= 0.3)?;
    let idle = [Signal::TensorActive, Signal::DramActive];
    if !idle.iter().all(|signal| view.signal(*signal).is_some_and(|share| share < 0.5)) {
        return None;
    }
    let times = view.bounds.zip(view.mixture).map(|(b, m)| m.base_ms / b.step_ms);
    if times.is_some_and(|times| times < 1.5) {
        return None;
    }
    let mut evidence =
        vec![server(said!("share of the links' peak", "互联带宽占峰值比例"), link, "")];
    evidence.extend(idle.into_iter().filter_map(|signal| told(view, signal)));
    evidence.extend(told(view, Signal::LinkBytes));
    evidence.extend(
        times.map(|times| client(said!("step over its bound", "步长与下界之比"), times, "")),
    );
    // Sums of tensor parallelism go over the same links.
    let alone = view.deployment.tensor_parallel.unwrap_or(1) == 1;
    let confidence =
        if alone && times.is_some() { Confidence::Likely } else { Confidence::Possible };
    let missing = said!(
        "the same load with another backend for the exchange: links carry other traffic too",
        "更换 all-to-all 后端后的对照：互联上还有其他流量"
    );
    let says = said!(
        "links carry {link:.0} % of their peak for a model of {experts} experts while matrix units and \
         memory are less than half active",
        "{experts} 个专家的模型，互联已达峰值的 {link:.0} %，而张量单元与显存活跃不到一半",
        link = 100.0 * link,
        experts = experts,
    );
    let lost = times.map_or(0.4, |times| 1.0 - 1.0 / times);
    let share = signs::explains(view, 0.4 * lost, lost, 0.2 * lost);
    Some(Case::new(confidence, share, says, evidence).missing([missing]))
}
