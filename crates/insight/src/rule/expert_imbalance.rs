//! D9: some ranks have more work of experts than others, and all wait for them.

use measure::finding::{Class, Confidence};
use measure::hardware::FeedForward;
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "expert_imbalance",
    code: "D9",
    class: Class::Communication,
    title: text("experts are loaded unevenly", "专家负载不均"),
    symptom: text(
        "TPOT is high at the median and not only in the tail, with expert parallelism only",
        "仅在专家并行时 TPOT 中位数偏高，而不只是尾部",
    ),
    required: text(
        "mean over largest expert load below 0.7, or accelerators of one engine unevenly active by more than 1.5 times",
        "专家负载均衡度低于 0.7，或同一引擎各卡 SM 活跃相差 1.5 倍以上",
    ),
    check: text(
        "other prompts spread otherwise; with expert balancing on the spread is gone",
        "换一批输入后分布改变；开启 EPLB 后差异消失",
    ),
    command: "for s in 1 2 3; do goodput bench {target} --seed $s; done",
    advice: &[
        Advice {
            text: text("rebalance experts while serving", "在线均衡专家"),
            flags: &[("vllm", "--enable-eplb"), ("sglang", "--enable-eplb")],
        },
        Advice {
            text: text("keep copies of experts that are asked for most", "为热门专家增加冗余副本"),
            flags: &[("vllm", "--eplb-config"), ("sglang", "--ep-num-redundant-experts")],
        },
        Advice {
            text: text("place experts in another order", "改变专家放置方式"),
            flags: &[("vllm", "--expert-placement-strategy")],
        },
    ],
    improves: &["tpot_ms"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let balance = view.signal(Signal::ExpertBalance);
    let uneven = balance.filter(|balance| *balance > 0.0 && *balance < 0.7);
    let model = view.deployment.model.as_ref();
    let has_experts = balance.is_some()
        || model.is_some_and(|model| matches!(model.feed_forward, FeedForward::Mixture { .. }));
    let (least, most) = signs::spread(view, Signal::SmActive).unwrap_or((1.0, 1.0));
    let times = most / least.max(1e-3);
    let apart = has_experts && most >= 0.3 && times > 1.5;
    let confidence = match (uneven.is_some(), apart) {
        (true, true) => Confidence::Confirmed,
        (true, false) => Confidence::Likely,
        (false, true) => Confidence::Possible,
        (false, false) => return None,
    };
    let mut evidence: Vec<_> = told(view, Signal::ExpertBalance).into_iter().collect();
    if apart {
        evidence.push(server(
            said!("most active accelerator over least", "最忙与最闲加速器的 SM 活跃之比"),
            times,
            "",
        ));
    }
    evidence.extend(
        view.mean(|seen| seen.tpot_ms).map(|ms| client(said!("TPOT, mean", "平均 TPOT"), ms, "ms")),
    );
    let lost = uneven.map_or(1.0 - 1.0 / times, |balance| 1.0 - balance);
    let says = said!(
        "in a step with experts {lost:.0} % of the time of a mean rank is waiting for the fullest one",
        "含专家的步中，平均每个秩有 {lost:.0} % 的时间在等待最忙的秩",
        lost = 100.0 * lost,
    );
    let missing = uneven.is_none().then(|| {
        said!(
            "how evenly the experts are loaded: SGLang tells it with --enable-eplb",
            "专家负载的均衡度：SGLang 在 --enable-eplb 时给出"
        )
    });
    let share = signs::explains(view, 0.3 * lost, lost, 0.3 * lost);
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}
