//! Golden vectors of every metric of one request. Each value is computed by
//! hand from the formulas of the design's table of metrics; the arithmetic
//! stands beside it.

use measure::definition::{GOODPUT, SERVICE};
use measure::metric::{How, find};
use measure::request::{Settings, Timed, Value};
use measure::{
    Carries, FailureKind, NotSentKind, Outcome, ReasoningDisclosure, Record, SourceTimes,
    Undefined, Warnings,
};

use crate::build::{
    Build, FINISH, REASONING, ROLE, TEXT, TOOL_CALL, close, failed, request, timed,
};

/// The registry's own function of a metric, so that a wrong wiring of the
/// table is found too.
fn value(record: &Record, key: &str) -> Value {
    let metric = find(key).unwrap_or_else(|| panic!("no metric {key}"));
    assert_eq!(metric.key, key);
    match metric.how {
        How::Request(value) => value(&timed(record, &GOODPUT)),
        _ => panic!("{key} is not of one request"),
    }
}

#[track_caller]
fn check(record: &Record, rights: &[(&str, f64)]) {
    for (key, right) in rights {
        close(value(record, key).unwrap_or_else(|why| panic!("{key}: {why:?}")), *right);
    }
}

#[track_caller]
fn undefined(record: &Record, rights: &[(&str, Undefined)]) {
    for (key, right) in rights {
        assert_eq!(value(record, key), Err(*right), "{key}");
    }
}

/// Intended at 1000 ms, released at 1002, sent at 1005; then, since the send:
/// head 45, role 40 (no arrival), reasoning 100 and 130, text 200 and 260,
/// finish 270, usage 300, [DONE] 301. Four tokens.
fn thoughtful() -> Build {
    request(0)
        .intended(1_000)
        .sent(1_005)
        .released(1_002)
        .headers(45)
        .event(40, ROLE)
        .event(100, REASONING)
        .event(130, REASONING)
        .event(200, TEXT)
        .event(260, TEXT)
        .event(270, FINISH)
        .event(300, Carries::USAGE)
        .event(301, Carries::DONE)
        .usage(4)
        .prompt(20)
        .reasoning(Some(2), ReasoningDisclosure::Verbatim)
}

#[test]
fn every_latency_of_a_streamed_answer() {
    check(
        &thoughtful().record(),
        &[
            ("ttft_ms", 105.0),               // 5 + 100
            ("ttfc_ms", 205.0),               // 5 + 200
            ("thinking_ms", 100.0),           // 205 − 105
            ("e2el_ms", 275.0),               // 5 + 270: usage and [DONE] do not move it
            ("generation_ms", 170.0),         // 275 − 105
            ("tpot_ms", 170.0 / 3.0),         // 170 ÷ (4 − 1)
            ("finish_lag_ms", 10.0),          // 270 − 260; 105 + (30 + 70 + 60) + 10 = 275
            ("stall_ms", 70.0),               // 130 → 200
            ("stall_share", 0.0),             // no gap above 500 ms
            ("reader_stall_ms", 0.0),         // a token lasts a reader 200 ms
            ("normalised_latency_ms", 68.75), // 275 ÷ 4
            ("client_wait_ms", 5.0),          // 1005 − 1000
            ("headers_ms", 45.0),
            ("input_tokens", 20.0),
            ("output_tokens", 4.0),
            ("tokens_per_chunk", 1.0), // 4 ÷ 4
        ],
    );
    let record = thoughtful().record();
    assert_eq!(timed(&record, &GOODPUT).gaps_streamed(), Ok(vec![30.0, 70.0, 60.0]));
}

#[test]
fn service_latencies_start_at_the_send() {
    let record = thoughtful().record();
    let service = timed(&record, &SERVICE);
    assert_eq!((service.ttft(), service.e2el()), (Ok(100.0), Ok(270.0)));
    // Differences of two instants do not depend on the start.
    assert_eq!(service.generation(), timed(&record, &GOODPUT).generation());
}

#[test]
fn a_stall_is_longer_than_its_limit_and_not_as_long() {
    let record = thoughtful().record();
    let settings = Settings { stall_ms: 60.0, ..Settings::default() };
    // Of the gaps 30, 70, 60 only one is above 60.
    close(Timed::new(&record, &GOODPUT, settings).stall_share().ok(), 1.0 / 3.0);
}

#[test]
fn a_reader_waits_for_what_has_not_come() {
    // One token a chunk lasts 200 ms at 5 tokens a second. Gaps 700, 300, 100:
    // waits 500, then 100 of 300, then nothing.
    let record = request(0)
        .event(50, TEXT)
        .event(750, TEXT)
        .event(1_050, TEXT)
        .event(1_150, TEXT.with(Carries::FINISH))
        .usage(4)
        .record();
    check(&record, &[("reader_stall_ms", 600.0), ("stall_share", 1.0 / 3.0), ("stall_ms", 700.0)]);
}

#[test]
fn p13_tokens_in_the_first_event_are_taken_out_of_the_adjusted_divisor() {
    let record = request(0)
        .event(100, TEXT)
        .event(140, TEXT)
        .event(180, TEXT.with(Carries::FINISH))
        .usage(12)
        .first_event_tokens(4)
        .record();
    check(
        &record,
        &[
            ("tpot_ms", 80.0 / 11.0),
            ("tpot_adjusted_ms", 10.0), // 80 ÷ (12 − 4)
            ("tokens_per_chunk", 4.0),
        ],
    );
    // Σ gaps 80 over the 8 tokens of the later chunks.
    assert_eq!(timed(&record, &GOODPUT).gap_weight(), Ok((80.0, 8.0)));
}

#[test]
fn the_adjusted_tpot_needs_a_first_event_known_to_carry_several_tokens() {
    let two = || request(0).event(100, TEXT).event(200, TEXT.with(Carries::FINISH));
    let key = "tpot_adjusted_ms";
    undefined(&two().usage(4).record(), &[(key, Undefined::FirstChunkUnknown)]);
    let single = two().usage(4).first_event_tokens(1).record();
    undefined(&single, &[(key, Undefined::FirstChunkUnknown)]);
    let all_in_the_first = two().usage(4).first_event_tokens(4).record();
    undefined(&all_in_the_first, &[(key, Undefined::OneToken)]);
    let buffered = two().usage(4).first_event_tokens(2).warn(Warnings::NOT_STREAMED).record();
    undefined(&buffered, &[(key, Undefined::NotStreamed)]);
}

#[test]
fn p17_one_token_has_a_ttft_and_no_gap() {
    let record = request(0).event(77, TEXT.with(Carries::FINISH)).usage(1).record();
    check(
        &record,
        &[
            ("ttft_ms", 77.0),
            ("e2el_ms", 77.0),
            ("generation_ms", 0.0),
            ("normalised_latency_ms", 77.0),
        ],
    );
    undefined(
        &record,
        &[
            ("tpot_ms", Undefined::OneToken),
            ("stall_ms", Undefined::OneArrival),
            ("stall_share", Undefined::OneArrival),
            ("reader_stall_ms", Undefined::OneArrival),
            ("tokens_per_chunk", Undefined::OneArrival),
        ],
    );
    assert_eq!(timed(&record, &GOODPUT).gaps(), Ok(vec![]));
}

#[test]
fn p10_reasoning_alone_has_no_visible_text() {
    let record = request(0)
        .event(50, REASONING)
        .event(60, REASONING)
        .event(80, FINISH)
        .usage(2)
        .reasoning(Some(2), ReasoningDisclosure::Verbatim)
        .record();
    check(&record, &[("ttft_ms", 50.0), ("e2el_ms", 80.0), ("tpot_ms", 30.0)]);
    undefined(
        &record,
        &[("ttfc_ms", Undefined::NoVisibleText), ("thinking_ms", Undefined::NoVisibleText)],
    );
}

#[test]
fn p11_a_tool_call_is_output_but_not_visible_text() {
    let record = request(0)
        .event(200, TOOL_CALL)
        .event(280, TOOL_CALL)
        .event(310, FINISH)
        .usage(12)
        .record();
    check(&record, &[("ttft_ms", 200.0), ("tpot_ms", 10.0), ("finish_lag_ms", 30.0)]);
    undefined(&record, &[("ttfc_ms", Undefined::NoVisibleText)]);
}

#[test]
fn text_without_reasoning_has_no_thinking_time() {
    let record = request(0).event(10, TEXT).event(20, TEXT).usage(2).record();
    undefined(&record, &[("thinking_ms", Undefined::NoReasoning)]);
}

#[test]
fn p12_a_running_count_that_grew_is_an_arrival() {
    // The first token's text is held back (half a character, say).
    let record = request(0)
        .event(100, Carries::COUNT_GREW.with(Carries::CHOICE))
        .event(140, TEXT)
        .event(180, TEXT.with(Carries::FINISH))
        .usage(3)
        .record();
    check(&record, &[("ttft_ms", 100.0), ("ttfc_ms", 140.0), ("tpot_ms", 40.0)]);
}

/// Text from 1000 to 1900 ms, one visible token each 100 ms; 20 further tokens
/// of reasoning are in the count.
fn hidden(shown: ReasoningDisclosure, reasoning: Option<u32>) -> Build {
    let mut build = request(0).usage(30).reasoning(reasoning, shown);
    for step in 0..10 {
        build = build.event(1_000 + 100 * step, TEXT);
    }
    build.event(1_900, FINISH)
}

#[test]
fn hidden_reasoning_is_taken_out_of_what_the_chunks_carried() {
    for shown in [ReasoningDisclosure::Unknown, ReasoningDisclosure::Redacted] {
        let record = hidden(shown, Some(20)).record();
        check(
            &record,
            &[
                ("tpot_ms", 100.0), // 900 ÷ (10 − 1), not 900 ÷ 29
                ("tokens_per_chunk", 1.0),
                ("output_tokens", 30.0),
                ("normalised_latency_ms", 1_900.0 / 30.0),
            ],
        );
        let timed = timed(&record, &GOODPUT);
        assert_eq!(timed.gap_weight(), Ok((900.0, 9.0)));
        assert_eq!(timed.single_token_arrivals(), Ok((10, 10)));
    }
}

#[test]
fn a_reasoning_summary_moves_ttft_and_leaves_tpot_to_the_visible_text() {
    let mut build = request(0).usage(30).reasoning(Some(20), ReasoningDisclosure::Summary);
    build = build.event(200, REASONING);
    for step in 0..10 {
        build = build.event(1_000 + 100 * step, TEXT);
    }
    let record = build.event(1_900, FINISH).record();
    check(
        &record,
        &[("ttft_ms", 200.0), ("ttfc_ms", 1_000.0), ("thinking_ms", 800.0), ("tpot_ms", 100.0)],
    );
    // The summary's words are no tokens of the model.
    undefined(&record, &[("tokens_per_chunk", Undefined::HiddenReasoning)]);
    assert_eq!(timed(&record, &GOODPUT).gap_weight(), Err(Undefined::HiddenReasoning));
}

#[test]
fn hidden_reasoning_of_unknown_length_leaves_no_tpot() {
    for shown in
        [ReasoningDisclosure::Summary, ReasoningDisclosure::Redacted, ReasoningDisclosure::Unknown]
    {
        let record = hidden(shown, None).record();
        undefined(&record, &[("tpot_ms", Undefined::HiddenReasoning)]);
    }
}

#[test]
fn verbatim_reasoning_is_timed_like_any_output() {
    // (275 − 105) ÷ 3 whether or not some of the four tokens are reasoning.
    check(&thoughtful().record(), &[("tpot_ms", 170.0 / 3.0)]);
}

#[test]
fn several_choices_have_gaps_of_their_own_and_no_tpot() {
    let record = request(0)
        .chunk(100, TEXT, 0, 0)
        .chunk(150, TEXT, 0, 1)
        .chunk(200, TEXT, 0, 0)
        .chunk(350, TEXT, 0, 1)
        .event(350, FINISH)
        .usage(4)
        .choices(2)
        .record();
    let timed = timed(&record, &GOODPUT);
    assert_eq!(timed.gaps_streamed(), Ok(vec![100.0, 200.0]));
    // Four tokens, of which two are the first of their choice.
    assert_eq!(timed.gap_weight(), Ok((300.0, 2.0)));
    check(&record, &[("output_tokens", 4.0), ("ttft_ms", 100.0), ("e2el_ms", 350.0)]);
    undefined(
        &record,
        &[("tpot_ms", Undefined::SeveralChoices), ("tpot_adjusted_ms", Undefined::SeveralChoices)],
    );
}

#[test]
fn several_choices_with_hidden_reasoning_have_no_tpot_either() {
    let record = hidden(ReasoningDisclosure::Unknown, Some(20)).choices(2).record();
    undefined(&record, &[("tpot_ms", Undefined::SeveralChoices)]);
}

#[test]
fn several_choices_with_known_chunk_tokens_count_only_the_later_ones() {
    let record = request(0)
        .chunk(100, TEXT, 5, 0)
        .chunk(150, TEXT, 7, 1)
        .chunk(200, TEXT, 2, 0)
        .chunk(350, TEXT, 3, 1)
        .usage(17)
        .choices(2)
        .record();
    assert_eq!(timed(&record, &GOODPUT).gap_weight(), Ok((300.0, 5.0)));
}

#[test]
fn h13_a_whole_body_has_an_end_and_nothing_to_time_before() {
    let record = request(0)
        .headers(20)
        .event(800, Carries::WHOLE.with(Carries::USAGE))
        .usage(4)
        .prompt(5)
        .warn(Warnings::NOT_STREAMED)
        .record();
    check(
        &record,
        &[
            ("e2el_ms", 800.0),
            ("headers_ms", 20.0),
            ("output_tokens", 4.0),
            ("input_tokens", 5.0),
            ("normalised_latency_ms", 200.0),
        ],
    );
    for key in [
        "ttft_ms",
        "ttfc_ms",
        "thinking_ms",
        "tpot_ms",
        "tpot_adjusted_ms",
        "generation_ms",
        "finish_lag_ms",
        "stall_ms",
        "stall_share",
        "reader_stall_ms",
    ] {
        undefined(&record, &[(key, Undefined::NotStreamed)]);
    }
    undefined(&record, &[("tokens_per_chunk", Undefined::OneArrival)]);
}

#[test]
fn a_whole_body_without_usage_has_no_token_count() {
    let record = request(0).event(800, Carries::WHOLE).warn(Warnings::NOT_STREAMED).record();
    undefined(
        &record,
        &[
            ("output_tokens", Undefined::NoTokenCount),
            ("normalised_latency_ms", Undefined::NoTokenCount),
            ("input_tokens", Undefined::NoPromptCount),
        ],
    );
}

/// H09 and H11: all of a streamed answer came out of one read.
fn buffered(at_ms: i64, chunks: u32) -> Record {
    let mut build = request(0).usage(chunks).warn(Warnings::NOT_STREAMED);
    for position in 0..chunks {
        let shared = if position == 0 { Carries::NOTHING } else { Carries::SHARED_READ };
        build = build.event(at_ms, TEXT.with(shared));
    }
    build.event(at_ms, FINISH).record()
}

#[test]
fn h09_h11_a_buffered_answer_has_a_tpot_of_0_that_enters_no_aggregate() {
    for (at_ms, chunks) in [(900, 2), (2_000, 10)] {
        let record = buffered(at_ms, chunks);
        let timed = timed(&record, &GOODPUT);
        assert_eq!(timed.ttft(), Ok(at_ms as f64));
        assert_eq!(timed.e2el(), Ok(at_ms as f64));
        assert_eq!(timed.tpot(), Ok(0.0));
        assert_eq!(timed.gaps(), Ok(vec![0.0; chunks as usize - 1]));
        undefined(
            &record,
            &[
                ("tpot_ms", Undefined::NotStreamed),
                ("stall_ms", Undefined::NotStreamed),
                ("stall_share", Undefined::NotStreamed),
                ("reader_stall_ms", Undefined::NotStreamed),
            ],
        );
        assert_eq!(timed.gaps_streamed(), Err(Undefined::NotStreamed));
    }
}

#[test]
fn what_did_not_end_well_has_no_latency_and_says_why() {
    let events = |build: Build| build.event(100, TEXT).event(200, TEXT).usage(2).headers(10);
    let ends = [
        (events(failed(0, FailureKind::Disconnected)), Undefined::NotOk),
        (events(request(0).outcome(Outcome::Cancelled)), Undefined::NotOk),
        (request(0).event(60, FINISH).usage(1).outcome(Outcome::Empty), Undefined::NoOutput),
        (
            request(0).outcome(Outcome::NotSent(NotSentKind::ClientResource)).unreleased(),
            Undefined::NotSent,
        ),
    ];
    for (build, why) in ends {
        let record = build.record();
        for key in [
            "ttft_ms",
            "ttfc_ms",
            "thinking_ms",
            "tpot_ms",
            "tpot_adjusted_ms",
            "e2el_ms",
            "generation_ms",
            "finish_lag_ms",
            "stall_ms",
            "stall_share",
            "reader_stall_ms",
            "normalised_latency_ms",
            "headers_ms",
            "input_tokens",
            "output_tokens",
            "tokens_per_chunk",
        ] {
            undefined(&record, &[(key, why)]);
        }
        assert_eq!(timed(&record, &GOODPUT).gaps_streamed(), Err(why));
    }
}

#[test]
fn client_wait_is_known_of_everything_that_was_sent() {
    let sent = failed(0, FailureKind::HttpStatus).intended(10).sent(25).record();
    check(&sent, &[("client_wait_ms", 15.0)]);
    let kept = request(0).outcome(Outcome::NotSent(NotSentKind::PortExhausted)).unreleased();
    undefined(&kept.record(), &[("client_wait_ms", Undefined::NotSent)]);
}

#[test]
fn an_imported_row_keeps_its_floats_and_says_what_the_file_lacks() {
    let source = SourceTimes {
        ttft_s: Some(0.123_456_789),
        itl_s: vec![0.01, 0.03],
        start_s: Some(7.0),
        latency_s: None,
    };
    let record = request(0).usage(3).source(source.clone()).record();
    check(&record, &[("ttft_ms", 0.123_456_789 * 1e3), ("stall_ms", 30.0)]);
    undefined(
        &record,
        &[
            ("e2el_ms", Undefined::NotInFile),
            ("tpot_ms", Undefined::NotInFile),
            ("ttfc_ms", Undefined::NotInFile),
            ("headers_ms", Undefined::NotInFile),
            ("client_wait_ms", Undefined::NotInFile),
        ],
    );
    let known = SourceTimes { latency_s: Some(0.163_456_789), ..source };
    let record = request(0).usage(3).source(known).record();
    check(&record, &[("e2el_ms", 163.456_789), ("tpot_ms", 20.0)]);
}

#[test]
fn an_imported_nan_is_no_time() {
    let source = SourceTimes {
        ttft_s: Some(f64::NAN),
        itl_s: vec![0.01, f64::INFINITY],
        start_s: None,
        latency_s: Some(f64::INFINITY),
    };
    let record = request(0).usage(3).source(source).record();
    undefined(&record, &[("ttft_ms", Undefined::NotInFile), ("e2el_ms", Undefined::NotInFile)]);
    assert_eq!(timed(&record, &GOODPUT).gaps_streamed(), Ok(vec![10.0]));
}

#[test]
fn differences_are_taken_in_microseconds_and_not_in_milliseconds() {
    // 1000.123 − 500.123 as floats is not 500; ten later tokens at a limit of
    // 50 ms would then miss it.
    let record = request(0)
        .event_us(500_123, TEXT, 0, 0)
        .event_us(1_000_123, TEXT.with(Carries::FINISH), 0, 0)
        .usage(11)
        .record();
    assert_eq!(value(&record, "tpot_ms"), Ok(50.0));
    assert_eq!(value(&record, "generation_ms"), Ok(500.0));
}
