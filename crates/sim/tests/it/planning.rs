//! What a plan predicts: below the bound, near it where the engine is perfect, and
//! at the edge of its objective.

use measure::capacity::{Ask, Prediction};
use measure::slo::Slo;
use sim::{Settings, planning};

fn ask(input: u32, output: u32, slo: &str) -> Ask {
    let slo = Slo::parse_goodput(slo.split_whitespace()).unwrap();
    Ask { input, output, slo, price_per_hour: None }
}

fn with(sets: &[&str]) -> Settings {
    let mut settings = Settings::default();
    settings.set("max_model_len=4096").unwrap();
    sets.iter().for_each(|set| settings.set(set).unwrap());
    settings
}

/// What is predicted, and the bound.
fn planned(settings: &Settings, ask: &Ask) -> (Prediction, f64) {
    let engine = settings.engine().unwrap();
    let most = engine.requests_per_s(ask, engine.largest_batch(ask));
    (planning::predict(settings, ask, 0.99, most, 0).unwrap(), most)
}

#[test]
fn the_highest_rate_meets_the_objective_and_a_little_more_does_not() {
    let ask = ask(512, 128, "ttft:500 tpot:30");
    let (found, most) = planned(&with(&[]), &ask);
    let (met, missed) = (found.met.unwrap(), found.missed.unwrap());
    assert!(met.attainment >= 0.99 && !met.grows, "{met:?}");
    assert!(missed.attainment < 0.99 || missed.grows, "{missed:?}");
    assert!(missed.req_s > met.req_s && missed.req_s <= 1.02 * met.req_s, "{found:?}");
    assert!((0.2..1.0).contains(&(met.req_s / most)), "{} of {most}", met.req_s);
    // The same seed plans the same.
    assert_eq!(planned(&with(&[]), &ask).0, found);
}

/// An engine that reaches its peaks, takes nothing besides and has no objective
/// to meet finishes what the bound says, but for the steps of its ends. Prompts of
/// 1024 tokens that came whole would leave the memory idle in some steps and the
/// arithmetic in others: a budget of a step's share of them spreads them evenly.
#[test]
fn a_perfect_engine_reaches_its_bound() {
    let perfect = [
        "compute_efficiency=1",
        "memory_efficiency=1",
        "step_overhead_us=0",
        "host_overhead_us=0",
        "request_overhead_us=0",
        "frontend_overhead_us=0",
        "frontend_token_us=0",
        "output_overhead_us=0",
        "max_num_seqs=64",
    ];
    let share = |input: u32, output: u32, budget: &str| {
        let sets: Vec<&str> = perfect.iter().copied().chain([budget]).collect();
        let (found, most) = planned(&with(&sets), &ask(input, output, ""));
        found.met.unwrap().req_s / most
    };
    let short = share(128, 256, "max_num_batched_tokens=8192");
    assert!((0.9..1.03).contains(&short), "{short}");
    let even = share(1024, 128, "max_num_batched_tokens=592");
    assert!((0.9..1.03).contains(&even), "{even}");
    let whole = share(1024, 128, "max_num_batched_tokens=8192");
    assert!(whole < 0.9 * even, "{whole} whole, {even} spread");
}

/// A queue that grows for ever keeps its TPOT: the rate is not what arrives.
#[test]
fn a_limit_of_tpot_alone_does_not_hide_a_queue() {
    let settings = with(&["max_num_seqs=8"]);
    let (found, most) = planned(&settings, &ask(512, 128, "tpot:50"));
    let met = found.met.unwrap();
    let (free, _) = planned(&settings, &ask(512, 128, ""));
    let saturated = free.met.unwrap().req_s;
    assert!(met.req_s <= 1.05 * saturated, "{} of {saturated}", met.req_s);
    assert!(met.req_s <= most && found.missed.is_some_and(|missed| missed.grows), "{found:?}");
}

/// With two seats a hundredth of the requests waits long before half of the bound.
#[test]
fn an_edge_far_below_the_first_guess_is_found_as_closely() {
    let (found, most) = planned(&with(&["max_num_seqs=2"]), &ask(512, 128, "ttft:100"));
    let (met, missed) = (found.met.unwrap(), found.missed.unwrap());
    assert!(met.req_s < 0.2 * most, "{} of {most}", met.req_s);
    assert!(missed.req_s > met.req_s && missed.req_s <= 1.02 * met.req_s, "{found:?}");
    assert!(found.tries <= 15, "{found:?}");
}

#[test]
fn what_one_request_misses_no_load_meets() {
    let (found, _) = planned(&with(&[]), &ask(2048, 128, "ttft:10"));
    assert_eq!((found.met, found.tries), (None, 1));
    assert_eq!(found.missed.unwrap().attainment, 0.0);
}
