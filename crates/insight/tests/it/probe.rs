//! The course of experiments by made answers: what is asked next, when a server
//! is left alone, and what is not concluded.

use insight::probe::{
    Conclusions, Context, EXPERIMENTS, Experiment, LEAST_INPUT, LONG, Limits, Observed, Press,
    Probe, RoundTrip, SHORT, Sample, Step, Trial,
};
use measure::finding::Confidence;

fn limits(only: &[Experiment]) -> Limits {
    Limits {
        budget_s: 1e6,
        most_users: 8,
        only: only.to_vec(),
        input: 512,
        output: 128,
        context: None,
    }
}

fn all() -> Vec<Experiment> {
    EXPERIMENTS.iter().map(|entry| entry.experiment).collect()
}

/// A server whose TTFT is this of the prompt, and whose tokens take 5 ms.
fn answered(trial: &Trial, ttft_ms: impl Fn(f64) -> f64) -> Observed {
    let (input, output) = (f64::from(trial.input), f64::from(trial.output));
    let ttft_ms = ttft_ms(input);
    let sample = Sample {
        label: None,
        input,
        output,
        cached: None,
        ttft_ms,
        wait_ms: 0.0,
        e2e_ms: ttft_ms + 5.0 * (output - 1.0),
        tpot_ms: (output > 1.0).then_some(5.0),
    };
    let count = trial.requests as usize;
    Observed { samples: vec![sample; count], planned: count, ..Observed::default() }
}

fn refusal(trial: &Trial, retry_after_s: Option<f64>) -> Observed {
    let message = Some("http_status 429: slow down".to_owned());
    let planned = trial.requests as usize;
    Observed { planned, failed: 3, refused: 3, message, retry_after_s, ..Observed::default() }
}

/// Goes through all of it, with time standing still; gives what was sent.
fn go(probe: &mut Probe, mut answer: impl FnMut(&Trial) -> Observed) -> (Vec<Trial>, Vec<f64>) {
    let (mut trials, mut waits) = (Vec::new(), Vec::new());
    while let Some(step) = probe.next(0.0) {
        match step {
            Step::RoundTrips(count) => {
                probe.took_round_trips(vec![RoundTrip::default(); count as usize]);
            }
            Step::Wait(s) => waits.push(s),
            Step::Trial(trial) => {
                trials.push(trial);
                probe.took(trial, answer(&trial));
            }
        }
    }
    (trials, waits)
}

fn conclude(probe: &Probe) -> Conclusions {
    probe.conclude(&Context::default())
}

#[test]
fn everything_is_made_once_and_in_order_with_new_prompts_but_for_one_trial() {
    let mut probe = Probe::new(limits(&all()));
    let (trials, waits) = go(&mut probe, |trial| answered(trial, |s| 20.0 + 0.05 * s));
    let order: Vec<Experiment> = trials.iter().map(|trial| trial.experiment).collect();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(waits, [] as [f64; 0]);
    assert!(trials.iter().all(|trial| trial.press.users() <= 8));
    let mut series: Vec<u32> = trials.iter().map(|trial| trial.series).collect();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), trials.len() - 1, "one trial sends what was sent before");
    assert_eq!(conclude(&probe).left_out, []);
}

/// The counter-examples of a loaded machine: an intercept of −17 ms.
#[test]
fn a_negative_intercept_is_no_rate_and_asks_for_a_repeat() {
    let mut probe = Probe::new(limits(&[Experiment::Lengths]));
    go(&mut probe, |trial| answered(trial, |s| (-17.0 + 0.1 * s).max(3.0)));
    let found = conclude(&probe);
    assert!(found.figures.lengths.unwrap().fit.is_err());
    let told = found.missing.iter().find(|what| what.en.starts_with("the prefill rate")).unwrap();
    assert!(told.en.contains("repeat"), "{told:?}");
    assert!(told.zh.contains("重测"), "{told:?}");
}

#[test]
fn a_server_that_refuses_is_asked_for_half_and_then_for_nothing() {
    let mut probe = Probe::new(limits(&[Experiment::Ladder, Experiment::Contexts]));
    let first = |trial: &Trial| match trial.press.users() {
        6.. => refusal(trial, Some(7.0)),
        _ => answered(trial, |_| 20.0),
    };
    let (trials, waits) = go(&mut probe, first);
    assert_eq!(waits, [7.0]);
    let after = trials.iter().skip_while(|trial| trial.press.users() < 6).skip(1);
    let after: Vec<u32> = after.map(|trial| trial.press.users()).collect();
    assert!(!after.is_empty() && after.iter().all(|users| *users <= 3), "{after:?}");
    let found = conclude(&probe);
    assert!(found.left_out[0].why.en.contains("3 requests with 6 in flight"), "{found:?}");

    let mut probe = Probe::new(limits(&all()));
    let twice = |trial: &Trial| match trial.press.users() {
        2.. => refusal(trial, None),
        _ => answered(trial, |_| 20.0),
    };
    let (trials, waits) = go(&mut probe, twice);
    assert_eq!(waits, [2.0]);
    assert_eq!(trials.iter().filter(|trial| trial.press.users() > 1).count(), 1);
    // The most that are left are one, and one is all that it takes.
    assert_eq!(conclude(&probe).halted, None);

    let mut probe = Probe::new(limits(&all()));
    let (trials, _) = go(&mut probe, |trial| refusal(trial, None));
    assert_eq!(trials.len(), 1, "it refused a request by itself");
    let found = conclude(&probe);
    assert!(found.halted.unwrap().en.contains("slow down"));
    assert_eq!(found.left_out.len(), all().len() - 2, "all but the transport and the baseline");
}

#[test]
fn failures_and_an_end_of_the_budget_end_it() {
    let broken = |trial: &Trial| Observed {
        failed: 3,
        message: Some("disconnected".to_owned()),
        ..answered(trial, |_| 20.0)
    };
    let cut = |trial: &Trial| Observed { is_cut: true, ..answered(trial, |_| 20.0) };
    for (answer, word) in
        [(&broken as &dyn Fn(&Trial) -> Observed, "disconnected"), (&cut, "budget")]
    {
        let mut probe = Probe::new(limits(&all()));
        let (trials, _) = go(&mut probe, answer);
        assert_eq!(trials.len(), 1);
        assert!(conclude(&probe).halted.unwrap().en.contains(word), "{word}");
    }
}

#[test]
fn a_trial_that_does_not_fit_is_left_out_and_shorter_ones_are_made() {
    let mut probe = Probe::new(Limits { budget_s: 10.0, ..limits(&all()) });
    let (mut elapsed_s, mut made) = (0.0, Vec::new());
    while let Some(step) = probe.next(elapsed_s) {
        match step {
            Step::RoundTrips(_) => probe.took_round_trips(vec![RoundTrip::default()]),
            Step::Wait(s) => elapsed_s += s,
            Step::Trial(trial) => {
                let Press::Users(users) = trial.press else { panic!("rates do not fit") };
                let observed = answered(&trial, |s| 20.0 + 0.05 * s);
                let each_s = observed.samples[0].e2e_ms / 1e3;
                elapsed_s += each_s * f64::from(trial.requests.div_ceil(users));
                made.push(trial.experiment);
                probe.took(trial, observed);
            }
        }
    }
    assert!(elapsed_s <= 10.0, "{elapsed_s}");
    let left: Vec<Experiment> =
        conclude(&probe).left_out.iter().map(|left| left.experiment).collect();
    assert!(left.contains(&Experiment::Rates) || left.contains(&Experiment::Canary), "{left:?}");
    assert!(made.contains(&Experiment::Lengths) && made.contains(&Experiment::Ladder), "{made:?}");
    // Of two trials that say something together only, none or both are made.
    let prefixes = made.iter().filter(|one| **one == Experiment::Prefix).count();
    assert!(prefixes == 0 || prefixes == 2, "{made:?}");
}

#[test]
fn where_prompts_are_slow_shorter_ones_are_sent() {
    let longest = |ms_per_token: f64| {
        let slow = Limits { budget_s: 100.0, ..limits(&[Experiment::Lengths]) };
        let mut probe = Probe::new(slow);
        let (trials, _) = go(&mut probe, |trial| answered(trial, |s| 20.0 + ms_per_token * s));
        let lengths: Vec<u32> = trials
            .iter()
            .filter(|trial| trial.experiment == Experiment::Lengths)
            .map(|trial| trial.input)
            .collect();
        assert!(lengths.len() >= 5 && lengths.is_sorted(), "{lengths:?}");
        assert!(conclude(&probe).figures.lengths.unwrap().fit.is_ok());
        *lengths.last().unwrap()
    };
    assert_eq!(longest(0.05), 4_096);
    assert!((256..1_024).contains(&longest(6.0)), "{}", longest(6.0));
}

#[test]
fn a_context_that_is_known_is_kept_to() {
    let context = 1_000;
    let mut probe = Probe::new(Limits { context: Some(context), ..limits(&all()) });
    let (trials, _) = go(&mut probe, |trial| answered(trial, |s| 20.0 + 0.05 * s));
    assert!(trials.iter().all(|trial| trial.input + trial.output <= context), "{trials:?}");
    let left = conclude(&probe).left_out;
    assert!(left.iter().any(|left| left.experiment == Experiment::Contexts), "{left:?}");
}

fn rules(found: &Conclusions) -> Vec<&'static str> {
    found.findings.iter().map(|finding| finding.rule).collect()
}

/// The usual server, with something else about one experiment.
fn but_for(experiment: Experiment, change: impl Fn(&Trial, &mut Observed)) -> Conclusions {
    let mut probe = Probe::new(limits(&all()));
    go(&mut probe, |trial| {
        let mut observed = answered(trial, |s| 20.0 + 0.05 * s);
        if trial.experiment == experiment {
            change(trial, &mut observed);
        }
        observed
    });
    let found = conclude(&probe);
    assert!(found.findings.iter().all(|finding| finding.confidence < Confidence::Confirmed));
    found
}

#[test]
fn tokens_that_come_at_the_end_of_answers_of_any_length_are_held_back() {
    let at_the_end = |_: &Trial, observed: &mut Observed| {
        observed.samples.iter_mut().for_each(|sample| sample.ttft_ms = sample.e2e_ms);
    };
    let found = but_for(Experiment::Outputs, at_the_end);
    assert!(rules(&found).contains(&"proxy_buffering"), "{:?}", rules(&found));
    let fit = found.figures.outputs.unwrap().fit.unwrap();
    assert!((fit.curve.b - 5.0).abs() < 0.01, "the time of a token is found all the same");
    let streamed = but_for(Experiment::Outputs, |_, _| {});
    assert!(!rules(&streamed).contains(&"proxy_buffering"));
}

#[test]
fn what_needs_no_accelerator_and_waits_all_the_same_waits_at_the_front_end() {
    let slow = |ms: f64| {
        let mut probe = Probe::new(limits(&[Experiment::Transport, Experiment::Ladder]));
        let trip = |ms| RoundTrip { connect_ms: 0.2, secure_ms: None, answer_ms: Some(ms) };
        while let Some(step) = probe.next(0.0) {
            match step {
                Step::RoundTrips(count) => {
                    probe.took_round_trips(vec![trip(2.0); count as usize]);
                }
                Step::Wait(_) => {}
                Step::Trial(trial) => {
                    let observed = answered(&trial, |_| 60.0);
                    probe.took(trial, Observed { beside: vec![trip(ms); 5], ..observed });
                }
            }
        }
        conclude(&probe)
    };
    assert_eq!(rules(&slow(80.0)), ["front_end"]);
    assert_eq!(rules(&slow(6.0)), [] as [&str; 0]);
}

/// Canaries by label: a tenth each.
fn canaries(observed: &mut Observed, short_ms: &[f64], long_ms: &[f64]) {
    let mut samples = observed.samples.iter_mut();
    for (label, all) in [(SHORT, short_ms), (LONG, long_ms)] {
        for (ms, sample) in all.iter().zip(samples.by_ref()) {
            (sample.label, sample.ttft_ms) = (Some(label.to_owned()), *ms);
            sample.input = if label == SHORT { f64::from(LEAST_INPUT) } else { 512.0 };
        }
    }
}

#[test]
fn a_prefill_that_takes_longer_beside_others_is_told_from_waiting() {
    let slowed = |_: &Trial, observed: &mut Observed| {
        canaries(observed, &[25.0, 26.0, 25.0, 27.0, 26.0], &[150.0, 151.0, 149.0, 150.0, 150.0]);
    };
    let found = but_for(Experiment::Canary, slowed);
    assert!(rules(&found).contains(&"prefill_slowed"), "{:?}", rules(&found));
    // Where the wait scatters, the difference is none.
    let queued = |_: &Trial, observed: &mut Observed| {
        canaries(
            observed,
            &[25.0, 900.0, 300.0, 700.0, 100.0],
            &[800.0, 30.0, 900.0, 200.0, 650.0],
        );
    };
    let found = but_for(Experiment::Canary, queued);
    assert!(!rules(&found).contains(&"prefill_slowed"));
    assert!(!found.figures.canaries.unwrap().is_telling());
    let told = found.missing.iter().any(|what| what.en.starts_with("prefill under load"));
    assert!(told, "{:?}", found.missing);
}
