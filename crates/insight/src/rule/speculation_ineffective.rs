//! D10: drafted tokens are hardly ever taken.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "speculation_ineffective",
    code: "D10",
    class: Class::Decode,
    title: text("speculation does not pay", "推测解码收益不足"),
    symptom: text(
        "TPOT with speculation is above 0.9 times that without",
        "开启推测后的 TPOT 高于关闭时的 0.9 倍",
    ),
    required: text(
        "fewer than 1.5 tokens a step, or under a third of the drafts taken",
        "每步少于 1.5 个 token，或草稿接受率不足三分之一",
    ),
    check: text(
        "TPOT with one, two and three drafted tokens on the same prompts",
        "在同样输入上比较草稿长度 1、2、3 的 TPOT",
    ),
    command: "goodput bench {target} -c 1",
    advice: &[
        Advice {
            text: text("draft fewer tokens, or none", "减少或关闭草稿 token"),
            flags: &[("vllm", "--spec-tokens"), ("sglang", "--speculative-num-steps")],
        },
        Advice {
            text: text(
                "take a draft that was trained for this model",
                "使用为该模型训练的草稿模型",
            ),
            flags: &[("vllm", "--spec-method"), ("sglang", "--speculative-algorithm")],
        },
    ],
    improves: &["tpot_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let drafts = signals.increase(Signal::Drafts).filter(|drafts| *drafts >= 20.0)?;
    let (drafted, taken) =
        (signals.increase(Signal::DraftTokens)?, signals.increase(Signal::AcceptedTokens)?);
    let (rate, length) = (taken / drafted.max(1.0), 1.0 + taken / drafts);
    if rate >= 0.34 && length >= 1.4 {
        return None;
    }
    let mut evidence = vec![
        server(said!("share of drafted tokens taken", "草稿接受率"), rate, ""),
        server(said!("tokens a step", "每步 token 数"), length, ""),
        server(said!("tokens drafted a step", "每步草稿 token 数"), drafted / drafts, ""),
    ];
    evidence.extend(
        view.mean(|seen| seen.tpot_ms).map(|ms| client(said!("TPOT, mean", "平均 TPOT"), ms, "ms")),
    );
    let confidence = if rate < 0.25 { Confidence::Confirmed } else { Confidence::Likely };
    let says = said!(
        "{rate:.0} % of the drafted tokens are taken: {length:.2} tokens a step for {drafted:.1} drafted",
        "草稿接受率 {rate:.0} %：每步起草 {drafted:.1} 个 token，只得到 {length:.2} 个",
        rate = 100.0 * rate,
        length = length,
        drafted = drafted / drafts,
    );
    let share = signs::explains(view, 0.0, 0.6, 0.1).max(if rate < 0.25 { 0.7 } else { 0.35 });
    Some(Case::new(confidence, share, says, evidence))
}
