//! K2: what is computed again after preemptions takes the time of new work.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "kv_thrash",
    code: "K2",
    class: Class::KvCapacity,
    title: text("the engine computes the same again and again", "反复抢占与重算（颠簸）"),
    symptom: text("with more users fewer answers come", "并发增加时完成速率反而下降"),
    required: text(
        "every other request preempted or more, a full KV cache",
        "半数以上请求被抢占，KV 已满",
    ),
    check: text(
        "with seats for what the KV cache holds more answers come",
        "把席位降到 KV 可容纳的数量后完成速率上升",
    ),
    command: "for c in 1 4 16 64; do goodput bench {target} -c $c -n $((10*c)); done",
    advice: &[
        Advice {
            text: text(
                "as many seats as the KV cache holds, less a tenth",
                "席位设为 KV 可容纳数的九成",
            ),
            flags: &[("vllm", "--max-num-seqs"), ("sglang", "--max-running-requests")],
        },
        Advice {
            text: text("leave blocks free when admitting", "准入时预留空闲块"),
            flags: &[("vllm", "--watermark"), ("sglang", "--schedule-conservativeness")],
        },
    ],
    improves: &["preemptions_per_request", "e2el_ms", "goodput_req_s"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let preemptions = view.preemptions_per_request().filter(|count| *count >= 0.5)?;
    let usage = view.most(Signal::KvUsage).filter(|usage| *usage >= signs::KV_FULL)?;
    let mut evidence = vec![
        server(said!("preemptions a request", "每请求抢占次数"), preemptions, ""),
        server(said!("KV usage, most", "KV 占用峰值"), usage, ""),
    ];
    let again = view.signal(Signal::RecomputedTokens);
    evidence.extend(again.map(|tokens| {
        server(said!("tokens computed again", "重新计算的 token"), tokens, "tokens")
    }));
    let says = said!(
        "each request is preempted {preemptions:.1} times on average, and what it had is computed again",
        "每个请求平均被抢占 {preemptions:.1} 次，已有部分需要重算",
        preemptions = preemptions,
    );
    let missing = said!(
        "the throughput with fewer users, to see that it is higher",
        "更低并发下的吞吐，用于确认其更高"
    );
    let share = signs::explains(view, 0.4, 0.4, 0.5);
    Some(Case::new(Confidence::Likely, share, says, evidence).missing([missing]))
}
