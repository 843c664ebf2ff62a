//! Q9: requests wait in front of the engine, in a gateway or a connection pool.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "upstream_queue",
    code: "Q9",
    class: Class::Queueing,
    title: text("requests wait in front of the engine", "请求在引擎之前排队"),
    symptom: text(
        "many more requests are in flight than the engine knows of, and TTFT is far above the server's own",
        "在途请求远多于引擎所知，TTFT 远高于服务端自身的 TTFT",
    ),
    required: text(
        "running and waiting together below half of what is in flight; a gateway's own time where it tells one",
        "运行与等待之和不到在途数的一半；网关若给出自身耗时则一并核对",
    ),
    check: text(
        "sent straight to the engine, past the gateway, the same load has the server's TTFT",
        "绕过网关直连引擎，同样负载下 TTFT 回到服务端的值",
    ),
    command: "goodput bench {target} -c 1 -n 20 --isl 1 --osl 1",
    advice: &[
        Advice {
            text: text(
                "raise the limits of gateway, ingress and connection pool, or put more of them",
                "放宽网关、入口与连接池的上限，或增加其数量",
            ),
            flags: &[],
        },
        Advice {
            text: text("more processes of the API server", "增加 API 进程"),
            flags: &[("vllm", "--api-server-count"), ("sglang", "--tokenizer-worker-num")],
        },
    ],
    improves: &["ttft_ms", "attainment"],
    seen_live: false,
    judge,
};

/// Round trips that a request may need before its first byte arrives: name,
/// connection, encryption.
const TRIPS: f64 = 3.0;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let known = signals.gauge(Signal::Running)?.mean + signals.gauge(Signal::QueueDepth)?.mean;
    let in_flight = view.in_flight()?;
    let (ttft_ms, outside_ms) = (view.ttft_ms().filter(|ms| *ms > 0.0)?, view.outside_ms()?);
    let gateway_ms = view.server_ms(Signal::GatewayTime);
    let trip_ms = view.round_trip_ms();
    // Distance alone would look alike: it has to be known, or the gateway tells.
    let upstream_ms = gateway_ms.or(trip_ms.map(|trip| outside_ms - TRIPS * trip))?;
    let of_ttft = upstream_ms / ttft_ms;
    if in_flight < 2.0 * known + 4.0 || of_ttft < 0.3 || upstream_ms < 20.0 {
        return None;
    }
    let mut evidence = vec![
        client(said!("requests in flight, mean", "平均在途请求数"), in_flight, "requests"),
        server(said!("running and waiting, mean", "平均运行与等待数之和"), known, "requests"),
        server(said!("TTFT less the server's own", "客户端与服务端 TTFT 之差"), outside_ms, "ms"),
    ];
    evidence.extend(trip_ms.map(|ms| client(said!("round trip", "往返时延"), ms, "ms")));
    evidence.extend(gateway_ms.map(|ms| server(said!("in the gateway", "网关耗时"), ms, "ms")));
    let confidence = if gateway_ms.is_some() { Confidence::Confirmed } else { Confidence::Likely };
    let missing = gateway_ms.is_none().then(|| {
        said!(
            "the gateway's own queue: its metrics as a second --metrics-url",
            "网关自身的队列：可再用一个 --metrics-url 指向网关指标"
        )
    });
    let says = said!(
        "{in_flight:.0} requests are in flight and the engine knows of {known:.0}: {ms:.0} ms, \
         {share:.0} % of TTFT, pass in front of it",
        "在途请求 {in_flight:.0} 个，引擎只知道 {known:.0} 个：引擎之前耗去 {ms:.0} ms，占 TTFT 的 {share:.0} %",
        in_flight = in_flight,
        known = known,
        ms = upstream_ms,
        share = 100.0 * of_ttft,
    );
    let share = signs::explains(view, of_ttft, 0.0, 0.0);
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}
