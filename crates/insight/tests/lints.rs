//! Each lint speaks where a figure would be misread, and is silent where not.

use std::collections::BTreeMap;

use insight::lint::{self, LINTS};
use measure::definition::{Definition, Endpoint, GOODPUT};
use measure::deployment::Deployment;
use measure::efficiency::{Efficiency, Figure};
use measure::facts::{InstrumentFacts, LoadFacts, LoadKind, RunFacts, WorkloadFacts};
use measure::hardware::{self, Precision};
use measure::metric::METRICS;
use measure::request::Settings;
use measure::signal::{Gauge, Instance, Reading, Role, Signal, Signals, Taken};
use measure::slo::Slo;
use measure::summary::{Summary, summarise};
use measure::{At, Carries, Event, FailureKind, Outcome, Planned, Record, Span, Tokens};

/// What a request is like; times in ms.
#[derive(Clone)]
struct Answer {
    at_ms: i64,
    ttft_ms: i64,
    gaps_ms: Vec<i64>,
    tokens_each: u16,
    prompt: u32,
    cached: u32,
    url: Option<&'static str>,
    ok: bool,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            at_ms: 0,
            ttft_ms: 100,
            gaps_ms: vec![20; 20],
            tokens_each: 1,
            prompt: 200,
            cached: 0,
            url: None,
            ok: true,
        }
    }
}

fn record(index: u32, answer: &Answer) -> Record {
    let mut planned = Planned { session: index, ..Planned::default() };
    planned.labels.extend(answer.url.map(|url| ("url".to_owned(), url.to_owned())));
    let mut record = Record::planned(index, At::ZERO + Span::from_ms(answer.at_ms), planned);
    let sent = record.stamps.intended_at;
    record.stamps.released_at = Some(sent);
    record.stamps.sent_at = Some(sent);
    record.answer.http_status = Some(if answer.ok { 200 } else { 500 });
    if !answer.ok {
        record.outcome = Outcome::Failed(FailureKind::HttpStatus);
        record.stamps.ended_at = Some(sent + Span::from_ms(1));
        return record;
    }
    record.outcome = Outcome::Ok;
    record.answer.choices = 1;
    let (mut at_ms, last) = (answer.ttft_ms, answer.gaps_ms.len());
    for place in 0..=last {
        let carries = if place == last { Carries::FINISH } else { Carries::NOTHING };
        record.events.push(Event {
            at_us: u32::try_from(at_ms * 1_000).expect("a time"),
            carries: carries.with(Carries::TEXT).with(Carries::CHOICE),
            tokens: answer.tokens_each,
            choice: 0,
        });
        at_ms += answer.gaps_ms.get(place).unwrap_or(&0);
    }
    let tokens = (last as u32 + 1) * u32::from(answer.tokens_each);
    record.answer.counts.usage = Some(Tokens::new(tokens));
    record.answer.counts.prompt = Some(Tokens::new(answer.prompt));
    record.answer.counts.cached = Some(Tokens::new(answer.cached));
    record.stamps.ended_at = Some(sent + Span::from_ms(at_ms));
    record
}

fn facts(kind: LoadKind) -> RunFacts {
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
        rows_kept: true,
        deployment: measure::deployment::Deployment::default(),
        interrupted: false,
    }
}

/// A run in the making.
struct Run {
    answers: Vec<Answer>,
    facts: RunFacts,
    definition: Definition,
    signals: Option<Signals>,
    deployment: Deployment,
    efficiency: Vec<(&'static str, f64)>,
}

impl Run {
    /// 200 requests in an open loop, all alike.
    fn healthy() -> Self {
        let answers = (0..200).map(|k| Answer { at_ms: k * 100, ..Answer::default() }).collect();
        Self {
            answers,
            facts: facts(LoadKind::Open),
            definition: GOODPUT,
            signals: None,
            deployment: Deployment::default(),
            efficiency: Vec::new(),
        }
    }

    fn each(mut self, change: impl Fn(usize, &mut Answer)) -> Self {
        self.answers.iter_mut().enumerate().for_each(|(k, answer)| change(k, answer));
        self
    }

    fn sees(mut self, readings: &[(Signal, Reading)]) -> Self {
        let signals = self.signals.get_or_insert_with(Signals::default);
        signals.until = At::ZERO + Span::from_ms(20_000);
        signals.readings.extend(readings.iter().cloned());
        self
    }

    fn edit(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn judged(self, goodput: &str) -> Self {
        self.edit(|run| run.facts.slo = Some(Slo::parse_goodput([goodput]).expect("an SLO")))
    }

    fn users(self, users: u32) -> Self {
        self.edit(|run| {
            run.facts.load.kind = LoadKind::Closed;
            run.facts.load.users = Some(users);
        })
    }

    fn worth(self, figures: &[(&'static str, f64)]) -> Self {
        self.edit(|run| run.efficiency = figures.to_vec())
    }

    fn records(&self) -> Vec<Record> {
        (0u32..).zip(&self.answers).map(|(index, answer)| record(index, answer)).collect()
    }

    fn summary(&self) -> Summary {
        let mut summary = summarise(&self.records(), &self.facts, &self.definition);
        let figure = |(key, value): &(&'static str, f64)| Figure {
            key,
            value: Ok(*value),
            unit: "",
            inputs: Vec::new(),
        };
        let figures = self.efficiency.iter().map(figure).collect();
        summary.inside.signals.clone_from(&self.signals);
        summary.inside.efficiency = Efficiency { figures, panel: Vec::new() };
        summary
    }

    fn lints(&self) -> Vec<&'static str> {
        let (summary, records) = (self.summary(), self.records());
        let view = insight::View::new(&summary, &records, &self.deployment);
        let found = lint::lints(&view);
        for lint in &found {
            let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
            assert!(!lint.says.en.contains(is_han), "{:?}", lint.says);
            assert!(lint.says.zh.contains(is_han), "{:?}", lint.says);
        }
        found.iter().map(|lint| lint.id).collect()
    }
}

fn gauge(mean: f64, max: f64) -> Reading {
    Reading::Gauge(Gauge { mean, min: 0.0, max, first: mean, last: mean, n: 20 })
}

fn histogram(mean: f64, buckets: &[(f64, f64)]) -> Reading {
    Reading::Histogram(Taken { count: 200.0, sum: 200.0 * mean, buckets: buckets.to_vec() })
}

fn with(change: fn(usize, &mut Answer)) -> Run {
    Run::healthy().each(change)
}

/// The runs that make lints about latencies and rates speak, by id.
fn seen_by_the_client() -> Vec<(&'static str, Run)> {
    vec![
        ("mean_only", with(|k, answer| answer.ttft_ms += if k % 50 == 0 { 4_900 } else { 0 })),
        ("tpot_only", with(|_, answer| answer.gaps_ms[10] = 400)),
        (
            "rate_without_lengths",
            with(|k, answer| answer.prompt = if k % 2 == 0 { 50 } else { 300 }),
        ),
        (
            "other_definitions",
            Run::healthy().edit(|run| {
                run.definition = Definition::preset("vllm", Endpoint::Chat).expect("a preset");
            }),
        ),
        (
            "two_means",
            with(|k, answer| {
                if k % 2 == 0 {
                    answer.gaps_ms = vec![60; 5];
                }
            }),
        ),
        ("total_tokens", with(|_, answer| answer.cached = 150)),
        ("successes_only", with(|k, answer| answer.ok = k % 10 != 0).judged("ttft:300")),
        (
            "cache_state",
            with(|_, answer| answer.cached = 20)
                .edit(|run| run.facts.workload.cache_regime = "as-is".to_owned()),
        ),
        ("few_samples", Run::healthy().edit(|run| run.answers.truncate(50))),
        ("users_are_no_rate", Run::healthy().users(4).judged("ttft:300")),
        ("warm_up_included", with(|k, answer| answer.ttft_ms = if k < 10 { 900 } else { 100 })),
        (
            "averaged_percentiles",
            with(|k, answer| {
                answer.url = Some(if k % 2 == 0 { "a" } else { "b" });
                answer.ttft_ms = if k % 2 == 0 { 300 } else { 500 };
            }),
        ),
        ("saturated_point", with(|k, answer| answer.ttft_ms = 100 + 50 * k as i64)),
        ("chunk_is_token", with(|_, answer| answer.tokens_each = 3)),
        ("output_of_input_work", with(|_, answer| answer.prompt = 8_000)),
    ]
}

/// The same of lints about what is inside.
fn seen_inside() -> Vec<(&'static str, Run)> {
    let accelerator = hardware::accelerator("a100-80gb-sxm").expect("in the catalogue");
    let device = |name: &str| Instance {
        name: name.to_owned(),
        role: Role::Device,
        readings: BTreeMap::from([(Signal::Power, gauge(400.0, 500.0))]),
    };
    vec![
        ("ttft_is_prefill", Run::healthy().sees(&[(Signal::PrefillTime, histogram(0.02, &[]))])),
        (
            "busy_is_useful",
            Run::healthy()
                .sees(&[(Signal::GpuBusy, gauge(0.95, 1.0))])
                .worth(&[("mfu", 0.05), ("mbu", 0.30)]),
        ),
        (
            "full_is_good",
            Run::healthy().sees(&[
                (Signal::KvUsage, gauge(0.97, 1.0)),
                (Signal::QueueDepth, gauge(3.0, 8.0)),
                (Signal::Preemptions, Reading::Counter(12.0)),
            ]),
        ),
        (
            "other_peak",
            Run::healthy().worth(&[("mfu", 0.2)]).edit(|run| {
                run.deployment.accelerator = Some(*accelerator);
                run.deployment.weights = Some(Precision::parse("fp8").expect("a precision"));
            }),
        ),
        (
            "cost_without_basis",
            Run::healthy()
                .worth(&[("cost_per_million_tokens", 0.7)])
                .edit(|run| run.deployment.price_per_hour = Some(2.5)),
        ),
        (
            "coarse_buckets",
            Run::healthy()
                .sees(&[(Signal::QueueTime, histogram(0.05, &[(0.3, 199.0), (0.5, 200.0)]))]),
        ),
        (
            "mixed_scopes",
            Run::healthy().sees(&[]).edit(|run| {
                run.deployment.topology = vec![(String::new(), 8)];
                let signals = run.signals.as_mut().expect("signals");
                signals.instances = vec![device("0"), device("1")];
            }),
        ),
        (
            "random_text",
            Run::healthy()
                .sees(&[
                    (Signal::DraftTokens, Reading::Counter(1_000.0)),
                    (Signal::AcceptedTokens, Reading::Counter(300.0)),
                ])
                .edit(|run| run.facts.workload.random_text = true),
        ),
    ]
}

#[test]
fn a_healthy_run_is_not_lectured() {
    assert_eq!(Run::healthy().lints(), Vec::<&str>::new());
}

#[test]
fn each_lint_speaks_in_its_scenario() {
    let scenarios: Vec<_> = seen_by_the_client().into_iter().chain(seen_inside()).collect();
    for (id, run) in &scenarios {
        let found = run.lints();
        assert!(found.contains(id), "{id}: {found:?}");
        assert!(found.len() <= 3, "{id} brings others with it: {found:?}");
    }
    let of_runs = LINTS.iter().filter(|entry| matches!(entry.judge, lint::Judge::Run(_)));
    for entry in of_runs {
        assert!(scenarios.iter().any(|(id, _)| *id == entry.id), "{} has no scenario", entry.id);
    }
}

#[test]
fn the_six_misreadings_of_the_first_seed_have_a_lint_each() {
    // Mean only, TTFT for prefill, TPOT only, utilisation, requests a second,
    // full memory.
    for (code, id) in [
        ("L1", "mean_only"),
        ("L2", "ttft_is_prefill"),
        ("L3", "tpot_only"),
        ("L4", "busy_is_useful"),
        ("L5", "rate_without_lengths"),
        ("L6", "full_is_good"),
    ] {
        assert_eq!(lint::find(code).map(|entry| entry.id), Some(id));
    }
}

#[test]
fn lints_are_numbered_once_and_concern_metrics_that_exist() {
    let code = |entry: &lint::Entry| entry.code.trim_start_matches('L').parse().expect("a number");
    let mut codes: Vec<u32> = LINTS.iter().map(code).collect();
    codes.sort_unstable();
    assert_eq!(codes, (1..=26).collect::<Vec<_>>());
    for entry in LINTS {
        assert!(METRICS.iter().any(|metric| metric.key == entry.concerns), "{}", entry.concerns);
        assert_eq!(lint::find(entry.id).map(|found| found.code), Some(entry.code));
    }
}

#[test]
fn more_users_raise_throughput_while_goodput_falls() {
    let closed = |users: u32, ttft_ms: i64, every_ms: i64| {
        let run = Run::healthy().each(|k, answer| {
            answer.at_ms = k as i64 * every_ms;
            answer.ttft_ms = ttft_ms;
        });
        run.users(users).judged("ttft:300").summary()
    };
    let before = closed(4, 200, 100);
    let found = lint::between(&before, &closed(16, 900, 50));
    let ids: Vec<&str> = found.iter().map(|lint| lint.id).collect();
    assert_eq!(ids, ["faster_and_worse", "other_work"]);
    assert!(found[1].says.en.contains("users, or the most in flight (4 | 16)"), "{:?}", found[1]);
    assert!(found[0].says.en.contains("users are more"), "{:?}", found[0]);
    // The same but for a hair, which repeats may differ by.
    let found = lint::between(&before, &closed(4, 205, 100));
    assert_eq!(found.iter().map(|lint| lint.id).collect::<Vec<_>>(), ["single_run"]);
    assert!(lint::between(&before, &before).is_empty());
    let third = closed(16, 900, 50);
    let beside: Vec<(usize, &str)> =
        lint::beside(&[&before, &before, &third]).iter().map(|(at, one)| (*at, one.id)).collect();
    assert_eq!(beside, [(2, "faster_and_worse"), (2, "other_work")]);
}
