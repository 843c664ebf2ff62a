//! What a run takes in memory, and what is there.

use std::fs;

use wire::rows::Extent;

/// What a report of a run takes: measured with 100 000 and 11.4 million
/// requests of 24 tokens, and with a thousand of 10 000.
const BYTES_A_ROW: u64 = 1_100;
const BYTES_AN_EVENT: u64 = 30;

/// The most that a stored byte can become. A row takes some forty bytes at
/// least and an event one.
pub(crate) const MOST_FOR_A_BYTE: u64 = 60;

/// What a report of so much takes, about.
pub(crate) const fn needed_bytes(extent: Extent) -> u64 {
    extent.rows * BYTES_A_ROW + extent.events * BYTES_AN_EVENT
}

/// What is free, by the machine and by the cgroup; nothing where neither says.
pub(crate) fn free_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    let group = |name: &str| -> Option<u64> {
        fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse().ok()
    };
    let group = group("memory.max").zip(group("memory.current"));
    let group = group.map(|(most, now)| most.saturating_sub(now));
    machine.into_iter().chain(group).min()
}

/// The line of /proc/meminfo that says what programs can still have.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_what_the_kernel_calls_available() {
        let text = "MemTotal:       24682604 kB\nMemAvailable:   23994764 kB\nBuffers: 1 kB\n";
        assert_eq!(available(text), Some(23_994_764 * 1_024));
        assert_eq!(available("MemTotal: 1 kB"), None);
        assert!(free_bytes().is_none_or(|free| free > 0));
    }
}
