use measure::quantile::{FromBuckets, of_buckets};
use proptest::prelude::*;

use super::*;
use crate::exposition::{EngineState, Facts, Http, Profile, Snapshot};

/// What a real vLLM 0.27.1 told, after a completion and a chat answer.
const CAPTURE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/captures/vllm_metrics.prom"));

fn case(file: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cases/prom/");
    std::fs::read(format!("{path}{file}")).unwrap()
}

fn of_case(file: &str) -> Exposition {
    read(&case(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn value(exposition: &Exposition, name: &str, part: Part) -> f64 {
    let family = exposition.family(name).unwrap_or_else(|| panic!("{name} is not there"));
    let mut samples = family.samples().filter(|sample| sample.part == part);
    samples.next().unwrap_or_else(|| panic!("{name} has no {part:?}")).value
}

fn histogram(exposition: &Exposition, name: &str) -> Histogram {
    let family = exposition.family(name).unwrap();
    Histogram::all_of(family).into_values().next().unwrap()
}

/// Its values, so that NaN equals itself.
fn bits(exposition: &Exposition) -> Vec<u64> {
    exposition.values.iter().map(|value| value.to_bits()).collect()
}

fn warnings(exposition: &Exposition) -> Vec<&'static str> {
    exposition.tally().warnings().collect()
}

#[test]
fn q02_openmetrics() {
    let told = of_case("Q02_openmetrics.txt");
    assert_eq!((told.tally().samples, told.tally().exemplars, told.tally().created), (7, 2, 2));
    assert_eq!(value(&told, "vllm:prompt_tokens_total", Part::Value), 1200.0);
    let ttft = histogram(&told, "vllm:time_to_first_token_seconds");
    assert_eq!(ttft.mean(), Some(0.225));
    assert_eq!(ttft.count(), Some(4.0));
    let tokens = told.family("vllm:prompt_tokens").unwrap();
    assert_eq!((tokens.kind(), tokens.unit()), (Kind::Counter, "tokens"));
    assert_eq!(tokens.help(), "Number of prefill tokens.");
    assert_eq!(tokens.samples().count(), 1, "the instant of creation is no data");
}

#[test]
fn q05_odd_tokens() {
    let told = of_case("Q05_odd_tokens.txt");
    assert_eq!(told.tally().samples, 6);
    assert_eq!(told.tally().rejected, 2, "a hexadecimal number and one with underscores");
    assert_eq!(warnings(&told), ["rejected_line"]);
    let odd = told.family("odd").unwrap();
    assert_eq!(odd.help(), "Text with \\ backslash and \n newline");
    let with = |label: &str, value: &str| {
        odd.samples().find(|sample| sample.labels.get(label) == Some(value)).unwrap()
    };
    assert_eq!(with("area", "heap").value, 9_409_439_200_000.0);
    assert_eq!(with("m", "spaces").value, f64::INFINITY);
    assert_eq!(with("m", "inf").value, f64::INFINITY);
    assert_eq!(with("m", "neg").value, f64::NEG_INFINITY);
    assert_eq!(with("m", "neg").timestamp_ms, Some(1_700_000_000_000.0));
    let nan = with("b", "{a,b}=1");
    assert!(nan.value.is_nan());
    let labels: Vec<_> = nan.labels.iter().collect();
    let path = ["C:", "models", "x"].join("\\");
    let expected =
        [("b", "{a,b}=1"), ("nl", "l1\nl2"), ("path", path.as_str()), ("q", "say \"hi\"")];
    assert_eq!(labels, expected);
    assert_eq!(value(&told, "odd_nolabel", Part::Value), 3.0);
}

#[test]
fn q06_duplicates() {
    let told = of_case("Q06_duplicates.txt");
    assert_eq!(value(&told, "request_total", Part::Value), 7.0);
    assert_eq!(value(&told, "tok_total", Part::Value), 6.0);
    assert_eq!(told.series(), 2);
    assert_eq!(warnings(&told), ["duplicate", "duplicate_conflict"]);
}

#[test]
fn q08_histograms_with_defects() {
    let (before, after) = (of_case("Q08_hist_before.txt"), of_case("Q08_hist_after.txt"));
    let h1 = histogram(&after, "h1").since(&histogram(&before, "h1"));
    let deltas = [(0.1, 10.0), (0.5, 30.0), (1.0, 40.0), (f64::INFINITY, 40.0)];
    assert_eq!(h1.buckets(), Ok(&deltas[..]));
    assert!((h1.mean().unwrap() - 0.3).abs() < 1e-12);
    assert_eq!(h1.count(), Some(40.0));
    let p50 = |histogram: &Histogram| of_buckets(histogram.buckets().unwrap(), 0.5);
    let FromBuckets::At(value) = p50(&h1).unwrap() else { panic!("it is in reach") };
    assert!((value - 0.3).abs() < 1e-12);
    assert_eq!(p50(&histogram(&after, "h2")), Some(FromBuckets::At(0.1)));
    assert_eq!(p50(&histogram(&after, "h3")), Some(FromBuckets::AtMost(0.001)));
    assert_eq!(p50(&histogram(&after, "h5")), Some(FromBuckets::Above(1.0)));
    let h2 = histogram(&after, "h2");
    assert_eq!(h2.buckets().unwrap().last(), Some(&(f64::INFINITY, 10.0)), "the count stands in");
    assert!(histogram(&after, "h4").buckets().is_err());
    assert_eq!(histogram(&after, "h5").mean(), Some(10.0));
}

#[test]
fn q10_json_is_no_exposition() {
    for file in ["Q10_trtllm.json", "Q10_trtllm_empty.json"] {
        let refused = read(&case(file)).unwrap_err();
        assert_eq!(refused, Unreadable::Json, "{file}");
        assert!(refused.to_string().contains("/prometheus/metrics"));
    }
    assert_eq!(read(b"{\"iter\": 1,\n \"requests\": 3}").unwrap_err(), Unreadable::Json);
    let told = of_case("Q10_trtllm_prom.txt");
    assert_eq!(told.tally().samples, 4);
    let latency = histogram(&told, "e2e_request_latency_seconds");
    assert_eq!(latency.mean(), Some(1.75));
    assert_eq!(told.family("e2e_request_latency_seconds").unwrap().kind(), Kind::Histogram);
}

#[test]
fn q14_nothing_useful_is_not_zero() {
    let of = |file| read(&case(file)).unwrap_err();
    assert_eq!(of("Q14_notfound.html"), Unreadable::Html);
    assert_eq!(of("Q14_empty.txt"), Unreadable::Empty);
    assert_eq!(of("Q14_comments.txt"), Unreadable::NoSamples);
}

#[test]
fn q15_order_is_irrelevant() {
    let told = of_case("Q15_mixed.txt");
    assert_eq!(told.tally().samples, 5);
    let s = told.family("s").unwrap();
    assert_eq!((s.kind(), s.samples().count()), (Kind::Summary, 4));
    assert!(value(&told, "s", Part::Quantile(0.5)).is_nan());
    assert_eq!(histogram(&told, "s").mean(), Some(0.5));
    assert_eq!(value(&told, "u", Part::Value), 1.0);
}

#[test]
fn a_body_over_the_limit_is_told_with_both_figures() {
    let refused = Reader::with_limit(10).read(b"a_counter_total 1\n").unwrap_err();
    assert_eq!(refused, Unreadable::TooLarge { bytes: 18, limit: 10 });
    assert!(refused.to_string().contains("18 bytes is over the limit of 10"), "{refused}");
}

#[test]
fn text_of_another_kind_is_told_by_its_first_line() {
    let refused = read(b"not found\nsorry\n").unwrap_err();
    assert_eq!(refused, Unreadable::NotText { line: 1, beginning: "not found".to_owned() });
}

#[test]
fn a_histogram_whose_name_ends_like_a_counter_is_one() {
    let told = read(CAPTURE.as_bytes()).unwrap();
    let family = told.family("vllm:iteration_tokens_total").unwrap();
    assert_eq!(family.kind(), Kind::Histogram);
    assert_eq!(family.samples().filter(|sample| sample.part == Part::Count).count(), 1);
}

#[test]
fn a_real_exposition_is_read_whole() {
    let told = read(CAPTURE.as_bytes()).unwrap();
    let lines = CAPTURE.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(told.tally().samples, lines);
    assert_eq!(told.series(), lines - told.tally().created);
    assert!(warnings(&told).is_empty());
    assert!(told.families().all(|family| !family.name().ends_with("_created")));
    assert!(told.families().all(|family| !family.help().is_empty()));
    assert_eq!(value(&told, "vllm:prefix_cache_queries_total", Part::Value), 13.0);
    let info = told.family("vllm:cache_config_info").unwrap().samples().next().unwrap();
    assert_eq!(info.labels.get("kv_cache_size_tokens"), Some("524288"));
}

#[test]
fn a_reader_that_knows_the_lines_reads_the_same_and_keeps_names_once() {
    let later = CAPTURE.replace(" 13.0\n", " 1.3e+06\n").replace(" 1.0\n", " NaN\n");
    let mut reader = Reader::default();
    let first = reader.read(CAPTURE.as_bytes()).unwrap();
    let second = reader.read(later.as_bytes()).unwrap();
    assert!(Arc::ptr_eq(&first.layout, &second.layout));
    let alone = read(later.as_bytes()).unwrap();
    assert_eq!(bits(&second), bits(&alone));
    assert_ne!(bits(&second), bits(&first));
    let grown = format!("{later}vllm:new_total 1\n");
    let third = reader.read(grown.as_bytes()).unwrap();
    assert_eq!(third.series(), second.series() + 1, "a new series is not overlooked");
    let shrunk = reader.read(CAPTURE.as_bytes()).unwrap();
    assert_eq!(shrunk.series(), first.series());
}

#[test]
fn what_is_written_here_is_read_back() {
    for profile in Profile::ALL {
        let mut http = Http::default();
        http.answered(("/v1/completions", "POST"), 200, 10, None, 0.2);
        let facts = Facts { context: 4096, block_size: 16, blocks: 100, ..Facts::default() };
        let mut engines: [EngineState; 2] = [profile.idle_engine(4096), profile.idle_engine(4096)];
        for (place, engine) in engines.iter_mut().enumerate() {
            engine.running = 3 + place as u64;
            engine.kv_usage = 0.25;
            engine.prefix_queries = 1_234_567;
            engine.finished.abort = 7;
            engine.flops = 1.25e21;
        }
        let model = "a\"b\\c\nd";
        let snapshot =
            Snapshot { model, created_s: 1.7e9, facts: &facts, engines: &engines, http: &http };
        let told = read(profile.write(&snapshot).as_bytes()).unwrap();
        assert!(warnings(&told).is_empty(), "{:?}", told.tally());
        let of = |name: &str| -> Vec<f64> {
            let family = told.family(name).unwrap();
            assert!(family.samples().all(|s| s.labels.get("model_name") == Some(model)));
            family.samples().map(|sample| sample.value).collect()
        };
        let (running, flops) = match profile {
            Profile::Vllm => ("vllm:num_requests_running", "vllm:estimated_flops_per_gpu_total"),
            Profile::Sglang => ("sglang:num_running_reqs", "sglang:estimated_flops_per_gpu_total"),
        };
        assert_eq!(of(running), [3.0, 4.0]);
        assert_eq!(of(flops), [1.25e21, 1.25e21]);
    }
}

#[test]
fn names_in_quotation_marks_and_stray_blanks_are_read() {
    let told = read(b"{\"http.requests\", code = \"200\" , } 5\r\n  a_total\t7\r\n").unwrap();
    assert_eq!(value(&told, "http.requests", Part::Value), 5.0);
    assert_eq!(value(&told, "a_total", Part::Value), 7.0);
    assert_eq!(told.family("a_total").unwrap().kind(), Kind::Counter);
}

#[test]
fn what_is_no_sample_is_left_out_alone() {
    let wrong = [
        "a{b=\"c\"",
        "a{b=c} 1",
        "a{b=\"c\" d=\"e\"} 1",
        "a{b=\"1\",b=\"2\"} 1",
        "a",
        "a b",
        "1a 2",
        "a-5",
        "a 1 2 3",
        "a 1 # no",
        "a 1_0",
        "a_bucket{le=\"x\"} 1",
        "{b=\"c\"} 1",
        "{} 1",
    ];
    for line in wrong {
        let told = read(format!("good 1\n{line}\nlast 2\n").as_bytes()).unwrap();
        assert_eq!((told.series(), told.tally().rejected), (2, 1), "{line}");
        let shown = told.tally().first_rejected.clone();
        assert_eq!(shown, Some((2, line.to_owned())), "{line}");
    }
}

#[test]
fn of_several_points_in_time_the_last_is_kept() {
    let told = read(b"# TYPE a gauge\na 5 1000\na 3 2000\na 9 1500\n# EOF\n").unwrap();
    let sample = told.family("a").unwrap().samples().next().unwrap();
    assert_eq!((sample.value, sample.timestamp_ms), (3.0, Some(2e6)), "OpenMetrics has seconds");
    assert!(warnings(&told).is_empty());
}

#[test]
fn a_histogram_that_started_again_is_seen_to() {
    let of = |text: &str| histogram(&read(text.as_bytes()).unwrap(), "h");
    let early = of("h_bucket{le=\"1\"} 5\nh_bucket{le=\"+Inf\"} 9\nh_sum 3\nh_count 9\n");
    let late = of("h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 9\nh_sum 3\nh_count 9\n");
    assert!(late.fell_since(&early) && !early.fell_since(&early));
    let other = of("h_bucket{le=\"1.0\"} 1\nh_bucket{le=\"2\"} 2\nh_bucket{le=\"+Inf\"} 4\n");
    assert_eq!(early.with(&other).buckets(), Ok(&[(1.0, 6.0), (f64::INFINITY, 13.0)][..]));
    assert_eq!(other.count(), Some(4.0), "the infinite bound stands in for the count");
}

/// A label's value as the format writes it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&body);
    }

    #[test]
    fn any_bytes_of_an_exposition_are_read_the_same_by_one_who_knows_the_lines(
        cut in 0usize..4000, place in 0usize..4000, byte in any::<u8>(),
    ) {
        let mut body = CAPTURE.as_bytes()[..8000 - cut].to_vec();
        if let Some(spoiled) = body.get_mut(place) {
            *spoiled = byte;
        }
        let mut reader = Reader::default();
        let _ = reader.read(&CAPTURE.as_bytes()[..8000]);
        let (known, alone) = (reader.read(&body), read(&body));
        prop_assert_eq!(known.is_ok(), alone.is_ok());
        if let (Ok(known), Ok(alone)) = (known, alone) {
            prop_assert_eq!(known.tally(), alone.tally());
            prop_assert_eq!(bits(&known), bits(&alone));
        }
    }

    #[test]
    fn labels_and_values_come_back_whatever_they_hold(
        texts in prop::collection::vec(any::<String>(), 1..4), number in any::<f64>(),
    ) {
        let pairs: Vec<String> = texts
            .iter()
            .enumerate()
            .rev()
            .map(|(place, text)| format!("l{place}=\"{}\"", escaped(text)))
            .collect();
        // A carriage return inside quotation marks is a character like others.
        let body = format!("name{{{}}} {number:?}\n", pairs.join(","));
        let told = read(body.as_bytes()).unwrap();
        let sample = told.family("name").unwrap().samples().next().unwrap();
        for (place, text) in texts.iter().enumerate() {
            prop_assert_eq!(sample.labels.get(&format!("l{place}")), Some(text.as_str()));
        }
        prop_assert!(sample.value == number || (sample.value.is_nan() && number.is_nan()));
    }
}
