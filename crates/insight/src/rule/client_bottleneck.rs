//! V2: the load generator is late, so that the figures are partly its own.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "client_bottleneck",
    code: "V2",
    class: Class::Client,
    title: text("the load generator is the bottleneck", "压测客户端是瓶颈"),
    symptom: text(
        "requests leave later than planned, by more than a twentieth of TTFT",
        "请求晚于计划发出，延误超过 TTFT 的二十分之一",
    ),
    required: text(
        "the server's own TTFT is flat while the client's grows",
        "服务端 TTFT 平稳而客户端 TTFT 上升",
    ),
    check: text(
        "the same load from two processes or machines gives better figures",
        "用两个进程或两台机器施加同样负载，数字变好",
    ),
    command: "goodput selftest",
    advice: &[Advice {
        text: text(
            "give the generator more threads or a machine of its own",
            "为客户端增加线程，或使用独立机器",
        ),
        flags: &[],
    }],
    improves: &["lateness_us", "client_wait_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let [_, late_us, most_us] = view.summary.validity.lateness_us?;
    let late = view.lateness_share()?;
    if late_us < 2_000.0 || late < 0.1 {
        return None;
    }
    let wait_ms = view.mean(|seen| Some(seen.wait_ms))?;
    let ttft_ms = view.ttft_ms()?;
    let of_ttft = wait_ms / (wait_ms + ttft_ms);
    if of_ttft < 0.03 {
        return None;
    }
    let busiest = view.summary.facts.instrument.busiest_thread;
    let lag = view.summary.validity.client_lag_us.map(|[_, p99, _]| p99);
    let mut evidence = vec![
        client(said!("send lateness, P99", "发送延误 P99"), late_us / 1e3, "ms"),
        client(said!("send lateness, most", "发送延误最大值"), most_us / 1e3, "ms"),
        client(said!("mean wait in the client", "客户端平均等待"), wait_ms, "ms"),
    ];
    evidence
        .extend(busiest.map(|share| client(said!("busiest thread", "最忙线程占用"), share, "")));
    evidence.extend(lag.map(|us| client(said!("read lag, P99", "读取延迟 P99"), us / 1e3, "ms")));
    let served = view.server_ms(measure::signal::Signal::ServerTtft);
    evidence
        .extend(served.map(|ms| server(said!("the server's own TTFT", "服务端 TTFT"), ms, "ms")));
    let is_busy = busiest.is_some_and(|share| share > 0.8) || lag.is_some_and(|us| us > 500.0);
    let confidence = match (is_busy, served) {
        (true, Some(_)) => Confidence::Confirmed,
        (true, None) | (false, Some(_)) => Confidence::Likely,
        (false, None) => Confidence::Possible,
    };
    let says = said!(
        "sends are {late:.1} ms late at P99, and {share:.0} % of the mean TTFT is the client's own wait",
        "发送延误 P99 为 {late:.1} ms，平均 TTFT 的 {share:.0} % 是客户端自身的等待",
        late = late_us / 1e3,
        share = 100.0 * of_ttft,
    );
    let missing = served.is_none().then(|| {
        said!("the server's own TTFT, to see that it is flat", "服务端 TTFT，用于确认其平稳")
    });
    Some(Case::new(confidence, of_ttft.max(0.4), says, evidence).missing(missing))
}
