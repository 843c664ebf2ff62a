//! Names that say nothing.

use crate::source::{Source, has_word};

/// Names of modules that only say that something is in them.
pub const BANNED: &[&str] = &[
    "utils",
    "util",
    "common",
    "helpers",
    "helper",
    "misc",
    "manager",
    "handler",
    "processor",
    "base",
];

/// Files, directories and modules with such a name.
pub fn check<'a>(paths: impl Iterator<Item = &'a str>, sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for path in paths.filter(|path| path.starts_with("crates/")) {
        let last = path.rsplit('/').next().unwrap_or(path);
        let stem = last.split('.').next().unwrap_or(last);
        if BANNED.contains(&stem) {
            problems.push(format!("{path}: `{stem}` says nothing: name what is in it"));
        }
    }
    for source in sources {
        for (line, code) in source.code.lines().enumerate() {
            for name in BANNED.iter().filter(|name| has_word(code, &format!("mod {name}"))) {
                problems.push(format!(
                    "{}:{}: `mod {name}` says nothing: name what is in it",
                    source.path,
                    line + 1
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_caught_as_file_as_directory_and_as_module() {
        let paths = ["crates/a/src/utils.rs", "crates/a/tests/common", "crates/a/src/base64.rs"];
        let inline = Source::of("crates/a/src/lib.rs", "mod helpers {}\nmod basement {}\n");
        assert_eq!(check(paths.into_iter(), &[inline]).len(), 3);
        assert!(check(["testdata/misc"].into_iter(), &[]).is_empty());
    }
}
