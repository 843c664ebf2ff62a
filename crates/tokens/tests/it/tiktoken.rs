//! Vocabularies of tiktoken: ids are those that tiktoken itself gives.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use tokens::read;
use workload::Tokenizer;

/// 256 bytes and 164 pairs, trained by `tiktoken._educational.bpe_train` of
/// tiktoken 0.14.0 on the README.
const SMALL: &[u8] = include_bytes!("../data/small.tiktoken");

/// What `tiktoken.Encoding(…).encode_ordinary` of tiktoken 0.14.0 gives with
/// that vocabulary and the `pat_str` of the family.
#[rustfmt::skip]
const GOLDEN: &[(&str, &str, &[u32])] = &[
    ("cl100k_base", "", &[]),
    ("cl100k_base", "The server answers.", &[84, 263, 352, 331, 391, 268, 115, 46]),
    ("cl100k_base", "it's we'll I'D don't", &[271, 363, 275, 101, 39, 310, 32, 73, 39, 68, 330, 284, 39, 116]),
    ("cl100k_base", "1234567 and 12", &[288, 51, 52, 53, 54, 55, 294, 32, 288]),
    ("cl100k_base", "naïve 你好世界 ÅÄ", &[110, 97, 195, 175, 324, 32, 228, 189, 160, 229, 165, 189, 228, 184, 150, 231, 149, 140, 32, 195, 133, 195, 132]),
    ("cl100k_base", "a  b   c\n\n  d\t\n", &[97, 32, 282, 256, 286, 289, 32, 330, 9, 10]),
    ("cl100k_base", "x/y//z\n/\n", &[120, 47, 121, 47, 47, 122, 10, 47, 10]),
    ("cl100k_base", "HTTPServer camelCase ABCdef", &[72, 84, 84, 80, 83, 268, 331, 286, 311, 321, 67, 312, 101, 32, 65, 66, 67, 100, 101, 102]),
    ("cl100k_base", "   ", &[338]),
    ("cl100k_base", "emoji 🙂🙂 end", &[101, 109, 111, 106, 105, 32, 240, 159, 153, 130, 240, 159, 153, 130, 332, 100]),
    ("cl100k_base", "\r\n\r\nline", &[13, 10, 13, 10, 108, 335]),
    ("o200k_base", "", &[]),
    ("o200k_base", "The server answers.", &[84, 263, 352, 331, 391, 268, 115, 46]),
    ("o200k_base", "it's we'll I'D don't", &[271, 363, 275, 101, 39, 310, 32, 73, 39, 68, 330, 284, 39, 116]),
    ("o200k_base", "1234567 and 12", &[288, 51, 52, 53, 54, 55, 294, 32, 288]),
    ("o200k_base", "naïve 你好世界 ÅÄ", &[110, 97, 195, 175, 324, 32, 228, 189, 160, 229, 165, 189, 228, 184, 150, 231, 149, 140, 32, 195, 133, 195, 132]),
    ("o200k_base", "a  b   c\n\n  d\t\n", &[97, 32, 282, 256, 286, 289, 32, 330, 9, 10]),
    ("o200k_base", "x/y//z\n/\n", &[120, 47, 121, 47, 47, 122, 10, 47, 10]),
    ("o200k_base", "HTTPServer camelCase ABCdef", &[72, 84, 84, 80, 83, 268, 331, 286, 311, 321, 67, 312, 101, 32, 65, 66, 67, 100, 101, 102]),
    ("o200k_base", "   ", &[338]),
    ("o200k_base", "emoji 🙂🙂 end", &[101, 109, 111, 106, 105, 32, 240, 159, 153, 130, 240, 159, 153, 130, 332, 100]),
    ("o200k_base", "\r\n\r\nline", &[13, 10, 13, 10, 108, 335]),
    ("gpt2", "", &[]),
    ("gpt2", "The server answers.", &[84, 263, 352, 331, 391, 268, 115, 46]),
    ("gpt2", "it's we'll I'D don't", &[271, 363, 275, 101, 39, 310, 32, 73, 39, 68, 330, 284, 39, 116]),
    ("gpt2", "1234567 and 12", &[288, 51, 52, 53, 54, 55, 294, 32, 288]),
    ("gpt2", "naïve 你好世界 ÅÄ", &[110, 97, 195, 175, 324, 32, 228, 189, 160, 229, 165, 189, 228, 184, 150, 231, 149, 140, 32, 195, 133, 195, 132]),
    ("gpt2", "a  b   c\n\n  d\t\n", &[97, 32, 282, 256, 286, 289, 32, 330, 9, 10]),
    ("gpt2", "x/y//z\n/\n", &[120, 47, 121, 47, 47, 122, 10, 47, 10]),
    ("gpt2", "HTTPServer camelCase ABCdef", &[72, 84, 84, 80, 83, 268, 331, 286, 311, 321, 67, 312, 101, 32, 65, 66, 67, 100, 101, 102]),
    ("gpt2", "   ", &[338]),
    ("gpt2", "emoji 🙂🙂 end", &[101, 109, 111, 106, 105, 32, 240, 159, 153, 130, 240, 159, 153, 130, 332, 100]),
    ("gpt2", "\r\n\r\nline", &[13, 10, 13, 10, 108, 335]),
];

const FAMILIES: [&str; 4] = ["cl100k_base", "o200k_base", "qwen", "gpt2"];

/// One of each family: an expression takes a while to be made.
static TOKENIZERS: LazyLock<HashMap<&str, Arc<dyn Tokenizer>>> = LazyLock::new(|| {
    let read = |family| read("small", &format!("dir/{family}.tiktoken"), SMALL).unwrap();
    FAMILIES.into_iter().map(|family| (family, read(family))).collect()
});

fn tokenizer(family: &str) -> &dyn Tokenizer {
    &*TOKENIZERS[family]
}

#[test]
fn ids_are_those_of_tiktoken() {
    for (family, text, ids) in GOLDEN {
        let tokenizer = tokenizer(family);
        assert_eq!(tokenizer.encode(text), *ids, "{family} {text:?}");
        assert_eq!(tokenizer.decode(ids), *text, "{family}");
    }
    assert_eq!(tokenizer("gpt2").vocabulary_size(), 420);
}

#[test]
fn a_long_text_without_spaces_takes_no_square_of_its_length() {
    let text = "servers".repeat(100_000);
    let tokenizer = tokenizer("cl100k_base");
    let ids = tokenizer.encode(&text);
    assert_eq!(tokenizer.decode(&ids), text);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let told = |file: &str, bytes: &[u8]| read("x", file, bytes).unwrap_err().to_string();
    let family = told("dir/vocabulary.tiktoken", SMALL);
    assert!(family.contains("dir/vocabulary.tiktoken is a tiktoken vocabulary"), "{family}");
    assert!(family.contains("o200k, cl100k, llama3"), "{family}");
    let with = |line: &[u8]| [SMALL, line].concat();
    for (line, words) in [
        (&b"!!! 500\n"[..], "line 421: not a token in base64 and its rank"),
        (b"eA== x\n", "line 421: not a token"),
        (b"eA== 4294967295\n", "line 421: not a token"),
        (b"eA== 500\n", "line 421: the token or its rank is there twice"),
        (b"eHh4eHg= 3\n", "line 421: the token or its rank is there twice"),
    ] {
        let error = told("gpt2.tiktoken", &with(line));
        assert!(error.starts_with("gpt2.tiktoken") && error.contains(words), "{error}");
    }
    assert!(told("gpt2.tiktoken", b"IQ== 0\nIg== 1\n").contains("no token for the byte 0"));
}

proptest! {
    #[test]
    fn any_text_comes_back(text in "\\PC{0,80}|[ \\n\\ta-z0-9]{0,80}") {
        for family in FAMILIES {
            let tokenizer = tokenizer(family);
            prop_assert_eq!(tokenizer.decode(&tokenizer.encode(&text)), text.clone());
        }
    }

    #[test]
    fn any_bytes_are_a_vocabulary_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let lines = [b"eA== 1\n", bytes.as_slice()].concat();
        prop_assert!(read("x", "gpt2.tiktoken", &lines).is_err());
    }
}
