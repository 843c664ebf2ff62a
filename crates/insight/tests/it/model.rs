//! Runs of the engine model with what a user would have of them: records, and
//! what the server tells at `/metrics`.

use std::collections::BTreeMap;

use fake::telemetry::Scraper;
use measure::definition::{Endpoint, GOODPUT};
use measure::deployment::Deployment;
use measure::facts::{InstrumentFacts, LoadFacts, LoadKind, RunFacts, WorkloadFacts};
use measure::request::Settings as MetricSettings;
use measure::signal::{Gauge, Instance, Reading, Signal, Signals, Taken};
use measure::slo::{Quantity, Slo, Term};
use measure::summary::{Summary, summarise};
use measure::{At, PerSecond, Record, Span};
use sim::client::{self, Observer, Surroundings, Watcher};
use sim::{Audience, Begun, Choice, Cluster, Ended, Settings, StepReport};
use wire::exposition::Profile;
use workload::arrival::Pace;
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::routing::Routing;
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{Batch, Lengths, Load, Prefixes, Stop};

/// What the engine itself knows of its stages: means, ms.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Truth {
    pub(crate) front_end_ms: f64,
    pub(crate) queue_ms: f64,
    pub(crate) prefill_ms: f64,
}

/// What a run gave.
#[derive(Clone)]
pub(crate) struct Ran {
    pub(crate) truth: Truth,
    pub(crate) records: Vec<Record>,
    pub(crate) facts: RunFacts,
    pub(crate) signals: Signals,
    pub(crate) deployment: Deployment,
}

/// Keeps records, and beside a scraper the instants that the engine knows.
struct Keep<F> {
    records: Vec<Record>,
    scraper: Scraper<F>,
    queued_ns: BTreeMap<u64, u64>,
    front_end_ns: Vec<u64>,
    queue_ns: Vec<u64>,
    prefill_ns: Vec<u64>,
}

impl<F: FnMut(At, String)> Observer for Keep<F> {
    fn ended(&mut self, record: Record) {
        self.records.push(record);
    }

    fn watcher(&mut self) -> Option<&mut dyn Watcher> {
        Some(self)
    }
}

impl<F: FnMut(At, String)> Audience for Keep<F> {
    fn begun(&mut self, replica: usize, choice: Choice, begun: &Begun) {
        self.scraper.begun(replica, choice, begun);
    }

    fn tokens(&mut self, choice: Choice, at_ns: u64, tokens: u32) {
        self.scraper.tokens(choice, at_ns, tokens);
    }

    fn ended(&mut self, replica: usize, choice: Choice, ended: &Ended, at_ns: u64) {
        self.queue_ns.push(ended.scheduled_ns - self.queued_ns[&ended.id]);
        self.prefill_ns.push(ended.first_token_ns - ended.scheduled_ns);
        Audience::ended(&mut self.scraper, replica, choice, ended, at_ns);
    }

    fn step(&mut self, replica: usize, report: &StepReport) {
        Audience::step(&mut self.scraper, replica, report);
    }
}

impl<F: FnMut(At, String)> Watcher for Keep<F> {
    fn submitted(&mut self, id: u64, instants_ns: (u64, u64), limit: u32, choices: u8) {
        let (arrived_ns, queued_ns) = instants_ns;
        self.queued_ns.insert(id, queued_ns);
        self.front_end_ns.push(queued_ns - arrived_ns);
        self.scraper.submitted(id, instants_ns, limit, choices);
    }

    fn left(&mut self, id: u64, answers: u32) {
        self.scraper.left(id, answers);
    }

    fn next_look_ns(&self) -> u64 {
        self.scraper.next_look_ns()
    }

    fn look(&mut self, at_ns: u64, cluster: &Cluster) {
        self.scraper.look(at_ns, cluster);
    }
}

fn mean_ms(spans_ns: &[u64]) -> f64 {
    spans_ns.iter().sum::<u64>() as f64 / 1e6 / spans_ns.len().max(1) as f64
}

/// Settings of the model with some changed.
pub(crate) fn with(sets: &[&str]) -> Settings {
    let mut settings = Settings::default();
    sets.iter().for_each(|set| settings.set(set).unwrap());
    settings
}

/// So many requests of these lengths.
pub(crate) fn spec(load: Load, count: u32, (input, output): (u32, u32)) -> Spec {
    Spec {
        seed: 7,
        load,
        stop: Stop::Count(count),
        prompts: PromptSource::Synthetic { input: Lengths::uniform(input, 0.25).unwrap() },
        pictures: None,
        batch: Batch::One,
        prefixes: Prefixes::NONE,
        output: OutputLength::Drawn(Lengths::uniform(output, 0.25).unwrap()),
        output_forced: true,
        cache: CacheRegime::Cold,
        nonce_in_own_prompts: false,
        labels: Vec::new(),
        routing: Routing::default(),
        conversations: None,
    }
}

pub(crate) fn at_rate(rate: f64) -> Load {
    Load::Open { pace: Pace::flat(PerSecond::new(rate), 1.0) }
}

pub(crate) fn of_users(users: u32) -> Load {
    Load::Closed { users, think: Span::ZERO.into() }
}

/// A run of the model whose metrics are read each second.
pub(crate) fn play(spec: Spec, settings: &Settings, one_way: Span) -> Ran {
    let facts = facts(&spec);
    let cluster = Cluster::new(settings, spec.seed).unwrap();
    let schedule = Schedule::draw(spec).unwrap().0;
    let around = Surroundings {
        one_way,
        request_timeout: Span::from_ms(600_000),
        idle_timeout: Span::from_ms(300_000),
        is_chat: true,
        keep_events: true,
        default_output: 128,
        choices: 1,
    };
    let mut scrapes: Vec<(At, String)> = Vec::new();
    let take = |at, text| scrapes.push((at, text));
    let second = Span::from_ms(1_000);
    let scraper = Scraper::new(settings, Profile::Vllm, "model".to_owned(), second, take).unwrap();
    let mut kept = Keep {
        records: Vec::new(),
        scraper,
        queued_ns: BTreeMap::new(),
        front_end_ns: Vec::new(),
        queue_ns: Vec::new(),
        prefill_ns: Vec::new(),
    };
    client::run(&schedule, RunNonce::new(5), cluster, around, &mut kept);
    let mut records = std::mem::take(&mut kept.records);
    records.sort_by_key(|record| record.index);
    let truth = Truth {
        front_end_ms: mean_ms(&kept.front_end_ns),
        queue_ms: mean_ms(&kept.queue_ns),
        prefill_ms: mean_ms(&kept.prefill_ns),
    };
    drop(kept);
    let deployment = Deployment::default();
    Ran { truth, signals: signals(&scrapes), records, facts, deployment }
}

impl Ran {
    /// With the seats that the user gives.
    pub(crate) fn seats(mut self, seats: u32) -> Self {
        self.deployment.seats = Some(seats);
        self
    }

    /// With the machines that the user names.
    pub(crate) fn on(mut self, settings: &Settings) -> Self {
        self.deployment.model = Some(settings.model.clone());
        self.deployment.accelerator = Some(settings.accelerator);
        self.deployment.tensor_parallel = Some(settings.tensor_parallel_size);
        self
    }

    /// With an objective.
    pub(crate) fn wants(mut self, ttft_ms: f64, tpot_ms: f64) -> Self {
        let term = |quantity, limit_ms| Term { quantity, limit_ms };
        let terms = vec![term(Quantity::Ttft, ttft_ms), term(Quantity::Tpot, tpot_ms)];
        self.facts.slo = Some(Slo { terms, labelled: Vec::new() });
        self
    }

    /// What is found with the server's metrics.
    pub(crate) fn examined(&self) -> Summary {
        let mut summary = summarise(&self.records, &self.facts, &GOODPUT);
        let signals = Some(self.signals.clone());
        insight::examine(&mut summary, &self.records, signals, &self.deployment);
        summary
    }

    /// What is found without them.
    pub(crate) fn by_client(&self) -> Summary {
        let mut records = self.records.clone();
        records.iter_mut().for_each(|record| record.answer.server_timings.clear());
        let mut summary = summarise(&records, &self.facts, &GOODPUT);
        insight::examine(&mut summary, &records, None, &self.deployment);
        summary
    }
}

impl Ran {
    /// The stages where only the answers tell of the server.
    pub(crate) fn by_timings_alone(&self) -> measure::stage::Stages {
        let mut summary = summarise(&self.records, &self.facts, &GOODPUT);
        insight::examine(&mut summary, &self.records, None, &self.deployment);
        summary.inside.stages
    }
}

fn facts(spec: &Spec) -> RunFacts {
    let kind = LoadKind::ALL.iter().copied().find(|kind| kind.name() == spec.load.kind());
    RunFacts {
        run_id: "made".to_owned(),
        target: "http://127.0.0.1:8000".to_owned(),
        engine: Some("vLLM 0.27.1".to_owned()),
        model: Some("model".to_owned()),
        simulated: true,
        api: "openai-chat".to_owned(),
        endpoint: Endpoint::Chat,
        load: LoadFacts {
            kind: kind.unwrap(),
            request_rate: spec.load.rate().map(PerSecond::get),
            burstiness: spec.load.burstiness(),
            users: spec.load.users(),
            arrivals: String::new(),
            planned_duration: None,
            seed: spec.seed,
            schedule_hash: String::new(),
            replay: None,
        },
        workload: WorkloadFacts {
            cache_regime: spec.cache.name().to_owned(),
            prefix_tokens: Some(spec.prefixes.common_tokens()),
            output_forced: spec.output_forced,
            ..WorkloadFacts::default()
        },
        slo: None,
        settings: MetricSettings::default(),
        percentiles: Vec::new(),
        instrument: InstrumentFacts {
            stamp_source: "virtual".to_owned(),
            ..InstrumentFacts::default()
        },
        request_timeout: Some(Span::from_ms(600_000)),
        source_duration_s: None,
        as_reported: Vec::new(),
        isolated: Vec::new(),
        rows_kept: true,
        deployment: measure::deployment::Deployment::default(),
        interrupted: false,
    }
}

/// Where each signal stands in vLLM's text: name, and a label that it needs.
const GAUGES: &[(Signal, &str, &str)] = &[
    (Signal::Running, "vllm:num_requests_running", ""),
    (Signal::QueueDepth, "vllm:num_requests_waiting", ""),
    (Signal::QueueDeferred, "vllm:num_requests_waiting_by_reason", "reason=\"deferred\""),
    (Signal::KvUsage, "vllm:kv_cache_usage_perc", ""),
];
const COUNTERS: &[(Signal, &str, &str)] = &[
    (Signal::Preemptions, "vllm:num_preemptions_total", ""),
    (Signal::PrefixQueries, "vllm:prefix_cache_queries_total", ""),
    (Signal::PrefixHits, "vllm:prefix_cache_hits_total", ""),
    (Signal::PromptTokens, "vllm:prompt_tokens_total", ""),
    (Signal::PromptComputed, "vllm:prompt_tokens_by_source_total", "source=\"local_compute\""),
    (Signal::GeneratedTokens, "vllm:generation_tokens_total", ""),
    (Signal::Finished, "vllm:request_success_total", ""),
    (Signal::Drafts, "vllm:spec_decode_num_drafts_total", ""),
    (Signal::DraftTokens, "vllm:spec_decode_num_draft_tokens_total", ""),
    (Signal::AcceptedTokens, "vllm:spec_decode_num_accepted_tokens_total", ""),
];
const HISTOGRAMS: &[(Signal, &str)] = &[
    (Signal::QueueTime, "vllm:request_queue_time_seconds"),
    (Signal::PrefillTime, "vllm:request_prefill_time_seconds"),
    (Signal::DecodeTime, "vllm:request_decode_time_seconds"),
    (Signal::ServerTtft, "vllm:time_to_first_token_seconds"),
    (Signal::ServerItl, "vllm:inter_token_latency_seconds"),
    (Signal::ServerTpot, "vllm:request_time_per_output_token_seconds"),
    (Signal::StepTokens, "vllm:iteration_tokens_total"),
];

/// The values of a name in a text by engine, of lines with a label.
fn values(text: &str, name: &str, label: &str) -> BTreeMap<String, f64> {
    let mut by_engine = BTreeMap::new();
    for line in text.lines() {
        let Some((labels, value)) =
            line.strip_prefix(name).and_then(|rest| rest.strip_prefix('{')?.rsplit_once("} "))
        else {
            continue;
        };
        if labels.contains(label) {
            let engine = labels.split("engine=\"").nth(1).and_then(|rest| rest.split('"').next());
            let engine = engine.unwrap_or("").to_owned();
            *by_engine.entry(engine).or_insert(0.0) += value.parse::<f64>().unwrap();
        }
    }
    by_engine
}

fn total(text: &str, name: &str, label: &str) -> Option<f64> {
    let found = values(text, name, label);
    (!found.is_empty()).then(|| found.values().sum())
}

/// The signals of a run, read from the texts.
fn signals(scrapes: &[(At, String)]) -> Signals {
    let (first, last) = (scrapes.first().unwrap(), scrapes.last().unwrap());
    let mut signals =
        Signals { engine: Some("vllm"), from: first.0, until: last.0, ..Signals::default() };
    for (signal, name, label) in GAUGES {
        let across =
            if *signal == Signal::KvUsage { values(&first.1, name, label).len() } else { 1 };
        let series: Vec<(At, f64)> = scrapes
            .iter()
            .filter_map(|(at, text)| Some((*at, total(text, name, label)? / across as f64)))
            .collect();
        let all = || series.iter().map(|(_, value)| *value);
        let gauge = Gauge {
            mean: all().sum::<f64>() / series.len() as f64,
            min: all().fold(f64::INFINITY, f64::min),
            max: all().fold(0.0, f64::max),
            first: series[0].1,
            last: series[series.len() - 1].1,
            n: series.len() as u32,
        };
        signals.readings.insert(*signal, Reading::Gauge(gauge));
        signals.series.insert(*signal, series);
    }
    for (signal, name, label) in COUNTERS {
        let grown = total(&last.1, name, label).zip(total(&first.1, name, label));
        signals.readings.extend(grown.map(|(b, a)| (*signal, Reading::Counter(b - a))));
    }
    for (signal, name) in HISTOGRAMS {
        if let Some(taken) = taken(&first.1, &last.1, name, "") {
            signals.readings.insert(*signal, Reading::Histogram(taken));
        }
    }
    let info = last.1.lines().find(|line| line.starts_with("vllm:cache_config_info")).unwrap();
    let fact = |name: &str| {
        let rest = info.split(&format!("{name}=\"")).nth(1)?;
        rest.split('"').next().map(str::to_owned)
    };
    let tokens: f64 = fact("kv_cache_size_tokens").unwrap().parse().unwrap();
    let engines: Vec<String> =
        values(&last.1, "vllm:num_requests_running", "").into_keys().collect();
    let together = tokens * engines.len() as f64;
    signals.readings.insert(Signal::KvCapacity, Reading::Fact(together));
    for name in ["enable_prefix_caching", "block_size"] {
        signals.settings.extend(fact(name).map(|value| (name.to_owned(), value)));
    }
    if engines.len() > 1 {
        signals.instances = engines.iter().map(|engine| instance(scrapes, engine)).collect();
    }
    signals
}

fn taken(first: &str, last: &str, name: &str, engine: &str) -> Option<Taken> {
    let label = if engine.is_empty() { String::new() } else { format!("engine=\"{engine}\"") };
    let grown = |part: &str, label: &str| {
        let name = format!("{name}_{part}");
        Some(total(last, &name, label)? - total(first, &name, label)?)
    };
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    for line in last.lines().filter(|line| line.starts_with(&format!("{name}_bucket"))) {
        let bound = line.split("le=\"").nth(1)?.split('"').next()?;
        let own = format!("le=\"{bound}\"");
        let bound: f64 = bound.replace("+Inf", "inf").parse().ok()?;
        if line.contains(&label) && buckets.iter().all(|(known, _)| *known != bound) {
            buckets.push((bound, grown("bucket", &own)?));
        }
    }
    Some(Taken { count: grown("count", &label)?, sum: grown("sum", &label)?, buckets })
}

fn instance(scrapes: &[(At, String)], engine: &str) -> Instance {
    let mut one = Instance { name: engine.to_owned(), ..Instance::default() };
    let (first, last) = (&scrapes.first().unwrap().1, &scrapes.last().unwrap().1);
    let label = format!("engine=\"{engine}\"");
    for (signal, name, other) in GAUGES.iter().filter(|(_, _, other)| other.is_empty()) {
        let all: Vec<f64> =
            scrapes.iter().filter_map(|(_, text)| total(text, name, &label)).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let max = all.iter().copied().fold(0.0, f64::max);
        assert!(other.is_empty());
        one.readings.insert(*signal, Reading::Gauge(Gauge { mean, max, ..Gauge::default() }));
    }
    for (signal, name) in HISTOGRAMS {
        let found = taken(first, last, name, engine);
        one.readings.extend(found.map(|taken| (*signal, Reading::Histogram(taken))));
    }
    one
}
