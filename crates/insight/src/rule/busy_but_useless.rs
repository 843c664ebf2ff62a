//! E2: the accelerator is busy all the time and does little.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "busy_but_useless",
    code: "E2",
    class: Class::Host,
    title: text("busy is not useful here", "忙碌但低效"),
    symptom: text(
        "GPU utilisation above 90 % while steps take more than twice their bound",
        "GPU 利用率高于 90 %，步长却超过下界两倍",
    ),
    required: text("MFU and MBU both low", "MFU 与 MBU 都低"),
    check: text(
        "step over bound stays above 2 at another batch size",
        "换一个批大小后步长与下界之比仍大于 2",
    ),
    command: "goodput probe {target} --only ladder --max-concurrency 64",
    advice: &[Advice {
        text: text(
            "look at communication, launches and expert balance, in that order",
            "依次检查通信、内核启动与专家均衡",
        ),
        flags: &[],
    }],
    improves: &["mbu", "step_over_bound"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let busy = view.signal(Signal::GpuBusy).filter(|busy| *busy >= 0.9)?;
    let (bounds, mixture) = (view.bounds?, view.mixture?);
    let times = mixture.base_ms / bounds.step_ms;
    if times < 2.0 || mixture.together > 0.2 {
        return None;
    }
    let mut evidence = vec![
        server(said!("GPU utilisation", "GPU 利用率"), busy, ""),
        client(said!("undisturbed step", "正常步长"), mixture.base_ms, "ms"),
        bound(said!("its bound", "其下界"), bounds.step_ms, "ms"),
    ];
    for (signal, what) in [
        (Signal::TensorActive, said!("matrix units active", "张量单元活跃")),
        (Signal::DramActive, said!("memory active", "显存活跃")),
    ] {
        evidence.extend(view.signal(signal).map(|share| server(what, share, "")));
    }
    let idle = [Signal::TensorActive, Signal::DramActive]
        .iter()
        .all(|signal| view.signal(*signal).is_some_and(|share| share < 0.4));
    let confidence = if idle { Confidence::Confirmed } else { Confidence::Likely };
    let says = said!(
        "some kernel runs {busy:.0} % of the time, and steps take {times:.1} times their bound",
        "{busy:.0} % 的时间有内核在运行，步长却为下界的 {times:.1} 倍",
        busy = 100.0 * busy,
        times = times,
    );
    Some(Case::new(confidence, 0.5 * (1.0 - 1.0 / times), says, evidence))
}
