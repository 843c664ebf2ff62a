//! One request under one definition: where it starts, which events count, and
//! every per-request value. All latencies of the product come from here.

use crate::definition::{ArrivalMark, ClockStart, CountRule, Definition, EndMark, SuccessRule};
use crate::outcome::{FailureKind, Outcome};
use crate::quantile;
use crate::record::{Carries, Event, ReasoningDisclosure, Record, Warnings};
use crate::slo::Statistic;
use crate::undefined::Undefined;
use crate::unit::{At, Span};

/// A value in the metric's unit, or the reason why there is none.
pub type Value = Result<f64, Undefined>;

/// Settings of the few per-request metrics that have a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// A gap longer than this is a stall, in milliseconds (`--stall-ms`).
    pub stall_ms: f64,
    /// Tokens per second that a person reads.
    pub reading_tok_s: f64,
    /// False where only the first and the last event of each request were kept:
    /// gaps between them are not known then.
    pub events_kept: bool,
}

impl Default for Settings {
    fn default() -> Self {
        // Half a second is where a stream is seen to stop; five tokens a
        // second is a quick silent reader.
        Self { stall_ms: 500.0, reading_tok_s: 5.0, events_kept: true }
    }
}

/// A request seen under a definition.
#[derive(Clone, Debug)]
pub struct Timed<'a> {
    /// What was observed.
    pub record: &'a Record,
    /// Whether it enters the latency statistics of successes.
    pub success: bool,
    definition: Definition,
    settings: Settings,
    marks: Result<Marks, Undefined>,
    /// What all its events carried, together.
    carried: Carries,
}

/// The instants that matter, as spans from the definition's start.
#[derive(Clone, Debug, PartialEq)]
enum Marks {
    /// From our own stamps: exact integers.
    Stamped(Instants),
    /// From another tool's file: its own floats, in milliseconds.
    Reported { ttft_ms: Option<f64>, gaps_ms: Vec<f64>, latency_ms: Option<f64> },
}

/// The few instants of a request that most metrics need. Arrivals themselves
/// are read from the record again when asked for: a run of ten million tokens
/// must not hold them twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Instants {
    /// From the definition's start to the send.
    lead: Span,
    /// Number of token arrivals.
    arrivals: usize,
    first: Option<Span>,
    last: Option<Span>,
    first_text: Option<Span>,
    end: Option<Span>,
}

/// Marks from our own stamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// Token arrivals: span from the start, choice, new tokens (0 unknown).
    pub arrivals: Vec<Arrival>,
    /// First visible text.
    pub first_text: Option<Span>,
    /// Where E2EL ends.
    pub end: Option<Span>,
}

/// One token arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Since the definition's start.
    pub at: Span,
    /// Choice that it belongs to.
    pub choice: u8,
    /// New tokens; 0 when the server does not say.
    pub tokens: u16,
}

impl Stamped {
    /// Gaps between successive arrivals of the same choice.
    pub fn gaps(&self) -> Vec<Span> {
        self.ended_gaps().map(|(gap, _)| gap).collect()
    }

    /// The same gaps, each with when it ended, since the definition's start.
    pub fn ended_gaps(&self) -> impl Iterator<Item = (Span, Span)> + '_ {
        let mut gaps = Gaps::default();
        self.arrivals.iter().filter_map(move |a| Some((gaps.after(a.choice, a.at)?, a.at)))
    }
}

/// Gaps between successive arrivals, choice by choice.
#[derive(Default)]
struct Gaps {
    last: Vec<(u8, Span)>,
}

impl Gaps {
    /// The gap that an arrival ends; the first one of a choice ends none.
    fn after(&mut self, choice: u8, at: Span) -> Option<Span> {
        match self.last.iter_mut().find(|(known, _)| *known == choice) {
            Some((_, before)) => Some(at - std::mem::replace(before, at)),
            None => {
                self.last.push((choice, at));
                None
            }
        }
    }
}

/// The instant at which a definition starts the clock of a request.
pub fn start_of(record: &Record, start: ClockStart) -> Option<At> {
    match start {
        ClockStart::Intended => Some(record.stamps.intended_at),
        ClockStart::Released => record.stamps.released_at,
        ClockStart::Sent => record.stamps.sent_at,
    }
}

impl<'a> Timed<'a> {
    /// Looks at `record` under `definition`.
    pub fn new(record: &'a Record, definition: &Definition, settings: Settings) -> Self {
        Self {
            record,
            success: is_success(record, definition.success),
            definition: *definition,
            settings,
            marks: marks(record, definition),
            carried: record.events.carries.iter().fold(Carries::NOTHING, |all, c| all.with(*c)),
        }
    }

    /// The marks from our own stamps, where the row has them.
    pub fn stamped(&self) -> Option<Stamped> {
        let instants = self.instants()?;
        Some(Stamped {
            arrivals: self.arrivals(instants.lead).collect(),
            first_text: instants.first_text,
            end: instants.end,
        })
    }

    fn instants(&self) -> Option<&Instants> {
        match &self.marks {
            Ok(Marks::Stamped(instants)) => Some(instants),
            _ => None,
        }
    }

    fn arrivals(&self, lead: Span) -> impl Iterator<Item = Arrival> + '_ {
        let mark = self.definition.arrival;
        self.record.events.iter().filter(move |event| is_arrival(event, mark)).map(move |event| {
            let at = lead + Span::from_us(i64::from(event.at_us));
            Arrival { at, choice: event.choice, tokens: event.tokens }
        })
    }

    /// Each gap with the tokens of the arrival that ended it.
    fn later_arrivals(&self) -> Vec<(Span, u16)> {
        let Some(instants) = self.instants() else { return Vec::new() };
        let mut later = Vec::with_capacity(instants.arrivals);
        later.extend(self.each_later_arrival(instants));
        later
    }

    fn each_later_arrival(&self, instants: &Instants) -> impl Iterator<Item = (Span, u16)> + '_ {
        let mut gaps = Gaps::default();
        self.arrivals(instants.lead)
            .filter_map(move |a| Some((gaps.after(a.choice, a.at)?, a.tokens)))
    }

    /// Adds the gaps that enter aggregates, in whole microseconds, to `into`.
    /// `None` on a row of another tool, whose gaps are its own floats.
    pub fn add_gaps_us(&self, into: &mut Vec<u32>) -> Option<Result<(), Undefined>> {
        if self.record.source.is_some() {
            return None;
        }
        if let Err(reason) = self.events_kept() {
            return Some(Err(reason));
        }
        let instants = match self.streamed() {
            Ok(Marks::Stamped(instants)) => instants,
            Ok(Marks::Reported { .. }) => return None,
            Err(reason) => return Some(Err(reason)),
        };
        let before = into.len();
        let spans = self.each_later_arrival(instants);
        into.extend(spans.map(|(gap, _)| gap.us().clamp(0, i64::from(u32::MAX)) as u32));
        Some(if into.len() == before { Err(Undefined::OneArrival) } else { Ok(()) })
    }

    /// Whether every event was kept.
    fn events_kept(&self) -> Result<(), Undefined> {
        if self.knows_events() { Ok(()) } else { Err(Undefined::EventsNotKept) }
    }

    /// Whether the answer is of a kind that has tokens.
    fn generates(&self) -> Result<(), Undefined> {
        if self.carried.any(Carries::RESULT) { Err(Undefined::NoGeneration) } else { Ok(()) }
    }

    /// The marks of a success whose gaps mean something.
    fn streamed(&self) -> Result<&Marks, Undefined> {
        let marks = self.successful()?;
        self.generates()?;
        if self.definition.excludes_not_streamed && self.at_one_instant() {
            return Err(Undefined::NotStreamed);
        }
        Ok(marks)
    }

    /// Where the definition starts the clock.
    pub fn start(&self) -> ClockStart {
        self.definition.start
    }

    fn successful(&self) -> Result<&Marks, Undefined> {
        if !self.success {
            return Err(match self.record.outcome {
                Outcome::Empty => Undefined::NoOutput,
                Outcome::NotSent(_) => Undefined::NotSent,
                _ => Undefined::NotOk,
            });
        }
        self.marks.as_ref().map_err(|reason| *reason)
    }

    fn several_choices(&self) -> bool {
        self.record.answer.choices > 1
    }

    fn at_one_instant(&self) -> bool {
        self.record.answer.warnings.has(Warnings::NOT_STREAMED)
    }

    /// A tool that needs no token for a success leaves its stamps at their
    /// first values: TTFT 0, latency 0. The definition card says so.
    fn reads_unseen_as_zero(&self) -> bool {
        self.success && self.definition.success == SuccessRule::ReadableBody { needs_choice: false }
    }

    /// Difference in ms of two spans of this request, exact in microseconds: a
    /// difference of milliseconds would miss an SLO limit by its rounding.
    fn between(&self, from: impl Fn(&Instants) -> Option<Span>) -> Option<f64> {
        let stamped = self.instants()?;
        let end = stamped.end.filter(|_| self.success)?;
        Some((end - from(stamped)?).ms())
    }

    /// TTFT in ms, also of a request that failed later: what the SLO looks at.
    pub fn ttft_seen(&self) -> Value {
        self.generates()?;
        match self.marks.as_ref().map_err(|reason| *reason)? {
            Marks::Stamped(stamped) => match stamped.first {
                Some(first) => Ok(first.ms()),
                None if self.reads_unseen_as_zero() => Ok(0.0),
                None if stamped.end.is_some() => Err(Undefined::NotStreamed),
                None => Err(Undefined::NoOutput),
            },
            Marks::Reported { ttft_ms, .. } => ttft_ms.ok_or(Undefined::NotInFile),
        }
    }

    /// TTFT in ms: first token arrival − start.
    pub fn ttft(&self) -> Value {
        self.successful()?;
        self.ttft_seen()
    }

    /// TTFC in ms: first visible text − start.
    pub fn ttfc(&self) -> Value {
        let marks = self.successful()?;
        self.generates()?;
        match marks {
            Marks::Stamped(stamped) => match stamped.first_text {
                Some(first) => Ok(first.ms()),
                None if stamped.arrivals == 0 => Err(Undefined::NotStreamed),
                None => Err(Undefined::NoVisibleText),
            },
            Marks::Reported { .. } => Err(Undefined::NotInFile),
        }
    }

    /// TTFC in ms, also of a request that did not end: what the SLO looks at.
    pub fn ttfc_seen(&self) -> Option<f64> {
        self.instants()?.first_text.map(Span::ms)
    }

    /// Whether reasoning was streamed.
    pub fn reasoned(&self) -> bool {
        self.carried.any(Carries::REASONING)
    }

    /// Whether the answer called a tool.
    pub fn calls_tools(&self) -> bool {
        self.carried.any(Carries::TOOL_CALL)
    }

    /// Thinking time in ms: TTFC − TTFT.
    pub fn thinking(&self) -> Value {
        let (ttfc, ttft) = (self.ttfc()?, self.ttft()?);
        let exact = self
            .instants()
            .and_then(|instants| Some((instants.first_text? - instants.first?).ms()));
        let thinking = exact.unwrap_or(ttfc - ttft);
        if self.reasoned() { Ok(thinking) } else { Err(Undefined::NoReasoning) }
    }

    /// E2EL in ms: last token arrival or finish event − start.
    pub fn e2el(&self) -> Value {
        match self.successful()? {
            Marks::Stamped(stamped) => match stamped.end {
                Some(end) => Ok(end.ms()),
                None if self.reads_unseen_as_zero() => Ok(0.0),
                None => Err(Undefined::NoOutput),
            },
            Marks::Reported { latency_ms, .. } => latency_ms.ok_or(Undefined::NotInFile),
        }
    }

    /// Generation time in ms: E2EL − TTFT.
    pub fn generation(&self) -> Value {
        let (e2el, ttft) = (self.e2el()?, self.ttft()?);
        let exact = self.between(|instants| instants.first);
        Ok(exact.unwrap_or(e2el - ttft))
    }

    /// Finish lag in ms: E2EL end − last token arrival. With one choice,
    /// TTFT + Σ ICL + finish lag = E2EL exactly.
    pub fn finish_lag(&self) -> Value {
        let marks = self.successful()?;
        self.generates()?;
        match marks {
            Marks::Stamped(stamped) => {
                let end = stamped.end.ok_or(Undefined::NoOutput)?;
                let last = stamped.last.ok_or(Undefined::NotStreamed)?;
                Ok((end - last).ms())
            }
            Marks::Reported { .. } => Err(Undefined::NotInFile),
        }
    }

    /// Output tokens under the definition's count rule.
    pub fn output_tokens(&self) -> Result<u32, Undefined> {
        self.generates()?;
        match self.definition.count {
            CountRule::BestSource => {
                self.record.output_tokens().map(|(n, _)| n.get()).ok_or(Undefined::NoTokenCount)
            }
            CountRule::UsageElseRetokenised => {
                let imported = self.record.source.is_some();
                let seen = |wanted: fn(&Carries) -> bool| {
                    let carries = &self.record.events.carries;
                    carries.iter().filter(|c| !c.any(Carries::WHOLE)).any(wanted)
                };
                let apart = imported || seen(|c| c.any(Carries::USAGE) && !c.any(Carries::CHOICE));
                match self.record.answer.counts.usage {
                    Some(tokens) if apart && tokens.get() > 0 => Ok(tokens.get()),
                    // No text has no tokens, whatever the tokenizer.
                    _ if !imported && !seen(|c| c.any(Carries::TEXT)) => Ok(0),
                    _ => Err(Undefined::NeedsText),
                }
            }
        }
    }

    /// TPOT in ms: (E2EL − TTFT) ÷ (OSL − 1).
    pub fn tpot(&self) -> Value {
        let generation = self.generation()?;
        if self.several_choices() && self.definition.excludes_not_streamed {
            return Err(Undefined::SeveralChoices);
        }
        if self.definition.count == CountRule::BestSource && self.hides_reasoning() {
            return self.tpot_visible();
        }
        per_later_token(generation, self.output_tokens()?, 1)
    }

    /// TPOT as it enters aggregates: answers that came at one instant stay
    /// out, because their TPOT of 0 is the proxy's and not the model's.
    pub fn tpot_streamed(&self) -> Value {
        let tpot = self.tpot()?;
        if self.definition.excludes_not_streamed && self.at_one_instant() {
            return Err(Undefined::NotStreamed);
        }
        Ok(tpot)
    }

    /// TPOT in ms with the first event's tokens taken out of the divisor,
    /// when it is known to carry more than one. Undefined where TPOT is not
    /// the time of streamed, visible tokens of one answer.
    pub fn tpot_adjusted(&self) -> Value {
        let generation = self.generation()?;
        if self.definition.excludes_not_streamed {
            if self.several_choices() {
                return Err(Undefined::SeveralChoices);
            }
            if self.hides_reasoning() {
                return Err(Undefined::HiddenReasoning);
            }
            if self.at_one_instant() {
                return Err(Undefined::NotStreamed);
            }
        }
        match self.record.answer.first_event_tokens {
            Some(first) if first.get() > 1 => {
                per_later_token(generation, self.output_tokens()?, first.get())
            }
            _ => Err(Undefined::FirstChunkUnknown),
        }
    }

    fn hides_reasoning(&self) -> bool {
        matches!(
            self.record.answer.reasoning_disclosure,
            Some(
                ReasoningDisclosure::Summary
                    | ReasoningDisclosure::Redacted
                    | ReasoningDisclosure::Unknown
            )
        )
    }

    /// With reasoning that was not shown, only the visible tokens can be
    /// timed, from the first of them.
    fn tpot_visible(&self) -> Value {
        let visible = self.visible_tokens()?;
        let since_text =
            self.between(|stamped| stamped.first_text).ok_or(Undefined::HiddenReasoning)?;
        per_later_token(since_text, visible, 1)
    }

    fn visible_tokens(&self) -> Result<u32, Undefined> {
        let hidden = self.record.answer.counts.reasoning.ok_or(Undefined::HiddenReasoning)?;
        Ok(self.output_tokens()?.saturating_sub(hidden.get()))
    }

    /// Output tokens that the chunks carried: hidden reasoning is in OSL and
    /// in no chunk. A summary's chunks carry text that OSL does not count, so
    /// nothing can be said of them.
    fn streamed_tokens(&self) -> Result<u32, Undefined> {
        match self.record.answer.reasoning_disclosure {
            _ if self.definition.count != CountRule::BestSource => self.output_tokens(),
            Some(ReasoningDisclosure::Summary) => Err(Undefined::HiddenReasoning),
            Some(ReasoningDisclosure::Redacted | ReasoningDisclosure::Unknown) => {
                self.visible_tokens()
            }
            Some(ReasoningDisclosure::Verbatim) | None => self.output_tokens(),
        }
    }

    /// OSL − 1 as TPOT divides by it: visible tokens where reasoning is hidden.
    pub fn later_tokens(&self) -> Result<u32, Undefined> {
        let hides = self.definition.count == CountRule::BestSource && self.hides_reasoning();
        let tokens = if hides { self.visible_tokens() } else { self.output_tokens() };
        Ok(tokens?.saturating_sub(1))
    }

    /// Gaps in ms between successive token arrivals (ICL), per choice.
    pub fn gaps(&self) -> Result<Vec<f64>, Undefined> {
        self.events_kept()?;
        let marks = self.successful()?;
        self.generates()?;
        match marks {
            Marks::Stamped(instants) => {
                let mut gaps = Vec::with_capacity(instants.arrivals);
                gaps.extend(self.each_later_arrival(instants).map(|(gap, _)| gap.ms()));
                Ok(gaps)
            }
            Marks::Reported { gaps_ms, .. } => Ok(gaps_ms.clone()),
        }
    }

    /// Gaps as they enter aggregates.
    pub fn gaps_streamed(&self) -> Result<Vec<f64>, Undefined> {
        self.streamed()?;
        let gaps = self.gaps()?;
        if gaps.is_empty() { Err(Undefined::OneArrival) } else { Ok(gaps) }
    }

    /// One figure in ms of this request's own gaps between arrivals.
    pub fn gap(&self, statistic: Statistic) -> Value {
        let mut gaps = self.gaps()?;
        if gaps.is_empty() {
            return Err(self.without_gap());
        }
        let Some(q) = statistic.rank() else {
            return Ok(gaps.iter().sum::<f64>() / gaps.len() as f64);
        };
        gaps.sort_by(f64::total_cmp);
        quantile::linear(&gaps, q).ok_or(Undefined::OneArrival)
    }

    /// ITL mean in ms of this request: Σ gaps ÷ Σ tokens of the chunks that
    /// ended them.
    pub fn itl_mean(&self) -> Value {
        if self.gaps()?.is_empty() {
            return Err(self.without_gap());
        }
        let (time, tokens) = self.gap_weight()?;
        Ok(time / tokens)
    }

    /// Why a success has no gap.
    fn without_gap(&self) -> Undefined {
        match &self.marks {
            Ok(Marks::Stamped(instants)) if instants.arrivals == 0 => Undefined::NotStreamed,
            Ok(Marks::Reported { .. }) if self.output_tokens() != Ok(1) => Undefined::NotInFile,
            _ => Undefined::OneArrival,
        }
    }

    /// The longest gap in ms that has been seen of a request, however it
    /// ended; the one that was open at its end counts as long as it lasted.
    pub fn longest_gap_seen(&self) -> Option<f64> {
        self.events_kept().ok()?;
        let instants = self.instants()?;
        let longest = self.each_later_arrival(instants).map(|(gap, _)| gap).max();
        let start = start_of(self.record, self.start())?;
        let open = self.record.stamps.ended_at.zip(instants.last);
        let open = open.map(|(ended, last)| (ended - start) - last);
        longest.max(open).map(Span::ms)
    }

    /// Whether the gaps of this request, where it has any, enter aggregates.
    pub fn is_streamed(&self) -> bool {
        self.knows_events() && self.streamed().is_ok()
    }

    /// Whether every event was kept, and not the first and the last one only.
    pub const fn knows_events(&self) -> bool {
        self.settings.events_kept
    }

    /// Largest gap in ms.
    pub fn stall(&self) -> Value {
        Ok(self.gaps_streamed()?.into_iter().fold(0.0, f64::max))
    }

    /// Share of gaps longer than the stall limit, in [0, 1].
    pub fn stall_share(&self) -> Value {
        let gaps = self.gaps_streamed()?;
        let long = gaps.iter().filter(|gap| **gap > self.settings.stall_ms).count();
        Ok(long as f64 / gaps.len() as f64)
    }

    /// Milliseconds that a reader at the reading rate, who starts at the
    /// first token, spends waiting for text.
    pub fn reader_stall(&self) -> Value {
        let gaps = self.gaps_streamed()?;
        let tokens = f64::from(self.streamed_tokens()?);
        // Tokens a chunk are spread evenly: their exact split is rarely known.
        let read_ms = tokens / (gaps.len() + 1) as f64 * 1e3 / self.settings.reading_tok_s;
        let (mut waited, mut ahead) = (0.0, read_ms);
        for gap in gaps {
            let left = ahead - gap;
            waited += f64::max(0.0, -left);
            ahead = f64::max(0.0, left) + read_ms;
        }
        Ok(waited)
    }

    /// Normalised latency in ms a token: E2EL ÷ OSL.
    pub fn normalised_latency(&self) -> Value {
        let e2el = self.e2el()?;
        let tokens = self.output_tokens()?;
        if tokens == 0 { Err(Undefined::NoTokenCount) } else { Ok(e2el / f64::from(tokens)) }
    }

    /// Output tokens a chunk.
    pub fn tokens_per_chunk(&self) -> Value {
        self.events_kept()?;
        self.successful()?;
        self.generates()?;
        let chunks = self.record.output_chunks();
        if chunks < 2 {
            return Err(Undefined::OneArrival);
        }
        Ok(f64::from(self.streamed_tokens()?) / f64::from(chunks))
    }

    /// Prompt tokens of the request, as the server counted them.
    pub fn input_length(&self) -> Value {
        self.successful()?;
        self.record
            .answer
            .counts
            .prompt
            .map(|tokens| f64::from(tokens.get()))
            .ok_or(Undefined::NoPromptCount)
    }

    /// Output tokens of the request.
    pub fn output_length(&self) -> Value {
        self.successful()?;
        self.output_tokens().map(f64::from)
    }

    /// Client wait in ms: sent − intended.
    pub fn client_wait(&self) -> Value {
        if self.record.source.is_some() {
            return Err(Undefined::NotInFile);
        }
        Ok((self.sent()? - self.record.stamps.intended_at).ms())
    }

    fn sent(&self) -> Result<At, Undefined> {
        let imported = self.record.source.is_some();
        let missing = if imported { Undefined::NotInFile } else { Undefined::NotSent };
        self.record.stamps.sent_at.ok_or(missing)
    }

    /// Response head in ms: headers complete − sent.
    pub fn headers(&self) -> Value {
        self.successful()?;
        let sent = self.sent()?;
        Ok((self.record.stamps.headers_at.ok_or(Undefined::NotInFile)? - sent).ms())
    }

    /// Σ gaps in ms and Σ tokens of the chunks that ended them: what the
    /// token-weighted ITL mean is made of.
    pub fn gap_weight(&self) -> Result<(f64, f64), Undefined> {
        let gaps = self.gaps_streamed()?;
        let total: f64 = gaps.iter().sum();
        let counted: Option<u32> = self.instants().and_then(|_| {
            let later = self.later_arrivals();
            let known = later.iter().all(|(_, tokens)| *tokens > 0);
            known.then(|| later.iter().map(|(_, tokens)| u32::from(*tokens)).sum())
        });
        let tokens = match counted {
            Some(tokens) => tokens,
            None => {
                self.tokens_after_first(self.instants().map_or(1, |i| i.arrivals - gaps.len()))?
            }
        };
        if tokens == 0 { Err(Undefined::OneToken) } else { Ok((total, f64::from(tokens))) }
    }

    /// Output tokens that came after the first arrival of each of so many choices.
    pub(crate) fn tokens_after_first(&self, choices: usize) -> Result<u32, Undefined> {
        let first = self.record.answer.first_event_tokens.map_or(1, |first| first.get());
        // Each further choice has a first token of its own.
        let firsts = first.saturating_add((choices as u32).saturating_sub(1));
        Ok(self.streamed_tokens()?.saturating_sub(firsts))
    }

    /// Whether its gaps, kept or not, enter aggregates where it has any.
    pub(crate) fn enters_gaps(&self) -> Result<(), Undefined> {
        self.streamed().map(|_| ())
    }

    /// Lower bound of the number of arrivals that carried exactly one token,
    /// and the number of arrivals.
    pub fn single_token_arrivals(&self) -> Result<(u32, u32), Undefined> {
        self.events_kept()?;
        self.successful()?;
        let chunks = self.record.output_chunks();
        let known = self.record.events.tokens.iter().zip(&self.record.events.carries);
        if chunks > 0 && known.clone().all(|(tokens, carries)| *tokens > 0 || !carries.is_output())
        {
            let single = known.filter(|(tokens, c)| **tokens == 1 && c.is_output()).count();
            return Ok((single as u32, chunks));
        }
        // Each token beyond one a chunk makes at most one chunk carry several;
        // a finish event without text may stand for the end token.
        let silent_end = self
            .record
            .events
            .carries
            .iter()
            .any(|carries| carries.any(Carries::FINISH) && !carries.is_output());
        let beyond =
            self.streamed_tokens()?.saturating_sub(chunks).saturating_sub(u32::from(silent_end));
        Ok((chunks.saturating_sub(beyond), chunks))
    }
}

fn per_later_token(ms: f64, tokens: u32, first: u32) -> Value {
    if tokens <= first { Err(Undefined::OneToken) } else { Ok(ms / f64::from(tokens - first)) }
}

fn is_success(record: &Record, rule: SuccessRule) -> bool {
    match rule {
        SuccessRule::FinishedWithOutput => record.outcome == Outcome::Ok,
        SuccessRule::ReadableBody { needs_choice } => {
            if record.source.is_some() {
                return record.outcome == Outcome::Ok;
            }
            let readable = matches!(
                record.outcome,
                Outcome::Ok
                    | Outcome::Empty
                    | Outcome::Failed(
                        FailureKind::InBand
                            | FailureKind::Aborted
                            | FailureKind::Truncated
                            | FailureKind::BadContentType
                    )
            );
            let carried = |what| {
                let mut streamed = record.events.carries.iter().filter(|c| !c.any(Carries::WHOLE));
                streamed.any(|carries| carries.any(what))
            };
            // Data that is not JSON ends such a tool's request with an exception.
            readable
                && record.answer.http_status == Some(200)
                && !carried(Carries::NOT_JSON)
                && (!needs_choice || carried(Carries::CHOICE.with(Carries::RESULT)))
        }
    }
}

/// A whole answer in one body is no event to a reader of event streams.
fn seen_by_peers(event: &Event) -> bool {
    !event.carries.any(Carries::WHOLE)
}

fn marks(record: &Record, definition: &Definition) -> Result<Marks, Undefined> {
    if let Some(source) = &record.source {
        // Python writes NaN and Infinity into JSON; neither is a time.
        let ms = |s: f64| Some(s * 1e3).filter(|ms| ms.is_finite());
        return Ok(Marks::Reported {
            ttft_ms: source.ttft_s.and_then(ms),
            gaps_ms: source.itl_s.iter().copied().filter_map(ms).collect(),
            latency_ms: source.latency_s.and_then(ms),
        });
    }
    let sent = record.stamps.sent_at.ok_or(Undefined::NotSent)?;
    let start = start_of(record, definition.start).ok_or(Undefined::NotSent)?;
    let lead = sent - start;
    let mut instants = Instants { lead, ..Instants::default() };
    for event in record.events.iter() {
        let at = lead + Span::from_us(i64::from(event.at_us));
        if is_arrival(&event, definition.arrival) {
            instants.arrivals += 1;
            instants.first.get_or_insert(at);
            instants.last = Some(at);
        }
        if event.carries.any(Carries::TEXT) {
            instants.first_text.get_or_insert(at);
        }
        if ends(&event, definition.end) {
            instants.end = Some(at);
        }
        if event.carries.any(Carries::RESULT) && definition.end != EndMark::TokenOrFinish {
            // Such tools stop the clock of a whole answer at its head.
            instants.end = record.stamps.headers_at.map(|head| head - start);
        }
    }
    Ok(Marks::Stamped(instants))
}

fn is_arrival(event: &Event, mark: ArrivalMark) -> bool {
    match mark {
        ArrivalMark::Token => event.carries.is_arrival(),
        ArrivalMark::Choice => seen_by_peers(event) && event.carries.any(Carries::CHOICE),
    }
}

fn ends(event: &Event, mark: EndMark) -> bool {
    match mark {
        EndMark::TokenOrFinish => {
            let ended = Carries::FINISH.with(Carries::WHOLE).with(Carries::RESULT);
            event.carries.is_arrival() || event.carries.any(ended)
        }
        EndMark::Choice => seen_by_peers(event) && event.carries.any(Carries::CHOICE),
        EndMark::AnyEvent => seen_by_peers(event) && !event.carries.any(Carries::DONE),
    }
}
