//! N3: packets are lost, and streams stall until they are sent again.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "packet_loss",
    code: "N3",
    class: Class::Network,
    title: text("packets are lost on the way", "网络丢包"),
    symptom: text(
        "stalls of some 200 ms and more, in any stream at any time",
        "任意流在任意时刻出现约 200 ms 以上的停顿",
    ),
    required: text("one TCP segment in two hundred or more sent again", "TCP 重传率不低于千分之五"),
    check: text("a client on the serving host has no such stalls", "在服务主机上压测则无此停顿"),
    command: "goodput bench {target} -c 4 -n 40",
    advice: &[Advice {
        text: text(
            "mend the link; pace what is sent; keep clients and server on one network",
            "修复链路；启用发送整形；让客户端与服务处于同一网络",
        ),
        flags: &[],
    }],
    improves: &["icl_ms", "ttft_ms"],
    seen_live: false,
    judge,
};

/// The least time after which TCP sends again, ms: Linux's.
const TIMEOUT_MS: f64 = 200.0;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let again = signals.increase(Signal::Retransmits).filter(|count| *count >= 20.0)?;
    let sent = signals.increase(Signal::SegmentsSent).filter(|count| *count > 0.0)?;
    let rate = again / sent;
    if rate < 0.005 {
        return None;
    }
    let longest_ms = view.figure("icl_ms", "max");
    let stalls = view.mixture.map_or(0.0, |mixture| mixture.stalled.share);
    let mut evidence = vec![
        server(said!("share of segments sent again", "重传比例"), rate, ""),
        client(said!("share of gaps that are stalls", "停顿占全部间隔的比例"), stalls, ""),
    ];
    evidence.extend(told(view, Signal::Retransmits));
    evidence.extend(longest_ms.map(|ms| client(said!("longest gap", "最长间隔"), ms, "ms")));
    let stalls_so = longest_ms.is_some_and(|ms| ms >= TIMEOUT_MS) && stalls > 0.0;
    let confidence = if stalls_so { Confidence::Likely } else { Confidence::Possible };
    let missing = said!(
        "the loss between this client and the server: the count is of all that the host sends",
        "本压测端与服务端之间的丢包：该计数是整台主机的"
    );
    let says = said!(
        "{rate:.1} % of the TCP segments were sent again, and the longest gap is {longest:.0} ms",
        "{rate:.1} % 的 TCP 段被重传，最长间隔 {longest:.0} ms",
        rate = 100.0 * rate,
        longest = longest_ms.unwrap_or(0.0),
    );
    let part = view.mixture.map_or(0.1, |mixture| mixture.stalled.excess);
    let share = signs::explains(view, 0.1, part, part.max(0.2));
    Some(Case::new(confidence, share, says, evidence).missing([missing]))
}
