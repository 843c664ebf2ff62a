//! D13: tokens leave in larger pieces than they are made.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "output_path",
    code: "D13",
    class: Class::Network,
    title: text("tokens leave in larger pieces than they are made", "输出以多 token 为一块发出"),
    symptom: text(
        "more than one token an event, gaps of that many steps; TPOT is fine",
        "每个事件多个 token，间隔为多步之和；TPOT 正常",
    ),
    required: text("the server's gaps between outputs are shorter", "服务端输出间隔更短"),
    check: text(
        "read from the engine itself, without what lies between",
        "绕过中间层直接读取引擎输出",
    ),
    command: "goodput bench {target}",
    advice: &[Advice {
        text: text("send each token as it is made", "逐 token 发送"),
        flags: &[("vllm", "--stream-interval 1"), ("sglang", "--stream-interval 1")],
    }],
    improves: &["icl_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let per_chunk = view.figure("tokens_per_chunk", "mean").filter(|tokens| *tokens >= 1.5)?;
    let mixture = view.mixture.filter(|mixture| mixture.together < 0.2)?;
    let per_step = view.tokens_per_step();
    if per_chunk < 1.4 * per_step {
        return None;
    }
    let told = view.server_ms(Signal::ServerItl).or_else(|| view.server_ms(Signal::ServerTpot));
    let smooth = told.is_some_and(|ms| mixture.delivery_ms > 1.5 * ms);
    let mut evidence = vec![
        client(said!("tokens an event", "每事件 token 数"), per_chunk, ""),
        client(said!("gap between events", "事件间隔"), mixture.delivery_ms, "ms"),
    ];
    evidence.extend(
        told.map(|ms| {
            server(said!("gap between outputs at the server", "服务端输出间隔"), ms, "ms")
        }),
    );
    let confidence = match (told, smooth) {
        (Some(_), true) => Confidence::Confirmed,
        (Some(_), false) => Confidence::Likely,
        (None, _) => Confidence::Possible,
    };
    let says = said!(
        "an event carries {tokens:.1} tokens and they come {gap:.0} ms apart",
        "每个事件携带 {tokens:.1} 个 token，间隔 {gap:.0} ms",
        tokens = per_chunk,
        gap = mixture.delivery_ms,
    );
    Some(Case::new(confidence, 0.3, says, evidence))
}
