//! C4: ranks that serve other requests wait for each other in every step.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "rank_lockstep",
    code: "C4",
    class: Class::Communication,
    title: text("data-parallel ranks wait for the fullest one", "数据并行秩互相等待"),
    symptom: text(
        "a long prompt on one rank holds up the answers of all",
        "一个秩上的长输入拖慢所有秩的回答",
    ),
    required: text(
        "a tenth or more of the time in waiting for other ranks, or tokens of the fullest rank above 1.5 times the mean",
        "等待其他秩的时间占一成以上，或最满秩的 token 超过平均的 1.5 倍",
    ),
    check: text("with prompts of one length it vanishes", "输入长度一致后消失"),
    command: "goodput bench {target} --isl 64 --osl 256",
    advice: &[
        Advice {
            text: text(
                "compute prompts at common intervals on all ranks",
                "让各秩在共同的间隔做预填充",
            ),
            flags: &[
                ("vllm", "--prefill-schedule-interval"),
                ("sglang", "--enable-prefill-delayer"),
            ],
        },
        Advice {
            text: text(
                "route by length, or take prefill out to other engines",
                "按长度路由，或把预填充分离到其他引擎",
            ),
            flags: &[("vllm", "--data-parallel-hybrid-lb"), ("sglang", "--load-balance-method")],
        },
    ],
    improves: &["icl_ms", "tpot_ms"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let ranks = view.engines().max(1) as f64;
    let length_s = Some(signals.length_s()).filter(|length| *length > 0.0)?;
    let waits = signals.taken(Signal::RankSyncWait);
    let waited = waits.map(|taken| taken.sum / ranks / length_s);
    let uneven = signals.taken(Signal::RankImbalance).and_then(|taken| taken.mean());
    let (waits_much, is_uneven) =
        (waited.is_some_and(|share| share >= 0.1), uneven.is_some_and(|times| times > 1.5));
    let confidence = match (waits_much, is_uneven) {
        (true, true) => Confidence::Confirmed,
        (true, false) => Confidence::Likely,
        (false, true) if waited.is_none_or(|share| share >= 0.03) => Confidence::Possible,
        _ => return None,
    };
    let mut evidence = Vec::new();
    evidence.extend(waited.map(|share| {
        server(said!("share of the time in waiting for ranks", "等待其他秩的时间比例"), share, "")
    }));
    evidence.extend(
        waits
            .and_then(|taken| taken.mean())
            .map(|s| server(said!("a wait, mean", "平均每次等待"), 1e3 * s, "ms")),
    );
    evidence.extend(
        uneven.map(|times| server(said!("fullest rank over mean", "最满秩与平均之比"), times, "")),
    );
    evidence.extend(signs::gap_tail(view).map(|tail| {
        client(said!("P99 of gaps over the undisturbed one", "P99 间隔与正常间隔之比"), tail, "")
    }));
    let missing = (!is_uneven)
        .then(|| said!("how unevenly tokens lie on the ranks", "token 在各秩之间的不均衡度"));
    let says = said!(
        "ranks wait for each other {waited:.0} % of the time, and the fullest has {uneven:.1} times the \
         tokens of a mean one",
        "各秩有 {waited:.0} % 的时间在互相等待，最满秩的 token 为平均的 {uneven:.1} 倍",
        waited = 100.0 * waited.unwrap_or(0.0),
        uneven = uneven.unwrap_or(1.0),
    );
    let lost = waited.unwrap_or(0.1).min(1.0);
    let share = signs::explains(view, 0.3 * lost, lost, 0.8 * lost.max(0.3));
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}
