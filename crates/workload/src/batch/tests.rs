use measure::Span;
use proptest::prelude::*;

use super::*;
use crate::load::{Load, Stop};
use crate::prompt::{CacheRegime, Content, PromptSource, RunNonce};
use crate::schedule::{OutputLength, Request, Schedule, Spec};

fn schedule(batch: Batch, mean: u32, spread: f64, cache: CacheRegime) -> Schedule {
    let spec = Spec {
        seed: 9,
        load: Load::Closed { users: 1, think: crate::think::Think::Fixed(Span::ZERO) },
        stop: Stop::Count(20),
        prompts: PromptSource::Synthetic { input: Lengths::uniform(mean, spread).unwrap() },
        pictures: None,
        prefixes: crate::prefix::Prefixes::NONE,
        batch,
        output: OutputLength::Unlimited,
        output_forced: false,
        cache,
        nonce_in_own_prompts: false,
        labels: Vec::new(),
        routing: crate::routing::Routing::default(),
        conversations: None,
    };
    Schedule::draw(spec).unwrap().0
}

fn texts(schedule: &Schedule, request: &Request) -> Vec<String> {
    match schedule.prompt(request, RunNonce::new(4)).content {
        Content::Text(text) => vec![text],
        Content::Texts(texts) => texts,
        Content::Messages(_) => panic!("texts"),
    }
}

fn words(text: &str) -> u32 {
    crate::prompt::estimate_tokens(text)
}

/// vLLM's lengths: query = ⌊L ÷ 2⌋ − 1, document = L − query − 1.
#[test]
fn a_reranker_reads_the_query_with_each_document() {
    let ranking = Ranking { documents: 3, mean: 101, spread: 0.0, together: true };
    let schedule = schedule(Batch::Ranking(ranking), 101, 0.0, CacheRegime::AsIs);
    for request in schedule.requests() {
        let lengths: Vec<u32> = texts(&schedule, &request).iter().map(|text| words(text)).collect();
        assert_eq!(lengths, [49, 51, 51, 51]);
        assert_eq!(request.input_tokens, Some(Tokens::new(3 * (49 + 51))));
    }
    let apart = Ranking { documents: 3, mean: 101, spread: 0.0, together: false };
    let schedule = super::tests::schedule(Batch::Ranking(apart), 101, 0.0, CacheRegime::AsIs);
    let request = schedule.request(0).unwrap();
    let lengths: Vec<u32> = texts(&schedule, &request).iter().map(|text| words(text)).collect();
    assert_eq!(lengths, [101; 4]);
    assert_eq!(request.input_tokens, Some(Tokens::new(404)));
}

#[test]
fn rules_are_told() {
    assert_eq!(Batch::Texts(0).check(true), Err(BatchError::Count));
    assert_eq!(Batch::Texts(MAX_TEXTS + 1).check(true), Err(BatchError::Count));
    assert_eq!(Batch::Texts(2).check(false), Err(BatchError::OwnPrompts));
    assert_eq!(Batch::One.check(false), Ok(()));
    let ranking = Ranking { documents: 3, mean: 5, spread: 0.0, together: true };
    assert_eq!(Batch::Ranking(ranking).check(true), Err(BatchError::TooShort));
}

proptest! {
    #[test]
    fn texts_of_a_batch_are_different_and_add_up(count in 1u32..6, mean in 12u32..60) {
        let batch = schedule(Batch::Texts(count), mean, 0.25, CacheRegime::Cold);
        let alone = schedule(Batch::One, mean, 0.25, CacheRegime::Cold);
        for request in batch.requests() {
            let texts = texts(&batch, &request);
            prop_assert_eq!(texts.len(), count as usize);
            let sum: u32 = texts.iter().map(|text| words(text)).sum();
            prop_assert_eq!(request.input_tokens, Some(Tokens::new(sum)));
            let mut sorted = texts.clone();
            sorted.sort();
            sorted.dedup();
            prop_assert_eq!(sorted.len(), texts.len());
            // The first text is what the request alone would be.
            let same = alone.request(request.index).unwrap();
            prop_assert_eq!(&texts[..1], &super::tests::texts(&alone, &same)[..]);
        }
    }
}
