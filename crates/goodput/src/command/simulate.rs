//! `sim run`: a load against the engine model, in virtual time.

use drive::Happening;
use fake::telemetry::{self, Scraper};
use measure::facts::InstrumentFacts;
use measure::slo::{Quantity, Slo, Term};
use measure::tally::Tally;
use measure::{At, Record, Span};
use report::number::{percent, short};
use serde_json::Value;
use sim::client::{self, Observer, Surroundings};
use sim::{Cluster, StepReport, Totals};
use store::RunId;
use wire::api::{Api, Yields};
use wire::exposition::Profile;
use wire::prometheus::Reader;
use wire::scrapes::{Collected, Keeper, MOST_VALUES, Scrape, Source};
use workload::prompt::RunNonce;
use workload::schedule::Schedule;

use crate::command::bench;
use crate::command::report::isolated;
use crate::command::session::{Generated, Known, Outputs, Session, directory, new_id};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{self, Settings, UsageError};
use crate::plan::{self, Plan};
use crate::progress::Progress;
use crate::{inquiry, open};

/// Runs the command; the exit code is its result.
pub(crate) fn run(settings: &Settings) -> Result<Exit, Failure> {
    let settings = &bench::with_seed(settings.clone())?;
    let mut plan = plan::resolve(settings, open).map_err(Failure::usage)?;
    check(settings, &plan)?;
    let choices = choices(&plan)?;
    let one_way = one_way(settings)?;
    let engine = plan.engine.clone().unwrap_or_default();
    let mut cluster = Cluster::new(&engine, plan.spec.seed).map_err(set_error)?;
    let (schedule, notes) = bench::draw(&plan)?;
    plan::objective::name_labels(&mut plan, &schedule)?;
    plan.isolated = isolated(settings.all("isolated"), settings.text("runs-dir"))?;
    bench::take_notes(&mut plan, &schedule, &notes);
    if settings.is_on("dry-run") {
        return bench::dry_run(settings, &plan, &schedule);
    }
    let told = inquiry::fits_in(engine.context(), "of the engine model", &schedule)?;
    plan.workload.notes.extend(told);
    let outputs = Outputs::open(settings)?;
    let (run_id, started_at): (RunId, String) = new_id()?;
    let directory = directory(settings, run_id)?;
    let run_id = run_id.to_string();
    let command = &["sim", "run"];
    let session =
        Session { command, settings, plan: &plan, schedule: &schedule, run_id, started_at };
    let rows_kept = !settings.is_on("no-events");
    let known = Known {
        target: TARGET.to_owned(),
        engine: Some(described(&engine)),
        model: plan.model.clone().unwrap_or_else(|| engine.model.id.to_string()),
        simulated: true,
        rows_kept,
    };
    let around = Surroundings {
        one_way,
        request_timeout: plan.request_timeout,
        idle_timeout: plan.idle_timeout,
        is_chat: plan.api == Api::OpenaiChat,
        keep_events: rows_kept,
        default_output: client::DEFAULT_OUTPUT,
        choices,
    };
    // The same seed gives the same run, so nothing of it is drawn elsewhere.
    let nonce = RunNonce::new(plan.spec.seed);
    if let Some(warmup) = plan::warmup(&plan, &schedule) {
        cluster = client::run(&warmup, nonce, cluster, around, &mut Unheard);
    }
    let model = Model { engine: &engine, schedule: &schedule, nonce, around };
    let metrics = plan.metrics.as_ref().filter(|_| rows_kept);
    let mut scraped = metrics.map(|metrics| Scraping::new(&known.model, metrics.interval));
    let finished = if rows_kept {
        session.record(known, directory, |sink| {
            let mut told = Told { sink, now: At::ZERO, began_ns: cluster.now_ns() };
            let mut generated = match &mut scraped {
                None => model.run(cluster, &mut told),
                Some(scraped) => {
                    let mut watching = scraped.beside(&mut told, &engine).map_err(set_error)?;
                    model.run(cluster, &mut watching)
                }
            };
            generated.collected = scraped.take().map(Scraping::into_collected).unwrap_or_default();
            Ok(generated)
        })?
    } else {
        session.count(known, &directory, |tally, progress| {
            Ok(model.run(cluster, &mut Counting { tally, progress }))
        })?
    };
    finished.publish(settings, &plan, outputs)
}

/// What answers a schedule.
struct Model<'a> {
    engine: &'a sim::Settings,
    schedule: &'a Schedule,
    nonce: RunNonce,
    around: Surroundings,
}

impl Model<'_> {
    fn run(&self, cluster: Cluster, observer: &mut impl Observer) -> Generated {
        let (began_ns, before) = (cluster.now_ns(), cluster.totals());
        let after = client::run(self.schedule, self.nonce, cluster, self.around, observer);
        let length_s = (after.now_ns() - began_ns) as f64 / 1e9;
        Generated {
            notes: vec![worked(self.engine, &after.totals().since(&before), length_s)],
            collected: Collected::default(),
            anchor_ns: 0,
            early: None,
            instrument: InstrumentFacts {
                stamp_source: VIRTUAL.to_owned(),
                stamp_error_p99_us: Some(0.0),
                ..InstrumentFacts::default()
            },
        }
    }
}

/// What the engine did in a run of so many seconds, in words.
fn worked(engine: &sim::Settings, totals: &Totals, length_s: f64) -> String {
    let (hfu, mbu) = engine.shares_of_peaks(totals, length_s.max(1e-9));
    let replicas = f64::from(engine.replicas + engine.prefill_replicas);
    let busy = totals.busy_ns as f64 / 1e9 / (length_s.max(1e-9) * replicas);
    format!(
        "the engine model took {} steps in {} s; its accelerators were busy {} of the time, at {} of \
         their arithmetic (HFU) and {} of their memory bandwidth (MBU); {} preemptions",
        totals.steps,
        short(length_s),
        percent(busy),
        percent(hfu),
        percent(mbu),
        totals.preemptions,
    )
}

/// The answers that each request asks for: `n` of `--extra-body`, which a server
/// would read.
pub(crate) fn choices(plan: &Plan) -> Result<u8, UsageError> {
    let template = &plan.template;
    let member = |name: &str| template.extra_body.get(name).or(template.sampling.get(name));
    let asked = match member("n") {
        None | Some(Value::Null) => None,
        Some(n) => Some(n.as_u64().ok_or_else(|| {
            UsageError::new("--extra-body", format!("n must be a whole number, got {n}"))
        })?),
    };
    let temperature = member("temperature").and_then(Value::as_f64);
    sim::choices(asked, temperature).map_err(|error| UsageError::new("--extra-body", error))
}

/// From the client to the engine, and back, each: half of `--network`.
pub(crate) fn one_way(settings: &Settings) -> Result<Span, UsageError> {
    let Some(text) = settings.text("network") else { return Ok(Span::ZERO) };
    let span = flags::parse_duration(text);
    let span = span.filter(|span| *span <= LONGEST_WAY && *span >= Span::ZERO);
    let rule = "is not a duration up to 60s; write 2ms";
    span.map(|span| Span::from_us(span.us() / 2)).ok_or_else(|| UsageError::new("--network", rule))
}

/// The longest way to an engine and back.
const LONGEST_WAY: Span = Span::from_ms(60_000);

/// Hears of warm-up requests, of which nothing is kept.
struct Unheard;

impl Observer for Unheard {
    fn ended(&mut self, _: Record) {}

    fn counted(&mut self, _: &Record, _: &[(u32, u32)]) {}
}

/// What answers, as a result shows it.
pub(super) const TARGET: &str = "engine model";

/// Where stamps come from when no clock is read.
pub(super) const VIRTUAL: &str = "virtual";

/// What the model tells of itself as a server of its kind would, at instants of
/// its own time.
struct Scraping {
    model: String,
    interval: Span,
    keeper: Keeper,
    reader: Reader,
}

impl Scraping {
    fn new(model: &str, interval: Span) -> Self {
        let source = Source { is_found: true, ..Source::new(TARGET) };
        let keeper = Keeper::new(source, MOST_VALUES);
        Self { model: model.to_owned(), interval, keeper, reader: Reader::default() }
    }

    /// The observer of a run, with what is scraped beside it.
    fn beside<'a, O: Observer>(
        &'a mut self,
        observer: &'a mut O,
        engine: &sim::Settings,
    ) -> Result<telemetry::Scraped<'a, O, impl FnMut(At, String) + 'a>, sim::SettingsError> {
        let Self { model, interval, keeper, reader } = self;
        let take = |at: At, text: String| match reader.read(text.as_bytes()) {
            Ok(exposition) => {
                keeper.push(Scrape { at, took: Span::ZERO, late: Span::ZERO, exposition });
            }
            Err(why) => keeper.fail(at, why.to_string()),
        };
        let scraper = Scraper::new(engine, Profile::Vllm, model.clone(), *interval, take)?;
        Ok(telemetry::Scraped { observer, scraper })
    }

    fn into_collected(self) -> Collected {
        Collected { sources: vec![self.keeper.into_source()], interval: self.interval }
    }
}

/// Passes on what the model says, with the time that it has come to.
struct Told<'a> {
    sink: &'a mut dyn FnMut(Happening),
    now: At,
    /// The engine's instant at which the run begins.
    began_ns: u64,
}

impl Observer for Told<'_> {
    fn ended(&mut self, record: Record) {
        self.now = self.now.max(record.stamps.ended_at.unwrap_or_default());
        (self.sink)(Happening::Ended(Box::new(record)));
    }

    fn step(&mut self, _replica: usize, report: &StepReport) {
        let now = At::from_us((report.ends_ns.saturating_sub(self.began_ns) / 1_000) as i64);
        // Progress is for people; a tick for each step would be too many.
        if now > self.now + Span::from_ms(1_000) {
            self.now = now;
            (self.sink)(Happening::Tick(now));
        }
    }
}

/// Counts requests, of which none is kept.
struct Counting<'a> {
    tally: &'a mut Tally,
    progress: &'a mut Progress,
}

impl Observer for Counting<'_> {
    fn sent(&mut self, at: At) {
        self.tally.sent(at);
    }

    fn ended(&mut self, record: Record) {
        self.counted(&record, &[]);
    }

    fn counted(&mut self, record: &Record, gaps: &[(u32, u32)]) {
        self.progress.counted(record);
        self.tally.ended(record, gaps);
    }
}

/// Flags of `bench` that a model cannot heed.
const UNHEEDED: &[(&str, &str)] = &[
    ("max-errors", "the model has no errors to stop at"),
    ("max-error-rate", "the model has no errors to stop at"),
    ("selftest", "there is no instrument to test"),
    ("ground-truth", "the model's instants are the truth"),
    ("reset-cache-url", "the model's prefix cache is empty at the start"),
    ("metrics-url", "the model tells its own metrics, and nobody else's are of interest"),
    ("metrics-header", "nobody is asked over a network"),
    ("nvml", "no accelerator of this machine computes for the model"),
    ("save-text", "the model writes no text"),
];

/// What of `bench`'s flags means nothing here.
fn check(settings: &Settings, plan: &Plan) -> Result<(), Failure> {
    if plan.address.is_some() {
        let rule = "sim run has no target: the engine model answers; leave the address out, or use \
                    goodput bench";
        return Err(UsageError::new("--url", rule).into());
    }
    if plan.api.entry().yields != Yields::Tokens {
        let rule =
            "sim run models engines that write answers; openai-chat and openai are simulated";
        return Err(UsageError::new("--backend", rule).into());
    }
    if plan.spec.pictures.is_some() {
        let rule = "sim run models prompts of text: it does not know what a picture costs";
        return Err(UsageError::new("--dataset-name", rule).into());
    }
    if settings.is_on("no-events")
        && let Some(rule) = needs_requests(settings, plan)
    {
        return Err(UsageError::new("--no-events", rule).into());
    }
    let unheeded = UNHEEDED.iter().filter(|(flag, _)| settings.has(flag));
    let unheeded: Vec<UsageError> = unheeded
        .map(|(flag, why)| {
            UsageError::new(format!("--{flag}"), format!("means nothing to sim run: {why}"))
        })
        .collect();
    if unheeded.is_empty() { Ok(()) } else { Err(Failure::usage(unheeded)) }
}

/// What of the flags needs requests that are not kept, as a rule.
fn needs_requests(settings: &Settings, plan: &Plan) -> Option<&'static str> {
    if settings.has("metrics-interval") {
        return Some("keeps no request that metrics could be held against; leave one out");
    }
    let by_gaps = |term: &Term| matches!(term.quantity, Quantity::Icl(_) | Quantity::Itl(_));
    if plan.slo.iter().flat_map(Slo::all_terms).any(by_gaps) {
        return Some(
            "keeps no gaps of a request, and the objective has a limit of them; leave one out",
        );
    }
    if settings.has("csv") {
        return Some("keeps no request, and --csv is a line of each; leave one out");
    }
    (plan.definitions != measure::definition::GOODPUT.name).then_some(
        "keeps no events, and --definitions looks at them by another tool's rules; leave one out",
    )
}

pub(crate) fn set_error(error: sim::SettingsError) -> Failure {
    UsageError::new("--set", error).into()
}

/// The engine in a few words.
pub(crate) fn described(engine: &sim::Settings) -> String {
    let accelerators = engine.accelerators();
    let count = if accelerators == 1 { String::new() } else { format!("{accelerators} × ") };
    format!("goodput engine model: {} on {count}{}", engine.model.name, engine.accelerator.name)
}
