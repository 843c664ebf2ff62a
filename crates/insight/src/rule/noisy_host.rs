//! V9: something else uses the processors of the serving host.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "noisy_host",
    code: "V9",
    class: Class::Host,
    title: text("the serving host is overcommitted", "服务主机超载"),
    symptom: text(
        "figures differ between equal runs by more than the effect looked for",
        "相同压测之间的差异超过要观察的效应",
    ),
    required: text("more runnable threads than processors", "可运行线程多于 CPU 核数"),
    check: text("three runs in turn agree within 5 %", "三次轮换压测结果相差在 5 % 以内"),
    command: "goodput bench {target} --seed 2",
    advice: &[Advice {
        text: text("isolate the server, pin it to processors", "隔离服务并绑核"),
        flags: &[("vllm", "--numa-bind"), ("sglang", "--numa-node")],
    }],
    improves: &["icl_ms", "ttft_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let load = view.signal(Signal::HostLoad).unwrap_or(0.0);
    let busy = view.signal(Signal::HostBusy).unwrap_or(0.0);
    let pressure = view.signals()?.rate(Signal::CpuPressure).unwrap_or(0.0);
    if load < 1.1 && pressure < 0.2 && busy < 0.95 {
        return None;
    }
    let tail = signs::gap_tail(view).unwrap_or(1.0);
    let evidence = vec![
        server(said!("runnable threads over processors", "可运行线程与核数之比"), load, ""),
        server(said!("processor time in use", "CPU 使用率"), busy, ""),
        server(
            said!(
                "share of the time that threads waited for a processor",
                "线程等待 CPU 的时间占比"
            ),
            pressure,
            "",
        ),
        client(said!("P99 of gaps over the undisturbed one", "P99 间隔与正常间隔之比"), tail, ""),
    ];
    let says = said!(
        "{load:.1} runnable threads a processor, and threads waited {pressure:.0} % of the time",
        "每核可运行线程 {load:.1} 个，线程有 {pressure:.0} % 的时间在等待 CPU",
        load = load,
        pressure = 100.0 * pressure,
    );
    let confidence = if tail > 3.0 { Confidence::Likely } else { Confidence::Possible };
    let missing = said!(
        "repeats of the same run: without them noise has no size",
        "同一压测的重复：没有重复就无法衡量噪声"
    );
    Some(
        Case::new(confidence, signs::explains(view, 0.2, 0.3, 0.6), says, evidence)
            .missing([missing]),
    )
}
