//! The run's one monotonic clock, and its relation to the clock that the
//! kernel stamps packets with.

use std::cell::Cell;
use std::time::Duration;

use measure::{At, Span};
use nix::time::{ClockId, clock_gettime};

/// A clock with its anchor: instants are microseconds since it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    anchor_ns: i64,
}

fn read_ns(clock: ClockId) -> i64 {
    let time =
        clock_gettime(clock).expect("this clock exists on every kernel that runs this program");
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}

/// CLOCK_MONOTONIC in nanoseconds, the clock that ground-truth logs use too.
pub fn monotonic_ns() -> i64 {
    read_ns(ClockId::CLOCK_MONOTONIC)
}

/// Processor time of the calling thread in nanoseconds.
pub(crate) fn thread_cpu_ns() -> i64 {
    read_ns(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// A span as the runtime takes it; a negative one is none.
pub(crate) fn duration(span: Span) -> Duration {
    Duration::from_micros(span.us().max(0) as u64)
}

impl Clock {
    /// A clock whose anchor lies `ahead` from now, so that what must be ready
    /// at instant 0 has time to get ready.
    pub fn starting_in(ahead: Span) -> Self {
        Self { anchor_ns: monotonic_ns() + ahead.us() * 1_000 }
    }

    /// The anchor on CLOCK_MONOTONIC in nanoseconds.
    pub const fn anchor_ns(self) -> i64 {
        self.anchor_ns
    }

    /// Now.
    pub fn now(self) -> At {
        self.at(monotonic_ns())
    }

    /// The instant of a reading of CLOCK_MONOTONIC.
    pub(crate) const fn at(self, monotonic_ns: i64) -> At {
        At::from_us((monotonic_ns - self.anchor_ns).div_euclid(1_000))
    }

    /// Nanoseconds on CLOCK_MONOTONIC of an instant.
    pub const fn monotonic_ns_of(self, at: At) -> i64 {
        self.anchor_ns + at.us() * 1_000
    }
}

/// A change of the wall clock's offset above this is a step: adjustments by
/// the network time protocol slew both clocks alike.
const STEP_NS: i64 = 100_000;

/// The offset of CLOCK_REALTIME, which the kernel stamps packets with, to
/// CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct WallOffset {
    offset_ns: Cell<i64>,
    steps: Cell<u32>,
}

impl WallOffset {
    pub(crate) fn new() -> Self {
        Self { offset_ns: Cell::new(sample()), steps: Cell::new(0) }
    }

    /// The reading of CLOCK_MONOTONIC at which CLOCK_REALTIME read so.
    pub(crate) fn to_monotonic(&self, realtime_ns: i64) -> i64 {
        realtime_ns - self.offset_ns.get()
    }

    /// Samples the offset again; true when the wall clock was stepped.
    pub(crate) fn refresh(&self) -> bool {
        let now = sample();
        let stepped = (now - self.offset_ns.get()).abs() > STEP_NS;
        self.offset_ns.set(now);
        if stepped {
            self.steps.set(self.steps.get() + 1);
        }
        stepped
    }

    pub(crate) fn steps(&self) -> u32 {
        self.steps.get()
    }
}

/// The offset by the tightest of a few readings: a thread that is taken off
/// its core between two readings gives a loose one.
fn sample() -> i64 {
    (0..5)
        .map(|_| {
            let before = monotonic_ns();
            let wall = read_ns(ClockId::CLOCK_REALTIME);
            let after = monotonic_ns();
            (after - before, wall - (before + (after - before) / 2))
        })
        .min()
        .map_or(0, |(_, offset)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_readings_go_back_and_forth() {
        let clock = Clock::starting_in(Span::from_ms(5));
        let at = At::from_us(1_234);
        assert_eq!(clock.at(clock.monotonic_ns_of(at)), at);
        assert_eq!(clock.at(clock.anchor_ns() - 1), At::from_us(-1));
    }

    #[test]
    fn the_wall_clocks_offset_is_stable_while_nobody_steps_it() {
        let offset = WallOffset::new();
        let first = offset.to_monotonic(read_ns(ClockId::CLOCK_REALTIME));
        assert!((monotonic_ns() - first).abs() < 1_000_000_000);
        assert!(!offset.refresh());
        offset.offset_ns.set(offset.offset_ns.get() + 1_000_000_000);
        assert!(offset.refresh(), "a second is a step");
        assert_eq!(offset.steps(), 1);
    }
}
