//! P6: prompts begin alike in more ways than the KV cache remembers.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "prefix_evicted",
    code: "P6",
    class: Class::PrefixCache,
    title: text("cached prefixes are evicted before they are used again", "前缀缓存被提前驱逐"),
    symptom: text(
        "warm prompts are quick in a small set and slow in a large one",
        "提示词集合小时热请求快，集合大时变慢",
    ),
    required: text(
        "some hits, fewer than prompts have in common, while the KV cache is small for them",
        "有命中但少于共享比例，且 KV 容量相对较小",
    ),
    check: text("with fewer different prefixes the hit rate recovers", "减少不同前缀后命中率恢复"),
    command: "goodput probe {target} --only lengths,prefix",
    advice: &[
        Advice {
            text: text("give the KV cache more memory", "为 KV 缓存分配更多显存"),
            flags: &[("vllm", "--gpu-memory-utilization"), ("sglang", "--mem-fraction-static")],
        },
        Advice {
            text: text("keep evicted blocks in host memory", "把被驱逐的块保存到主机内存"),
            flags: &[("vllm", "--kv-offloading-size"), ("sglang", "--enable-hierarchical-cache")],
        },
        Advice {
            text: text("send a session to the replica that knows it", "会话亲和路由"),
            flags: &[],
        },
    ],
    improves: &["ttft_ms", "prefix_hit_rate"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, stages: &Stages) -> Option<Case> {
    let (shared, hits) = signs::prefix(view)?;
    // The first request of each group finds nothing, which is no eviction.
    if !(0.15 * shared..0.7 * shared).contains(&hits) || shared - hits < 0.1 {
        return None;
    }
    let evicted = view.signal(Signal::PrefixEvicted).filter(|tokens| *tokens > 0.0);
    let computed = view
        .signal(Signal::PromptComputed)
        .or_else(|| view.summary.tokens.input.map(|input| input as f64 * (1.0 - hits)));
    let capacity = view.signal(Signal::KvCapacity);
    // More was written than can be kept, so something had to go.
    let overflows = computed.zip(capacity).is_some_and(|(tokens, room)| tokens > room);
    let usage = view.most(Signal::KvUsage).unwrap_or(0.0);
    let mut evidence = vec![
        client(
            said!("share of prompt tokens in common by design", "按设计共享的输入比例"),
            shared,
            "",
        ),
        server(said!("share found in the cache", "缓存命中比例"), hits, ""),
        server(said!("KV usage, most", "KV 占用峰值"), usage, ""),
    ];
    evidence.extend(computed.map(|tokens| {
        server(said!("prompt tokens computed", "实际计算的输入 token"), tokens, "tokens")
    }));
    evidence
        .extend(capacity.map(|tokens| server(said!("KV capacity", "KV 容量"), tokens, "tokens")));
    evidence.extend(
        evicted.map(|tokens| server(said!("tokens evicted", "被驱逐的 token"), tokens, "tokens")),
    );
    let told = view.signal(Signal::PrefixQueries).is_some();
    let confidence = match (told, overflows || evicted.is_some()) {
        (true, true) => Confidence::Confirmed,
        (true, false) => Confidence::Likely,
        (false, _) => Confidence::Possible,
    };
    let says = said!(
        "{hits:.0} % of the prompt tokens were found where {shared:.0} % are shared: blocks were gone \
         before they were asked for again",
        "共享比例为 {shared:.0} %，命中只有 {hits:.0} %：块在再次使用前已被驱逐",
        hits = 100.0 * hits,
        shared = 100.0 * shared,
    );
    let part = signs::prefix_part(view, stages, shared, hits);
    Some(Case::new(confidence, part, says, evidence))
}
