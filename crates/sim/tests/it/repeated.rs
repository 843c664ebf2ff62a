//! The same seed gives the same bytes, another seed others.

use measure::PerSecond;
use sim::Settings;
use workload::arrival::Pace;
use workload::load::{Load, Stop};

use crate::whole::{run, spec};

/// All records of a run as text.
fn text(seed: u64, settings: &Settings) -> String {
    let load = Load::Open { pace: Pace::flat(PerSecond::new(200.0), 1.0) };
    let mut spec = spec(load, Stop::Count(400));
    spec.seed = seed;
    format!("{:?}", run(spec, settings))
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let mut small = Settings::default();
    for assignment in ["max_num_seqs=16", "num_gpu_blocks_override=640", "max_model_len=2048"] {
        small.set(assignment).unwrap();
    }
    let mut drafting = small.clone();
    drafting.set("num_speculative_tokens=3").unwrap();
    let mut apart = small.clone();
    for assignment in ["prefill_replicas=1", "replicas=3", "router=prefix-aware"] {
        apart.set(assignment).unwrap();
    }
    for settings in [small, drafting, apart] {
        let first = text(7, &settings);
        assert_eq!(first, text(7, &settings));
        assert_ne!(first, text(8, &settings));
    }
}
