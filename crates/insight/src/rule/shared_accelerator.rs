//! H3: the accelerator works while the engine has nothing to do.

use measure::At;
use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, server, signs, text, told};
use crate::view::{View, mean};

pub(super) static RULE: Rule = Rule {
    id: "shared_accelerator",
    code: "H3",
    class: Class::Host,
    title: text("something else uses the accelerator", "加速器被其他任务占用"),
    symptom: text("slow periods without a reason in the load", "出现与负载无关的慢时段"),
    required: text(
        "the accelerator busy for 30 % or more of the time in which no request runs or waits",
        "没有请求运行或等待时，加速器仍有 30 % 以上的时间忙碌",
    ),
    check: text(
        "with no other process on the accelerator it is idle then",
        "独占加速器时，空闲期应不忙",
    ),
    command: "goodput bench {target} -c 1 -n 20",
    advice: &[Advice {
        text: text(
            "give the engine accelerators of its own, or a partition (MIG) to each",
            "让引擎独占加速器，或用 MIG 分区",
        ),
        flags: &[],
    }],
    improves: &["tpot_ms", "ttft_ms"],
    seen_live: false,
    judge,
};

/// Scrapes below which nothing is said.
const FEWEST: usize = 3;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let running = signals.series.get(&Signal::Running)?;
    let waiting = signals.series.get(&Signal::QueueDepth);
    let busy = signals.series.get(&Signal::GpuBusy)?;
    let nobody = |at: &At| {
        let none = |series: &[(At, f64)]| last(series, at).is_none_or(|count| count == 0.0);
        none(running) && waiting.is_none_or(|waiting| none(waiting))
    };
    // Idle at two scrapes in a row: what a device tells is a mean over some time.
    let idle: Vec<At> = running
        .windows(2)
        .filter(|pair| nobody(&pair[0].0) && nobody(&pair[1].0))
        .map(|pair| pair[1].0)
        .collect();
    let then: Vec<f64> = idle.iter().filter_map(|at| last(busy, at)).collect();
    let share = mean(then.iter().copied()).filter(|share| *share >= 0.3)?;
    if then.len() < FEWEST {
        return None;
    }
    let mut evidence = vec![
        server(said!("busy while no request is there", "无请求时的忙碌比例"), share, ""),
        server(said!("scrapes at which none was there", "无请求的采样次数"), then.len() as f64, ""),
    ];
    evidence.extend(told(view, Signal::GpuBusy));
    let confidence = if share >= 0.5 { Confidence::Likely } else { Confidence::Possible };
    let missing = said!(
        "the processes on the accelerator (nvidia-smi): other engines behind the same address would look alike",
        "加速器上的进程（nvidia-smi）：同一地址后的其他引擎表现相同"
    );
    let says = said!(
        "the accelerator is busy {share:.0} % of the time in which the engine has no request",
        "引擎没有请求时，加速器仍有 {share:.0} % 的时间忙碌",
        share = 100.0 * share,
    );
    let part = signs::explains(view, 0.4 * share, 0.5 * share, 0.5 * share);
    Some(Case::new(confidence, part, says, evidence).missing([missing]))
}

/// The last value at or before an instant.
fn last(series: &[(At, f64)], at: &At) -> Option<f64> {
    series.iter().rev().find(|(when, _)| when <= at).map(|(_, value)| *value)
}
