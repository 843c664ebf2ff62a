//! Code that is not finished, not checked or not run.

use crate::source::{Source, has_word};

/// What stands in no source, and what to do instead.
pub const UNWANTED: &[(&str, &str)] = &[
    ("unsafe", "the workspace forbids it: find a crate that has the call safely"),
    ("todo!", "finish it, or leave it out and say so in the result"),
    ("unimplemented!", "finish it, or refuse it with an error that gives the reason"),
    ("dbg!", "take it out"),
];

/// Tests that do not run by themselves: name and reason.
pub const IGNORED: &[(&str, &str)] = &[
    (
        "write_the_golden_file",
        "writes the golden file of a new row version, once; it refuses to replace one",
    ),
    (
        "write_the_golden_metrics",
        "writes the golden file of a new version of metrics, once; it refuses to replace one",
    ),
    (
        "measure_how_far_truth_strays_from_the_plan",
        "measures the embedded engine's own error for seconds; the figures are read by a person",
    ),
];

/// Unwanted words in the code of sources.
pub fn words(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        for (line, code) in source.code.lines().enumerate() {
            for (word, rule) in UNWANTED.iter().filter(|(word, _)| has_word(code, word)) {
                problems.push(format!("{}:{}: `{word}`: {rule}", source.path, line + 1));
            }
        }
    }
    problems
}

/// Ignored tests that are not in the list.
pub fn ignored_tests(sources: &[Source], allowed: &[(&str, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut used = Vec::new();
    for source in sources {
        for (at, _) in source.code.match_indices("#[ignore") {
            let rest = source.code[at..].split_once("fn ").map_or("", |(_, rest)| rest);
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            match allowed.iter().position(|(known, _)| *known == name) {
                Some(known) => used.push(known),
                None => problems.push(format!(
                    "{}: the test `{name}` is ignored: make it run, or list it in tidy::unwanted \
                     with the reason",
                    source.path
                )),
            }
        }
    }
    for (position, (name, _)) in allowed.iter().enumerate() {
        if !used.contains(&position) {
            problems.push(format!("`{name}` is no ignored test any more: take it off the list"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_code_is_caught_and_texts_are_not() {
        for (word, _) in UNWANTED {
            let source = Source::of("crates/a/src/lib.rs", &format!("fn f() {{ {word} () }}\n"));
            assert_eq!(words(&[source]).len(), 1, "{word}");
        }
        let fine = "// dbg! is unsafe\n#![forbid(unsafe_code)]\nconst S: &str = \"todo!()\";\n";
        assert!(words(&[Source::of("crates/a/src/lib.rs", fine)]).is_empty());
    }

    #[test]
    fn an_ignored_test_needs_a_place_in_the_list() {
        let text = "#[test]\n#[ignore = \"slow\"]\nfn slow_one() {}\n";
        let source = Source::of("crates/a/tests/a.rs", text);
        let found = ignored_tests(std::slice::from_ref(&source), &[]);
        assert!(found[0].contains("`slow_one`"), "{found:?}");
        assert!(ignored_tests(&[source], &[("slow_one", "it is slow")]).is_empty());
        assert_eq!(ignored_tests(&[], &[("slow_one", "it is slow")]).len(), 1);
    }
}
