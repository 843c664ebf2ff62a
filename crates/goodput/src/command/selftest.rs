//! `selftest`: what the instrument itself errs by on this machine.
//!
//! Calibrated loads are fired at the embedded engine over loopback, and what
//! was reported is held against what the engine wrote down. The server shares
//! the machine, so the highest valid rate is a lower bound of the client's.

use std::sync::Arc;
use std::time::Duration;

use drive::secret::Secrets;
use drive::{Control, Happening, IDLE_LIMIT, Instrument, Job, Reuse, StopRules, Target, tls};
use fake::{Config, EngineConfig, Server};
use measure::accuracy::{Accuracy, accuracy};
use measure::definition::{Endpoint, SERVICE};
use measure::facts::{Floor, InstrumentFacts, LoadFacts, LoadKind, RunFacts, WorkloadFacts};
use measure::request::Settings as MetricSettings;
use measure::statistics::Distribution;
use measure::summary::{Summary, summarise};
use measure::validity::Verdict;
use measure::{PerSecond, Record, Span, Tokens};
use report::number::{duration_ms, short};
use wire::api::{Api, Prompt, RequestSpec};
use wire::url::Url;
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{Lengths, Load, Pace, Stop};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::{host, output};

/// Time between tokens of a stream: 50 tokens a second.
const INTERVAL: Duration = Duration::from_millis(20);

/// Rates tried in turn, in chunks a second, until one is no longer VALID.
const RATES: &[u32] = &[
    2_500, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000, 50_000, 60_000, 80_000, 100_000, 150_000,
    200_000,
];

/// How thorough a selftest is.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Tokens of each stream in a level: a fiftieth of a second each.
    tokens: u32,
    /// Arrivals in the lateness level.
    arrivals: u32,
    /// Streams in step in the accuracy level.
    streams: u32,
    /// Every so many of the rates are tried.
    stride: usize,
    /// Tries at a rate that have to be valid; one may be not.
    valid: u32,
}

const FULL: Effort = Effort { tokens: 75, arrivals: 600, streams: 500, stride: 1, valid: 2 };
const QUICK: Effort = Effort { tokens: 15, arrivals: 120, streams: 100, stride: 3, valid: 1 };

/// Runs the selftest, prints the floor and stores it.
pub(crate) fn run(
    quick: bool,
    runs_dir: Option<&str>,
    json: Option<&str>,
) -> Result<Exit, Failure> {
    let json = output::Json::open(json)?;
    let floor = find(if quick { QUICK } else { FULL })?;
    store(&floor, runs_dir)?;
    let text = words(&floor);
    json.show(&text);
    json.write(&wire::floor::to_json(&floor))?;
    Ok(Exit::Ok)
}

/// The quick selftest that `bench --selftest` runs before it measures.
pub(crate) fn before_bench(runs_dir: Option<&str>) -> Result<(), Failure> {
    let floor = find(QUICK)?;
    crate::say(&words(&floor));
    store(&floor, runs_dir)
}

/// The floor that an earlier selftest of this machine stored.
pub(crate) fn stored(runs_dir: Option<&str>) -> Option<Floor> {
    let path = output::runs_dir(runs_dir).join(wire::floor::FILE);
    let floor = wire::floor::decode(&store::read_file(&path, 1 << 20).ok()?)?;
    // A folder of runs may have come from elsewhere.
    (floor.machine == machine()).then_some(floor)
}

fn store(floor: &Floor, runs_dir: Option<&str>) -> Result<(), Failure> {
    let folder = output::runs_dir(runs_dir);
    std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::internal(format!("{}: {error}", folder.display())))?;
    Ok(store::write_file_atomic(&folder.join(wire::floor::FILE), &wire::floor::encode(floor))?)
}

fn machine() -> String {
    let facts = host::facts();
    let of = |name: &str| {
        facts.iter().find(|(known, _)| known == name).map_or("?", |(_, value)| value.as_str())
    };
    format!("{}, {} cores, {}", of("cpu"), of("cores"), of("os"))
}

fn words(floor: &Floor) -> String {
    let us = |us: f64| duration_ms(us / 1e3);
    format!(
        "Floor of this instrument on {}\n  \
         sends late by          P50 {}, P99 {}, max {}\n  \
         client's own lag       P50 {}, P99 {}, max {}\n  \
         receive stamps off by  P50 {}, P99 {}\n  \
         gaps off by            P50 {}, P99 {}\n  \
         processor time         {} µs a chunk\n  \
         highest valid rate     {} chunks/s, with the server on the same machine",
        floor.machine,
        us(floor.lateness_us[0]),
        us(floor.lateness_us[1]),
        us(floor.lateness_us[2]),
        us(floor.client_lag_us[0]),
        us(floor.client_lag_us[1]),
        us(floor.client_lag_us[2]),
        us(floor.stamp_us[0]),
        us(floor.stamp_us[1]),
        us(floor.gap_us[0]),
        us(floor.gap_us[1]),
        short(floor.cpu_us_per_chunk),
        short(floor.highest_valid_chunks_s),
    )
}

fn find(effort: Effort) -> Result<Floor, Failure> {
    let (_, measured_at) = host::wall_time();
    let arrivals = level(&Level {
        load: Load::Open { pace: Pace::flat(PerSecond::new(200.0), 1.0) },
        count: effort.arrivals,
        tokens: 2,
        lockstep: false,
    })?;
    let steps = level(&Level {
        load: Load::Burst,
        count: effort.streams,
        tokens: effort.tokens,
        lockstep: true,
    })?;
    let figures = |figures: &Distribution| {
        [figures.figure("p50").unwrap_or_default(), figures.figure("p99").unwrap_or_default()]
    };
    let mut floor = Floor {
        measured_at,
        machine: machine(),
        lateness_us: arrivals.summary.validity.lateness_us.unwrap_or_default(),
        client_lag_us: steps.instrument.client_lag_us.unwrap_or_default(),
        stamp_us: figures(&steps.accuracy.absolute_us),
        gap_us: figures(&steps.accuracy.gap_us),
        cpu_us_per_chunk: steps.cpu_us_per_chunk(),
        highest_valid_chunks_s: 0.0,
    };
    for rate in RATES.iter().step_by(effort.stride) {
        let streams =
            Level { load: Load::Burst, count: rate / 50, tokens: effort.tokens, lockstep: false };
        // One bad try may be the machine's bad luck, and one good one its good
        // luck: a floor that can be counted on takes two of three.
        let (mut valid, mut not) = (0, 0);
        while valid < effort.valid && not < 2 {
            let reached = level(&streams)?;
            if reached.is_valid() {
                valid += 1;
                floor.cpu_us_per_chunk = reached.cpu_us_per_chunk();
            } else {
                not += 1;
            }
        }
        if valid < effort.valid {
            break;
        }
        floor.highest_valid_chunks_s = f64::from(*rate);
    }
    Ok(floor)
}

/// One calibrated load.
struct Level {
    load: Load,
    count: u32,
    tokens: u32,
    lockstep: bool,
}

/// What a level showed.
struct Reached {
    summary: Summary,
    instrument: Instrument,
    accuracy: Accuracy,
    chunks: u64,
}

impl Reached {
    fn is_valid(&self) -> bool {
        self.summary.validity.verdict == Verdict::Valid
    }

    fn cpu_us_per_chunk(&self) -> f64 {
        self.instrument.cpu_ns as f64 / 1e3 / self.chunks.max(1) as f64
    }
}

fn level(level: &Level) -> Result<Reached, Failure> {
    let engine = EngineConfig {
        ttft: Duration::from_millis(50),
        ttft_per_prompt_token: Duration::ZERO,
        token_interval: INTERVAL,
        max_num_seqs: 1 << 20,
        lockstep: level.lockstep,
        ..EngineConfig::default()
    };
    // A real server is on another machine. Here the kernel likes to wake the
    // reader where the writer still runs, which is no lag of the client's.
    let processors = host::Processors::of_this_thread();
    processors.use_last();
    let server =
        Server::start(Config { engine, ..Config::default() }).map_err(Failure::internal)?;
    processors.use_others();
    let job = job(level, &server)?;
    let schedule = Arc::clone(&job.schedule);
    let rules = StopRules { max_errors: None, max_error_rate: None };
    let mut records: Vec<Record> = Vec::new();
    let end = drive::run(Arc::new(job), rules, &Control::default(), |happening| {
        if let Happening::Ended(record) = happening {
            records.push(*record);
        }
    })
    .map_err(Failure::internal)?;
    let log = server.stop();
    let truths = output::by_index(&log.truths);
    let facts = facts(level, &schedule, &end.instrument);
    Ok(Reached {
        summary: summarise(&records, &facts, &SERVICE),
        accuracy: accuracy(&records, &truths, end.clock.anchor_ns()),
        chunks: records.iter().map(|record| u64::from(record.output_chunks())).sum(),
        instrument: end.instrument,
    })
}

fn job(level: &Level, server: &Server) -> Result<Job, Failure> {
    let spec = Spec {
        seed: 0,
        load: level.load.clone(),
        stop: Stop::Count(level.count),
        prompts: PromptSource::fixed("selftest"),
        pictures: None,
        batch: workload::Batch::One,
        output: OutputLength::Drawn(Lengths::Fixed(Tokens::new(level.tokens))),
        output_forced: true,
        cache: CacheRegime::AsIs,
        nonce_in_own_prompts: false,
        prefixes: workload::Prefixes::NONE,
        labels: Vec::new(),
        routing: workload::Routing::default(),
        conversations: None,
    };
    let (schedule, _) = Schedule::draw(spec).map_err(Failure::internal)?;
    let api = Api::OpenaiChat;
    let url = api.endpoint_url(&server.url(), None, None).map_err(Failure::internal)?;
    Ok(Job {
        run_id: "selftest".to_owned(),
        schedule: Arc::new(schedule),
        nonce: RunNonce::new(0),
        targets: vec![Target {
            url: Url::parse(&url).map_err(Failure::internal)?,
            tls: tls::client_config(&tls::Trust::System).map_err(Failure::internal)?,
        }],
        api,
        template: RequestSpec::new(
            EngineConfig::default().model.unwrap_or_default(),
            Prompt::Text(String::new()),
        ),
        headers: Vec::new(),
        ids_by: None,
        session_header: None,
        secrets: Secrets::default(),
        idle_timeout: Span::from_ms(10_000),
        request_timeout: Span::from_ms(60_000),
        idle_limit: IDLE_LIMIT,
        reuse: Reuse::Always,
        keep_text: false,
        threads: 1,
        warmup: None,
    })
}

fn facts(level: &Level, schedule: &Schedule, instrument: &Instrument) -> RunFacts {
    let kind = LoadKind::ALL.iter().copied().find(|kind| kind.name() == level.load.kind());
    RunFacts {
        run_id: "selftest".to_owned(),
        target: "embedded engine".to_owned(),
        engine: None,
        model: None,
        simulated: true,
        api: Api::OpenaiChat.name().to_owned(),
        endpoint: Endpoint::Chat,
        load: LoadFacts {
            kind: kind.unwrap_or(LoadKind::Unknown),
            request_rate: level.load.rate().map(PerSecond::get),
            burstiness: level.load.burstiness(),
            users: level.load.users(),
            arrivals: level.load.arrival_text(),
            planned_duration: None,
            seed: 0,
            schedule_hash: schedule.hash(),
            replay: None,
        },
        workload: WorkloadFacts::default(),
        slo: None,
        settings: MetricSettings::default(),
        percentiles: Vec::new(),
        instrument: InstrumentFacts {
            stamp_source: instrument.stamp_source.to_owned(),
            client_lag_us: instrument.client_lag_us,
            stamp_error_p99_us: instrument.stamp_error_p99_us,
            clock_steps: instrument.clock_steps,
            round_trip: instrument.round_trip,
            busiest_thread: instrument.busiest_thread,
            throttled: None,
            planned_requests: Some(u64::from(level.count)),
            floor: None,
        },
        request_timeout: None,
        source_duration_s: None,
        as_reported: Vec::new(),
        isolated: Vec::new(),
        deployment: measure::deployment::Deployment::default(),
        rows_kept: true,
        interrupted: false,
    }
}
