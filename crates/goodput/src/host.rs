//! What is known of the machine that makes the load.

use std::time::{SystemTime, UNIX_EPOCH};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Name and value of what explains a client's figures.
pub(crate) fn facts() -> Vec<(String, String)> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            facts.push((name.to_owned(), value));
        }
    };
    add("os", read("/proc/sys/kernel/osrelease").trim().to_owned());
    add("arch", std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    add("cores", cores.to_string());
    let model = read("/proc/cpuinfo");
    let model = model.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1));
    add("cpu", model.unwrap_or_default().trim().to_owned());
    add(
        "load_average",
        read("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" "),
    );
    facts
}

/// Microseconds for which the kernel has held back the process's control
/// group; `None` where no quota is set or told.
pub(crate) fn throttled_us() -> Option<i64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    // Inside a container the group's own files stand at the mount's root.
    let files = [format!("/sys/fs/cgroup{path}/cpu.stat"), "/sys/fs/cgroup/cpu.stat".to_owned()];
    let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok())?;
    text.lines().find_map(|line| line.strip_prefix("throttled_usec ")?.trim().parse().ok())
}

/// The processors of this thread, and of the threads that it starts; they are
/// given back at the end.
pub(crate) struct Processors {
    before: CpuSet,
    numbers: Vec<usize>,
}

impl Processors {
    /// Those that this thread may use now.
    pub(crate) fn of_this_thread() -> Self {
        let before = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let may_use = |number: &usize| before.is_set(*number).unwrap_or(false);
        Self { before, numbers: (0..CpuSet::count()).filter(may_use).collect() }
    }

    /// Keeps what is started next to the last of several processors.
    pub(crate) fn use_last(&self) {
        if let [_, .., last] = &*self.numbers {
            keep_to(&[*last]);
        }
    }

    /// Keeps what is started next off the last of several processors.
    pub(crate) fn use_others(&self) {
        if let [others @ .., _] = &*self.numbers
            && !others.is_empty()
        {
            keep_to(others);
        }
    }
}

impl Drop for Processors {
    fn drop(&mut self) {
        // What was allowed before is allowed again.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}

/// A refusal costs accuracy, not correctness.
fn keep_to(processors: &[usize]) {
    let mut set = CpuSet::new();
    if processors.iter().all(|number| set.set(*number).is_ok()) {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// Raises the soft limit on open files to the hard one and gives the result.
pub(crate) fn raise_open_files() -> u64 {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return u64::MAX };
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() {
        return hard;
    }
    soft
}

/// Wall time in RFC 3339, UTC, to the microsecond; read once a run.
pub(crate) fn wall_time() -> (u64, String) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_millis() as u64, rfc3339(since.as_secs(), since.subsec_micros()))
}

/// The same of so many milliseconds since 1970.
pub(crate) fn date(ms: u64) -> String {
    rfc3339(ms / 1_000, (ms % 1_000) as u32 * 1_000)
}

/// Days-to-date by the civil calendar (H. Hinnant, "chrono-compatible
/// low-level date algorithms").
fn rfc3339(seconds: u64, micros: u32) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let z = days as i64 + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Random bytes from the kernel.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    use std::io::Read;
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn dates_are_what_the_calendar_says() {
        assert_eq!(rfc3339(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(rfc3339(951_782_400, 1), "2000-02-29T00:00:00.000001Z");
        assert_eq!(rfc3339(1_795_996_799, 0), "2026-11-29T23:59:59.000000Z");
    }
}
