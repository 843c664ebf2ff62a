//! The coefficients of an engine from runs that were measured.
//!
//! A run is simulated with its own requests, and the settings are moved until
//! what the model says agrees with what was measured: nonlinear least squares
//! (Levenberg, 1944; Marquardt, 1963). The search moves times, of which a step's
//! is nearly a sum: an overhead as it is, a rate by its inverse. The residuals
//! are logarithms of ratios, so that each counts by its relative error: deciles
//! of TTFT and TPOT, the time that the run took, and, where the server says it,
//! of what its own TTFT is made.

use std::fmt;

use measure::definition::GOODPUT;
use measure::facts::{LoadFacts, LoadKind};
use measure::quantile;
use measure::request::{Settings as MetricSettings, Timed};
use measure::{At, Outcome, Record, Span, Tokens};
use workload::arrival::Pace;
use workload::load::{Load, Stop};
use workload::prompt::{CacheRegime, PromptRef, PromptSource, RunNonce};
use workload::routing::{Route, Routing};
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{After, Batch, Lengths, Prefixes, Request};

use crate::client::{self, Given, Observer, Surroundings, Watcher};
use crate::cluster::Cluster;
use crate::inside::{Inside, Listening};
use crate::settings::{Setting, Settings, SettingsError};

/// Settings that are fitted unless others are asked for.
pub const USUAL: &[&str] = &[
    "compute_efficiency",
    "memory_efficiency",
    "step_overhead_us",
    "request_overhead_us",
    "frontend_overhead_us",
];

/// Of which probabilities quantiles are compared.
const DECILES: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// What residuals weigh against that of one decile.
#[derive(Clone, Copy)]
struct Weights {
    /// A run's length.
    length: f64,
    /// A part of the server's TTFT.
    part: f64,
}

impl Weights {
    /// In the search. A part's mean moves with no other residual, so its square
    /// counts for as many deciles as are counted as one, [`TOGETHER`].
    const SEARCHED: Self = Self { length: 3.0, part: 2.12 };
    /// In the error that is told.
    const EVEN: Self = Self { length: 1.0, part: 1.0 };
}

/// Requests that ended well below which deciles say little.
const FEWEST: usize = 20;

/// The share of requests that may have failed: the model knows no failures.
const MOST_FAILED: f64 = 0.1;

/// Root mean square of the relative errors above which a fit is none.
pub const POOREST: f64 = 0.2;

/// The most that the ends of a setting's interval may be apart, as a ratio: from
/// there on the runs do not determine it.
const WIDEST: f64 = 3.0;

/// By how much the cost rises at the ends of an interval of 95 %: the quantile
/// of χ² with one degree of freedom.
const RISE: f64 = 3.841;

/// Deciles of one distribution move together: nine are counted as two.
const TOGETHER: f64 = 4.5;

/// Multiples of a setting's time at which its profile is looked at.
const PROFILE: [f64; 4] = [1.1, 1.3, 1.8, 4.0];

/// By how much the cost must be lower for a place to be better: less is within
/// what the residuals say by chance.
const BETTER: f64 = 1.0;

/// Steps of the search while one setting is held.
const PROFILE_STEPS: usize = 4;

/// How often a better place that a profile finds is followed.
const RESTARTS: usize = 4;

/// The longest that a request may take: events count microseconds in 32 bits.
const LONGEST: Span = Span::from_ms(4_000_000);

/// Steps of the search at most.
const MOST_STEPS: usize = 40;

/// How far a setting is moved to see what follows from it, as a share: steps of
/// the model are discrete, so that a smaller move shows their noise.
const MOVE: f64 = 0.3;

/// The standard deviation that a setting is believed to have around its start
/// before any run is looked at, as a multiple of that. It keeps what the runs do
/// not determine where it was.
const BELIEF: f64 = 5.0;

/// The smallest multiple of its start that a time is moved to.
const LEAST: f64 = 1e-3;

/// Settings that can be fitted: times and rates.
pub const FITTED: &[&str] = &[
    "compute_efficiency",
    "memory_efficiency",
    "link_efficiency",
    "collective_latency_us",
    "step_overhead_us",
    "eager_layer_overhead_us",
    "host_overhead_us",
    "request_overhead_us",
    "frontend_overhead_us",
    "frontend_token_us",
    "output_overhead_us",
    "draft_share",
    "kv_transfer_gb_s",
    "kv_transfer_latency_ms",
];

/// Settings that are rates: the time that they stand for is their inverse.
const RATES: &[&str] =
    &["compute_efficiency", "memory_efficiency", "link_efficiency", "kv_transfer_gb_s"];

/// The relative error that one decile is believed to have.
const NOISE: f64 = 0.02;

/// The search ends when a step gains less than this share.
const ENOUGH: f64 = 1e-3;

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// A run has too few requests.
    #[error("run {run} has {ok} requests that ended well; a fit needs at least {FEWEST}")]
    TooFew {
        /// Its id.
        run: String,
        /// How many ended well.
        ok: usize,
    },
    /// A run has too many failures.
    #[error(
        "run {run} has {failed} failures in {all} requests; the model knows no failures, so fit runs \
         without"
    )]
    Failures {
        /// Its id.
        run: String,
        /// How many failed.
        failed: usize,
        /// Requests in all.
        all: usize,
    },
    /// Requests without lengths.
    #[error(
        "run {run} does not say how long its prompts and answers were; measure it with a server \
         that sends usage"
    )]
    NoLengths {
        /// Its id.
        run: String,
    },
    /// A run whose requests asked for several answers each.
    #[error(
        "run {run} asked for several answers with one request (n), and of their lengths only the sum \
         is known; measure it with n = 1"
    )]
    SeveralChoices {
        /// Its id.
        run: String,
    },
    /// A run that cannot be played again.
    #[error("run {run} cannot be played again: {why}")]
    Unplayable {
        /// Its id.
        run: String,
        /// Which rule it breaks.
        why: String,
    },
    /// A setting that is no time and no rate of the model.
    #[error("{0}; what can be fitted: {all}", all = FITTED.join(", "))]
    NotFitted(String),
    /// A setting without a value to start from.
    #[error("{0} is 0 at the start, from where the search cannot move it; set it to a guess")]
    NoStart(&'static str),
    /// The settings themselves.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The model refuses requests that the engine took.
    #[error(
        "the model takes {simulated} of the {measured} requests of run {run}; set max_model_len and \
         num_gpu_blocks_override to what the engine has"
    )]
    Refused {
        /// The run's id.
        run: String,
        /// Requests that ended well in the model.
        simulated: usize,
        /// And in the run.
        measured: usize,
    },
}

/// A run that was measured, ready to be played again.
#[derive(Clone, Debug)]
pub struct Observed {
    name: String,
    schedule: Schedule,
    nonce: RunNonce,
    given: Vec<Given>,
    measured: Figures,
    /// What was sent before, unmeasured.
    warmup: Option<Schedule>,
    /// What lies around the engine.
    around: Surroundings,
    /// Of what the engine draws.
    seed: u64,
}

/// The longest time-outs, and nothing between client and server.
const BARE: Surroundings = Surroundings {
    one_way: Span::ZERO,
    request_timeout: LONGEST,
    idle_timeout: LONGEST,
    is_chat: false,
    keep_events: false,
    default_output: client::DEFAULT_OUTPUT,
    choices: 1,
};

/// What of a run is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Requests that ended well.
    pub ok: usize,
    /// Deciles of TTFT, ms.
    pub ttft_ms: Vec<f64>,
    /// Deciles of TPOT, ms; empty where answers have one token.
    pub tpot_ms: Vec<f64>,
    /// Mean of TTFT, ms; 0 where no request ended well.
    pub mean_ttft_ms: f64,
    /// Mean of TPOT, ms.
    pub mean_tpot_ms: Option<f64>,
    /// First intended to last event of those that ended well, seconds.
    pub makespan_s: f64,
    /// Of what the server's own TTFT is made, where it is known.
    pub inside: Option<Inside>,
}

impl Figures {
    /// The figures of these records.
    pub fn of(records: &[Record]) -> Self {
        let (mut ttft, mut tpot) = (Vec::new(), Vec::new());
        let (mut first, mut last) = (At::from_us(i64::MAX), At::ZERO);
        let mut ok = 0;
        for record in records.iter().filter(|record| record.outcome == Outcome::Ok) {
            let timed = Timed::new(record, &GOODPUT, MetricSettings::default());
            ttft.extend(timed.ttft());
            tpot.extend(timed.tpot());
            first = first.min(record.stamps.intended_at);
            last = last.max(record.stamps.ended_at.unwrap_or_default());
            ok += 1;
        }
        ttft.sort_by(f64::total_cmp);
        tpot.sort_by(f64::total_cmp);
        let deciles = |sorted: &[f64]| -> Vec<f64> {
            DECILES.iter().filter_map(|q| quantile::linear(sorted, *q)).collect()
        };
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
        Self {
            ok,
            ttft_ms: deciles(&ttft),
            tpot_ms: deciles(&tpot),
            mean_ttft_ms: mean(&ttft),
            mean_tpot_ms: (!tpot.is_empty()).then(|| mean(&tpot)),
            makespan_s: if ok == 0 { 0.0 } else { (last - first).s() },
            inside: None,
        }
    }

    /// Requests that ended well, a second.
    pub fn requests_per_s(&self) -> f64 {
        self.ok as f64 / self.makespan_s
    }

    /// Logarithms of this run's figures over another's, times their weights.
    fn residuals(&self, measured: &Self, weights: Weights, into: &mut Vec<f64>) {
        let pairs = |own: &[f64], other: &[f64], into: &mut Vec<f64>| {
            into.extend(own.iter().zip(other).map(|(own, other)| ratio(*own, *other)));
        };
        pairs(&self.ttft_ms, &measured.ttft_ms, into);
        pairs(&self.tpot_ms, &measured.tpot_ms, into);
        into.push(weights.length * ratio(self.makespan_s, measured.makespan_s));
        if let Some((own, told)) = self.inside.zip(measured.inside) {
            // A part counts by what it makes of TTFT, of which it is one: a queue
            // of 0.01 ms is as good as one of 0.02, and a tenth of TTFT is a tenth
            // wherever it lies.
            let whole = told.ttft_ms.unwrap_or(measured.mean_ttft_ms);
            let part = |own: f64, told: f64| weights.part * ratio(whole - told + own, whole);
            into.push(part(own.prefill_ms, told.prefill_ms));
            let waited = own.waited_ms().zip(told.waited_ms());
            into.extend(waited.map(|(own, told)| part(own, told)));
        }
    }
}

/// The logarithm of one time over another, both at least a nanosecond.
fn ratio(own: f64, other: f64) -> f64 {
    (own.max(1e-6) / other.max(1e-6)).ln()
}

impl Observed {
    /// A run with its records and the load that made it. Requests of a closed
    /// loop are asked again as its users become free; all others at the instants
    /// at which they were intended.
    ///
    /// # Errors
    /// What keeps the run from being played again.
    pub fn of(name: &str, records: &[Record], load: &LoadFacts) -> Result<Self, FitError> {
        let run = name.to_owned();
        let mut sent: Vec<&Record> =
            records.iter().filter(|record| record.stamps.sent_at.is_some()).collect();
        // As they were asked, which later turns of conversations are not by index.
        sent.sort_by_key(|record| (record.stamps.intended_at, record.index));
        let failed = sent.iter().filter(|record| record.outcome != Outcome::Ok).count();
        let ok = sent.len() - failed;
        if ok < FEWEST {
            return Err(FitError::TooFew { run, ok });
        }
        if failed as f64 > MOST_FAILED * sent.len() as f64 {
            return Err(FitError::Failures { run, failed, all: sent.len() });
        }
        sent.retain(|record| record.outcome == Outcome::Ok);
        if sent.iter().any(|record| record.answer.choices > 1) {
            return Err(FitError::SeveralChoices { run });
        }
        let measured = Figures::of(records);
        let users = load.users.filter(|_| load.kind == LoadKind::Closed);
        let users = users.filter(|users| asks_at_once(&sent, *users));
        let (mut requests, mut given) = (Vec::new(), Vec::new());
        for (place, record) in sent.iter().enumerate() {
            let (prompt, output) = match (record.answer.counts.prompt, record.output_tokens()) {
                (Some(prompt), Some((output, _))) => (prompt, output),
                _ => return Err(FitError::NoLengths { run }),
            };
            let after = match users {
                Some(_) => After::Slot { think: Span::ZERO },
                None => After::Instant(record.stamps.intended_at),
            };
            requests.push(Request {
                index: place as u32,
                after,
                session: place as u32,
                turn: 0,
                labels: Vec::new(),
                prompt: PromptRef::Written(Tokens::new(prompt.get().max(1))),
                input_tokens: Some(prompt),
                max_output_tokens: Some(output),
                output_forced: true,
                route: Route::default(),
            });
            given.push(Given {
                cached: record.answer.counts.cached.map(Tokens::get),
                ..Given::default()
            });
        }
        let cap = load.users.filter(|_| load.kind == LoadKind::Capped);
        let schedule = played(requests, users, cap)
            .map_err(|error| FitError::Unplayable { run: run.clone(), why: error.to_string() })?;
        let nonce = RunNonce::new(0);
        let (warmup, around, seed) = (None, BARE, 0);
        Ok(Self { name: run, schedule, nonce, given, measured, warmup, around, seed })
    }

    /// A run whose schedule is known, so that the model has to find what was
    /// cached. Prompts and answers are as long as they were; of several answers to
    /// a request, of which the sum is known, each is as long as their mean.
    pub fn of_schedule(
        name: &str,
        schedule: Schedule,
        nonce: RunNonce,
        records: &[Record],
    ) -> Self {
        let count = records.iter().map(|record| record.index as usize + 1).max().unwrap_or(0);
        let mut given = vec![Given::default(); count];
        for record in records.iter().filter(|record| record.outcome == Outcome::Ok) {
            let choices = u32::from(record.answer.choices.max(1));
            let tokens = record.output_tokens().map(|(tokens, _)| tokens.get());
            given[record.index as usize] = Given {
                cached: None,
                natural: tokens.map(|tokens| tokens.div_ceil(choices)),
                prompt: record.answer.counts.prompt.map(Tokens::get),
            };
        }
        let measured = Figures::of(records);
        let (warmup, around, seed) = (None, BARE, schedule.spec().seed);
        let name = name.to_owned();
        Self { name, schedule, nonce, given, measured, warmup, around, seed }
    }

    /// The same after a warm-up.
    #[must_use]
    pub fn after(mut self, warmup: Option<Schedule>) -> Self {
        self.warmup = warmup;
        self
    }

    /// The same with these time-outs and `one_way` between client and server.
    #[must_use]
    pub fn within(mut self, request_timeout: Span, idle_timeout: Span, one_way: Span) -> Self {
        self.around.request_timeout = request_timeout.min(LONGEST);
        self.around.idle_timeout = idle_timeout.min(LONGEST);
        self.around.one_way = one_way;
        self
    }

    /// The same where each request asks for so many answers.
    #[must_use]
    pub fn asking_for(mut self, choices: u8) -> Self {
        self.around.choices = choices;
        self
    }

    /// The same with what the server says of itself, of these requests alone.
    #[must_use]
    pub const fn seen_inside(mut self, inside: Inside) -> Self {
        self.measured.inside = Some(inside);
        self
    }

    /// The same with so much of TTFT outside of the server: the network, a
    /// gateway, the way between socket and engine. It is no engine's, so it is
    /// taken as it was, half of it on each way, and no setting is moved for it.
    #[must_use]
    pub fn at_distance(mut self, outside: Span) -> Self {
        self.around.one_way = Span::from_us(outside.us().max(0) / 2);
        self
    }

    /// Whether the server said of any request what it had cached. Where it did
    /// not, all prompts count as computed, and rates that are fitted to shared
    /// prefixes are too high.
    pub fn knows_cached(&self) -> bool {
        self.given.iter().any(|given| given.cached.is_some())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was measured.
    pub const fn measured(&self) -> &Figures {
        &self.measured
    }

    /// What the model says of the same requests.
    ///
    /// # Errors
    /// Settings that cannot be together, or that refuse its requests.
    pub fn simulated(&self, settings: &Settings) -> Result<Figures, FitError> {
        let listening = self.measured.inside.map(|_| Listening::default());
        let kept = self.play(settings, false, listening)?;
        let inside = kept.listening.and_then(|listening| listening.heard());
        let figures = Figures { inside, ..Figures::of(&kept.records) };
        if figures.ok < self.measured.ok {
            return Err(FitError::Refused {
                run: self.name.clone(),
                simulated: figures.ok,
                measured: self.measured.ok,
            });
        }
        Ok(figures)
    }

    /// The records of the same requests under the model, with every event or
    /// only the first and last ones.
    ///
    /// # Errors
    /// Settings that cannot be together.
    pub fn records(
        &self,
        settings: &Settings,
        keep_events: bool,
    ) -> Result<Vec<Record>, SettingsError> {
        Ok(self.play(settings, keep_events, None)?.records)
    }

    fn play(
        &self,
        settings: &Settings,
        keep_events: bool,
        listening: Option<Listening>,
    ) -> Result<Kept, SettingsError> {
        let mut cluster = Cluster::new(settings, self.seed)?;
        let around = Surroundings { keep_events, ..self.around };
        if let Some(warmup) = &self.warmup {
            let mut kept = Kept { records: Vec::new(), listening: None };
            cluster = client::run(warmup, self.nonce, cluster, around, &mut kept);
        }
        let mut kept = Kept { records: Vec::with_capacity(self.given.len()), listening };
        let given = |index: u32| self.given.get(index as usize).copied().unwrap_or_default();
        client::run_given(&self.schedule, self.nonce, cluster, around, &given, &mut kept);
        kept.records.sort_by_key(|record| record.index);
        Ok(kept)
    }
}

/// What is kept of a run that was played again.
struct Kept {
    records: Vec<Record>,
    /// Hears of the engine, where that is of interest.
    listening: Option<Listening>,
}

impl Observer for Kept {
    fn ended(&mut self, record: Record) {
        self.records.push(record);
    }

    fn watcher(&mut self) -> Option<&mut dyn Watcher> {
        self.listening.as_mut().map(|listening| listening as &mut dyn Watcher)
    }
}

/// True where each request of a closed loop but the first ones was asked when
/// another one ended: its users did not think.
fn asks_at_once(sent: &[&Record], users: u32) -> bool {
    let mut ends: Vec<i64> =
        sent.iter().filter_map(|record| record.stamps.ended_at).map(At::us).collect();
    ends.sort_unstable();
    let later = sent.iter().skip(users as usize);
    let at_once = |record: &&&Record| {
        let at = record.stamps.intended_at.us();
        let place = ends.partition_point(|end| *end <= at);
        place > 0 && at - ends[place - 1] < 1_000
    };
    let (all, seen) = (later.clone().count(), later.filter(at_once).count());
    seen as f64 >= 0.9 * all as f64
}

/// The schedule of these requests. A plan that is replayed needs no rate.
fn played(
    requests: Vec<Request>,
    users: Option<u32>,
    cap: Option<u32>,
) -> Result<Schedule, workload::schedule::SpecError> {
    let load = match (users, cap) {
        (Some(users), _) => Load::Closed { users, think: Span::ZERO.into() },
        (None, Some(users)) => {
            Load::Capped { pace: Pace::flat(measure::PerSecond::new(1.0), 1.0), users }
        }
        (None, None) => Load::Burst,
    };
    let spec = Spec {
        seed: 0,
        load,
        stop: Stop::Count(requests.len() as u32),
        prompts: PromptSource::Synthetic { input: Lengths::fixed(1).expect("1 is a length") },
        pictures: None,
        prefixes: Prefixes::NONE,
        batch: Batch::One,
        output: OutputLength::Unlimited,
        output_forced: true,
        cache: CacheRegime::AsIs,
        nonce_in_own_prompts: false,
        labels: Vec::new(),
        routing: Routing::default(),
        conversations: None,
    };
    Schedule::of_requests(spec, requests).map(|(schedule, _)| schedule)
}

/// One setting after a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Its name.
    pub name: &'static str,
    /// Where the search began.
    pub start: f64,
    /// Where it ended.
    pub value: f64,
    /// The lower end of its 95 % interval: the other settings follow while this
    /// one is held, until the runs speak against it. `None` where they do not.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// False where the runs do not say: it stays near its start.
    pub determined: bool,
}

/// Settings that agree with runs as far as any do.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The settings.
    pub settings: Settings,
    /// Those that were moved.
    pub fitted: Vec<Fitted>,
    /// Root mean square of the relative errors of all deciles, lengths and parts
    /// of the servers' TTFT.
    pub error: f64,
    /// Of each run: what was measured, and what the model says.
    pub runs: Vec<(String, Figures, Figures)>,
    /// Simulations that it took.
    pub simulations: usize,
}

impl Fit {
    /// True where the model describes the runs.
    pub fn holds(&self) -> bool {
        self.error <= POOREST
    }
}

impl fmt::Display for Fitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: Option<f64>| end.map_or_else(|| "?".to_owned(), |end| format!("{end:.4}"));
        write!(f, "{} {:.4} ({} to {})", self.name, self.value, end(self.low), end(self.high))
    }
}

/// Moves the settings of these names until the model agrees with the runs as
/// far as it can.
///
/// # Errors
/// Settings that are no numbers or cannot be together.
pub fn fit(runs: &[Observed], start: &Settings, names: &[&str]) -> Result<Fit, FitError> {
    let mut search = Search::new(runs, start, names)?;
    let begin = vec![1.0; search.begin.len()];
    let mut best = search.descend(begin, None, MOST_STEPS)?;
    let mut profiles = Vec::new();
    for restart in 0..=RESTARTS {
        match search.profiles(&best, restart < RESTARTS)? {
            Profiles::Ends(found) => {
                profiles = found;
                break;
            }
            // A place that is better than the best was none: the ground is
            // rough.
            Profiles::Better(at) => best = search.descend(at, None, MOST_STEPS)?,
        }
    }
    search.end(&best, &profiles)
}

/// A place of the search.
#[derive(Clone, Debug)]
struct Place {
    at: Vec<f64>,
    residuals: Vec<f64>,
    cost: f64,
}

/// What looking around a place found.
enum Profiles {
    /// The ends of each setting's interval; none where the cost does not rise.
    Ends(Vec<[Option<f64>; 2]>),
    /// A better place.
    Better(Vec<f64>),
}

struct Search<'a> {
    runs: &'a [Observed],
    start: Settings,
    settings: Vec<&'static Setting>,
    /// The values at the start. The search moves multiples of the times that
    /// they stand for.
    begin: Vec<f64>,
    simulations: usize,
}

impl<'a> Search<'a> {
    fn new(runs: &'a [Observed], start: &Settings, names: &[&str]) -> Result<Self, FitError> {
        let mut settings = Vec::new();
        let mut begin = Vec::new();
        for name in names {
            let setting =
                Setting::find(name).map_err(|error| FitError::NotFitted(error.to_string()))?;
            if !FITTED.contains(&setting.name) {
                return Err(FitError::NotFitted(format!("{} is no time or rate", setting.name)));
            }
            let value = setting.value(start).parse().ok().filter(|value: &f64| *value > 0.0);
            begin.push(value.ok_or(FitError::NoStart(setting.name))?);
            settings.push(setting);
        }
        Ok(Self { runs, start: start.clone(), settings, begin, simulations: 0 })
    }

    fn is_rate(&self, place: usize) -> bool {
        RATES.contains(&self.settings[place].name)
    }

    /// The value of a setting whose time is so many times that of the start.
    fn value(&self, place: usize, times: f64) -> f64 {
        let begin = self.begin[place];
        if self.is_rate(place) { begin / times } else { begin * times }
    }

    /// The smallest multiple that a setting may have: shares end at 1.
    fn least(&self, place: usize) -> f64 {
        let is_share = self.settings[place].name.ends_with("efficiency");
        if is_share { self.begin[place] } else { LEAST }
    }

    fn moved(&self, at: &[f64], by: &[f64]) -> Vec<f64> {
        let all = at.iter().zip(by).enumerate();
        all.map(|(place, (at, by))| (at + by).max(self.least(place))).collect()
    }

    fn at(&self, at: &[f64]) -> Result<Settings, FitError> {
        let mut settings = self.start.clone();
        for (place, setting) in self.settings.iter().enumerate() {
            settings.set(&format!("{}={}", setting.name, self.value(place, at[place])))?;
        }
        Ok(settings)
    }

    /// Goes down from a place, with one setting held where it is if `held` says
    /// so.
    fn descend(
        &mut self,
        at: Vec<f64>,
        held: Option<usize>,
        steps: usize,
    ) -> Result<Place, FitError> {
        let residuals = self.residuals(&at)?;
        let mut here = Place { cost: self.cost(&at, &residuals), at, residuals };
        let mut damping = 1e-2;
        for _ in 0..steps {
            let mut slopes = self.slopes(&here.at)?;
            if let Some(held) = held {
                slopes[held].iter_mut().for_each(|slope| *slope = 0.0);
            }
            let before = here.cost;
            while damping < 1e8 {
                let mut step = self.step(&here, &slopes, damping);
                if let Some(held) = held {
                    step[held] = 0.0;
                }
                let at = self.moved(&here.at, &step);
                // What cannot be together is as bad as a step can be.
                if let Ok(residuals) = self.residuals(&at) {
                    let cost = self.cost(&at, &residuals);
                    if cost < here.cost {
                        here = Place { at, residuals, cost };
                        damping = (damping / 4.0).max(1e-6);
                        break;
                    }
                }
                damping *= 4.0;
            }
            if before - here.cost < ENOUGH * before {
                break;
            }
        }
        Ok(here)
    }

    /// How far each setting can go from a place, with the others following,
    /// before the runs speak against it (profile likelihood: Venzon and
    /// Moolgavkar, 1988).
    /// A place that is better ends it, where `may_restart` says so.
    fn profiles(&mut self, best: &Place, may_restart: bool) -> Result<Profiles, FitError> {
        let rise = RISE * TOGETHER * self.scale(best);
        let mut all = Vec::new();
        for place in 0..best.at.len() {
            let mut ends = [None, None];
            for (end, down) in ends.iter_mut().zip([true, false]) {
                let mut before = (best.at[place], 0.0);
                for times in PROFILE {
                    let times = if down { 1.0 / times } else { times };
                    let mut at = best.at.clone();
                    at[place] = (at[place] * times).max(self.least(place));
                    let there = self.descend(at, Some(place), PROFILE_STEPS)?;
                    let by = there.cost - best.cost;
                    if may_restart && by < -BETTER {
                        return Ok(Profiles::Better(there.at));
                    }
                    let now = (there.at[place], by);
                    if by > rise {
                        // Costs rise as squares, near the place at least.
                        let share = ((rise - before.1) / (now.1 - before.1)).clamp(0.0, 1.0);
                        *end = Some(before.0 + share.sqrt() * (now.0 - before.0));
                        break;
                    }
                    before = now;
                }
            }
            all.push(ends);
        }
        Ok(Profiles::Ends(all))
    }

    /// The variance of the residuals in units of what is believed, where it is
    /// more.
    fn scale(&self, place: &Place) -> f64 {
        let freedom = place.residuals.len().saturating_sub(place.at.len()).max(1);
        let squares: f64 = place.residuals.iter().map(|r| (r / NOISE).powi(2)).sum();
        (squares / freedom as f64).max(1.0)
    }

    fn residuals(&mut self, at: &[f64]) -> Result<Vec<f64>, FitError> {
        let settings = self.at(at)?;
        let mut all = Vec::new();
        for run in self.runs {
            self.simulations += 1;
            run.simulated(&settings)?.residuals(&run.measured, Weights::SEARCHED, &mut all);
        }
        Ok(all)
    }

    /// What each residual changes by when a setting is moved, by the difference
    /// between a move up and one down, or none where it is at its bound.
    fn slopes(&mut self, at: &[f64]) -> Result<Vec<Vec<f64>>, FitError> {
        (0..at.len())
            .map(|place| {
                let mut by = vec![0.0; at.len()];
                by[place] = MOVE * at[place];
                let up = self.moved(at, &by);
                by[place] = -by[place];
                let down = self.moved(at, &by);
                let apart = up[place] - down[place];
                let (up, down) = (self.residuals(&up)?, self.residuals(&down)?);
                Ok(up.iter().zip(&down).map(|(up, down)| (up - down) / apart).collect())
            })
            .collect()
    }

    /// Squares of the residuals and of the distance from the start, each by what
    /// it is believed to be.
    fn cost(&self, at: &[f64], residuals: &[f64]) -> f64 {
        let data: f64 = residuals.iter().map(|r| (r / NOISE).powi(2)).sum();
        let belief: f64 = at.iter().map(|at| ((at - 1.0) / BELIEF).powi(2)).sum();
        data + belief
    }

    /// The normal equations' matrix, without damping.
    fn curvature(&self, slopes: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let size = slopes.len();
        let mut matrix = vec![vec![0.0; size]; size];
        for i in 0..size {
            for j in 0..size {
                let products = slopes[i].iter().zip(&slopes[j]).map(|(a, b)| a * b);
                matrix[i][j] = products.sum::<f64>() / (NOISE * NOISE);
            }
            matrix[i][i] += 1.0 / (BELIEF * BELIEF);
        }
        matrix
    }

    fn step(&self, here: &Place, slopes: &[Vec<f64>], damping: f64) -> Vec<f64> {
        let mut matrix = self.curvature(slopes);
        for (place, row) in matrix.iter_mut().enumerate() {
            row[place] *= 1.0 + damping;
        }
        let right = slopes.iter().zip(&here.at).map(|(slope, at)| {
            let data: f64 = slope.iter().zip(&here.residuals).map(|(s, r)| s * r).sum();
            -data / (NOISE * NOISE) - (at - 1.0) / (BELIEF * BELIEF)
        });
        solve(matrix, right.collect())
    }

    fn end(self, best: &Place, profiles: &[[Option<f64>; 2]]) -> Result<Fit, FitError> {
        let settings = self.at(&best.at)?;
        let mut fitted = Vec::new();
        for (place, setting) in self.settings.iter().enumerate() {
            let ends = profiles.get(place).copied().unwrap_or_default();
            let value = |times: f64| self.value(place, times);
            let [mut low, mut high] = ends.map(|end| end.map(value));
            if self.is_rate(place) {
                (low, high) = (high, low);
            }
            let determined = low.zip(high).is_some_and(|(low, high)| high <= WIDEST * low);
            fitted.push(Fitted {
                name: setting.name,
                start: self.begin[place],
                value: value(best.at[place]),
                low,
                high,
                determined,
            });
        }
        let (mut runs, mut errors) = (Vec::new(), Vec::new());
        for run in self.runs {
            let simulated = run.simulated(&settings)?;
            simulated.residuals(&run.measured, Weights::EVEN, &mut errors);
            runs.push((run.name.clone(), run.measured.clone(), simulated));
        }
        let squares: f64 = errors.iter().map(|error| error * error).sum();
        let error = (squares / errors.len().max(1) as f64).sqrt();
        Ok(Fit { settings, fitted, error, runs, simulations: self.simulations })
    }
}

/// Solves a system of as many equations as unknowns, by elimination with the
/// largest pivot first. The matrices here are positive definite.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for column in 0..size {
        let largest = (column..size)
            .max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))
            .unwrap_or(column);
        matrix.swap(column, largest);
        right.swap(column, largest);
        let pivot = matrix[column].clone();
        for row in column + 1..size {
            let factor = matrix[row][column] / pivot[column];
            for (entry, of_pivot) in matrix[row].iter_mut().zip(&pivot).skip(column) {
                *entry -= factor * of_pivot;
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|column| matrix[row][column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_counts_by_what_it_makes_of_ttft() {
        let figures = |waited_ms: f64, prefill_ms: f64| Figures {
            inside: Some(Inside { ttft_ms: Some(waited_ms + prefill_ms), prefill_ms }),
            ..Figures::of(&[])
        };
        let parts = |own: &Figures, told: &Figures| -> Vec<f64> {
            let mut all = Vec::new();
            own.residuals(told, Weights::EVEN, &mut all);
            all.split_off(all.len() - 2)
        };
        // Twice a queue of nothing is nothing.
        let parts_of_little = parts(&figures(0.02, 100.0), &figures(0.01, 100.0));
        assert!(parts_of_little.iter().all(|part| part.abs() < 1.1e-4), "{parts_of_little:?}");
        // A tenth of TTFT is a tenth in either part.
        let [prefill, waited] = parts(&figures(20.0, 100.0), &figures(10.0, 90.0))[..] else {
            panic!("two parts")
        };
        assert!((prefill - 1.1f64.ln()).abs() < 1e-12 && (waited - prefill).abs() < 1e-12);
        // Without the server's TTFT there is one part only.
        let told = Inside { ttft_ms: None, prefill_ms: 90.0 };
        let told = Figures { inside: Some(told), mean_ttft_ms: 100.0, ..Figures::of(&[]) };
        let mut all = Vec::new();
        figures(20.0, 100.0).residuals(&told, Weights::EVEN, &mut all);
        assert_eq!(all.len(), 2, "the length and the prefill: {all:?}");
    }

    #[test]
    fn a_system_is_solved() {
        // The solution was put in by hand: 1, -2, 3.
        let matrix = vec![vec![0.0, 2.0, 1.0], vec![4.0, 1.0, 0.0], vec![1.0, 0.0, 5.0]];
        let found = solve(matrix, vec![-1.0, 2.0, 16.0]);
        for (found, expected) in found.iter().zip([1.0, -2.0, 3.0]) {
            assert!((found - expected).abs() < 1e-12, "{found} and {expected}");
        }
    }
}
