//! The worked examples of the two seed texts, with what `seeds/TABLES.md`
//! restores of their tables.

use measure::Carries;
use measure::Record;
use measure::definition::GOODPUT;
use measure::facts::LoadKind;
use measure::slo::Slo;

use crate::build::{
    TEXT, close, facts, metric, open_for, records, request, streamed, summary, timed,
};

/// Rows of TTFT, E2EL and output tokens, all asked at once.
fn rows(rows: &[(i64, i64, u32)]) -> Vec<Record> {
    records(
        rows.iter()
            .enumerate()
            .map(|(index, (ttft, e2el, osl))| streamed(index as u32, *ttft, *e2el, *osl)),
    )
}

/// Judges table rows: good, met TTFT, met E2EL.
fn judged(table: &[(i64, i64, u32)], slo: &str) -> (u64, u64, u64) {
    let mut facts = facts(LoadKind::Burst);
    facts.slo = Some(Slo::parse_goodput([slo]).unwrap());
    let goodput = summary(&rows(table), &facts).goodput.unwrap();
    assert_eq!(goodput.of, 6);
    assert!(goodput.per_slo.iter().all(|term| term.of == 6));
    close(goodput.attainment, goodput.good as f64 / 6.0);
    (goodput.good, goodput.per_slo[0].met, goodput.per_slo[1].met)
}

#[test]
fn seed_000_goodput_of_six_requests_in_ten_seconds() {
    // TTFT and TPOT as in the text; with 11 tokens E2EL = TTFT + 10 TPOT.
    let requests =
        [(180, 35), (240, 48), (420, 40), (250, 72), (290, 55), (510, 80)].into_iter().enumerate();
    let records = records(requests.map(|(index, (ttft, tpot))| {
        // The last answer takes 510 + 800 ms and ends at 10 s exactly.
        let start = if index == 5 { 8_690 } else { index as i64 * 1_700 };
        streamed(index as u32, ttft, ttft + 10 * tpot, 11).at(start)
    }));
    let summary = summary(&records, &open_for(10, "ttft:300 tpot:60"));
    let goodput = summary.goodput.as_ref().unwrap();
    assert_eq!((goodput.good, goodput.of), (3, 6));
    let per_slo: Vec<_> = goodput.per_slo.iter().map(|term| (term.met, term.of)).collect();
    assert_eq!(per_slo, [(4, 6), (4, 6)]);
    close(summary.throughput.req_s, 0.6);
    close(summary.load.offered_rps, 0.6);
    close(goodput.req_s, 0.3);
    close(goodput.attainment, 0.5);
    // The good ones are R1, R2 and R5, 11 tokens each.
    close(goodput.tok_s, 3.3);
}

#[test]
fn seed_000_question_1_decode_is_97_percent_of_e2el() {
    let mut build = request(0).prompt(2_000).usage(300);
    for token in 0..300 {
        build = build.event(300 + 30 * token, TEXT);
    }
    let record = build.record();
    let timed = timed(&record, &GOODPUT);
    assert_eq!(timed.tpot(), Ok(30.0));
    assert_eq!(timed.e2el(), Ok(9_270.0)); // 300 + 299 · 30
    let share = timed.generation().unwrap() / timed.e2el().unwrap();
    assert_eq!((share * 100.0).round(), 97.0);
    // N marks and N − 1 gaps.
    assert_eq!(timed.gaps().unwrap().len(), 299);
}

#[test]
fn seed_000_question_2_goodput_counts_requests_and_tokens() {
    // 10 answers of 5000 tokens in 10 s are 5000 tok/s, yet six waited 8 s
    // for their first token: 4 · 5000 ÷ 10 tok/s were useful.
    let table: Vec<_> =
        (0..10).map(|index| (if index < 4 { 500 } else { 8_000 }, 10_000, 5_000)).collect();
    let mut facts = facts(LoadKind::Burst);
    facts.slo = Some(Slo::parse_goodput(["ttft:1000 tpot:50"]).unwrap());
    let summary = summary(&rows(&table), &facts);
    let goodput = summary.goodput.as_ref().unwrap();
    close(summary.throughput.output_tok_s, 5_000.0);
    close(metric(&summary.metrics, "ttft_ms").figure("p99"), 8_000.0);
    close(goodput.req_s, 0.4);
    close(goodput.tok_s, 2_000.0);
}

#[test]
fn seed_003_playground_single_request() {
    let record = streamed(0, 80, 2_200, 220).record();
    let timed = timed(&record, &GOODPUT);
    assert_eq!(timed.generation(), Ok(2_120.0));
    close(timed.tpot().ok(), 2_120.0 / 219.0);
    assert_eq!(format!("{:.2}", timed.tpot().unwrap()), "9.68");
}

#[test]
fn seed_003_mixed_preset() {
    let table = [
        (45, 1_200, 120),
        (120, 800, 80),
        (60, 3_500, 350),
        (200, 600, 55),
        (80, 2_200, 220),
        (350, 1_800, 180),
    ];
    let tpots: Vec<String> = rows(&table)
        .iter()
        .map(|record| format!("{:.2}", timed(record, &GOODPUT).tpot().unwrap()))
        .collect();
    assert_eq!(tpots, ["9.71", "8.61", "9.86", "7.41", "9.68", "8.10"]);
    // R4 meets TTFT at its limit; R3 misses E2EL, R6 misses TTFT.
    assert_eq!(judged(&table, "ttft:200 e2el:3000"), (4, 5, 5));
}

#[test]
fn seed_003_tail_latency_preset() {
    let table = [
        (40, 900, 90),
        (45, 850, 85),
        (38, 920, 92),
        (42, 880, 88),
        (850, 4_200, 420),
        (780, 3_800, 380),
    ];
    // R5 and R6 miss both limits, the other four meet both.
    assert_eq!(judged(&table, "ttft:200 e2el:2000"), (4, 4, 4));
}

#[test]
fn seed_003_streaming_app_preset() {
    let table = [
        (30, 1_500, 150),
        (25, 2_200, 220),
        (35, 900, 90),
        (28, 1_800, 180),
        (40, 1_200, 120),
        (32, 2_800, 280),
    ];
    // All start in time; R6 ends 300 ms late.
    assert_eq!(judged(&table, "ttft:100 e2el:2500"), (5, 6, 5));
}

/// One gap of 100 ms, and a hundred gaps of 10 ms.
fn short_and_long() -> Vec<Record> {
    let short = request(0).event(50, TEXT).event(150, TEXT.with(Carries::FINISH)).usage(2);
    let mut long = request(1).usage(101);
    for token in 0..101 {
        long = long.event(50 + 10 * token, TEXT);
    }
    records([short, long])
}

#[test]
fn seed_003_mean_tpot_weighs_requests_and_mean_itl_weighs_tokens() {
    let summary = summary(&short_and_long(), &facts(LoadKind::Burst));
    close(metric(&summary.metrics, "tpot_ms").mean, 55.0); // (100 + 10) ÷ 2
    close(metric(&summary.metrics, "itl_ms").mean, 1_100.0 / 101.0);
    close(summary.weighted.itl_mean_ms, 1_100.0 / 101.0);
    close(summary.weighted.tpot_token_weighted_ms, 1_100.0 / 101.0);
}

#[test]
fn seed_003_the_texts_own_itl_divides_by_all_output_tokens() {
    let mut records = short_and_long();
    let summary_of_two = summary(&records, &facts(LoadKind::Burst));
    close(summary_of_two.weighted.itl_mean_over_osl_ms, 1_100.0 / 103.0);
    // "Total output tokens across requests" holds those of answers without a
    // gap as well.
    records.push(streamed(2, 70, 70, 1).record());
    let summary_of_three = summary(&records, &facts(LoadKind::Burst));
    close(summary_of_three.weighted.itl_mean_over_osl_ms, 1_100.0 / 104.0);
    close(summary_of_three.weighted.itl_mean_ms, 1_100.0 / 101.0);
}
