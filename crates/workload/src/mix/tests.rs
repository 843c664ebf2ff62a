use std::collections::BTreeMap;

use measure::{PerSecond, Tokens};
use proptest::prelude::*;

use super::*;
use crate::arrival::Pace;
use crate::length::Lengths;
use crate::prompt::{Content, Order, Prompt};
use crate::routing::ModelKind;
use crate::schedule::WrongLength;
use crate::tokenizer::Tokenizer;

fn part(name: &str, weight: f64, isl: u32) -> Part {
    Part {
        name: name.to_owned(),
        weight,
        prompts: PromptSource::Synthetic { input: Lengths::uniform(isl, 0.25).unwrap() },
        pictures: None,
        prefixes: Prefixes::NONE,
        batch: crate::batch::Batch::One,
        output: OutputLength::Drawn(Lengths::uniform(16, 0.25).unwrap()),
        output_forced: false,
        repeats: false,
        routing: Routing::default(),
    }
}

fn listed(name: &str, weight: f64, rows: usize) -> Part {
    let prompts = (0..rows).map(|row| Prompt::text(format!("{name} row {row}"))).collect();
    Part {
        prompts: PromptSource::List { prompts, order: Order::Shuffled },
        ..part(name, weight, 1)
    }
}

fn spec(parts: Vec<Part>, count: u32) -> Spec {
    Spec {
        seed: 11,
        load: Load::Open { pace: Pace::flat(PerSecond::new(50.0), 1.0) },
        stop: Stop::Count(count),
        prompts: PromptSource::Mix(Box::new(Mix::new(parts).unwrap())),
        pictures: None,
        prefixes: Prefixes::NONE,
        batch: crate::batch::Batch::One,
        output: OutputLength::OfPrompt { otherwise: None },
        output_forced: false,
        cache: CacheRegime::Cold,
        nonce_in_own_prompts: false,
        labels: Vec::new(),
        routing: Routing::default(),
        conversations: None,
    }
}

fn draw(spec: Spec) -> Schedule {
    Schedule::draw(spec).unwrap().0
}

fn workload(request: &Request) -> &str {
    &request.labels.iter().find(|(name, _)| name == WORKLOAD).unwrap().1
}

/// Prompts with the limits of their answers, by part.
fn prompts(schedule: &Schedule) -> BTreeMap<String, Vec<Prompt>> {
    let mut prompts: BTreeMap<String, Vec<Prompt>> = BTreeMap::new();
    for request in schedule.requests() {
        let prompt = schedule.prompt(&request, RunNonce::new(5));
        prompts.entry(workload(&request).to_owned()).or_default().push(prompt);
    }
    prompts
}

#[test]
fn parts_come_in_their_shares_and_partition_the_run() {
    let schedule = draw(spec(vec![part("chat", 3.0, 40), part("rag", 1.0, 300)], 4_000));
    let plain = draw(Spec {
        prompts: PromptSource::Synthetic { input: Lengths::fixed(9).unwrap() },
        ..schedule.spec().clone()
    });
    assert!(schedule.arrivals().eq(plain.arrivals()), "a mix moves no arrival");
    let mut rag = 0;
    for request in schedule.requests() {
        let of_rag = workload(&request) == "rag";
        rag += u32::from(of_rag);
        let range = if of_rag { 225..=375 } else { 30..=50 };
        assert!(range.contains(&request.input_tokens.unwrap().get()));
        assert_eq!(request.session, request.index);
    }
    // A binomial of 4000 and a quarter: 4.5 standard deviations are 123.
    assert!((877..1123).contains(&rag), "{rag}");
}

#[test]
fn a_part_sends_in_a_mix_what_it_sends_alone() {
    for cache in CacheRegime::ALL {
        let of = |parts: Vec<Part>, count| draw(Spec { cache: *cache, ..spec(parts, count) });
        let alone = prompts(&of(vec![part("chat", 1.0, 40)], 120));
        let rows = prompts(&of(vec![listed("rows", 5.0, 7)], 120));
        let three = vec![listed("rows", 1.0, 7), part("chat", 2.0, 40), part("rag", 1.0, 300)];
        let mixed = prompts(&of(three, 120));
        for (own, name) in [(&alone, "chat"), (&rows, "rows")] {
            let (own, mixed) = (&own[name], &mixed[name]);
            assert!(mixed.len() > 10 && mixed.len() < own.len());
            assert_eq!(mixed[..], own[..mixed.len()], "{name}, {}", cache.name());
        }
    }
}

#[test]
fn equal_parts_have_different_texts_and_nonces() {
    let of = |cache| {
        let parts = vec![part("a", 1.0, 40), part("b", 1.0, 40)];
        prompts(&draw(Spec { cache, ..spec(parts, 60) }))
    };
    let heads = |prompts: &BTreeMap<String, Vec<Prompt>>| -> Vec<String> {
        let text = |prompt: &Prompt| match &prompt.content {
            Content::Texts(_) => panic!("one prompt"),
            Content::Text(text) => text.split('\n').next().unwrap_or_default().to_owned(),
            Content::Messages(_) => panic!("a text"),
        };
        prompts.values().flatten().map(text).collect()
    };
    let distinct =
        |texts: Vec<String>| texts.into_iter().collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(distinct(heads(&of(CacheRegime::AsIs))), 60, "texts");
    assert_eq!(distinct(heads(&of(CacheRegime::None))), 60, "nonces of requests");
    assert_ne!(of(CacheRegime::Cold)["a"], of(CacheRegime::Cold)["b"]);
}

#[test]
fn the_digest_knows_parts_and_weights_and_not_their_order() {
    let hash = |parts| draw(spec(parts, 50)).hash();
    let two = || vec![part("chat", 3.0, 40), part("rag", 1.0, 300)];
    let base = hash(two());
    assert_eq!(base, hash(two().into_iter().rev().collect()));
    let mut others = vec![two(), two(), two(), two()];
    others[0][1].weight = 1.001;
    others[1][1].name = "rag 2".to_owned();
    others[2][1].prompts = PromptSource::Synthetic { input: Lengths::fixed(300).unwrap() };
    others[3].push(part("long", 1e-9, 9_000));
    for other in others {
        assert_ne!(base, hash(other));
    }
}

#[test]
fn notes_name_the_part() {
    let parts = vec![listed("rows", 1.0, 3), part("chat", 1.0, 40), part("rare", 1e-9, 9)];
    let (schedule, notes) = Schedule::draw(spec(parts, 40)).unwrap();
    let told: Vec<String> = notes.iter().map(ToString::to_string).collect();
    let rows = prompts(&schedule)["rows"].len() as u32;
    for words in [
        format!("{rows} requests share 3 different prompts"),
        "chat: prompt lengths are counted by words".to_owned(),
        "rows: the prompts are not ours, so they carry no nonce".to_owned(),
        "rare: no request fell to it".to_owned(),
    ] {
        assert!(told.iter().any(|note| note.contains(&words)), "{words} in {told:#?}");
    }
    assert_eq!(schedule.cache(), CacheRegime::Cold);
    let (rows_only, _) = Schedule::draw(spec(vec![listed("rows", 1.0, 9)], 5)).unwrap();
    assert_eq!(rows_only.cache(), CacheRegime::AsIs);
}

#[test]
fn a_mix_ends_before_a_list_would_begin_again() {
    let mix = |rows| Mix::new(vec![listed("rows", 1.0, rows), part("chat", 3.0, 40)]).unwrap();
    let ten = mix(10);
    let (ends, name) = ten.ends(11, None).unwrap();
    assert_eq!(name, "rows");
    assert_eq!(mix(10).ends(11, Some(ends)), None);
    assert_eq!(mix(10).ends(11, Some(ends + 1)), Some((ends, "rows")));
    let count = |count| {
        prompts(&draw(Spec {
            prompts: PromptSource::Mix(Box::new(mix(10))),
            ..spec(vec![part("x", 1.0, 9)], count)
        }))["rows"]
            .len()
    };
    assert_eq!((count(ends), count(ends + 1)), (10, 11));
    assert_eq!(Mix::new(vec![part("chat", 1.0, 40)]).unwrap().ends(11, None), None);
    let repeated = Part { repeats: true, ..listed("rows", 1.0, 10) };
    assert_eq!(Mix::new(vec![repeated]).unwrap().ends(11, None), None);
    let rare = vec![listed("rows", 1e-9, 10), part("chat", 1.0, 40)];
    assert_eq!(Mix::new(rare).unwrap().ends(11, None), None);
}

#[test]
fn the_routing_of_a_part_wins_over_that_of_the_run() {
    let models = |name: &str| {
        let choice = Choice::new(vec![(name.to_owned(), 1.0)], Assignment::Random).unwrap();
        Some((ModelKind::Adapter, choice))
    };
    let priorities = Choice::new(vec![(3, 1.0)], Assignment::Random).ok();
    let own = Routing { models: models("own"), priorities, targets: None };
    let parts = vec![Part { routing: own, ..part("a", 1.0, 9) }, part("b", 1.0, 9)];
    let routing = Routing { models: models("run"), ..Routing::default() };
    let schedule = draw(Spec { routing, ..spec(parts, 40) });
    for request in schedule.requests() {
        let expected = match workload(&request) {
            "a" => (Some("own"), Some(3)),
            _ => (Some("run"), None),
        };
        let (model, priority) = expected;
        assert_eq!((request.route.model.as_deref(), request.route.priority), expected);
        let label = |name: &str| request.labels.iter().find(|(other, _)| other == name);
        assert_eq!(label("adapter").map(|(_, value)| value.as_str()), model);
        assert_eq!(label("priority").is_some(), priority.is_some());
    }
}

#[test]
fn a_wrong_length_names_its_part() {
    #[derive(Debug)]
    struct Blind;
    impl Tokenizer for Blind {
        fn name(&self) -> &str {
            "blind"
        }
        fn encode(&self, _: &str) -> Vec<u32> {
            Vec::new()
        }
        fn vocabulary_size(&self) -> u32 {
            0
        }
        fn special_ids(&self) -> Vec<u32> {
            Vec::new()
        }
        fn decode(&self, _: &[u32]) -> String {
            String::new()
        }
    }
    let exact = Part {
        prompts: PromptSource::Exact {
            input: Lengths::fixed(9).unwrap(),
            lexicon: std::sync::Arc::new(crate::Lexicon::by_words().clone()),
        },
        ..part("exact", 1.0, 9)
    };
    let schedule = draw(spec(vec![exact, part("chat", 1.0, 9)], 30));
    let wrong: WrongLength = schedule.check_lengths(&Blind, RunNonce::new(1)).unwrap_err();
    assert_eq!(wrong.part.as_deref(), Some("exact"));
    assert!(wrong.to_string().starts_with("the prompt of request 0 of exact has 0 tokens"));
}

#[test]
fn a_mix_without_end_goes_on_past_its_round() {
    let parts = vec![part("chat", 3.0, 40), part("rag", 1.0, 300)];
    let endless = Spec {
        load: Load::Closed { users: 4, think: Think::NONE },
        stop: Stop::Duration(measure::Span::from_ms(1_000)),
        ..spec(parts, 1)
    };
    let schedule = draw(endless);
    assert_eq!(schedule.count(), None);
    let text = |index| {
        let request = schedule.request(index).unwrap();
        let name = workload(&request).to_owned();
        (name, schedule.prompt(&request, RunNonce::new(1)).content)
    };
    let (first, again) = (text(7), text(ROUND + 7));
    assert_eq!(first.0, again.0);
    assert_ne!(first.1, again.1, "a turn that comes again has another prompt");
}

proptest! {
    #[test]
    fn turns_number_each_part_without_gaps(
        weights in prop::collection::vec(0.01..10.0f64, 1..6), seed: u64, count in 1u32..300,
    ) {
        let named = weights.iter().enumerate().map(|(k, weight)| (k.to_string(), *weight));
        let names = Choice::new(named.collect(), Assignment::Random).unwrap();
        let turns = Turns::draw(&names, seed, Some(count));
        let mut next = vec![0; weights.len()];
        // Past the end of the round too.
        for index in 0..count * 3 {
            let (part, number) = turns.at(index);
            prop_assert_eq!(number, next[part]);
            prop_assert_eq!(turns.of_part(part, index), number);
            prop_assert_eq!(turns.index_of(part, number), Some(index));
            next[part] += 1;
        }
    }

    #[test]
    fn a_mix_is_the_same_for_any_number_of_workers(workers in 1u32..7, seed: u64) {
        let parts = vec![part("a", 1.0, 9), part("b", 2.0, 30)];
        let schedule = draw(Spec { seed, ..spec(parts, 60) });
        let mut dealt: Vec<Request> =
            (0..workers).flat_map(|worker| schedule.deal(worker, workers)).collect();
        dealt.sort_by_key(|request| request.index);
        prop_assert_eq!(dealt, schedule.requests().collect::<Vec<_>>());
        let tokens = |request: &Request| request.input_tokens.map(Tokens::get);
        prop_assert!(schedule.requests().all(|request| tokens(&request).is_some()));
    }
}
