//! P10: keys and values that are found elsewhere take long to fetch.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "kv_fetch",
    code: "P10",
    class: Class::Communication,
    title: text("fetching keys and values takes much of TTFT", "取回 KV 占用大量首 token 时间"),
    symptom: text(
        "TTFT is high although many prompt tokens are found in an outer cache",
        "外部缓存命中率高，TTFT 仍然高",
    ),
    required: text(
        "a fifth or more of the prompt tokens from outside, and loading them 30 % or more of TTFT",
        "五分之一以上的输入 token 来自外部，且加载时间占 TTFT 的 30 % 以上",
    ),
    check: text(
        "without the outer cache TTFT is lower: computing is quicker than loading",
        "关闭外部缓存后 TTFT 更低，说明重算比加载快",
    ),
    command: "goodput bench {target} -c 1 -n 20 --prefix-cache warm",
    advice: &[
        Advice {
            text: text(
                "load only from some length of prefix on; short ones are quicker computed",
                "仅当前缀超过一定长度才加载，短前缀直接重算",
            ),
            flags: &[("vllm", "--kv-transfer-config")],
        },
        Advice {
            text: text(
                "a faster tier or network card; load layer by layer",
                "更快的存储层或网卡；逐层加载",
            ),
            flags: &[("vllm", "--kv-offloading-backend"), ("sglang", "--hicache-io-backend")],
        },
    ],
    improves: &["ttft_ms"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let fetched = signals.increase(Signal::ExternalHits)?;
    let found = fetched / signals.increase(Signal::PromptTokens).filter(|count| *count > 0.0)?;
    let time_s = signals.increase(Signal::KvLoadTime)?;
    let requests = view.seen.len().max(1) as f64;
    let (load_ms, ttft_ms) = (1e3 * time_s / requests, view.ttft_ms().filter(|ms| *ms > 0.0)?);
    let of_ttft = load_ms / ttft_ms;
    if found < 0.2 || of_ttft < 0.3 {
        return None;
    }
    let recompute_ms = view.bounds.map(|bounds| {
        // Engines sustain about 60 % of the peak.
        fetched / requests * bounds.prompt_token_ms / 0.6
    });
    let mut evidence = vec![
        server(
            said!("share of prompt tokens from outside", "来自外部的输入 token 比例"),
            found,
            "",
        ),
        server(said!("loading for each request", "每请求加载时间"), load_ms, "ms"),
        client(said!("TTFT, mean", "平均 TTFT"), ttft_ms, "ms"),
    ];
    evidence.extend(signals.increase(Signal::KvLoadBytes).map(|bytes| {
        server(said!("speed of loading", "加载速度"), bytes / time_s.max(1e-9) / 1e9, "GB/s")
    }));
    let again = recompute_ms
        .map(|ms| bound(said!("computing them again instead", "改为重算所需"), ms, "ms"));
    let is_dearer = recompute_ms.is_some_and(|ms| load_ms > ms);
    let confidence = match recompute_ms {
        Some(_) if is_dearer => Confidence::Confirmed,
        Some(_) => Confidence::Possible,
        None => Confidence::Likely,
    };
    let (for_it, against) = if is_dearer { (again, None) } else { (None, again) };
    evidence.extend(for_it);
    let says = said!(
        "{found:.0} % of the prompt tokens were fetched, which took {load:.0} ms a request, \
         {share:.0} % of TTFT",
        "{found:.0} % 的输入 token 从外部取回，每请求耗时 {load:.0} ms，占 TTFT 的 {share:.0} %",
        found = 100.0 * found,
        load = load_ms,
        share = 100.0 * of_ttft,
    );
    let missing = recompute_ms.is_none().then(|| {
        said!(
            "what computing the same would take: model and accelerator (--model-shape, --accelerator)",
            "重算所需时间：需要模型结构与加速器（--model-shape、--accelerator）"
        )
    });
    let share = signs::explains(view, of_ttft, 0.0, 0.1);
    Some(Case::new(confidence, share, says, evidence).against(against).missing(missing))
}
