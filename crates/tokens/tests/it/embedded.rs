//! The embedded tokenizer: its vocabulary, and exact lengths under it.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use measure::Tokens;
use proptest::prelude::*;
use tokens::{Bpe, VocabularyError, embedded, pieces};
use workload::digest::Digest;
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::schedule::Schedule;
use workload::{Lengths, Lexicon, Tokenizer};

use crate::trainer;
use crate::written::{self, texts};

/// Pairs that the vocabulary holds: 4096 tokens with the single bytes.
const PAIRS: usize = 3840;

static LEXICON: LazyLock<Arc<Lexicon>> =
    LazyLock::new(|| Arc::new(Lexicon::proven(&*embedded()).unwrap()));

fn schedule(tokens: u32, count: u32, seed: u64, cache: CacheRegime) -> Schedule {
    let lexicon = Arc::clone(&LEXICON);
    let prompts = PromptSource::Exact { input: Lengths::fixed(tokens).unwrap(), lexicon };
    written::schedule(prompts, count, seed, cache)
}

#[test]
fn the_embedded_vocabulary_reads_and_is_the_one_named() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/embedded.bpe");
    if std::env::var_os("UPDATE").is_some() {
        let pairs = trainer::train(&trainer::corpus(), PAIRS);
        std::fs::write(&path, Bpe::file_of(&pairs)).unwrap();
    }
    let file = std::fs::read(&path).unwrap();
    let read = Bpe::of_bytes("it", &file).unwrap();
    assert_eq!(read.vocabulary_size() as usize, 256 + PAIRS);
    // Another file takes another name: prompts compare under one name only.
    let digest = Digest::new().raw(&file).hex();
    assert_eq!((embedded().name(), digest.as_str()), ("embedded-1", DIGEST));
}

const DIGEST: &str = "70abe025ac2f7047";

#[test]
fn most_words_of_prompts_are_one_token() {
    let text = &texts(&schedule(4096, 1, 1, CacheRegime::AsIs), 0)[0];
    let words = text.split_whitespace().count();
    assert!((2800..4096).contains(&words), "{words} words in 4096 tokens");
}

#[test]
fn pieces_are_words_with_their_space() {
    let cut = |text| pieces(text).collect::<Vec<_>>();
    assert_eq!(cut("The cat, it ran."), ["The", " cat", ",", " it", " ran", "."]);
    assert_eq!(cut("a  b\n c 12345"), ["a", " ", " b", "\n", " c", " ", "123", "45"]);
    assert_eq!(cut("x ()=> y"), ["x", " ()=>", " y"]);
    assert_eq!(cut("汉字 ok\n\n"), ["汉字", " ok", "\n\n"]);
    assert_eq!(pieces(&"a".repeat(130)).count(), 3);
    assert_eq!(pieces("").count(), 0);
}

#[test]
fn pairs_are_joined_in_the_order_of_their_making() {
    // 256 = "ab", 257 = "bc", 258 = "abc" out of "ab" and "c".
    let (a, b, c) = (u16::from(b'a'), u16::from(b'b'), u16::from(b'c'));
    let bpe = Bpe::of_pairs("small", &[(a, b), (b, c), (256, c)]).unwrap();
    assert_eq!(bpe.encode("abc"), [258]);
    assert_eq!(bpe.encode("abcbc"), [258, 257]);
    assert_eq!(bpe.encode("bcab"), [257, 256]);
    assert_eq!(bpe.decode(&[258, 257, 9999]), "abcbc");
}

#[test]
fn a_damaged_vocabulary_is_an_error() {
    let refused = |bytes: &[u8]| Bpe::of_bytes("it", bytes).unwrap_err();
    assert_eq!(refused(b"{}"), VocabularyError::Magic);
    let file = Bpe::file_of(&[(1, 2)]);
    assert_eq!(refused(&file[..file.len() - 1]), VocabularyError::Cut);
    assert_eq!(refused(&Bpe::file_of(&[(1, 256)])), VocabularyError::Order(0));
}

#[test]
fn every_length_up_to_4096_is_met() {
    let tokenizer = embedded();
    for tokens in (1..64).chain((64..=4096).step_by(61)).chain([4096]) {
        for regime in CacheRegime::ALL {
            let text = &texts(&schedule(tokens, 1, 5, *regime), 9)[0];
            assert_eq!(tokenizer.count(text), tokens, "{}: {text}", regime.name());
        }
    }
}

#[test]
fn two_runs_of_one_seed_send_the_same_and_no_two_requests_do() {
    let prompts = texts(&schedule(32, 500, 2, CacheRegime::None), 4);
    assert_eq!(prompts, texts(&schedule(32, 500, 2, CacheRegime::None), 4));
    let different: std::collections::HashSet<_> = prompts.iter().collect();
    assert_eq!(different.len(), 500);
    // Other runs share no beginning with this one.
    let other = texts(&schedule(32, 1, 2, CacheRegime::Cold), 5);
    assert_ne!(other[0][..16], texts(&schedule(32, 1, 2, CacheRegime::Cold), 6)[0][..16]);
}

#[test]
fn the_check_before_a_run_passes() {
    let schedule = schedule(300, 20_000, 7, CacheRegime::Cold);
    assert_eq!(schedule.check_lengths(&*embedded(), RunNonce::new(3)), Ok(200));
}

proptest! {
    #[test]
    fn any_text_comes_back(text in "\\PC{0,80}|[a-z \\n,.0-9]{0,80}|(?s).{0,40}") {
        let tokenizer = embedded();
        let ids = tokenizer.encode(&text);
        prop_assert_eq!(tokenizer.decode(&ids), text.as_str());
        prop_assert_eq!(pieces(&text).collect::<String>(), text);
        prop_assert!(ids.iter().all(|id| *id < tokenizer.vocabulary_size()));
    }

    #[test]
    fn a_prompt_has_exactly_the_tokens_asked_for(
        tokens in 1u32..=4096, seed: u64, nonce: u64, regime in 0usize..4,
    ) {
        let schedule = schedule(tokens, 1, seed, CacheRegime::ALL[regime]);
        prop_assert_eq!(schedule.request(0).unwrap().input_tokens, Some(Tokens::new(tokens)));
        prop_assert_eq!(embedded().count(&texts(&schedule, nonce)[0]), tokens);
    }

    #[test]
    fn any_bytes_are_a_vocabulary_or_an_error(bytes: Vec<u8>) {
        let file = [b"GPBPE\x00\x00\x01".as_slice(), &bytes].concat();
        if let Ok(bpe) = Bpe::of_bytes("it", &file) {
            prop_assert_eq!(bpe.decode(&bpe.encode("the cat")), "the cat");
        }
    }
}
