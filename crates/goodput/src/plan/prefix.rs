//! The flags that say what prompts have in common at their beginning.

use workload::prefix::{MAX_GROUPS, Prefixes};
use workload::{Lengths, MAX_TOKENS};

use crate::flags::Reader;

/// vLLM's name for N prefixes by M suffixes.
pub(super) const REPETITION: &str = "prefix_repetition";

/// Flags of that data set.
const REPETITION_FLAGS: &[&str] = &[
    "prefix-repetition-prefix-len",
    "prefix-repetition-suffix-len",
    "prefix-repetition-num-prefixes",
    "prefix-repetition-output-len",
];

/// As in vLLM.
const PREFIX_TOKENS: u32 = 256;
const SUFFIX_TOKENS: u32 = 256;
const GROUPS: u32 = 10;
const OUTPUT_TOKENS: u32 = 128;

/// True for the data set of repeated prefixes; `-` and `_` are the same.
pub(super) fn is_repetition(dataset: &str) -> bool {
    dataset.replace('-', "_") == REPETITION
}

/// Lengths of the prompts' own text and of the answers in that data set: what
/// `--isl` and `--osl` say, else its own flags, else vLLM's defaults.
pub(super) fn repetition_lengths(
    reader: &mut Reader<'_>,
    input: Lengths,
    output: Lengths,
) -> (Lengths, Lengths) {
    let mut of = |general: &str, asked: Lengths, flag: &str, default: u32| {
        let tokens = reader.value(flag, "a whole number of tokens");
        if reader.settings.has(general) {
            return asked;
        }
        Lengths::fixed(tokens.unwrap_or(default)).unwrap_or_else(|error| {
            reader.wrong(flag, error);
            asked
        })
    };
    (
        of("isl", input, "prefix-repetition-suffix-len", SUFFIX_TOKENS),
        of("osl", output, "prefix-repetition-output-len", OUTPUT_TOKENS),
    )
}

/// What written prompts begin with. `written` is false for a data set whose
/// prompts are sent as they are.
pub(super) fn prefixes(reader: &mut Reader<'_>, written: bool) -> Prefixes {
    let settings = reader.settings;
    let dataset = settings.text("dataset-name").unwrap_or("random");
    let mut tokens = |flag: &str, default: u32| {
        let tokens: u32 = reader.value(flag, "a whole number of tokens").unwrap_or(default);
        if tokens > MAX_TOKENS {
            reader.wrong(flag, format!("{tokens} tokens are over the limit of {MAX_TOKENS}"));
        }
        tokens
    };
    let mut prefixes = Prefixes {
        shared_tokens: tokens("shared-prefix-len", 0),
        session_tokens: tokens("session-prefix-len", 0),
        ..Prefixes::NONE
    };
    if is_repetition(dataset) {
        prefixes.group_tokens = tokens("prefix-repetition-prefix-len", PREFIX_TOKENS);
        let flag = "prefix-repetition-num-prefixes";
        prefixes.groups = reader.value(flag, "a whole number from 1").unwrap_or(GROUPS);
        if !(1..=MAX_GROUPS).contains(&prefixes.groups) {
            reader.wrong(flag, format!("must be from 1 to {MAX_GROUPS}"));
            prefixes.groups = 1;
        }
    }
    for flag in ["shared-prefix-len", "session-prefix-len"] {
        if settings.has(flag) && !written {
            let rule = "concerns prompts that goodput writes, and these are sent as they are; \
                        leave it out, or take --dataset-name random";
            reader.wrong(flag, rule);
        }
    }
    if prefixes.tokens() > MAX_TOKENS {
        let rule = format!("all prefixes of a prompt are over the limit of {MAX_TOKENS} tokens");
        reader.wrong("shared-prefix-len", rule);
        return Prefixes::NONE;
    }
    prefixes
}

/// Prompt lengths in words, the prefixes before them: those come besides what
/// `--isl` asks for.
pub(super) fn describe(prefixes: Prefixes, lengths: &str) -> String {
    let mut parts = Vec::new();
    if prefixes.shared_tokens > 0 {
        parts.push(format!("a shared prefix of {}", prefixes.shared_tokens));
    }
    if prefixes.group_tokens > 0 {
        parts.push(format!("one of {} prefixes of {}", prefixes.groups, prefixes.group_tokens));
    }
    if prefixes.session_tokens > 0 {
        parts.push(format!("a prefix of {} for each session", prefixes.session_tokens));
    }
    parts.push(lengths.to_owned());
    parts.join(" + ")
}

/// Flags of repeated prefixes that do nothing, since the data set is another.
pub(super) fn unused(reader: &Reader<'_>) -> Vec<String> {
    let settings = reader.settings;
    if settings.text("dataset-name").is_some_and(is_repetition) {
        return Vec::new();
    }
    let given = REPETITION_FLAGS.iter().filter(|flag| settings.has(flag));
    given.map(|flag| format!("--{flag} did nothing: it concerns {REPETITION} only")).collect()
}
