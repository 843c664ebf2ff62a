//! The preset `vllm-0.27` on hand-made time lines. The rules are those of
//! vLLM 0.27.1's `benchmarks/lib/endpoint_request_func.py` and `serve.py`; the
//! streams are the two experiments in which peers were compared.

use measure::definition::{Definition, Endpoint, GOODPUT};
use measure::facts::LoadKind;
use measure::slo::Slo;
use measure::summary::{Summary, summarise};
use measure::{Carries, FailureKind, Outcome, Record, SourceTimes, Undefined, Warnings};

use crate::build::{
    Build, FINISH, REASONING, ROLE, TEXT, close, facts, failed, metric, records, request, streamed,
    timed,
};

fn preset(endpoint: Endpoint) -> Definition {
    Definition::preset("vllm-0.27", endpoint).expect("a preset")
}

fn under(endpoint: Endpoint, records: &[Record], slo: Option<&str>) -> Summary {
    let mut facts = facts(LoadKind::Burst);
    facts.slo = slo.map(|slo| Slo::parse_goodput([slo]).expect("an SLO"));
    summarise(records, &facts, &preset(endpoint))
}

/// The identical stream: empty role chunk at 50 ms; ten one-token reasoning
/// chunks at 150 … 330; ten two-token text chunks at 350 … 710; finish 760;
/// usage 860 with 30 tokens.
fn identical_stream(index: u32) -> Build {
    let mut build = request(index).event(50, ROLE);
    for step in 0..10 {
        build = build.event(150 + 20 * step, REASONING);
    }
    for step in 0..10 {
        build = build.event(350 + 40 * step, TEXT);
    }
    build.event(760, FINISH).event(860, Carries::USAGE).event(861, Carries::DONE).usage(30)
}

#[test]
fn chat_stops_ttft_at_the_role_chunk_and_e2el_at_the_usage_event() {
    let record = identical_stream(0).record();
    let timed = timed(&record, &preset(Endpoint::Chat));
    assert_eq!(timed.ttft(), Ok(50.0));
    assert_eq!(timed.e2el(), Ok(860.0));
    close(timed.tpot().ok(), 810.0 / 29.0); // 27.93; the experiment read 27.9
    let summary = under(Endpoint::Chat, &[record], None);
    let itl = metric(&summary.metrics, "itl_ms");
    // 50 → 760 in 21 gaps: the finish chunk is one, the usage event is none.
    assert_eq!(itl.n, 21);
    close(itl.mean, 710.0 / 21.0); // 33.81; the experiment read 33.8
    // Ten gaps of 20, nine of 40, 50 and 100: the eleventh is the median.
    close(itl.figure("p50"), 40.0);
}

#[test]
fn completions_end_at_the_last_event_with_a_choice() {
    let record = identical_stream(0).record();
    let timed = timed(&record, &preset(Endpoint::Completions));
    assert_eq!(timed.ttft(), Ok(50.0));
    assert_eq!(timed.e2el(), Ok(760.0));
    close(timed.tpot().ok(), 710.0 / 29.0);
}

#[test]
fn our_own_definition_starts_at_output_on_any_channel() {
    let record = identical_stream(0).record();
    let timed = timed(&record, &GOODPUT);
    assert_eq!((timed.ttft(), timed.ttfc(), timed.e2el()), (Ok(150.0), Ok(350.0), Ok(760.0)));
    // The last token came at 710.
    assert_eq!(timed.finish_lag(), Ok(50.0));
    close(timed.tpot().ok(), 610.0 / 29.0);
}

#[test]
fn throughput_divides_by_the_whole_run() {
    // Twenty streams one after the other; the run ends with the last [DONE].
    let records =
        records((0..20).map(|index| identical_stream(index).at(1_000 + i64::from(index) * 861)));
    let summary = under(Endpoint::Chat, &records, None);
    close(summary.throughput.output_tok_s, 600.0 / (1.0 + 20.0 * 0.861));
    // The makespan leaves out the second before the first request.
    let ours = summarise(&records, &facts(LoadKind::Burst), &GOODPUT);
    close(ours.throughput.output_tok_s, 600.0 / (20.0 * 0.861));
}

#[test]
fn the_wait_for_a_slot_is_in_no_number() {
    let record = streamed(0, 100, 200, 2).intended(0).sent(5_000).released(4_990).record();
    // Connecting is inside: the clock starts at the release.
    assert_eq!(timed(&record, &preset(Endpoint::Completions)).ttft(), Ok(110.0));
    assert_eq!(timed(&record, &GOODPUT).ttft(), Ok(5_100.0));
}

/// Forty requests of which every fifth is `bad`; the others have TTFT 50 ms
/// and all end at 1 s.
fn every_fifth(bad: impl Fn(u32) -> Build) -> Vec<Record> {
    records((0..40).map(|index| {
        if index % 5 == 4 {
            bad(index)
        } else {
            let usage = Carries::USAGE;
            request(index).event(50, TEXT).event(900, FINISH).event(1_000, usage).usage(11)
        }
    }))
}

/// Successes and mean TTFT under the chat rules and under ours.
fn read(records: &[Record]) -> ((u64, f64), (u64, f64)) {
    let figures = |summary: &Summary| {
        let ttft = metric(&summary.metrics, "ttft_ms");
        (ttft.n, ttft.mean.unwrap())
    };
    let theirs = under(Endpoint::Chat, records, None);
    let ours = summarise(records, &facts(LoadKind::Burst), &GOODPUT);
    (figures(&theirs), figures(&ours))
}

#[test]
fn an_error_status_or_a_cut_connection_is_a_failure() {
    let refused = |index| failed(index, FailureKind::HttpStatus).status(500);
    assert_eq!(read(&every_fifth(refused)), ((32, 50.0), (32, 50.0)));
    let cut = |index| failed(index, FailureKind::Disconnected).event(50, TEXT);
    assert_eq!(read(&every_fifth(cut)), ((32, 50.0), (32, 50.0)));
}

#[test]
fn chat_counts_an_error_inside_a_200_as_a_success_with_ttft_0() {
    let records = every_fifth(|index| failed(index, FailureKind::InBand).event(30, Carries::ERROR));
    // 32 · 50 ÷ 40 = 40; the experiment read a mean below the true one too.
    assert_eq!(read(&records), ((40, 40.0), (32, 50.0)));
    // "Goodput includes them": 40 in 1 s, of which 32 are real.
    let theirs = under(Endpoint::Chat, &records, Some("ttft:100 tpot:200"));
    close(theirs.goodput.unwrap().req_s, 40.0);
    let mut our_facts = facts(LoadKind::Burst);
    our_facts.slo = Some(Slo::parse_goodput(["ttft:100 tpot:200"]).unwrap());
    let ours = summarise(&records, &our_facts, &GOODPUT).goodput.unwrap();
    close(ours.req_s, 32.0);
    close(ours.attainment, 0.8);
}

#[test]
fn completions_need_one_choice_to_succeed() {
    let records = every_fifth(|index| failed(index, FailureKind::InBand).event(30, Carries::ERROR));
    let summary = under(Endpoint::Completions, &records, None);
    assert_eq!(metric(&summary.metrics, "ttft_ms").n, 32);
    let late = failed(0, FailureKind::InBand).event(20, TEXT).event(30, Carries::ERROR).record();
    assert!(timed(&late, &preset(Endpoint::Completions)).success);
}

#[test]
fn a_clean_end_without_an_end_mark_is_a_success() {
    let cut = |index| failed(index, FailureKind::Truncated).event(50, TEXT).event(90, TEXT);
    assert_eq!(read(&every_fifth(cut)), ((40, 50.0), (32, 50.0)));
}

#[test]
fn h13_chat_reads_a_whole_body_as_a_success_without_tokens() {
    let record = request(0)
        .event(800, Carries::WHOLE.with(Carries::CHOICE).with(Carries::USAGE))
        .usage(4)
        .warn(Warnings::NOT_STREAMED)
        .record();
    let chat = timed(&record, &preset(Endpoint::Chat));
    assert_eq!((chat.success, chat.ttft(), chat.e2el()), (true, Ok(0.0), Ok(0.0)));
    assert_eq!(chat.output_tokens(), Ok(0));
    assert!(!timed(&record, &preset(Endpoint::Completions)).success);
}

#[test]
fn h14_chat_reads_a_login_page_as_a_success() {
    let page = failed(0, FailureKind::BadContentType).record();
    assert!(timed(&page, &preset(Endpoint::Chat)).success);
    assert!(!timed(&page, &preset(Endpoint::Completions)).success);
    assert!(!timed(&page, &GOODPUT).success);
}

#[test]
fn data_that_is_not_json_fails_the_request() {
    let record = streamed(0, 100, 200, 2).event(150, Carries::NOT_JSON).record();
    assert!(!timed(&record, &preset(Endpoint::Chat)).success);
    assert!(timed(&record, &GOODPUT).success);
}

#[test]
fn usage_beside_a_choice_is_ignored_and_the_count_needs_the_text() {
    let record =
        request(0).event(100, TEXT).event(200, FINISH.with(Carries::USAGE)).usage(30).record();
    let theirs = timed(&record, &preset(Endpoint::Chat));
    assert_eq!(theirs.output_tokens(), Err(Undefined::NeedsText));
    assert_eq!(theirs.tpot(), Err(Undefined::NeedsText));
    assert_eq!(timed(&record, &GOODPUT).output_tokens(), Ok(30));
}

#[test]
fn one_token_adds_no_tpot_and_passes_its_limit() {
    let one = request(0)
        .event(70, TEXT.with(Carries::FINISH))
        .event(1_000, Carries::USAGE)
        .usage(1)
        .record();
    let summary = under(Endpoint::Chat, &[one], Some("tpot:50"));
    assert_eq!(metric(&summary.metrics, "tpot_ms").n, 0);
    let goodput = summary.goodput.unwrap();
    assert_eq!((goodput.good, goodput.vacuous), (1, 1));
}

#[test]
fn a_buffered_answer_stays_in_the_aggregates() {
    let record = request(0)
        .event(900, TEXT)
        .event(900, FINISH)
        .event(900, Carries::USAGE)
        .usage(2)
        .warn(Warnings::NOT_STREAMED)
        .record();
    let summary = under(Endpoint::Chat, &[record], None);
    close(metric(&summary.metrics, "tpot_ms").mean, 0.0);
    assert_eq!(metric(&summary.metrics, "tpot_ms").n, 1);
}

#[test]
fn an_aggregate_without_samples_reads_0() {
    let mut facts = facts(LoadKind::Burst);
    facts.percentiles = vec![75.0];
    let records = records((0..3).map(|index| failed(index, FailureKind::HttpStatus).status(500)));
    let theirs = summarise(&records, &facts, &preset(Endpoint::Chat));
    for key in ["ttft_ms", "tpot_ms", "itl_ms", "e2el_ms"] {
        let metric = metric(&theirs.metrics, key);
        assert_eq!(metric.n, 0);
        for name in ["mean", "std", "p50", "p90", "p95", "p99", "p999"] {
            assert_eq!(metric.figure(name), Some(0.0), "{key} {name}");
        }
        assert_eq!(metric.extra, [(75.0, Some(0.0))]);
    }
    let ours = summarise(&records, &facts, &GOODPUT);
    assert_eq!(metric(&ours.metrics, "ttft_ms").mean, None);
}

#[test]
fn peaks_count_events_and_touched_seconds() {
    // Starts at 10.0, 10.2 and 11.5 s; arrivals at 10.5, 10.9, 11.1 | 10.7 |
    // 11.6 and 11.9 s. Buckets from 10.0: 3 events in the first second and 3
    // in the second; the first request touches both, the others one each.
    let row = |index, start_s, ttft_s, itl_s: &[f64]| {
        let (itl_s, start_s, ttft_s) = (itl_s.to_vec(), Some(start_s), Some(ttft_s));
        request(index).usage(9).source(SourceTimes { ttft_s, itl_s, start_s, latency_s: None })
    };
    let records = records([
        row(0, 10.0, 0.5, &[0.4, 0.2]),
        row(1, 10.2, 0.5, &[]),
        row(2, 11.5, 0.1, &[0.3]),
    ]);
    let peaks = under(Endpoint::Chat, &records, None).peaks.unwrap();
    assert_eq!(peaks.max_output_tokens_per_s, 3.0);
    assert_eq!(peaks.max_concurrent_requests, 2);
    let ours = summarise(&records, &facts(LoadKind::Unknown), &GOODPUT);
    assert_eq!(ours.peaks, None);
}

#[test]
fn starts_that_lie_years_apart_need_no_memory() {
    let row = |index, start_s| {
        let source = SourceTimes {
            ttft_s: Some(0.1),
            itl_s: vec![],
            start_s: Some(start_s),
            latency_s: None,
        };
        request(index).source(source)
    };
    let records = records([row(0, 0.0), row(1, 1e18)]);
    let peaks = under(Endpoint::Chat, &records, None).peaks.unwrap();
    assert_eq!((peaks.max_output_tokens_per_s, peaks.max_concurrent_requests), (1.0, 1));
}

#[test]
fn an_empty_answer_is_a_success_there_and_none_here() {
    let empty = request(0).event(40, ROLE).event(60, FINISH).outcome(Outcome::Empty).record();
    let theirs = timed(&empty, &preset(Endpoint::Chat));
    assert_eq!((theirs.ttft(), theirs.output_tokens()), (Ok(40.0), Ok(0)));
    assert_eq!(timed(&empty, &GOODPUT).ttft(), Err(Undefined::NoOutput));
}
