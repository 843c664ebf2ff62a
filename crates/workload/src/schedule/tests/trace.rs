//! A trace as a schedule: its instants, its rows in order, and the text that
//! its hashes share.

use super::*;
use crate::prompt::{Blocks, LengthRow};

fn row(input: u32, output: u32, ids: &[u64]) -> LengthRow {
    let blocks = Blocks { ids: ids.into(), size: Tokens::new(512) };
    LengthRow {
        input: Tokens::new(input),
        output: Tokens::new(output),
        blocks: (!ids.is_empty()).then_some(blocks),
        labels: Vec::new(),
        source_row: 1,
    }
}

/// The rows of case D09 that can be used.
fn d09() -> Vec<LengthRow> {
    vec![
        row(513, 5, &[0, 1]),
        row(512, 5, &[0]),
        row(1024, 6, &[1 << 32, 1 << 33]),
        row(1024, 6, &[0, u64::MAX]),
    ]
}

fn schedule(rows: Vec<LengthRow>, times_ms: &[i64], stop: Stop, cache: CacheRegime) -> Schedule {
    let times: Vec<Span> = times_ms.iter().map(|&ms| Span::from_ms(ms)).collect();
    let replay = Replay::new(&times, 1.0, None).unwrap();
    draw(Spec {
        prompts: PromptSource::Lengths { rows, lexicon: None, order: Order::AsIs },
        output: OutputLength::OfPrompt { otherwise: None },
        cache,
        ..spec(Load::replay_of(replay, None).unwrap(), stop)
    })
}

#[test]
fn row_k_is_arrival_k_for_any_number_of_workers() {
    let schedule = schedule(d09(), &[9, 9, 2509, 3009], Stop::Count(4), CacheRegime::Cold);
    let instants: Vec<i64> = schedule.arrivals().map(|at| (at - At::ZERO).us()).collect();
    assert_eq!(instants, [0, 0, 2_500_000, 3_000_000]);
    for workers in 1..6 {
        let mut dealt: Vec<_> = (0..workers).flat_map(|w| schedule.deal(w, workers)).collect();
        dealt.sort_by_key(|request| request.index);
        let lengths: Vec<u32> = dealt.iter().map(|r| r.input_tokens.unwrap().get()).collect();
        assert_eq!(lengths, [513, 512, 1024, 1024]);
    }
    assert_eq!(schedule.load().kind(), "open");
    assert_eq!(schedule.load().describe(), "open loop, replay of a trace, 4 arrivals in 3 s");
}

#[test]
fn a_stop_cuts_a_trace() {
    let stopped = |stop| schedule(d09(), &[0, 10, 20, 30], stop, CacheRegime::Cold).count();
    assert_eq!(stopped(Stop::Count(2)), Some(2));
    assert_eq!(stopped(Stop::Duration(Span::from_ms(20))), Some(2));
    assert_eq!(stopped(Stop::Either { count: 4, duration: Span::from_ms(21) }), Some(3));
    // Seven requests of four rows: the trace begins again at 40 ms.
    let again = schedule(d09(), &[0, 10, 20, 30], Stop::Count(7), CacheRegime::Cold);
    let at = |index| (again.intended_at(index).unwrap() - At::ZERO).us();
    assert_eq!((at(3), at(4), at(6)), (30_000, 40_000, 60_000));
    assert_eq!(again.request(4).unwrap().input_tokens, again.request(0).unwrap().input_tokens);
}

#[test]
fn d09_equal_hashes_are_equal_text_and_others_are_not() {
    let bare = schedule(d09(), &[0, 0, 1, 2], Stop::Count(4), CacheRegime::AsIs);
    let texts: Vec<String> = (0..4).map(|index| text(&bare, index, 1)).collect();
    for (text, tokens) in texts.iter().zip([513, 512, 1024, 1024]) {
        assert_eq!(estimate_tokens(text), tokens);
    }
    // Lines 1, 2 and 5 share block 0, whole: the second of them is nothing else.
    assert!(texts[0].starts_with(&texts[1]) && texts[3].starts_with(&texts[1]));
    // Line 4 has ids whose low 32 bits are 0, and shares nothing.
    assert_ne!(texts[2][..40], texts[1][..40]);
    assert_ne!(texts[0][texts[1].len()..], texts[3][texts[1].len()..]);
}

#[test]
fn text_of_a_hash_depends_on_the_hash_alone() {
    let bare = schedule(d09(), &[0, 0, 1, 2], Stop::Count(4), CacheRegime::AsIs);
    let mut other = bare.spec().clone();
    other.seed = 99;
    let other = Schedule::draw(other).unwrap().0;
    assert_eq!(text(&bare, 3, 1), text(&other, 3, 2));
    // The same in every process and on every machine: as the first run had it.
    let start: String = text(&bare, 1, 1).chars().take(60).collect();
    assert_eq!(start, GOLDEN);
    // Without hashes a prompt is the request's own, and never empty.
    let rows = vec![row(20, 1, &[]), row(20, 1, &[])];
    let own = schedule(rows, &[0, 1], Stop::Count(2), CacheRegime::AsIs);
    assert_eq!(estimate_tokens(&text(&own, 0, 1)), 20);
    assert_ne!(text(&own, 0, 1), text(&own, 1, 1));
}

const GOLDEN: &str = "Its form began above the event since every capital left any ";

#[test]
fn a_nonce_of_the_run_keeps_what_is_shared_inside_it() {
    let cold = schedule(d09(), &[0, 0, 1, 2], Stop::Count(4), CacheRegime::Cold);
    assert!(text(&cold, 0, 5).starts_with(&text(&cold, 1, 5)));
    assert_ne!(text(&cold, 1, 5), text(&cold, 1, 6));
    assert_eq!(estimate_tokens(&text(&cold, 1, 5)), 512);
    let none = schedule(d09(), &[0, 0, 1, 2], Stop::Count(4), CacheRegime::None);
    assert!(!text(&none, 0, 5).starts_with(&text(&none, 1, 5)[..30]));
}

#[test]
fn the_hash_covers_times_and_blocks() {
    let of = |rows: Vec<LengthRow>, times: &[i64]| {
        let count = Stop::Count(rows.len() as u32);
        schedule(rows, times, count, CacheRegime::Cold).hash()
    };
    let base = of(d09(), &[0, 0, 1, 2]);
    assert_eq!(base, of(d09(), &[5, 5, 6, 7]), "only times from the first count");
    assert_ne!(base, of(d09(), &[0, 0, 1, 3]));
    let mut rows = d09();
    rows[1].blocks = None;
    assert_ne!(base, of(rows, &[0, 0, 1, 2]));
}
