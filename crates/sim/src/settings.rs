//! What an engine is like, as its user says it: the model, the accelerators,
//! the scheduler's limits and the coefficients of its speed. One table holds
//! every setting; `--set`, the help and the documents are made of it.

use measure::deployment::Deployment;
use measure::hardware::{
    self, Accelerator, Attention, FeedForward, FlopsPerSecond, ModelShape, Precision,
};

use crate::cost::Cost;
use crate::replica::{Slowdown, Totals, nanoseconds};
use crate::scheduler::{Limits, Policy, Speculation};

/// An engine and the replicas of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The model.
    pub model: ModelShape,
    /// What it runs on.
    pub accelerator: Accelerator,
    /// Peak of its arithmetic, operations a second; `None` is the catalogue's.
    pub peak_flops_per_s: Option<f64>,
    /// Peak of its memory traffic, bytes a second; `None` is the catalogue's.
    pub peak_bytes_per_s: Option<f64>,
    /// Its memory, bytes; `None` is the catalogue's.
    pub memory_bytes: Option<f64>,
    /// Precision of weights, and of what they are multiplied with.
    pub quantization: Precision,
    /// Precision of keys and values.
    pub kv_cache_dtype: Precision,
    /// Accelerators that share each layer.
    pub tensor_parallel_size: u32,
    /// Stages of layers, one after the other.
    pub pipeline_parallel_size: u32,
    /// Whether experts lie whole on accelerators.
    pub enable_expert_parallel: bool,
    /// Sequences that run at a time.
    pub max_num_seqs: u32,
    /// Tokens computed in one step.
    pub max_num_batched_tokens: u32,
    /// Prompt and answer of one sequence; `None` is what the model can.
    pub max_model_len: Option<u32>,
    /// Tokens in a block of keys and values.
    pub block_size: u32,
    /// Share of an accelerator's memory that the engine takes, 0 to 1.
    pub gpu_memory_utilization: f64,
    /// Memory of each accelerator that holds neither weights nor keys and
    /// values, bytes.
    pub reserved_bytes: f64,
    /// Blocks, whatever fits; `None` counts them.
    pub num_gpu_blocks_override: Option<u32>,
    /// Whether blocks are found again.
    pub enable_prefix_caching: bool,
    /// Whether a prompt may be computed in several steps.
    pub enable_chunked_prefill: bool,
    /// The most tokens of one sequence in one step; 0 for no such limit.
    pub long_prefill_token_threshold: u32,
    /// Who comes first.
    pub scheduling_policy: Policy,
    /// Share of blocks that an admission leaves free, 0 to 1.
    pub watermark: f64,
    /// Whether a whole prompt must fit before its first part is computed.
    pub scheduler_reserve_full_isl: bool,
    /// Whether the next step is planned while one runs.
    pub async_scheduling: bool,
    /// Whether steps are launched kernel by kernel, without recorded graphs.
    pub enforce_eager: bool,
    /// Adapters whose sequences can be in one step; 0 lets all in, at no cost.
    pub max_loras: u32,
    /// What loading an adapter takes, milliseconds.
    pub lora_load_ms: f64,
    /// Tokens drafted for each step of a sequence; 0 for none.
    pub num_speculative_tokens: u32,
    /// Probability that a drafted token is taken, 0 to 1.
    pub acceptance_rate: f64,
    /// What drafting one token takes, as a share of the step.
    pub draft_share: f64,
    /// Share of the peak that arithmetic sustains, 0 to 1.
    pub compute_efficiency: f64,
    /// Share of the peak bandwidth that memory traffic sustains, 0 to 1.
    pub memory_efficiency: f64,
    /// Share of the shorter of arithmetic and memory traffic that runs beside the
    /// longer, 0 to 1.
    pub overlap: f64,
    /// Share of a link's bandwidth that collectives sustain, 0 to 1.
    pub link_efficiency: f64,
    /// What one collective takes besides, microseconds.
    pub collective_latency_us: f64,
    /// What the accelerators take for a step besides, microseconds.
    pub step_overhead_us: f64,
    /// What launching one layer kernel by kernel takes, microseconds.
    pub eager_layer_overhead_us: f64,
    /// What the scheduler takes for a step, microseconds.
    pub host_overhead_us: f64,
    /// What it takes for each sequence in it, microseconds.
    pub request_overhead_us: f64,
    /// What the front end takes to take a request in, microseconds. Requests are
    /// taken in one after the other.
    pub frontend_overhead_us: f64,
    /// The same for each token of its prompt, microseconds.
    pub frontend_token_us: f64,
    /// From the end of a step to its tokens' way out, microseconds.
    pub output_overhead_us: f64,
    /// Engines behind the router.
    pub replicas: u32,
    /// Which of them gets a request.
    pub router: Router,
    /// Engines that compute prompts only; 0 lets every engine do both.
    pub prefill_replicas: u32,
    /// Bandwidth from an engine that computes prompts to one that writes
    /// answers, GB/s (10⁹ bytes).
    pub kv_transfer_gb_s: f64,
    /// What a transfer takes besides, milliseconds.
    pub kv_transfer_latency_ms: f64,
    /// How many times as long the first replica's steps take.
    pub slow_replica_factor: f64,
    /// When the accelerators get hot and slow, seconds from the start.
    pub throttle_after_s: f64,
    /// For how long, seconds.
    pub throttle_for_s: f64,
    /// How many times as long steps take then.
    pub throttle_factor: f64,
    /// Until when nothing is computed, seconds from the start: weights are
    /// loaded, graphs recorded.
    pub cold_start_s: f64,
}

/// Which replica gets a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Router {
    /// Each in turn.
    #[default]
    RoundRobin,
    /// The one with the fewest requests.
    LeastLoaded,
    /// The one that last saw the longest part of the prompt's beginning, unless
    /// it has far more requests than another.
    PrefixAware,
    /// All of a session to one.
    SessionSticky,
}

impl Router {
    /// All of them.
    pub const ALL: &[Self] =
        &[Self::RoundRobin, Self::LeastLoaded, Self::PrefixAware, Self::SessionSticky];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::LeastLoaded => "least-loaded",
            Self::PrefixAware => "prefix-aware",
            Self::SessionSticky => "session-sticky",
        }
    }
}

impl Default for Settings {
    /// An 8B model of Llama's on one H100, with the limits that vLLM 0.27 gives
    /// a server on it, and rates that such engines usually sustain.
    fn default() -> Self {
        let model = hardware::model("llama-3.1-8b").expect("the catalogue has it");
        let accelerator = hardware::accelerator("h100-sxm").expect("the catalogue has it");
        Self {
            model: model.clone(),
            accelerator: *accelerator,
            peak_flops_per_s: None,
            peak_bytes_per_s: None,
            memory_bytes: None,
            quantization: Precision::Bf16,
            kv_cache_dtype: Precision::Bf16,
            tensor_parallel_size: 1,
            pipeline_parallel_size: 1,
            enable_expert_parallel: false,
            max_num_seqs: 1024,
            max_num_batched_tokens: 8192,
            max_model_len: None,
            block_size: 16,
            gpu_memory_utilization: 0.92,
            reserved_bytes: 4e9,
            num_gpu_blocks_override: None,
            enable_prefix_caching: true,
            enable_chunked_prefill: true,
            long_prefill_token_threshold: 0,
            scheduling_policy: Policy::FirstCome,
            watermark: 0.0,
            scheduler_reserve_full_isl: true,
            async_scheduling: true,
            enforce_eager: false,
            max_loras: 0,
            lora_load_ms: 50.0,
            num_speculative_tokens: 0,
            acceptance_rate: 0.7,
            draft_share: 0.05,
            compute_efficiency: 0.6,
            memory_efficiency: 0.75,
            overlap: 1.0,
            link_efficiency: 0.7,
            collective_latency_us: 8.0,
            step_overhead_us: 300.0,
            eager_layer_overhead_us: 150.0,
            host_overhead_us: 700.0,
            request_overhead_us: 12.0,
            frontend_overhead_us: 2_000.0,
            frontend_token_us: 0.5,
            output_overhead_us: 400.0,
            replicas: 1,
            router: Router::RoundRobin,
            prefill_replicas: 0,
            kv_transfer_gb_s: 50.0,
            kv_transfer_latency_ms: 2.0,
            slow_replica_factor: 1.0,
            throttle_after_s: 0.0,
            throttle_for_s: 0.0,
            throttle_factor: 1.0,
            cold_start_s: 0.0,
        }
    }
}

/// A setting that cannot be had, in words that name it, the rule and the
/// arithmetic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No setting has this name.
    #[error("there is no setting {name:?}; near ones are {}", near.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names that are near.
        near: Vec<&'static str>,
    },
    /// The text is no value of the setting.
    #[error("{name}: {value:?} {rule}")]
    Value {
        /// The setting.
        name: &'static str,
        /// The text.
        value: String,
        /// What it must be.
        rule: String,
    },
    /// `--set` without a value.
    #[error("{0:?} is no setting; write NAME=VALUE, such as max_num_seqs=64")]
    Shape(String),
    /// The settings cannot be together.
    #[error("{0}")]
    Together(String),
}

/// One setting: its name, what it means, and how it is read and shown.
#[derive(Clone, Copy)]
pub struct Setting {
    /// As vLLM's flag is called, where it has one.
    pub name: &'static str,
    /// What it means, with its unit.
    pub text: &'static str,
    set: fn(&mut Settings, &str) -> Result<(), String>,
    get: fn(&Settings) -> String,
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A row whose field is read by `$read` and shown by `$show`.
macro_rules! setting {
    ($field:ident, $text:literal, $read:expr, $show:expr) => {
        Setting {
            name: stringify!($field),
            text: $text,
            set: |settings, value| {
                settings.$field = $read(value)?;
                Ok(())
            },
            get: |settings| $show(&settings.$field),
        }
    };
}

/// A row that stands for a figure of the catalogue, in a unit of `$unit`.
macro_rules! override_of {
    ($name:literal, $text:literal, $field:ident, $unit:literal) => {
        Setting {
            name: $name,
            text: $text,
            set: |settings, value| {
                settings.$field = match value {
                    "auto" => None,
                    _ => Some(above_0(value).map_err(|rule| format!("{rule}, nor auto"))? * $unit),
                };
                Ok(())
            },
            get: |settings| {
                settings.$field.map_or_else(|| "auto".to_owned(), |own| (own / $unit).to_string())
            },
        }
    };
}

/// Every setting.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "model",
        text: "model of the catalogue, or a config.json of Hugging Face or its folder",
        set: |settings, value| {
            settings.model = hardware::model(value).map_err(|unknown| unknown.to_string())?.clone();
            Ok(())
        },
        get: |settings| settings.model.id.to_string(),
    },
    Setting {
        name: "accelerator",
        text: "accelerator of the catalogue",
        set: |settings, value| {
            settings.accelerator =
                *hardware::accelerator(value).map_err(|unknown| unknown.to_string())?;
            Ok(())
        },
        get: |settings| settings.accelerator.id.to_owned(),
    },
    override_of!(
        "peak_tflops",
        "peak of arithmetic of one accelerator, 10¹² operations a second; auto is the catalogue's",
        peak_flops_per_s,
        1e12
    ),
    override_of!(
        "peak_gb_s",
        "peak of its memory traffic, GB/s; auto is the catalogue's",
        peak_bytes_per_s,
        1e9
    ),
    override_of!(
        "memory_gb",
        "its memory, GB (10⁹ bytes); auto is the catalogue's",
        memory_bytes,
        1e9
    ),
    setting!(
        quantization,
        "precision of weights: fp32, bf16 (fp16 is the same), fp8, int8, int4, fp4",
        precision,
        precision_shown
    ),
    setting!(kv_cache_dtype, "precision of keys and values", precision, precision_shown),
    setting!(tensor_parallel_size, "accelerators that share each layer", at_least_1, shown),
    setting!(pipeline_parallel_size, "stages of layers, one after the other", at_least_1, shown),
    setting!(
        enable_expert_parallel,
        "experts lie whole on accelerators (true, false)",
        switch,
        shown
    ),
    setting!(max_num_seqs, "sequences that run at a time", at_least_1, shown),
    setting!(max_num_batched_tokens, "tokens computed in one step", at_least_1, shown),
    setting!(
        max_model_len,
        "tokens of prompt and answer; auto is what the model can",
        or_auto,
        shown_or_auto
    ),
    setting!(block_size, "tokens in a block of keys and values", at_least_1, shown),
    setting!(
        gpu_memory_utilization,
        "share of the memory that the engine takes, 0 to 1",
        share,
        shown
    ),
    Setting {
        name: "reserved_gb",
        text: "memory of each accelerator for other things than weights, keys and values, GB (10⁹ bytes)",
        set: |settings, value| {
            settings.reserved_bytes = positive_or_0(value)? * 1e9;
            Ok(())
        },
        get: |settings| (settings.reserved_bytes / 1e9).to_string(),
    },
    setting!(
        num_gpu_blocks_override,
        "blocks, whatever fits; auto counts them",
        or_auto,
        shown_or_auto
    ),
    setting!(enable_prefix_caching, "whether blocks are found again (true, false)", switch, shown),
    setting!(
        enable_chunked_prefill,
        "whether a prompt may be computed in several steps (true, false)",
        switch,
        shown
    ),
    setting!(
        long_prefill_token_threshold,
        "the most tokens of one sequence in one step; 0 for no such limit",
        whole,
        shown
    ),
    setting!(scheduling_policy, "who comes first: fcfs or priority", policy, policy_shown),
    setting!(watermark, "share of blocks that an admission leaves free, 0 to 1", share_or_0, shown),
    setting!(
        scheduler_reserve_full_isl,
        "whether a whole prompt must fit before its first part is computed (true, false)",
        switch,
        shown
    ),
    setting!(
        async_scheduling,
        "whether the next step is planned while one runs (true, false)",
        switch,
        shown
    ),
    setting!(
        enforce_eager,
        "launch kernel by kernel, without recorded graphs (true, false)",
        switch,
        shown
    ),
    setting!(
        max_loras,
        "adapters whose sequences can be in one step; 0 lets all in, at no cost",
        whole,
        shown
    ),
    setting!(lora_load_ms, "what loading an adapter takes, ms", positive_or_0, shown),
    setting!(
        num_speculative_tokens,
        "tokens drafted for each step of a sequence; 0 for none",
        whole,
        shown
    ),
    setting!(
        acceptance_rate,
        "probability that a drafted token is taken, 0 to 1",
        share_or_0,
        shown
    ),
    setting!(
        draft_share,
        "what drafting one token takes, as a share of the step",
        positive_or_0,
        shown
    ),
    setting!(
        compute_efficiency,
        "share of the peak that arithmetic sustains, 0 to 1",
        share,
        shown
    ),
    setting!(
        memory_efficiency,
        "share of the peak bandwidth that memory traffic sustains, 0 to 1",
        share,
        shown
    ),
    setting!(
        overlap,
        "share of the shorter of arithmetic and memory traffic that runs beside the longer, 0 to 1; \
         on one thread of a processor they take turns (0)",
        part,
        shown
    ),
    setting!(
        link_efficiency,
        "share of a link's bandwidth that collectives sustain, 0 to 1",
        share,
        shown
    ),
    setting!(collective_latency_us, "what one collective takes besides, µs", positive_or_0, shown),
    setting!(
        step_overhead_us,
        "what the accelerators take for a step besides, µs",
        positive_or_0,
        shown
    ),
    setting!(
        eager_layer_overhead_us,
        "what launching one layer kernel by kernel takes, µs",
        positive_or_0,
        shown
    ),
    setting!(
        host_overhead_us,
        "what the scheduler takes for a step, µs; async_scheduling hides it behind the step before",
        positive_or_0,
        shown
    ),
    setting!(
        request_overhead_us,
        "what it takes for each sequence of a step, µs",
        positive_or_0,
        shown
    ),
    setting!(
        frontend_overhead_us,
        "what the front end takes to take a request in, one after the other, µs",
        positive_or_0,
        shown
    ),
    setting!(frontend_token_us, "the same for each token of its prompt, µs", positive_or_0, shown),
    setting!(
        output_overhead_us,
        "from the end of a step to its tokens' way out, µs",
        positive_or_0,
        shown
    ),
    setting!(replicas, "engines behind the router", at_least_1_replica, shown),
    setting!(
        router,
        "which engine gets a request: round-robin, least-loaded, prefix-aware, session-sticky",
        router,
        router_shown
    ),
    setting!(
        prefill_replicas,
        "engines that compute prompts only; 0 lets every engine do both",
        replicas,
        shown
    ),
    setting!(
        kv_transfer_gb_s,
        "bandwidth from an engine that computes prompts to one that writes answers, GB/s",
        above_0,
        shown
    ),
    setting!(kv_transfer_latency_ms, "what a transfer takes besides, ms", positive_or_0, shown),
    setting!(
        slow_replica_factor,
        "a fault: how many times as long the first replica's steps take",
        at_least_1_times,
        shown
    ),
    setting!(
        throttle_after_s,
        "a fault: when the accelerators get hot and slow, s from the start",
        positive_or_0,
        shown
    ),
    setting!(throttle_for_s, "a fault: for how long they stay so, s", positive_or_0, shown),
    setting!(
        throttle_factor,
        "a fault: how many times as long steps take then",
        at_least_1_times,
        shown
    ),
    setting!(
        cold_start_s,
        "a fault: until when nothing is computed, s from the start",
        positive_or_0,
        shown
    ),
];

fn precision_shown(precision: &Precision) -> String {
    precision.name().to_owned()
}

fn shown(value: &impl ToString) -> String {
    value.to_string()
}

fn shown_or_auto(value: &Option<u32>) -> String {
    value.map_or_else(|| "auto".to_owned(), |value| value.to_string())
}

fn policy_shown(policy: &Policy) -> String {
    match policy {
        Policy::FirstCome => "fcfs".to_owned(),
        Policy::Priority => "priority".to_owned(),
    }
}

fn router_shown(router: &Router) -> String {
    router.name().to_owned()
}

fn precision(text: &str) -> Result<Precision, String> {
    Precision::parse(text).map_err(|error| error.to_string())
}

fn policy(text: &str) -> Result<Policy, String> {
    match text {
        "fcfs" => Ok(Policy::FirstCome),
        "priority" => Ok(Policy::Priority),
        _ => Err("is not one of fcfs, priority".to_owned()),
    }
}

fn router(text: &str) -> Result<Router, String> {
    let same = |router: &&Router| router.name() == text.replace('_', "-");
    Router::ALL.iter().find(same).copied().ok_or_else(|| {
        let names: Vec<&str> = Router::ALL.iter().map(|router| router.name()).collect();
        format!("is not one of {}", names.join(", "))
    })
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        _ => Err("is not one of true, false".to_owned()),
    }
}

/// The largest count: more blocks or tokens than any machine holds.
const LARGEST_COUNT: u32 = 100_000_000;

/// The most replicas: each has a table of its blocks.
const MOST_REPLICAS: u32 = 1024;

/// The most blocks of one replica.
const MOST_BLOCKS: u32 = 1 << 25;

/// The least rate or share: times are divided by it.
const LEAST: f64 = 1e-6;

/// The largest number of anything else: a year has 3·10⁷ seconds.
const LARGEST: f64 = 1e9;

fn whole(text: &str) -> Result<u32, String> {
    let read = text.parse().ok().filter(|n| *n <= LARGEST_COUNT);
    read.ok_or_else(|| format!("is not a whole number from 0 to {LARGEST_COUNT}"))
}

fn replicas(text: &str) -> Result<u32, String> {
    let read = text.parse().ok().filter(|n| *n <= MOST_REPLICAS);
    read.ok_or_else(|| format!("is not a whole number from 0 to {MOST_REPLICAS}"))
}

fn at_least_1_replica(text: &str) -> Result<u32, String> {
    let read = replicas(text).ok().filter(|n| *n > 0);
    read.ok_or_else(|| format!("is not a whole number from 1 to {MOST_REPLICAS}"))
}

fn at_least_1(text: &str) -> Result<u32, String> {
    let read = whole(text).ok().filter(|n| *n > 0);
    read.ok_or_else(|| format!("is not a whole number from 1 to {LARGEST_COUNT}"))
}

fn or_auto(text: &str) -> Result<Option<u32>, String> {
    match text {
        "auto" => Ok(None),
        _ => at_least_1(text).map(Some).map_err(|rule| format!("{rule}, nor auto")),
    }
}

fn number(text: &str, rule: &str, fits: impl Fn(f64) -> bool) -> Result<f64, String> {
    let read = text.parse().ok().filter(|n: &f64| n.abs() <= LARGEST && fits(*n));
    read.ok_or_else(|| format!("is not a number {rule}"))
}

fn positive_or_0(text: &str) -> Result<f64, String> {
    number(text, "from 0 to 10⁹", |n| n >= 0.0)
}

fn above_0(text: &str) -> Result<f64, String> {
    number(text, "from 10⁻⁶ to 10⁹", |n| n >= LEAST)
}

fn at_least_1_times(text: &str) -> Result<f64, String> {
    number(text, "from 1 to 1000", |n| (1.0..=1_000.0).contains(&n))
}

fn share(text: &str) -> Result<f64, String> {
    number(text, "from 10⁻⁶ to 1", |n| (LEAST..=1.0).contains(&n))
}

fn share_or_0(text: &str) -> Result<f64, String> {
    number(text, "from 0 and below 1", |n| (0.0..1.0).contains(&n))
}

fn part(text: &str) -> Result<f64, String> {
    number(text, "from 0 to 1", |n| (0.0..=1.0).contains(&n))
}

impl Setting {
    /// The setting of this name; underscores and dashes are the same, and so are
    /// the short names that people use.
    ///
    /// # Errors
    /// [`SettingsError::Unknown`] with the names that are nearest.
    pub fn find(name: &str) -> Result<&'static Self, SettingsError> {
        let plain = name.trim().trim_start_matches('-').replace('-', "_");
        let plain = match plain.as_str() {
            "tensor_parallel" | "tp" => "tensor_parallel_size",
            "pipeline_parallel" | "pp" => "pipeline_parallel_size",
            "data_parallel" | "data_parallel_size" | "dp" => "replicas",
            other => other,
        };
        SETTINGS.iter().find(|setting| setting.name == plain).ok_or_else(|| {
            let names = SETTINGS.iter().map(|setting| setting.name);
            SettingsError::Unknown {
                name: name.to_owned(),
                near: hardware::lookup::nearest(plain, names),
            }
        })
    }

    /// Its value in these settings.
    pub fn value(&self, settings: &Settings) -> String {
        (self.get)(settings)
    }
}

impl Settings {
    /// Sets `NAME=VALUE`.
    ///
    /// # Errors
    /// An unknown name, with near ones; a value that is none, with the rule.
    pub fn set(&mut self, assignment: &str) -> Result<(), SettingsError> {
        let (name, value) = assignment
            .split_once('=')
            .ok_or_else(|| SettingsError::Shape(assignment.to_owned()))?;
        let setting = Setting::find(name)?;
        let value = value.trim();
        (setting.set)(self, value).map_err(|rule| SettingsError::Value {
            name: setting.name,
            value: value.to_owned(),
            rule,
        })
    }

    /// Names and values that differ from the default.
    pub fn changes(&self) -> Vec<(&'static str, String)> {
        let usual = Self::default();
        SETTINGS
            .iter()
            .map(|setting| (setting.name, setting.value(self), setting.value(&usual)))
            .filter(|(_, own, usual)| own != usual)
            .map(|(name, own, _)| (name, own))
            .collect()
    }

    /// Accelerators of one replica.
    pub const fn accelerators_per_replica(&self) -> u32 {
        self.tensor_parallel_size.saturating_mul(self.pipeline_parallel_size)
    }

    /// All accelerators.
    pub const fn accelerators(&self) -> u32 {
        self.replicas
            .saturating_add(self.prefill_replicas)
            .saturating_mul(self.accelerators_per_replica())
    }

    /// The machines of this engine as a user would say them.
    pub fn deployment(&self) -> Deployment {
        let each = self.accelerators_per_replica();
        let of = |role: &str, replicas: u32| (role.to_owned(), replicas.saturating_mul(each));
        let topology = if self.prefill_replicas > 0 {
            vec![of("prefill", self.prefill_replicas), of("decode", self.replicas)]
        } else {
            vec![of("", self.replicas)]
        };
        Deployment {
            model: Some(self.model.clone()),
            accelerator: Some(self.accelerator_as_set()),
            topology,
            tensor_parallel: Some(self.tensor_parallel_size),
            pipeline_parallel: Some(self.pipeline_parallel_size),
            weights: Some(self.quantization),
            kv_cache: Some(self.kv_cache_dtype),
            price_per_hour: None,
            seats: Some(self.max_num_seqs),
            token_budget: Some(self.max_num_batched_tokens),
        }
    }

    /// The accelerator with the peaks that were set in the place of its own.
    fn accelerator_as_set(&self) -> Accelerator {
        let own = self.accelerator;
        let peaks = |rate: f64| FlopsPerSecond {
            fp32: own.flops.fp32,
            bf16: Some(rate),
            fp8: own.flops.fp8.map(|_| rate),
            int8: own.flops.int8.map(|_| rate),
            fp4: own.flops.fp4.map(|_| rate),
        };
        Accelerator {
            flops: self.peak_flops_per_s.map_or(own.flops, peaks),
            bandwidth_bytes_per_s: self.peak_bytes_per_s.unwrap_or(own.bandwidth_bytes_per_s),
            memory_bytes: self.memory_bytes.unwrap_or(own.memory_bytes),
            ..own
        }
    }

    /// Prompt and answer of one sequence, tokens.
    pub fn context(&self) -> u32 {
        self.max_model_len.unwrap_or(self.model.context)
    }

    fn memory_of_one(&self) -> f64 {
        self.memory_bytes.unwrap_or(self.accelerator.memory_bytes)
    }

    fn peak_of_one(&self) -> Option<f64> {
        self.peak_flops_per_s.or_else(|| self.accelerator.flops_per_s(self.quantization))
    }

    /// What each accelerator's memory holds, bytes.
    pub fn memory(&self) -> Memory {
        let shards = f64::from(self.accelerators_per_replica());
        let tensor = self.tensor_parallel_size;
        let stages = f64::from(self.pipeline_parallel_size);
        Memory {
            usable: self.memory_of_one() * self.gpu_memory_utilization,
            weights: self.model.weight_bytes(self.quantization) / shards,
            reserved: self.reserved_bytes,
            kv_per_token: self.model.kv_bytes_per_token_of_one(self.kv_cache_dtype, tensor)
                / stages,
        }
    }

    /// Blocks of keys and values of one replica.
    ///
    /// # Errors
    /// The arithmetic, where weights or one whole sequence do not fit.
    pub fn blocks(&self) -> Result<u32, SettingsError> {
        let memory = self.memory();
        let gb = |bytes: f64| format!("{:.1} GB", bytes / 1e9);
        let block = memory.kv_per_token * f64::from(self.block_size);
        let left = memory.usable - memory.weights - memory.reserved;
        let arithmetic = format!(
            "{} × {} = {} for the engine, weights of {} at {} over {} accelerators {}, {} reserved",
            gb(self.memory_of_one()),
            self.gpu_memory_utilization,
            gb(memory.usable),
            self.model.name,
            self.quantization.name(),
            self.accelerators_per_replica(),
            gb(memory.weights),
            gb(memory.reserved),
        );
        if left < block {
            return Err(SettingsError::Together(format!(
                "{} does not fit on {}: {arithmetic}; that leaves {} for keys and values. Raise \
                 tensor_parallel_size, quantize, or take an accelerator with more memory",
                self.model.name,
                self.accelerator.name,
                gb(left),
            )));
        }
        // One block is never given away.
        let fits = (left / block) as u32 - 1;
        let blocks = self.num_gpu_blocks_override.unwrap_or(fits);
        if blocks > MOST_BLOCKS {
            return Err(SettingsError::Together(format!(
                "{blocks} blocks are more than the {MOST_BLOCKS} that are modelled; raise block_size, or \
                 set num_gpu_blocks_override"
            )));
        }
        let tokens = u64::from(blocks) * u64::from(self.block_size);
        if tokens < u64::from(self.context()) {
            return Err(SettingsError::Together(format!(
                "a sequence of max_model_len {} does not fit into the KV cache of {tokens} tokens \
                 ({blocks} blocks of {}): {arithmetic}, {:.0} bytes a token. Lower max_model_len \
                 or leave more memory",
                self.context(),
                self.block_size,
                memory.kv_per_token,
            )));
        }
        Ok(blocks)
    }

    /// The scheduler's limits.
    ///
    /// # Errors
    /// What cannot be together, with the arithmetic.
    pub fn limits(&self, seed: u64) -> Result<Limits, SettingsError> {
        self.check()?;
        let blocks = self.blocks()?;
        // With stages a sequence waits for its token to leave the last of them.
        let ahead = self.async_scheduling && self.pipeline_parallel_size == 1;
        let speculation =
            Speculation { drafted: self.num_speculative_tokens, acceptance: self.acceptance_rate };
        Ok(Limits {
            max_num_seqs: self.max_num_seqs,
            max_num_batched_tokens: self.max_num_batched_tokens,
            max_model_len: self.context(),
            block_size: self.block_size,
            blocks,
            enable_prefix_caching: self.enable_prefix_caching,
            enable_chunked_prefill: self.enable_chunked_prefill,
            long_prefill_token_threshold: self.long_prefill_token_threshold,
            policy: self.scheduling_policy,
            watermark_blocks: (self.watermark * f64::from(blocks)) as u32,
            reserve_full_isl: self.scheduler_reserve_full_isl,
            depth: self.pipeline_parallel_size + u32::from(ahead),
            plans_ahead: ahead,
            max_loras: self.max_loras,
            speculation: (self.num_speculative_tokens > 0).then_some(speculation),
            window: match self.model.attention {
                Attention::Grouped { window: Some(window) } => Some(window.tokens),
                _ => None,
            },
            seed,
        })
    }

    fn check(&self) -> Result<(), SettingsError> {
        let together = |rule: String| Err(SettingsError::Together(rule));
        if self.peak_of_one().is_none() {
            return together(format!(
                "{} has no units for {}; set another quantization",
                self.accelerator.name,
                self.quantization.name()
            ));
        }
        if !self.enable_chunked_prefill && self.max_num_batched_tokens < self.context() {
            return together(format!(
                "without chunked prefill a prompt of max_model_len {} needs as many \
                 max_num_batched_tokens, which are {}",
                self.context(),
                self.max_num_batched_tokens
            ));
        }
        if self.max_num_batched_tokens < self.block_size {
            return together(format!(
                "max_num_batched_tokens {} is less than one block of block_size {}",
                self.max_num_batched_tokens, self.block_size
            ));
        }
        let drafts = self.num_speculative_tokens.saturating_add(1);
        if self.max_num_batched_tokens < drafts {
            return together(format!(
                "max_num_batched_tokens {} does not hold a token and {} drafted ones",
                self.max_num_batched_tokens, self.num_speculative_tokens
            ));
        }
        if self.context() > self.model.context {
            return together(format!(
                "max_model_len {} is more than the {} positions of {}",
                self.context(),
                self.model.context,
                self.model.name
            ));
        }
        if self.pipeline_parallel_size > self.model.layers {
            return together(format!(
                "pipeline_parallel_size {} is more than the {} layers of {}",
                self.pipeline_parallel_size, self.model.layers, self.model.name
            ));
        }
        if self.tensor_parallel_size > self.model.heads
            || !self.model.heads.is_multiple_of(self.tensor_parallel_size)
        {
            return together(format!(
                "tensor_parallel_size {} does not divide the {} heads of {}",
                self.tensor_parallel_size, self.model.heads, self.model.name
            ));
        }
        Ok(())
    }

    /// When the steps of a replica, counted from 0, are slower than usual.
    pub fn slowdowns(&self, replica: usize) -> Vec<Slowdown> {
        let ns = |seconds: f64| nanoseconds(seconds);
        let always = Slowdown {
            from_ns: 0,
            until_ns: u64::MAX,
            factor: if replica == 0 { self.slow_replica_factor } else { 1.0 },
        };
        let hot = Slowdown {
            from_ns: ns(self.throttle_after_s),
            until_ns: ns(self.throttle_after_s + self.throttle_for_s),
            factor: self.throttle_factor,
        };
        [always, hot].into_iter().filter(|slowdown| slowdown.factor > 1.0).collect()
    }

    /// The coefficients of its speed.
    pub fn cost(&self) -> Cost {
        let model = &self.model;
        let tensor = f64::from(self.tensor_parallel_size);
        let stages = f64::from(self.pipeline_parallel_size);
        let weights = |tokens: f64| model.weight_bytes_read(self.quantization, tokens);
        let touched_by_one = weights(1.0) - weights(0.0);
        let routed_bytes = match model.feed_forward {
            FeedForward::Dense { .. } => 0.0,
            FeedForward::Mixture { .. } => weights(f64::INFINITY) - weights(0.0),
        };
        let copies = model
            .kv_bytes_per_token_of_one(self.kv_cache_dtype, self.tensor_parallel_size)
            * tensor
            / model.kv_bytes_per_token(self.kv_cache_dtype);
        let window_share = match model.attention {
            Attention::Grouped { window: Some(window) } => {
                f64::from(window.layers) / f64::from(model.layers)
            }
            _ => 0.0,
        };
        let peak = self.peak_of_one().unwrap_or(0.0);
        let bandwidth = self.peak_bytes_per_s.unwrap_or(self.accelerator.bandwidth_bytes_per_s);
        let collectives = self.collectives();
        let eager = if self.enforce_eager {
            f64::from(model.layers) * self.eager_layer_overhead_us
        } else {
            0.0
        };
        Cost {
            flops_per_token: model.linear_flops_per_token(),
            flops_per_prefill_pair: model.attention_flops(1.0, 0.0),
            flops_per_decode_pair: model.attention_flops_per_pair(),
            flops_per_sampled: model.logits_flops(),
            window_share,
            peak_flops_per_s: peak * tensor,
            compute_efficiency: self.compute_efficiency,
            weight_bytes: weights(0.0),
            routed_bytes,
            routed_share: if routed_bytes > 0.0 { touched_by_one / routed_bytes } else { 0.0 },
            kv_bytes_per_token: model.kv_bytes_per_token(self.kv_cache_dtype) * copies,
            peak_bytes_per_s: bandwidth * tensor,
            memory_efficiency: self.memory_efficiency,
            in_turn_share: 1.0 - self.overlap,
            link_bytes_per_token: collectives.bytes_per_token,
            link_bytes_per_s: self.accelerator.link_bytes_per_s * self.link_efficiency,
            link_latency_s: collectives.count * self.collective_latency_us * 1e-6,
            stages,
            step_overhead_s: (self.step_overhead_us + eager) * 1e-6,
            draft_share: f64::from(self.num_speculative_tokens) * self.draft_share,
            adapter_load_s: self.lora_load_ms * 1e-3,
            host_s: self.host_overhead_us * 1e-6,
            host_per_sequence_s: self.request_overhead_us * 1e-6,
        }
    }

    /// The share of the peaks of all accelerators that was used in `seconds`: of
    /// their arithmetic (HFU, with tokens computed again and drafts that were not
    /// taken) and of their memory traffic (MBU).
    pub fn shares_of_peaks(&self, totals: &Totals, seconds: f64) -> (f64, f64) {
        let accelerators = f64::from(self.accelerators());
        let bandwidth = self.peak_bytes_per_s.unwrap_or(self.accelerator.bandwidth_bytes_per_s);
        let peak = self.peak_of_one().unwrap_or(f64::INFINITY);
        let all_s = accelerators * seconds;
        (totals.flops / (peak * all_s), totals.bytes / (bandwidth * all_s))
    }

    /// What the accelerators of a replica send each other in a step.
    fn collectives(&self) -> Collectives {
        let tensor = f64::from(self.tensor_parallel_size);
        let stages = f64::from(self.pipeline_parallel_size);
        let (layers, hidden) = (f64::from(self.model.layers), f64::from(self.model.hidden));
        // Activations are sums in 16 bits, whatever the weights are.
        let one = hidden * Precision::Bf16.bytes_per_value();
        let mut bytes_per_token = 0.0;
        let mut count = 0.0;
        if self.tensor_parallel_size > 1 {
            let passed = (tensor - 1.0) / tensor;
            // A ring passes everything twice, to add and to spread.
            let reduced = 2.0 * passed * one;
            let behind = match self.model.feed_forward {
                FeedForward::Mixture { experts_per_token, .. } if self.enable_expert_parallel => {
                    // To the experts and back, each accelerator its share of tokens.
                    2.0 * passed / tensor * f64::from(experts_per_token) * one
                }
                _ => reduced,
            };
            bytes_per_token += layers * (reduced + behind);
            count += 2.0 * layers;
        }
        if self.pipeline_parallel_size > 1 {
            bytes_per_token += (stages - 1.0) * one;
            count += stages - 1.0;
        }
        Collectives { bytes_per_token, count }
    }

    /// Bytes of keys and values of one token, all layers.
    pub fn kv_bytes_per_token(&self) -> f64 {
        self.model.kv_bytes_per_token(self.kv_cache_dtype)
    }
}

struct Collectives {
    bytes_per_token: f64,
    count: f64,
}

/// What an accelerator's memory is for, bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// What the engine takes.
    pub usable: f64,
    /// Its share of the weights.
    pub weights: f64,
    /// What is for other things.
    pub reserved: f64,
    /// Its share of one token's keys and values.
    pub kv_per_token: f64,
}
