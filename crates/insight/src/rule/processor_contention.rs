//! H2: steps are slow whenever threads wait for a processor.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;
use measure::{At, quantile};

use super::{Advice, Case, Rule, client, server, signs, text, told};
use crate::fit;
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "processor_contention",
    code: "H2",
    class: Class::Host,
    title: text("the engine's threads wait for a processor", "引擎线程争抢 CPU"),
    symptom: text(
        "steps are slow in some parts of the run and quick in others at the same load",
        "同样负载下，某些时段的步长明显更慢",
    ),
    required: text(
        "the time that threads wait for a processor goes up and down with the step",
        "线程等待 CPU 的时间与步长同升同降",
    ),
    check: text(
        "pinned to processors of the accelerators' NUMA node the spread vanishes",
        "绑定到加速器所在 NUMA 节点的 CPU 后波动消失",
    ),
    command: "for s in 1 2 3; do goodput bench {target} --seed $s; done",
    advice: &[
        Advice {
            text: text(
                "pin processes to the NUMA node of their accelerators",
                "将进程绑定到加速器所在 NUMA 节点",
            ),
            flags: &[("vllm", "--numa-bind"), ("sglang", "--numa-node")],
        },
        Advice {
            text: text(
                "give the container as many processors as it asks for, and fewer API processes",
                "容器的 CPU requests 与 limits 一致；减少 API 进程",
            ),
            flags: &[("vllm", "--api-server-count")],
        },
    ],
    improves: &["icl_ms", "tpot_ms"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let mean = signals.rate(Signal::CpuPressure).filter(|rate| *rate >= 0.03)?;
    let series = signals.series.get(&Signal::CpuPressure)?;
    let pairs: Vec<(f64, f64)> =
        view.steps.iter().filter_map(|(at_s, ms)| Some((at(series, *at_s)?, *ms))).collect();
    if pairs.len() < 8 {
        return None;
    }
    let together = fit::correlation(&pairs).filter(|r| *r >= 0.5)?;
    let mut steps: Vec<f64> = pairs.iter().map(|(_, ms)| *ms).collect();
    steps.sort_by(f64::total_cmp);
    let (low, high) = (quantile::linear(&steps, 0.1)?, quantile::linear(&steps, 0.9)?);
    let times = high / low.max(1e-6);
    if times < 1.15 {
        return None;
    }
    let mut evidence = vec![
        server(said!("share of the time that threads wait", "线程等待 CPU 的时间占比"), mean, ""),
        server(said!("correlation with the step", "与步长的相关系数"), together, ""),
        client(said!("slow parts of the run over quick ones", "慢时段与快时段步长之比"), times, ""),
    ];
    evidence.extend(told(view, Signal::HostLoad));
    evidence.extend(told(view, Signal::HostBusy));
    let confidence = if together >= 0.7 { Confidence::Likely } else { Confidence::Possible };
    let missing = said!(
        "the same run with the engine pinned: both may follow a third thing",
        "绑核后的同样压测：二者也可能同受第三者影响"
    );
    let says = said!(
        "steps are {times:.1} times as long in slow parts of the run, together with the time that \
         threads wait for a processor (correlation {r:.2})",
        "慢时段的步长是快时段的 {times:.1} 倍，与线程等待 CPU 的时间同步变化（相关系数 {r:.2}）",
        times = times,
        r = together,
    );
    let part = 1.0 - 1.0 / times;
    let share = signs::explains(view, 0.5 * part, part, part);
    Some(Case::new(confidence, share, says, evidence).missing([missing]))
}

/// The value of a series at an instant: rates stand for the time before their
/// scrape.
fn at(series: &[(At, f64)], at_s: f64) -> Option<f64> {
    let seconds = |at: &At| (*at - At::ZERO).s();
    series.iter().find(|(when, _)| seconds(when) >= at_s).map(|(_, value)| *value)
}
