//! H1: the accelerators are slowed down, for heat or for power.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::{View, at_share, mean};

pub(super) static RULE: Rule = Rule {
    id: "throttled",
    code: "H1",
    class: Class::Host,
    title: text("the accelerators are slowed down", "加速器降频"),
    symptom: text(
        "steps and prompts become slower by the same factor at one instant, at the same load",
        "负载不变，步长与预填充在某一时刻以同样倍数变慢",
    ),
    required: text(
        "clocks below their most, throttle reasons, power or heat at the limit",
        "时钟低于上限，有降频原因，功耗或温度到顶",
    ),
    check: text("after a pause to cool down it is quick again", "停歇降温后恢复"),
    command: "goodput bench {target} --duration 15m",
    advice: &[
        Advice {
            text: text(
                "look at cooling, power cap and airflow; lock clocks to compare",
                "检查散热、功率上限与风道；锁频后再比较",
            ),
            flags: &[],
        },
        Advice {
            text: text("look for neighbours on the same accelerator", "检查同卡的其他任务"),
            flags: &[],
        },
    ],
    improves: &["tpot_ms", "ttft_ms"],
    seen_live: true,
    judge,
};

/// A stretch of the run that is slower than the rest.
struct Slower {
    from_s: f64,
    until_s: f64,
    times: f64,
}

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    if view.is_watched {
        return by_devices(view);
    }
    let slower = slower(view)?;
    let inside = |at_s: f64| (slower.from_s..slower.until_s).contains(&at_s);
    let rate = |within: bool| {
        let all = view.courses.iter().filter_map(|course| course.sent_s);
        let count = all.filter(|at_s| inside(*at_s) == within).count() as f64;
        let (first, last) = (view.seen.first()?.sent_s, view.seen.last()?.sent_s);
        let length = (slower.until_s.min(last) - slower.from_s).max(0.0);
        let length = if within { length } else { last - first - length };
        (length > 0.0).then(|| count / length)
    };
    let arrivals = rate(true)? / rate(false).filter(|rate| *rate > 0.0)?;
    if arrivals > 1.35 {
        return None;
    }
    let quick = |within: bool| {
        let times = view.seen.iter().filter(|seen| inside(seen.sent_s) == within);
        at_share(times.filter_map(|seen| seen.ttft_ms).collect(), 0.2)
    };
    let prompts = quick(true).zip(quick(false).filter(|ms| *ms > 0.0)).map(|(a, b)| a / b);
    let reasons = view.most(Signal::ThrottleBits).filter(|bits| *bits > 0.0);
    let held = [Signal::ThermalViolation, Signal::PowerViolation]
        .into_iter()
        .filter_map(|signal| view.signal(signal))
        .sum::<f64>();
    let clock = view.signals().and_then(|signals| signals.gauge(Signal::Clock));
    let dropped = clock.is_some_and(|clock| clock.min < 0.85 * clock.max);
    let is_told = dropped || held > 0.0;
    // Where ever more is under way, steps grow by that too.
    let grows = signs::grows(view);
    let mut evidence = vec![
        client(
            said!("step there over the step elsewhere", "该段步长与其余段之比"),
            slower.times,
            "",
        ),
        client(said!("from", "起"), slower.from_s, "s"),
        client(said!("until", "止"), slower.until_s, "s"),
        client(
            said!("arrivals there over arrivals elsewhere", "该段到达率与其余段之比"),
            arrivals,
            "",
        ),
    ];
    evidence.extend(prompts.map(|times| {
        client(said!("quick TTFT there over elsewhere", "该段较快 TTFT 与其余段之比"), times, "")
    }));
    evidence
        .extend(reasons.map(|bits| server(said!("throttle reasons", "降频原因位"), bits, "bits")));
    evidence.extend(clock.map(|clock| {
        server(
            said!("lowest clock over highest", "最低与最高时钟之比"),
            clock.min / clock.max.max(1.0),
            "",
        )
    }));
    let confidence = match (is_told, prompts.is_some_and(|times| times > 1.15)) {
        (true, _) => Confidence::Confirmed,
        (false, true) if view.signals().is_some() && !grows => Confidence::Likely,
        _ => Confidence::Possible,
    };
    let missing = clock.is_none().then(|| {
        said!(
            "clocks and throttle reasons of the accelerators: --metrics-url of a DCGM exporter, or --nvml",
            "加速器时钟与降频原因：用 --metrics-url 指向 DCGM exporter，或 --nvml"
        )
    });
    let says = said!(
        "from {from:.0} s to {until:.0} s steps take {times:.1} times as long as elsewhere, at \
         {arrivals:.1} times the arrivals",
        "从 {from:.0} s 到 {until:.0} s 步长为其余时间的 {times:.1} 倍，而到达率为 {arrivals:.1} 倍",
        from = slower.from_s,
        until = slower.until_s,
        times = slower.times,
        arrivals = arrivals,
    );
    let part = 1.0 - 1.0 / slower.times;
    let share = signs::explains(view, part, part, part).max(0.5);
    let share = if grows && !is_told { 0.7 * share } else { share };
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}

/// Reasons of NVML that hold a clock down for heat or for lack of supply: the
/// hardware's, heat by software and by hardware, the power brake. The power cap
/// alone is how many accelerators are run.
const HELD_DOWN: u64 = 0x8 | 0x20 | 0x40 | 0x80;

/// A server that is watched: what its accelerators say of themselves.
fn by_devices(view: &View<'_>) -> Option<Case> {
    let signals = view.signals()?;
    let hot = signals.rate(Signal::ThermalViolation).unwrap_or(0.0);
    let bits = view.most(Signal::ThrottleBits).unwrap_or(0.0);
    if hot < 0.05 && bits as u64 & HELD_DOWN == 0 {
        return None;
    }
    let clock = signals.gauge(Signal::Clock);
    let dropped = clock.map(|clock| clock.min / clock.max.max(1.0));
    let mut evidence = vec![
        server(said!("time throttled for heat", "因过热降频的时间占比"), hot, ""),
        server(said!("throttle reasons", "降频原因位"), bits, "bits"),
    ];
    evidence.extend(
        dropped.map(|share| {
            server(said!("lowest clock over highest", "最低与最高时钟之比"), share, "")
        }),
    );
    evidence.extend(
        signals
            .latest(Signal::Temperature)
            .map(|celsius| server(said!("hottest", "最高温度"), celsius, "°C")),
    );
    let says = said!(
        "the accelerators were held down for heat {hot:.0} % of the time (reasons {bits:#x})",
        "加速器有 {hot:.0} % 的时间因过热降频（原因位 {bits:#x}）",
        hot = 100.0 * hot,
        bits = bits as u64,
    );
    let confidence = if hot >= 0.05 || dropped.is_some_and(|share| share < 0.85) {
        Confidence::Likely
    } else {
        Confidence::Possible
    };
    let missing =
        said!("steps at the full clock, to see what it costs", "满频时的步长，用于衡量影响");
    Some(Case::new(confidence, 0.5, says, evidence).missing([missing]))
}

/// The stretch whose steps stand out most: at least three parts long, not from
/// the beginning on, and apart from all others.
fn slower(view: &View<'_>) -> Option<Slower> {
    let steps = &view.steps;
    let count = steps.len();
    if count < 10 || view.flow.scatter.is_some_and(|scatter| scatter > 2.0) {
        return None;
    }
    let level =
        |parts: &[(f64, f64)], share| at_share(parts.iter().map(|(_, ms)| *ms).collect(), share);
    let mut best: Option<(f64, Slower)> = None;
    for from in 3..count - 2 {
        for until in from + 3..=count {
            let inside = &steps[from..until];
            let outside = [&steps[..from], &steps[until..]].concat();
            let (low, high) = (level(inside, 0.2)?, level(&outside, 0.85)?);
            let (mean_in, mean_out) =
                (mean(inside.iter().map(|(_, ms)| *ms))?, mean(outside.iter().map(|(_, ms)| *ms))?);
            // An edge: what comes first is far from what was last before it.
            let edge = |to: usize| {
                let more = in_flight(view, steps[to].0) / in_flight(view, steps[from - 1].0);
                // More requests at a time make steps longer too.
                steps[to].1 / steps[from - 1].1.max(1e-9) / more.max(1.0)
            };
            if low < 1.15 * high
                || mean_in < 1.3 * mean_out
                || edge(from).max(edge(from + 1)) < 1.25
            {
                continue;
            }
            let score = (low / high) * (inside.len() as f64).sqrt();
            if best.as_ref().is_none_or(|(known, _)| score > *known) {
                let width = steps[1].0 - steps[0].0;
                let (from_s, until_s) =
                    (steps[from].0 - width / 2.0, steps[until - 1].0 + width / 2.0);
                best = Some((score, Slower { from_s, until_s, times: mean_in / mean_out }));
            }
        }
    }
    best.map(|(_, slower)| slower)
}

/// Requests in flight at an instant, at least 1.
fn in_flight(view: &View<'_>, at_s: f64) -> f64 {
    let is_there = |course: &&measure::course::Course| {
        course.sent_s.is_some_and(|sent_s| sent_s <= at_s)
            && course.ended_s.is_none_or(|ended_s| ended_s > at_s)
    };
    view.courses.iter().filter(is_there).count().max(1) as f64
}
