//! The causes that are put into worlds, each with what takes it away again.

use measure::hardware::Precision;
use measure::{PerSecond, Span};
use sim::{Router, Settings};
use workload::arrival::{Pace, Process};
use workload::{Lengths, Load, Prefixes, Shape, Stage, Stream, Think};

use crate::between::{Late, Proxy};
use crate::ground::Ground;
use crate::world::{Figure, Long, World};

/// What the client alone can tell apart, without the server's metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It can be told: by any of these codes, because some look alike.
    As(&'static [&'static str]),
    /// It cannot, or nothing is claimed.
    Undecided,
}

/// One cause.
pub struct Cause {
    /// Its name here.
    pub id: &'static str,
    /// What is wrong, in words.
    pub text: &'static str,
    /// Codes of the rules that name it, the best first.
    pub codes: &'static [&'static str],
    /// What can be told of it without the server's metrics.
    pub client: Seen,
    /// The figure that it makes worse.
    pub figure: Figure,
    /// How many times as large the figure must be as without the cause.
    pub at_least: f64,
    /// Whether it shows only against an objective and the bounds of the hardware.
    pub needs_objective: bool,
    /// The share of the capacity at which the load lies.
    pub level: (f64, f64),
    /// Makes the world one in which it can be seen, before the load is chosen.
    pub shape: fn(&mut World, &mut Stream),
    /// Puts it into a world whose load is chosen.
    pub inject: fn(&mut World, &Ground, &mut Stream),
    /// The world without it.
    pub relieve: fn(&World, &Ground) -> World,
}

impl std::fmt::Debug for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// The cause of this name.
pub fn find(id: &str) -> Option<&'static Cause> {
    CAUSES.iter().find(|cause| cause.id == id)
}

/// Evenly between two numbers.
pub(crate) fn between(draws: &mut Stream, low: f64, high: f64) -> f64 {
    low + (high - low) * draws.unit()
}

/// Between two numbers, every ratio as likely.
pub(crate) fn ratio(draws: &mut Stream, low: f64, high: f64) -> f64 {
    low * (high / low).powf(draws.unit())
}

/// Lengths around one between two, give or take a half at most.
pub(crate) fn about(draws: &mut Stream, low: f64, high: f64) -> Lengths {
    let tokens = ratio(draws, low, high);
    let spread = draws.pick(&[0.0, 0.25, 0.5]);
    Lengths::uniform(tokens.max(2.0) as u32, spread).expect("a spread below 1")
}

fn ms(value: f64) -> Span {
    Span::from_us((value * 1e3) as i64)
}

fn with(world: &World, change: impl FnOnce(&mut Settings)) -> World {
    let mut other = world.clone();
    change(&mut other.settings);
    other
}

/// A world without a shape of its own.
fn as_it_is(_: &mut World, _: &mut Stream) {}

/// A cause that is in the shape already.
fn no_more(_: &mut World, _: &Ground, _: &mut Stream) {}

/// Another model on other accelerators. Contexts are cut to what is played.
pub(crate) fn on(world: &mut World, model: &str, accelerator: &str, tensor_parallel: u32) {
    let settings = &mut world.settings;
    for set in [format!("model={model}"), format!("accelerator={accelerator}")] {
        settings.set(&set).expect("a name of the catalogue");
    }
    settings.tensor_parallel_size = tensor_parallel;
    settings.max_model_len = Some(settings.model.context.min(20_000));
}

/// Sets the rate of an open loop, or makes one.
pub(crate) fn at_rate(world: &mut World, rate: f64) {
    world.load = Load::Open { pace: Pace::flat(PerSecond::new(rate), 1.0) };
}

/// So many users who do not think.
pub(crate) fn of_users(world: &mut World, users: u32) {
    world.load = Load::Closed { users: users.max(1), think: Think::from(Span::ZERO) };
}

/// As many requests as come in so many seconds, within what is quickly played.
pub(crate) fn lasting(world: &mut World, rate: f64, seconds: f64) {
    let tokens = world.output.mean() + 0.05 * world.input.mean();
    let most = (300_000.0 / tokens).clamp(60.0, 1_500.0);
    world.requests = (rate * seconds).clamp(50.0, most) as u32;
}

/// Every cause.
pub static CAUSES: &[Cause] = &[
    Cause {
        id: "seats",
        text: "fewer seats than requests that run at once",
        codes: &["Q1"],
        client: Seen::As(&["Q1", "Q2", "K1", "K2", "D7", "Q3"]),
        figure: Figure::Ttft,
        at_least: 2.0,
        needs_objective: false,
        level: (0.45, 0.75),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let share = match world.rate() {
                Some(_) => between(draws, 0.65, 1.0),
                None => between(draws, 0.25, 0.7),
            };
            world.settings.max_num_seqs = ((ground.running * share) as u32).max(1);
        },
        relieve: |world, _| with(world, |settings| settings.max_num_seqs = 1_024),
    },
    Cause {
        id: "kv",
        text: "fewer KV blocks than the requests that run at once fill",
        codes: &["K1", "Q2", "D7", "K2"],
        client: Seen::As(&["Q1", "Q2", "K1", "K2", "D7", "Q3"]),
        figure: Figure::E2el,
        at_least: 1.4,
        needs_objective: false,
        level: (0.45, 0.75),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let (prompt, answer) = world.tokens();
            let longest = 1.6 * (prompt + answer) + 64.0;
            let demand = ground.running * (prompt + answer / 2.0);
            let tokens = (demand * between(draws, 0.45, 0.9)).max(longest + 16.0);
            world.settings.max_model_len = Some(longest as u32);
            world.settings.num_gpu_blocks_override =
                Some((tokens / f64::from(world.settings.block_size)).ceil() as u32);
        },
        relieve: |world, _| with(world, |settings| settings.num_gpu_blocks_override = None),
    },
    Cause {
        id: "budget",
        text: "a token budget of a step too small for the prompts that come",
        codes: &["Q3", "P2", "P4"],
        client: Seen::Undecided,
        figure: Figure::Ttft,
        at_least: 2.5,
        needs_objective: false,
        level: (0.45, 0.75),
        shape: |world, draws| {
            world.input = about(draws, 1_200.0, 4_000.0);
            world.output = about(draws, 48.0, 160.0);
        },
        inject: |world, ground, draws| {
            // A step needs a token of each that decodes, and its part of the prompts
            // that come meanwhile.
            let figures = &ground.figures;
            let rate = ground.running / (figures.e2el_ms / 1e3).max(1e-3);
            let prompts = rate * world.input.mean() * figures.icl_p50_ms / 1e3;
            let needed = ground.running + prompts;
            let budget = (needed * between(draws, 0.75, 1.15)).clamp(16.0, 2_048.0) as u32;
            world.settings.max_num_batched_tokens = budget;
            // An engine does not start with more seats than tokens of a step.
            world.settings.max_num_seqs = world.settings.max_num_seqs.min(budget);
        },
        relieve: |world, _| {
            with(world, |settings| {
                (settings.max_num_batched_tokens, settings.max_num_seqs) = (8_192, 1_024);
            })
        },
    },
    Cause {
        id: "interference",
        text: "steps with long prompts in them hold up those that decode",
        codes: &["D6"],
        client: Seen::As(&["D6"]),
        figure: Figure::GapTail,
        at_least: 2.5,
        needs_objective: false,
        level: (0.2, 0.45),
        shape: |world, draws| {
            let long = about(draws, 4_000.0, 11_000.0);
            world.output = about(draws, 150.0, 400.0);
            world.settings.max_num_batched_tokens = draws.pick(&[8_192, 16_384]);
            if draws.chance(0.5) {
                world.input = long;
            } else {
                world.input = about(draws, 100.0, 600.0);
                let share = between(draws, 0.05, 0.2);
                world.long = Some(Long { share, input: long, output: world.output.clone() });
            }
        },
        inject: no_more,
        relieve: |world, _| {
            with(world, |settings| {
                settings.max_num_batched_tokens = 512;
                settings.max_num_seqs = settings.max_num_seqs.min(512);
            })
        },
    },
    Cause {
        id: "prefix_off",
        text: "prompts begin alike and nothing of it is found again",
        codes: &["P5", "P6"],
        client: Seen::As(&["P5", "P6"]),
        figure: Figure::Ttft,
        at_least: 1.6,
        needs_objective: false,
        level: (0.35, 0.7),
        shape: |world, draws| {
            let shared = ratio(draws, 1_200.0, 5_000.0) as u32;
            let groups = draws.pick(&[1, 1, 4]);
            world.prefixes = Prefixes {
                shared_tokens: if groups == 1 { shared } else { 0 },
                groups,
                group_tokens: if groups == 1 { 0 } else { shared },
                session_tokens: 0,
            };
            world.input = about(draws, 64.0, 400.0);
            world.output = about(draws, 48.0, 200.0);
            world.settings.enable_prefix_caching = false;
        },
        inject: no_more,
        relieve: |world, _| with(world, |settings| settings.enable_prefix_caching = true),
    },
    Cause {
        id: "prefix_evicted",
        text: "prompts begin alike in more ways than the KV cache can remember",
        codes: &["P6", "P5"],
        client: Seen::As(&["P5", "P6"]),
        figure: Figure::Ttft,
        at_least: 1.5,
        needs_objective: false,
        level: (0.3, 0.6),
        shape: |world, draws| {
            let tokens = ratio(draws, 1_200.0, 3_000.0) as u32;
            let groups = (ratio(draws, 24.0, 60.0)) as u32;
            world.prefixes =
                Prefixes { shared_tokens: 0, groups, group_tokens: tokens, session_tokens: 0 };
            world.input = about(draws, 48.0, 200.0);
            world.output = about(draws, 32.0, 100.0);
            let remembered = f64::from(groups * tokens) * between(draws, 0.3, 0.6);
            let longest = 2 * tokens + 1_024;
            world.settings.max_model_len = Some(longest);
            let least = f64::from(longest + 16);
            world.settings.num_gpu_blocks_override =
                Some((remembered.max(least) / f64::from(world.settings.block_size)) as u32);
        },
        inject: no_more,
        relieve: |world, _| with(world, |settings| settings.num_gpu_blocks_override = None),
    },
    Cause {
        id: "over_saturation",
        text: "more requests come than the deployment can serve, whatever its limits",
        codes: &["Q4"],
        client: Seen::As(&["Q4"]),
        figure: Figure::Ttft,
        at_least: 4.0,
        needs_objective: false,
        level: (1.3, 2.5),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let rate = world.rate().unwrap_or(ground.capacity * between(draws, 1.3, 2.5));
            at_rate(world, rate);
            lasting(world, rate, 60.0);
        },
        relieve: |world, ground| {
            let mut other = world.clone();
            at_rate(&mut other, 0.5 * ground.capacity);
            other
        },
    },
    Cause {
        id: "underload",
        text: "far less is asked for than could be served",
        codes: &["V1", "K3", "E3"],
        client: Seen::As(&["V1", "E3"]),
        figure: Figure::Ttft,
        at_least: 0.0,
        needs_objective: false,
        level: (0.01, 0.05),
        shape: as_it_is,
        inject: |world, ground, draws| {
            if draws.chance(0.4) {
                of_users(world, 1 + draws.below(2) as u32);
                world.requests = 40 + draws.below(60) as u32;
            } else {
                let rate = world.rate().unwrap_or(ground.capacity * between(draws, 0.01, 0.05));
                at_rate(world, rate);
                world.requests = 60 + draws.below(90) as u32;
            }
        },
        relieve: |world, _| world.clone(),
    },
    Cause {
        id: "client",
        text: "the load generator sends later than it planned",
        codes: &["V2"],
        client: Seen::As(&["V2"]),
        figure: Figure::Ttft,
        at_least: 1.3,
        needs_objective: false,
        level: (0.3, 0.6),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let rate = world.rate().unwrap_or(0.5 * ground.capacity);
            at_rate(world, rate);
            let late = if draws.chance(0.5) {
                let each = Span::from_us((1e6 / rate * between(draws, 0.92, 1.2)) as i64);
                Late { each, pause_every: Span::ZERO, pause: Span::ZERO }
            } else {
                let every = between(draws, 1_000.0, 4_000.0);
                Late {
                    each: Span::from_us((1e6 / rate * between(draws, 0.2, 0.6)) as i64),
                    pause_every: ms(every),
                    pause: ms(every * between(draws, 0.15, 0.4)),
                }
            };
            world.late = Some(late);
        },
        relieve: |world, _| World { late: None, ..world.clone() },
    },
    Cause {
        id: "distance",
        text: "client and server are far apart",
        codes: &["N1"],
        client: Seen::Undecided,
        figure: Figure::Ttft,
        at_least: 2.0,
        needs_objective: false,
        level: (0.25, 0.55),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let ttft_ms = ground.figures.ttft_ms;
            world.one_way = ms(between(draws, 0.6, 2.5) * ttft_ms.clamp(40.0, 150.0));
        },
        relieve: |world, _| World { one_way: Span::from_us(150), ..world.clone() },
    },
    Cause {
        id: "proxy_coalesces",
        text: "a proxy passes several events on at a time",
        codes: &["N2", "D13"],
        client: Seen::As(&["N2", "D13"]),
        figure: Figure::GapTail,
        at_least: 2.0,
        needs_objective: false,
        level: (0.25, 0.55),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let gap_ms = ground.figures.icl_p50_ms;
            world.proxy = Some(if draws.chance(0.6) {
                let every = (gap_ms * between(draws, 4.0, 12.0)).max(80.0);
                Proxy::Coalesces { every: ms(every) }
            } else {
                Proxy::Fills { events: 6 + draws.below(20) as u32 }
            });
        },
        relieve: |world, _| World { proxy: None, ..world.clone() },
    },
    Cause {
        id: "proxy_buffers",
        text: "a proxy keeps answers until they are whole",
        codes: &["N2", "D13"],
        client: Seen::As(&["N2", "D13"]),
        figure: Figure::Ttft,
        at_least: 2.0,
        needs_objective: false,
        level: (0.25, 0.55),
        shape: as_it_is,
        inject: |world, _, _| world.proxy = Some(Proxy::Buffers),
        relieve: |world, _| World { proxy: None, ..world.clone() },
    },
    Cause {
        id: "head_of_line",
        text: "a few long prompts make short ones wait behind them",
        codes: &["Q8"],
        client: Seen::Undecided,
        figure: Figure::TtftTail,
        at_least: 2.5,
        needs_objective: false,
        level: (0.35, 0.6),
        shape: |world, draws| {
            world.settings.max_num_batched_tokens = 2_048;
            world.input = about(draws, 64.0, 300.0);
            world.output = about(draws, 6.0, 24.0);
            let long = about(draws, 7_000.0, 11_000.0);
            let share = between(draws, 0.04, 0.1);
            world.long = Some(Long { share, input: long, output: world.output.clone() });
        },
        inject: no_more,
        relieve: |world, _| World { long: None, ..world.clone() },
    },
    Cause {
        id: "bursts",
        text: "requests come in bursts that the deployment serves on average only",
        codes: &["Q5"],
        client: Seen::Undecided,
        figure: Figure::TtftTail,
        at_least: 2.5,
        needs_objective: false,
        level: (0.3, 0.55),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let mean = world.rate().unwrap_or(0.4 * ground.capacity);
            let times = between(draws, 4.0, 8.0);
            let on_s = between(draws, 0.8, 2.5);
            let stage = |rate: f64, lasts_s: f64| Stage {
                rate: PerSecond::new(rate),
                lasts: Span::from_us((lasts_s * 1e6) as i64),
            };
            let shape = Shape::Bursts {
                on: stage(times * mean, on_s),
                off: stage(0.02 * mean, on_s * (times - 1.0) / 0.98),
            };
            world.load = Load::Open { pace: Pace { process: Process::Poisson, shape } };
            lasting(world, mean, 60.0);
        },
        relieve: |world, _| {
            let mut other = world.clone();
            if let Load::Open { pace: Pace { shape: Shape::Bursts { on, off }, .. } } = &world.load
            {
                let (on_s, off_s) = (on.lasts.s(), off.lasts.s());
                let mean = (on.rate.get() * on_s + off.rate.get() * off_s) / (on_s + off_s);
                at_rate(&mut other, mean);
            }
            other
        },
    },
    Cause {
        id: "slow_replica",
        text: "one replica of several is slow and has a queue while others idle",
        codes: &["Q7"],
        client: Seen::Undecided,
        figure: Figure::E2elTail,
        at_least: 1.6,
        needs_objective: false,
        level: (0.3, 0.5),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let replicas = 2 + draws.below(3) as u32;
            world.settings.replicas = replicas;
            world.settings.router = Router::RoundRobin;
            world.settings.slow_replica_factor = between(draws, 2.5, 5.0);
            let rate = world.rate().unwrap_or(0.4 * ground.capacity) * f64::from(replicas);
            at_rate(world, rate);
            lasting(world, rate, 30.0);
        },
        relieve: |world, _| with(world, |settings| settings.slow_replica_factor = 1.0),
    },
    Cause {
        id: "throttling",
        text: "hot accelerators are slower for a time",
        codes: &["H1", "D14"],
        client: Seen::Undecided,
        figure: Figure::Tpot,
        at_least: 1.25,
        needs_objective: false,
        level: (0.25, 0.5),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let rate = world.rate().unwrap_or(0.4 * ground.capacity);
            at_rate(world, rate);
            lasting(world, rate, 45.0);
            let length_s = f64::from(world.requests) / rate;
            world.settings.throttle_after_s = length_s * between(draws, 0.3, 0.5);
            world.settings.throttle_for_s = length_s * between(draws, 0.4, 0.7);
            world.settings.throttle_factor = between(draws, 1.7, 3.0);
        },
        relieve: |world, _| with(world, |settings| settings.throttle_factor = 1.0),
    },
    Cause {
        id: "cold_start",
        text: "the first requests wait for an engine that is not ready",
        codes: &["V8"],
        client: Seen::Undecided,
        figure: Figure::TtftTail,
        at_least: 3.0,
        needs_objective: false,
        level: (0.25, 0.5),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let rate = world.rate().unwrap_or(0.4 * ground.capacity);
            at_rate(world, rate);
            lasting(world, rate, 45.0);
            world.settings.cold_start_s = between(draws, 3.0, 9.0);
        },
        relieve: |world, _| with(world, |settings| settings.cold_start_s = 0.0),
    },
    Cause {
        id: "weight_bandwidth",
        text: "reading weights takes longer than the objective allows for a token",
        codes: &["D1"],
        client: Seen::Undecided,
        figure: Figure::Tpot,
        at_least: 1.4,
        needs_objective: true,
        level: (0.05, 0.2),
        shape: |world, draws| {
            world.input = about(draws, 100.0, 500.0);
            world.output = about(draws, 150.0, 400.0);
        },
        inject: |world, _, draws| {
            of_users(world, 2 + draws.below(5) as u32);
            world.requests = 60 + draws.below(60) as u32;
        },
        relieve: |world, _| with(world, |settings| settings.quantization = Precision::Int4),
    },
    Cause {
        id: "kv_bandwidth",
        text: "reading keys and values of long contexts takes longer than the objective allows",
        codes: &["D2"],
        client: Seen::Undecided,
        figure: Figure::Tpot,
        at_least: 1.25,
        needs_objective: true,
        level: (0.3, 0.6),
        shape: |world, draws| {
            let (model, accelerator, context) = draws.pick(&[
                ("llama-3.1-8b", "h200-sxm", 9_000.0),
                ("llama-3.1-8b", "mi300x", 11_000.0),
                ("phi-3-mini", "h200-sxm", 4_500.0),
                ("mistral-7b", "h200-sxm", 8_000.0),
            ]);
            on(world, model, accelerator, 1);
            world.settings.max_num_batched_tokens = 2_048;
            world.input = about(draws, context * 0.7, context * 1.1);
            world.output = about(draws, 500.0, 900.0);
        },
        inject: |world, _, draws| {
            of_users(world, 28 + draws.below(16) as u32);
            world.requests = 110;
        },
        relieve: |world, _| with(world, |settings| settings.kv_cache_dtype = Precision::Fp8),
    },
    Cause {
        id: "prefill_compute",
        text: "computing a prompt takes longer than the objective allows",
        codes: &["P1"],
        client: Seen::Undecided,
        figure: Figure::Ttft,
        at_least: 1.5,
        needs_objective: true,
        level: (0.1, 0.25),
        shape: |world, draws| {
            let accelerator = draws.pick(&["h100-sxm", "h200-sxm", "l40s", "mi300x"]);
            on(world, "llama-3.1-8b", accelerator, 1);
            world.settings.compute_efficiency = between(draws, 0.6, 0.75);
            world.settings.max_num_batched_tokens = 16_384;
            world.input = about(draws, 4_000.0, 9_000.0);
            world.output = about(draws, 8.0, 48.0);
        },
        inject: no_more,
        relieve: |world, _| with(world, |settings| settings.quantization = Precision::Fp8),
    },
    Cause {
        id: "host",
        text: "launching a step takes the host longer than computing it",
        codes: &["D3"],
        client: Seen::Undecided,
        figure: Figure::Tpot,
        at_least: 2.0,
        needs_objective: false,
        level: (0.15, 0.45),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let step_ms = ground.figures.icl_p50_ms;
            if draws.chance(0.5) {
                let layers = f64::from(world.settings.model.layers);
                world.settings.enforce_eager = true;
                world.settings.eager_layer_overhead_us =
                    step_ms * 1e3 * between(draws, 2.0, 5.0) / layers;
            } else {
                world.settings.async_scheduling = false;
                world.settings.host_overhead_us = step_ms * 1e3 * between(draws, 2.0, 5.0);
            }
        },
        relieve: |world, _| {
            let usual = Settings::default();
            with(world, |settings| {
                settings.enforce_eager = false;
                settings.async_scheduling = true;
                settings.host_overhead_us = usual.host_overhead_us;
            })
        },
    },
    Cause {
        id: "front_end",
        text: "the server's front end takes longer than the engine",
        codes: &["P8"],
        client: Seen::Undecided,
        figure: Figure::Ttft,
        at_least: 2.0,
        needs_objective: false,
        level: (0.25, 0.55),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let rate = world.rate().unwrap_or(0.4 * ground.capacity);
            let most_us = 1e6 / rate * between(draws, 0.5, 0.85);
            if draws.chance(0.5) {
                world.settings.frontend_overhead_us = most_us;
            } else {
                world.settings.frontend_token_us = most_us / world.tokens().0;
            }
            if world.rate().is_none() {
                at_rate(world, rate);
            }
        },
        relieve: |world, _| {
            let usual = Settings::default();
            with(world, |settings| {
                settings.frontend_overhead_us = usual.frontend_overhead_us;
                settings.frontend_token_us = usual.frontend_token_us;
            })
        },
    },
    Cause {
        id: "speculation",
        text: "drafted tokens are hardly ever taken",
        codes: &["D10", "D11"],
        client: Seen::Undecided,
        figure: Figure::Tpot,
        at_least: 1.15,
        needs_objective: false,
        level: (0.2, 0.5),
        shape: as_it_is,
        inject: |world, _, draws| {
            world.settings.num_speculative_tokens = 3 + draws.below(4) as u32;
            world.settings.acceptance_rate = between(draws, 0.02, 0.2);
            world.settings.draft_share = between(draws, 0.08, 0.2);
        },
        relieve: |world, _| with(world, |settings| settings.num_speculative_tokens = 0),
    },
    Cause {
        id: "adapters",
        text: "requests wait for a place for their adapter",
        codes: &["Q6"],
        client: Seen::Undecided,
        figure: Figure::Ttft,
        at_least: 2.0,
        needs_objective: false,
        level: (0.2, 0.5),
        shape: as_it_is,
        inject: |world, _, draws| {
            world.adapters = 5 + draws.below(12) as u32;
            world.settings.max_loras = 1 + draws.below(3) as u32;
            world.settings.lora_load_ms = ratio(draws, 20.0, 150.0);
        },
        relieve: |world, _| with(world, |settings| settings.max_loras = 0),
    },
    Cause {
        id: "lengths",
        text: "answers are as long as the model likes",
        codes: &["V5"],
        client: Seen::Undecided,
        figure: Figure::E2el,
        at_least: 0.0,
        needs_objective: false,
        level: (0.25, 0.5),
        shape: |world, draws| {
            world.natural = Some(between(draws, 0.15, 0.35));
            let (_, answer) = world.tokens();
            world.output = Lengths::fixed((answer * 4.0) as u32).expect("above 0");
        },
        inject: no_more,
        relieve: |world, _| World { natural: None, ..world.clone() },
    },
    Cause {
        id: "errors",
        text: "something in front of the server refuses a part of the requests",
        codes: &["V7"],
        client: Seen::Undecided,
        figure: Figure::Ttft,
        at_least: 0.0,
        needs_objective: false,
        level: (0.25, 0.55),
        shape: as_it_is,
        inject: |world, ground, draws| {
            let rate = world.rate().unwrap_or(0.4 * ground.capacity);
            at_rate(world, rate);
            world.refused = between(draws, 0.05, 0.4);
        },
        relieve: |world, _| World { refused: 0.0, ..world.clone() },
    },
];

/// Pairs that can be in one world, the order being that of injection.
pub static PAIRS: &[(&str, &str)] = &[
    ("seats", "distance"),
    ("seats", "proxy_coalesces"),
    ("seats", "errors"),
    ("seats", "speculation"),
    ("kv", "distance"),
    ("kv", "errors"),
    ("kv", "proxy_coalesces"),
    ("interference", "distance"),
    ("interference", "front_end"),
    ("interference", "errors"),
    ("prefix_off", "interference"),
    ("prefix_off", "distance"),
    ("prefix_off", "proxy_coalesces"),
    ("front_end", "host"),
    ("front_end", "speculation"),
    ("front_end", "distance"),
    ("host", "distance"),
    ("host", "client"),
    ("host", "errors"),
    ("speculation", "distance"),
    ("speculation", "client"),
    ("adapters", "proxy_coalesces"),
    ("adapters", "errors"),
    ("slow_replica", "distance"),
    ("slow_replica", "proxy_coalesces"),
    ("over_saturation", "errors"),
    ("over_saturation", "proxy_coalesces"),
    ("client", "proxy_coalesces"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn causes_have_names_of_their_own_and_pairs_are_of_them() {
        let ids: BTreeSet<&str> = CAUSES.iter().map(|cause| cause.id).collect();
        assert_eq!(ids.len(), CAUSES.len());
        for (one, other) in PAIRS {
            assert!(ids.contains(one) && ids.contains(other) && one != other, "{one}, {other}");
        }
    }

    #[test]
    fn every_cause_has_a_rule() {
        for cause in CAUSES {
            assert!(
                insight::rule::find(cause.codes[0]).is_some(),
                "{}: {}",
                cause.id,
                cause.codes[0]
            );
        }
    }
}
