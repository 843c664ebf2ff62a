//! `explain` and `--help`.

use crate::program::Workplace;

#[test]
fn every_word_is_explained_in_both_languages() {
    let workplace = Workplace::new();
    let told = workplace.run(&["explain"]).exits(0);
    let list = told.out.split_once(":\n").unwrap().1;
    let words: Vec<&str> = list.trim().split(", ").collect();
    assert!(words.len() > 60, "{words:?}");
    for word in words {
        let english = workplace.run(&["explain", word]).exits(0).out;
        assert!(english.len() > 60, "{word}: {english}");
        let chinese = workplace.run(&["explain", word, "--lang", "zh"]).exits(0).out;
        assert!(
            chinese.chars().any(|c| ('\u{4e00}'..'\u{9fff}').contains(&c)),
            "{word}: {chinese}"
        );
    }
}

#[test]
fn words_may_be_typed_as_they_are_read() {
    let workplace = Workplace::new();
    for word in [&["TTFT"][..], &["ttft"], &["finish", "lag"], &["finish_lag"], &["idle_timeout"]] {
        workplace.run(&[&["explain"], word].concat()).exits(0);
    }
}

#[test]
fn an_unknown_word_gets_a_suggestion() {
    let workplace = Workplace::new();
    workplace.run(&["explain", "tttf"]).exits(2).says(&["tttf", "did you mean"]);
    let told = workplace.run(&["explain", "xylophone"]).exits(2).says(&["xylophone", "lists all"]);
    assert!(!told.err.contains("did you mean"));
    workplace.run(&["explain", "ttft", "--lang", "fr"]).exits(2).says(&["fr"]);
}

#[test]
fn the_help_of_every_command_has_the_exit_codes() {
    let workplace = Workplace::new();
    for command in [
        &[][..],
        &["bench"],
        &["report"],
        &["export"],
        &["import"],
        &["explain"],
        &["runs"],
        &["runs", "ls"],
        &["runs", "rm"],
        &["selftest"],
        &["probe"],
        &["sim"],
        &["sim", "serve"],
    ] {
        let told = workplace.run(&[command, &["--help"]].concat()).exits(0);
        assert!(told.out.contains("Usage:"), "{command:?}: {}", told.out);
        let codes = ["Exit codes:", "130 interrupted", "99 a --fail-if", "3 no HTTP response"];
        // Wrapped lines may break anywhere between words.
        let text = told.out.split_whitespace().collect::<Vec<_>>().join(" ");
        for code in codes {
            assert!(text.contains(code), "{command:?} does not tell {code:?}:\n{}", told.out);
        }
        assert_eq!(told.err, "");
    }
    let help = workplace.run(&["bench", "--help"]).out;
    for flag in ["--request-rate", "--goodput", "--json", "--prefix-cache", "--config", "Examples:"]
    {
        assert!(help.contains(flag), "{flag}");
    }
}

#[test]
fn no_command_is_usage_and_shows_the_commands() {
    let workplace = Workplace::new();
    let told = workplace.run(&[] as &[&str]);
    assert_eq!(told.code, Some(2));
    assert!(told.err.contains("bench") || told.out.contains("bench"));
    workplace.run(&["measure"]).exits(2).says(&["measure"]);
    workplace.run(&["--version"]).exits(0);
}
