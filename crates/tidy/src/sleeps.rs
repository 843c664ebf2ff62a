//! Tests that wait for time to pass: slow when they work, wrong when the
//! machine is busy.

use crate::source::{Source, has_word};

/// How waiting looks.
const SLEEPS: &[&str] = &["thread::sleep", "time::sleep", "time::sleep_until", "sleep"];

/// Files whose tests may wait, and why.
pub const ALLOWED: &[(&str, &str)] = &[(
    "crates/drive/tests/it/tls.rs",
    "a TLS server made by hand spaces its chunks by 10 ms, so that they are read apart",
)];

/// Tests that sleep.
pub fn check(sources: &[Source], allowed: &[(&str, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut used = Vec::new();
    for source in sources {
        for (line, code) in source.tests() {
            let sleeps = SLEEPS.iter().any(|word| has_word(code, &format!("{word}(")));
            if !sleeps {
                continue;
            }
            match allowed.iter().position(|(path, _)| *path == source.path) {
                Some(known) => used.push(known),
                None => problems.push(format!(
                    "{}:{line}: a test sleeps: wait for the event itself, or use a clock that the \
                     test moves",
                    source.path
                )),
            }
        }
    }
    for (position, (path, _)) in allowed.iter().enumerate() {
        if !used.contains(&position) {
            problems.push(format!("{path} does not sleep any more: take it off the list"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_in_a_test_is_caught_and_one_in_the_program_is_not() {
        let text = "fn f() { std::thread::sleep(d); }\n";
        let of = |path: &str, text: &str| Source::of(path, text);
        assert_eq!(check(&[of("crates/a/tests/a.rs", text)], &[]).len(), 1);
        assert!(check(&[of("crates/a/src/a.rs", text)], &[]).is_empty());
        assert!(
            check(&[of("crates/a/tests/a.rs", text)], &[("crates/a/tests/a.rs", "x")]).is_empty()
        );
        let imported = "#[cfg(test)]\nmod tests { fn f() { sleep(d).await } }\n";
        assert_eq!(check(&[of("crates/a/src/a.rs", imported)], &[]).len(), 1);
        let named = "fn g() { no_sleep(1); sleepless(2); }\n";
        assert!(check(&[of("crates/a/tests/a.rs", named)], &[]).is_empty());
        assert_eq!(check(&[], &[("crates/a/tests/a.rs", "x")]).len(), 1);
    }
}
