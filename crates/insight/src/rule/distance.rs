//! N1: client and server are far apart.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "distance",
    code: "N1",
    class: Class::Network,
    title: text("the way to the server takes a large part of TTFT", "网络往返占 TTFT 的大部分"),
    symptom: text(
        "a constant part of TTFT that depends neither on length nor on load",
        "TTFT 中有与长度和负载无关的固定部分",
    ),
    required: text("the server's own TTFT is smaller by as much", "服务端自身 TTFT 小同样多"),
    check: text(
        "the time of a handshake is that part; a second request on the connection is quicker",
        "握手时间即为该部分；同连接的第二个请求更快",
    ),
    command: "goodput probe {target} --only transport,baseline",
    advice: &[
        Advice {
            text: text(
                "serve nearer to the users, or end TLS near them",
                "就近部署，或在边缘终止 TLS",
            ),
            flags: &[],
        },
        Advice { text: text("keep connections open", "保持长连接"), flags: &[] },
    ],
    improves: &["ttft_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, stages: &Stages) -> Option<Case> {
    let ttft_ms = view.ttft_ms().filter(|ms| *ms > 0.0)?;
    let trip = view.round_trip_ms();
    let stage = signs::stage(stages, "network");
    let ms = trip.or(stage.map(|stage| stage.mean_ms))?;
    let of_ttft = ms / ttft_ms;
    let wrong = view.wrong.ttft >= 1.0;
    let least = if wrong { 0.1 } else { 0.2 };
    if of_ttft < least || ms < 15.0 {
        return None;
    }
    let outside = view.outside_ms();
    let mut evidence = Vec::new();
    evidence.extend(trip.map(|ms| client(said!("round trip", "往返时延"), ms, "ms")));
    evidence.extend(outside.map(|ms| {
        server(said!("TTFT less the server's own", "客户端与服务端 TTFT 之差"), ms, "ms")
    }));
    evidence.push(client(said!("share of TTFT", "占 TTFT 比例"), of_ttft, ""));
    let agrees = trip
        .zip(outside)
        .is_some_and(|(trip, outside)| (0.7 * trip - 2.0..2.0 * trip + 10.0).contains(&outside));
    let confidence = match (trip, outside) {
        (Some(_), Some(_)) if agrees => Confidence::Confirmed,
        (Some(_), _) => Confidence::Likely,
        _ => Confidence::Possible,
    };
    let says = said!(
        "a round trip takes {ms:.0} ms, {share:.0} % of TTFT",
        "一次往返需 {ms:.0} ms，占 TTFT 的 {share:.0} %",
        ms = ms,
        share = 100.0 * of_ttft,
    );
    let missing = trip.is_none().then(|| {
        said!(
            "a handshake, which would tell the round trip by itself",
            "一次握手，用于直接测得往返时延"
        )
    });
    let share = signs::explains(view, of_ttft, 0.0, 0.0).max(0.5 * of_ttft);
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}
