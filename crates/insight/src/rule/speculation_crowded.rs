//! D11: drafts are checked at a batch at which arithmetic is the limit.

use measure::finding::{Class, Confidence};
use measure::hardware::Precision;
use measure::hardware::roofline::ridge_tokens;
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "speculation_crowded",
    code: "D11",
    class: Class::Compute,
    title: text("speculation takes the arithmetic of a full batch", "大批量下推测解码得不偿失"),
    symptom: text(
        "speculation is a gain with one user and a loss at the target load",
        "单用户时推测解码有收益，目标负载下变慢",
    ),
    required: text(
        "matrix units above 60 %, and a third or more of the drafted tokens not taken",
        "张量单元活跃高于 60 %，且三分之一以上的草稿被拒绝",
    ),
    check: text(
        "the target load with and without speculation: goodput tells",
        "在目标负载下对比开启与关闭推测：以 goodput 判断",
    ),
    command: "for c in 1 4 16 64; do goodput bench {target} -c $c -n $((10*c)); done",
    advice: &[Advice {
        text: text(
            "draft fewer tokens or none where the batch is large",
            "批大时减少或关闭草稿 token",
        ),
        flags: &[("vllm", "--spec-tokens"), ("sglang", "--speculative-num-steps")],
    }],
    improves: &["goodput_req_s", "tpot_ms"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let tensor = view.signal(Signal::TensorActive).filter(|share| *share >= 0.6)?;
    let drafts = signals.increase(Signal::Drafts).filter(|drafts| *drafts >= 20.0)?;
    let drafted = signals.increase(Signal::DraftTokens)?;
    let wasted = 1.0 - signals.increase(Signal::AcceptedTokens)? / drafted.max(1.0);
    let batch = view.running_batch()? / view.engines().max(1) as f64;
    if wasted < 0.34 || batch < 4.0 {
        return None;
    }
    let checked = batch * (1.0 + drafted / drafts);
    let weights = view.deployment.weights.unwrap_or(Precision::Bf16);
    let ridge = view.deployment.accelerator.as_ref().and_then(|known| ridge_tokens(known, weights));
    let mut evidence = vec![
        server(said!("share of drafted tokens not taken", "草稿被拒绝的比例"), wasted, ""),
        client(said!("answers written at a time by an engine", "单引擎同时解码数"), batch, ""),
        server(said!("tokens checked in a step", "每步校验的 token 数"), checked, "tokens"),
    ];
    evidence.extend(told(view, Signal::TensorActive));
    let turn = ridge.map(|tokens| {
        bound(
            said!(
                "tokens of a step from which on arithmetic is the limit",
                "算力成为瓶颈的单步 token 数"
            ),
            tokens,
            "tokens",
        )
    });
    let is_beyond = ridge.is_some_and(|tokens| checked >= tokens);
    let confidence = if is_beyond { Confidence::Likely } else { Confidence::Possible };
    let (for_it, against) = if is_beyond { (turn, None) } else { (None, turn) };
    evidence.extend(for_it);
    let says = said!(
        "{checked:.0} tokens are checked in a step, {wasted:.0} % of the drafts for nothing, and \
         matrix units are active {tensor:.0} %",
        "每步校验 {checked:.0} 个 token，{wasted:.0} % 的草稿白费，张量单元活跃 {tensor:.0} %",
        checked = checked,
        wasted = 100.0 * wasted,
        tensor = 100.0 * tensor,
    );
    let missing = said!(
        "the same load without speculation: the gain or loss is between the two",
        "同样负载关闭推测的对照：收益或损失由二者之差得出"
    );
    let share = signs::explains(view, 0.0, 0.6 * wasted, 0.1);
    Some(Case::new(confidence, share, says, evidence).against(against).missing([missing]))
}
