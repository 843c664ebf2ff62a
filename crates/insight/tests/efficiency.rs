//! Figures of efficiency, held against what the engine model knows exactly of its
//! steps, and against worked examples.

use std::collections::BTreeMap;

use insight::{View, efficiency};
use measure::definition::{Endpoint, GOODPUT};
use measure::deployment::Deployment;
use measure::efficiency::Efficiency;
use measure::facts::{InstrumentFacts, LoadFacts, LoadKind, RunFacts, WorkloadFacts};
use measure::metric::{Branch, How, METRICS};
use measure::request::Settings as MetricSettings;
use measure::signal::{Gauge, Instance, Reading, Role, Signal, Signals};
use measure::slo::Slo;
use measure::summary::{Summary, summarise};
use measure::{At, Record, Span};
use sim::client::{self, Observer, Surroundings};
use sim::{Cluster, Settings, StepReport, Totals};
use workload::load::{Load, Stop};
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::routing::Routing;
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{Batch, Lengths, Prefixes};

/// What a client hears, and what the engine's steps that decode moved.
#[derive(Default)]
struct Keep {
    records: Vec<Record>,
    /// When each replica's last step ended.
    ended_ns: BTreeMap<usize, u64>,
    decode_bytes: f64,
    decode_ns: u64,
}

impl Observer for Keep {
    fn ended(&mut self, record: Record) {
        self.records.push(record);
    }

    fn step(&mut self, replica: usize, report: &StepReport) {
        let before = self.ended_ns.insert(replica, report.ends_ns).unwrap_or(report.starts_ns);
        if report.work.decode_pairs > 0 {
            self.decode_bytes += report.cost.bytes;
            self.decode_ns += report.ends_ns - before;
        }
    }
}

/// A run on the engine model, as a client saw it, and what the model knows.
struct Run {
    records: Vec<Record>,
    facts: RunFacts,
    settings: Settings,
    totals: Totals,
    decode_bytes: f64,
    decode_s: f64,
}

/// How many ask at once, for how many requests of which lengths.
#[derive(Clone, Copy)]
struct Users {
    users: u32,
    requests: u32,
    input: u32,
    output: u32,
    spread: f64,
}

const MANY: Users = Users { users: 64, requests: 640, input: 512, output: 128, spread: 0.5 };

fn simulated(sets: &[&str], users: Users) -> Run {
    let mut settings = Settings::default();
    sets.iter().for_each(|set| settings.set(set).unwrap());
    let spec = Spec {
        seed: 7,
        load: Load::Closed { users: users.users, think: Span::ZERO.into() },
        stop: Stop::Count(users.requests),
        prompts: PromptSource::Synthetic { input: Lengths::fixed(users.input).unwrap() },
        pictures: None,
        batch: Batch::One,
        prefixes: Prefixes::NONE,
        // Answers of one length would end together, and all prompts come at once.
        output: OutputLength::Drawn(Lengths::uniform(users.output, users.spread).unwrap()),
        output_forced: true,
        cache: CacheRegime::Cold,
        nonce_in_own_prompts: false,
        labels: Vec::new(),
        routing: Routing::default(),
        conversations: None,
    };
    let around = Surroundings {
        one_way: Span::ZERO,
        request_timeout: Span::from_ms(4_000_000),
        idle_timeout: Span::from_ms(4_000_000),
        is_chat: true,
        keep_events: true,
        default_output: client::DEFAULT_OUTPUT,
        choices: 1,
    };
    let cluster = Cluster::new(&settings, spec.seed).unwrap();
    let schedule = Schedule::draw(spec).unwrap().0;
    let mut kept = Keep::default();
    let after = client::run(&schedule, RunNonce::new(5), cluster, around, &mut kept);
    let totals = after.totals();
    let decode_s = kept.decode_ns as f64 / 1e9;
    let Keep { records, decode_bytes, .. } = kept;
    Run { records, facts: facts(users.users), settings, totals, decode_bytes, decode_s }
}

fn facts(users: u32) -> RunFacts {
    RunFacts {
        run_id: "run".to_owned(),
        target: "engine model".to_owned(),
        engine: None,
        model: None,
        simulated: true,
        api: "openai-chat".to_owned(),
        endpoint: Endpoint::Chat,
        load: LoadFacts {
            kind: LoadKind::Closed,
            request_rate: None,
            burstiness: None,
            users: Some(users),
            arrivals: "closed loop".to_owned(),
            planned_duration: None,
            seed: 7,
            schedule_hash: String::new(),
            replay: None,
        },
        workload: WorkloadFacts::default(),
        slo: None,
        settings: MetricSettings::default(),
        percentiles: Vec::new(),
        instrument: InstrumentFacts::default(),
        request_timeout: None,
        source_duration_s: None,
        as_reported: Vec::new(),
        isolated: Vec::new(),
        rows_kept: true,
        deployment: Deployment::default(),
        interrupted: false,
    }
}

impl Run {
    fn summary(&self, signals: Option<Signals>) -> Summary {
        let mut summary = summarise(&self.records, &self.facts, &GOODPUT);
        summary.inside.signals = signals;
        summary
    }

    fn figures(&self, signals: Option<Signals>, deployment: &Deployment) -> Efficiency {
        let summary = self.summary(signals);
        efficiency::figures(&View::new(&summary, &self.records, deployment))
    }

    /// MFU of the whole run and MBU of the steps that decode, as the model knows
    /// them.
    fn known(&self) -> (f64, f64) {
        let whole_s = self.summary(None).load.duration_s.unwrap();
        let of_decode = Totals { bytes: self.decode_bytes, ..Totals::default() };
        let decode_s = self.decode_s / f64::from(self.settings.replicas);
        (
            self.settings.shares_of_peaks(&self.totals, whole_s).0,
            self.settings.shares_of_peaks(&of_decode, decode_s).1,
        )
    }
}

#[track_caller]
fn agrees(what: &str, ours: f64, known: f64, part: f64) {
    let off = ours / known - 1.0;
    assert!(off.abs() <= part, "{what}: {ours:.4}, the model knows {known:.4} ({off:+.3})");
}

#[track_caller]
fn value(figures: &Efficiency, key: &str) -> f64 {
    let figure = figures.figure(key).unwrap_or_else(|| panic!("no {key}"));
    *figure.value.as_ref().unwrap_or_else(|why| panic!("{key}: {}", why.en))
}

#[track_caller]
fn reason(figures: &Efficiency, key: &str) -> String {
    figures.figure(key).unwrap().value.as_ref().unwrap_err().en.clone()
}

/// Of every kind of model and of every way to share it: from records alone, MFU
/// is that of the model's own counts within 0.2 %, MBU within 3 %.
#[test]
fn shares_of_peaks_are_those_that_the_engine_model_knows() {
    let few = Users { users: 4, requests: 40, input: 128, output: 200, spread: 0.5 };
    let long = Users { users: 32, requests: 160, input: 4096, output: 400, spread: 0.5 };
    let cases: &[(&[&str], Users)] = &[
        (&[], MANY),
        (&[], few),
        (&[], long),
        (&["quantization=fp8", "kv_cache_dtype=fp8"], MANY),
        (&["model=llama-3.1-70b", "tensor_parallel_size=8"], MANY),
        (&["model=deepseek-v2-lite", "max_model_len=8192"], MANY),
        (&["model=mixtral-8x7b", "tensor_parallel_size=2"], MANY),
        (&["model=gpt-oss-20b", "accelerator=h200"], MANY),
        (&["replicas=2"], MANY),
        (&["pipeline_parallel_size=2"], MANY),
        (&["peak_tflops=500", "peak_gb_s=2000"], MANY),
    ];
    for (sets, users) in cases {
        let run = simulated(sets, *users);
        let figures = run.figures(None, &run.settings.deployment());
        let (mfu, mbu) = run.known();
        agrees(&format!("MFU {sets:?}"), value(&figures, "mfu"), mfu, 0.002);
        agrees(&format!("MBU {sets:?}"), value(&figures, "mbu"), mbu, 0.03);
        assert!(value(&figures, "step_over_bound") > 1.0, "{sets:?}");
        assert!(efficiency::lints(&figures).is_empty(), "{sets:?}");
    }
}

/// Where nothing but memory takes time, at half its rate, a step takes twice its
/// bound.
#[test]
fn a_step_over_its_bound_is_what_the_settings_make_it() {
    let sets = ["step_overhead_us=0", "host_overhead_us=0", "request_overhead_us=0"];
    let all = [&sets[..], &["memory_efficiency=0.5"]].concat();
    let run =
        simulated(&all, Users { users: 64, requests: 64, input: 64, output: 1024, spread: 0.0 });
    let figures = run.figures(None, &run.settings.deployment());
    let over = value(&figures, "step_over_bound");
    assert!((1.95..2.05).contains(&over), "{over}");
    agrees("MBU", value(&figures, "mbu"), 1.0 / over, 1e-9);
    let inputs = &figures.figure("step_over_bound").unwrap().inputs;
    let bound = inputs.iter().find(|said| said.en.starts_with("at least")).unwrap();
    assert!(bound.en.contains("by memory (bound)"), "{}", bound.en);
}

/// Drafts: the engine's counters say how many tokens a step gives; without them
/// a chunk of several tokens may be anything.
#[test]
fn tokens_of_a_step_are_told_by_the_engine_or_unknown() {
    let run = simulated(&["num_speculative_tokens=3", "acceptance_rate=0.7"], MANY);
    let deployment = run.settings.deployment();
    let why = reason(&run.figures(None, &deployment), "mbu");
    assert!(why.contains("chunks carry several tokens"), "{why}");
    let mut signals = Signals::default();
    let mut count = |signal, value| signals.readings.insert(signal, Reading::Counter(value));
    // 0.7 + 0.49 + 0.343 of three are accepted.
    count(Signal::Drafts, 1_000.0);
    count(Signal::DraftTokens, 3_000.0);
    count(Signal::AcceptedTokens, 1_533.0);
    let figures = run.figures(Some(signals), &deployment);
    agrees("MBU with drafts", value(&figures, "mbu"), run.known().1, 0.05);
    let (mfu, spent) = (value(&figures, "mfu"), run.known().0);
    assert!(mfu < 0.95 * spent, "rejected drafts are no useful work: {mfu}, {spent}");
}

/// Full memory: what is computed again after a preemption is in the model's
/// counts and in no figure of useful work.
#[test]
fn work_that_is_done_again_is_not_useful() {
    let users = Users { users: 32, requests: 96, input: 512, output: 400, spread: 0.5 };
    let run = simulated(&["num_gpu_blocks_override=600", "max_model_len=2048"], users);
    assert!(run.totals.preemptions > 10, "{:?}", run.totals);
    let figures = run.figures(None, &run.settings.deployment());
    let (mfu, spent) = (value(&figures, "mfu"), run.known().0);
    assert!(mfu < 0.97 * spent, "{mfu} and {spent}");
}

/// Question 3 of seed 000: a GPU that is busy 95 % of the time at an MFU of 5 %
/// is no contradiction; MBU and the step over its bound say how good it is.
#[test]
fn busy_and_little_arithmetic_is_no_contradiction() {
    let run =
        simulated(&[], Users { users: 16, requests: 160, input: 256, output: 256, spread: 0.5 });
    let mut signals = Signals::default();
    let busy = Gauge { mean: 0.95, min: 0.9, max: 1.0, first: 0.9, last: 1.0, n: 60 };
    signals.readings.insert(Signal::GpuBusy, Reading::Gauge(busy));
    let figures = run.figures(Some(signals), &run.settings.deployment());
    assert_eq!(value(&figures, "gpu_utilisation"), 0.95);
    let mfu = value(&figures, "mfu");
    assert!((0.01..0.1).contains(&mfu), "{mfu}");
    let (mbu, over) = (value(&figures, "mbu"), value(&figures, "step_over_bound"));
    assert!((0.5..0.9).contains(&mbu) && (1.1..2.0).contains(&over), "{mbu}, {over}");
    assert!(efficiency::lints(&figures).is_empty());
    let panel: BTreeMap<&str, f64> =
        figures.panel.iter().map(|one| (one.key, *one.value.as_ref().unwrap())).collect();
    assert_eq!(panel["kernel_time"], 0.95);
    assert_eq!(panel["communication_time"], 0.0, "one accelerator has no neighbour");
    assert_eq!(panel["memory_bandwidth"], mbu, "no device measured it");
    assert_eq!(figures.panel.len(), 6);
}

#[test]
fn a_wrong_input_shows_as_a_share_above_one() {
    let run = simulated(&[], MANY);
    let slower = *measure::hardware::accelerator("l4").unwrap();
    let deployment = Deployment { accelerator: Some(slower), ..run.settings.deployment() };
    let figures = run.figures(None, &deployment);
    assert!(value(&figures, "mbu") > 1.0);
    let lints = efficiency::lints(&figures);
    assert!(lints.iter().any(|lint| lint.concerns == "mbu"), "{lints:?}");
}

#[test]
fn what_is_not_given_is_absent_with_the_flag_that_would_tell_it() {
    let run = simulated(&[], Users { requests: 64, ..MANY });
    let figures = run.figures(None, &Deployment::default());
    for (key, word) in [
        ("mfu", "--model-shape"),
        ("mbu", "--model-shape"),
        ("cost_per_million_tokens", "--gpu-price-per-hour"),
        ("per_gpu_output_tok_s", "--topology"),
        ("gpu_utilisation", "metrics were not read"),
        ("hfu", "estimated_flops"),
        ("preemptions_per_request", "metrics were not read"),
    ] {
        let why = reason(&figures, key);
        assert!(why.contains(word), "{key}: {why}");
    }
    let whole = run.settings.deployment();
    let ask = |deployment: &Deployment| reason(&run.figures(None, deployment), "mbu");
    let without = |change: fn(&mut Deployment)| {
        let mut deployment = whole.clone();
        change(&mut deployment);
        ask(&deployment)
    };
    assert!(without(|d| d.accelerator = None).contains("--accelerator"));
    assert!(without(|d| d.topology.clear()).contains("--topology"));
    let several = without(|d| {
        d.topology = vec![(String::new(), 8)];
        d.tensor_parallel = None;
    });
    assert!(several.contains("8 accelerators may be one engine or several"), "{several}");
    let assumed = Deployment { weights: None, ..whole.clone() };
    let figures = run.figures(None, &assumed);
    let inputs = &figures.figure("mbu").unwrap().inputs;
    assert!(inputs.iter().any(|said| said.en.contains("assumed; --weights")), "{inputs:?}");
}

/// Every figure of the registry's branch that is found here is there, in its
/// order, and nothing else is.
#[test]
fn the_figures_are_those_of_the_registry() {
    let registered: Vec<&str> = METRICS
        .iter()
        .filter(|metric| metric.branch == Branch::Efficiency)
        .filter(|metric| matches!(metric.how, How::Inside(_)))
        .map(|metric| metric.key)
        .collect();
    let run = simulated(&[], Users { requests: 64, ..MANY });
    let figures = run.figures(None, &Deployment::default());
    let found: Vec<&str> = figures.figures.iter().map(|figure| figure.key).collect();
    assert_eq!(found, registered);
}

/// 1 000 tok/s on 8 accelerators at 3.6 an hour is 0.008 a second: 8 for a
/// million tokens, 125 tok/s each; half of the tokens good makes it 16.
#[test]
fn money_is_what_the_formula_says() {
    let mut run = simulated(&[], Users { requests: 64, ..MANY });
    run.facts.slo =
        Some(Slo { terms: Slo::parse_goodput(["ttft:1e9"]).unwrap().terms, ..Slo::default() });
    let deployment = Deployment {
        topology: measure::deployment::topology("prefill=2,decode=6").unwrap(),
        price_per_hour: Some(3.6),
        ..Deployment::default()
    };
    let mut summary = run.summary(None);
    summary.throughput.output_tok_s = Some(1_000.0);
    summary.goodput.as_mut().unwrap().tok_s = Some(500.0);
    let figures = efficiency::figures(&View::new(&summary, &run.records, &deployment));
    agrees("cost", value(&figures, "cost_per_million_tokens"), 8.0, 1e-12);
    agrees("cost of good ones", value(&figures, "cost_per_million_good_tokens"), 16.0, 1e-12);
    agrees("per GPU", value(&figures, "per_gpu_output_tok_s"), 125.0, 1e-12);
}

/// Two accelerators of 300 W each for a steady minute: 36 kJ.
#[test]
fn energy_is_taken_over_the_steady_window_of_the_whole_deployment() {
    let users = Users { users: 64, requests: 2_000, input: 512, output: 256, spread: 0.5 };
    let mut run = simulated(&["tensor_parallel_size=2", "step_overhead_us=20000"], users);
    run.facts.slo =
        Some(Slo { terms: Slo::parse_goodput(["ttft:1e9"]).unwrap().terms, ..Slo::default() });
    let deployment = run.settings.deployment();
    let mut signals = Signals::default();
    let second = |s: i64| At::ZERO + Span::from_ms(1_000 * s);
    let flat = |value: f64| (0..1_000).map(|s| (second(s), value)).collect::<Vec<_>>();
    signals.series.insert(Signal::Power, flat(600.0));
    let device = |name: &str| Instance {
        name: name.to_owned(),
        role: Role::Device,
        readings: BTreeMap::from([(Signal::Power, Reading::Gauge(Gauge::default()))]),
    };
    signals.instances = vec![device("0"), device("1")];
    let figures = run.figures(Some(signals.clone()), &deployment);
    agrees("power", value(&figures, "power_w"), 600.0, 1e-9);
    let rate = run.summary(None).steady.output_tok_s.unwrap();
    agrees("J/token", value(&figures, "energy_per_token_j"), 600.0 / rate, 1e-9);
    agrees("TPS/MW", value(&figures, "tps_per_megawatt"), 1e6 * rate / 600.0, 1e-9);
    assert!(value(&figures, "energy_per_good_token_j") > 0.0);
    // A counter is preferred, and what samples say besides is told.
    signals.series.insert(Signal::Energy, flat(500.0));
    signals.instances.iter_mut().for_each(|one| {
        one.readings.insert(Signal::Energy, Reading::Counter(1.0));
    });
    let figures = run.figures(Some(signals.clone()), &deployment);
    agrees("by counter", value(&figures, "power_w"), 500.0, 1e-9);
    let inputs = &figures.figure("power_w").unwrap().inputs;
    assert!(inputs.iter().any(|said| said.en.contains("20.00 % more")), "{inputs:?}");
    // A part of the deployment flatters.
    signals.instances.pop();
    let why = reason(&run.figures(Some(signals.clone()), &deployment), "energy_per_token_j");
    assert!(why.contains("1 accelerators was read and the deployment has 2"), "{why}");
}

#[test]
fn energy_of_a_short_run_is_absent() {
    let run = simulated(&[], MANY);
    let why = reason(&run.figures(Some(Signals::default()), &run.settings.deployment()), "power_w");
    assert!(why.contains("and 1") || why.contains("needs"), "{why}");
}

/// HFU is the engine's own count and never ours.
#[test]
fn hfu_is_the_engines_own_estimate() {
    let run = simulated(&[], Users { requests: 64, ..MANY });
    let mut signals = Signals { until: At::ZERO + Span::from_ms(10_000), ..Signals::default() };
    signals.readings.insert(Signal::EstimatedFlops, Reading::Counter(989e12));
    let figures = run.figures(Some(signals), &run.settings.deployment());
    let peak = run.settings.accelerator.flops.bf16.unwrap();
    agrees("HFU", value(&figures, "hfu"), 989e12 / peak / 10.0, 1e-9);
}
