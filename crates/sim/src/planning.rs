//! What the engine model makes of a plan: the highest rate of arrivals whose
//! requests meet an objective, found in virtual time.

use measure::capacity::{Ask, Engine, Prediction, Tried};
use measure::definition::GOODPUT;
use measure::quantile;
use measure::request::{Settings as MetricSettings, Timed, Value};
use measure::slo::{Judgement, Quantity, judge};
use measure::{At, PerSecond, Record, Span};
use workload::arrival::Pace;
use workload::load::{Load, Stop};
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::routing::Routing;
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{Batch, Lengths, Prefixes};

use crate::client::{self, Observer, Surroundings};
use crate::cluster::Cluster;
use crate::settings::{Settings, SettingsError};

/// The shortest time that arrivals come for: below it a queue that grows slowly
/// would not be seen.
const SHORTEST_S: f64 = 180.0;

/// As many times as an answer takes.
const ANSWERS: f64 = 10.0;

/// Requests of one try at least and at most. The rate of fewer arrivals differs by
/// chance from the one that was asked for, and a queue that grows by a few in a
/// hundred is not told from one that sways.
const REQUESTS: (f64, f64) = (4_000.0, 16_000.0);

/// The search ends when what met the objective and what missed it are so close.
const CLOSE: f64 = 0.01;

/// Tries at most.
const MOST_TRIES: u32 = 24;

/// The rate of the first try, as a share of one request after the other: nobody
/// meets anybody.
const ALONE: f64 = 0.05;

/// Where the search begins then, as a share of the bound, and the first ratio of one
/// try to the next while an edge is not between two of them. Most engines stay
/// between half of their bound and three quarters of that.
const GUESS: f64 = 0.5;
const STRIDE: f64 = 1.4;

/// How much more may be under way at the end than in the middle, as a share of
/// what came between: beyond it a queue grows for ever.
const GROWS: f64 = 0.01;

/// Users of a load without an objective, as a multiple of the seats: all of them
/// are taken at any time.
const SATURATES: f64 = 1.25;

/// How far lengths lie around those that were asked for: requests that are all
/// alike begin and end together, as none do.
const SPREAD: f64 = 0.25;

/// The longest that a request may take: events count microseconds in 32 bits.
const LONGEST: Span = Span::from_ms(4_000_000);

impl Settings {
    /// One replica as bounds see it.
    ///
    /// # Errors
    /// What cannot be together, with the arithmetic.
    pub fn engine(&self) -> Result<Engine, SettingsError> {
        let limits = self.limits(0)?;
        let memory = self.memory();
        let machines = self.deployment();
        Ok(Engine {
            model: self.model.clone(),
            accelerator: machines.accelerator.unwrap_or(self.accelerator),
            tensor_parallel: self.tensor_parallel_size,
            pipeline_parallel: self.pipeline_parallel_size,
            weights: self.quantization,
            kv_cache: self.kv_cache_dtype,
            usable_bytes: memory.usable,
            reserved_bytes: memory.reserved,
            kv_capacity_tokens: f64::from(limits.blocks) * f64::from(limits.block_size),
            seats: self.max_num_seqs,
        })
    }
}

struct Keep(Vec<Record>);

impl Observer for Keep {
    fn ended(&mut self, record: Record) {
        self.0.push(record);
    }
}

/// The highest rate of Poisson arrivals at which at least `attainment` of the
/// requests meet the objective and no queue grows for ever, between 0 and
/// `most_req_s`. Without an objective it is what a saturated engine finishes.
///
/// # Errors
/// Settings that cannot be together, with the arithmetic.
pub fn predict(
    settings: &Settings,
    ask: &Ask,
    attainment: f64,
    most_req_s: f64,
    seed: u64,
) -> Result<Prediction, SettingsError> {
    if ask.slo.all_terms().next().is_none() {
        let tried = saturated(settings, ask, seed)?;
        return Ok(Prediction { met: Some(tried), missed: None, tries: 1 });
    }
    let alone_s = alone_s(settings, ask, seed)?;
    let attempt = |req_s: f64| at_rate(settings, ask, req_s, alone_s, seed);
    let mut prediction = Prediction { met: None, missed: None, tries: 0 };
    let mut take = |tried: Tried| {
        prediction.tries += 1;
        let meets = tried.attainment >= attainment && !tried.grows;
        let place = if meets { &mut prediction.met } else { &mut prediction.missed };
        *place = Some(tried);
        meets
    };
    let least = ALONE / alone_s.max(1e-6);
    if !take(attempt(least)?) {
        return Ok(prediction);
    }
    let most = most_req_s.max(2.0 * least);
    let (mut low, mut high) = (least, None);
    let (mut next, mut stride) = (GUESS * most, STRIDE);
    for _ in 1..MOST_TRIES {
        if take(attempt(next)?) {
            low = next
        } else {
            high = Some(next)
        }
        next = match high {
            None if low >= most => break,
            None => (STRIDE * low).min(most),
            // Nothing is known of what lies between, so the strides grow.
            Some(high) if low <= least && high > stride * least => {
                let lower = high / stride;
                stride *= stride;
                lower
            }
            Some(high) if high - low <= CLOSE * high => break,
            // Far apart, by ratio; near, by difference.
            Some(high) if high > 4.0 * low => (low * high).sqrt(),
            Some(high) => (low + high) / 2.0,
        };
    }
    Ok(prediction)
}

/// What one request alone takes, seconds.
fn alone_s(settings: &Settings, ask: &Ask, seed: u64) -> Result<f64, SettingsError> {
    let load = Load::Open { pace: Pace::flat(PerSecond::new(1.0), 1.0) };
    let records = records(settings, ask, load, 1, seed)?;
    let timed = records.first().map(|record| Timed::new(record, &GOODPUT, metric_settings(ask)));
    Ok(timed.and_then(|timed| timed.e2el().ok()).map_or(1.0, |ms| ms / 1e3))
}

/// Arrivals at a rate, of which the second half is judged: the first one fills
/// the engine.
fn at_rate(
    settings: &Settings,
    ask: &Ask,
    req_s: f64,
    alone_s: f64,
    seed: u64,
) -> Result<Tried, SettingsError> {
    let lasts_s = SHORTEST_S.max(ANSWERS * alone_s);
    let count = (req_s * lasts_s).clamp(REQUESTS.0, REQUESTS.1) as u32;
    let load = Load::Open { pace: Pace::flat(PerSecond::new(req_s), 1.0) };
    let mut records = records(settings, ask, load, count, seed)?;
    records.sort_by_key(|record| record.index);
    let later = &records[records.len() / 2..];
    let grows = grows(&records, later);
    Ok(Tried { grows, ..judged(later, ask, req_s) })
}

/// As many users as keep all seats taken; the rate is that of the middle half
/// of the ends.
fn saturated(settings: &Settings, ask: &Ask, seed: u64) -> Result<Tried, SettingsError> {
    let seats = settings.engine()?.most_seats(ask).max(1.0);
    let users = (SATURATES * seats * f64::from(settings.replicas)).ceil();
    let count = (8.0 * users).clamp(REQUESTS.0, 2.0 * REQUESTS.1) as u32;
    let users = (users as u32).min(count);
    let load = Load::Closed { users, think: Span::ZERO.into() };
    let mut records = records(settings, ask, load, count, seed)?;
    let ended = |record: &Record| record.stamps.ended_at.unwrap_or_default();
    records.sort_by_key(ended);
    let (from, until) = (records.len() / 4, 3 * records.len() / 4);
    let length = ended(&records[until]) - ended(&records[from]);
    let req_s = (until - from) as f64 / length.s().max(1e-9);
    Ok(judged(&records[from..until], ask, req_s))
}

fn metric_settings(ask: &Ask) -> MetricSettings {
    MetricSettings { events_kept: needs_gaps(ask), ..MetricSettings::default() }
}

/// True where the objective is about gaps between tokens.
fn needs_gaps(ask: &Ask) -> bool {
    ask.slo.all_terms().any(|term| matches!(term.quantity, Quantity::Icl(_) | Quantity::Itl(_)))
}

/// Whether more is under way when the last request comes than when the first of
/// the later ones did.
fn grows(records: &[Record], later: &[Record]) -> bool {
    let intended = |record: Option<&Record>| record.map(|record| record.stamps.intended_at);
    let Some((middle, end)) = intended(later.first()).zip(intended(later.last())) else {
        return false;
    };
    let under_way = |at: At| {
        let is = |record: &&Record| {
            record.stamps.intended_at <= at && record.stamps.ended_at.is_none_or(|end| end > at)
        };
        records.iter().filter(is).count() as f64
    };
    let (before, after) = (under_way(middle), under_way(end));
    // What is under way moves by chance as a count does.
    after - before > GROWS * later.len() as f64 + 3.0 * before.sqrt()
}

fn judged(records: &[Record], ask: &Ask, req_s: f64) -> Tried {
    let settings = metric_settings(ask);
    let timed: Vec<Timed<'_>> =
        records.iter().map(|record| Timed::new(record, &GOODPUT, settings)).collect();
    let is_good = |one: &&Timed<'_>| {
        matches!(judge(one, &ask.slo).joint, Judgement::Met | Judgement::Vacuous)
    };
    let good = timed.iter().filter(is_good).count();
    let sorted = |value: fn(&Timed<'_>) -> Value| {
        let mut all: Vec<f64> = timed.iter().filter_map(|one| value(one).ok()).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let at = |sorted: &[f64], share| quantile::linear(sorted, share).unwrap_or(f64::INFINITY);
    let ttft = sorted(|timed| timed.ttft());
    let tpot = sorted(|timed| timed.tpot());
    let mean = tpot.iter().sum::<f64>() / tpot.len().max(1) as f64;
    Tried {
        req_s,
        judged: timed.len() as u32,
        attainment: good as f64 / timed.len().max(1) as f64,
        grows: false,
        ttft_ms: [at(&ttft, 0.5), at(&ttft, 0.99)],
        tpot_ms: (!tpot.is_empty()).then(|| [mean, at(&tpot, 0.99)]),
    }
}

/// The context that requests around these lengths need, tokens.
pub fn context_of(ask: &Ask) -> u32 {
    ((1.0 + SPREAD) * (f64::from(ask.input) + f64::from(ask.output))).ceil() as u32
}

/// Requests of lengths around the asked ones, all with prompts of their own.
fn records(
    settings: &Settings,
    ask: &Ask,
    load: Load,
    count: u32,
    seed: u64,
) -> Result<Vec<Record>, SettingsError> {
    let wrong = |rule: String| SettingsError::Together(rule);
    // The longest of them must fit the context.
    let room = f64::from(settings.context()) / (f64::from(ask.input) + f64::from(ask.output));
    let spread = (room - 1.0).clamp(0.0, SPREAD);
    let lengths = |tokens: u32| {
        let lengths = Lengths::uniform(tokens, spread);
        lengths.map_err(|error| wrong(format!("{tokens} tokens: {error}")))
    };
    let spec = Spec {
        seed,
        load,
        stop: Stop::Count(count),
        prompts: PromptSource::Synthetic { input: lengths(ask.input)? },
        pictures: None,
        batch: Batch::One,
        prefixes: Prefixes::NONE,
        output: OutputLength::Drawn(lengths(ask.output)?),
        output_forced: true,
        cache: CacheRegime::None,
        nonce_in_own_prompts: false,
        labels: Vec::new(),
        routing: Routing::default(),
        conversations: None,
    };
    let around = Surroundings {
        one_way: Span::ZERO,
        request_timeout: LONGEST,
        idle_timeout: LONGEST,
        is_chat: false,
        keep_events: needs_gaps(ask),
        default_output: client::DEFAULT_OUTPUT,
        choices: 1,
    };
    let (schedule, _) = Schedule::draw(spec).map_err(|error| wrong(error.to_string()))?;
    let cluster = Cluster::new(settings, seed)?;
    let mut kept = Keep(Vec::with_capacity(count as usize));
    client::run(&schedule, RunNonce::new(seed), cluster, around, &mut kept);
    Ok(kept.0)
}
