//! N4: connections are refused at some number of them.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;
use measure::{FailureKind, NotSentKind, Outcome, Record};

use super::{Advice, Case, Rule, client, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "connection_limit",
    code: "N4",
    class: Class::Network,
    title: text("connections come to a limit", "连接数达到上限"),
    symptom: text(
        "connections fail while others go on, at a round number of users (100, 1024)",
        "并发到整数（100、1024 等）时连接失败，其余请求正常",
    ),
    required: text("connections dropped because a listen queue was full", "监听队列溢出丢弃连接"),
    check: text(
        "with a higher limit of client, proxy or server it comes at that number",
        "放宽客户端、代理或服务端上限后，拐点随之移动",
    ),
    command: "for c in 64 256 1024; do goodput bench {target} -c $c -n $((4*c)) --osl 16; done",
    advice: &[
        Advice {
            text: text(
                "raise open files (ulimit -n), the listen queue (somaxconn) and the proxy's limit of connections",
                "提高 ulimit -n、somaxconn 与代理的连接上限",
            ),
            flags: &[],
        },
        Advice {
            text: text("more processes that accept connections", "增加接受连接的进程"),
            flags: &[("vllm", "--api-server-count")],
        },
    ],
    improves: &["attainment", "goodput_req_s"],
    seen_live: false,
    judge,
};

/// True of a request that got no connection.
fn is_refused(record: &Record) -> bool {
    matches!(
        record.outcome,
        Outcome::Failed(FailureKind::Connect)
            | Outcome::NotSent(NotSentKind::PortExhausted | NotSentKind::ClientResource)
    )
}

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let all = view.timed.iter().zip(&view.courses);
    let refused: Vec<f64> = all
        .filter(|(request, _)| is_refused(request.record))
        .map(|(_, course)| course.intended_s)
        .collect();
    // A server that is gone answers nobody afterwards.
    let first = refused.iter().copied().reduce(f64::min);
    let goes_on = first.is_some_and(|first| view.seen.iter().any(|seen| seen.sent_s > first));
    let refused = refused.len();
    let share = refused as f64 / view.records.len().max(1) as f64;
    let dropped = view.signal(Signal::ListenDrops).filter(|count| *count >= 1.0);
    let is_seen = goes_on && share >= 0.01;
    let confidence = match (dropped, is_seen) {
        (Some(_), true) => Confidence::Confirmed,
        (Some(_), false) | (None, true) => Confidence::Likely,
        (None, false) => return None,
    };
    let most = f64::from(view.summary.load.max_in_flight);
    let mut evidence = vec![
        client(said!("share of requests without a connection", "未建立连接的请求比例"), share, ""),
        client(said!("most in flight", "最大在途请求数"), most, "requests"),
    ];
    evidence.extend(dropped.and_then(|_| told(view, Signal::ListenDrops)));
    let missing = dropped.is_none().then(|| {
        said!(
            "connections that the serving host dropped: a node exporter's metrics as a --metrics-url",
            "服务主机丢弃的连接数：用 --metrics-url 指向 node exporter"
        )
    });
    let says = said!(
        "{refused} requests got no connection with at most {most:.0} in flight, and the host dropped \
         {dropped:.0}",
        "最多 {most:.0} 个在途时，有 {refused} 个请求未建立连接，主机丢弃了 {dropped:.0} 个",
        refused = refused,
        most = most,
        dropped = dropped.unwrap_or(0.0),
    );
    Some(Case::new(confidence, 0.3 + share, says, evidence).missing(missing))
}
