//! D12: drawing a token costs more for some requests than for others.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, signs, text};
use crate::view::{Seen, View, at_share, mean};

pub(super) static RULE: Rule = Rule {
    id: "sampling_cost",
    code: "D12",
    class: Class::Decode,
    title: text("requests with log-probabilities are slower", "带 logprobs 的请求更慢"),
    symptom: text(
        "TPOT of requests whose answers carry log-probabilities is more than 1.3 times that of the others",
        "回答带 logprobs 的请求 TPOT 超过其他请求的 1.3 倍",
    ),
    required: text(
        "nothing: the answers tell which requests have them. Penalties and grammars show in no metric",
        "无需服务端指标：回答中可见哪些请求带 logprobs。惩罚项与语法约束不在任何指标中",
    ),
    check: text("the same requests without them", "同样的请求去掉该参数"),
    command: "goodput bench {target} -c 4 -n 40",
    advice: &[
        Advice {
            text: text("ask for fewer log-probabilities, or none", "减少或不要 logprobs"),
            flags: &[("vllm", "--max-logprobs")],
        },
        Advice {
            text: text(
                "draw on the accelerator; take another grammar backend",
                "在加速器上采样；更换语法后端",
            ),
            flags: &[("vllm", "--structured-outputs-config"), ("sglang", "--grammar-backend")],
        },
    ],
    improves: &["tpot_ms"],
    seen_live: false,
    judge,
};

/// Requests of each kind below which they are not compared.
const FEWEST: usize = 8;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let has = |seen: &Seen| {
        let counts = &view.timed[seen.place].record.answer.counts;
        counts.logprobs.is_some_and(|entries| entries.get() > 0)
    };
    let of_kind = |with: bool, of: fn(&Seen) -> Option<f64>| -> Vec<f64> {
        view.seen.iter().filter(|seen| has(seen) == with).filter_map(of).collect()
    };
    let (with, without) = (of_kind(true, |s| s.tpot_ms), of_kind(false, |s| s.tpot_ms));
    if with.len() < FEWEST || without.len() < FEWEST {
        return None;
    }
    let part = with.len() as f64 / (with.len() + without.len()) as f64;
    let (slow_ms, usual_ms) = (at_share(with, 0.5)?, at_share(without, 0.5)?);
    let times = slow_ms / usual_ms.max(1e-6);
    if times < 1.3 {
        return None;
    }
    let length = |with| mean(of_kind(with, |seen| seen.output).into_iter()).unwrap_or(0.0);
    let lengths = length(true) / length(false).max(1.0);
    let is_alike = (0.5..2.0).contains(&lengths);
    let evidence = vec![
        client(
            said!("TPOT with log-probabilities, median", "带 logprobs 的 TPOT 中位数"),
            slow_ms,
            "ms",
        ),
        client(said!("TPOT without, median", "不带的 TPOT 中位数"), usual_ms, "ms"),
        client(said!("share of requests with them", "带 logprobs 的请求比例"), part, ""),
    ];
    let against = (!is_alike).then(|| {
        client(
            said!("length of their answers over that of the others", "两类回答长度之比"),
            lengths,
            "",
        )
    });
    let confidence = if is_alike { Confidence::Likely } else { Confidence::Possible };
    let says = said!(
        "a token of an answer with log-probabilities takes {times:.1} times as long as one without, \
         in the same run",
        "同一次压测中，带 logprobs 的回答每 token 耗时是不带的 {times:.1} 倍",
        times = times,
    );
    let share = signs::explains(view, 0.0, part * (1.0 - 1.0 / times), 0.1);
    Some(Case::new(confidence, share, says, evidence).against(against))
}
