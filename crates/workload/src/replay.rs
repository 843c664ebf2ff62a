//! The instants of a trace, to be lived through again: as they were, faster or
//! slower, the first at the start of the run.

use std::fmt;
use std::sync::Arc;

use measure::{At, Span};

use crate::digest::Digest;
use crate::load::HORIZON;

/// A trace as a run replays it: one arrival a row, in the order of the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// From the start of the run; in order, the first at 0.
    instants: Arc<[At]>,
    /// How many times as fast as the trace.
    speed: f64,
    /// What was cut out of the trace, in its own time from its first row.
    window: Option<(Span, Span)>,
    /// From one round of the trace to the next, where rows are sent again.
    period: Span,
}

/// Why a trace cannot be replayed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// No row.
    #[error("there is no row to replay")]
    Empty,
    /// The speed is not a number above 0.
    #[error("must be a number above 0, 2 for twice as fast as the trace; got {0}")]
    Speed(f64),
    /// The row at this place is earlier than the one before it.
    #[error("row {place} of those in use is at {at} and the one before it at {before}")]
    BackInTime {
        /// Its place among the rows in use, from 1.
        place: usize,
        /// Its instant.
        at: Span,
        /// That of the row before it.
        before: Span,
    },
    /// The replay would be longer than a schedule may be.
    #[error(
        "the trace takes {0} at this speed, and a plan reaches {days} days; raise --trace-speed or \
         cut with --trace-window", days = crate::load::MAX_DAYS
    )]
    TooLong(Span),
}

impl Replay {
    /// A replay of rows at these times, given in time from any one instant and
    /// in order. `window` is what they were cut by, for the record.
    pub fn new(
        times: &[Span],
        speed: f64,
        window: Option<(Span, Span)>,
    ) -> Result<Self, ReplayError> {
        if !(speed > 0.0 && speed.is_finite()) {
            return Err(ReplayError::Speed(speed));
        }
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else {
            return Err(ReplayError::Empty);
        };
        let back = times.windows(2).position(|pair| pair[1] < pair[0]);
        if let Some(place) = back {
            let (before, at) = (times[place], times[place + 1]);
            return Err(ReplayError::BackInTime { place: place + 2, at, before });
        }
        let scaled = |span: Span| Span::from_s(span.s() / speed);
        if (last - first).s() / speed > HORIZON.s() {
            return Err(ReplayError::TooLong(scaled(last - first)));
        }
        // By whole microseconds and not by seconds, so that speed 1 moves
        // nothing.
        let instant = |time: &Span| {
            let us = (*time - first).us() as f64 / speed;
            At::ZERO + Span::from_us(us.round() as i64)
        };
        let count = times.len();
        let mean_gap = (last - first).us() as f64 / speed / (count.max(2) - 1) as f64;
        Ok(Self {
            instants: times.iter().map(instant).collect(),
            speed,
            window,
            period: Span::from_us((mean_gap * count as f64).round() as i64),
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.instants.len()
    }

    /// How many times as fast as the trace.
    pub const fn speed(&self) -> f64 {
        self.speed
    }

    /// What was cut out of the trace, in its own time from its first row.
    pub const fn window(&self) -> Option<(Span, Span)> {
        self.window
    }

    /// From the first arrival to the last of one round.
    fn lasts(&self) -> Span {
        self.instants.last().map_or(Span::ZERO, |last| *last - At::ZERO)
    }

    /// The instant of arrival `index`. After the last row the trace begins
    /// again, as long after it as its arrivals are apart on average; where
    /// that is no time, a second round never comes.
    pub fn instant(&self, index: usize) -> Option<At> {
        let (round, place) = (index / self.rows(), index % self.rows());
        if round > 0 && self.period <= Span::ZERO {
            return None;
        }
        let shift = self.period.us().checked_mul(i64::try_from(round).ok()?)?;
        Some(self.instants[place] + Span::from_us(shift))
    }

    /// The most arrivals in any one second.
    pub fn peak_per_second(&self) -> u32 {
        let (mut most, mut first) = (0, 0);
        for (place, at) in self.instants.iter().enumerate() {
            while *at - self.instants[first] >= Span::from_ms(1000) {
                first += 1;
            }
            most = most.max(place + 1 - first);
        }
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.text("trace").number(self.rows() as u64).float(self.speed);
    }
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows();
        let arrivals = if rows == 1 { "arrival" } else { "arrivals" };
        write!(f, "replay of a trace, {rows} {arrivals} in {}", readable(self.lasts()))?;
        if let Some((from, until)) = self.window {
            write!(f, ", cut to {} to {} of it", readable(from), readable(until))?;
        }
        if self.speed == 1.0 { Ok(()) } else { write!(f, ", speed {}", self.speed) }
    }
}

/// A time as people say it, in its largest unit.
fn readable(span: Span) -> String {
    let seconds = span.s();
    if seconds < 120.0 {
        let rounded = (seconds * 1000.0).round() / 1000.0;
        return format!("{rounded} s");
    }
    let minutes = seconds / 60.0;
    if minutes < 120.0 {
        return format!("{:.1} min", minutes);
    }
    format!("{:.1} h", minutes / 60.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(values: &[i64]) -> Vec<Span> {
        values.iter().map(|&ms| Span::from_ms(ms)).collect()
    }

    fn instants(replay: &Replay, count: usize) -> Vec<i64> {
        (0..count).filter_map(|k| replay.instant(k)).map(|at| (at - At::ZERO).us()).collect()
    }

    #[test]
    fn the_first_arrival_is_at_0_and_equal_stamps_stay_equal() {
        let replay = Replay::new(&ms(&[5_000, 5_000, 7_500]), 1.0, None).unwrap();
        assert_eq!(instants(&replay, 3), [0, 0, 2_500_000]);
        let twice = Replay::new(&ms(&[5_000, 5_000, 7_500]), 2.0, None).unwrap();
        assert_eq!(instants(&twice, 3), [0, 0, 1_250_000]);
        assert_eq!(twice.to_string(), "replay of a trace, 3 arrivals in 1.25 s, speed 2");
        assert_eq!(replay.peak_per_second(), 2);
    }

    #[test]
    fn a_trace_begins_again_after_a_mean_gap() {
        let replay = Replay::new(&ms(&[0, 100, 400]), 1.0, None).unwrap();
        assert_eq!(
            instants(&replay, 7),
            [0, 100_000, 400_000, 600_000, 700_000, 1_000_000, 1_200_000]
        );
        let at_once = Replay::new(&ms(&[3, 3]), 1.0, None).unwrap();
        assert_eq!(instants(&at_once, 9), [0, 0], "no second round without time");
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        assert_eq!(Replay::new(&[], 1.0, None), Err(ReplayError::Empty));
        for speed in [0.0, -1.0, f64::INFINITY] {
            assert_eq!(Replay::new(&ms(&[0]), speed, None), Err(ReplayError::Speed(speed)));
        }
        let back = Replay::new(&ms(&[0, 9, 8]), 1.0, None).unwrap_err();
        let (at, before) = (Span::from_ms(8), Span::from_ms(9));
        assert_eq!(back, ReplayError::BackInTime { place: 3, at, before });
        let year = HORIZON + Span::from_ms(1);
        let long = Replay::new(&[Span::ZERO, year], 1.0, None);
        assert!(matches!(long, Err(ReplayError::TooLong(_))));
        assert!(Replay::new(&[Span::ZERO, year], 2.0, None).is_ok());
    }

    proptest! {
        #[test]
        fn instants_keep_their_order_and_their_proportion(
            mut times in prop::collection::vec(0..10_000_000_000_i64, 1..50),
            speed in 0.01..100.0_f64,
        ) {
            times.sort_unstable();
            let spans: Vec<_> = times.iter().map(|&us| Span::from_us(us)).collect();
            let replay = Replay::new(&spans, speed, None).unwrap();
            let found = instants(&replay, times.len());
            prop_assert_eq!(found[0], 0);
            prop_assert!(found.is_sorted());
            for (us, time) in found.iter().zip(&times) {
                let exact = (time - times[0]) as f64 / speed;
                prop_assert!((*us as f64 - exact).abs() <= 0.51, "{us} is not {exact}");
            }
        }
    }
}
