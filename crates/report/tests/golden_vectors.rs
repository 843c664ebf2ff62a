//! The page's arithmetic is JavaScript. These vectors hold it to what `measure`
//! computes from records and to what `report::number` prints: a browser test
//! replays them. `UPDATE=1 cargo test -p report --test golden_vectors` writes
//! them anew.

use std::path::Path;

use measure::definition::GOODPUT;
use measure::goodput::goodput;
use measure::request::{Settings, Timed};
use measure::slo::{Quantity, Slo, Term, judge_term};
use measure::statistics::{Distribution, weighted_mean};
use measure::{
    Answer, At, Carries, Counts, Event, Events, Outcome, Planned, Record, Span, Stamps, Tokens,
};
use report::number::{percent, short};
use serde_json::{Value, json};

const FILE: &str = "tests/golden/arithmetic.json";

/// Tables of requests.
const TABLES: u32 = 60;

/// A generator with its algorithm here (splitmix64), so that the vectors stay
/// the same whatever a library does.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// One request as a person types it: whole microseconds.
#[derive(Clone, Copy)]
struct Typed {
    ttft_us: u32,
    e2el_us: u32,
    tokens: u32,
}

fn typed(random: &mut Random) -> Typed {
    // Round numbers are what people type; odd ones find rounding.
    let grain = [1, 10, 1_000, 50_000][random.below(4) as usize];
    let ttft_us = (random.below(2_000_000 / grain) * grain) as u32;
    let more_us = (random.below(8_000_000 / grain) * grain) as u32;
    let tokens = if random.below(12) == 0 { 1 } else { 1 + random.below(500) as u32 };
    Typed { ttft_us, e2el_us: ttft_us + more_us, tokens }
}

/// The record of a request whose first token and end lie there.
fn record(index: u32, typed: Typed) -> Record {
    let mut events = Events::default();
    let text = Carries::TEXT;
    let first = u16::from(typed.tokens > 0);
    events.push(Event { at_us: typed.ttft_us, carries: text, tokens: first, choice: 0 });
    let later = typed.tokens - 1;
    let carries = if later > 0 { text.with(Carries::FINISH) } else { Carries::FINISH };
    events.push(Event { at_us: typed.e2el_us, carries, tokens: later as u16, choice: 0 });
    let at = At::ZERO;
    Record {
        index,
        worker: 0,
        planned: Planned::default(),
        stamps: Stamps {
            intended_at: at,
            released_at: Some(at),
            sent_at: Some(at),
            ended_at: Some(at + Span::from_us(i64::from(typed.e2el_us))),
            ..Stamps::default()
        },
        events,
        answer: Answer {
            http_status: Some(200),
            choices: 1,
            counts: Counts { usage: Some(Tokens::new(typed.tokens)), ..Counts::default() },
            ..Answer::default()
        },
        outcome: Outcome::Ok,
        source: None,
    }
}

fn limits(random: &mut Random, around: Typed) -> Slo {
    let mut terms = Vec::new();
    for quantity in Quantity::GOODPUT {
        if random.below(3) == 0 {
            continue;
        }
        // Half of the limits lie exactly on a value: a bound is inclusive.
        let exact = random.below(2) == 0;
        let limit_ms = match quantity {
            Quantity::Ttft if exact => f64::from(around.ttft_us) / 1e3,
            Quantity::E2el if exact => f64::from(around.e2el_us) / 1e3,
            Quantity::Ttft => random.below(1_500) as f64,
            Quantity::Tpot => random.below(60) as f64 + 1.0,
            Quantity::E2el => random.below(8_000) as f64,
            other => unreachable!("{other:?} is no column of the playground"),
        };
        terms.push(Term { quantity: *quantity, limit_ms });
    }
    Slo { terms, ..Slo::default() }
}

fn table(random: &mut Random) -> Value {
    let typed: Vec<Typed> = (0..=random.below(11)).map(|_| typed(random)).collect();
    let records: Vec<Record> =
        typed.iter().zip(0..).map(|(one, index)| record(index, *one)).collect();
    let timed: Vec<Timed<'_>> =
        records.iter().map(|one| Timed::new(one, &GOODPUT, Settings::default())).collect();
    let slo = limits(random, typed[0]);
    let seconds = 1 + random.below(20);
    let requests: Vec<Value> = typed
        .iter()
        .map(|one| {
            json!({
                "ttft": f64::from(one.ttft_us) / 1e3,
                "e2el": f64::from(one.e2el_us) / 1e3,
                "tokens": one.tokens,
            })
        })
        .collect();
    let limit = |quantity| {
        slo.terms.iter().find(|term| term.quantity == quantity).map(|term| term.limit_ms)
    };
    json!({
        "requests": requests,
        "limits": {
            "ttft": limit(Quantity::Ttft),
            "tpot": limit(Quantity::Tpot),
            "e2el": limit(Quantity::E2el),
        },
        "seconds": seconds,
        "want": want(&timed, &slo, seconds as f64),
    })
}

/// A value and how people see it.
fn figure(value: Option<f64>) -> Value {
    json!({ "value": value, "shown": value.map_or("n/a".to_owned(), short) })
}

fn want(timed: &[Timed<'_>], slo: &Slo, seconds: f64) -> Value {
    let rows: Vec<Value> = timed
        .iter()
        .map(|request| {
            let broken: Vec<&str> = slo
                .terms
                .iter()
                .filter(|term| judge_term(request, term) == measure::slo::Judgement::Missed)
                .map(|term| term.quantity.word())
                .collect();
            let tpot = request.tpot().ok();
            json!({
                "generation": request.generation().expect("every row is whole"),
                "tpot": figure(tpot),
                "tpot_2": tpot.map_or("n/a".to_owned(), |ms| format!("{ms:.2}")),
                "broken": broken,
            })
        })
        .collect();
    let sum = goodput(timed, slo, Some(seconds));
    let tokens = |request: &Timed<'_>| f64::from(request.output_tokens().unwrap_or(0));
    let paced = timed.iter().filter(|request| request.tpot().is_ok());
    let time: f64 = paced.clone().filter_map(|request| request.generation().ok()).sum();
    let all: f64 = paced.clone().map(tokens).sum();
    let by_request =
        Distribution::of(paced.clone().filter_map(|r| r.tpot().ok()).collect(), Vec::new(), &[]);
    let by_token = weighted_mean(
        paced.filter_map(|r| Some((r.tpot().ok()?, f64::from(r.later_tokens().ok()?)))),
    );
    let ttft =
        Distribution::of(timed.iter().filter_map(|r| r.ttft().ok()).collect(), Vec::new(), &[]);
    json!({
        "rows": rows,
        "good": sum.good,
        "of": sum.of,
        "attainment": { "value": sum.attainment, "shown": sum.attainment.map_or("n/a".to_owned(), percent) },
        "good_req_s": figure(sum.req_s),
        "good_tok_s": figure(sum.tok_s),
        "by_request": figure(by_request.mean),
        "by_token": figure(by_token),
        "over_tokens": figure((all > 0.0).then(|| time / all)),
        "ttft": {
            "mean": figure(ttft.mean),
            "p50": figure(ttft.figure("p50")),
            "p99": figure(ttft.figure("p99")),
        },
    })
}

/// Numbers at the edges of the rules that print them.
fn numbers() -> Vec<Value> {
    let mut random = Random(7);
    let mut values = vec![
        0.0,
        0.125,
        0.375,
        2.5,
        3.5,
        0.5,
        1.005,
        9.995,
        9.9949,
        99.95,
        99.949,
        999.5,
        9_999.5,
        9_999.4,
        12_345.0,
        1e6,
        123_456_789.0,
        0.00004,
        0.00005,
        0.0049,
        0.01,
        0.99951,
        1.0,
    ];
    for _ in 0..200 {
        let exponent = random.below(12) as i32 - 4;
        values.push(random.below(1_000_000) as f64 / 1e6 * 10f64.powi(exponent));
    }
    let shown = |value: f64| {
        json!({
            "value": value,
            "short": short(value),
            "percent": percent(value / 1e4),
            "duration": report::number::duration_ms(value),
            "count": report::number::count(value as u64),
        })
    };
    values.into_iter().map(shown).collect()
}

#[test]
fn the_vectors_are_what_measure_computes() {
    let mut random = Random(2026);
    let tables: Vec<Value> = (0..TABLES).map(|_| table(&mut random)).collect();
    // A line each, so that a difference can be read.
    let lines =
        |values: Vec<Value>| values.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
    let text = format!(
        "{{\"made_by\": \"crates/report/tests/golden_vectors.rs\", \"tables\": [\n{}\n], \
         \"numbers\": [\n{}\n]}}\n",
        lines(tables),
        lines(numbers())
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        std::fs::write(&path, &text).expect("the vectors are written");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "{FILE} is not what measure computes; UPDATE=1 writes it anew");
}
