//! The metric cases of `testdata/cases/metrics`: inputs and right answers are
//! read from the files.

use measure::facts::LoadKind;
use measure::signal::{Reading, Signal, Signals};
use measure::slo::Slo;
use measure::summary::Summary;
use measure::{
    Carries, FailureKind, Outcome, Record, SourceTimes, Span, TokensSource, Undefined, Warnings,
    quantile,
};
use serde_json::Value;

use crate::build::{
    Build, TEXT, close, facts, failed, metric, open_for, records, request, streamed, summary,
};

/// Input and expectation of a case.
fn case(name: &str) -> (Value, Value) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cases/metrics/");
    let text = std::fs::read_to_string(format!("{folder}{name}.json")).expect("a case file");
    let mut case: Value = serde_json::from_str(&text).expect("JSON");
    (case["input"].take(), case["expect"].take())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

fn whole(value: &Value) -> u32 {
    value.as_u64().and_then(|n| u32::try_from(n).ok()).expect("a count")
}

/// A row `{ok, ttft, e2el, out}` in milliseconds. Kept as another tool's
/// floats, because the cases go below a microsecond.
fn row(index: u32, row: &Value) -> Build {
    if row["cancelled_by_run_end"] == true {
        return request(index).outcome(Outcome::Cancelled).unreleased();
    }
    if row["ok"] == false {
        let kind = row["error"].as_str().unwrap_or("http_status");
        return failed(index, FailureKind::from_name(kind).expect("a kind"));
    }
    let seconds = |key: &str| Some(number(&row[key]) / 1e3);
    let source = SourceTimes {
        ttft_s: seconds("ttft"),
        latency_s: seconds("e2el"),
        ..SourceTimes::default()
    };
    request(index).usage(whole(&row["out"])).source(source)
}

fn rows(input: &Value) -> Vec<Record> {
    let list = input.as_array().expect("a list of rows");
    records(list.iter().enumerate().map(|(index, value)| row(index as u32, value)))
}

#[test]
fn m01_percentiles_tiny() {
    let (input, expect) = case("M01_percentiles_tiny");
    for (name, set) in input["sets"].as_object().unwrap() {
        let samples = numbers(set);
        let right = numbers(&expect["linear"][name]);
        let right_nearest = numbers(&expect["nearest_rank"][name]);
        for (position, percent) in numbers(&input["p"]).into_iter().enumerate() {
            let q = percent / 100.0;
            close(quantile::linear(&samples, q), right[position]);
            close(quantile::nearest_rank(&samples, q), right_nearest[position]);
        }
        assert_eq!(
            expect["small_sample_note"][name],
            quantile::has_few_samples(samples.len(), 0.99)
        );
    }
}

#[test]
fn m03_tpot_one_token() {
    let (input, expect) = case("M03_tpot_one_token");
    let summary = summary(&rows(&input), &facts(LoadKind::Unknown));
    let tpot = metric(&summary.metrics, "tpot_ms");
    assert_eq!(tpot.n, u64::from(whole(&expect["tpot_n"])));
    assert_eq!(tpot.undefined, [(Undefined::OneToken, 2)]);
    close(tpot.mean, number(&expect["tpot_mean_ms"]));
    close(summary.weighted.tpot_token_weighted_ms, number(&expect["tpot_token_weighted_ms"]));
    close(metric(&summary.metrics, "ttft_ms").mean, number(&expect["ttft_mean_ms"]));
}

#[test]
fn m04_goodput_edges() {
    let (input, expect) = case("M04_goodput_edges");
    let slo = format!("ttft:{} tpot:{}", input["slo_ms"]["ttft"], input["slo_ms"]["tpot"]);
    let facts = open_for(number(&input["duration_s"]) as i64, &slo);
    let records = rows(&input["records"]);
    let goodput = summary(&records, &facts).goodput.unwrap();
    let good: Vec<u32> = records
        .iter()
        .filter(|record| {
            let alone = summary(std::slice::from_ref(record), &facts);
            alone.goodput.unwrap().good == 1
        })
        .map(|record| record.index)
        .collect();
    assert_eq!(serde_json::json!(good), expect["good"]);
    assert_eq!(goodput.good, 2);
    assert_eq!(goodput.of, u64::from(whole(&expect["denominator"])));
    close(goodput.req_s, number(&expect["goodput_rps"]));
    close(goodput.attainment, number(&expect["attainment"]));
    // #2 has no TPOT and passes that part; #5 was stopped by the run's end.
    assert_eq!((goodput.vacuous, goodput.undecided), (1, 1));
    // The stopped one may have been bad or good: 2 ÷ 6 to 3 ÷ 6.
    let (low, high) = goodput.bounds.unwrap();
    close(low, 2.0 / 6.0);
    close(high, 0.5);
}

#[test]
fn m05_goodput_flags() {
    let (_, expect) = case("M05_goodput_flags");
    for (item, right) in expect["accept"].as_object().unwrap() {
        let slo = Slo::parse_goodput([item.as_str()]).expect(item);
        let right = right.as_object().unwrap();
        assert_eq!(slo.terms.len(), right.len(), "{item}");
        for term in slo.terms {
            assert_eq!(term.limit_ms, number(&right[term.quantity.word()]), "{item}");
        }
    }
    for item in expect["reject"].as_array().unwrap() {
        let item = item.as_str().unwrap();
        let error = Slo::parse_goodput([item]).expect_err(item).to_string();
        assert!(error.contains("milliseconds"), "{error}");
        assert!(error.contains("ttft, tpot, e2el"), "{error}");
    }
}

#[test]
fn m07_failed_zeros() {
    let (input, expect) = case("M07_failed_zeros");
    let summary = summary(&rows(&input), &facts(LoadKind::Unknown));
    let ttft = metric(&summary.metrics, "ttft_ms");
    assert_eq!(ttft.n, u64::from(whole(&expect["n"])));
    close(ttft.figure("p50"), number(&expect["ttft_median_ms"]));
    close(ttft.min, number(&expect["ttft_min_ms"]));
    close(ttft.mean, number(&expect["ttft_mean_ms"]));
    close(metric(&summary.metrics, "tpot_ms").mean, number(&expect["tpot_mean_ms"]));
    assert_eq!(summary.outcomes.failed, u64::from(whole(&expect["failed"])));
    assert_eq!(summary.outcomes.by_kind["in_band"], 3);
    // Over everybody who asked, half never got an answer.
    let all = metric(&summary.all_requests_metrics, "ttft_ms");
    assert_eq!(all.n, 6);
    assert!(all.unbounded.contains(&"p90") && all.unbounded.contains(&"mean"));
}

#[test]
fn m09_straggler() {
    let (input, expect) = case("M09_straggler");
    // Nine answers of a tenth of the tokens each are done by 10 s, the tenth
    // takes the whole minute.
    let share = |total: &Value| whole(total) / 10;
    assert_eq!(9 * share(&input["out_total"]), whole(&input["finished_by_10s"]));
    let end_ms = number(&input["duration_s"]) as i64 * 1_000;
    let records = records((0..10).map(|index| {
        let e2el = if index == 9 { end_ms } else { 1_000 * (i64::from(index) + 1) };
        streamed(index, 500, e2el, share(&input["out_total"])).prompt(share(&input["in_total"]))
    }));
    let throughput = summary(&records, &facts(LoadKind::Burst)).throughput;
    close(throughput.output_tok_s, number(&expect["output_tok_s"]));
    close(throughput.input_tok_s, number(&expect["input_tok_s"]));
    close(throughput.total_tok_s, number(&expect["total_tok_s"]));
    close(throughput.req_s, 10.0 / 60.0);
}

#[test]
fn m10_censored_tail() {
    let (input, expect) = case("M10_censored_tail");
    let timeouts = numbers(&input["timeout_s"]);
    let ok = numbers(&input["ok_s"]).into_iter().map(|s| (s, false));
    let cut = timeouts.iter().map(|s| (*s, true));
    let records = records(ok.chain(cut).enumerate().map(|(index, (seconds, cut))| {
        let (index, ms) = (index as u32, seconds as i64 * 1_000);
        if cut {
            failed(index, FailureKind::TotalTimeout).ended(ms)
        } else {
            streamed(index, 1_000, ms, 100)
        }
    }));
    let mut facts = facts(LoadKind::Burst);
    facts.request_timeout = Some(Span::from_s(timeouts[0]));
    let summary = summary(&records, &facts);
    let all = metric(&summary.all_requests_metrics, "e2el_ms");
    close(all.figure("p50"), number(&expect["p50_s"]) * 1e3);
    assert_eq!(expect["p99"], ">=300");
    assert_eq!(all.figure("p99"), None);
    assert!(all.at_least.contains(&("p99", 300_000.0)), "{:?}", all.at_least);
    assert!(all.unbounded.is_empty());
    close(all.censored, number(&expect["censored"]));
    assert!(summary.caveats.iter().any(|caveat| caveat.id == "censored_tail"));
    // The successes alone look perfect, which is the trap.
    close(metric(&summary.metrics, "e2el_ms").figure("p99"), 100_000.0);
}

#[test]
fn m12_itl_weights() {
    let (input, expect) = case("M12_itl_weights");
    let gaps = numbers(&input["gaps_ms"]);
    let tokens = numbers(&input["new_tokens"]);
    let mut build = request(0).chunk(100, TEXT, 1, 0);
    let (mut at_ms, mut osl) = (100, 1);
    for (gap, new) in gaps.iter().zip(&tokens) {
        at_ms += *gap as i64;
        osl += *new as u32;
        build = build.chunk(at_ms, TEXT, *new as u16, 0);
    }
    let summary = summary(&records([build.usage(osl)]), &facts(LoadKind::Burst));
    let icl = metric(&summary.metrics, "icl_ms");
    close(icl.mean, number(&expect["inter_chunk_mean_ms"]));
    let itl = metric(&summary.metrics, "itl_ms");
    close(itl.mean, number(&expect["itl_mean_ms"]));
    // The case spreads each gap evenly to get a median of 10; the design gives
    // no percentile instead, because spreading hides stalls.
    assert!(itl.percentiles.iter().all(Option::is_none));
    assert_eq!(itl.reason(), Undefined::ManyTokensPerChunk);
    close(icl.max, number(&expect["itl_max_ms"]));
}

#[test]
fn itl_percentiles_are_icls_where_chunks_carry_one_token() {
    let build = request(0).event(100, TEXT).event(130, TEXT).event(190, TEXT).usage(3);
    let summary = summary(&records([build]), &facts(LoadKind::Burst));
    let (icl, itl) = (metric(&summary.metrics, "icl_ms"), metric(&summary.metrics, "itl_ms"));
    assert_eq!(itl.percentiles, icl.percentiles);
    close(itl.mean, 45.0);
    close(itl.figure("p50"), 45.0);
}

#[test]
fn l02_coordinated_omission() {
    let (input, expect) = case("L02_coordinated_omission");
    let service_ms = (number(&input["service_s"]) * 1e3) as i64;
    let every_ms = (1e3 / number(&input["rate"])) as i64;
    assert_eq!(input["cap"], 1);
    let records = records((0..whole(&input["n"])).map(|index| {
        let turn = i64::from(index);
        streamed(index, service_ms / 2, service_ms, 11)
            .intended(turn * every_ms)
            .sent(turn * service_ms)
    }));
    let summary = summary(&records, &facts(LoadKind::Capped));
    let seconds = |definition| -> Vec<f64> {
        let looks = records.iter().map(|record| crate::build::timed(record, definition));
        looks.map(|timed| timed.e2el().unwrap() / 1e3).collect()
    };
    assert_eq!(seconds(&measure::definition::SERVICE), numbers(&expect["latency_from_sent_s"]));
    assert_eq!(seconds(&measure::definition::GOODPUT), numbers(&expect["latency_from_planned_s"]));
    let mean_ms = number(&expect["mean_from_planned_s"]) * 1e3;
    close(metric(&summary.metrics, "e2el_ms").mean, mean_ms);
    close(metric(&summary.service_metrics, "e2el_ms").mean, 1_000.0);
    close(metric(&summary.metrics, "client_wait_ms").max, number(&expect["max_lateness_s"]) * 1e3);
    let caveat = summary.caveats.iter().find(|caveat| caveat.id == "cap_limited").unwrap();
    assert!(caveat.text.en.contains("8.1") && caveat.text.zh.contains("8.1"), "{caveat:?}");
}

/// The client is the bottleneck: the case's prompts of 50 000 tokens take long
/// to write, and its event loop is late to read. Neither is the server's time.
#[test]
fn l05_a_client_that_is_the_bottleneck_says_so() {
    let said = |write_ms: i64, lag_p99_us: f64| {
        let records = records((0..10).map(|index| {
            streamed(index, 1_300, 2_300, 11).edit(|record| {
                record.stamps.written_at =
                    record.stamps.sent_at.map(|sent| sent + Span::from_ms(write_ms));
            })
        }));
        let mut facts = facts(LoadKind::Burst);
        facts.instrument.client_lag_us = Some([20.0, lag_p99_us, lag_p99_us]);
        let caveats = summary(&records, &facts).caveats;
        caveats.into_iter().find(|caveat| caveat.id == "client_bottleneck").map(|c| c.text)
    };
    assert_eq!(said(1, 4_900.0), None);
    // A tenth of 1.3 s is 130 ms.
    assert_eq!(said(130, 20.0), None);
    let text = said(131, 20.0).expect("a caveat").en;
    assert!(text.contains("10 of 10") && !text.contains("P99"), "{text}");
    let text = said(1, 5_100.0).expect("a caveat").en;
    assert!(text.contains("5.1 ms at P99") && !text.contains("writing"), "{text}");
}

#[test]
fn l08_the_clock_stops_at_the_body_and_not_at_the_head() {
    // Head at 20 ms, whole body at 2000 ms, 100 tokens: 50 tok/s, not 5000.
    let record = request(0)
        .headers(20)
        .event(2_000, Carries::WHOLE)
        .usage(100)
        .warn(Warnings::NOT_STREAMED)
        .record();
    let summary = summary(&[record], &facts(LoadKind::Burst));
    close(metric(&summary.metrics, "e2el_ms").mean, 2_000.0);
    close(metric(&summary.metrics, "headers_ms").mean, 20.0);
    close(summary.throughput.output_tok_s, 50.0);
    assert_eq!(summary.tokens.sources, [(TokensSource::Usage, 1)]);
    let reason = metric(&summary.metrics, "itl_ms").reason();
    assert_eq!(reason, Undefined::NotStreamed);
}

#[test]
fn k03_the_servers_count_is_used_and_the_disagreement_is_said() {
    let (_, expect) = case("K03_tokenizer_mismatch");
    let used = whole(&expect["used"]);
    let record = |client| {
        let build = streamed(0, 100, 200, used);
        build.edit(|r| r.answer.counts.tokenizer = Some(measure::Tokens::new(client))).record()
    };
    // The case warns at 8.5 %; the design's limit is 10 %.
    let near = summary(&[record(10_000)], &facts(LoadKind::Burst));
    assert_eq!(near.tokens.output, Some(u64::from(used)));
    assert!(near.caveats.iter().all(|caveat| caveat.id != "token_counts_disagree"));
    let far = summary(&[record(9_000)], &facts(LoadKind::Burst));
    assert!(far.caveats.iter().any(|caveat| caveat.id == "token_counts_disagree"));
}

#[test]
fn l09_a_random_run_that_hits_the_cache_is_warned_of() {
    let (input, expect) = case("L09_warm_prefix_cache");
    let count = |when: &str, key: &str, engine: usize| input[when][key][engine].as_u64().unwrap();
    let records: Vec<Record> = (0..2)
        .map(|engine| {
            let grown = |key| count("after", key, engine) - count("before", key, engine);
            let build = streamed(engine as u32, 100, 200, 11).prompt(grown("queries") as u32);
            let cached = measure::Tokens::new(grown("hits") as u32);
            build.edit(|record| record.answer.counts.cached = Some(cached)).record()
        })
        .collect();
    let mut facts = facts(LoadKind::Burst);
    facts.workload.cache_regime = "as-is".to_owned();
    facts.workload.prefix_tokens = Some(0);
    let summary = summary(&records, &facts);
    assert_eq!(summary.tokens.cached_share, expect["hit_rate"].as_f64());
    let warning = expect["warning"].as_str().unwrap();
    assert!(summary.caveats.iter().any(|caveat| caveat.id == warning));
}

#[test]
fn l09_the_servers_counters_warn_where_its_answers_are_silent() {
    let (input, expect) = case("L09_warm_prefix_cache");
    let grown = |key: &str| -> f64 {
        let sum = |when: &str| numbers(&input[when][key]).iter().sum::<f64>();
        sum("after") - sum("before")
    };
    let readings = [(Signal::PrefixQueries, "queries"), (Signal::PrefixHits, "hits")];
    let signals = Signals {
        readings: readings
            .into_iter()
            .map(|(signal, key)| (signal, Reading::Counter(grown(key))))
            .collect(),
        ..Signals::default()
    };
    assert_eq!(signals.hit_rate(), expect["hit_rate"].as_f64());
    let mut facts = facts(LoadKind::Burst);
    facts.workload.cache_regime = "as-is".to_owned();
    facts.workload.prefix_tokens = Some(0);
    let mut summary = summary(&[streamed(0, 100, 200, 11).record()], &facts);
    let warnings = |summary: &Summary| -> Vec<&'static str> {
        measure::caveats::of_signals(summary).iter().map(|caveat| caveat.id).collect()
    };
    assert!(warnings(&summary).is_empty(), "nothing was seen inside");
    summary.inside.signals = Some(signals.clone());
    assert_eq!(warnings(&summary), [expect["warning"].as_str().unwrap()]);
    summary.inside.signals = Some(Signals { restarts: 1, ..signals });
    assert!(warnings(&summary).is_empty(), "a counter fell");
}

#[test]
fn k04_answers_shorter_than_forced_are_flagged() {
    let (input, expect) = case("K04_ignore_eos");
    let asked = measure::Tokens::new(whole(&input["asked"]));
    let got = input["got"].as_array().unwrap();
    let record = |index: usize| {
        let build = streamed(index as u32, 100, 200, whole(&got[index]));
        build
            .edit(|r| {
                r.planned.max_output_tokens = Some(asked);
                r.planned.output_forced = true;
                r.answer.finish_reason = input["finish"][index].as_str().map(str::to_owned);
            })
            .record()
    };
    let records: Vec<Record> = (0..got.len()).map(record).collect();
    let short: Vec<u32> = records.iter().filter(|r| r.is_short_output()).map(|r| r.index).collect();
    assert_eq!(Value::from(short), expect["short"]);
    let summary = summary(&records, &facts(LoadKind::Burst));
    let caveat = summary.caveats.iter().find(|caveat| caveat.id == "short_output").unwrap();
    assert!(caveat.text.en.starts_with("2 of 4 answers (50 %)"), "{}", caveat.text.en);
    assert!(caveat.text.en.contains("585.25 tokens on average"), "{}", caveat.text.en);
    close(metric(&summary.metrics, "output_tokens").mean, number(&expect["mean_out"]));
}

#[test]
fn a_replay_says_how_well_the_trace_was_kept() {
    let mut facts = facts(LoadKind::Open);
    let (speed, window_s) = (2.0, None);
    facts.load.replay = Some(measure::facts::ReplayFacts { rows: 3, speed, window_s });
    facts.instrument.planned_requests = Some(5);
    let row = |index: u32, due_ms: i64, late_us: i64, asked: u32, served: u32| {
        let build = streamed(index, 100, 200, served);
        build
            .edit(|r| {
                let due = measure::At::ZERO + Span::from_ms(due_ms);
                r.stamps.intended_at = due;
                r.stamps.sent_at = Some(due + Span::from_us(late_us));
                r.planned.max_output_tokens = Some(measure::Tokens::new(asked));
                r.planned.input_tokens = Some(measure::Tokens::new(7));
                r.answer.counts.prompt = Some(measure::Tokens::new(9));
            })
            .record()
    };
    // Request 3 carries row 0 again, and request 4 was never sent.
    let records =
        [row(0, 0, 100, 4, 4), row(1, 10, 300, 6, 5), row(2, 20, 200, 2, 2), row(3, 30, 400, 4, 4)];
    let kept = summary(&records, &facts).replay.unwrap();
    assert_eq!((kept.planned, kept.sent, kept.missed, kept.duplicated), (5, 4, 1, 1));
    let lag = kept.lag_ms.unwrap();
    close(Some(lag[0]), 0.25);
    close(Some(lag[2]), 0.4);
    assert_eq!(kept.span_s, Some((0.03, 0.0303)));
    let output = &kept.output;
    assert_eq!((output.n, output.exact, output.requested, output.served), (4, 3, 16, 15));
    assert_eq!((kept.input.exact, kept.input.requested, kept.input.served), (0, 28, 36));
    facts.load.replay = None;
    assert_eq!(summary(&records, &facts).replay, None);
}
