//! Bounds and capacity of an engine, held against worked examples and against
//! each other.

use measure::capacity::{ApiPrice, Ask, BreakEven, Engine, Line, bounds};
use measure::hardware::{Precision, accelerator, model};
use measure::slo::Slo;

fn engine() -> Engine {
    Engine {
        model: model("llama-3.1-8b").unwrap().clone(),
        accelerator: *accelerator("h100-sxm").unwrap(),
        tensor_parallel: 1,
        pipeline_parallel: 1,
        weights: Precision::Bf16,
        kv_cache: Precision::Bf16,
        usable_bytes: 73.6e9,
        reserved_bytes: 4e9,
        kv_capacity_tokens: 408_000.0,
        seats: 256,
    }
}

fn ask(input: u32, output: u32, slo: &str) -> Ask {
    let slo = Slo::parse_goodput(slo.split_whitespace()).unwrap();
    Ask { input, output, slo, price_per_hour: Some(3.6) }
}

fn value(lines: &[Line], key: &str) -> f64 {
    let line = lines.iter().find(|line| line.key == key).unwrap_or_else(|| panic!("no {key}"));
    *line.value.as_ref().unwrap_or_else(|why| panic!("{key}: {}", why.en))
}

fn close(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 1e-9
}

/// 8.03·10⁹ parameters of 2 bytes; 2 · 32 · 8 · 128 values of 2 bytes a token;
/// sequences of 1 920 + 128 ÷ 2 tokens.
#[test]
fn memory_and_seats_are_what_the_formulas_say() {
    let lines = bounds(&engine(), &ask(1920, 128, ""));
    assert!((value(&lines, "weight_gb_per_accelerator") - 16.06).abs() < 0.01);
    assert_eq!(value(&lines, "kv_bytes_per_token"), 131_072.0);
    assert!(close(value(&lines, "seats_by_kv"), 408_000.0 / 1_984.0));
    assert_eq!(value(&lines, "seats"), 205.0, "fewer than the 256 of max_num_seqs");
    let few = Engine { seats: 8, ..engine() };
    assert_eq!(value(&bounds(&few, &ask(1920, 128, "")), "seats"), 8.0);
}

/// One sequence of 2 048 tokens: 15.01 GB of weights and 0.27 GB of cache at 3.35
/// TB/s are 4.56 ms. A prompt of 8 192 tokens: 2 · 6.98·10⁹ · 8 192 + 17.6·10¹²
/// operations at 989·10¹² a second are 133.5 ms.
#[test]
fn least_latencies_are_the_roofline() {
    let lines = bounds(&engine(), &ask(1984, 128, ""));
    assert!((value(&lines, "least_tpot_ms") - 4.56).abs() < 0.01);
    let lines = bounds(&engine(), &ask(8192, 128, ""));
    let ttft = value(&lines, "least_ttft_ms");
    assert!((ttft - 133.5).abs() < 0.5, "{ttft}");
}

/// Prompts and answers share steps: their operations add up, and so do their
/// bytes, and capacity is below that of either alone.
#[test]
fn capacity_is_that_of_prompts_and_answers_together() {
    for (input, output, slo) in [(512, 256, "tpot:50"), (4096, 64, ""), (32, 1024, "tpot:12")] {
        let lines = bounds(&engine(), &ask(input, output, slo));
        let capacity = value(&lines, "capacity_req_s");
        let alone = ["prefill_req_s", "decode_req_s"].map(|key| value(&lines, key));
        assert!(alone.iter().all(|alone| capacity <= alone * (1.0 + 1e-9)), "{capacity} {alone:?}");
        // Nor is it below what doing one after the other gives.
        let apart = 1.0 / alone.iter().map(|alone| 1.0 / alone).sum::<f64>();
        assert!(capacity >= apart * (1.0 - 1e-9), "{input} {output}: {capacity} {apart}");
        let rate = capacity * f64::from(output);
        assert!(close(value(&lines, "output_tok_s_per_accelerator"), rate));
        // 3.6 an hour is 0.001 a second.
        assert!(close(value(&lines, "cost_per_million_tokens"), 1e3 / rate));
    }
}

/// The largest batch is the largest: one more breaks the limit.
#[test]
fn one_more_than_the_largest_batch_breaks_the_objective() {
    let engine = engine();
    for limit in [6, 8, 12, 20, 50] {
        let ask = ask(512, 256, &format!("tpot:{limit}"));
        let batch = engine.largest_batch(&ask);
        let within = |batch: f64| 1e3 * engine.tpot_s(&ask, batch) <= f64::from(limit);
        assert!(batch >= 1.0 && within(batch), "{limit}: {batch}");
        assert!(batch == engine.most_seats(&ask) || !within(batch + 1.0), "{limit}: {batch}");
    }
}

#[test]
fn what_no_load_meets_is_told_with_the_numbers() {
    let why = |ask: &Ask, key: &str| {
        let lines = bounds(&engine(), ask);
        let line = lines.iter().find(|line| line.key == key).unwrap().clone();
        line.value.unwrap_err().en
    };
    let tpot = why(&ask(512, 256, "tpot:3"), "capacity_req_s");
    assert!(tpot.contains("at least") && tpot.contains("limit is 3"), "{tpot}");
    let ttft = why(&ask(8192, 256, "ttft:100"), "capacity_req_s");
    assert!(ttft.contains("a prompt alone takes at least 13"), "{ttft}");
    let small = Engine { kv_capacity_tokens: 500.0, ..engine() };
    let lines = bounds(&small, &ask(512, 256, ""));
    let line = lines.iter().find(|line| line.key == "largest_batch").unwrap();
    let why = &line.value.as_ref().unwrap_err().en;
    assert!(why.contains("512 + 256 tokens fits the KV cache of 500"), "{why}");
}

/// An objective on whole answers bounds what is left for each token.
#[test]
fn a_limit_of_whole_answers_is_one_of_tokens() {
    assert_eq!(ask(512, 101, "e2el:2000").tpot_ms(), Some(20.0));
    assert_eq!(ask(512, 101, "e2el:2000 tpot:15").tpot_ms(), Some(15.0));
    assert_eq!(ask(512, 101, "ttft:300").tpot_ms(), None);
}

/// 1 000 prompt and 500 output tokens at 0.5 and 1.5 a million cost 0.00125; 4
/// accelerators at 2.25 an hour are 0.0025 a second: 2 req/s break even.
#[test]
fn the_break_even_is_where_both_cost_the_same() {
    let prices = ApiPrice { input: 0.5, output: 1.5, cached: None };
    let even = BreakEven {
        api_per_request: prices.of(1_000.0, 0.0, 500.0),
        own_per_second: 4.0 * 2.25 / 3_600.0,
        capacity_req_s: 8.0,
    };
    assert!(close(even.req_s(), 2.0));
    assert!(close(even.utilisation(), 0.25));
    assert!(close(even.own_per_request(), 0.0025 / 8.0));
    assert!(close(even.own_per_second, even.req_s() * even.api_per_request));
    let cached = ApiPrice { cached: Some(0.0), ..prices };
    assert!(close(cached.of(0.0, 1_000.0, 500.0), 0.00075));
}
