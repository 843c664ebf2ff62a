//! D14: steps become slower over minutes while the clocks fall.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text, told};
use crate::fit;
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "slow_drift",
    code: "D14",
    class: Class::Host,
    title: text("steps become slower over minutes", "步长在数分钟内逐渐变慢"),
    symptom: text(
        "TPOT rises over minutes at the same load and lengths",
        "负载与长度不变，TPOT 在数分钟内持续上升",
    ),
    required: text(
        "the clock of the multiprocessors falls; heat or its throttle bits at the limit",
        "SM 时钟下降；温度或热降频位到顶",
    ),
    check: text("after a pause to cool down it is quick again", "停歇降温后恢复"),
    command: "goodput bench {target} --duration 15m",
    advice: &[
        Advice {
            text: text(
                "look at cooling, airflow and the power cap; compare at locked clocks",
                "检查散热、风道与功率上限；锁频后再比较",
            ),
            flags: &[],
        },
        Advice {
            text: text(
                "plan with the speed of the warm machine, not of its first minute",
                "按热稳态而不是第一分钟的速度做容量规划",
            ),
            flags: &[],
        },
    ],
    improves: &["tpot_ms"],
    seen_live: false,
    judge,
};

/// Bits of NVML for heat: hardware slowdown, software and hardware thermal. A
/// power cap alone is no finding.
const HEAT: u32 = 0x08 | 0x20 | 0x40;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let clock = signals.gauge(Signal::Clock).filter(|clock| clock.last < 0.95 * clock.first)?;
    let trend = fit::trend(&view.steps)?;
    let growth = trend.change() / trend.middle.max(1e-6);
    // More in flight makes longer steps by itself.
    let is_load = view.flow.in_flight.is_some_and(|trend| trend.grows(1.0));
    if trend.p > 0.01 || growth < 0.05 || is_load {
        return None;
    }
    let bits = view.most(Signal::ThrottleBits).map_or(0, |bits| bits as u32);
    let hot_s = view.signal(Signal::ThermalViolation).unwrap_or(0.0);
    let warmer = signals
        .gauge(Signal::Temperature)
        .filter(|taken| taken.last >= taken.first + 5.0)
        .map(|taken| taken.last - taken.first);
    let mut evidence = vec![
        client(
            said!("steps at the end over the median, more by", "末段步长较中位数增加"),
            growth,
            "",
        ),
        client(said!("probability of such an order by chance", "偶然出现的概率"), trend.p, ""),
        server(
            said!("clock at the end over the beginning", "末段与起始时钟之比"),
            clock.last / clock.first,
            "",
        ),
    ];
    evidence.extend(warmer.map(|by| server(said!("warmer by", "升温"), by, "°C")));
    evidence.extend(told(view, Signal::ThrottleBits));
    evidence.extend(told(view, Signal::ThermalViolation));
    let is_heat = bits & HEAT != 0 || hot_s > 0.0;
    let confidence = if is_heat { Confidence::Confirmed } else { Confidence::Likely };
    let missing = (!is_heat).then(|| {
        said!(
            "the reason for the lower clock: throttle reasons of a DCGM exporter, or --nvml",
            "降频原因：DCGM exporter 的 throttle reasons，或 --nvml"
        )
    });
    let says = said!(
        "steps become {growth:.0} % longer over {length:.0} s while the clock falls by {fall:.0} %",
        "{length:.0} s 内步长增加 {growth:.0} %，同时时钟下降 {fall:.0} %",
        growth = 100.0 * growth,
        length = trend.length,
        fall = 100.0 * (1.0 - clock.last / clock.first),
    );
    let share = signs::explains(view, 0.5 * growth, growth, 0.3 * growth);
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}
