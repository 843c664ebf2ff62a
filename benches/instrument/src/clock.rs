//! The clocks of the benchmarks: one monotonic clock for both ends of a
//! connection, and the processor clock of any process.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

fn nanoseconds(time: TimeSpec) -> u64 {
    (time.tv_sec() as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec() as u64)
}

/// Nanoseconds of CLOCK_MONOTONIC: the truth and every stamp are on it.
pub(crate) fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has CLOCK_MONOTONIC"))
}

/// The monotonic instant of a kernel receive stamp, which is on
/// CLOCK_REALTIME.
pub(crate) fn monotonic_of_stamp(stamp: TimeSpec) -> u64 {
    let unix = clock_gettime(ClockId::CLOCK_REALTIME).expect("Linux has CLOCK_REALTIME");
    monotonic_ns().saturating_sub(nanoseconds(unix).saturating_sub(nanoseconds(stamp)))
}

/// The processor time of a process, threads that have ended included. It is
/// exact to the nanosecond where the figures of /proc move in ticks of 10 ms,
/// and it can be read from outside, so that every client is measured alike.
#[derive(Clone, Copy)]
pub(crate) struct ProcessorClock(ClockId);

impl ProcessorClock {
    /// The clock of process `pid`; none when there is no such process.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        clock_getcpuclockid(Pid::from_raw(pid)).ok().map(Self)
    }

    /// This process's own.
    pub(crate) fn own() -> Self {
        Self(ClockId::CLOCK_PROCESS_CPUTIME_ID)
    }

    /// Nanoseconds used so far; none when the process is gone.
    pub(crate) fn ns(self) -> Option<u64> {
        clock_gettime(self.0).ok().map(nanoseconds)
    }
}
