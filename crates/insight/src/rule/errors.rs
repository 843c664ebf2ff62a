//! V7: requests fail, and those that survive look fast.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;
use measure::{FailureKind, Outcome};

use super::{Advice, Case, Rule, client, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "errors",
    code: "V7",
    class: Class::Workload,
    title: text("requests fail", "有请求失败"),
    symptom: text(
        "requests fail or time out, and the latencies are of the others only",
        "请求失败或超时，延迟只统计了其余请求",
    ),
    required: text("abort, error or refusal counters grow", "中止、错误或拒绝计数增长"),
    check: text(
        "counted as broken objectives, failures change the verdict",
        "把失败计为未达标后结论改变",
    ),
    command: "goodput report latest",
    advice: &[Advice {
        text: text(
            "mend the failures, or limit admission so that they are refused early",
            "修复失败原因，或在入口尽早限流",
        ),
        flags: &[("sglang", "--max-queued-requests")],
    }],
    improves: &["attainment", "goodput_req_s"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let rate = view.summary.outcomes.error_rate().filter(|rate| *rate >= 0.01)?;
    let (kind, count) = view.summary.outcomes.by_kind.iter().max_by_key(|(_, count)| **count)?;
    let mut evidence = vec![
        client(said!("share of requests that failed", "失败请求比例"), rate, ""),
        client(said!("of kind {kind}", "其中类型 {kind}", kind = kind), *count as f64, "requests"),
    ];
    let told = view.signal(Signal::ServerErrors).filter(|count| *count > 0.0);
    let aborted = view.signal(Signal::Aborted).filter(|count| *count > 0.0);
    evidence
        .extend(told.map(|count| server(said!("the server's errors", "服务端错误数"), count, "")));
    evidence.extend(
        aborted.map(|count| server(said!("aborted at the server", "服务端中止数"), count, "")),
    );
    // A status or an error in the stream is the server's own word.
    let said_so = view.records.iter().any(|record| {
        matches!(
            record.outcome,
            Outcome::Failed(FailureKind::HttpStatus | FailureKind::InBand | FailureKind::Aborted)
        )
    });
    let confidence =
        if said_so || told.is_some() { Confidence::Confirmed } else { Confidence::Likely };
    let says = said!(
        "{share:.1} % of the requests failed, most of them {kind}",
        "{share:.1} % 的请求失败，最多的类型是 {kind}",
        share = 100.0 * rate,
        kind = kind,
    );
    Some(Case::new(confidence, 0.4 + rate, says, evidence))
}
