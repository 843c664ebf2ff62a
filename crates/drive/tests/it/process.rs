//! A process of its own for limits that would hit other tests too: the test
//! binary starts itself with one test chosen and a variable set.

use std::process::{Command, Output};

const CHILD: &str = "GOODPUT_TEST_CHILD";

/// The argument that the parent gave, in the child; `None` in the parent.
pub(crate) fn argument() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// Runs the test of this name alone in a child, and expects it to pass there.
#[track_caller]
pub(crate) fn in_child(test: &str, argument: &str) {
    let program = std::env::current_exe().expect("the test binary has a path");
    let Output { status, stdout, stderr } = Command::new(program)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, argument)
        .output()
        .expect("the test binary can be started again");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{test} failed in a child:\n{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed"), "{test} did not run in the child:\n{stdout}");
}

/// Bytes that this process has had in memory at most.
pub(crate) fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
