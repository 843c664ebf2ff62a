//! N2: something between server and client holds tokens back.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "proxy_buffering",
    code: "N2",
    class: Class::Network,
    title: text("something between holds tokens back", "中间代理缓冲了输出"),
    symptom: text(
        "tokens come in bursts of the same size or distance, or all at the end",
        "token 成批到达（大小或间隔固定），或全部在结尾到达",
    ),
    required: text("the server's gaps and its TTFT are normal", "服务端间隔与 TTFT 正常"),
    check: text("without the proxy tokens come one by one", "绕过代理后 token 逐个到达"),
    command: "goodput bench {target}",
    advice: &[Advice {
        text: text(
            "switch buffering and compression off for event streams (proxy_buffering off)",
            "对事件流关闭缓冲与压缩（proxy_buffering off）",
        ),
        flags: &[],
    }],
    improves: &["icl_ms", "ttft_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let long: Vec<_> =
        view.seen.iter().filter(|seen| seen.output.is_some_and(|n| n >= 8.0)).collect();
    let whole = long.iter().filter(|seen| {
        seen.ttft_ms.zip(seen.e2el_ms).is_some_and(|(ttft, e2el)| e2el - ttft < 0.02 * e2el)
            || !view.timed[seen.place].is_streamed()
    });
    let at_once = if long.len() < 5 { 0.0 } else { whole.count() as f64 / long.len() as f64 };
    let together = view.mixture.map_or(0.0, |mixture| mixture.together);
    if at_once < 0.5 && together < 0.3 {
        return None;
    }
    let told = view.server_ms(Signal::ServerItl).or_else(|| view.server_ms(Signal::ServerTpot));
    let delivery = view.mixture.map(|mixture| mixture.delivery_ms);
    let outside = view.outside_ms();
    let mut evidence = vec![
        client(said!("answers that came at one instant", "一次性到达的回答比例"), at_once, ""),
        client(
            said!("tokens that came with the one before", "与前一 token 同时到达的比例"),
            together,
            "",
        ),
    ];
    evidence.extend(delivery.map(|ms| {
        client(said!("between deliveries of a stream", "同一流两次交付的间隔"), ms, "ms")
    }));
    evidence.extend(
        told.map(|ms| {
            server(said!("gap between outputs at the server", "服务端输出间隔"), ms, "ms")
        }),
    );
    evidence.extend(outside.map(|ms| {
        server(said!("TTFT less the server's own", "客户端与服务端 TTFT 之差"), ms, "ms")
    }));
    let ttft_ms = view.ttft_ms().unwrap_or(0.0);
    let smooth = told.zip(delivery).is_some_and(|(told, delivery)| delivery > 1.8 * told);
    let late = outside.is_some_and(|outside| outside > 0.4 * ttft_ms);
    let confidence = match (told.is_some() || outside.is_some(), smooth || (at_once >= 0.5 && late))
    {
        (true, true) => Confidence::Confirmed,
        (true, false) => Confidence::Likely,
        (false, _) => Confidence::Possible,
    };
    let says = if at_once >= 0.5 {
        said!(
            "{share:.0} % of the answers came at one instant, at their end",
            "{share:.0} % 的回答在结尾一次性到达",
            share = 100.0 * at_once,
        )
    } else {
        said!(
            "{share:.0} % of the tokens came with the one before; a stream is delivered every {ms:.0} ms",
            "{share:.0} % 的 token 与前一个同时到达；每条流每 {ms:.0} ms 交付一次",
            share = 100.0 * together,
            ms = delivery.unwrap_or(0.0),
        )
    };
    let of_ttft = outside.map_or(0.0, |outside| (outside / ttft_ms.max(1e-6)).clamp(0.0, 1.0));
    let share = signs::explains(view, of_ttft, 0.0, 1.0).max(0.6 * at_once.max(together));
    Some(Case::new(confidence, share, says, evidence))
}
