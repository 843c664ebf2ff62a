use super::*;
use crate::words;
use proptest::prelude::*;

fn text_of(prompt: &Prompt) -> &str {
    match &prompt.content {
        Content::Text(text) => text,
        Content::Texts(texts) => &texts[0],
        Content::Messages(messages) => &messages[0].content,
    }
}

fn write(seed: u64, index: u32, tokens: u32, regime: CacheRegime, nonce: u64) -> String {
    let (pieces, lexicon) = ([Piece::own(index, tokens)], Lexicon::by_words());
    let nonce = RunNonce::new(nonce).of(regime, index, 0);
    let prompt = written(seed, &pieces, lexicon, nonce);
    text_of(&prompt).to_owned()
}

/// The nonce's part: everything up to the first full stop.
fn head(text: &str) -> &str {
    text.split_once('.').unwrap().0
}

#[test]
fn a_written_prompt_has_the_tokens_asked_for() {
    for tokens in [1, 2, 3, 4, 7, 8, 9, 10, 100, 512, 4096] {
        for regime in CacheRegime::ALL {
            let text = write(1, 0, tokens, *regime, 7);
            assert_eq!(estimate_tokens(&text), tokens, "{tokens} {}: {text}", regime.name());
            assert!(!text.ends_with(','), "{text}");
        }
    }
}

#[test]
fn a_written_prompt_reads_like_english() {
    let text = write(1, 0, 2000, CacheRegime::AsIs, 0);
    assert!(!text.contains("..") && !text.contains(",.") && !text.contains("  "), "{text}");
    let sentences: Vec<_> = text.split(". ").collect();
    let mean = text.split_whitespace().count() / sentences.len();
    assert!((6..20).contains(&mean), "{mean} words a sentence");
    assert!(sentences.iter().all(|s| s.starts_with(|c: char| c.is_ascii_uppercase())));
    assert!(text.split_whitespace().collect::<std::collections::HashSet<_>>().len() > 500);
}

#[test]
fn cold_shares_one_nonce_within_a_run_and_none_with_another() {
    let first = write(1, 0, 64, CacheRegime::Cold, 7);
    assert_eq!(head(&first), head(&write(1, 1, 64, CacheRegime::Cold, 7)));
    assert_ne!(head(&first), head(&write(1, 0, 64, CacheRegime::Cold, 8)));
    assert_eq!(head(&first).split(' ').count(), 7);
}

#[test]
fn none_gives_every_request_a_nonce_of_its_own() {
    let heads: std::collections::HashSet<_> =
        (0..200).map(|k| head(&write(1, k, 64, CacheRegime::None, 7)).to_owned()).collect();
    assert_eq!(heads.len(), 200);
    assert_ne!(
        head(&write(1, 0, 64, CacheRegime::None, 7)),
        head(&write(1, 0, 64, CacheRegime::None, 8))
    );
}

/// llama.cpp's one slot found a common first token in one of eight prompts.
#[test]
fn prompts_in_a_row_share_not_even_their_first_word() {
    for nonce in [7, u64::MAX, 0x5eed_5eed_5eed_5eed] {
        let first =
            |k| write(1, k, 64, CacheRegime::None, nonce).split(' ').next().map(str::to_owned);
        let words: std::collections::HashSet<_> = (0..100).map(first).collect();
        assert_eq!(words.len(), 100);
    }
}

#[test]
fn warm_and_as_is_depend_on_the_seed_alone() {
    for regime in [CacheRegime::Warm, CacheRegime::AsIs] {
        assert_eq!(write(1, 3, 64, regime, 7), write(1, 3, 64, regime, 8));
        assert_ne!(write(1, 3, 64, regime, 7), write(2, 3, 64, regime, 7));
        assert_ne!(write(1, 3, 64, regime, 7), write(1, 4, 64, regime, 7));
    }
}

#[test]
fn a_nonce_goes_before_a_listed_prompt_when_asked() {
    let nonce = |regime| RunNonce::new(7).of(regime, 0, 0);
    let plain = Prompt::text("Why is the sky blue?");
    let with = listed(&plain, nonce(CacheRegime::Cold));
    assert!(text_of(&with).ends_with(".\n\nWhy is the sky blue?"));
    assert_eq!(with.input_tokens, Some(Tokens::new(6 + NONCE_TOKENS)));
    assert_eq!(listed(&plain, nonce(CacheRegime::AsIs)), plain);
    let chat = Prompt {
        content: Content::Messages(vec![
            Message::new("system", "Be brief."),
            Message::new("user", "Hello"),
        ]),
        ..plain
    };
    let Content::Messages(messages) = listed(&chat, nonce(CacheRegime::None)).content else {
        panic!("messages stay messages")
    };
    assert!(messages[0].content.ends_with(".\n\nBe brief."));
    assert_eq!(messages[1].content, "Hello");
}

#[test]
fn regimes_have_their_names() {
    let names: Vec<_> = CacheRegime::ALL.iter().map(|regime| regime.name()).collect();
    assert_eq!(names, ["cold", "none", "warm", "as-is"]);
    for &regime in CacheRegime::ALL {
        assert_eq!(CacheRegime::from_name(regime.name()), Some(regime));
    }
    assert_eq!(CacheRegime::from_name("hot"), None);
}

#[test]
fn the_word_lists_are_clean() {
    let lists = [
        words::DETERMINERS,
        words::ADJECTIVES,
        words::NOUNS,
        words::VERBS,
        words::ADVERBS,
        words::PREPOSITIONS,
        words::CONJUNCTIONS,
    ];
    for list in lists {
        let unique: std::collections::HashSet<_> = list.iter().collect();
        assert_eq!(unique.len(), list.len(), "a word twice in one list");
        for word in list {
            assert!(word.bytes().all(|byte| byte.is_ascii_lowercase()), "{word}");
            assert_eq!(estimate_tokens(word), 1, "{word}");
        }
    }
    // What the doc of NONCE_NOUNS promises.
    assert!(7.0 * (words::NOUNS.len() as f64).log2() > 63.0);
}

#[test]
fn tokens_are_estimated_by_the_stated_rule() {
    for (text, tokens) in [
        ("", 0),
        ("   ", 0),
        ("hello", 1),
        ("hello world", 2),
        ("Hello, world!", 4),
        ("line\n\n  next", 3),
        ("internationalisation", 3),
        ("1234567", 3),
        ("-----", 2),
        ("你好世界", 4),
        ("What is the capital of Norway?", 7),
    ] {
        assert_eq!(estimate_tokens(text), tokens, "{text:?}");
    }
}

proptest! {
    #[test]
    fn any_text_has_an_estimate_no_longer_than_itself(text in ".*") {
        prop_assert!(estimate_tokens(&text) as usize <= text.chars().count());
    }

    #[test]
    fn every_written_length_is_met(seed: u64, index: u32, tokens in 1u32..400, nonce: u64) {
        for regime in CacheRegime::ALL {
            prop_assert_eq!(estimate_tokens(&write(seed, index, tokens, *regime, nonce)), tokens);
        }
    }
}
