//! `tokenizer.json`: one made here, and one of a model where the environment
//! names it.

use std::sync::Arc;

use tokens::read;
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::{Lengths, Lexicon};

use crate::written::schedule;

/// Three words, an unknown one, and a special one.
const SMALL: &str = r#"{"version":"1.0","truncation":{"direction":"Right","max_length":2,
"strategy":"LongestFirst","stride":0},"padding":null,
"added_tokens":[{"id":4,"content":"<|end|>","single_word":false,"lstrip":false,"rstrip":false,
"normalized":false,"special":true}],
"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,
"model":{"type":"WordLevel","vocab":{"[UNK]":0,"the":1,"cat":2,"sat":3},"unk_token":"[UNK]"}}"#;

#[test]
fn a_file_is_read_and_cuts_nothing_off() {
    let tokenizer = read("small", "tokenizer.json", SMALL.as_bytes()).unwrap();
    assert_eq!(tokenizer.encode("the cat sat the dog"), [1, 2, 3, 1, 0]);
    assert_eq!(tokenizer.count("the cat sat"), 3);
    assert_eq!(tokenizer.decode(&[1, 2]), "the cat");
    assert_eq!(tokenizer.vocabulary_size(), 5);
    assert_eq!(tokenizer.special_ids(), [4]);
    assert!(tokenizer.name().starts_with("small ("), "{}", tokenizer.name());
}

#[test]
fn what_a_files_template_adds_to_a_plain_text_is_known() {
    let bare = read("small", "tokenizer.json", SMALL.as_bytes()).unwrap();
    assert_eq!(bare.added(), 0);
    let template = r#""post_processor":{"type":"TemplateProcessing",
"single":[{"SpecialToken":{"id":"<|end|>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
"pair":[],"special_tokens":{"<|end|>":{"id":"<|end|>","ids":[4],"tokens":["<|end|>"]}}}"#;
    let marked = SMALL.replace(r#""post_processor":null"#, template);
    let marked = read("small", "tokenizer.json", marked.as_bytes()).unwrap();
    assert_eq!(marked.added(), 1);
    assert_eq!(marked.encode("the cat"), [1, 2]);
}

#[test]
fn another_kind_of_file_is_named_with_what_is_accepted() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "is empty"),
        (b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02", "SentencePiece"),
        (b"#version: 0.2\n", "no JSON object"),
        (b"{\"model_type\":\"qwen3\"}", "is no tokenizer.json that can be read"),
    ];
    for (bytes, words) in cases {
        let told = read("x", "dir/file", bytes).unwrap_err().to_string();
        assert!(told.starts_with("dir/file ") && told.contains(words), "{told}");
        assert!(told.contains("tokenizer.json"), "{told}");
    }
}

#[test]
fn a_tokenizer_without_english_makes_no_lengths() {
    let tokenizer = read("small", "tokenizer.json", SMALL.as_bytes()).unwrap();
    assert!(Lexicon::proven(&*tokenizer).is_err());
}

/// Needs `GOODPUT_TEST_TOKENIZER`, the tokenizer.json of a model; without it
/// there is nothing to look at. The repository's checks fetch one.
#[test]
fn a_models_tokenizer_makes_exact_lengths() {
    let Some(path) = std::env::var_os("GOODPUT_TEST_TOKENIZER") else { return };
    let bytes = std::fs::read(&path).unwrap();
    let tokenizer = read("model", "tokenizer.json", &bytes).unwrap();
    assert!(tokenizer.vocabulary_size() > 10_000);
    assert_eq!(tokenizer.decode(&tokenizer.encode("The cat sat, 汉字.")), "The cat sat, 汉字.");
    for special in tokenizer.special_ids() {
        assert!(!tokenizer.encode("The cat sat.").contains(&special));
    }
    let lexicon = Arc::new(Lexicon::proven(&*tokenizer).unwrap());
    for regime in CacheRegime::ALL {
        for (tokens, count) in [(1, 20), (2, 20), (8, 20), (9, 20), (512, 100), (4096, 3)] {
            let (input, lexicon) = (Lengths::fixed(tokens).unwrap(), Arc::clone(&lexicon));
            let schedule = schedule(PromptSource::Exact { input, lexicon }, count, 0, *regime);
            assert_eq!(schedule.check_lengths(&*tokenizer, RunNonce::new(1)), Ok(count));
        }
    }
}
