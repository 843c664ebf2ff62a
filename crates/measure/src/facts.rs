//! What is known of a run besides its records: target, load, workload, and
//! what the instrument knows of itself.

use crate::definition::Endpoint;
use crate::deployment::Deployment;
use crate::fairness::Isolated;
use crate::metric::Text;
use crate::request::Settings;
use crate::slo::Slo;
use crate::unit::Span;

/// Everything about a run that its records do not say.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// The run's id.
    pub run_id: String,
    /// The address that was measured, without secrets.
    pub target: String,
    /// The serving engine, where it named itself.
    pub engine: Option<String>,
    /// The model asked for.
    pub model: Option<String>,
    /// True when an engine model answered instead of an engine.
    pub simulated: bool,
    /// The API's canonical name.
    pub api: String,
    /// Which rules presets with two paths apply.
    pub endpoint: Endpoint,
    /// How the load was made.
    pub load: LoadFacts,
    /// What was sent.
    pub workload: WorkloadFacts,
    /// The objective of a request, when one was given.
    pub slo: Option<Slo>,
    /// Parameters of the metrics that have one.
    pub settings: Settings,
    /// Further percentiles asked for, in percent.
    pub percentiles: Vec<f64>,
    /// What the instrument knows of itself.
    pub instrument: InstrumentFacts,
    /// The time-out of a whole request: where a time-out cuts a latency off.
    pub request_timeout: Option<Span>,
    /// Duration in seconds as another tool's file gives it: it cannot be
    /// recomputed from rows.
    pub source_duration_s: Option<f64>,
    /// Aggregates that an imported file gives and that its rows cannot give,
    /// by their key in that file.
    pub as_reported: Vec<(String, f64)>,
    /// Latencies of labels that had the server for themselves, from other runs.
    pub isolated: Vec<Isolated>,
    /// What the user says of the machines behind the target.
    pub deployment: Deployment,
    /// False where no row of any request was kept: figures were counted as the
    /// requests ended, and cannot be computed again.
    pub rows_kept: bool,
    /// True when the run was interrupted.
    pub interrupted: bool,
}

/// The kinds of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// Arrivals on a schedule that waits for nobody.
    Open,
    /// Arrivals on a schedule, held back by a concurrency cap.
    Capped,
    /// N users, each asking again when answered.
    Closed,
    /// Everything at once.
    Burst,
    /// Unknown: an imported run does not say.
    Unknown,
}

impl LoadKind {
    /// Every kind.
    pub const ALL: &[Self] = &[Self::Open, Self::Capped, Self::Closed, Self::Burst, Self::Unknown];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Capped => "capped",
            Self::Closed => "closed",
            Self::Burst => "burst",
            Self::Unknown => "unknown",
        }
    }

    /// The name in both languages, to stand before "load".
    pub const fn texts(self) -> Text {
        let zh = match self {
            Self::Open => "开环",
            Self::Capped => "带并发上限的开环",
            Self::Closed => "闭环",
            Self::Burst => "突发",
            Self::Unknown => "未知类型的",
        };
        Text { en: self.name(), zh }
    }

    /// True where arrivals follow a schedule in time, so that an arrival
    /// window exists.
    pub const fn has_schedule(self) -> bool {
        matches!(self, Self::Open | Self::Capped)
    }
}

/// How the load was made.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadFacts {
    /// Which kind.
    pub kind: LoadKind,
    /// Requests a second asked for; `None` where the rate changes by plan.
    pub request_rate: Option<f64>,
    /// Gamma shape of the gaps; 1 is Poisson.
    pub burstiness: Option<f64>,
    /// Users, or the cap.
    pub users: Option<u32>,
    /// The arrival process in words.
    pub arrivals: String,
    /// Planned length, when a duration was given.
    pub planned_duration: Option<Span>,
    /// Seed of every draw.
    pub seed: u64,
    /// Digest of the schedule.
    pub schedule_hash: String,
    /// What was replayed, where arrivals are those of a trace.
    pub replay: Option<ReplayFacts>,
}

/// A trace that was replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayFacts {
    /// Rows in use.
    pub rows: u64,
    /// How many times as fast as the trace.
    pub speed: f64,
    /// What was cut out of the trace, in seconds of its own time from its first
    /// row.
    pub window_s: Option<[f64; 2]>,
}

/// What can be said of an engine that no answer of it shows.
pub const ENGINE_FACTS: &[&str] = &["speculation", "moe"];

/// What was sent: the three conditions without which no two results compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadFacts {
    /// Where prompts come from.
    pub source: String,
    /// Prompt lengths asked for, in words.
    pub input_lengths: String,
    /// Output lengths asked for, in words.
    pub output_lengths: String,
    /// The tokenizer that prompt lengths were counted by on this side; `None`
    /// where they are estimates.
    pub tokenizer: Option<String>,
    /// Cache regime: cold, none, warm or as-is.
    pub cache_regime: String,
    /// Prompt tokens that a request has in common with others of the run by
    /// design; `None` where it is not known, as for a user's own prompts.
    pub prefix_tokens: Option<u32>,
    /// How often each row was used, when a data set was too short.
    pub oversampled: Option<f64>,
    /// The use case that settings and the first figures are of.
    pub use_case: Option<String>,
    /// True where prompts are words in random order.
    pub random_text: bool,
    /// True where answers were forced to their whole length (`ignore_eos`).
    pub output_forced: bool,
    /// What the user says of the engine: `speculation`, `moe`.
    pub engine_facts: Vec<String>,
    /// Things to know about the workload.
    pub notes: Vec<String>,
}

/// What the instrument knows of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstrumentFacts {
    /// Where receive stamps come from: `kernel`, `user`, `mixed` of both,
    /// `none` when nothing was received, or `virtual` when no clock was read.
    pub stamp_source: String,
    /// User stamp − kernel stamp in µs: p50, p99, max, when both exist.
    pub client_lag_us: Option<[f64; 3]>,
    /// p99 in µs of how much earlier than its stamp an event may have arrived:
    /// events that share a read have the stamp of the last of them.
    pub stamp_error_p99_us: Option<f64>,
    /// Steps of the wall clock, which kernel stamps follow.
    pub clock_steps: u32,
    /// The shortest round trip of its connections, as the kernel measured it: of
    /// all that the peer's kernel acknowledged. Where the kernel does not tell, of
    /// the handshakes of connections that were opened before the first request.
    pub round_trip: Option<Span>,
    /// Busiest thread's share of time on the processor.
    pub busiest_thread: Option<f64>,
    /// Time that the process group was throttled during the run.
    pub throttled: Option<Span>,
    /// The floor of this instrument on this machine, when it was found.
    pub floor: Option<Floor>,
    /// Length of the schedule, where it is finite: counts must be conserved.
    pub planned_requests: Option<u64>,
}

/// The floor of an instrument on one machine: what it errs by when the server
/// is known, found by `goodput selftest`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Floor {
    /// When it was found: RFC 3339.
    pub measured_at: String,
    /// The machine: processor model and number of cores.
    pub machine: String,
    /// Send lateness in µs at a light load: p50, p99, max.
    pub lateness_us: [f64; 3],
    /// User stamp − kernel stamp in µs: p50, p99, max.
    pub client_lag_us: [f64; 3],
    /// Reported arrival − the server's own write in µs: p50, p99.
    pub stamp_us: [f64; 2],
    /// Error of gaps between arrivals in µs: p50, p99.
    pub gap_us: [f64; 2],
    /// Processor time in µs that a chunk costs at the highest valid rate.
    pub cpu_us_per_chunk: f64,
    /// Highest rate in chunks a second at which a run was VALID, with the
    /// server on the same machine.
    pub highest_valid_chunks_s: f64,
}
