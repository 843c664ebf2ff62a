//! Caveats about the prefix cache: what the answers say of it against what the
//! run claims.

use super::evidence::Evidence;
use crate::caveat::Caveat;
use crate::record::Record;
use crate::said::said;
use crate::signal::Signal;
use crate::summary::Summary;

/// The caveat of prompts that were not new to the server.
const WARM: &str = "warm_prefix_cache";

/// Tokens that every prompt may share with all others whatever the regime: the
/// beginning of a chat template with its system prompt.
const TEMPLATE_TOKENS: u32 = 32;

/// Tokens of the nonce that all prompts of a cold run begin with.
const NONCE_TOKENS: u32 = 8;

/// Cached tokens beyond a template, as a share of the prompt tokens, from which
/// on prompts were not new to the server.
const WARM_SHARE: f64 = 0.01;

/// Of the tokens that should be cached, the share below which the cache had
/// about none of them.
const PRIMED_SHARE: f64 = 0.1;

pub(super) fn cached_share(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    let share = summary.tokens.cached_share?;
    (share > 0.10).then(|| {
        Caveat::new(
            "cached_prompts",
            said!(
                "{percent:.0} % of prompt tokens came from a prefix cache: total tok/s is no \
                 headline, cached tokens are no work.",
                "{percent:.0} % 的输入 token 来自前缀缓存：命中缓存的 token 不算工作量，总 tok/s 不\
                 能当作主要结果。",
                percent = share * 100.0,
            ),
        )
    })
}

/// Regime none with hits, or warm without.
pub(super) fn regime_contradicted(summary: &Summary, evidence: &Evidence) -> Option<Caveat> {
    let share = summary.tokens.cached_share?;
    let text = match summary.facts.workload.cache_regime.as_str() {
        "none" => {
            let beyond = share_beyond(evidence)?;
            (beyond >= WARM_SHARE).then(|| {
                said!(
                    "The cache regime is none, yet {percent:.1} % of prompt tokens came from a \
                     prefix cache, more than a template has: the server finds text that is not at \
                     the beginning of a prompt, or its counts are not what they say.",
                    "声明的缓存状态是 none，却有 {percent:.1} % 的输入 token 来自前缀缓存，超出聊天模板\
                     所能解释的范围：服务端能命中不在 prompt 开头的文本，或其计数不可信。",
                    percent = share * 100.0,
                )
            })
        }
        "warm" => {
            let expected = primed_share(summary)?;
            (share < PRIMED_SHARE * expected).then(|| {
                said!(
                    "The cache regime is warm and {expected:.1} % of prompt tokens had been sent \
                     before the run, yet {percent:.1} % came from a prefix cache: it is off or too \
                     small, or another replica answered.",
                    "声明的缓存状态是 warm，压测前已发送过 {expected:.1} % 的输入 token，但只有 \
                     {percent:.1} % 来自前缀缓存：缓存未开启、容量太小，或由其他副本应答。",
                    expected = expected * 100.0,
                    percent = share * 100.0,
                )
            })
        }
        _ => None,
    };
    text.map(|text| Caveat::new("cache_regime_contradicted", text))
}

/// Prompts that begin with nothing in common hit the cache only when an earlier
/// run left them there.
pub(super) fn warm_prefix_cache(summary: &Summary, evidence: &Evidence) -> Option<Caveat> {
    let workload = &summary.facts.workload;
    let new = matches!(workload.cache_regime.as_str(), "cold" | "as-is");
    if !new || workload.prefix_tokens != Some(0) || workload.oversampled.is_some() {
        return None;
    }
    let beyond = share_beyond(evidence)?;
    (beyond >= WARM_SHARE).then(|| {
        Caveat::new(
            WARM,
            said!(
                "No two prompts of this run begin alike, yet {percent:.1} % of prompt tokens came \
                 from a prefix cache: it held these prompts from before, and the figures are too \
                 good. Take --prefix-cache cold or another --seed, or empty the cache with \
                 --reset-cache-url.",
                "本次压测的 prompt 开头各不相同，却有 {percent:.1} % 的输入 token 来自前缀缓存：缓存中\
                 留有以前的同样 prompt，结果偏好。请用 --prefix-cache cold 或换一个 --seed，或用 \
                 --reset-cache-url 清空缓存。",
                percent = summary.tokens.cached_share.unwrap_or_default() * 100.0,
            ),
        )
    })
}

/// Prompt tokens of an answer that were cached and belong to no template, and
/// all of them; `None` where the server did not count the prompt.
pub(super) fn beyond_template(record: &Record, excludes_cached: bool) -> Option<(u64, u64)> {
    let counts = &record.answer.counts;
    let cached = counts.cached.map_or(0, |cached| cached.get());
    let prompt = counts.prompt?.get() + if excludes_cached { cached } else { 0 };
    // What the server counts above the text is the template around it.
    let template = record.planned.input_tokens.map_or(0, |text| prompt.saturating_sub(text.get()));
    let known = (template + NONCE_TOKENS).max(TEMPLATE_TOKENS);
    Some((u64::from(cached.saturating_sub(known)), u64::from(prompt)))
}

/// The same by the server's own counters, where its answers do not say what was
/// cached. Nothing is said where one of them fell.
pub(super) fn warm_by_signals(summary: &Summary) -> Option<Caveat> {
    let workload = &summary.facts.workload;
    let new = matches!(workload.cache_regime.as_str(), "cold" | "as-is");
    if !new || workload.prefix_tokens != Some(0) || workload.oversampled.is_some() {
        return None;
    }
    let signals = summary.inside.signals.as_ref()?;
    let share = signals.hit_rate()?;
    let queries = signals.increase(Signal::PrefixQueries)?;
    let template = f64::from(TEMPLATE_TOKENS) * summary.outcomes.total() as f64;
    let beyond = share - template / queries;
    (beyond >= WARM_SHARE).then(|| {
        Caveat::new(
            WARM,
            said!(
                "No two prompts of this run begin alike, yet by the server's counters {percent:.1} \
                 % of the prompt tokens in this time came from its prefix cache: it held these \
                 prompts from before, or others use the server, and the figures are too good. Take \
                 --prefix-cache cold or another --seed, or empty the cache with --reset-cache-url.",
                "本次压测的 prompt 开头各不相同，但服务端计数显示这段时间有 {percent:.1} % 的输入 token \
                 来自前缀缓存：缓存中留有以前的同样 prompt，或有其他人在使用该服务，结果偏好。请用 \
                 --prefix-cache cold 或换一个 --seed，或用 --reset-cache-url 清空缓存。",
                percent = share * 100.0,
            ),
        )
    })
}

/// The share of prompt tokens that were cached and belong to no template.
fn share_beyond(evidence: &Evidence) -> Option<f64> {
    let (beyond, all) = evidence.cached_beyond;
    (all > 0).then(|| beyond as f64 / all as f64)
}

/// The share of prompt tokens that were sent before a warm run: the prefixes,
/// or all where each prompt was.
fn primed_share(summary: &Summary) -> Option<f64> {
    let Some(prefix @ 1..) = summary.facts.workload.prefix_tokens else { return Some(1.0) };
    let prefixes = u64::from(prefix) * summary.outcomes.ok;
    let share = prefixes as f64 / summary.tokens.input.filter(|input| *input > 0)? as f64;
    Some(share.min(1.0))
}
