//! Exit codes: the one table, and what scripts may rely on.

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well. A DEGRADED run without `--strict` counts as well.
    Ok = 0,
    /// A defect, or a disk that took nothing.
    Internal = 1,
    /// The command line or an input file is wrong.
    Usage = 2,
    /// No HTTP response at all, or everything was refused in the same way.
    Unreachable = 3,
    /// The run is INVALID, or DEGRADED with `--strict`.
    Invalid = 4,
    /// A `--fail-if` threshold was missed.
    Threshold = 99,
    /// Stopped by a signal; what there was is written.
    Interrupted = 130,
}

/// The table for `--help`.
pub(crate) const HELP: &str = "\
Exit codes: 0 ok · 1 internal error · 2 usage · 3 no HTTP response, or everything refused \
(401, 403, 404) · 4 the run is INVALID (or DEGRADED with --strict) · 99 a --fail-if threshold \
missed · 130 interrupted";
