//! D7: answers stall because they lost their blocks and are computed again.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "preemption_stalls",
    code: "D7",
    class: Class::KvCapacity,
    title: text("answers stall because they were preempted", "抢占导致输出停顿"),
    symptom: text(
        "rare gaps of seconds in some streams while others go on; long answers have a tail",
        "个别流出现数秒停顿而其他流正常；长回答有长尾",
    ),
    required: text(
        "preemptions, a full KV cache, decode time far above tokens × step",
        "有抢占，KV 已满，解码时间远大于 token 数 × 步长",
    ),
    check: text(
        "with so few seats that the KV cache stays below 90 % the stalls are gone",
        "减少席位使 KV 低于 90 % 后停顿消失",
    ),
    command: "for c in 1 4 16 64; do goodput bench {target} -c $c -n $((10*c)); done",
    advice: &[
        Advice {
            text: text("let fewer run at once", "减少同时运行的请求"),
            flags: &[("vllm", "--max-num-seqs"), ("sglang", "--max-running-requests")],
        },
        Advice {
            text: text("leave blocks free when admitting", "准入时预留空闲块"),
            flags: &[("vllm", "--watermark"), ("sglang", "--schedule-conservativeness")],
        },
        Advice {
            text: text("more KV memory, or smaller keys and values", "更多 KV 显存或更小的 KV"),
            flags: &[("vllm", "--gpu-memory-utilization"), ("sglang", "--mem-fraction-static")],
        },
    ],
    improves: &["stall_ms", "preemptions_per_request", "icl_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let preemptions = view.preemptions_per_request().filter(|count| *count >= 0.02)?;
    let usage = view.most(Signal::KvUsage)?;
    let mixture = view.mixture?;
    let stalls = mixture.stalled;
    let longest_ms = view.figure("stall_ms", "p99").unwrap_or(0.0);
    let mut evidence = vec![
        server(said!("preemptions a request", "每请求抢占次数"), preemptions, ""),
        server(said!("KV usage, most", "KV 占用峰值"), usage, ""),
        client(said!("share of decode time in stalls", "停顿占解码时间比例"), stalls.excess, ""),
        client(said!("longest gap of a request, P99", "请求最长间隔 P99"), longest_ms, "ms"),
    ];
    evidence.extend(mixture.alone.map(|share| {
        client(said!("stalls while other streams go on", "其他流仍在输出的停顿比例"), share, "")
    }));
    evidence.extend(view.signal(Signal::RecomputedTokens).map(|tokens| {
        server(said!("tokens computed again", "重新计算的 token"), tokens, "tokens")
    }));
    let seen = stalls.excess >= 0.01 || longest_ms >= 10.0 * mixture.base_ms;
    let confidence = match (seen, usage >= signs::KV_FULL) {
        (true, true) => Confidence::Confirmed,
        (false, true) | (true, false) => Confidence::Likely,
        (false, false) => Confidence::Possible,
    };
    let says = said!(
        "{preemptions:.2} preemptions a request at {usage:.0} % KV usage; stalls take {share:.0} % of the \
         decode time, the longest {longest:.0} ms at P99",
        "KV 占用 {usage:.0} % 时每请求抢占 {preemptions:.2} 次；停顿占解码时间 {share:.0} %，最长间隔 P99 为 {longest:.0} ms",
        preemptions = preemptions,
        usage = 100.0 * usage,
        share = 100.0 * stalls.excess,
        longest = longest_ms,
    );
    let share = signs::explains(view, 0.0, stalls.excess, 0.7);
    Some(Case::new(confidence, share, says, evidence))
}
