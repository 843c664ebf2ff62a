//! Figures of a run that are no function of one request.

use measure::facts::LoadKind;
use measure::slo::Slo;
use measure::summary::Summary;
use measure::{
    Carries, FailureKind, NotSentKind, Outcome, ReasoningDisclosure, Record, Span, Tokens,
    Undefined, Warnings,
};

use crate::build::{
    TEXT, close, facts, failed, metric, open_for, records, request, streamed, summary,
};

#[test]
fn the_tail_of_a_rate_is_the_rate_of_the_tail() {
    // TPOT 10, 20 … 100 ms: its p90 is 91 ms, so 90 % get at least 1000 ÷ 91
    // tokens a second. The p90 of the rates would be 50 and more.
    let records =
        records((1..=10).map(|step| streamed(step, 100, 100 + 10 * 10 * i64::from(step), 11)));
    let summary = summary(&records, &facts(LoadKind::Burst));
    let p90 = summary.interactivity_tok_s.iter().find(|(name, _)| *name == "p90").unwrap();
    close(p90.1, 1_000.0 / 91.0);
}

#[test]
fn buffered_and_whole_answers_stay_out_of_tpot_and_gaps() {
    let records = records([
        request(0).event(900, TEXT).event(900, TEXT).usage(2).warn(Warnings::NOT_STREAMED),
        request(1).event(800, Carries::WHOLE).usage(4).warn(Warnings::NOT_STREAMED),
        streamed(2, 100, 200, 11),
    ]);
    let summary = summary(&records, &facts(LoadKind::Burst));
    for key in ["tpot_ms", "icl_ms"] {
        let metric = metric(&summary.metrics, key);
        assert_eq!((metric.n, metric.undefined.clone()), (1, vec![(Undefined::NotStreamed, 2)]));
    }
    assert_eq!(metric(&summary.metrics, "e2el_ms").n, 3);
    assert_eq!(metric(&summary.metrics, "ttft_ms").n, 2);
    assert!(summary.caveats.iter().any(|caveat| caveat.id == "not_streamed"));
    assert_eq!(summary.answer_warnings, [("not_streamed", 2)]);
}

#[test]
fn outcomes_are_counted_by_class_kind_and_status() {
    let records = records([
        streamed(0, 100, 200, 11),
        request(1).event(50, Carries::FINISH).outcome(Outcome::Empty),
        failed(2, FailureKind::HttpStatus)
            .status(429)
            .edit(|r| r.answer.message = Some("slow down".to_owned())),
        failed(3, FailureKind::HttpStatus).status(500),
        failed(4, FailureKind::Dns),
        request(5).outcome(Outcome::NotSent(NotSentKind::WorkerLost)).unreleased(),
        request(6).outcome(Outcome::Cancelled).unreleased(),
    ]);
    let outcomes = summary(&records, &facts(LoadKind::Open)).outcomes;
    assert_eq!(
        (outcomes.ok, outcomes.empty, outcomes.failed, outcomes.not_sent, outcomes.cancelled),
        (1, 1, 3, 1, 1)
    );
    assert_eq!(outcomes.total(), 7);
    let kinds: Vec<_> = outcomes.by_kind.into_iter().collect();
    assert_eq!(kinds, [("dns", 1), ("http_status", 2), ("worker_lost", 1)]);
    assert_eq!(outcomes.by_status.into_iter().collect::<Vec<_>>(), [(429, 1), (500, 1)]);
    assert_eq!(outcomes.messages["http_status"], "slow down");
}

#[test]
fn client_faults_leave_the_denominator_and_failures_stay_in_it() {
    let records = records([
        streamed(0, 100, 200, 11),
        request(1).event(50, Carries::FINISH).outcome(Outcome::Empty),
        failed(2, FailureKind::Truncated),
        request(3).outcome(Outcome::NotSent(NotSentKind::ClientResource)).unreleased(),
    ]);
    let goodput = summary(&records, &open_for(4, "ttft:500")).goodput.unwrap();
    assert_eq!((goodput.good, goodput.of, goodput.client_faults), (1, 3, 1));
    close(goodput.req_s, 0.25);
}

#[test]
fn a_stopped_request_is_bad_only_after_it_broke_its_slo() {
    let stopped = |index| request(index).outcome(Outcome::Cancelled);
    let records = records([
        stopped(0).ended(600),                    // no token in 600 ms: missed
        stopped(1).ended(400),                    // could still have come
        stopped(2).event(450, TEXT).ended(5_000), // in time, end unknown
        stopped(3).event(550, TEXT).ended(5_000), // first token too late
    ]);
    let ttft = summary(&records, &open_for(4, "ttft:500")).goodput.unwrap();
    assert_eq!((ttft.good, ttft.of, ttft.undecided), (0, 2, 2));
    assert_eq!(ttft.bounds, Some((0.0, 0.5)));
    let e2el = summary(&records, &open_for(4, "e2el:3000")).goodput.unwrap();
    assert_eq!((e2el.of, e2el.undecided), (2, 2));
}

#[test]
fn a_success_that_cannot_be_judged_is_undecided_and_said() {
    let records = records([
        request(0).event(800, Carries::WHOLE).usage(4).warn(Warnings::NOT_STREAMED),
        // Stopped late: it is decided, and must not hide the one above.
        request(1).outcome(Outcome::Cancelled).ended(9_000),
    ]);
    let summary = summary(&records, &open_for(2, "ttft:500"));
    assert_eq!(summary.goodput.as_ref().unwrap().undecided, 1);
    assert!(summary.caveats.iter().any(|caveat| caveat.id == "slo_not_measurable"));
}

#[test]
fn attainment_is_given_for_each_label_value() {
    let records = records([
        streamed(0, 100, 200, 11).label("tenant", "a"),
        streamed(1, 900, 950, 11).label("tenant", "a"),
        streamed(2, 100, 200, 11).label("tenant", "b"),
        request(3).outcome(Outcome::Cancelled).unreleased().label("tenant", "b"),
    ]);
    let goodput = summary(&records, &open_for(4, "ttft:500")).goodput.unwrap();
    let labels: Vec<_> =
        goodput.per_label.iter().map(|l| (l.value.as_str(), l.good, l.of)).collect();
    assert_eq!(labels, [("a", 1, 2), ("b", 1, 1)]);
}

#[test]
fn without_terms_a_failure_is_not_good() {
    let mut facts = facts(LoadKind::Burst);
    facts.slo = Some(Slo::default());
    let records = records([streamed(0, 100, 200, 11), failed(1, FailureKind::Dns)]);
    let goodput = summary(&records, &facts).goodput.unwrap();
    assert_eq!((goodput.good, goodput.of), (1, 2));
}

#[test]
fn cached_prompt_tokens_are_no_computed_ones() {
    let record = streamed(0, 100, 2_000, 11)
        .prompt(1_000)
        .edit(|r| r.answer.counts.cached = Some(Tokens::new(800)))
        .record();
    let summary = summary(&[record], &facts(LoadKind::Burst));
    let throughput = &summary.throughput;
    close(throughput.input_tok_s, 500.0);
    close(throughput.input_cached_tok_s, 400.0);
    close(throughput.input_computed_tok_s, 100.0);
    close(throughput.total_tok_s, 505.5);
    assert!(summary.caveats.iter().any(|caveat| caveat.id == "cached_prompts"));
}

/// Four answers of 250 prompt tokens each, so many of them cached.
fn cached_run(regime: &str, prefix: Option<u32>, cached: [Option<u32>; 4]) -> Summary {
    let records: Vec<Record> = (0u32..)
        .zip(cached)
        .map(|(index, cached)| {
            let build = streamed(index, 100, 2_000, 11).prompt(250).edit(|record| {
                record.answer.counts.cached = cached.map(Tokens::new);
                record.planned.input_tokens = Some(Tokens::new(240));
            });
            build.record()
        })
        .collect();
    let mut facts = facts(LoadKind::Burst);
    facts.workload.cache_regime = regime.to_owned();
    facts.workload.prefix_tokens = prefix;
    summary(&records, &facts)
}

#[test]
fn the_cached_share_counts_the_unsaid_as_uncached_where_others_say() {
    let share = |cached| cached_run("as-is", None, cached).tokens.cached_share;
    assert_eq!(share([Some(250), None, Some(0), None]), Some(0.25));
    assert_eq!(share([Some(0); 4]), Some(0.0));
    assert_eq!(share([None; 4]), None);
    let unsaid = cached_run("as-is", None, [None; 4]);
    assert!(unsaid.absent.iter().any(|(key, _)| key == "tokens.cached_share"));
}

#[test]
fn a_cache_state_that_the_counts_contradict_is_said() {
    let said = |regime, prefix, cached: u32| {
        let caveats = cached_run(regime, prefix, [Some(cached); 4]).caveats;
        let ids = ["cache_regime_contradicted", "warm_prefix_cache"];
        caveats.iter().map(|caveat| caveat.id).find(|id| ids.contains(id))
    };
    let contradicted = Some("cache_regime_contradicted");
    assert_eq!(said("none", Some(0), 0), None);
    assert_eq!(said("none", Some(0), 30), None, "a template is the same in all prompts");
    assert_eq!(said("none", Some(0), 200), contradicted);
    assert_eq!(said("none", Some(200), 200), contradicted, "nothing is shared under none");
    // Of 250 tokens 100 were sent before the run.
    assert_eq!(said("warm", Some(100), 96), None, "caches keep whole blocks");
    assert_eq!(said("warm", Some(100), 4), contradicted);
    assert_eq!(said("warm", None, 249), None);
    assert_eq!(said("warm", None, 0), contradicted);
    let warm = Some("warm_prefix_cache");
    assert_eq!(said("as-is", Some(0), 200), warm);
    assert_eq!(said("cold", Some(0), 200), warm);
    assert_eq!(said("cold", Some(0), 18), None, "the nonce and the template");
    assert_eq!(said("as-is", Some(100), 100), None, "shared by design");
    assert_eq!(said("as-is", None, 200), None, "what own prompts share is not known");
}

#[test]
fn tokens_of_broken_answers_are_wasted_and_no_throughput() {
    let records = records([
        streamed(0, 100, 2_000, 11),
        failed(1, FailureKind::Disconnected).event(100, TEXT).event(200, TEXT).ended(300),
    ]);
    let throughput = summary(&records, &facts(LoadKind::Burst)).throughput;
    close(throughput.output_tok_s, 5.5);
    close(throughput.wasted_tok_s, 1.0);
    close(throughput.req_s, 0.5);
}

#[test]
fn missing_counts_are_absent_and_not_zero() {
    let records = records([request(0).event(100, TEXT).event(200, TEXT)]);
    let summary = summary(&records, &facts(LoadKind::Burst));
    // Output falls back to chunks and says so; the prompt's length is unknown.
    close(summary.throughput.output_tok_s, 10.0);
    assert_eq!((summary.throughput.input_tok_s, summary.throughput.total_tok_s), (None, None));
    assert!(summary.caveats.iter().any(|caveat| caveat.id == "tokens_from_chunks"));
    for key in ["throughput.input_tok_s", "goodput", "steady", "load.offered_rps", "mfu"] {
        assert!(summary.reasons().iter().any(|(absent, _)| absent == key), "{key}");
    }
}

#[test]
fn a_run_without_success_names_the_reason_of_every_missing_metric() {
    let records = records([failed(0, FailureKind::HttpStatus).status(500)]);
    let summary = summary(&records, &facts(LoadKind::Burst));
    for key in ["ttft_ms", "icl_ms", "itl_ms"] {
        let key = format!("metrics.{key}");
        let (_, reason) = summary.absent.iter().find(|(absent, _)| *absent == key).unwrap();
        assert_eq!(reason.en, Undefined::NotOk.text());
    }
    assert_eq!(summary.validity.verdict.name(), "INVALID");
}

#[test]
fn nothing_at_all_is_no_panic_and_no_figure() {
    for kind in LoadKind::ALL {
        let summary = summary(&[], &facts(*kind));
        assert_eq!(summary.load.duration_s, None);
        assert_eq!(summary.throughput.req_s, None);
        let absent = |key: &str| summary.absent.iter().any(|(absent, _)| absent == key);
        assert!(absent("load.duration_s") && absent("throughput.req_s"));
    }
}

#[test]
fn hidden_reasoning_weighs_by_what_could_be_timed() {
    // 900 ms for the 9 later of 10 visible tokens; 20 more were hidden.
    let mut build = request(0).usage(30).reasoning(Some(20), ReasoningDisclosure::Unknown);
    for step in 0..10 {
        build = build.event(1_000 + 100 * step, TEXT);
    }
    let records = records([build, streamed(1, 100, 120, 2)]);
    let summary = summary(&records, &facts(LoadKind::Burst));
    close(summary.weighted.tpot_token_weighted_ms, (900.0 + 20.0) / 10.0);
    close(summary.weighted.itl_mean_ms, (900.0 + 20.0) / 10.0);
    assert!(metric(&summary.metrics, "itl_ms").figure("p50").is_some());
}

#[test]
fn a_time_out_that_had_its_first_token_has_a_ttft() {
    let records = records([
        streamed(0, 100, 200, 11),
        failed(1, FailureKind::TotalTimeout).event(150, TEXT).ended(3_000),
        failed(2, FailureKind::TotalTimeout).ended(3_000),
    ]);
    let mut facts = facts(LoadKind::Burst);
    facts.request_timeout = Some(Span::from_ms(3_000));
    let summary = summary(&records, &facts);
    let ttft = metric(&summary.all_requests_metrics, "ttft_ms");
    close(ttft.figure("p50"), 150.0);
    assert!(ttft.at_least.contains(&("max", 3_000.0)));
    close(ttft.censored, 1.0 / 3.0);
    close(metric(&summary.all_requests_metrics, "e2el_ms").censored, 2.0 / 3.0);
}

#[test]
fn anthropics_prompt_count_leaves_cached_tokens_out() {
    let answered = |index| {
        streamed(index, 100, 200, 11).edit(|r| {
            r.answer.counts.prompt = Some(Tokens::new(70));
            r.answer.counts.cached = Some(Tokens::new(24));
        })
    };
    let records = records([answered(0)]);
    let of = |api: &str| {
        let mut facts = facts(LoadKind::Burst);
        facts.api = api.to_owned();
        summary(&records, &facts)
    };
    let (anthropic, openai) = (of("anthropic"), of("openai-chat"));
    assert_eq!((anthropic.tokens.input, openai.tokens.input), (Some(94), Some(70)));
    let ratio = |s: &measure::summary::Summary| {
        s.throughput.input_computed_tok_s.unwrap() / s.throughput.input_tok_s.unwrap()
    };
    close(Some(ratio(&anthropic)), 70.0 / 94.0);
    close(Some(ratio(&openai)), 46.0 / 70.0);
}

#[test]
fn what_a_cap_let_go_after_the_arrivals_is_not_released_in_their_window() {
    // Four arrivals in a window of 1 s; the cap lets the last two go later.
    let records = records((0..4u32).map(|index| {
        streamed(index, 100, 200, 11).edit(move |r| {
            r.stamps.intended_at = measure::At::from_us(i64::from(index) * 250_000);
            let held = if index < 2 { 0 } else { 3_000_000 };
            r.stamps.released_at = Some(r.stamps.intended_at + Span::from_us(held));
            r.stamps.sent_at = r.stamps.released_at;
        })
    }));
    let load = summary(&records, &facts(LoadKind::Capped)).load;
    close(load.offered_rps, 4.0);
    close(load.released_rps, 2.0);
}

#[test]
fn an_interrupted_closed_loop_owed_nothing_more() {
    let mut records = records([streamed(0, 100, 200, 11), streamed(1, 100, 200, 11)]);
    let more = (2..10).map(|index| request(index).outcome(Outcome::Cancelled).unreleased());
    records.extend(crate::build::records(more));
    let mut facts = facts(LoadKind::Closed);
    facts.interrupted = true;
    let reasons = summary(&records, &facts).validity.reasons;
    assert!(reasons.iter().all(|reason| reason.id != "released_below_planned"), "{reasons:?}");
}

/// Twenty seconds with 3 and 7 arrivals in turn, which is about as uneven as a
/// Poisson process, sent in bunches every four seconds, which is not.
#[test]
fn only_arrivals_of_one_rate_are_judged_as_a_poisson_process() {
    let planned = (0..20i64).flat_map(|second| {
        let count = if second % 2 == 0 { 3 } else { 7 };
        (0..count).map(move |place| second * 1_000 + place * 1_000 / count)
    });
    let records = records(planned.enumerate().map(|(index, ms)| {
        let sent = (ms / 4_000 + 1) * 4_000;
        streamed(index as u32, 50, 100, 2).at(sent).intended(ms)
    }));
    let is_judged = |rate: Option<f64>, burstiness| {
        let mut facts = facts(LoadKind::Open);
        (facts.load.request_rate, facts.load.burstiness) = (rate, burstiness);
        let reasons = summary(&records, &facts).validity.reasons;
        reasons.iter().any(|reason| reason.id == "arrivals_not_poisson")
    };
    assert!(is_judged(Some(5.0), Some(1.0)));
    assert!(!is_judged(None, Some(1.0)), "the rate changes by plan");
    assert!(!is_judged(Some(5.0), Some(0.5)));
    assert!(!is_judged(Some(5.0), None), "no gamma process");
}
