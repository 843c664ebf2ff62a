//! P5: prompts begin alike, and nothing of it is found again.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "prefix_not_hit",
    code: "P5",
    class: Class::PrefixCache,
    title: text("shared prefixes are computed again", "共享前缀没有命中缓存"),
    symptom: text(
        "a prompt sent again takes as long as the first time",
        "相同前缀的请求与首次一样慢",
    ),
    required: text(
        "hit rate below half of what prompts have in common",
        "命中率不到提示词共享比例的一半",
    ),
    check: text(
        "on one replica the same prompt is quick the second time; through the router it is not: routing",
        "固定到一个副本时第二次变快，经路由则不变：问题在路由",
    ),
    command: "goodput probe {target} --only lengths,prefix",
    advice: &[
        Advice {
            text: text("switch the prefix cache on", "启用前缀缓存"),
            flags: &[("vllm", "--enable-prefix-caching"), ("llama_cpp", "--cache-reuse")],
        },
        Advice {
            text: text(
                "put what is the same first and what changes last, in whole blocks",
                "把不变的内容放在最前、变化的放在最后，并对齐块大小",
            ),
            flags: &[("vllm", "--block-size")],
        },
        Advice {
            text: text("route by prefix or by session", "按前缀或会话路由"), flags: &[]
        },
    ],
    improves: &["ttft_ms", "prefix_hit_rate"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, stages: &Stages) -> Option<Case> {
    let (shared, hits) = signs::prefix(view)?;
    if hits >= 0.15 * shared {
        return None;
    }
    let off = view.signals().is_some_and(|signals| {
        signals.settings.iter().any(|(name, value)| {
            name == "enable_prefix_caching" && value.eq_ignore_ascii_case("false")
        })
    });
    let (input, _) = view.lengths()?;
    let mut evidence = vec![
        client(
            said!("share of prompt tokens in common by design", "按设计共享的输入比例"),
            shared,
            "",
        ),
        server(said!("share found in the cache", "缓存命中比例"), hits, ""),
        client(said!("prompt tokens, mean", "平均输入 token"), input, "tokens"),
    ];
    evidence.extend(view.signal(Signal::PromptComputed).map(|tokens| {
        server(said!("prompt tokens computed", "实际计算的输入 token"), tokens, "tokens")
    }));
    let says = said!(
        "{shared:.0} % of the prompt tokens are the same in all requests of a group, and {hits:.0} % were \
         found",
        "输入 token 有 {shared:.0} % 为同组共享，而命中只有 {hits:.0} %",
        shared = 100.0 * shared,
        hits = 100.0 * hits,
    );
    let told = view.signal(Signal::PrefixQueries).is_some() || off;
    let confidence = if told { Confidence::Confirmed } else { Confidence::Possible };
    let part = signs::prefix_part(view, stages, shared, hits);
    let missing = (!off).then(|| {
        said!(
            "whether the cache is on, and whether a router scatters the groups",
            "缓存是否启用、路由是否打散同组请求"
        )
    });
    Some(Case::new(confidence, part, says, evidence).missing(missing))
}
