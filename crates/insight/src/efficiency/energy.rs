//! Energy of the deployment over the steady window.

use measure::finding::From;
use measure::said::{Said, said};
use measure::signal::{Role, Signal, Signals};
use measure::undefined::Undefined;
use measure::window::Window;
use measure::{At, Span};

use super::{Found, Known, given, input, no_signal, of_signal, short};
use crate::view::View;

/// The shortest window that energy is taken over.
const SHORTEST: Span = Span::from_ms(30_000);

/// The widest distance between two samples that is bridged.
const WIDEST: Span = Span::from_ms(3_000);

/// How far counter and power samples may be apart without a word.
const AGREES: f64 = 0.05;

/// Energy over a window.
#[derive(Clone, Debug)]
pub(super) struct Energy {
    joules: f64,
    length_s: f64,
    inputs: Vec<Said>,
}

impl Energy {
    /// Mean power.
    pub(super) fn power(self) -> Found {
        Found { value: self.joules / self.length_s, inputs: self.inputs }
    }

    /// Energy over output tokens.
    pub(super) fn per_token(self, view: &View<'_>) -> Known<Found> {
        let rate = view.summary.steady.output_tok_s;
        let rate = rate.ok_or_else(|| Said::from(Undefined::NoTokenCount.texts()))?;
        self.over(rate)
    }

    /// Energy over output tokens of good requests.
    pub(super) fn per_good_token(self, view: &View<'_>) -> Known<Found> {
        let Some(goodput) = &view.summary.steady.goodput else {
            return Err(Undefined::NoSlo.texts().into());
        };
        let rate = goodput.tok_s.ok_or_else(|| Said::from(Undefined::NoTime.texts()))?;
        self.over(rate)
    }

    /// 10⁶ ÷ (J/token).
    pub(super) fn tps_per_megawatt(self, view: &View<'_>) -> Known<Found> {
        let per_token = self.per_token(view)?;
        Ok(Found { value: 1e6 / per_token.value, ..per_token })
    }

    fn over(mut self, rate: f64) -> Known<Found> {
        let tokens = rate * self.length_s;
        if tokens <= 0.0 {
            return Err(said!(
                "no such token came in the steady window",
                "稳态窗口内没有这样的 token"
            ));
        }
        let shown = short(tokens);
        self.inputs
            .push(input(said!("{shown} tokens", "{shown} 个 token", shown = shown), From::Client));
        Ok(Found { value: self.joules / tokens, inputs: self.inputs })
    }
}

/// The energy of all accelerators in the steady window: by their counters where
/// they have one, else by the trapezoid of their power.
pub(super) fn steady(view: &View<'_>) -> Known<Energy> {
    let window = view.summary.steady.window.as_ref().map_err(|why| why.text())?;
    if window.length() < SHORTEST {
        let (length, shortest) = (window.length(), SHORTEST);
        return Err(said!(
            "the steady window has {length} and energy needs {shortest}; run longer",
            "稳态窗口只有 {length}，能耗至少需要 {shortest}；请延长压测时间",
            length = length,
            shortest = shortest,
        ));
    }
    let signals = view.signals().ok_or_else(|| no_signal(view, Signal::Power))?;
    let counted = series(signals, Signal::Energy).map(|rates| of_rates(rates, *window));
    let sampled = series(signals, Signal::Power).map(|power| trapezoid(power, *window));
    let (joules, mut inputs) = match (counted, sampled) {
        (None, None) => return Err(no_signal(view, Signal::Power)),
        (Some(Ok(joules)), Some(Ok(by_power))) => {
            let mut inputs = vec![of_signal(Signal::Energy, joules)];
            let off = by_power / joules - 1.0;
            if off.abs() > AGREES {
                inputs.push(disagreement(off));
            }
            (joules, inputs)
        }
        (Some(Ok(joules)), _) => (joules, vec![of_signal(Signal::Energy, joules)]),
        (_, Some(Ok(joules))) => {
            let length_s = window.length().s();
            (joules, vec![of_signal(Signal::Power, joules / length_s)])
        }
        (Some(Err(why)), _) | (None, Some(Err(why))) => return Err(why),
    };
    inputs.extend(whole(view, signals)?);
    let length = short(window.length().s());
    let words = said!("steady window of {length} s", "稳态窗口 {length} s", length = length);
    inputs.push(input(words, From::Client));
    Ok(Energy { joules, length_s: window.length().s(), inputs })
}

fn disagreement(off: f64) -> Said {
    let percent = short(100.0 * off.abs());
    let said = if off > 0.0 {
        said!(
            "power samples say {percent} % more",
            "按功率采样计算多 {percent} %",
            percent = percent
        )
    } else {
        said!(
            "power samples say {percent} % less",
            "按功率采样计算少 {percent} %",
            percent = percent
        )
    };
    input(said, From::Server)
}

/// Whether what was read is the whole deployment.
///
/// # Errors
/// That it is not: energy of a part flatters.
fn whole(view: &View<'_>, signals: &Signals) -> Known<Option<Said>> {
    let measures = |signal| {
        let devices = signals
            .instances
            .iter()
            .filter(|one| one.role == Role::Device && one.readings.contains_key(&signal));
        devices.count() as u32
    };
    let devices = measures(Signal::Energy).max(measures(Signal::Power)).max(1);
    match given(view).accelerators() {
        Some(all) if all != devices => Err(said!(
            "the power of {devices} accelerators was read and the deployment has {all}: add the \
             other exporters with --metrics-url",
            "只读到 {devices} 张加速器的功率，而部署有 {all} 张：请用 --metrics-url 加上其余导出器",
            devices = devices,
            all = all,
        )),
        Some(_) => Ok(None),
        None => Ok(Some(input(
            said!(
                "{devices} accelerators were seen; --topology says whether they are all",
                "看到 {devices} 张加速器；--topology 可说明是否为全部",
                devices = devices,
            ),
            From::Server,
        ))),
    }
}

fn series(signals: &Signals, signal: Signal) -> Option<&[(At, f64)]> {
    signals.series.get(&signal).map(Vec::as_slice).filter(|series| series.len() > 1)
}

/// The sum of a counter over a window, from its increase a second since the
/// sample before. The edges are interpolated: a rate stands until its sample.
fn of_rates(rates: &[(At, f64)], window: Window) -> Known<f64> {
    covers(rates, window)?;
    let inside =
        |from: At, until: At| (until.min(window.until) - from.max(window.from)).max(Span::ZERO).s();
    Ok(rates.windows(2).map(|pair| pair[1].1 * inside(pair[0].0, pair[1].0)).sum())
}

/// The integral of a gauge over a window, straight lines between its samples
/// and at the edges.
fn trapezoid(samples: &[(At, f64)], window: Window) -> Known<f64> {
    covers(samples, window)?;
    let area = |pair: &[(At, f64)]| {
        let ((from, a), (until, b)) = (pair[0], pair[1]);
        let (left, right) = (from.max(window.from), until.min(window.until));
        if right <= left {
            return 0.0;
        }
        let at = |instant: At| a + (b - a) * (instant - from).s() / (until - from).s();
        (at(left) + at(right)) / 2.0 * (right - left).s()
    };
    Ok(samples.windows(2).map(area).sum())
}

/// Whether samples reach from one end of a window to the other without a hole.
fn covers(samples: &[(At, f64)], window: Window) -> Known<()> {
    let reach = samples.first().zip(samples.last());
    let reaches =
        reach.is_some_and(|((first, _), (last, _))| *first <= window.from && window.until <= *last);
    if !reaches {
        return Err(said!(
            "power was not sampled over the whole steady window",
            "功率采样没有覆盖整个稳态窗口"
        ));
    }
    let touches = |pair: &&[(At, f64)]| pair[1].0 > window.from && pair[0].0 < window.until;
    let gaps = samples.windows(2).filter(touches).map(|pair| pair[1].0 - pair[0].0);
    match gaps.max() {
        Some(widest) if widest > WIDEST => Err(said!(
            "two samples of power are {widest} apart and {most} are the most: lower \
             --metrics-interval",
            "两次功率采样相隔 {widest}，最多允许 {most}：请减小 --metrics-interval",
            widest = widest,
            most = WIDEST,
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: f64) -> At {
        At::ZERO + Span::from_s(s)
    }

    fn window(from: f64, until: f64) -> Window {
        Window { from: at(from), until: at(until) }
    }

    #[test]
    fn edges_are_interpolated() {
        // 100 W that become 300 W in 2 s: 200 · 2 in all, and from 0.5 to 1.5 the
        // middle.
        let power = [(at(0.0), 100.0), (at(2.0), 300.0)];
        assert_eq!(trapezoid(&power, window(0.0, 2.0)), Ok(400.0));
        assert_eq!(trapezoid(&power, window(0.5, 1.5)), Ok(200.0));
        // 10 J/s until 1, 20 J/s until 3.
        let rates = [(at(0.0), 99.0), (at(1.0), 10.0), (at(3.0), 20.0)];
        assert_eq!(of_rates(&rates, window(0.0, 3.0)), Ok(50.0));
        assert_eq!(of_rates(&rates, window(0.5, 2.0)), Ok(25.0));
    }

    #[test]
    fn a_hole_and_an_end_too_early_are_refused() {
        let power = [(at(0.0), 1.0), (at(2.0), 1.0), (at(6.0), 1.0)];
        assert!(trapezoid(&power, window(0.0, 2.0)).is_ok(), "the hole is outside");
        let why = trapezoid(&power, window(0.0, 3.0)).unwrap_err();
        assert!(why.en.contains("--metrics-interval"), "{}", why.en);
        let why = trapezoid(&power, window(1.0, 7.0)).unwrap_err();
        assert!(why.en.contains("whole steady window"), "{}", why.en);
    }
}
