use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use measure::{Span, Tokens};
use proptest::prelude::*;

use super::*;
use crate::length::Lengths;
use crate::load::{Load, Stop};
use crate::prefix::Prefixes;
use crate::prompt::{CacheRegime, Content, PromptSource, RunNonce};
use crate::schedule::{OutputLength, Schedule, Spec};

/// Cuts a text before each space and mark, and each part after so many
/// characters. With `glued`, two parts that both begin so are one token where
/// they touch.
#[derive(Debug)]
struct Cutting {
    letters: usize,
    glued: Option<&'static str>,
    /// Ids by text, and texts by id.
    seen: Mutex<(HashMap<String, u32>, Vec<String>)>,
}

impl Cutting {
    fn after(letters: usize) -> Self {
        Self { letters, glued: None, seen: Mutex::default() }
    }

    fn parts(&self, text: &str) -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        for c in text.chars() {
            let full = parts.last().is_none_or(|part| part.chars().count() == self.letters);
            if full || c == ' ' || c == '.' || c == ',' {
                parts.push(String::new());
            }
            parts.last_mut().unwrap().push(c);
        }
        let Some(start) = self.glued else { return parts };
        let mut glued: Vec<String> = Vec::new();
        for part in parts {
            match glued.last_mut() {
                Some(last) if last.starts_with(start) && part.starts_with(start) => {
                    last.push_str(&part);
                }
                _ => glued.push(part),
            }
        }
        glued
    }
}

impl Tokenizer for Cutting {
    fn name(&self) -> &str {
        "cutting"
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        let mut seen = self.seen.lock().unwrap();
        let (ids, texts) = &mut *seen;
        let id = |part: String| {
            *ids.entry(part).or_insert_with_key(|part| {
                texts.push(part.clone());
                texts.len() as u32 - 1
            })
        };
        self.parts(text).into_iter().map(id).collect()
    }

    fn decode(&self, ids: &[u32]) -> String {
        let seen = self.seen.lock().unwrap();
        ids.iter().map(|id| seen.1[*id as usize].as_str()).collect()
    }

    fn count(&self, text: &str) -> u32 {
        self.parts(text).len() as u32
    }

    fn vocabulary_size(&self) -> u32 {
        u32::MAX
    }

    fn special_ids(&self) -> Vec<u32> {
        Vec::new()
    }
}

fn schedule(lexicon: &Arc<Lexicon>, tokens: u32, count: u32, cache: CacheRegime) -> Schedule {
    let spec = Spec {
        seed: 3,
        load: Load::Closed { users: 1, think: crate::think::Think::Fixed(Span::ZERO) },
        stop: Stop::Count(count),
        prompts: PromptSource::Exact {
            input: Lengths::fixed(tokens).unwrap(),
            lexicon: Arc::clone(lexicon),
        },
        pictures: None,
        batch: crate::batch::Batch::One,
        output: OutputLength::Unlimited,
        output_forced: false,
        cache,
        nonce_in_own_prompts: false,
        prefixes: Prefixes::NONE,
        labels: Vec::new(),
        routing: crate::Routing::default(),
        conversations: None,
    };
    Schedule::draw(spec).unwrap().0
}

#[test]
fn a_cost_is_what_the_tokenizer_counts() {
    let lexicon = Lexicon::proven(&Cutting::after(4)).unwrap();
    // " the" is four characters and " some" five.
    let cost = |text: &str| {
        let word = lexicon.determiners.iter().find(|word| word.text == text).unwrap();
        Form::ALL.map(|form| word.cost(form))
    };
    assert_eq!(cost("the"), [1, 1, 1]);
    assert_eq!(cost("some"), [2, 2, 1]);
    assert!(lexicon.nouns.iter().any(|noun| noun.cost(Form::Within) > 2));
}

#[test]
fn a_tokenizer_that_joins_words_is_refused() {
    // Each word by itself is proven, and two with the same first letter merge.
    let gluing = Cutting { glued: Some(" c"), ..Cutting::after(64) };
    let refused = Lexicon::proven(&gluing).unwrap_err();
    assert_eq!(refused, LexiconError::Borders("cutting".to_owned()));
    assert!(refused.to_string().contains("leave it out"), "{refused}");
}

#[test]
fn a_tokenizer_without_words_of_one_token_is_refused() {
    let refused = Lexicon::proven(&Cutting::after(1)).unwrap_err();
    assert_eq!(refused, LexiconError::NoFiller("cutting".to_owned()));
}

#[test]
fn a_prompt_of_another_length_is_told_before_the_run() {
    let lexicon = Arc::new(Lexicon::proven(&Cutting::after(4)).unwrap());
    let schedule = schedule(&lexicon, 50, 250, CacheRegime::Cold);
    let nonce = RunNonce::new(1);
    assert_eq!(schedule.check_lengths(&Cutting::after(4), nonce), Ok(100));
    let told = schedule.check_lengths(&Cutting::after(64), nonce).unwrap_err().to_string();
    assert!(told.contains("and not 50") && told.contains("leave out --tokenizer"), "{told}");
}

#[test]
fn one_prompt_in_a_hundred_is_checked_and_at_least_a_hundred() {
    let tokenizer = Cutting::after(64);
    let lexicon = Arc::new(Lexicon::proven(&tokenizer).unwrap());
    for (count, checked) in [(1, 1), (99, 99), (100, 100), (10_000, 100), (10_001, 101)] {
        let schedule = schedule(&lexicon, 3, count, CacheRegime::AsIs);
        assert_eq!(schedule.check_lengths(&tokenizer, RunNonce::new(1)), Ok(checked));
    }
}

#[test]
fn the_tokenizer_is_part_of_the_schedules_hash() {
    let hash = |letters| {
        let lexicon = Arc::new(Lexicon::proven(&Cutting::after(letters)).unwrap());
        schedule(&lexicon, 64, 4, CacheRegime::Cold).hash()
    };
    assert_eq!(hash(64), hash(64));
    assert_ne!(hash(64), hash(5));
}

#[test]
fn what_the_server_adds_is_part_of_a_prompts_length() {
    let tokenizer = Cutting::after(64);
    let bare = Lexicon::proven(&tokenizer).unwrap();
    let hash =
        |lexicon: &Lexicon| schedule(&Arc::new(lexicon.clone()), 9, 1, CacheRegime::Cold).hash();
    assert_eq!(hash(&bare.clone().with_special(0)), hash(&bare));
    let lexicon = Arc::new(bare.with_special(2));
    for (asked, sent) in [(50, 50), (3, 3), (2, 3), (1, 3)] {
        let schedule = schedule(&lexicon, asked, 1, CacheRegime::Cold);
        let request = schedule.request(0).unwrap();
        assert_eq!(request.input_tokens, Some(Tokens::new(sent)));
        let prompt = schedule.prompt(&request, RunNonce::new(1));
        assert_eq!(prompt.input_tokens, Some(Tokens::new(sent)));
        let Content::Text(text) = prompt.content else { panic!("a text") };
        assert_eq!(tokenizer.count(&text), sent - 2);
        assert_eq!(schedule.check_lengths(&tokenizer, RunNonce::new(1)), Ok(1));
        let notes = Schedule::draw(schedule.spec().clone()).unwrap().1;
        let raised: Vec<String> = notes.iter().map(ToString::to_string).collect();
        assert_eq!(raised.iter().any(|note| note.contains("sent with 3")), asked < 3);
    }
}

proptest! {
    // Each case proves a lexicon anew.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_prompt_has_the_tokens_asked_for_whatever_words_cost(
        letters in 3usize..12, tokens in 1u32..600, nonce: u64, regime in 0usize..4,
    ) {
        let tokenizer = Cutting::after(letters);
        let Ok(lexicon) = Lexicon::proven(&tokenizer) else { return Ok(()) };
        let schedule = schedule(&Arc::new(lexicon), tokens, 2, CacheRegime::ALL[regime]);
        for request in schedule.requests() {
            prop_assert_eq!(request.input_tokens, Some(Tokens::new(tokens)));
            let prompt = schedule.prompt(&request, RunNonce::new(nonce));
            let Content::Text(text) = prompt.content else { panic!("a text") };
            prop_assert_eq!(tokenizer.count(&text), tokens, "{}", text);
        }
    }
}
