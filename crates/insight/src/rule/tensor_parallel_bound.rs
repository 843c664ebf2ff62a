//! C1: accelerators that compute a layer together wait for their sums.

use measure::finding::{Class, Confidence};
use measure::hardware::FeedForward;
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, number, server, signs, text, told};
use crate::view::View;
use measure::finding::From;

pub(super) static RULE: Rule = Rule {
    id: "tensor_parallel_bound",
    code: "C1",
    class: Class::Communication,
    title: text("steps wait for sums between accelerators", "步长受卡间 all-reduce 限制"),
    symptom: text(
        "TPOT falls by less than a quarter when twice as many accelerators share a layer",
        "张量并行翻倍而 TPOT 下降不足四分之一",
    ),
    required: text(
        "multiprocessors active above 60 % while matrix units and memory are both below 40 %",
        "SM 活跃高于 60 %，而张量单元与显存活跃都低于 40 %",
    ),
    check: text(
        "TPOT of one user at one, two and four accelerators",
        "单用户下比较 TP=1、2、4 的 TPOT",
    ),
    command: "goodput bench {target} -c 1 -n 20 --isl 64 --osl 256",
    advice: &[
        Advice {
            text: text(
                "fewer accelerators for a layer and more replicas",
                "降低张量并行，增加副本（DP）",
            ),
            flags: &[
                ("vllm", "--tensor-parallel-size, --data-parallel-size"),
                ("sglang", "--tp-size, --dp-size"),
            ],
        },
        Advice {
            text: text("keep the engine's own all-reduce", "保留引擎自带的 all-reduce"),
            flags: &[
                ("vllm", "--disable-custom-all-reduce (remove it)"),
                ("sglang", "--disable-custom-all-reduce (remove it)"),
            ],
        },
        Advice {
            text: text(
                "keep a replica inside one NVLink domain; fuse all-reduces",
                "副本限制在同一 NVLink 域内；融合 all-reduce",
            ),
            flags: &[("sglang", "--enable-flashinfer-allreduce-fusion")],
        },
    ],
    improves: &["tpot_ms", "step_over_bound"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let parts = view.deployment.tensor_parallel.filter(|parts| *parts >= 2)?;
    let active = view.signal(Signal::SmActive).filter(|share| *share >= 0.6)?;
    let tensor = view.signal(Signal::TensorActive).filter(|share| *share < 0.4)?;
    let memory = view.signal(Signal::DramActive).filter(|share| *share < 0.4)?;
    let model = view.deployment.model.as_ref();
    let has_experts =
        model.is_some_and(|model| matches!(model.feed_forward, FeedForward::Mixture { .. }));
    let times = view.bounds.zip(view.mixture).map(|(b, m)| m.base_ms / b.step_ms);
    if times.is_some_and(|times| times < 1.5) {
        return None;
    }
    let mut evidence: Vec<_> = [Signal::SmActive, Signal::TensorActive, Signal::DramActive]
        .into_iter()
        .filter_map(|signal| told(view, signal))
        .collect();
    let said = said!("accelerators that share a layer", "张量并行数");
    evidence.push(number(said, f64::from(parts), "", From::Given));
    evidence.extend(
        times.map(|times| client(said!("step over its bound", "步长与下界之比"), times, "")),
    );
    let link = signs::link_share(view);
    evidence.extend(
        link.map(|share| {
            server(said!("share of the links' peak", "互联带宽占峰值比例"), share, "")
        }),
    );
    evidence.extend(model.map(|model| {
        let sums = 2.0 * f64::from(model.layers);
        bound(said!("sums between accelerators in a step", "每步 all-reduce 次数"), sums, "")
    }));
    let confidence = match (times, link) {
        (Some(_), Some(share)) if share >= 0.3 && !has_experts => Confidence::Confirmed,
        (Some(_), _) if !has_experts => Confidence::Likely,
        _ => Confidence::Possible,
    };
    let missing = said!(
        "TPOT of the same load with half as many accelerators for a layer",
        "同样负载下张量并行减半的 TPOT"
    );
    let says = said!(
        "multiprocessors are active {active:.0} % of the time, matrix units {tensor:.0} % and memory \
         {memory:.0} %: with {parts} accelerators for a layer the rest is waiting for each other",
        "SM 活跃 {active:.0} %，张量单元 {tensor:.0} %，显存 {memory:.0} %：{parts} 卡张量并行，其余时间在互相等待",
        active = 100.0 * active,
        tensor = 100.0 * tensor,
        memory = 100.0 * memory,
        parts = parts,
    );
    let lost = times.map_or(0.4, |times| 1.0 - 1.0 / times);
    let share = signs::explains(view, 0.4 * lost, lost, 0.2 * lost);
    Some(Case::new(confidence, share, says, evidence).missing([missing]))
}
