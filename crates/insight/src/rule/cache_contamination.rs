//! V6: the prefix cache knows prompts of earlier runs.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "cache_contamination",
    code: "V6",
    class: Class::Workload,
    title: text("prompts were known from earlier runs", "缓存中留有以前压测的提示词"),
    symptom: text(
        "a second run of the same prompts has a far lower TTFT at the same TPOT",
        "重复同样提示词时 TTFT 大降而 TPOT 不变",
    ),
    required: text(
        "more prompt tokens found than prompts of this run share",
        "命中的 token 多于本次提示词共享的部分",
    ),
    check: text(
        "with a nonce in each prompt the hits are gone",
        "在每个提示词前加入随机前缀后命中消失",
    ),
    command: "goodput bench {target} --prefix-cache cold",
    advice: &[Advice {
        text: text(
            "say cold or warm, and make prompts unique or reset the cache",
            "明确冷热状态，使提示词唯一或重置缓存",
        ),
        flags: &[("vllm", "POST /reset_prefix_cache"), ("sglang", "POST /flush_cache")],
    }],
    improves: &["cached_share"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let shared = f64::from(view.summary.facts.workload.prefix_tokens?);
    let (input, _) = view.lengths()?;
    let found = view.hit_rate()?;
    let turns = view.records.iter().any(|record| !record.arrives());
    let expected = (shared / input.max(1.0)).min(1.0);
    if turns || found < expected + 0.2 {
        return None;
    }
    let evidence = vec![
        server(said!("share of prompt tokens found", "输入 token 命中比例"), found, ""),
        client(
            said!("share that prompts have in common by design", "按设计共享的比例"),
            expected,
            "",
        ),
    ];
    let says = said!(
        "{found:.0} % of the prompt tokens were found in the cache, but prompts of this run share \
         {expected:.0} %",
        "输入 token 有 {found:.0} % 命中缓存，而本次提示词只共享 {expected:.0} %",
        found = 100.0 * found,
        expected = 100.0 * expected,
    );
    let agree = view.signals().is_some() && view.summary.tokens.cached_share.is_some();
    let confidence = if agree { Confidence::Confirmed } else { Confidence::Likely };
    Some(Case::new(confidence, found - expected, says, evidence))
}
