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

#[test]
fn what_one_request_misses_no_load_meets() {
    let (found, _) = planned(&with(&[]), &ask(2048, 128, "ttft:10"));
    assert_eq!((found.met, found.tries), (None, 1));
    assert_eq!(found.missed.unwrap().attainment, 0.0);
}
