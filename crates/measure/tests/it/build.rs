//! Builds records and facts by hand. Times are given in milliseconds unless a
//! name says otherwise, because that is how the cases and seeds state them.

use measure::definition::{Definition, Endpoint, GOODPUT};
use measure::facts::{InstrumentFacts, LoadFacts, LoadKind, RunFacts, WorkloadFacts};
use measure::request::{Settings, Timed};
use measure::slo::Slo;
use measure::statistics::Distribution;
use measure::summary::{Summary, summarise};
use measure::{
    At, Carries, Event, FailureKind, Outcome, Planned, ReasoningDisclosure, Record, SourceTimes,
    Span, Tokens, Warnings,
};

pub(crate) const ROLE: Carries = Carries::ROLE.with(Carries::CHOICE);
pub(crate) const TEXT: Carries = Carries::TEXT.with(Carries::CHOICE);
pub(crate) const REASONING: Carries = Carries::REASONING.with(Carries::CHOICE);
pub(crate) const TOOL_CALL: Carries = Carries::TOOL_CALL.with(Carries::CHOICE);
pub(crate) const FINISH: Carries = Carries::FINISH.with(Carries::CHOICE);

/// A record under construction: intended, released and sent at 0, answered
/// with 200, ended well at its last event.
#[derive(Clone)]
pub(crate) struct Build(Record);

pub(crate) fn request(index: u32) -> Build {
    let planned = Planned { session: index, ..Planned::default() };
    let mut record = Record::planned(index, At::ZERO, planned);
    record.outcome = Outcome::Ok;
    record.answer.http_status = Some(200);
    record.answer.choices = 1;
    Build(record).intended(0).sent(0)
}

/// A streamed answer of `osl` tokens, of which only the first and the last
/// chunk matter: what a table row of TTFT, E2EL and OSL says of a request.
pub(crate) fn streamed(index: u32, ttft_ms: i64, e2el_ms: i64, osl: u32) -> Build {
    let first = request(index).usage(osl);
    if osl == 1 {
        assert_eq!(ttft_ms, e2el_ms, "one token has no generation time");
        return first.event(ttft_ms, TEXT.with(Carries::FINISH));
    }
    first.event(ttft_ms, TEXT).event(e2el_ms, TEXT.with(Carries::FINISH))
}

/// A request that failed.
pub(crate) fn failed(index: u32, kind: FailureKind) -> Build {
    request(index).outcome(Outcome::Failed(kind)).ended(1)
}

impl Build {
    pub(crate) fn intended(self, ms: i64) -> Self {
        self.edit(|record| record.stamps.intended_at = at(ms))
    }

    /// Released and sent at once.
    pub(crate) fn sent(self, ms: i64) -> Self {
        self.released(ms).edit(|record| record.stamps.sent_at = Some(at(ms)))
    }

    pub(crate) fn released(self, ms: i64) -> Self {
        self.edit(|record| record.stamps.released_at = Some(at(ms)))
    }

    /// Intended, released and sent at once.
    pub(crate) fn at(self, ms: i64) -> Self {
        self.intended(ms).sent(ms)
    }

    /// Response head, in milliseconds since the send.
    pub(crate) fn headers(self, ms: i64) -> Self {
        self.edit(|record| {
            record.stamps.headers_at = record.stamps.sent_at.map(|sent| sent + Span::from_ms(ms));
        })
    }

    /// End, in milliseconds since the send, where it is not the last event.
    pub(crate) fn ended(self, ms: i64) -> Self {
        self.edit(|record| {
            record.stamps.ended_at = record.stamps.sent_at.map(|sent| sent + Span::from_ms(ms));
        })
    }

    /// An event, in milliseconds since the send.
    pub(crate) fn event(self, ms: i64, carries: Carries) -> Self {
        self.chunk(ms, carries, 0, 0)
    }

    /// An event with its token count and choice.
    pub(crate) fn chunk(self, ms: i64, carries: Carries, tokens: u16, choice: u8) -> Self {
        self.event_us(u32::try_from(ms * 1_000).expect("a time"), carries, tokens, choice)
    }

    pub(crate) fn event_us(self, at_us: u32, carries: Carries, tokens: u16, choice: u8) -> Self {
        self.edit(|record| record.events.push(Event { at_us, carries, tokens, choice }))
    }

    pub(crate) fn usage(self, tokens: u32) -> Self {
        self.edit(|record| record.answer.counts.usage = Some(Tokens::new(tokens)))
    }

    pub(crate) fn prompt(self, tokens: u32) -> Self {
        self.edit(|record| record.answer.counts.prompt = Some(Tokens::new(tokens)))
    }

    pub(crate) fn reasoning(self, tokens: Option<u32>, shown: ReasoningDisclosure) -> Self {
        self.edit(|record| {
            record.answer.counts.reasoning = tokens.map(Tokens::new);
            record.answer.reasoning_disclosure = Some(shown);
        })
    }

    pub(crate) fn first_event_tokens(self, tokens: u32) -> Self {
        self.edit(|record| record.answer.first_event_tokens = Some(Tokens::new(tokens)))
    }

    pub(crate) fn choices(self, choices: u8) -> Self {
        self.edit(|record| record.answer.choices = choices)
    }

    pub(crate) fn warn(self, warnings: Warnings) -> Self {
        self.edit(|record| record.answer.warnings.add(warnings))
    }

    pub(crate) fn outcome(self, outcome: Outcome) -> Self {
        self.edit(|record| record.outcome = outcome)
    }

    pub(crate) fn status(self, status: u16) -> Self {
        self.edit(|record| record.answer.http_status = Some(status))
    }

    pub(crate) fn label(self, name: &str, value: &str) -> Self {
        self.edit(|record| record.planned.labels.push((name.to_owned(), value.to_owned())))
    }

    /// A row of another tool's file: no stamps of ours.
    pub(crate) fn source(self, source: SourceTimes) -> Self {
        self.edit(|record| {
            record.stamps = measure::Stamps::default();
            record.source = Some(source);
        })
    }

    /// Never left the generator.
    pub(crate) fn unreleased(self) -> Self {
        self.edit(|record| {
            let intended_at = record.stamps.intended_at;
            record.stamps = measure::Stamps { intended_at, ..measure::Stamps::default() };
            record.answer.http_status = None;
        })
    }

    pub(crate) fn edit(mut self, change: impl FnOnce(&mut Record)) -> Self {
        change(&mut self.0);
        self
    }

    pub(crate) fn record(self) -> Record {
        let mut record = self.0;
        if record.stamps.ended_at.is_none()
            && let Some(last) = record.events.at_us.last()
        {
            record.stamps.ended_at = record.event_at(*last);
        }
        record
    }
}

pub(crate) fn at(ms: i64) -> At {
    At::ZERO + Span::from_ms(ms)
}

pub(crate) fn records(builds: impl IntoIterator<Item = Build>) -> Vec<Record> {
    builds.into_iter().map(Build::record).collect()
}

/// Facts of a run about which nothing else is known.
pub(crate) fn facts(kind: LoadKind) -> RunFacts {
    RunFacts {
        run_id: "test".to_owned(),
        target: "http://127.0.0.1:1/v1/chat/completions".to_owned(),
        engine: None,
        model: None,
        simulated: false,
        api: "openai-chat".to_owned(),
        endpoint: Endpoint::Chat,
        load: LoadFacts {
            kind,
            request_rate: None,
            burstiness: None,
            users: None,
            arrivals: String::new(),
            planned_duration: None,
            seed: 0,
            schedule_hash: String::new(),
            replay: None,
        },
        workload: WorkloadFacts::default(),
        slo: None,
        settings: Settings::default(),
        percentiles: Vec::new(),
        instrument: InstrumentFacts::default(),
        request_timeout: None,
        source_duration_s: None,
        as_reported: Vec::new(),
        isolated: Vec::new(),
        deployment: measure::deployment::Deployment::default(),
        rows_kept: true,
        interrupted: false,
    }
}

/// An open loop of a planned length in seconds, judged by an SLO.
pub(crate) fn open_for(seconds: i64, goodput: &str) -> RunFacts {
    let mut facts = facts(LoadKind::Open);
    facts.load.planned_duration = Some(Span::from_ms(seconds * 1_000));
    facts.slo = Some(Slo::parse_goodput([goodput]).expect("an SLO"));
    facts
}

pub(crate) fn summary(records: &[Record], facts: &RunFacts) -> Summary {
    let summary = summarise(records, facts, &GOODPUT);
    // Whatever a test makes a run say, it has to say in both languages.
    let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    let reasons = summary.validity.reasons.iter().map(|reason| &reason.text);
    let caveats = summary.caveats.iter().map(|caveat| &caveat.text);
    let absent = summary.reasons();
    let absent = absent.iter().map(|(_, reason)| reason);
    for said in reasons.chain(caveats).chain(absent) {
        assert!(!said.en.contains(is_han) && said.zh.contains(is_han), "{said:?}");
    }
    summary
}

pub(crate) fn timed<'a>(record: &'a Record, definition: &Definition) -> Timed<'a> {
    Timed::new(record, definition, Settings::default())
}

/// The distribution of a metric among some.
pub(crate) fn metric<'a>(among: &'a [(&'static str, Distribution)], key: &str) -> &'a Distribution {
    let found = among.iter().find(|(known, _)| *known == key);
    &found.unwrap_or_else(|| panic!("no metric {key}")).1
}

/// Equal but for the rounding of sums.
#[track_caller]
pub(crate) fn close(got: impl Into<Option<f64>>, right: f64) {
    let got = got.into().unwrap_or_else(|| panic!("no value where {right} is right"));
    assert!((got - right).abs() <= 1e-9 * right.abs().max(1.0), "{got} is not {right}");
}
