//! K5: keys and values go to host memory and back all the time.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "offload_thrash",
    code: "K5",
    class: Class::KvCapacity,
    title: text("the host tier of the KV cache is too small", "KV 卸载层反复换入换出"),
    symptom: text(
        "TTFT has two humps: prompts that were found, and prompts that were loaded or lost",
        "TTFT 呈双峰：命中的，与需加载或已丢失的",
    ),
    required: text(
        "stores refused or skipped for one request in twenty or more, many bytes over PCIe",
        "每二十个请求至少一次存储被拒或跳过，PCIe 流量大",
    ),
    check: text(
        "the same load without offloading: TTFT does not become worse",
        "关闭卸载后的同样负载：TTFT 没有变差",
    ),
    command: "goodput bench {target} -c 1 -n 20 --prefix-cache warm",
    advice: &[
        Advice {
            text: text("a larger host tier", "增大主机内存层"),
            flags: &[("vllm", "--kv-offloading-size"), ("sglang", "--hicache-size")],
        },
        Advice {
            text: text(
                "store only what is asked for again; pin the engine to its NUMA node",
                "只存会被再次使用的；把引擎绑定到所在 NUMA 节点",
            ),
            flags: &[("vllm", "--numa-bind"), ("sglang", "--numa-node")],
        },
    ],
    improves: &["ttft_ms"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let refused = signals.increase(Signal::KvOffloadRefusals)?;
    let each = refused / view.seen.len().max(1) as f64;
    if view.seen.len() < 20 || each < 0.05 {
        return None;
    }
    let at = |share| view.at_share(share, |seen| seen.ttft_ms);
    let spread = at(0.9)? / at(0.5).filter(|ms| *ms > 0.0)?;
    let loading_ms =
        signals.increase(Signal::KvLoadTime).map(|time_s| 1e3 * time_s / view.seen.len() as f64);
    let of_ttft = loading_ms.zip(view.ttft_ms()).map_or(0.0, |(ms, ttft)| ms / ttft.max(1e-6));
    let mut evidence = vec![
        server(
            said!("stores refused or skipped for a request", "每请求被拒或跳过的存储次数"),
            each,
            "",
        ),
        client(said!("P90 of TTFT over its median", "TTFT 的 P90 与中位数之比"), spread, ""),
    ];
    evidence.extend(
        loading_ms.map(|ms| server(said!("loading for each request", "每请求加载时间"), ms, "ms")),
    );
    evidence.extend(told(view, Signal::PcieBytes));
    evidence.extend(told(view, Signal::KvLoadBytes));
    let confidence = match (spread >= 2.0, of_ttft >= 0.3) {
        (true, true) => Confidence::Confirmed,
        (true, false) | (false, true) => Confidence::Likely,
        (false, false) => Confidence::Possible,
    };
    let says = said!(
        "host memory had no room {refused:.0} times, {each:.2} for each request, and loading takes \
         {share:.0} % of TTFT",
        "主机内存层有 {refused:.0} 次放不下（每请求 {each:.2} 次），加载占 TTFT 的 {share:.0} %",
        refused = refused,
        each = each,
        share = 100.0 * of_ttft,
    );
    let share = signs::explains(view, of_ttft.max(0.3), 0.1, 0.1);
    Some(Case::new(confidence, share, says, evidence))
}
