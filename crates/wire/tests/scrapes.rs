//! What was scraped, as a file: it comes back, old files stay readable, and bad
//! bytes are told and never believed.

mod resealed;

use measure::window::Window;
use measure::{At, Span};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::prometheus::{self, Exposition, Part};
use wire::scrapes::{self, Collected, MetricsError, Scrape, Source};

use crate::resealed::reseal;

const GOLDEN: &[u8] = include_bytes!("golden/metrics-v1.parquet");

/// Where the checksum stands.
const SEAL: &[u8] = b"goodput.metrics.crc32";
const VLLM: &str = include_str!("../../../testdata/captures/vllm_metrics.prom");

/// Every kind of family, names and labels of all kinds, and what floats can be.
const ODD: &str = r#"# TYPE g gauge
g{a="x\"y\\z\nw",b=""} NaN
g{a="other"} -Inf
# TYPE c_total counter
c_total 1e300
# TYPE h histogram
h_bucket{m="1",le="0.1"} 1
h_bucket{m="1",le="+Inf"} 2
h_sum{m="1"} 0.30000000000000004
h_count{m="1"} 2
# TYPE s summary
s{quantile="0.5"} 0.25
s_sum 1
s_count 4
# TYPE i info
i_info{version="1.2"} 1
untyped -0
{"a name with blanks","a label"="上海"} 3
"#;

fn scrape(at_us: i64, text: &str) -> Scrape {
    Scrape {
        at: At::from_us(at_us),
        took: Span::from_us(1_234),
        late: Span::from_us(56),
        exposition: prometheus::read(text.as_bytes()).expect("it is an exposition"),
    }
}

/// What the golden file holds. Never change it: the file is what version 1 wrote,
/// and it must decode to this for ever.
fn golden() -> Collected {
    let histogram = |count: u32| {
        let buckets = ["1", "+Inf"].map(|bound| format!("h_bucket{{le=\"{bound}\"}} {count}\n"));
        format!("# TYPE h histogram\n{}h_sum 1\nh_count {count}\n", buckets.concat())
    };
    let mut engine = Source::new("http://a:8000/metrics");
    engine.is_found = true;
    engine.left_out = 3;
    engine.scrapes = (0..4).map(|n| scrape(n * 1_000_000 - 5, &histogram(n as u32))).collect();
    let mut odd = Source::new("nvml");
    odd.scrapes = vec![scrape(-7, ODD), scrape(1_000_001, ODD)];
    odd.fail(At::from_us(2_000_000), "no answer within \"0.8 s\"\n\\".to_owned());
    odd.fail(At::from_us(3_000_000), "no answer within \"0.8 s\"\n\\".to_owned());
    let mut nothing = Source::new("http://b/metrics");
    nothing.fail(At::ZERO, "answered 404".to_owned());
    Collected { sources: vec![engine, odd, nothing], interval: Span::from_ms(1_000) }
}

type Told = (String, &'static str, String, Vec<(String, String)>, u64);

/// All samples, in a form that compares NaN too. Buckets are optional.
fn samples(exposition: &Exposition, with_buckets: bool) -> Vec<Told> {
    let mut told = Vec::new();
    for family in exposition.families() {
        for sample in family.samples() {
            if with_buckets || !matches!(sample.part, Part::Bucket(_)) {
                let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
                let labels = sample.labels.iter().map(own).collect();
                let value = if sample.value.is_nan() { u64::MAX } else { sample.value.to_bits() };
                let part = format!("{:?}", sample.part);
                told.push((family.name().to_owned(), family.kind().name(), part, labels, value));
            }
        }
    }
    told
}

/// What both hold is the same, buckets of scrapes in the middle apart.
#[track_caller]
fn assert_same(one: &Collected, other: &Collected) {
    assert_eq!(one.interval, other.interval);
    assert_eq!(one.sources.len(), other.sources.len());
    for (one, other) in one.sources.iter().zip(&other.sources) {
        let facts = |source: &Source| (source.name.clone(), source.is_found, source.left_out);
        assert_eq!(facts(one), facts(other));
        assert_eq!(one.failed, other.failed);
        assert_eq!(one.scrapes.len(), other.scrapes.len(), "{}", one.name);
        let last = one.scrapes.len().saturating_sub(1);
        for (place, (one, other)) in one.scrapes.iter().zip(&other.scrapes).enumerate() {
            assert_eq!((one.at, one.took, one.late), (other.at, other.took, other.late));
            let whole = place == 0 || place == last;
            assert_eq!(samples(&one.exposition, whole), samples(&other.exposition, whole));
        }
    }
}

#[test]
fn the_golden_metrics_of_version_1_decode() {
    let decoded = scrapes::decode(GOLDEN).expect("version 1 is readable for ever");
    assert_same(&golden(), &decoded);
}

#[test]
#[ignore = "writes the golden file of a new version, once; it refuses to replace one"]
fn write_the_golden_metrics() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/metrics-v1.parquet");
    let length = std::fs::metadata(path).map_or(0, |found| found.len());
    assert_eq!(length, 0, "a golden file is never written again");
    std::fs::write(path, scrapes::encode(&golden(), None)).expect("the folder is writable");
}

#[test]
fn what_was_scraped_comes_back_and_the_same_gives_the_same_bytes() {
    let file = scrapes::encode(&golden(), None);
    assert_same(&golden(), &scrapes::decode(&file).expect("it was just written"));
    assert_eq!(file, scrapes::encode(&golden(), None));
    assert_eq!(scrapes::checksum(&file).map(|digits| digits.len()), Ok(8));
    let nothing = scrapes::decode(&scrapes::encode(&Collected::default(), None));
    assert!(nothing.expect("no rows are a file too").is_empty());
}

#[test]
fn a_real_engines_metrics_come_back_and_buckets_stand_at_the_edges() {
    let mut source = Source::new("a");
    source.scrapes = (0..20).map(|n| scrape(n * 1_000_000, VLLM)).collect();
    let collected = Collected { sources: vec![source], interval: Span::from_ms(1_000) };
    let window = Window { from: At::from_us(2_500_000), until: At::from_us(17_500_000) };
    let file = scrapes::encode(&collected, Some(window));
    let decoded = scrapes::decode(&file).expect("it was just written");
    assert_same(&collected, &decoded);
    let with_buckets: Vec<usize> = (0..20)
        .filter(|place| {
            let exposition = &decoded.sources[0].scrapes[*place].exposition;
            samples(exposition, true) != samples(exposition, false)
        })
        .collect();
    assert_eq!(with_buckets, [0, 2, 18, 19]);
    let bytes = file.len() / 20;
    assert!(bytes < 10_000, "{bytes} bytes a scrape");
}

#[test]
fn rows_that_no_version_writes_are_told() {
    for bytes in [&b""[..], b"PAR1", b"PAR1PAR1", b"{}"] {
        assert!(matches!(scrapes::decode(bytes), Err(MetricsError::NotParquet)), "{bytes:?}");
    }
    let rows = wire::rows::encode(&[]);
    assert!(matches!(scrapes::decode(&rows), Err(MetricsError::NotMetrics)));
    let mut newer = GOLDEN.to_vec();
    let key = b"goodput.metrics.version";
    let place = newer.windows(key.len()).rposition(|window| window == key).expect("it is there");
    newer[place + key.len() + 2] = b'9';
    let told = scrapes::decode(&newer).map(|_| ());
    assert_eq!(told, Err(MetricsError::Version { found: "9".to_owned() }));
}

#[test]
fn any_flipped_bit_and_any_cut_of_metrics_is_an_error() {
    for place in 0..GOLDEN.len() {
        let mut bad = GOLDEN.to_vec();
        bad[place] ^= 1 << (place % 8);
        assert!(scrapes::decode(&bad).is_err(), "bit flipped in byte {place}");
        assert!(scrapes::decode(&GOLDEN[..place]).is_err(), "cut after byte {place}");
    }
}

fn float() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn changed_bytes_with_a_right_checksum_never_panic(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut file = GOLDEN.to_vec();
        for (place, byte) in changes {
            let place = place.index(file.len());
            file[place] = byte;
        }
        let _ = scrapes::decode(&reseal(file, SEAL));
    }

    #[test]
    fn any_series_comes_back(
        series in vec(("[a-z_]{1,6}", "[^\u{0}]{0,6}", float()), 1..20),
        reasons in vec(".{0,20}", 0..4),
    ) {
        let mut text = String::new();
        for (name, value, number) in &series {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            text.push_str(&format!("{name}{{l=\"{value}\"}} {number}\n"));
        }
        let Ok(exposition) = prometheus::read(text.as_bytes()) else { return Ok(()) };
        let mut source = Source::new("a");
        source.scrapes = vec![Scrape { exposition, ..scrape(5, "x 1\n") }];
        for reason in reasons {
            source.fail(At::ZERO, reason);
        }
        let collected = Collected { sources: vec![source], interval: Span::ZERO };
        let decoded = scrapes::decode(&scrapes::encode(&collected, None));
        assert_same(&collected, &decoded.expect("it was just written"));
    }
}
