//! What else the machine did: a repetition that others disturbed is void.

use std::fs;

use crate::clock::monotonic_ns;

/// Share of the machine's time that other processes may use.
pub(crate) const LIMIT: f64 = 0.05;

/// Nanoseconds of one tick of /proc/stat; the interface fixes it at 100 a
/// second.
const TICK_NS: f64 = 1e7;

/// The machine's busy time so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Busy {
    ticks: u64,
    cores: u64,
    at_ns: u64,
}

impl Busy {
    /// Reads it now; none where there is no /proc/stat.
    pub(crate) fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?, monotonic_ns())
    }

    fn of(stat: &str, at_ns: u64) -> Option<Self> {
        let total = stat.lines().find(|line| line.starts_with("cpu "))?;
        let fields: Vec<u64> =
            total.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal: all but idle
        // and waiting; what the host took away counts as disturbance too.
        let ticks = [0, 1, 2, 5, 6, 7].iter().filter_map(|place| fields.get(*place)).sum();
        let cores = stat
            .lines()
            .filter(|line| line.strip_prefix("cpu").is_some_and(|rest| !rest.starts_with(' ')))
            .count() as u64;
        Some(Self { ticks, cores: cores.max(1), at_ns })
    }

    /// The share of the machine that processes other than ours used since
    /// then, when ours used `ours_ns`. Ticks are sampled, so it may come out a
    /// little below zero.
    pub(crate) fn others_until(&self, now: &Self, ours_ns: u64) -> f64 {
        let busy_ns = now.ticks.saturating_sub(self.ticks) as f64 * TICK_NS;
        let time_ns = now.at_ns.saturating_sub(self.at_ns).max(1) as f64 * self.cores as f64;
        (busy_ns - ours_ns as f64) / time_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_others_is_what_ours_did_not_use() {
        let before = "cpu  100 0 50 900 0 0 0 0 0 0\ncpu0 1 0\ncpu1 1 0\nintr 5\n";
        let after = "cpu  150 0 70 990 9 0 10 20 0 0\ncpu0 1 0\ncpu1 1 0\nintr 5\n";
        let before = Busy::of(before, 0).unwrap();
        let after = Busy::of(after, 1_000_000_000).unwrap();
        assert_eq!((before.ticks, after.ticks, before.cores), (150, 250, 2));
        // 100 ticks are 1 s of 2 s; ours used 0.9 s of it.
        assert!((before.others_until(&after, 900_000_000) - 0.05).abs() < 1e-9);
        assert_eq!(Busy::of("nothing", 0), None);
    }
}
