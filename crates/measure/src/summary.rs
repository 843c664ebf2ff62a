//! All figures of a run under one definition: what `--json` prints and what
//! every report shows. A pure function of records and facts.

use std::collections::BTreeMap;

use crate::caveat::Caveat;
use crate::caveats::Evidence;
use crate::conversations::{Conversations, conversations};
use crate::definition::{
    ArrivalMark, Definition, GOODPUT, SERVICE, ThroughputWindow, WithoutSamples,
};
use crate::efficiency::Efficiency;
use crate::facts::{LoadKind, RunFacts};
use crate::fairness::{Fairness, fairness};
use crate::finding::{Finding, Lint};
use crate::goodput::{Goodput, goodput, goodput_window};
use crate::metric::{How, METRICS, Metric, Text};
use crate::outcome::{FailureKind, Outcome};
use crate::peaks::{Peaks, peaks};
use crate::record::{Carries, Record, TokensSource};
use crate::replay::{Fidelity, fidelity};
use crate::request::{Timed, Value};
use crate::said::{Said, said};
use crate::signal::Signals;
use crate::slices::{Slices, slices};
use crate::stage::{self, Stages};
use crate::statistics::{Distribution, PERCENTILES, Sample, weighted_mean};
use crate::undefined::Undefined;
use crate::unit::{PerSecond, Span};
use crate::validity::{Validity, validity};
use crate::window::{self, Extent, NoSteady, Window};

/// All figures of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// What is known besides the records.
    pub facts: RunFacts,
    /// The definition of the figures.
    pub definition: Definition,
    /// How the requests ended.
    pub outcomes: OutcomeCounts,
    /// What was offered and released, and what came back.
    pub load: LoadFigures,
    /// How well a trace was replayed, where one was.
    pub replay: Option<Fidelity>,
    /// Distributions by metric key: successes, from the definition's start.
    pub metrics: Vec<(&'static str, Distribution)>,
    /// The same from the actual send.
    pub service_metrics: Vec<(&'static str, Distribution)>,
    /// Latencies of all requests, failures at +∞.
    pub all_requests_metrics: Vec<(&'static str, Distribution)>,
    /// Means by other weights, named so.
    pub weighted: Weighted,
    /// 1/TPOT in tokens a second: what the median, the 90 % … get at least.
    pub interactivity_tok_s: Vec<(&'static str, Option<f64>)>,
    /// Rates over the makespan.
    pub throughput: Throughput,
    /// The steady window and its figures.
    pub steady: Steady,
    /// Goodput, when an SLO was given.
    pub goodput: Option<Goodput>,
    /// The same with latencies from the actual send.
    pub service_goodput: Option<Goodput>,
    /// Token totals.
    pub tokens: TokenTotals,
    /// The run by prompt length and by label.
    pub slices: Slices,
    /// Conversations as wholes, where requests are turns of some.
    pub conversations: Option<Conversations>,
    /// Fairness between the values of each label that takes two or more.
    pub fairness: Vec<Fairness>,
    /// Peer-style peaks, under presets whose tool prints them.
    pub peaks: Option<Peaks>,
    /// Whether the run can be trusted.
    pub validity: Validity,
    /// What makes the result weaker than it looks.
    pub caveats: Vec<Caveat>,
    /// What was seen inside the server and what follows from it. It is the
    /// business of `insight`, which fills it in after the figures are there.
    pub inside: Inside,
    /// What was not measured: key and reason. What is seen inside the server
    /// only is not among it; see [`Summary::reasons`].
    pub absent: Vec<(String, Said)>,
    /// Warnings about the form of answers, and how many had each.
    pub answer_warnings: Vec<(&'static str, u64)>,
}

/// What was seen inside the server, and what it means.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inside {
    /// What was scraped over the measured window; none without server metrics.
    pub signals: Option<Signals>,
    /// Where metrics were looked for and none were told, and why.
    pub unread: Vec<Said>,
    /// The split of TTFT.
    pub stages: Stages,
    /// Shares of peaks, memory, energy, money.
    pub efficiency: Efficiency,
    /// Causes, the first explains most; none where nobody looked.
    pub findings: Option<Vec<Finding>>,
    /// Numbers that are easily misread.
    pub lints: Vec<Lint>,
    /// What could not be concluded, why, and what would tell.
    pub missing: Vec<Said>,
}

impl Inside {
    /// The value of a metric that only the server's, the device's or the user's
    /// data gives.
    pub fn value(&self, key: &str) -> Option<f64> {
        self.stages.metric(key).or_else(|| self.efficiency.value(key))
    }

    /// Why there are no metrics of the server: where they were looked for, and what
    /// was found there.
    pub fn why_unread(&self) -> Said {
        let Said { en, zh } = Said::from(Undefined::NotCollected.texts());
        if self.unread.is_empty() {
            return Said { en, zh };
        }
        let joined = |separator: &str, text: fn(&Said) -> &str| {
            self.unread.iter().map(text).collect::<Vec<_>>().join(separator)
        };
        Said {
            en: format!("{en}: {}", joined("; ", |said| &said.en)),
            zh: format!("{zh}：{}", joined("；", |said| &said.zh)),
        }
    }

    /// What has no value here, and why.
    fn absent(&self) -> Vec<(String, Said)> {
        let mut absent = Vec::new();
        let mut say = |key: &str, reason: Said| absent.push((key.to_owned(), reason));
        let refused = self.stages.refused.clone();
        for metric in METRICS {
            let How::Inside(reason) = metric.how else { continue };
            if self.value(metric.key).is_some() {
                continue;
            }
            let is_stage = stage::METRICS.iter().any(|(key, _)| *key == metric.key);
            let why = match self.efficiency.figure(metric.key) {
                Some(figure) => figure.value.clone().err(),
                None => refused.clone().filter(|_| is_stage),
            };
            say(metric.key, why.unwrap_or_else(|| reason.texts().into()));
        }
        if self.stages.stages.is_empty() {
            let why = refused.unwrap_or_else(|| Undefined::NotCollected.texts().into());
            say("stages_ms", why);
        }
        if self.signals.is_none() {
            say("signals", self.why_unread());
        }
        if self.findings.is_none() {
            say("findings", NOT_EXAMINED.into());
        }
        absent
    }
}

impl Summary {
    /// Every figure that has no value and its reason: a reader must be able to
    /// tell "not measured" from "nothing there".
    pub fn reasons(&self) -> Vec<(String, Said)> {
        let is_said = |key: &String| self.absent.iter().any(|(known, _)| known == key);
        let inside = self.inside.absent().into_iter().filter(|(key, _)| !is_said(key));
        self.absent.iter().cloned().chain(inside).collect()
    }
}

/// Counts of outcomes; they partition the schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// Finished with output.
    pub ok: u64,
    /// Finished without output.
    pub empty: u64,
    /// Went wrong after the attempt to send.
    pub failed: u64,
    /// Never sent.
    pub not_sent: u64,
    /// Stopped by us.
    pub cancelled: u64,
    /// Failures and unsent ones by kind.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// HTTP error statuses and how many requests got each.
    pub by_status: BTreeMap<u16, u64>,
    /// A sample message of each kind, as the server or the transport put it.
    pub messages: BTreeMap<&'static str, String>,
}

impl OutcomeCounts {
    /// All requests.
    pub const fn total(&self) -> u64 {
        self.ok + self.empty + self.failed + self.not_sent + self.cancelled
    }

    /// Failed and empty requests ÷ those that ended by themselves.
    pub fn error_rate(&self) -> Option<f64> {
        share(self.empty + self.failed, self.ok + self.empty + self.failed)
    }
}

/// Outcomes counted request by request, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) counts: OutcomeCounts,
    /// The request that the sample message of each kind is of: the first in the
    /// schedule, so that it does not depend on which worker wrote first.
    said_by: BTreeMap<&'static str, u32>,
}

impl Outcomes {
    pub(crate) fn add(&mut self, record: &Record) {
        let counts = &mut self.counts;
        match record.outcome {
            Outcome::Ok => counts.ok += 1,
            Outcome::Empty => counts.empty += 1,
            Outcome::Failed(_) => counts.failed += 1,
            Outcome::NotSent(_) => counts.not_sent += 1,
            Outcome::Cancelled => counts.cancelled += 1,
        }
        let Some(kind) = record.outcome.kind() else { return };
        *counts.by_kind.entry(kind).or_default() += 1;
        if record.outcome == Outcome::Failed(FailureKind::HttpStatus) {
            let status = record.answer.http_status.unwrap_or_default();
            *counts.by_status.entry(status).or_default() += 1;
        }
        let Some(message) = &record.answer.message else { return };
        if self.said_by.get(kind).is_none_or(|first| record.index < *first) {
            self.said_by.insert(kind, record.index);
            counts.messages.insert(kind, message.clone());
        }
    }

    fn of(records: &[Record]) -> OutcomeCounts {
        let mut outcomes = Self::default();
        records.iter().for_each(|record| outcomes.add(record));
        outcomes.counts
    }
}

/// Load figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadFigures {
    /// Arrivals a second over the arrival window; none without a schedule.
    pub offered_rps: Option<f64>,
    /// Requests released a second over the same window.
    pub released_rps: Option<f64>,
    /// Successes a second over the makespan.
    pub completed_rps: Option<f64>,
    /// Largest number in flight, measured from send to end.
    pub max_in_flight: u32,
    /// The makespan in seconds.
    pub duration_s: Option<f64>,
    /// The arrival window in seconds.
    pub arrival_window_s: Option<f64>,
    /// What goodput divides by, in seconds: the arrival window where arrivals
    /// follow a schedule, else the makespan.
    pub goodput_window_s: Option<f64>,
}

/// Means that weigh by tokens instead of requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weighted {
    /// Σ generation ÷ Σ (OSL − 1) over requests.
    pub tpot_token_weighted_ms: Option<f64>,
    /// Σ gaps ÷ Σ tokens of the later chunks.
    pub itl_mean_ms: Option<f64>,
    /// Σ gaps ÷ Σ OSL: the form of seed text 003, which divides by all output
    /// tokens though N tokens have N − 1 gaps.
    pub itl_mean_over_osl_ms: Option<f64>,
}

/// Rates over one window. `None` where a count is unknown or no time passed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Throughput {
    /// Output tokens of successes.
    pub output_tok_s: Option<f64>,
    /// Prompt tokens computed: prompt less cached.
    pub input_computed_tok_s: Option<f64>,
    /// Prompt tokens served from a cache.
    pub input_cached_tok_s: Option<f64>,
    /// Prompt tokens in all.
    pub input_tok_s: Option<f64>,
    /// Input and output together.
    pub total_tok_s: Option<f64>,
    /// Successes.
    pub req_s: Option<f64>,
    /// Output tokens of answers that were no success.
    pub wasted_tok_s: Option<f64>,
}

/// Figures inside the steady window.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// The window, or why there is none.
    pub window: Result<Window, NoSteady>,
    /// Output tokens that arrived inside, a second.
    pub output_tok_s: Option<f64>,
    /// Successes that ended inside, a second.
    pub req_s: Option<f64>,
    /// Mean in flight.
    pub mean_in_flight: Option<f64>,
    /// Goodput of requests intended inside, when an SLO was given.
    pub goodput: Option<Goodput>,
    /// Failed and empty ÷ ended, of requests intended inside.
    pub error_rate: Option<f64>,
    /// Distributions of requests intended inside, followed to their end.
    pub metrics: Vec<(&'static str, Distribution)>,
}

impl Steady {
    /// No window, and no figure of one.
    pub(crate) const fn none(reason: NoSteady) -> Self {
        Self {
            window: Err(reason),
            output_tok_s: None,
            req_s: None,
            mean_in_flight: None,
            goodput: None,
            error_rate: None,
            metrics: Vec::new(),
        }
    }
}

/// Token totals of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenTotals {
    /// Prompt tokens of successes, as the server counted them; none where it
    /// counted none of them.
    pub input: Option<u64>,
    /// Output tokens of successes.
    pub output: Option<u64>,
    /// Prompt tokens from a cache; none where no request said.
    pub cached: Option<u64>,
    /// Their share of the prompt tokens. A request that does not say counts as
    /// uncached where others do: vLLM leaves the count out where it is 0.
    pub cached_share: Option<f64>,
    /// Output tokens of answers that were no success.
    pub wasted: u64,
    /// Successes by source of their output count.
    pub sources: Vec<(TokensSource, u64)>,
    /// Successes without a prompt count, and without an output count.
    pub uncounted: (u64, u64),
}

/// Computes all figures of a run.
pub fn summarise(records: &[Record], facts: &RunFacts, definition: &Definition) -> Summary {
    let look = |definition: &Definition| -> Vec<Timed<'_>> {
        let mut timed: Vec<Timed<'_>> =
            records.iter().map(|record| Timed::new(record, definition, facts.settings)).collect();
        // Sums of floats depend on their order, so it is always the schedule's.
        timed.sort_by_key(|request| request.record.index);
        timed
    };
    let timed = look(definition);
    let service = look(&SERVICE);
    // Isolated runs are kept by our own definitions.
    let labelled = records.iter().any(|record| !record.planned.labels.is_empty());
    let ours = (labelled && *definition != GOODPUT).then(|| look(&GOODPUT));
    let extent = Extent::of(records, facts.interrupted);
    let evidence = Evidence::of(records, prompt_excludes_cached(facts));
    let windows = Windows::of(&extent, facts, definition);
    let chunk_gaps = gaps(&timed, facts);
    let service_gaps =
        if same_gaps(definition, &SERVICE) { chunk_gaps.clone() } else { gaps(&service, facts) };
    let metrics = distributions(&timed, facts, definition, &chunk_gaps);
    let ttft = first_seen(&metrics, facts);
    let tokens = TokenSums::of(&timed, prompt_excludes_cached(facts));
    let successes = timed.iter().filter(|request| request.success).count() as u64;
    let released = released_inside(records, windows.arrival);
    let outcomes = Outcomes::of(records);
    let goodput = facts.slo.as_ref().map(|slo| goodput(&timed, slo, windows.goodput_s));
    let slices = slices(&timed, goodput.as_ref().map(|goodput| &goodput.slo));
    let mut summary = Summary {
        definition: *definition,
        load: windows.load(&extent, successes, released, window::max_in_flight(records)),
        replay: fidelity(records, facts),
        service_metrics: distributions(&service, facts, &SERVICE, &service_gaps),
        all_requests_metrics: all_requests(&timed, facts),
        weighted: weighted(&timed),
        interactivity_tok_s: interactivity(&metrics),
        throughput: throughput(successes, &tokens, windows.throughput_s),
        steady: steady(&timed, records, facts),
        fairness: fairness(
            ours.as_deref().unwrap_or(&timed),
            goodput.as_ref().map(|goodput| &goodput.slo),
            &facts.isolated,
        ),
        service_goodput: facts
            .slo
            .as_ref()
            .map(|slo| self::goodput(&service, slo, windows.goodput_s)),
        goodput,
        peaks: (definition.window == ThroughputWindow::WholeRun).then(|| peaks(&timed)).flatten(),
        validity: validity(records, &extent, facts, ttft),
        caveats: Vec::new(),
        slices,
        conversations: conversations(records, &facts.percentiles),
        inside: Inside::default(),
        absent: Vec::new(),
        answer_warnings: evidence.warnings(),
        facts: facts.clone(),
        outcomes,
        metrics,
        tokens,
    };
    summary.caveats = crate::caveats::of(&summary, &evidence);
    summary.absent = absent(&summary);
    summary
}

/// The first thing that a user sees of the server, in ms: P50 and P99.
pub(crate) fn first_seen(
    metrics: &[(&'static str, Distribution)],
    facts: &RunFacts,
) -> (Option<f64>, Option<f64>) {
    let first = if facts.endpoint.generates() { "ttft_ms" } else { "e2el_ms" };
    let found = metrics.iter().find(|(key, _)| *key == first).map(|(_, d)| d);
    (found.and_then(|d| d.figure("p50")), found.and_then(|d| d.figure("p99")))
}

/// Lengths of the windows that rates divide by, in seconds.
pub(crate) struct Windows {
    pub(crate) arrival: Option<Window>,
    makespan: Option<Window>,
    pub(crate) throughput_s: Option<f64>,
    pub(crate) goodput_s: Option<f64>,
}

impl Windows {
    pub(crate) fn of(extent: &Extent, facts: &RunFacts, definition: &Definition) -> Self {
        let arrival = if facts.load.kind.has_schedule() {
            let planned = facts.load.planned_duration.filter(|_| !facts.interrupted);
            window::arrival_of(&extent.due, planned)
        } else {
            None
        };
        let makespan = extent.makespan();
        let seconds = |window: Window| window.length().s();
        let end = extent.ended.last().map(|end| (end - crate::unit::At::ZERO).s());
        let whole_run = facts.source_duration_s.or(end);
        let throughput_s = match definition.window {
            ThroughputWindow::Makespan => makespan.map(seconds).or(facts.source_duration_s),
            ThroughputWindow::WholeRun => whole_run,
        };
        let goodput_s = match definition.window {
            ThroughputWindow::WholeRun => whole_run,
            ThroughputWindow::Makespan => {
                // Later turns come when answers do and not by the schedule.
                let arrival = arrival.filter(|_| extent.later_turns == 0);
                goodput_window(facts.load.kind, arrival, makespan).map(seconds).or(throughput_s)
            }
        };
        Self { arrival, makespan, throughput_s, goodput_s }
    }

    /// The load that so many successes came of, of which so many requests were
    /// released inside the arrival window.
    pub(crate) fn load(
        &self,
        extent: &Extent,
        successes: u64,
        released: f64,
        max_in_flight: u32,
    ) -> LoadFigures {
        let arrival_s = self.arrival.map(|window| window.length().s());
        let rate = |count: f64| arrival_s.filter(|s| *s > 0.0).map(|s| count / s);
        let duration_s = self.makespan.map(|window| window.length().s()).or(self.throughput_s);
        LoadFigures {
            offered_rps: rate(extent.due.n as f64),
            released_rps: rate(released),
            completed_rps: duration_s.filter(|s| *s > 0.0).map(|s| successes as f64 / s),
            max_in_flight,
            duration_s,
            arrival_window_s: arrival_s,
            goodput_window_s: self.goodput_s,
        }
    }
}

/// Requests that the load let come and that were released inside its window.
fn released_inside(records: &[Record], arrival: Option<Window>) -> f64 {
    let inside = |record: &&Record| {
        // The last arrival lies on the window's edge, a hair of lateness away.
        let released_at = record.stamps.released_at.filter(|_| record.arrives());
        released_at.zip(arrival).is_some_and(|(at, window)| at <= window.until)
    };
    records.iter().filter(inside).count() as f64
}

fn distributions(
    timed: &[Timed<'_>],
    facts: &RunFacts,
    definition: &Definition,
    gaps: &Distribution,
) -> Vec<(&'static str, Distribution)> {
    METRICS
        .iter()
        .filter_map(|metric| {
            let distribution = distribution(metric, timed, facts, definition, gaps)?;
            Some((metric.key, without_samples(distribution, definition)))
        })
        .collect()
}

/// True when two definitions see the same gaps, wherever their clocks start.
fn same_gaps(a: &Definition, b: &Definition) -> bool {
    a.arrival == b.arrival
        && a.success == b.success
        && a.excludes_not_streamed == b.excludes_not_streamed
}

/// Some tools print 0.0 where nothing was measured; their presets do too.
fn without_samples(mut distribution: Distribution, definition: &Definition) -> Distribution {
    if definition.without_samples == WithoutSamples::Zero && distribution.n == 0 {
        distribution.mean = Some(0.0);
        distribution.std = Some(0.0);
        distribution.percentiles = vec![Some(0.0); PERCENTILES.len()];
        distribution.extra.iter_mut().for_each(|(_, value)| *value = Some(0.0));
    }
    distribution
}

fn distribution(
    metric: &Metric,
    timed: &[Timed<'_>],
    facts: &RunFacts,
    definition: &Definition,
    gaps: &Distribution,
) -> Option<Distribution> {
    match metric.how {
        How::Request(value) => {
            let (samples, undefined) = split(timed.iter().map(value));
            Some(Distribution::of(samples, undefined, &facts.percentiles))
        }
        How::Gaps => Some(gaps.clone()),
        // What such a tool calls ITL is the gap between events, pooled.
        How::TokenGaps if definition.arrival == ArrivalMark::Choice => Some(gaps.clone()),
        How::TokenGaps => Some(token_gaps(timed, gaps)),
        How::Run | How::Inside(_) => None,
    }
}

fn split(values: impl Iterator<Item = Value>) -> (Vec<f64>, Vec<(Undefined, u64)>) {
    let mut samples = Vec::new();
    let mut undefined: BTreeMap<Undefined, u64> = BTreeMap::new();
    for value in values {
        match value {
            Ok(value) => samples.push(value),
            Err(reason) => *undefined.entry(reason).or_default() += 1,
        }
    }
    (samples, undefined.into_iter().collect())
}

/// The gaps between token arrivals, pooled. Our own are whole microseconds,
/// those of an imported run its own floats; a run is one or the other.
fn gaps(timed: &[Timed<'_>], facts: &RunFacts) -> Distribution {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut undefined: BTreeMap<Undefined, u64> = BTreeMap::new();
    for request in timed {
        let added = request.add_gaps_us(&mut ours).unwrap_or_else(|| {
            theirs.extend(request.gaps_streamed()?);
            Ok(())
        });
        if let Err(reason) = added {
            *undefined.entry(reason).or_default() += 1;
        }
    }
    let undefined = undefined.into_iter().collect();
    if theirs.is_empty() {
        return Distribution::of_us(ours, undefined, &facts.percentiles);
    }
    theirs.extend(ours.into_iter().map(|us| f64::from(us) / 1e3));
    Distribution::of(theirs, undefined, &facts.percentiles)
}

/// ITL: the mean weighs gaps by tokens; percentiles equal ICL's where at least
/// 99 % of chunks carry one token and are undefined otherwise, because
/// spreading a gap over its tokens would hide stalls.
fn token_gaps(timed: &[Timed<'_>], chunk_gaps: &Distribution) -> Distribution {
    let chunk_gaps = chunk_gaps.clone();
    if chunk_gaps.n == 0 || timed.iter().any(|request| request.record.source.is_some()) {
        return chunk_gaps;
    }
    let (single, chunks) = timed
        .iter()
        .filter_map(|request| request.single_token_arrivals().ok())
        .fold((0u64, 0u64), |(a, b), (c, d)| (a + u64::from(c), b + u64::from(d)));
    let mean = itl_mean(timed);
    chunk_gaps.by_token(mean, chunks > 0 && single as f64 >= 0.99 * chunks as f64)
}

fn itl_mean(timed: &[Timed<'_>]) -> Option<f64> {
    let (time, tokens) = timed
        .iter()
        .filter_map(|request| request.gap_weight().ok())
        .fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
    (tokens > 0.0).then(|| time / tokens)
}

fn weighted(timed: &[Timed<'_>]) -> Weighted {
    let tpot = timed.iter().filter_map(|request| {
        Some((request.tpot_streamed().ok()?, f64::from(request.later_tokens().ok()?)))
    });
    let (time, tokens) = timed
        .iter()
        .filter_map(|request| {
            // One arrival has no gap, but its tokens are in the seed's sum.
            let gaps = match request.gaps_streamed() {
                Err(Undefined::OneArrival) => Vec::new(),
                gaps => gaps.ok()?,
            };
            Some((gaps.iter().sum::<f64>(), f64::from(request.output_tokens().ok()?)))
        })
        .fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
    Weighted {
        tpot_token_weighted_ms: weighted_mean(tpot),
        itl_mean_ms: itl_mean(timed),
        itl_mean_over_osl_ms: (tokens > 0.0).then(|| time / tokens),
    }
}

/// The tail of a rate is 1/p90(time), never p90(1/time).
pub(crate) fn interactivity(
    metrics: &[(&'static str, Distribution)],
) -> Vec<(&'static str, Option<f64>)> {
    let tpot = metrics.iter().find(|(key, _)| *key == "tpot_ms").map(|(_, d)| d);
    PERCENTILES
        .iter()
        .map(|(name, _)| {
            let time = tpot.and_then(|d| d.figure(name)).filter(|ms| *ms > 0.0);
            (*name, time.map(|ms| 1e3 / ms))
        })
        .collect()
}

/// Latencies of everybody who asked: failures never came, time-outs lasted at
/// least their limit. Client faults and undecided requests stay out.
fn all_requests(timed: &[Timed<'_>], facts: &RunFacts) -> Vec<(&'static str, Distribution)> {
    let censored_at = facts.request_timeout.map(Span::ms);
    OF_ALL_REQUESTS
        .iter()
        .filter_map(|key| crate::metric::find(key))
        .filter_map(|metric| {
            let How::Request(value) = metric.how else { return None };
            let mut undefined: BTreeMap<Undefined, u64> = BTreeMap::new();
            let mut samples = Vec::new();
            for request in timed {
                let sample = value(request).map(Sample::Exact);
                let generates = facts.endpoint.generates();
                match sample.or_else(|reason| {
                    without_value(request, metric, generates, censored_at, reason)
                }) {
                    Ok(sample) => samples.push(sample),
                    Err(reason) => *undefined.entry(reason).or_default() += 1,
                }
            }
            let undefined = undefined.into_iter().collect();
            Some((metric.key, Distribution::of_samples(samples, undefined, &facts.percentiles)))
        })
        .collect()
}

/// What is shown of all requests, with failures at +∞.
pub(crate) const OF_ALL_REQUESTS: &[&str] = &["ttft_ms", "ttfc_ms", "e2el_ms"];

/// What a request without a value stands for among all requests.
pub(crate) fn without_value(
    request: &Timed<'_>,
    metric: &Metric,
    generates: bool,
    censored_at: Option<f64>,
    reason: Undefined,
) -> Result<Sample, Undefined> {
    match request.record.outcome {
        // What no answer has, a failed one does not lack.
        _ if !generates && metric.key != "e2el_ms" => Err(Undefined::NoGeneration),
        Outcome::Failed(FailureKind::TotalTimeout) => Ok(cut_off(request, metric, censored_at)),
        Outcome::Failed(_) | Outcome::Empty => Ok(Sample::Unbounded),
        _ => Err(reason),
    }
}

fn cut_off(request: &Timed<'_>, metric: &Metric, limit_ms: Option<f64>) -> Sample {
    if metric.key == "ttft_ms"
        && let Ok(ms) = request.ttft_seen()
    {
        return Sample::Exact(ms);
    }
    let stamps = &request.record.stamps;
    let waited = crate::request::start_of(request.record, request.start())
        .zip(stamps.ended_at)
        .map(|(start, ended)| (ended - start).ms());
    waited.or(limit_ms).map_or(Sample::Unbounded, Sample::AtLeast)
}

/// True for an API whose prompt count leaves cached tokens out (Anthropic's
/// `input_tokens`), where others' includes them.
pub fn prompt_excludes_cached(facts: &RunFacts) -> bool {
    facts.api == "anthropic"
}

/// Tokens summed request by request.
#[derive(Clone, Debug)]
pub(crate) struct TokenSums {
    /// Whether cached tokens are left out of prompt counts.
    excludes_cached: bool,
    totals: TokenTotals,
    sources: BTreeMap<TokensSource, u64>,
}

impl TokenSums {
    pub(crate) fn new(excludes_cached: bool) -> Self {
        Self { excludes_cached, totals: TokenTotals::default(), sources: BTreeMap::new() }
    }

    fn of(timed: &[Timed<'_>], excludes_cached: bool) -> TokenTotals {
        let mut sums = Self::new(excludes_cached);
        timed.iter().for_each(|request| sums.add(request));
        sums.totals()
    }

    pub(crate) fn add(&mut self, request: &Timed<'_>) {
        let totals = &mut self.totals;
        let counts = &request.record.answer.counts;
        let add = |total: &mut Option<u64>, tokens: u32| {
            *total = Some(total.unwrap_or(0) + u64::from(tokens));
        };
        if !request.success {
            let partial = counts
                .usage
                .or(counts.server)
                .map_or_else(|| request.record.output_chunks(), |tokens| tokens.get());
            totals.wasted += u64::from(partial);
            return;
        }
        match request.output_tokens() {
            Ok(tokens) => add(&mut totals.output, tokens),
            Err(Undefined::NoGeneration) => {}
            Err(_) => totals.uncounted.1 += 1,
        }
        match counts.prompt {
            Some(tokens) => {
                let apart = counts.cached.filter(|_| self.excludes_cached);
                add(&mut totals.input, tokens.get() + apart.map_or(0, |cached| cached.get()));
            }
            None => totals.uncounted.0 += 1,
        }
        if let Some(tokens) = counts.cached {
            add(&mut totals.cached, tokens.get());
        }
        if let Some((_, source)) = request.record.output_tokens() {
            *self.sources.entry(source).or_default() += 1;
        }
    }

    pub(crate) fn totals(&self) -> TokenTotals {
        let mut totals = self.totals.clone();
        let counts = totals.cached.zip(totals.input.filter(|input| *input > 0));
        totals.cached_share = counts.map(|(cached, input)| cached.min(input) as f64 / input as f64);
        totals.sources = self.sources.iter().map(|(source, count)| (*source, *count)).collect();
        totals
    }
}

pub(crate) fn throughput(
    successes: u64,
    tokens: &TokenTotals,
    window_s: Option<f64>,
) -> Throughput {
    let rate = |count: Option<f64>| {
        let over = window_s.filter(|s| *s > 0.0)?;
        Some(PerSecond::new(count? / over).get())
    };
    let as_rate = |count: Option<u64>| rate(count.map(|count| count as f64));
    let computed = tokens.input.zip(tokens.cached).map(|(input, cached)| input - cached.min(input));
    let total = tokens.input.zip(tokens.output).map(|(input, output)| input + output);
    Throughput {
        output_tok_s: as_rate(tokens.output),
        input_computed_tok_s: as_rate(computed),
        input_cached_tok_s: as_rate(tokens.cached),
        input_tok_s: as_rate(tokens.input),
        total_tok_s: as_rate(total),
        req_s: as_rate(Some(successes)),
        wasted_tok_s: as_rate(Some(tokens.wasted)),
    }
}

fn steady(timed: &[Timed<'_>], records: &[Record], facts: &RunFacts) -> Steady {
    let inside = match window::steady(records, &facts.load) {
        Ok(inside) => inside,
        Err(reason) => return Steady::none(reason),
    };
    let length_s = inside.length().s();
    let (mut tokens, mut ended) = (None, 0u64);
    for request in timed.iter().filter(|request| request.success) {
        if let Some(some) = tokens_inside(request, inside) {
            *tokens.get_or_insert(0.0) += some;
        }
        let end = request.record.events.at_us.last().and_then(|us| request.record.event_at(*us));
        ended += u64::from(end.is_some_and(|end| inside.contains(end)));
    }
    let intended: Vec<Timed<'_>> = timed
        .iter()
        .filter(|request| inside.contains(request.record.stamps.intended_at))
        .cloned()
        .collect();
    Steady {
        output_tok_s: tokens.map(|tokens| tokens / length_s),
        req_s: Some(ended as f64 / length_s),
        mean_in_flight: Some(window::mean_in_flight(records, inside)),
        goodput: facts.slo.as_ref().map(|slo| goodput(&intended, slo, Some(length_s))),
        error_rate: error_rate(&intended),
        metrics: distributions(
            &intended,
            facts,
            &crate::definition::GOODPUT,
            &gaps(&intended, facts),
        ),
        window: Ok(inside),
    }
}

/// The same of some of the requests.
fn error_rate(timed: &[Timed<'_>]) -> Option<f64> {
    let ended = timed.iter().map(|request| request.record.outcome);
    let (bad, all) = ended.fold((0u64, 0u64), |(bad, all), outcome| match outcome {
        Outcome::Ok => (bad, all + 1),
        Outcome::Empty | Outcome::Failed(_) => (bad + 1, all + 1),
        Outcome::NotSent(_) | Outcome::Cancelled => (bad, all),
    });
    share(bad, all)
}

/// A part of a whole; `None` of nothing.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Output tokens of one request that arrived inside a window: as counted per
/// event where the server says so, else spread evenly over its arrivals. A
/// whole answer arrives with its body. `None` where nobody counted them, or most
/// arrivals were not kept.
fn tokens_inside(request: &Timed<'_>, inside: Window) -> Option<f64> {
    if !request.knows_events() {
        return None;
    }
    let record = request.record;
    let arrivals: Vec<_> = record
        .events
        .iter()
        .filter(|event| event.carries.is_arrival() || event.carries.any(Carries::WHOLE))
        .collect();
    let known = !arrivals.is_empty() && arrivals.iter().all(|event| event.tokens > 0);
    let each = match request.output_tokens() {
        Ok(total) => f64::from(total) / arrivals.len().max(1) as f64,
        Err(_) if known => 0.0,
        Err(_) => return None,
    };
    let inside = arrivals
        .iter()
        .filter(|event| record.event_at(event.at_us).is_some_and(|at| inside.contains(at)));
    Some(inside.map(|event| if known { f64::from(event.tokens) } else { each }).sum())
}

/// Names every figure of the client's that has no value, with its reason.
pub(crate) fn absent(summary: &Summary) -> Vec<(String, Said)> {
    let mut absent = Vec::new();
    let mut say = |key: &str, reason: Said| absent.push((key.to_owned(), reason));
    for (key, distribution) in &summary.metrics {
        if distribution.n == 0 {
            say(&format!("metrics.{key}"), distribution.reason().texts().into());
        }
    }
    let (throughput, load) = (&summary.throughput, &summary.load);
    let (no_prompt, no_time) = (Undefined::NoPromptCount.texts(), Undefined::NoTime.texts());
    let generates = summary.facts.endpoint.generates();
    let of_output = |reason: Text| {
        if generates { reason } else { Undefined::NoGeneration.texts() }
    };
    let no_output = of_output(Undefined::NoTokenCount.texts());
    let rates = [
        ("throughput.output_tok_s", throughput.output_tok_s, no_output),
        ("throughput.input_tok_s", throughput.input_tok_s, no_prompt),
        ("throughput.total_tok_s", throughput.total_tok_s, of_output(no_prompt)),
        ("throughput.input_cached_tok_s", throughput.input_cached_tok_s, CACHED_UNKNOWN),
        ("throughput.input_computed_tok_s", throughput.input_computed_tok_s, CACHED_UNKNOWN),
        ("tokens.cached_share", summary.tokens.cached_share, CACHED_UNKNOWN),
        ("throughput.req_s", throughput.req_s, no_time),
        ("throughput.wasted_tok_s", throughput.wasted_tok_s, no_time),
        ("load.duration_s", load.duration_s, no_time),
        ("load.completed_rps", load.completed_rps, no_time),
    ];
    for (key, value, reason) in rates {
        if value.is_none() {
            say(key, reason.into());
        }
    }
    if let Err(reason) = &summary.steady.window {
        say("steady", reason.text());
    }
    if summary.goodput.is_none() {
        say("goodput", Undefined::NoSlo.texts().into());
    }
    if load.offered_rps.is_none() {
        let why = no_arrival_rate(summary.facts.load.kind);
        say("load.offered_rps", why.clone());
        say("load.released_rps", why);
    }
    if summary.validity.client_lag_us.is_none() {
        say("validity.client_lag_us", NO_KERNEL_STAMPS.into());
    }
    if summary.validity.lateness_us.is_none() {
        say("validity.lateness_us", LATENESS_NOT_JUDGED.into());
    }
    if summary.facts.instrument.floor.is_none() {
        say("validity.instrument_floor", NO_FLOOR.into());
    }
    if summary.conversations.is_none() {
        say("conversations", NO_CONVERSATIONS.into());
    }
    if summary.slices.tail_owner.is_none() {
        say("slices.tail_owner", NO_TAIL_OWNER.into());
    }
    absent
}

const CACHED_UNKNOWN: Text = Text {
    en: "the server does not say which prompt tokens were cached",
    zh: "服务端没有给出输入 token 的缓存命中数",
};
const NO_KERNEL_STAMPS: Text =
    Text { en: "no kernel receive stamps were taken", zh: "没有采集内核接收时间戳" };
const LATENESS_NOT_JUDGED: Text = Text {
    en: "not judged: nothing was sent, or all was intended at once",
    zh: "不作判定：没有发出请求，或全部请求计划在同一时刻发出",
};
const NO_FLOOR: Text = Text {
    en: "no floor is stored; goodput selftest finds it",
    zh: "尚无记录；运行 goodput selftest 可测得",
};
const NO_TAIL_OWNER: Text = Text {
    en: "no prompt length holds most of the slowest requests, or fewer than 100 were counted",
    zh: "没有哪个输入长度区间占最慢请求的大部分，或有计数的请求不足 100 个",
};
const NO_CONVERSATIONS: Text = Text {
    en: "no request is a later turn of a conversation",
    zh: "没有任何请求是会话中的后续轮次",
};
const NOT_EXAMINED: Text = Text {
    en: "nobody looked for causes in these figures: goodput diagnose does",
    zh: "尚未对这些数据做诊断：可运行 goodput diagnose",
};

/// Why a load of this kind has no rate of arrivals.
fn no_arrival_rate(kind: LoadKind) -> Said {
    if kind.has_schedule() {
        return said!("one arrival has no rate", "只有一次到达，没有速率");
    }
    let Text { en, zh } = kind.texts();
    Said {
        en: format!("a {en} load has no arrival schedule"), zh: format!("{zh}负载没有到达计划")
    }
}
