//! Waiting for absolute instants. The runtime's own timer is late by about a
//! millisecond; a timerfd armed early and a short spin are not.

use std::os::fd::AsFd;
use std::time::Duration;

use measure::{At, Span};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::net::unix::pipe;

use crate::clock::Clock;

/// How long before the instant the timer fires: a wake-up from sleep takes
/// tens of microseconds.
const EARLY: Span = Span::from_us(50);

/// One timer; one task waits on it at a time.
pub(crate) struct Timer {
    timer: TimerFd,
    /// The same timer as something that the runtime can watch. A pipe's
    /// receiving end is tokio's only safe door for a foreign descriptor, and a
    /// timerfd is read like a pipe.
    expired: pipe::Receiver,
    clock: Clock,
}

impl Timer {
    /// A timer on the run's clock. Needs a runtime; fails when no file
    /// descriptor is left.
    pub(crate) fn new(clock: Clock) -> std::io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let watched = timer.as_fd().try_clone_to_owned()?;
        Ok(Self { timer, expired: pipe::Receiver::from_owned_fd_unchecked(watched)?, clock })
    }

    /// Returns at `at`, never before, at once when it has passed.
    pub(crate) async fn until(&self, at: At) {
        while self.clock.now() + EARLY < at {
            let ns = self.clock.monotonic_ns_of(at - EARLY).max(1) as u64;
            let when = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(ns)));
            if self.timer.set(when, TimerSetTimeFlags::TFD_TIMER_ABSTIME).is_err() {
                // A timer that cannot be armed leaves the spin, which is
                // correct and only costs processor time.
                break;
            }
            if self.expired.readable().await.is_ok() {
                // The read clears the readiness; the count is of no interest.
                let _ = self.expired.try_read(&mut [0; 8]);
            }
        }
        while self.clock.now() < at {
            std::hint::spin_loop();
        }
    }
}
