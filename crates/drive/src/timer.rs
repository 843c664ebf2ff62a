//! Waiting for absolute instants. The runtime's own timer is late by about a
//! millisecond; a timerfd armed early and a short spin are not.

use std::time::Duration;

use measure::{At, Span};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

use crate::clock::Clock;

/// How long before the instant the timer fires: a wake-up from sleep takes
/// tens of microseconds.
const EARLY: Span = Span::from_us(50);

/// One timer; one task waits on it at a time.
pub(crate) struct Timer {
    fd: AsyncFd<TimerFd>,
    clock: Clock,
}

impl Timer {
    /// A timer on the run's clock. Needs a runtime; fails when no file
    /// descriptor is left.
    pub(crate) fn new(clock: Clock) -> std::io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let fd = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        Ok(Self { fd: AsyncFd::new(fd)?, clock })
    }

    /// Returns at `at`, never before, at once when it has passed.
    pub(crate) async fn until(&self, at: At) {
        while self.clock.now() + EARLY < at {
            let ns = self.clock.monotonic_ns_of(at - EARLY).max(1) as u64;
            let when = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(ns)));
            if self.fd.get_ref().set(when, TimerSetTimeFlags::TFD_TIMER_ABSTIME).is_err() {
                // A timer that cannot be armed leaves the spin, which is
                // correct and only costs processor time.
                break;
            }
            if let Ok(mut ready) = self.fd.readable().await {
                // The read clears the readiness; its count is of no interest.
                let _ = ready.try_io(|fd| fd.get_ref().wait_nonblocking());
            }
        }
        while self.clock.now() < at {
            std::hint::spin_loop();
        }
    }
}

/// Reading an expired timer without blocking.
trait WaitNonblocking {
    fn wait_nonblocking(&self) -> std::io::Result<()>;
}

impl WaitNonblocking for TimerFd {
    fn wait_nonblocking(&self) -> std::io::Result<()> {
        // The descriptor is non-blocking, so `wait` reports EAGAIN.
        Ok(self.wait()?)
    }
}
