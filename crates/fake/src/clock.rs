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

    /// Takes the alarm back after it rang and says how late it is now.
    pub(crate) fn rang(&mut self) -> Option<u64> {
        // The file does not block: when it did not ring there is nothing to take.
        let _ = self.timer.wait();
        self.armed_ns.take().map(|armed_ns| monotonic_ns().saturating_sub(armed_ns))
    }
}

/// How much before a deadline to wake. Machines differ by an order of
/// magnitude in how late a sleeping thread runs again (25 µs on a quiet host,
/// 150 µs in a small virtual machine), and what is woken too early is spun away.
pub(crate) struct Margin {
    now_ns: u64,
    most_ns: u64,
}

impl Margin {
    const LEAST_NS: u64 = 20_000;

    pub(crate) fn new(most_ns: u64) -> Self {
        // Starting in the middle of what is usual.
        Self { now_ns: most_ns.min(50_000), most_ns }
    }

    pub(crate) fn ns(&self) -> u64 {
        self.now_ns
    }

    /// Takes in how late a wake-up was. Grows sixteen times faster than it
    /// shrinks, so that it stays above most wake-ups and not amid them.
    pub(crate) fn learn(&mut self, late_ns: u64) {
        let least = Self::LEAST_NS.min(self.most_ns);
        self.now_ns = if late_ns > self.now_ns {
            self.now_ns + (late_ns - self.now_ns) / 2
        } else {
            self.now_ns - (self.now_ns - late_ns) / 32
        }
        .clamp(least, self.most_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margin_follows_the_late_wake_ups_within_its_bounds() {
        let mut margin = Margin::new(200_000);
        for turn in 0..400 {
            margin.learn(if turn % 4 == 0 { 120_000 } else { 30_000 });
        }
        assert!((80_000..=120_000).contains(&margin.ns()), "{}", margin.ns());
        for _ in 0..20 {
            margin.learn(u64::MAX);
        }
        assert_eq!(margin.ns(), 200_000);
        for _ in 0..1000 {
            margin.learn(0);
        }
        assert_eq!(margin.ns(), 20_000);
        let mut none = Margin::new(0);
        none.learn(70_000);
        assert_eq!(none.ns(), 0);
    }
}
