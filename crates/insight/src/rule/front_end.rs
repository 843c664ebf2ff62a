//! P8: the server's front end takes a large part of TTFT.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "front_end",
    code: "P8",
    class: Class::Host,
    title: text("the server's front end is slow", "服务端前端耗时过长"),
    symptom: text(
        "TTFT grows with the load or the prompt's length, but not with the tokens computed",
        "TTFT 随负载或输入长度增长，却与计算的 token 数无关",
    ),
    required: text(
        "more than a quarter of TTFT between arrival and queue",
        "从到达到入队的时间超过 TTFT 的四分之一",
    ),
    check: text("GET /v1/models under load is slow too", "压测期间 GET /v1/models 同样变慢"),
    command: "goodput probe {target} --only transport,ladder",
    advice: &[
        Advice {
            text: text("run more API or tokeniser processes", "增加 API 或分词进程"),
            flags: &[
                ("vllm", "--api-server-count"),
                ("sglang", "--tokenizer-worker-num"),
                ("llama_cpp", "--threads-http"),
            ],
        },
        Advice {
            text: text(
                "keep the processes on the accelerator's own node",
                "将进程绑定到加速器所在 NUMA 节点",
            ),
            flags: &[("vllm", "--numa-bind"), ("sglang", "--numa-node")],
        },
    ],
    improves: &["ttft_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, stages: &Stages) -> Option<Case> {
    let stage = signs::stage(stages, "front_end")?;
    let ttft_ms = view.ttft_ms().filter(|ms| *ms > 0.0)?;
    let of_ttft = stage.mean_ms / ttft_ms;
    if of_ttft < 0.25 || stage.mean_ms < 10.0 {
        return None;
    }
    let mut evidence = vec![
        server(said!("front end", "前端耗时"), stage.mean_ms, "ms"),
        server(said!("its share of TTFT", "占 TTFT 比例"), of_ttft, ""),
    ];
    evidence.extend(view.queue_ms().map(|ms| server(said!("queue time", "排队时间"), ms, "ms")));
    evidence
        .extend(view.prefill_ms().map(|ms| server(said!("prefill time", "预填充时间"), ms, "ms")));
    let cpu = view.signals().and_then(|signals| signals.rate(Signal::HostCpu));
    evidence.extend(cpu.map(|cores| {
        server(said!("processors that the front end uses", "前端占用的 CPU 核数"), cores, "")
    }));
    evidence
        .extend(view.round_trip_ms().map(|ms| client(said!("round trip", "往返时延"), ms, "ms")));
    let confidence = match (stage.is_residual, stage.mean_ms > 20.0) {
        (false, true) => Confidence::Confirmed,
        (false, false) => Confidence::Likely,
        (true, _) => Confidence::Likely,
    };
    let says = said!(
        "{ms:.0} ms, {share:.0} % of TTFT, pass between a request's arrival at the server and its queue",
        "请求到达服务端至入队之间耗时 {ms:.0} ms，占 TTFT 的 {share:.0} %",
        ms = stage.mean_ms,
        share = 100.0 * of_ttft,
    );
    let share = signs::explains(view, of_ttft, 0.0, 0.0);
    Some(Case::new(confidence, share, says, evidence))
}
