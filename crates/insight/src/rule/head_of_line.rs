//! Q8: short prompts wait behind long ones.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::{View, at_share};

pub(super) static RULE: Rule = Rule {
    id: "head_of_line",
    code: "Q8",
    class: Class::Queueing,
    title: text("short prompts wait behind long ones", "短输入排在长输入之后"),
    symptom: text(
        "TTFT of short prompts is high while a long prompt is in flight",
        "有长输入在处理时，短输入的 TTFT 变高",
    ),
    required: text(
        "first come first served, steps at the token budget",
        "先来先服务，且步长达到 token 预算",
    ),
    check: text(
        "without the longest 5 % of the prompts P99 of the short ones collapses",
        "去掉最长的 5 % 输入后，短输入的 P99 大幅下降",
    ),
    command: "goodput bench {target}",
    advice: &[
        Advice {
            text: text(
                "limit the tokens that one long prompt takes of a step",
                "限制单个长输入在每步中占用的 token",
            ),
            flags: &[
                ("vllm", "--long-prefill-token-threshold"),
                ("sglang", "--chunked-prefill-size"),
            ],
        },
        Advice {
            text: text("let short or urgent requests go first", "让短请求或紧急请求优先"),
            flags: &[("vllm", "--scheduling-policy priority"), ("sglang", "--schedule-policy")],
        },
    ],
    improves: &["ttft_ms", "attainment"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let middle = view.at_share(0.5, crate::view::Seen::uncached)?;
    let long_from = view.at_share(0.98, crate::view::Seen::uncached)?;
    if middle <= 0.0 || long_from < 6.0 * middle {
        return None;
    }
    let is_long = |tokens: f64| tokens >= 6.0 * middle;
    let long: Vec<(f64, f64)> = view
        .seen
        .iter()
        .filter(|seen| seen.uncached().is_some_and(is_long))
        .filter_map(|seen| Some((seen.sent_s, view.courses[seen.place].first_token_s?)))
        .collect();
    let (mut behind, mut free) = (Vec::new(), Vec::new());
    for seen in &view.seen {
        let Some(ttft_ms) = seen.ttft_ms.filter(|_| !seen.uncached().is_some_and(is_long)) else {
            continue;
        };
        let waits = long.iter().any(|(sent, first)| *sent <= seen.sent_s && seen.sent_s < *first);
        if waits { behind.push(ttft_ms) } else { free.push(ttft_ms) }
    }
    if behind.len() < 5 || free.len() < 5 {
        return None;
    }
    let all: f64 = behind.iter().chain(&free).sum();
    let usual = at_share(free.clone(), 0.5)?;
    let slowed = at_share(behind.clone(), 0.5)?;
    let excess: f64 = behind.iter().map(|ms| (ms - usual).max(0.0)).sum();
    if slowed < 2.0 * usual || excess < 0.15 * all {
        return None;
    }
    let depth = view.signals().and_then(|signals| signals.gauge(Signal::QueueDepth));
    let mut evidence = vec![
        client(
            said!(
                "median TTFT of short prompts beside a long one",
                "有长输入时短输入的 TTFT 中位数"
            ),
            slowed,
            "ms",
        ),
        client(said!("without one", "没有长输入时"), usual, "ms"),
        client(
            said!("length of long prompts over the median", "长输入与中位长度之比"),
            long_from / middle,
            "",
        ),
        client(
            said!("short requests beside a long one", "受影响的短请求"),
            behind.len() as f64,
            "requests",
        ),
    ];
    evidence.extend(depth.map(|depth| server(said!("waiting, most", "最大等待数"), depth.max, "")));
    evidence.extend(view.queue_ms().map(|ms| server(said!("queue time", "排队时间"), ms, "ms")));
    let queued = signs::queue(view).is_some_and(|queue| queue.is_told && queue.of_ttft > 0.1);
    let confidence = match (depth, queued) {
        (Some(_), true) => Confidence::Confirmed,
        (Some(_), false) => Confidence::Likely,
        (None, _) => Confidence::Possible,
    };
    let says = said!(
        "the median TTFT of short prompts is {slowed:.0} ms while a long prompt is ahead and \
         {usual:.0} ms otherwise",
        "前方有长输入时，短输入的 TTFT 中位数为 {slowed:.0} ms，否则为 {usual:.0} ms",
        slowed = slowed,
        usual = usual,
    );
    let share = signs::explains(view, (excess / all).max(0.5), 0.0, 0.2).max(0.5);
    Some(Case::new(confidence, share, says, evidence))
}
