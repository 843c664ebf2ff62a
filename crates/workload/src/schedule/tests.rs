use super::*;
use crate::arrival::{Pace, Process};
use crate::choice::{Assignment, Choice};
use crate::estimate_tokens;
use crate::prompt::Content;
use crate::routing::{Dealt, ModelKind};
use crate::shape::{Growth, Shape, Stage};
use crate::think::Think;
use measure::PerSecond;
use proptest::prelude::*;

mod trace;

fn spec(load: Load, stop: Stop) -> Spec {
    Spec {
        seed: 1,
        load,
        stop,
        prompts: PromptSource::Synthetic { input: Lengths::uniform(64, 0.25).unwrap() },
        pictures: None,
        batch: crate::batch::Batch::One,
        output: OutputLength::Drawn(Lengths::uniform(16, 0.25).unwrap()),
        output_forced: false,
        cache: CacheRegime::Cold,
        nonce_in_own_prompts: false,
        prefixes: Prefixes::NONE,
        labels: Vec::new(),
        routing: Routing::default(),
        conversations: None,
    }
}

fn open(rate: f64) -> Load {
    Load::Open { pace: Pace::flat(PerSecond::new(rate), 1.0) }
}

fn closed(users: u32) -> Load {
    Load::Closed { users, think: Span::from_ms(5).into() }
}

fn draw(spec: Spec) -> Schedule {
    Schedule::draw(spec).unwrap().0
}

fn list(n: usize, order: Order) -> PromptSource {
    let prompts = (0..n).map(|row| Prompt::text(format!("question {row}"))).collect();
    PromptSource::List { prompts, order }
}

fn text(schedule: &Schedule, index: u32, nonce: u64) -> String {
    let request = schedule.request(index).unwrap();
    match schedule.prompt(&request, RunNonce::new(nonce)).content {
        Content::Text(text) => text,
        Content::Texts(_) | Content::Messages(_) => panic!("a text"),
    }
}

#[test]
fn a_count_stops_at_the_count() {
    let schedule = draw(spec(open(4.0), Stop::Count(100)));
    assert_eq!(schedule.count(), Some(100));
    assert_eq!(schedule.requests().count(), 100);
    assert_eq!(schedule.request(100), None);
    assert_eq!(schedule.planned_duration(), None);
}

#[test]
fn a_duration_keeps_every_arrival_before_it() {
    let duration = Span::from_ms(10_000);
    let schedule = draw(spec(open(4.0), Stop::Duration(duration)));
    assert!(schedule.arrivals().all(|at| at < At::ZERO + duration));
    assert_eq!(schedule.planned_duration(), Some(duration));
    // The same process, cut elsewhere: the next arrival is past the end.
    let longer = draw(spec(open(4.0), Stop::Count(schedule.count().unwrap() + 1)));
    assert!(longer.arrivals().last().unwrap() >= At::ZERO + duration);
    assert!(longer.arrivals().zip(schedule.arrivals()).all(|(a, b)| a == b));
}

#[test]
fn the_earlier_of_two_stops_counts() {
    let duration = Span::from_ms(10_000);
    let either = |count| draw(spec(open(4.0), Stop::Either { count, duration }));
    assert_eq!(either(5).count(), Some(5));
    assert_eq!(either(5).planned_duration(), None);
    let by_time = draw(spec(open(4.0), Stop::Duration(duration)));
    assert_eq!(either(1_000).count(), by_time.count());
    assert_eq!(either(1_000).planned_duration(), Some(duration));
}

#[test]
fn a_burst_is_all_at_the_start() {
    let schedule = draw(spec(Load::Burst, Stop::Count(3)));
    assert_eq!(schedule.arrivals().collect::<Vec<_>>(), [At::ZERO; 3]);
    assert_eq!(
        Schedule::draw(spec(Load::Burst, Stop::Duration(Span::from_ms(1)))).unwrap_err(),
        SpecError::Load(LoadError::BurstNeedsCount)
    );
}

#[test]
fn a_closed_loop_for_a_time_has_no_last_request() {
    let schedule = draw(spec(closed(8), Stop::Duration(Span::from_ms(10_000))));
    assert_eq!(schedule.count(), None);
    assert_eq!(schedule.closes_at(), Some(At::from_us(10_000_000)));
    assert_eq!(schedule.arrivals().count(), 0);
    let far = schedule.request(4_000_000_000).unwrap();
    assert_eq!(far.after, After::Slot { think: Span::from_ms(5) });
    assert_eq!(far.session, 4_000_000_000);
    assert_eq!(schedule.deal(1, 2).nth(2).unwrap().index, 5);
    assert_eq!(schedule.hash().len(), 16);
}

const L01: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/cases/metrics/L01_rate_drift.json"
));
const L02: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/cases/metrics/L02_coordinated_omission.json"
));

/// Numbers of a case file, without a JSON reader: this crate has none.
fn case_numbers(case: &str, key: &str) -> Vec<f64> {
    let (_, value) = case.split_once(&format!("\"{key}\":")).unwrap();
    let value = value.strip_prefix('[').unwrap_or(value);
    let list = value.split([']', '}']).next().unwrap();
    // Of a scalar, what follows is the next key.
    list.split(',').map_while(|number| number.parse().ok()).collect()
}

#[test]
fn l01_the_plan_is_absolute_and_cannot_drift() {
    let number = |key| case_numbers(L01, key)[0];
    let (rate, n) = (number("rate"), number("n") as u32);
    let load = Load::Open { pace: Pace::flat(PerSecond::new(rate), f64::INFINITY) };
    let schedule = draw(spec(load, Stop::Count(n)));
    let last = schedule.arrivals().last().unwrap();
    assert_eq!(last, At::from_us(49_995_000));
    let planned_rate = f64::from(n - 1) / (last - At::ZERO).s();
    assert!(planned_rate >= number("scheduled_rate_min"));
    assert!((planned_rate - rate).abs() < 1e-9);
}

#[test]
fn l02_a_cap_moves_no_planned_instant() {
    let number = |key| case_numbers(L02, key)[0];
    let load = Load::Capped {
        pace: Pace::flat(PerSecond::new(number("rate")), f64::INFINITY),
        users: number("cap") as u32,
    };
    let schedule = draw(spec(load, Stop::Count(number("n") as u32)));
    assert_eq!(schedule.load().kind(), "capped");
    let service = Span::from_s(number("service_s"));
    let mut free_at = At::ZERO;
    let mut latencies = Vec::new();
    for planned_at in schedule.arrivals() {
        let sent_at = planned_at.max(free_at);
        free_at = sent_at + service;
        latencies.push(((free_at - planned_at).s(), (free_at - sent_at).s()));
    }
    let (planned, sent): (Vec<f64>, Vec<f64>) = latencies.into_iter().unzip();
    assert_eq!(planned, case_numbers(L02, "latency_from_planned_s"));
    assert_eq!(sent, case_numbers(L02, "latency_from_sent_s"));
}

#[test]
fn lengths_are_those_of_an_independent_program() {
    // As in stream/tests.rs; 512 ± 25 % is 384 to 640.
    let input = Lengths::uniform(512, 0.25).unwrap();
    let schedule = draw(Spec {
        prompts: PromptSource::Synthetic { input },
        ..spec(open(4.0), Stop::Count(6))
    });
    let lengths: Vec<u32> = schedule.requests().map(|r| r.input_tokens.unwrap().get()).collect();
    assert_eq!(lengths, [627, 444, 426, 415, 584, 407]);
}

#[test]
fn a_prompt_has_its_planned_length_and_limit() {
    let schedule = draw(spec(open(4.0), Stop::Count(20)));
    for request in schedule.requests() {
        let prompt = schedule.prompt(&request, RunNonce::new(5));
        let Content::Text(text) = &prompt.content else { panic!("a text") };
        assert_eq!(Some(Tokens::new(estimate_tokens(text))), request.input_tokens);
        assert_eq!(prompt.max_output_tokens, request.max_output_tokens);
    }
}

#[test]
fn one_use_of_the_seed_does_not_move_another() {
    let base = draw(spec(open(4.0), Stop::Count(50)));
    let longer = draw(Spec {
        prompts: PromptSource::Synthetic { input: Lengths::fixed(2000).unwrap() },
        cache: CacheRegime::None,
        ..spec(open(4.0), Stop::Count(50))
    });
    assert!(base.arrivals().eq(longer.arrivals()));
    let outputs = |s: &Schedule| s.requests().map(|r| r.max_output_tokens).collect::<Vec<_>>();
    assert_eq!(outputs(&base), outputs(&longer));
    let closed = draw(spec(closed(4), Stop::Count(50)));
    assert_eq!(text(&base, 7, 1), text(&closed, 7, 1));
}

#[test]
fn a_list_goes_round_and_says_so() {
    let with = |n, order, count| {
        Schedule::draw(Spec {
            prompts: list(n, order),
            cache: CacheRegime::AsIs,
            ..spec(open(4.0), Stop::Count(count))
        })
        .unwrap()
    };
    let (schedule, notes) = with(3, Order::AsIs, 7);
    let used: Vec<_> = schedule.requests().map(|request| request.prompt).collect();
    assert_eq!(used, [0, 1, 2, 0, 1, 2, 0].map(PromptRef::Listed));
    assert_eq!(notes, [Note::Oversampled { requests: 7, prompts: 3 }]);
    assert!(
        notes[0].to_string().contains("oversampled 2.33x, repeated prompts hit prefix caches"),
        "{}",
        notes[0]
    );
    assert_eq!(schedule.different_prompts(), Some(3));

    let (shuffled, notes) = with(8, Order::Shuffled, 8);
    let used: Vec<_> = shuffled.requests().map(|request| request.prompt).collect();
    assert_eq!(used, [3, 7, 5, 1, 4, 2, 0, 6].map(PromptRef::Listed));
    assert_eq!(notes, []);

    let (_, notes) = Schedule::draw(Spec {
        prompts: PromptSource::fixed("hello"),
        cache: CacheRegime::AsIs,
        ..spec(closed(2), Stop::Duration(Span::from_ms(1)))
    })
    .unwrap();
    assert_eq!(notes, [Note::MayRepeat { prompts: 1 }]);
}

#[test]
fn own_prompts_take_a_nonce_only_when_asked() {
    let with = |nonce_in_own_prompts| {
        Schedule::draw(Spec {
            prompts: PromptSource::fixed("Why is the sky blue?"),
            nonce_in_own_prompts,
            ..spec(open(4.0), Stop::Count(1))
        })
        .unwrap()
    };
    let (plain, notes) = with(false);
    assert_eq!(text(&plain, 0, 7), "Why is the sky blue?");
    assert_eq!(plain.cache(), CacheRegime::AsIs);
    assert_eq!(notes, [Note::NonceLeftOut { regime: CacheRegime::Cold }]);
    let (asked, notes) = with(true);
    assert_eq!(asked.cache(), CacheRegime::Cold);
    assert_eq!(notes, []);
    assert!(text(&asked, 0, 7).ends_with("\n\nWhy is the sky blue?"));
    // Six of the text, eight of the nonce.
    assert_eq!(asked.request(0).unwrap().input_tokens, Some(Tokens::new(14)));
    assert_ne!(plain.hash(), asked.hash());
}

#[test]
fn limits_of_answers_come_from_where_they_should() {
    let mut own = Prompt::text("one");
    own.max_output_tokens = Some(Tokens::new(10));
    let prompts =
        PromptSource::List { prompts: vec![own, Prompt::text("two")], order: Order::AsIs };
    let limits = |output| {
        let schedule = draw(Spec {
            prompts: prompts.clone(),
            output,
            output_forced: true,
            ..spec(open(4.0), Stop::Count(2))
        });
        schedule
            .requests()
            .map(|r| (r.max_output_tokens.map(Tokens::get), r.output_forced))
            .collect::<Vec<_>>()
    };
    let five = Lengths::fixed(5).unwrap();
    assert_eq!(limits(OutputLength::Unlimited), [(None, false), (None, false)]);
    assert_eq!(limits(OutputLength::Drawn(five.clone())), [(Some(5), true), (Some(5), true)]);
    let otherwise = Some(five);
    assert_eq!(limits(OutputLength::OfPrompt { otherwise }), [(Some(10), true), (Some(5), true)]);
    assert_eq!(
        limits(OutputLength::OfPrompt { otherwise: None }),
        [(Some(10), true), (None, false)]
    );
}

#[test]
fn the_hash_follows_what_is_sent_and_when() {
    let base = || spec(open(4.0), Stop::Count(50));
    let hash = |spec| draw(spec).hash();
    let same = hash(base());
    assert_eq!(same, hash(base()));
    let changed = [
        hash(Spec { seed: 2, ..base() }),
        hash(Spec { load: open(5.0), ..base() }),
        hash(Spec { load: closed(4), ..base() }),
        hash(Spec { stop: Stop::Count(51), ..base() }),
        hash(Spec { output: OutputLength::Unlimited, ..base() }),
        hash(Spec { output_forced: true, ..base() }),
        hash(Spec { cache: CacheRegime::None, ..base() }),
        hash(Spec { labels: vec![("tenant".into(), "a".into())], ..base() }),
        hash(Spec { prompts: list(3, Order::AsIs), ..base() }),
        hash(Spec { prompts: list(4, Order::AsIs), ..base() }),
        hash(Spec { prompts: list(3, Order::Shuffled), ..base() }),
    ];
    let all: std::collections::HashSet<_> = changed.iter().chain([&same]).collect();
    assert_eq!(all.len(), changed.len() + 1);
}

#[test]
fn labels_are_sorted_by_name() {
    let label = |name: &str| (name.to_owned(), "x".to_owned());
    let schedule = draw(Spec {
        labels: vec![label("tenant"), label("class")],
        ..spec(open(4.0), Stop::Count(1))
    });
    let planned = schedule.request(0).unwrap().planned();
    assert_eq!(planned.labels, [label("class"), label("tenant")]);
    assert_eq!(planned.session, 0);
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let refused = |load, stop| Schedule::draw(spec(load, stop)).unwrap_err();
    assert_eq!(refused(open(0.0), Stop::Count(1)), SpecError::Load(LoadError::Rate(0.0)));
    assert_eq!(refused(open(1e6), Stop::Count(MAX_TIMED + 1)), SpecError::TooManyArrivals);
    assert_eq!(refused(open(1e-9), Stop::Count(1)), SpecError::Load(LoadError::Horizon));
    let moment = Span::from_us(1);
    assert_eq!(refused(open(1.0), Stop::Duration(moment)), SpecError::NoArrival(moment));
    let empty = Spec {
        prompts: PromptSource::List { prompts: Vec::new(), order: Order::AsIs },
        ..spec(open(1.0), Stop::Count(1))
    };
    assert_eq!(Schedule::draw(empty).unwrap_err(), SpecError::NoPrompts);
}

#[test]
fn users_without_work_are_told_of() {
    let (_, notes) = Schedule::draw(spec(closed(8), Stop::Count(5))).unwrap();
    assert!(notes.contains(&Note::IdleUsers { users: 8, requests: 5 }));
}

/// Two conversations: 0 → 1 → 3 (3 also waits for 0), and 2 alone.
fn conversation() -> Vec<Request> {
    let request = |index, session, turn, parents: &[u32]| Request {
        index,
        after: if parents.is_empty() {
            After::Instant(At::from_us(i64::from(index)))
        } else {
            After::Parents { of: parents.to_vec(), think: Span::from_ms(200) }
        },
        session,
        turn,
        labels: Vec::new(),
        prompt: PromptRef::Written(Tokens::new(8)),
        input_tokens: Some(Tokens::new(8)),
        max_output_tokens: None,
        output_forced: false,
        route: Route::default(),
    };
    vec![
        request(0, 0, 0, &[]),
        request(1, 0, 1, &[0]),
        request(2, 1, 0, &[]),
        request(3, 0, 2, &[0, 1]),
    ]
}

fn of_requests(requests: Vec<Request>) -> Result<Schedule, SpecError> {
    Schedule::of_requests(spec(open(4.0), Stop::Count(1)), requests).map(|(schedule, _)| schedule)
}

#[test]
fn a_conversation_stays_with_one_worker() {
    let schedule = of_requests(conversation()).unwrap();
    assert_eq!(schedule.count(), Some(4));
    let dealt = |worker| schedule.deal(worker, 2).map(|r| r.index).collect::<Vec<_>>();
    assert_eq!(dealt(0), [0, 1, 3]);
    assert_eq!(dealt(1), [2]);
    assert_eq!(schedule.arrivals().collect::<Vec<_>>(), [At::ZERO, At::from_us(2)]);
    let mut other = conversation();
    other[1].after = After::Parents { of: vec![0], think: Span::from_ms(201) };
    assert_ne!(schedule.hash(), of_requests(other).unwrap().hash());
}

#[test]
fn every_broken_rule_of_a_graph_has_its_error() {
    let broken = |change: &dyn Fn(&mut Vec<Request>)| {
        let mut requests = conversation();
        change(&mut requests);
        match of_requests(requests) {
            Err(SpecError::Graph(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let after = |of: &[u32]| After::Parents { of: of.to_vec(), think: Span::ZERO };
    assert_eq!(broken(&|r| r.clear()), GraphError::Empty);
    assert_eq!(broken(&|r| r[1].index = 7), GraphError::Index { position: 1, index: 7 });
    for parent in [1, 3, 9] {
        assert_eq!(
            broken(&|r| r[1].after = after(&[parent])),
            GraphError::ParentNotBefore { index: 1, parent }
        );
    }
    assert_eq!(
        broken(&|r| r[3].after = after(&[1, 1])),
        GraphError::ParentTwice { index: 3, parent: 1 }
    );
    assert_eq!(
        broken(&|r| r[3].after = after(&[2])),
        GraphError::ParentElsewhere { index: 3, parent: 2 }
    );
    assert_eq!(broken(&|r| r[3].after = after(&[])), GraphError::NoParents { index: 3 });
    assert_eq!(
        broken(&|r| r[0].after = After::Slot { think: Span::ZERO }),
        GraphError::Start { index: 0, kind: "open" }
    );
    for us in [-1, i64::MAX] {
        assert_eq!(
            broken(&|r| r[0].after = After::Instant(At::from_us(us))),
            GraphError::Time { index: 0 }
        );
    }
    assert_eq!(broken(&|r| r[2].prompt = PromptRef::Listed(0)), GraphError::Prompt { index: 2 });
    assert_eq!(
        broken(&|r| r[2].prompt = PromptRef::Written(Tokens::new(0))),
        GraphError::Prompt { index: 2 }
    );
}

#[test]
fn chains_are_bounded() {
    let chain = |length: u32| {
        let first = conversation().swap_remove(0);
        (0..length)
            .map(|index| Request {
                index,
                after: match index.checked_sub(1) {
                    Some(parent) => After::Parents { of: vec![parent], think: Span::ZERO },
                    None => first.after.clone(),
                },
                ..first.clone()
            })
            .collect::<Vec<_>>()
    };
    assert!(of_requests(chain(MAX_DEPTH + 1)).is_ok());
    assert_eq!(
        of_requests(chain(MAX_DEPTH + 2)).unwrap_err(),
        SpecError::Graph(GraphError::TooDeep { index: MAX_DEPTH + 1 })
    );
}

fn any_load() -> impl Strategy<Value = Load> {
    let rate = PerSecond::new(50.0);
    prop_oneof![
        Just(Load::Open { pace: Pace::flat(rate, 1.0) }),
        (1u32..40).prop_map(move |users| Load::Capped { pace: Pace::flat(rate, 0.5), users }),
        (1u32..40).prop_map(|users| Load::Closed { users, think: Think::NONE }),
        Just(Load::Burst),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn workers_together_hold_the_whole_schedule(
        load in any_load(), n in 1u32..120, workers in 1u32..101, seed: u64,
    ) {
        let schedule = draw(Spec { seed, ..spec(load.clone(), Stop::Count(n)) });
        let mut dealt: Vec<Request> = Vec::new();
        let mut users = 0;
        for worker in 0..workers {
            let share: Vec<_> = schedule.deal(worker, workers).collect();
            prop_assert!(share.is_sorted_by_key(|request| request.index));
            let has = schedule.users_of(worker, workers);
            // Work without a user would never be sent.
            prop_assert!(share.is_empty() || has != Some(0));
            users += has.unwrap_or(0);
            for request in &share {
                prop_assert_eq!(schedule.owner(request, workers), worker);
            }
            dealt.extend(share);
        }
        prop_assert_eq!(users, load.users().unwrap_or(0));
        dealt.sort_by_key(|request| request.index);
        prop_assert_eq!(dealt, schedule.requests().collect::<Vec<_>>());
    }

    #[test]
    fn units_go_to_workers_in_turn(n in 1u32..50, workers in 1u32..8, each in 1u32..8) {
        for load in [open(50.0), closed(workers * each)] {
            let schedule = draw(spec(load, Stop::Count(n)));
            for request in schedule.requests() {
                prop_assert_eq!(schedule.owner(&request, workers), request.index % workers);
            }
        }
    }

    #[test]
    fn prompts_do_not_depend_on_who_asks_first(seed: u64, nonce: u64, workers in 1u32..9) {
        let schedule = draw(Spec { seed, cache: CacheRegime::None, ..spec(open(50.0), Stop::Count(20)) });
        let in_order: Vec<String> = (0..20).map(|k| text(&schedule, k, nonce)).collect();
        let again = draw(schedule.spec().clone());
        for worker in (0..workers).rev() {
            for request in again.deal(worker, workers) {
                prop_assert_eq!(&text(&again, request.index, nonce), &in_order[request.index as usize]);
            }
        }
        prop_assert_eq!(schedule.hash(), again.hash());
    }
}

#[test]
fn a_row_has_its_own_labels_beside_the_runs() {
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let prompts = vec![
        Prompt { labels: vec![label("tenant", "b"), label("class", "x")], ..Prompt::text("one") },
        Prompt::text("two"),
    ];
    let drawn = Schedule::draw(Spec {
        labels: vec![label("tenant", "a"), label("zone", "z")],
        prompts: PromptSource::List { prompts, order: Order::AsIs },
        ..spec(open(4.0), Stop::Count(2))
    });
    let schedule = drawn.unwrap().0;
    let labels = |index| schedule.request(index).unwrap().labels;
    assert_eq!(labels(0), [label("class", "x"), label("tenant", "b"), label("zone", "z")]);
    assert_eq!(labels(1), [label("tenant", "a"), label("zone", "z")]);
}

#[test]
fn lengths_of_a_list_are_written_as_text_of_their_own() {
    let row = |input, output| crate::prompt::LengthRow {
        input: Tokens::new(input),
        output: Tokens::new(output),
        blocks: None,
        labels: Vec::new(),
        source_row: 1,
    };
    let drawn = Schedule::draw(Spec {
        prompts: PromptSource::Lengths {
            rows: vec![row(30, 4), row(9, 7)],
            order: Order::AsIs,
            lexicon: None,
        },
        output: OutputLength::OfPrompt { otherwise: None },
        ..spec(open(4.0), Stop::Count(4))
    });
    let (schedule, notes) = drawn.unwrap();
    assert_eq!(notes, [Note::EstimatedLengths]);
    let requests: Vec<_> = schedule.requests().collect();
    let lengths = requests.iter().map(|request| {
        (request.input_tokens.unwrap().get(), request.max_output_tokens.unwrap().get())
    });
    assert_eq!(lengths.collect::<Vec<_>>(), [(30, 4), (9, 7), (30, 4), (9, 7)]);
    let text = |index: usize| schedule.prompt(&requests[index], RunNonce::new(1)).content;
    assert_ne!(text(0), text(2), "a length that comes again has another text");
}

/// What GuideLLM's workers break by drawing each from the same seed: the merge
/// of the workers' shares is the process, whatever their number.
#[test]
fn poisson_arrivals_are_poisson_for_any_number_of_workers() {
    for seed in 0..5 {
        let mut plan = spec(open(100.0), Stop::Count(20_000));
        plan.seed = seed;
        let schedule = draw(plan.clone());
        let planned: Vec<At> = schedule.arrivals().collect();
        for workers in [1, 2, 10] {
            let mut merged: Vec<(At, u32)> = (0..workers)
                .flat_map(|worker| schedule.deal(worker, workers))
                .map(|request| (schedule.intended_at(request.index).unwrap(), request.index))
                .collect();
            merged.sort_unstable();
            assert!(merged.iter().map(|(_, index)| *index).eq(0..20_000));
            let at: Vec<At> = merged.iter().map(|(at, _)| *at).collect();
            assert_eq!(at, planned, "{workers} workers, seed {seed}");
            let dispersion = crate::index_of_dispersion(&at, Span::from_ms(100)).unwrap();
            let (low, high) = dispersion.poisson_band_99();
            assert!((low..high).contains(&dispersion.index), "seed {seed}: {dispersion:?}");
            let mut gaps: Vec<f64> = std::iter::once(&At::ZERO)
                .chain(&at)
                .zip(&at)
                .map(|(earlier, later)| (*later - *earlier).s())
                .collect();
            gaps.sort_by(f64::total_cmp);
            let n = gaps.len() as f64;
            let distance = gaps.iter().enumerate().fold(0.0f64, |most, (place, gap)| {
                let (law, below) = (-(-100.0 * gap).exp_m1(), place as f64 / n);
                most.max((law - below).abs()).max((below + 1.0 / n - law).abs())
            });
            assert!(distance < 1.63 / n.sqrt(), "seed {seed}: {distance}");
        }
        assert_eq!(draw(plan).hash(), schedule.hash());
    }
}

#[test]
fn stages_end_the_plan_and_their_phases_count_it() {
    let stage = |rate, s| Stage { rate: PerSecond::new(rate), lasts: Span::from_s(s) };
    let shape = Shape::Stages(vec![stage(5.0, 4.0), stage(0.0, 2.0), stage(10.0, 4.0)]);
    let load = Load::Open { pace: Pace { process: Process::Constant, shape } };
    let schedule = draw(spec(load.clone(), Stop::Duration(Span::from_s(10.0))));
    assert_eq!(schedule.planned_duration(), Some(Span::from_s(10.0)));
    let drawn: Vec<u32> = schedule.phases().iter().map(|phase| phase.drawn).collect();
    assert_eq!((schedule.count(), drawn), (Some(60), vec![20, 0, 40]));
    // A count that is reached earlier cuts the plan, one that is not does not.
    let cut = draw(spec(load.clone(), Stop::Count(25)));
    assert_eq!(cut.phases().iter().map(|phase| phase.drawn).sum::<u32>(), 25);
    assert_eq!(draw(spec(load, Stop::Count(1_000))).count(), Some(60));
    let quiet = Shape::Stages(vec![stage(1e-6, 1.0)]);
    let load = Load::Open { pace: Pace { process: Process::Poisson, shape: quiet } };
    let refused = Schedule::draw(spec(load, Stop::Count(9))).unwrap_err();
    assert_eq!(refused, SpecError::NoArrival(Span::from_s(1.0)));
}

#[test]
fn think_times_are_drawn_for_each_request_and_belong_to_the_schedule() {
    let mean = Span::from_ms(500);
    let thinking = |think| {
        let schedule = draw(spec(Load::Closed { users: 3, think }, Stop::Count(50)));
        let spans: Vec<After> = schedule.requests().map(|request| request.after).collect();
        (schedule.hash(), spans)
    };
    let drawn = thinking(Think::Exponential { mean });
    assert_eq!(drawn, thinking(Think::Exponential { mean }));
    let others = [Think::Fixed(mean), Think::Uniform { from: Span::ZERO, to: mean }];
    assert!(others.into_iter().all(|other| thinking(other).0 != drawn.0));
    assert!(drawn.1.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn every_shape_and_process_has_its_own_digest_and_the_same_one_twice() {
    let stage = |rate, s| Stage { rate: PerSecond::new(rate), lasts: Span::from_s(s) };
    let rate = PerSecond::new;
    let over = Span::from_s(10.0);
    let ramp = |growth| Shape::Ramp { from: rate(5.0), to: rate(20.0), over, growth };
    let shapes = [
        Shape::Flat(rate(10.0)),
        ramp(Growth::Linear),
        ramp(Growth::Exponential),
        Shape::Stages(vec![stage(10.0, 10.0)]),
        Shape::Stages(vec![stage(10.0, 5.0), stage(10.0, 5.0)]),
        Shape::Sine { mean: rate(10.0), amplitude: rate(0.0), period: over },
        Shape::Bursts { on: stage(10.0, 5.0), off: stage(10.0, 5.0) },
    ];
    let processes =
        [Process::Constant, Process::Poisson, Process::Gamma { burstiness: 0.5 }, Process::Uniform];
    let mut hashes = std::collections::BTreeSet::new();
    for shape in &shapes {
        for process in processes {
            let load = Load::Open { pace: Pace { process, shape: shape.clone() } };
            let hash = || draw(spec(load.clone(), Stop::Duration(over))).hash();
            assert_eq!(hash(), hash());
            hashes.insert(hash());
        }
    }
    assert_eq!(hashes.len(), shapes.len() * processes.len());
}

fn routed(routing: Routing, load: Load) -> Schedule {
    draw(Spec { routing, ..spec(load, Stop::Count(400)) })
}

fn adapters(assignment: Assignment) -> Routing {
    let options = vec![("sql".to_owned(), 3.0), ("chat".to_owned(), 1.0)];
    let choice = Choice::new(options, assignment).unwrap();
    Routing { models: Some((ModelKind::Adapter, choice)), ..Routing::default() }
}

#[test]
fn adapters_are_labels_come_in_their_shares_and_belong_to_the_digest() {
    let drawn = routed(adapters(Assignment::Random), open(50.0));
    let plain = draw(spec(open(50.0), Stop::Count(400)));
    assert_ne!(drawn.hash(), plain.hash());
    assert_eq!(drawn.hash(), routed(adapters(Assignment::Random), open(50.0)).hash());
    let mut of_sql = 0;
    for (request, plain) in drawn.requests().zip(plain.requests()) {
        let model = request.route.model.clone().unwrap();
        assert_eq!(request.labels, [("adapter".to_owned(), model.clone())]);
        of_sql += u32::from(model == "sql");
        // Nothing else of the request moves.
        assert_eq!(Request { labels: Vec::new(), route: Route::default(), ..request }, plain);
    }
    // A binomial of 400 and three quarters: 4.5 standard deviations are 39.
    assert!((261..339).contains(&of_sql), "{of_sql}");
    let in_turn = routed(adapters(Assignment::InTurn), closed(3));
    let models: Vec<_> = in_turn.requests().take(8).map(|r| r.route.model.unwrap()).collect();
    assert_eq!(models, ["sql", "sql", "chat", "sql", "sql", "sql", "chat", "sql"]);
}

#[test]
fn a_conversation_keeps_its_adapter_and_target_and_turns_may_be_dealt_alone() {
    let requests = || -> Vec<Request> {
        let conversation = conversation();
        let of = |parent: &u32| *parent;
        (0..200u32)
            .flat_map(|copy| {
                conversation.iter().cloned().map(move |mut request| {
                    request.index += copy * 4;
                    request.session = request.session * 7 + copy * 100;
                    if let After::Parents { of: parents, .. } = &mut request.after {
                        *parents = parents.iter().map(|parent| of(parent) + copy * 4).collect();
                    }
                    request
                })
            })
            .collect()
    };
    let targets = |dealt| {
        let choice = Choice::new(vec![(0, 1.0), (1, 1.0)], Assignment::InTurn).unwrap();
        Routing { targets: Some((dealt, choice)), ..adapters(Assignment::Random) }
    };
    let schedule = |routing| {
        let spec = Spec { routing, ..spec(open(4.0), Stop::Count(1)) };
        Schedule::of_requests(spec, requests()).unwrap().0
    };
    let sticky = schedule(targets(Dealt::Sessions));
    let mut routes = std::collections::HashMap::new();
    for request in sticky.requests() {
        let route = routes.entry(request.session).or_insert_with(|| request.route.clone());
        assert_eq!(*route, request.route, "a turn of session {} strays", request.session);
    }
    // However sessions are numbered, each target gets as many of them.
    let at = |target| routes.values().filter(|route| route.target == target).count();
    assert_eq!((at(0), at(1)), (200, 200));
    let loose = schedule(targets(Dealt::Requests));
    assert!(loose.requests().all(|request| request.route.target == request.index % 2));
    assert_ne!(loose.hash(), sticky.hash());
}

#[test]
fn a_rows_priority_wins_over_that_of_the_run() {
    let own = Prompt { priority: Some(-5), ..Prompt::text("one") };
    let priorities = Choice::new(vec![(7, 1.0)], Assignment::Random).unwrap();
    let drawn = |priorities| {
        draw(Spec {
            prompts: PromptSource::List {
                prompts: vec![own.clone(), Prompt::text("two")],
                order: Order::AsIs,
            },
            labels: vec![("priority".to_owned(), "of the user".to_owned())],
            routing: Routing { priorities, ..Routing::default() },
            ..spec(open(4.0), Stop::Count(2))
        })
    };
    let seen = |schedule: Schedule| -> Vec<(Option<i32>, String)> {
        schedule.requests().map(|mut r| (r.route.priority, r.labels.remove(0).1)).collect()
    };
    let all = seen(drawn(Some(priorities)));
    assert_eq!(all, [(Some(-5), "-5".to_owned()), (Some(7), "7".to_owned())]);
    let rows = seen(drawn(None));
    assert_eq!(rows, [(Some(-5), "-5".to_owned()), (None, "of the user".to_owned())]);
}

fn prefixed(prefixes: Prefixes, cache: CacheRegime, count: u32) -> Spec {
    Spec { prefixes, cache, ..spec(closed(2), Stop::Count(count)) }
}

const SHARED: Prefixes = Prefixes { shared_tokens: 40, ..Prefixes::NONE };
const GROUPS: Prefixes = Prefixes { groups: 3, group_tokens: 30, ..Prefixes::NONE };

/// Words that two texts begin with, which is tokens by words.
fn common_words(one: &str, other: &str) -> usize {
    one.split(' ').zip(other.split(' ')).take_while(|(a, b)| a == b).count()
}

#[test]
fn a_shared_prefix_comes_before_every_prompt_and_besides_its_length() {
    let schedule = draw(prefixed(SHARED, CacheRegime::AsIs, 20));
    let plain = draw(prefixed(Prefixes::NONE, CacheRegime::AsIs, 20));
    assert_ne!(schedule.hash(), plain.hash());
    let first = text(&schedule, 0, 1);
    for index in 0..20 {
        let (request, own) = (schedule.request(index).unwrap(), plain.request(index).unwrap());
        let tokens = |request: &Request| request.input_tokens.unwrap().get();
        assert_eq!(tokens(&request), 40 + tokens(&own));
        let text = text(&schedule, index, 1);
        assert_eq!(estimate_tokens(&text), tokens(&request));
        assert!(index == 0 || common_tokens(&first, &text) == 40, "{text}");
        assert!(request.labels.is_empty(), "one group needs no name");
    }
}

/// Tokens that two texts begin with; the word in which they part is none.
fn common_tokens(one: &str, other: &str) -> u32 {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    estimate_tokens(one[..same].rsplit_once(' ').unwrap().0)
}

#[test]
fn groups_are_dealt_evenly_in_an_order_of_the_seed() {
    let groups = |seed: u64, count: u32| -> Vec<u32> {
        let schedule = draw(Spec { seed, ..prefixed(GROUPS, CacheRegime::Cold, count) });
        (0..count).map(|index| schedule.group(index).unwrap()).collect()
    };
    let drawn = groups(1, 32);
    let of = |group| drawn.iter().filter(|drawn| **drawn == group).count();
    assert_eq!([of(0), of(1), of(2)], [11, 11, 10], "no request is dropped");
    assert_ne!(drawn, groups(2, 32));
    assert_ne!(drawn, (0..32).map(|index| index % 3).collect::<Vec<_>>());
    let endless =
        Spec { stop: Stop::Duration(Span::from_ms(9)), ..prefixed(GROUPS, CacheRegime::Cold, 1) };
    let endless = draw(endless);
    assert_eq!(endless.groups.len(), 65_538);
    assert_eq!(endless.group(65_538), endless.group(0));
}

#[test]
fn prompts_of_one_group_begin_alike_and_others_do_not() {
    for cache in [CacheRegime::AsIs, CacheRegime::Cold, CacheRegime::Warm] {
        let schedule = draw(prefixed(GROUPS, cache, 12));
        let texts: Vec<String> = (0..12).map(|index| text(&schedule, index, 1)).collect();
        for (one, other) in (0..12).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let alike = schedule.group(one) == schedule.group(other);
            let words = common_words(&texts[one as usize], &texts[other as usize]);
            // Full stops and commas hang on their words here.
            assert!(if alike { words > 20 } else { words < 4 }, "{words} words, alike: {alike}");
        }
        let labels = schedule.request(5).unwrap().labels;
        let group = schedule.group(5).unwrap().to_string();
        assert_eq!(labels, [("prefix".to_owned(), group)]);
    }
}

#[test]
fn none_shares_nothing_even_where_there_are_prefixes() {
    for prefixes in [SHARED, GROUPS] {
        let schedule = draw(prefixed(prefixes, CacheRegime::None, 12));
        let texts: Vec<String> = (0..12).map(|index| text(&schedule, index, 1)).collect();
        for pair in texts.windows(2) {
            assert!(common_words(&pair[0], &pair[1]) < 3, "{pair:?}");
        }
    }
}

#[test]
fn cold_keeps_no_group_from_run_to_run() {
    for prefixes in [SHARED, GROUPS] {
        let schedule = draw(prefixed(prefixes, CacheRegime::Cold, 4));
        assert!(common_words(&text(&schedule, 0, 1), &text(&schedule, 0, 2)) < 3);
    }
}

#[test]
fn warm_primes_each_group_once() {
    let schedule = draw(prefixed(GROUPS, CacheRegime::Warm, 12));
    let priming = schedule.priming(0).unwrap();
    assert_eq!(priming.count(), Some(3));
    let run: Vec<String> = (0..12).map(|index| text(&schedule, index, 1)).collect();
    let mut primed = 0;
    for index in 0..3 {
        let text = text(&priming, index, 1);
        assert_eq!(estimate_tokens(&text), 30);
        assert_eq!(priming.request(index).unwrap().max_output_tokens, Some(Tokens::new(1)));
        primed += run.iter().filter(|prompt| prompt.starts_with(&text)).count();
    }
    assert_eq!(primed, 12, "the beginning of every prompt was sent once");
    assert_eq!(draw(prefixed(GROUPS, CacheRegime::Warm, 2)).priming(0).unwrap().count(), Some(2));
    assert_eq!(schedule.priming(5).unwrap().count(), Some(5));
    let shared = draw(prefixed(SHARED, CacheRegime::Warm, 12)).priming(0).unwrap();
    assert_eq!(shared.count(), Some(1));
    assert!(draw(prefixed(GROUPS, CacheRegime::Cold, 12)).priming(0).is_none());
}

#[test]
fn warm_primes_each_group_where_its_prompts_go() {
    let models = ["a", "b"].map(|name| (name.to_owned(), 1.0)).to_vec();
    let models = Choice::new(models, Assignment::Random).unwrap();
    let targets = Choice::new(vec![(0, 1.0), (1, 1.0)], Assignment::Random).unwrap();
    let routing = Routing {
        models: Some((ModelKind::Adapter, models)),
        targets: Some((Dealt::Requests, targets)),
        ..Routing::default()
    };
    let schedule = draw(Spec { routing, ..prefixed(GROUPS, CacheRegime::Warm, 60) });
    let priming = schedule.priming(0).unwrap();
    let met = |of: &Schedule| -> std::collections::BTreeSet<_> {
        let key = |r: Request| (of.group(r.session), r.route.model, r.route.target);
        of.requests().map(key).collect()
    };
    assert_eq!(met(&priming), met(&schedule));
    assert_eq!(priming.count(), Some(met(&schedule).len() as u32), "and none twice");
}

#[test]
fn without_groups_warm_primes_every_prompt() {
    let schedule = draw(prefixed(Prefixes::NONE, CacheRegime::Warm, 12));
    let priming = schedule.priming(0).unwrap();
    assert_eq!(priming.count(), Some(12));
    assert_eq!(text(&priming, 7, 1), text(&schedule, 7, 1));
}

#[test]
fn prompts_without_end_cannot_be_primed_and_the_regime_says_so() {
    let endless = |prefixes| {
        let stop = Stop::Duration(Span::from_ms(9));
        Schedule::draw(Spec { stop, ..prefixed(prefixes, CacheRegime::Warm, 1) }).unwrap()
    };
    let (schedule, notes) = endless(Prefixes::NONE);
    assert_eq!(schedule.cache(), CacheRegime::AsIs);
    assert!(notes.contains(&Note::NotPrimed) && schedule.priming(3).is_none());
    let (schedule, notes) = endless(SHARED);
    assert_eq!(schedule.cache(), CacheRegime::Warm);
    assert!(!notes.contains(&Note::NotPrimed));
}

#[test]
fn prefixes_that_begin_one_prompt_or_are_many_are_noted() {
    let notes = |groups, count| {
        let prefixes = Prefixes { groups, ..GROUPS };
        Schedule::draw(prefixed(prefixes, CacheRegime::Cold, count)).unwrap().1
    };
    assert!(notes(9, 4).contains(&Note::UnusedPrefixes { requests: 4, groups: 9 }));
    assert!(notes(101, 200).contains(&Note::NoPrefixLabels { groups: 101 }));
    assert_eq!(notes(100, 200), [Note::EstimatedLengths]);
}

#[test]
fn requests_of_one_session_begin_alike() {
    let prefixes = Prefixes { session_tokens: 12, ..SHARED };
    let of = |index: u32, session: u32| Request {
        index,
        after: After::Slot { think: Span::ZERO },
        session,
        turn: 0,
        labels: Vec::new(),
        prompt: PromptRef::Written(Tokens::new(60)),
        input_tokens: None,
        max_output_tokens: None,
        output_forced: false,
        route: Route::default(),
    };
    let requests = vec![of(0, 0), of(1, 1), of(2, 0)];
    let spec = prefixed(prefixes, CacheRegime::AsIs, 3);
    let (schedule, _) = Schedule::of_requests(spec, requests).unwrap();
    let texts = [0, 1, 2].map(|index| text(&schedule, index, 1));
    assert_eq!(common_tokens(&texts[0], &texts[2]), 52, "{texts:?}");
    assert_eq!(common_tokens(&texts[0], &texts[1]), 40, "{texts:?}");
}

proptest! {
    #[test]
    fn prefixes_have_their_tokens_in_every_regime(
        shared_tokens in 0u32..30,
        groups in 0u32..5,
        group_tokens in 0u32..30,
        session_tokens in 0u32..9,
        seed: u64,
    ) {
        let prefixes = Prefixes { shared_tokens, groups, group_tokens, session_tokens };
        for cache in CacheRegime::ALL {
            let schedule = draw(Spec { seed, ..prefixed(prefixes, *cache, 6) });
            for index in 0..6 {
                let tokens = schedule.request(index).unwrap().input_tokens.unwrap().get();
                prop_assert_eq!(estimate_tokens(&text(&schedule, index, 3)), tokens);
                prop_assert!(tokens >= prefixes.tokens() + 48);
            }
        }
    }
}

#[test]
fn a_prompt_is_warmed_wherever_it_goes() {
    let warmed = |routing| {
        let prompts = list(3, Order::AsIs);
        let spec = Spec { prompts, routing, ..spec(open(4.0), Stop::Count(8)) };
        draw(spec).different_prompts()
    };
    assert_eq!(warmed(Routing::default()), Some(3));
    assert_eq!(warmed(adapters(Assignment::Random)), Some(8));
}
