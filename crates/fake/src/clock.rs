//! The one clock of the server and the alarm that wakes its thread.

use std::io;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{
    ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags,
};
use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC. Every deadline and every instant of the
/// truth log is on it.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has CLOCK_MONOTONIC"))
}

/// Nanoseconds of CLOCK_REALTIME since 1970: for the `created` fields and to
/// translate the kernel's receive stamps, never for a span.
pub fn unix_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::CLOCK_REALTIME).expect("Linux has CLOCK_REALTIME"))
}

fn nanoseconds(time: TimeSpec) -> u64 {
    (time.tv_sec() as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec() as u64)
}

/// The monotonic instant of a kernel receive stamp, which is on
/// CLOCK_REALTIME. A stamp that lies in the future or more than ten seconds
/// back says that the wall clock was stepped; then now is the better answer.
pub(crate) fn monotonic_of_stamp(stamp: TimeSpec) -> u64 {
    const BELIEVABLE_NS: u64 = 10_000_000_000;
    let unix_now = unix_ns();
    let now = monotonic_ns();
    match unix_now.checked_sub(nanoseconds(stamp)) {
        Some(age) if age <= BELIEVABLE_NS => now.saturating_sub(age),
        _ => now,
    }
}

/// A timer file that becomes readable at an absolute monotonic instant. A
/// relative time-out would add the time between reading the clock and sleeping
/// to every deadline.
pub(crate) struct Alarm {
    timer: TimerFd,
    armed_ns: Option<u64>,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        Ok(Self { timer: TimerFd::new(TimerClock::CLOCK_MONOTONIC, flags)?, armed_ns: None })
    }

    pub(crate) fn file(&self) -> &TimerFd {
        &self.timer
    }

    /// Sets the alarm; a system call only when the instant changed.
    pub(crate) fn set(&mut self, at_ns: Option<u64>) -> io::Result<()> {
        if self.armed_ns == at_ns {
            return Ok(());
        }
        match at_ns {
            None => self.timer.unset()?,
            Some(at_ns) => {
                let seconds = i64::try_from(at_ns / 1_000_000_000).unwrap_or(i64::MAX);
                // Zero would disarm the timer instead of firing it at once.
                let nanoseconds = ((at_ns % 1_000_000_000) as i64).max(1);
                self.timer.set(
                    Expiration::OneShot(TimeSpec::new(seconds, nanoseconds)),
                    TimerSetTimeFlags::TFD_TIMER_ABSTIME,
                )?;
            }
        }
        self.armed_ns = at_ns;
        Ok(())
    }

    /// Takes the alarm back after it rang.
    pub(crate) fn rang(&mut self) {
        // The file does not block: when it did not ring there is nothing to take.
        let _ = self.timer.wait();
        self.armed_ns = None;
    }
}
