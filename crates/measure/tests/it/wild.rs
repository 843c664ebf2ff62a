//! Records that no run of ours would write, but a damaged or foreign file
//! might hold. Nothing may panic, and no figure may be NaN or infinite.

use measure::definition::{Definition, Endpoint, GOODPUT, SERVICE};
use measure::facts::{LoadKind, RunFacts};
use measure::slo::Slo;
use measure::summary::summarise;
use measure::{
    At, Carries, Event, Events, FailureKind, NotSentKind, Outcome, ReasoningDisclosure, Record,
    SourceTimes, Span, Stamps, Tokens, Warnings,
};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::build::{facts, request};

/// Within some 140 years of the clock's anchor: a sum of a few such spans
/// still fits the type.
const FAR_US: i64 = 1 << 52;

fn instant() -> impl Strategy<Value = At> {
    prop_oneof![-FAR_US..=FAR_US, 0i64..100_000_000, select(vec![0, -1, FAR_US, -FAR_US]),]
        .prop_map(At::from_us)
}

fn stamps() -> impl Strategy<Value = Stamps> {
    let maybe = || option::of(instant());
    ((instant(), maybe(), maybe(), maybe(), maybe()), (maybe(), maybe(), maybe(), maybe(), maybe()))
        .prop_map(|(first, second)| {
            let (intended_at, released_at, resolved_at, connected_at, secured_at) = first;
            let (sent_at, written_at, first_byte_at, headers_at, ended_at) = second;
            Stamps {
                intended_at,
                released_at,
                resolved_at,
                connected_at,
                secured_at,
                sent_at,
                written_at,
                first_byte_at,
                headers_at,
                ended_at,
            }
        })
}

fn events() -> impl Strategy<Value = Events> {
    let at_us = prop_oneof![any::<u32>(), 0u32..10_000, Just(u32::MAX)];
    let tokens = prop_oneof![Just(0u16), 0u16..4, any::<u16>()];
    let event =
        (at_us, 0u16..(1 << 14), tokens, 0u8..4).prop_map(|(at_us, bits, tokens, choice)| Event {
            at_us,
            carries: Carries::from_bits(bits),
            tokens,
            choice,
        });
    prop::collection::vec(event, 0..12).prop_map(|list| {
        let mut events = Events::default();
        list.into_iter().for_each(|event| events.push(event));
        events
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => Just(Outcome::Ok),
        1 => Just(Outcome::Empty),
        1 => Just(Outcome::Cancelled),
        2 => select(FailureKind::ALL).prop_map(Outcome::Failed),
        1 => select(NotSentKind::ALL).prop_map(Outcome::NotSent),
    ]
}

fn source() -> impl Strategy<Value = SourceTimes> {
    let seconds = || {
        prop_oneof![
            0.0f64..100.0,
            -1e12f64..1e12,
            select(vec![0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX]),
        ]
    };
    (
        option::of(seconds()),
        prop::collection::vec(seconds(), 0..5),
        option::of(seconds()),
        option::of(seconds()),
    )
        .prop_map(|(ttft_s, itl_s, start_s, latency_s)| SourceTimes {
            ttft_s,
            itl_s,
            start_s,
            latency_s,
        })
}

fn record() -> impl Strategy<Value = Record> {
    let count = || option::of(prop_oneof![0u32..20, any::<u32>()].prop_map(Tokens::new));
    (
        (stamps(), events(), outcome(), option::weighted(0.2, source())),
        (count(), count(), count(), count(), count(), count()),
        (option::of(select(ReasoningDisclosure::ALL)), 0u8..4, any::<u32>(), any::<bool>()),
        (option::of(select(vec![0u16, 200, 429, 500])), option::of("[a-c]{1}"), count()),
    )
        .prop_map(
            |((stamps, events, outcome, source), counts, (shown, choices, bits, forced), more)| {
                let mut record = request(0).record();
                record.stamps = stamps;
                record.events = events;
                record.outcome = outcome;
                record.source = source;
                let answer = &mut record.answer;
                let (prompt, usage, server, tokenizer, reasoning, cached) = counts;
                answer.counts.prompt = prompt;
                answer.counts.usage = usage;
                answer.counts.server = server;
                answer.counts.tokenizer = tokenizer;
                answer.counts.reasoning = reasoning;
                answer.counts.cached = cached;
                answer.reasoning_disclosure = shown;
                answer.choices = choices;
                answer.warnings = Warnings::from_bits(bits);
                (answer.http_status, answer.message, answer.first_event_tokens) = more;
                record.planned.output_forced = forced;
                record.planned.max_output_tokens = usage;
                record
            },
        )
}

pub(crate) fn run() -> impl Strategy<Value = Vec<Record>> {
    prop::collection::vec(record(), 0..10).prop_map(|mut records| {
        for (index, record) in records.iter_mut().enumerate() {
            record.index = index as u32;
        }
        records
    })
}

fn run_facts() -> impl Strategy<Value = RunFacts> {
    let span = || option::of((-FAR_US..=FAR_US).prop_map(Span::from_us));
    (
        (select(LoadKind::ALL), option::of(0u32..20), option::of(select(vec![1.0, 0.5]))),
        (span(), span(), any::<bool>()),
        option::of(select(vec!["ttft:300", "ttft:300 tpot:60 e2el:0", "tpot:1e9"])),
        prop::collection::vec(-10.0f64..200.0, 0..3),
        option::of(0.0f64..1e6),
    )
        .prop_map(
            |((kind, users, burstiness), (planned, timeout, cut), slo, percentiles, s)| {
                let mut facts = facts(kind);
                facts.load.users = users;
                facts.load.burstiness = burstiness;
                facts.load.planned_duration = planned;
                facts.request_timeout = timeout;
                facts.interrupted = cut;
                facts.slo = slo.map(|slo| Slo::parse_goodput([slo]).expect("an SLO"));
                facts.percentiles = percentiles;
                facts.source_duration_s = s;
                facts
            },
        )
}

fn definitions() -> [Definition; 4] {
    let preset = |endpoint| Definition::preset("vllm", endpoint).expect("a preset");
    [GOODPUT, SERVICE, preset(Endpoint::Chat), preset(Endpoint::Completions)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_records_give_a_summary_of_finite_figures(records in run(), facts in run_facts()) {
        for definition in definitions() {
            let summary = summarise(&records, &facts, &definition);
            prop_assert_eq!(summary.outcomes.total(), records.len() as u64);
            // All of a summary is in its debug text, so that a figure added
            // later is looked at too.
            let text = format!("{summary:?}");
            let mut words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
            let odd = words.find(|word| *word == "NaN" || *word == "inf");
            prop_assert!(odd.is_none(), "{} in {}", odd.unwrap_or_default(), text);
        }
    }
}
