//! A run whose requests are counted as they end, so that none of them need be
//! kept: the same summary as of records, from bins.
//!
//! What a request is worth is computed by [`Timed`], as for records; only the
//! aggregation differs. Counts, sums and ends are exact, percentiles are off by
//! 0.05 % at most, and what needs single requests again is absent with that
//! reason. Memory depends on how values differ and on how many requests are in
//! flight, and not on how many have ended.

mod crowd;
mod samples;
mod steady;

use std::collections::BTreeMap;

use crate::bins::Bins;
use crate::caveats::Evidence;
use crate::definition::{GOODPUT, SERVICE};
use crate::facts::{LoadFacts, RunFacts};
use crate::goodput::Judging;
use crate::metric::Text;
use crate::outcome::Outcome;
use crate::quantile;
use crate::record::Record;
use crate::request::{Settings, Timed};
use crate::said::Said;
use crate::slices::{Part, Slice, Slices, bucket};
use crate::slo::{Slo, judge};
use crate::statistics::{Distribution, weighted_mean};
use crate::summary::{
    Inside, Outcomes, Summary, TokenSums, Weighted, Windows, absent, first_seen, interactivity,
    prompt_excludes_cached, throughput,
};
use crate::unit::{At, Span};
use crate::validity::{Seen, lateness};
use crate::window::Extent;
use crowd::Crowd;
use samples::{Measured, Samples, Unfinished};
use steady::{Gaps, SteadyPart};

/// A run so far. It is told of every send and every end, in the order of time,
/// of a model whose answers do not reason: what `start` means in an objective
/// must be known before the first request is judged.
#[derive(Clone, Debug)]
pub struct Tally {
    settings: Settings,
    load: LoadFacts,
    generates: bool,
    censored_at: Option<f64>,
    metrics: Vec<Measured>,
    outcomes: Outcomes,
    extent: Extent,
    evidence: Evidence,
    seen: Seen,
    /// Send lateness, µs.
    late: Bins,
    /// When requests that the load let come were released, µs.
    released: Bins,
    successes: u64,
    tokens: TokenSums,
    /// Σ TPOT × later tokens, and Σ later tokens.
    generation: (f64, f64),
    /// Of requests that were sent when they were intended, for which both
    /// definitions have the same values, and of the others: before the steady
    /// window, and from its beginning on.
    at_once: [Samples; 2],
    held_back: [Samples; 2],
    /// The latter from their send.
    held_back_service: Samples,
    unfinished: Unfinished,
    gaps: [Gaps; 2],
    judged: Option<Judging>,
    judged_service: Option<Judging>,
    by_input: BTreeMap<Part, InputSlice>,
    crowd: Crowd,
    steady: SteadyPart,
    labelled: bool,
}

#[derive(Clone, Debug, Default)]
struct InputSlice {
    n: u64,
    ok: u64,
    ttft: Bins,
    tpot: Bins,
    e2el: Bins,
}

impl Tally {
    /// Nothing yet, of a run of which this is known before it begins.
    pub fn new(facts: &RunFacts) -> Self {
        let excludes_cached = prompt_excludes_cached(facts);
        let judging = |slo: &Slo| Judging::under(slo, false);
        Self {
            settings: Settings { events_kept: false, ..facts.settings },
            load: facts.load.clone(),
            generates: facts.endpoint.generates(),
            censored_at: facts.request_timeout.map(Span::ms),
            metrics: samples::of_requests(),
            outcomes: Outcomes::default(),
            extent: Extent::default(),
            evidence: Evidence::new(excludes_cached),
            seen: Seen::default(),
            late: Bins::default(),
            released: Bins::default(),
            successes: 0,
            tokens: TokenSums::new(excludes_cached),
            generation: (0.0, 0.0),
            at_once: Default::default(),
            held_back: Default::default(),
            held_back_service: Samples::default(),
            unfinished: Unfinished::default(),
            gaps: Default::default(),
            judged: facts.slo.as_ref().map(judging),
            judged_service: facts.slo.as_ref().map(judging),
            by_input: BTreeMap::new(),
            crowd: Crowd::default(),
            steady: SteadyPart::of(&facts.load, facts.slo.as_ref().map(judging)),
            labelled: false,
        }
    }

    /// A request is sent.
    pub fn sent(&mut self, at: At) {
        self.crowd.sent(at);
        self.steady.sent(at);
    }

    /// A request is over. `gaps` are those between its token arrivals in µs,
    /// each with the tokens that ended it; its own events need be the first
    /// arrival and the last only.
    pub fn ended(&mut self, record: &Record, gaps: &[(u32, u32)]) {
        let timed = Timed::new(record, &GOODPUT, self.settings);
        self.outcomes.add(record);
        self.extent.add(record, false);
        self.evidence.add(record);
        self.seen.add(record, true);
        if let Some(late) = lateness(record, &self.load) {
            self.late.add(late.us() as f64);
        }
        if let (true, true, Some(at)) =
            (self.load.kind.has_schedule(), record.arrives(), record.stamps.released_at)
        {
            self.released.add(at.us() as f64);
        }
        self.tokens.add(&timed);
        self.successes += u64::from(timed.success);
        self.labelled |= !record.planned.labels.is_empty();
        if let (Some(sent), Some(ended)) = (record.stamps.sent_at, record.stamps.ended_at) {
            self.crowd.ended(ended);
            self.steady.ended(record, (sent, ended), &timed, gaps, &self.crowd);
        }
        let part = usize::from(self.steady.holds(record));
        self.gaps[part].add(&timed, gaps);
        self.add_values(&timed, part);
        self.judge(&timed, part);
        if timed.success {
            self.add_success(&timed);
        }
    }

    fn add_values(&mut self, timed: &Timed<'_>, part: usize) {
        let (metrics, stamps) = (&self.metrics, &timed.record.stamps);
        let is_at_once = stamps.sent_at.is_none_or(|sent| sent == stamps.intended_at);
        let whole = if is_at_once {
            self.at_once[part].add(metrics, timed)
        } else {
            let from_send = Timed::new(timed.record, &SERVICE, self.settings);
            self.held_back_service.add(metrics, &from_send);
            self.held_back[part].add(metrics, timed)
        };
        if !whole {
            self.unfinished.add(metrics, timed, self.generates, self.censored_at);
        }
    }

    fn judge(&mut self, timed: &Timed<'_>, part: usize) {
        let (Some(all), Some(service)) = (&mut self.judged, &mut self.judged_service) else {
            return;
        };
        let judged = judge(timed, &all.slo);
        all.add(timed, &judged);
        if part == 1 {
            self.steady.judge(timed, &judged);
        }
        let stamps = &timed.record.stamps;
        if stamps.sent_at.is_none_or(|sent| sent == stamps.intended_at) {
            return service.add(timed, &judged);
        }
        let from_send = Timed::new(timed.record, &SERVICE, self.settings);
        let judged = judge(&from_send, &service.slo);
        service.add(&from_send, &judged);
    }

    fn add_success(&mut self, timed: &Timed<'_>) {
        if let (Ok(tpot), Ok(later)) = (timed.tpot_streamed(), timed.later_tokens()) {
            self.generation.0 += tpot * f64::from(later);
            self.generation.1 += f64::from(later);
        }
        let Ok(tokens) = timed.input_length() else { return };
        let slice = self.by_input.entry(bucket(tokens)).or_default();
        slice.n += 1;
        slice.ok += u64::from(timed.record.outcome == Outcome::Ok);
        let add = |bins: &mut Bins, value: crate::request::Value| {
            value.into_iter().for_each(|value| bins.add(value));
        };
        add(&mut slice.ttft, timed.ttft());
        add(&mut slice.tpot, timed.tpot());
        add(&mut slice.e2el, timed.e2el());
    }

    /// What the run comes to, with what is known of it at its end.
    pub fn summary(&self, facts: &RunFacts) -> Summary {
        let extra = &facts.percentiles;
        let windows = Windows::of(&self.extent, facts, &GOODPUT);
        let [before, from] = &self.at_once;
        let [held_before, held_from] = &self.held_back;
        let all = Samples::together(&[before, from, held_before, held_from]);
        let service = Samples::together(&[before, from, &self.held_back_service]);
        let steady = Samples::together(&[from, held_from]);
        let gaps = Gaps::together(&self.gaps);
        let metrics = self.distributions(&all, &gaps, facts);
        let ttft = first_seen(&metrics, facts);
        let tokens = self.tokens.totals();
        let released =
            windows.arrival.map_or(0.0, |window| self.released.up_to(window.until.us() as f64));
        let late = |q| quantile::counted(&self.late, q);
        let late = late(0.5).zip(late(0.99)).zip(late(1.0)).map(|((a, b), c)| [a, b, c]);
        let goodput = |judging: &Option<Judging>| {
            judging.as_ref().map(|judging| judging.goodput(windows.goodput_s))
        };
        let steady_metrics = || self.distributions(&steady, &self.gaps[1], facts);
        let mut summary = Summary {
            definition: GOODPUT,
            load: windows.load(&self.extent, self.successes, released, self.crowd.most()),
            replay: None,
            service_metrics: self.distributions(&service, &gaps, facts),
            all_requests_metrics: self.unfinished.distributions(&self.metrics, &all, extra),
            weighted: self.weighted(&gaps),
            interactivity_tok_s: interactivity(&metrics),
            throughput: throughput(self.successes, &tokens, windows.throughput_s),
            steady: self.steady.found(&facts.load, &self.extent, &self.crowd, steady_metrics),
            fairness: Vec::new(),
            service_goodput: goodput(&self.judged_service),
            goodput: goodput(&self.judged),
            peaks: None,
            // Sends of a model are those of the plan, so that their dispersion
            // is the plan's and says nothing against it.
            validity: self.seen.validity(facts, ttft, late, None, self.extent.sent.length()),
            caveats: Vec::new(),
            slices: self.slices(),
            conversations: None,
            inside: Inside::default(),
            absent: Vec::new(),
            answer_warnings: self.evidence.warnings(),
            facts: facts.clone(),
            outcomes: self.outcomes.counts.clone(),
            metrics,
            tokens,
        };
        summary.caveats = crate::caveats::of(&summary, &self.evidence);
        summary.absent = absent(&summary);
        self.say_not_kept(&mut summary.absent);
        summary
    }

    fn distributions(
        &self,
        samples: &Samples,
        gaps: &Gaps,
        facts: &RunFacts,
    ) -> Vec<(&'static str, Distribution)> {
        let extra = &facts.percentiles;
        let own = self.metrics.iter().enumerate();
        let own = own.map(|(place, known)| (known.metric.key, samples.distribution(place, extra)));
        let of_gaps = gaps.distributions(extra);
        let found: BTreeMap<&'static str, Distribution> = own.chain(of_gaps).collect();
        let in_order = crate::metric::METRICS.iter().map(|metric| metric.key);
        in_order.filter_map(|key| Some((key, found.get(key)?.clone()))).collect()
    }

    fn weighted(&self, gaps: &Gaps) -> Weighted {
        let (time, tokens) = self.generation;
        Weighted {
            tpot_token_weighted_ms: weighted_mean((tokens > 0.0).then(|| (time / tokens, tokens))),
            itl_mean_ms: gaps.mean_by_token(),
            itl_mean_over_osl_ms: gaps.mean_over_output(),
        }
    }

    fn slices(&self) -> Slices {
        let by_input = self.by_input.iter().map(|(of, slice)| {
            let distribution = |bins: &Bins| Distribution::of_bins(bins, Vec::new(), &[]);
            Slice {
                of: of.clone(),
                n: slice.n,
                ok: slice.ok,
                ttft: distribution(&slice.ttft),
                tpot: distribution(&slice.tpot),
                e2el: distribution(&slice.e2el),
                attained: None,
            }
        });
        Slices { by_input: by_input.collect(), by_label: Vec::new(), tail_owner: None }
    }

    /// Names what records would have had besides.
    fn say_not_kept(&self, absent: &mut Vec<(String, Said)>) {
        let keys = [
            ("findings", true),
            ("lints", true),
            ("slices.by_label", self.labelled),
            ("fairness", self.labelled),
            ("slices.tail_owner", true),
            ("conversations", self.extent.later_turns > 0),
            ("load.replay", self.load.replay.is_some()),
        ];
        for (key, _) in keys.into_iter().filter(|(_, is_missing)| *is_missing) {
            absent.retain(|(known, _)| known != key);
            absent.push((key.to_owned(), NOT_KEPT.into()));
        }
    }

    /// Places that memory is held for; it does not grow with the number of
    /// requests that have ended.
    pub fn held(&self) -> usize {
        let samples = self.at_once.iter().chain(&self.held_back).chain([&self.held_back_service]);
        let slices = self.by_input.values();
        samples.map(Samples::held).sum::<usize>()
            + self.gaps.iter().map(Gaps::held).sum::<usize>()
            + slices.map(|of| of.ttft.held() + of.tpot.held() + of.e2el.held()).sum::<usize>()
            + self.late.held()
            + self.released.held()
            + self.crowd.held()
            + self.steady.held()
    }
}

const NOT_KEPT: Text = Text {
    en: "needs single requests, of which none was kept (--no-events)",
    zh: "需要逐个请求的数据，而没有保留（--no-events）",
};
