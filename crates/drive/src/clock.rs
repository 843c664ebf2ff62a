//! The run's one monotonic clock. Everything that is timed is read from here.

use measure::{At, Span};
use nix::time::{ClockId, clock_gettime};

/// A clock with its anchor: instants are microseconds since it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    anchor_ns: i64,
}

/// CLOCK_MONOTONIC in nanoseconds, the clock that ground-truth logs use too.
pub fn monotonic_ns() -> i64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .expect("CLOCK_MONOTONIC exists on every kernel that runs this program");
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
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
        At::from_us((monotonic_ns() - self.anchor_ns).div_euclid(1_000))
    }

    /// Nanoseconds on CLOCK_MONOTONIC of an instant.
    pub const fn monotonic_ns_of(self, at: At) -> i64 {
        self.anchor_ns + at.us() * 1_000
    }
}
