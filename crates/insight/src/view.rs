//! What rules look at: a run's figures from the client's side and the signals
//! from the server's, by the symbols that the rules are written in. Every
//! figure is `None` where it is not known.

mod bounds;
mod flow;
mod request;
mod wrong;

use measure::course::Course;
use measure::definition::GOODPUT;
use measure::deployment::Deployment;
use measure::request::Timed;
use measure::signal::{Instance, Reading, Role, Signal, Signals};
use measure::statistics::Distribution;
use measure::summary::Summary;
use measure::{Outcome, Record, Span, quantile};

pub use bounds::Bounds;
pub use flow::{Flow, Streams};
pub use request::{Seen, Timings};
pub use wrong::Wrong;

use crate::gaps::{Mixture, Newcomer, Stream, mixture, steps};

/// A run as a rule sees it.
#[derive(Debug)]
pub struct View<'a> {
    /// The figures.
    pub summary: &'a Summary,
    /// The rows.
    pub records: &'a [Record],
    /// The rows with their latencies, by our own definitions.
    pub timed: Vec<Timed<'a>>,
    /// What the user says of the machines.
    pub deployment: &'a Deployment,
    /// When things happened to each request, in the order of `timed`.
    pub courses: Vec<Course>,
    /// Requests that ended well, in the order of their sends.
    pub seen: Vec<Seen>,
    /// How requests came, went and waited over time.
    pub flow: Flow,
    /// The gaps between tokens; none where events were not kept.
    pub mixture: Option<Mixture>,
    /// The quicker gaps of each part of the run: its middle in seconds, and ms.
    pub steps: Vec<(f64, f64)>,
    /// What model and accelerator could do; none where they were not named.
    pub bounds: Option<Bounds>,
    /// How far from what is asked of it each latency is.
    pub wrong: Wrong,
    /// True of a server under the load of others: what clients see is not known,
    /// and what the server sees stands for it.
    pub is_watched: bool,
}

/// The most gaps that are looked at: a sample of the streams says the same.
const MOST_GAPS: usize = 300_000;

impl<'a> View<'a> {
    /// The view of a run.
    pub fn new(summary: &'a Summary, records: &'a [Record], deployment: &'a Deployment) -> Self {
        Self::of(summary, records, deployment, false)
    }

    /// The view of a server that is watched, by the signals of a summary in which
    /// nothing was sent.
    pub fn watched(summary: &'a Summary, deployment: &'a Deployment) -> Self {
        Self::of(summary, &[], deployment, true)
    }

    fn of(
        summary: &'a Summary,
        records: &'a [Record],
        deployment: &'a Deployment,
        is_watched: bool,
    ) -> Self {
        let timed: Vec<Timed<'a>> = records
            .iter()
            .map(|record| Timed::new(record, &GOODPUT, summary.facts.settings))
            .collect();
        let courses: Vec<Course> = timed.iter().map(Timed::course).collect();
        let seen = request::seen(&timed, &courses, summary);
        let flow = Flow::of(&courses, &seen, summary);
        let mut view = Self {
            summary,
            records,
            timed,
            deployment,
            courses,
            seen,
            flow,
            mixture: None,
            steps: Vec::new(),
            bounds: None,
            wrong: Wrong::default(),
            is_watched,
        };
        let streams = view.streams();
        view.mixture = mixture(&streams, &view.newcomers());
        view.steps = steps(&streams);
        view.bounds = Bounds::of(&view);
        view.wrong = Wrong::of(&view);
        view
    }

    /// What was seen inside.
    pub fn signals(&self) -> Option<&'a Signals> {
        self.summary.inside.signals.as_ref()
    }

    /// One number of a signal; see [`Signals::value`].
    pub fn signal(&self, signal: Signal) -> Option<f64> {
        self.signals()?.value(signal)
    }

    /// Largest value of a gauge.
    pub fn most(&self, signal: Signal) -> Option<f64> {
        Some(self.signals()?.gauge(signal)?.max)
    }

    /// The distribution of a metric over successes.
    pub fn metric(&self, key: &str) -> Option<&'a Distribution> {
        let found = self.summary.metrics.iter().find(|(known, _)| *known == key);
        found.map(|(_, distribution)| distribution).filter(|distribution| distribution.n > 0)
    }

    /// A figure of it: `mean`, `p50`, `p99`, `max`.
    pub fn figure(&self, key: &str, statistic: &str) -> Option<f64> {
        self.metric(key)?.figure(statistic)
    }

    /// Requests that ended well.
    pub fn ok(&self) -> impl Iterator<Item = &Timed<'a>> {
        self.timed.iter().filter(|request| request.record.outcome == Outcome::Ok)
    }

    /// Mean of something over the requests that ended well and have it.
    pub fn mean(&self, of: impl Fn(&Seen) -> Option<f64>) -> Option<f64> {
        mean(self.seen.iter().filter_map(of))
    }

    /// The value at or below which a share of those requests lies.
    pub fn at_share(&self, share: f64, of: impl Fn(&Seen) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> = self.seen.iter().filter_map(of).collect();
        values.sort_by(f64::total_cmp);
        quantile::linear(&values, share)
    }

    /// M: seats of the deployment, told by the engine or the user.
    pub fn seats(&self) -> Option<f64> {
        let engines = self.engines().max(1) as f64;
        let told = self.deployment.seats.map(|seats| f64::from(seats) * engines);
        self.signal(Signal::SeatLimit).or(told)
    }

    /// The most tokens of a step, told by the engine or the user.
    pub fn token_budget(&self) -> Option<f64> {
        self.signal(Signal::TokenBudget).or(self.deployment.token_budget.map(f64::from))
    }

    /// π: preemptions for each request that finished.
    pub fn preemptions_per_request(&self) -> Option<f64> {
        let signals = self.signals()?;
        let finished = signals.increase(Signal::Finished).filter(|finished| *finished > 0.0)?;
        Some(signals.increase(Signal::Preemptions)? / finished)
    }

    /// H: share of prompt tokens that were found in a cache: the server's count,
    /// else that of the answers.
    pub fn hit_rate(&self) -> Option<f64> {
        let counted = self.signals().and_then(|signals| {
            let queries = signals.increase(Signal::PrefixQueries).filter(|count| *count > 0.0)?;
            Some(signals.increase(Signal::PrefixHits)? / queries)
        });
        counted.or(self.summary.tokens.cached_share)
    }

    /// Engines that compute: instances other than routers and devices.
    pub fn engines(&self) -> usize {
        self.instances(|role| !matches!(role, Role::Router | Role::Device)).count()
    }

    /// Instances of some role.
    pub fn instances<F: Fn(Role) -> bool>(
        &self,
        role: F,
    ) -> impl Iterator<Item = &'a Instance> + use<'a, F> {
        let instances = self.signals().map_or(&[][..], |signals| &signals.instances);
        instances.iter().filter(move |instance| role(instance.role))
    }

    /// Mean of a server's histogram, ms.
    pub fn server_ms(&self, signal: Signal) -> Option<f64> {
        match self.signals()?.readings.get(&signal)? {
            Reading::Histogram(taken) => taken.mean().map(|seconds| seconds * 1e3),
            _ => None,
        }
    }

    /// Q̄: mean wait for the first step, ms: the server's histogram, else the
    /// timings that came with answers.
    pub fn queue_ms(&self) -> Option<f64> {
        self.server_ms(Signal::QueueTime).or_else(|| self.mean(|seen| seen.timings.queue_ms))
    }

    /// P̄: mean time from the first step to the first token, ms.
    pub fn prefill_ms(&self) -> Option<f64> {
        self.server_ms(Signal::PrefillTime).or_else(|| self.mean(|seen| seen.timings.prefill_ms))
    }

    /// Mean TTFT from the send, ms; the server's own where it is only watched.
    pub fn ttft_ms(&self) -> Option<f64> {
        if self.is_watched {
            return self.server_ms(Signal::ServerTtft);
        }
        self.mean(|seen| seen.ttft_ms)
    }

    /// TTFT of undisturbed requests like these, ms: of each quarter of uncached
    /// prompt lengths the quickest tenth, as often as it was asked for.
    pub fn quick_ttft_ms(&self) -> Option<f64> {
        self.ttft_at(0.1)
    }

    /// The same of the quickest hundredth: in a load that never lets up only the
    /// first requests are undisturbed.
    pub fn least_ttft_ms(&self) -> Option<f64> {
        self.ttft_at(0.01)
    }

    fn ttft_at(&self, share: f64) -> Option<f64> {
        let mut by_length: Vec<(f64, f64)> = self
            .seen
            .iter()
            .filter_map(|seen| Some((seen.uncached().unwrap_or(0.0), seen.ttft_ms?)))
            .collect();
        by_length.sort_by(|a, b| a.0.total_cmp(&b.0));
        let parts = if by_length.len() >= 80 { 4 } else { 1 };
        let size = by_length.len().div_ceil(parts).max(1);
        let quick = by_length.chunks(size).filter_map(|part| {
            let mut times: Vec<f64> = part.iter().map(|(_, ms)| *ms).collect();
            times.sort_by(f64::total_cmp);
            Some((quantile::linear(&times, share)?, part.len() as f64))
        });
        measure::statistics::weighted_mean(quick.collect::<Vec<_>>())
    }

    /// Mean prompt and answer lengths, tokens.
    pub fn lengths(&self) -> Option<(f64, f64)> {
        Some((self.mean(|seen| seen.input)?, self.mean(|seen| seen.output)?))
    }

    /// Tokens that a step gives each sequence: 1, and more with speculation.
    pub fn tokens_per_step(&self) -> f64 {
        let taken = self.signals().and_then(|signals| {
            let drafts = signals.increase(Signal::Drafts).filter(|drafts| *drafts > 0.0)?;
            Some(1.0 + signals.increase(Signal::AcceptedTokens)? / drafts)
        });
        taken.unwrap_or(1.0)
    }

    /// B̂: requests that decode at a time: output tok/s × token-weighted mean ITL.
    pub fn running_batch(&self) -> Option<f64> {
        let tokens_s = self.summary.throughput.output_tok_s?;
        Some(tokens_s * self.summary.weighted.itl_mean_ms? / 1e3)
    }

    /// Tokens of KV cache that the load holds at a time: X · (E2E − Q) ·
    /// (S + O/2), X of completed requests.
    pub fn kv_demand_tokens(&self) -> Option<f64> {
        let (input, output) = self.lengths()?;
        let lived_ms = self.mean(|seen| seen.e2el_ms)? - self.queue_ms().unwrap_or(0.0);
        let completed = self.summary.load.completed_rps?;
        Some(completed * lived_ms.max(0.0) / 1e3 * (input + output / 2.0))
    }

    /// Requests in flight at a time by Little's law: X · E2E; those that the
    /// server has where it is only watched.
    pub fn in_flight(&self) -> Option<f64> {
        if self.is_watched {
            return Some(self.signal(Signal::Running)? + self.signal(Signal::QueueDepth)?);
        }
        let e2el_ms = self.mean(|seen| seen.e2el_ms)?;
        Some(self.summary.load.completed_rps? * e2el_ms / 1e3)
    }

    /// How late sends were, as a share of the median TTFT: p99.
    pub fn lateness_share(&self) -> Option<f64> {
        let [_, p99_us, _] = self.summary.validity.lateness_us?;
        let ttft_ms = self.at_share(0.5, |seen| seen.ttft_ms)?;
        (ttft_ms > 0.0).then(|| p99_us / 1e3 / ttft_ms)
    }

    /// Round trip, ms: the shortest that the kernel measured, or the handshake of
    /// a request that opened a connection.
    pub fn round_trip_ms(&self) -> Option<f64> {
        let trips = self.courses.iter().filter_map(|course| course.handshake_ms);
        let measured = self.summary.facts.instrument.round_trip.map(Span::ms);
        trips.chain(measured).reduce(f64::min)
    }

    /// Time that does not depend on the server's metrics between what the client
    /// and what the server call TTFT, ms.
    pub fn outside_ms(&self) -> Option<f64> {
        Some(self.ttft_ms()? - self.server_ms(Signal::ServerTtft)?)
    }

    fn streams(&self) -> Vec<Stream> {
        let events: usize =
            self.seen.iter().map(|seen| self.timed[seen.place].record.events.len()).sum();
        let every = (events / MOST_GAPS).max(1);
        let kept = self.seen.iter().step_by(every);
        let streams = kept.filter(|seen| self.timed[seen.place].is_streamed()).filter_map(|seen| {
            let stamped = self.timed[seen.place].stamped()?;
            let from_s = self.courses[seen.place].intended_s;
            let gaps = stamped.ended_gaps().map(|(gap, at)| (gap.ms(), from_s + at.s())).collect();
            Some(Stream { owner: seen.place, gaps })
        });
        let events_kept = self.summary.facts.settings.events_kept;
        if events_kept { streams.collect() } else { Vec::new() }
    }

    /// Requests with their first tokens, each with about the time that its
    /// prompt took: what the server says of it, else what a prompt of its length
    /// takes undisturbed.
    fn newcomers(&self) -> Vec<Newcomer> {
        let way_ms = self.round_trip_ms().unwrap_or(0.0);
        let quick = self.quick_ttft_ms().map(|quick| (quick - way_ms).max(1.0));
        let quick = self.server_ms(Signal::PrefillTime).or(quick);
        let length = self.mean(Seen::uncached);
        let newcomers = self.seen.iter().filter_map(|seen| {
            let course = &self.courses[seen.place];
            let (ttft_ms, first_s) = (seen.ttft_ms?, course.first_token_s?);
            let times = seen.uncached().zip(length).map_or(1.0, |(own, mean)| own / mean.max(1.0));
            let usual = quick.map_or(ttft_ms, |quick| quick * times.max(0.1));
            let takes_ms = seen.timings.prefill_ms.unwrap_or(usual).min(ttft_ms);
            Some(Newcomer { owner: seen.place, from_s: first_s - takes_ms / 1e3, first_s })
        });
        newcomers.collect()
    }
}

/// Arithmetic mean; none of nothing.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The value at or below which a share of some values lies, in any order.
pub(crate) fn at_share(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    quantile::linear(&values, share)
}
