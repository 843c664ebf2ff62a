//! Scenarios: worlds with known causes, and what a user would have of them.

use measure::definition::Endpoint;
use measure::deployment::Deployment;
use measure::facts::{InstrumentFacts, LoadFacts, LoadKind, RunFacts, WorkloadFacts};
use measure::request::Settings as MetricSettings;
use measure::signal::Signals;
use measure::slo::{Quantity, Slo, Term};
use measure::{Record, Span};
use sim::SettingsError;
use workload::prompt::CacheRegime;
use workload::{Load, Prefixes, Schedule, Stream};

use crate::cause::{self, CAUSES, Cause, PAIRS, about, between, ratio};
use crate::ground::Ground;
use crate::seen;
use crate::world::{Figure, Figures, MODEL, World};

/// A run with known causes.
#[derive(Debug)]
pub struct Scenario {
    world: World,
    ground: Ground,
    sick: Figures,
    /// What it was drawn from.
    pub seed: u64,
    /// One or two causes; none of a healthy run.
    pub labels: Vec<&'static Cause>,
    /// What was drawn, in words.
    pub drawn: String,
    /// How many draws were not taken before this one, since the causes did not
    /// show in them.
    pub rejected: u32,
    /// What the client saw.
    pub records: Vec<Record>,
    /// What is known of the run besides, with what the user says of the machines.
    pub facts: RunFacts,
    /// What the server told.
    pub signals: Signals,
}

/// How often a cause is drawn anew before another one is.
const MOST_DRAWS: u32 = 40;

/// Share of the scenarios with two causes.
const PAIRED: f64 = 0.3;

/// The causes that a seed asks for; where they do not show in any draw, others
/// take their place.
pub fn drawn_causes(seed: u64) -> Vec<&'static Cause> {
    order_of_causes(seed).swap_remove(0)
}

fn order_of_causes(seed: u64) -> Vec<Vec<&'static Cause>> {
    let mut choice = Stream::new(seed, "causes");
    let mut all: Vec<Vec<&'static Cause>> = if choice.chance(PAIRED) {
        let both = |(one, other): &(&'static str, &'static str)| {
            [*one, *other].into_iter().filter_map(cause::find)
        };
        PAIRS.iter().map(|pair| both(pair).collect()).collect()
    } else {
        CAUSES.iter().map(|cause| vec![cause]).collect()
    };
    choice.shuffle(&mut all);
    all
}

/// The scenario of a seed.
pub fn scenario(seed: u64) -> Scenario {
    let mut rejected = 0;
    for labels in &order_of_causes(seed) {
        for number in 0..MOST_DRAWS {
            let mut draws = Stream::numbered(seed, labels[0].id, number.into());
            if let Ok(Some(drawn)) = Drawn::with(seed, labels, &mut draws) {
                return drawn.scenario(seed, rejected, &mut draws);
            }
            rejected += 1;
        }
    }
    unreachable!("each cause shows in one draw of {MOST_DRAWS} at least once")
}

/// The healthy run of a seed.
pub fn healthy(seed: u64) -> Scenario {
    for number in 0.. {
        let mut draws = Stream::numbered(seed, "healthy", number);
        if let Ok(Some(drawn)) = Drawn::healthy(seed, &mut draws) {
            return drawn.scenario(seed, number as u32, &mut draws);
        }
    }
    unreachable!("numbers do not end")
}

impl Scenario {
    /// Whether what a rule of this code names is there: it was put in, or taking it
    /// away mends half of what is asked of a cause that is put in.
    pub fn has(&self, code: &str) -> bool {
        let of_code = |cause: &&Cause| cause.codes.contains(&code);
        if self.labels.iter().any(&of_code) {
            return true;
        }
        let shows = |cause: &Cause| {
            let without = (cause.relieve)(&self.world, &self.ground);
            without != self.world
                && without
                    .play()
                    .is_ok_and(|played| shows(cause, 2, &self.sick, &Figures::of(&played.records)))
        };
        let mut provable = CAUSES.iter().filter(|cause| cause.at_least > 0.0 && of_code(cause));
        provable.any(shows)
    }
}

/// A world that shows what it was drawn for.
struct Drawn {
    world: World,
    labels: Vec<&'static Cause>,
    level: f64,
    ground: Ground,
    /// As it is, and without its causes.
    sick: Figures,
    sound: Figures,
}

/// Models, accelerators, and how many share a layer.
const DEPLOYMENTS: &[(&str, &str, u32)] = &[
    ("llama-3.1-8b", "h100-sxm", 1),
    ("llama-3.1-8b", "a100-80gb-sxm", 1),
    ("llama-3.1-8b", "l40s", 1),
    ("mistral-7b", "h100-pcie", 1),
    ("qwen2.5-7b", "a100-40gb-sxm", 1),
    ("qwen3-14b", "h100-sxm", 1),
    ("qwen2.5-14b", "a100-80gb-sxm", 1),
    ("qwen2.5-32b", "h100-sxm", 2),
    ("llama-3.1-70b", "h100-sxm", 4),
    ("llama-3.1-70b", "h200-sxm", 2),
    ("qwen3-30b-a3b", "h200-sxm", 1),
    ("phi-4", "mi300x", 1),
    ("llama-3.2-3b", "l4", 1),
];

impl Drawn {
    /// A sound deployment before its load.
    fn deployment(seed: u64, draws: &mut Stream) -> World {
        let (model, accelerator, tensor_parallel) = draws.pick(DEPLOYMENTS);
        let mut world = World {
            seed,
            settings: sim::Settings::default(),
            load: Load::Burst,
            requests: 1,
            input: about(draws, 128.0, 1_500.0),
            output: about(draws, 64.0, 320.0),
            long: None,
            natural: None,
            prefixes: Prefixes::NONE,
            adapters: 0,
            one_way: Span::from_us(between(draws, 50.0, 600.0) as i64),
            proxy: None,
            late: None,
            refused: 0.0,
        };
        cause::on(&mut world, model, accelerator, tensor_parallel);
        let settings = &mut world.settings;
        settings.max_num_seqs = draws.pick(&[256, 512, 1_024]);
        settings.max_num_batched_tokens = draws.pick(&[2_048, 4_096, 8_192]);
        settings.compute_efficiency = between(draws, 0.45, 0.7);
        settings.memory_efficiency = between(draws, 0.6, 0.85);
        settings.host_overhead_us = between(draws, 300.0, 900.0);
        if draws.chance(0.3) {
            // A system prompt that is found.
            let shared_tokens = ratio(draws, 200.0, 1_500.0) as u32;
            world.prefixes = Prefixes { shared_tokens, ..Prefixes::NONE };
        }
        world
    }

    /// One with these causes; none where they do not show in this draw.
    fn with(
        seed: u64,
        labels: &[&'static Cause],
        draws: &mut Stream,
    ) -> Result<Option<Self>, SettingsError> {
        let mut world = Self::deployment(seed, draws);
        for cause in labels {
            (cause.shape)(&mut world, draws);
        }
        let (low, high) = labels[0].level;
        let level = ratio(draws, low, high);
        let is_open = draws.chance(0.75);
        let seconds = between(draws, 20.0, 50.0);
        let ground = Ground::capacity(&world)?.load(&mut world, level, is_open, seconds)?;
        for cause in labels {
            (cause.inject)(&mut world, &ground, draws);
        }
        let sick = Figures::of(&world.play()?.records);
        let mut sound = world.clone();
        for cause in labels {
            let relieved = (cause.relieve)(&world, &ground);
            let without = Figures::of(&relieved.play()?.records);
            if !shows(cause, labels.len(), &sick, &without)
                || !alone(cause, labels.len(), &world, &sick, &without)?
            {
                return Ok(None);
            }
            sound = (cause.relieve)(&sound, &ground);
        }
        let sound = Figures::of(&sound.play()?.records);
        Ok(Some(Self { world, labels: labels.to_vec(), level, ground, sick, sound }))
    }

    /// One that no change makes much better.
    fn healthy(seed: u64, draws: &mut Stream) -> Result<Option<Self>, SettingsError> {
        let mut world = Self::deployment(seed, draws);
        let level = ratio(draws, 0.25, 0.6);
        let is_open = draws.chance(0.75);
        let seconds = between(draws, 20.0, 50.0);
        let ground = Ground::capacity(&world)?.load(&mut world, level, is_open, seconds)?;
        let figures = ground.figures;
        for lever in LEVERS {
            let better = Figures::of(&lever.pulled(&world).play()?.records);
            if gains_much(&figures, &better) {
                return Ok(None);
            }
        }
        let labels = Vec::new();
        Ok(Some(Self { world, labels, level, ground, sick: figures, sound: figures }))
    }

    fn scenario(self, seed: u64, rejected: u32, draws: &mut Stream) -> Scenario {
        let played = self.world.play_and_scrape().expect("it was played before");
        let signals = seen::signals(&played);
        let mut records = played.records;
        // Servers tell these only where they are asked to.
        let (tells_timings, tells_cached) = (draws.chance(0.15), draws.chance(0.6));
        for record in &mut records {
            if !tells_timings {
                record.answer.server_timings.clear();
            }
            if !tells_cached {
                record.answer.counts.cached = None;
            }
        }
        let slo = self.objective(draws);
        let facts = self.facts(slo, draws);
        Scenario {
            seed,
            drawn: self.words(),
            world: self.world,
            ground: self.ground,
            sick: self.sick,
            labels: self.labels,
            rejected,
            records,
            facts,
            signals,
        }
    }

    /// What the user wants: what the deployment does without its causes, with some
    /// room, or less than it can do where that is what is wrong.
    fn objective(&self, draws: &mut Stream) -> Option<Slo> {
        let wanted = self.labels.iter().find(|cause| cause.needs_objective);
        if wanted.is_none() && !draws.chance(0.6) {
            return None;
        }
        let room = between(draws, 1.4, 2.5);
        let (mut ttft_ms, mut tpot_ms) = (self.sound.ttft_p95_ms * room, self.sound.tpot_ms * room);
        if let Some(cause) = wanted {
            let (wants, grants) = (between(draws, 0.5, 0.8), between(draws, 1.6, 3.0));
            (ttft_ms, tpot_ms) = (self.sick.ttft_p95_ms * grants, self.sick.tpot_ms * grants);
            match cause.figure {
                Figure::Tpot => tpot_ms = self.sick.tpot_ms * wants,
                _ => ttft_ms = self.sick.ttft_ms * wants,
            }
        }
        let term = |quantity, limit_ms| Term { quantity, limit_ms };
        let terms = vec![term(Quantity::Ttft, ttft_ms), term(Quantity::Tpot, tpot_ms)];
        Some(Slo { terms, labelled: Vec::new() })
    }

    /// What the user says of the machines; what no rule can do without is said.
    fn told(&self, draws: &mut Stream) -> Deployment {
        let settings = &self.world.settings;
        let needed = self.labels.iter().any(|cause| cause.needs_objective || cause.id == "host");
        let of_model = needed || draws.chance(0.7);
        let (seats, budget) = (draws.chance(0.7), draws.chance(0.6));
        Deployment {
            model: of_model.then(|| settings.model.clone()),
            accelerator: of_model.then_some(settings.accelerator),
            topology: if of_model {
                vec![("both".to_owned(), settings.accelerators())]
            } else {
                Vec::new()
            },
            tensor_parallel: of_model.then_some(settings.tensor_parallel_size),
            pipeline_parallel: None,
            weights: of_model.then_some(settings.quantization),
            kv_cache: of_model.then_some(settings.kv_cache_dtype),
            price_per_hour: None,
            seats: seats.then_some(settings.max_num_seqs),
            token_budget: budget.then_some(settings.max_num_batched_tokens),
        }
    }

    fn facts(&self, slo: Option<Slo>, draws: &mut Stream) -> RunFacts {
        let world = &self.world;
        let schedule = world.plan();
        RunFacts {
            run_id: "scenario".to_owned(),
            target: "http://127.0.0.1:8000/v1/chat/completions".to_owned(),
            engine: Some("vLLM 0.27.1".to_owned()),
            model: Some(MODEL.to_owned()),
            simulated: false,
            api: "openai-chat".to_owned(),
            endpoint: Endpoint::Chat,
            load: load_facts(world, &schedule),
            workload: workload_facts(world),
            slo,
            settings: MetricSettings::default(),
            percentiles: Vec::new(),
            instrument: instrument_facts(world, &schedule, draws),
            request_timeout: Some(Span::from_ms(600_000)),
            source_duration_s: None,
            as_reported: Vec::new(),
            isolated: Vec::new(),
            deployment: self.told(draws),
            rows_kept: true,
            interrupted: false,
        }
    }

    fn words(&self) -> String {
        let Self { world, level, ground, sick, sound, .. } = self;
        let changes = world.settings.changes();
        let settings: Vec<String> =
            changes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!(
            "{} requests, {}, {:.2} of a capacity of {:.2}/s, {:.1} at once; prompts {} after {:?}, \
             answers {}; long {:?}, natural {:?}, adapters {}, one way {} us, proxy {:?}, late {:?}, \
             refused {:.2}; {}; now {sick:.1?}, without {sound:.1?}",
            world.requests,
            world.load.describe(),
            level,
            ground.capacity,
            ground.running,
            world.input.describe(),
            world.prefixes,
            world.output.describe(),
            world.long.as_ref().map(|long| (long.share, long.input.describe())),
            world.natural,
            world.adapters,
            world.one_way.us(),
            world.proxy,
            world.late,
            world.refused,
            settings.join(" "),
        )
    }
}

/// Whether a cause makes its figure as much worse as it must. With another one
/// beside it half of that is enough.
fn shows(cause: &Cause, causes: usize, sick: &Figures, without: &Figures) -> bool {
    let least = if causes == 1 { cause.at_least } else { 1.0 + (cause.at_least - 1.0) * 0.5 };
    let worse = sick.get(cause.figure) / without.get(cause.figure).max(1e-9);
    cause.at_least == 0.0 || worse >= least
}

/// Whether nothing else takes most of it away: what a limit regains that is not
/// the cause's own is less than half of what the cause's removal does, and a third
/// where the cause is that no limit helps.
fn alone(
    cause: &Cause,
    causes: usize,
    world: &World,
    sick: &Figures,
    without: &Figures,
) -> Result<bool, SettingsError> {
    if causes > 1 || cause.at_least == 0.0 {
        return Ok(true);
    }
    let worse = |figures: &Figures| figures.get(cause.figure);
    let all = worse(sick) - worse(without);
    // What no limit mends must not be mended by one.
    let most = if cause.id == "over_saturation" { 0.3 } else { 0.5 };
    for lever in LEVERS.iter().filter(|lever| !lever.is_of.contains(&cause.id)) {
        let better = Figures::of(&lever.pulled(world).play()?.records);
        if worse(sick) - worse(&better) > most * all {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A limit that can be lifted.
struct Lever {
    /// Causes whose removal it is, or nearly is.
    is_of: &'static [&'static str],
    pull: fn(&mut World),
}

impl Lever {
    fn pulled(&self, world: &World) -> World {
        let mut other = world.clone();
        (self.pull)(&mut other);
        other
    }
}

static LEVERS: &[Lever] = &[
    Lever { is_of: &["seats", "budget"], pull: |world| world.settings.max_num_seqs = 1_024 },
    Lever {
        is_of: &["kv", "prefix_evicted"],
        pull: |world| {
            let settings = &mut world.settings;
            let tokens = settings.blocks().unwrap_or(1);
            settings.num_gpu_blocks_override = Some(tokens.saturating_mul(4));
        },
    },
    Lever {
        is_of: &["budget", "interference", "seats", "head_of_line"],
        pull: |world| {
            let settings = &mut world.settings;
            settings.max_num_batched_tokens = settings.max_num_batched_tokens.saturating_mul(4);
        },
    },
    Lever {
        is_of: &["interference", "head_of_line"],
        pull: |world| {
            let settings = &mut world.settings;
            settings.max_num_batched_tokens = settings.max_num_batched_tokens.min(512);
        },
    },
    Lever {
        is_of: &["prefix_off", "prefix_evicted"],
        pull: |world| world.settings.enable_prefix_caching = true,
    },
];

/// Whether a change makes a run much better.
fn gains_much(now: &Figures, better: &Figures) -> bool {
    let gain = |figure| now.get(figure) / better.get(figure).max(1e-9);
    let has_tail = now.icl_p99_ms > 3.0 * now.icl_p50_ms;
    gain(Figure::Ttft) > 1.3
        || gain(Figure::TtftTail) > 1.5
        || gain(Figure::Tpot) > 1.2
        || (has_tail && gain(Figure::GapTail) > 1.8)
}

fn load_facts(world: &World, schedule: &Schedule) -> LoadFacts {
    let load = &world.load;
    let kind = LoadKind::ALL.iter().copied().find(|kind| kind.name() == load.kind());
    LoadFacts {
        kind: kind.unwrap_or(LoadKind::Unknown),
        request_rate: world.rate(),
        burstiness: load.burstiness(),
        users: load.users(),
        arrivals: schedule.arrival_text(),
        planned_duration: schedule.planned_duration(),
        seed: world.seed,
        schedule_hash: schedule.hash(),
        replay: None,
    }
}

fn workload_facts(world: &World) -> WorkloadFacts {
    let common = world.prefixes.common_tokens();
    WorkloadFacts {
        source: "synthetic".to_owned(),
        input_lengths: world.input.describe(),
        output_lengths: world.output.describe(),
        tokenizer: None,
        cache_regime: CacheRegime::Cold.name().to_owned(),
        prefix_tokens: Some(common),
        output_forced: world.natural.is_none(),
        random_text: true,
        ..WorkloadFacts::default()
    }
}

/// What the instrument would know of itself: one that cannot keep up is busy.
fn instrument_facts(world: &World, schedule: &Schedule, draws: &mut Stream) -> InstrumentFacts {
    let keeps_up = world.late.is_none();
    let busiest = if keeps_up { between(draws, 0.02, 0.4) } else { between(draws, 0.85, 1.0) };
    let lag_us =
        if keeps_up { between(draws, 20.0, 200.0) } else { between(draws, 500.0, 9_000.0) };
    InstrumentFacts {
        stamp_source: "kernel".to_owned(),
        client_lag_us: Some([lag_us * 0.2, lag_us, lag_us * 3.0]),
        stamp_error_p99_us: Some(8.0),
        busiest_thread: Some(busiest),
        planned_requests: schedule.count().map(u64::from),
        ..InstrumentFacts::default()
    }
}
