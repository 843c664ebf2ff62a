//! How long a function and how wide a line may be.

use crate::source::{LITERAL, Source};

/// The most lines of a function.
pub const FUNCTION_LINES: usize = 100;

/// The most columns of a line of code.
pub const LINE_COLUMNS: usize = 100;

/// Longer functions that are left as they are: path, name, reason.
pub const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];

/// Files that have wider lines all the same: path, how many, reason.
pub const WIDE_LINES: &[(&str, usize, &str)] = &[
    ("crates/measure/src/outcome.rs", 1, "the head of a macro that makes a table"),
    ("crates/measure/src/quantile.rs", 1, "arguments of a property, which rustfmt leaves alone"),
    ("crates/workload/src/schedule/tests.rs", 2, "arguments of properties"),
];

/// Functions that are longer than [`FUNCTION_LINES`].
pub fn functions(sources: &[Source], exceptions: &[(&str, &str, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut used = Vec::new();
    for source in sources {
        for function in source.functions() {
            if function.length <= FUNCTION_LINES {
                continue;
            }
            let known = exceptions
                .iter()
                .position(|(path, name, _)| *path == source.path && *name == function.name);
            match known {
                Some(known) => used.push(known),
                None => problems.push(format!(
                    "{}:{}: `{}` has {} lines, and {FUNCTION_LINES} is the most: cut it where it \
                     changes its subject",
                    source.path, function.line, function.name, function.length
                )),
            }
        }
    }
    for (position, (path, name, _)) in exceptions.iter().enumerate() {
        if !used.contains(&position) {
            problems.push(format!("{path}: `{name}` is no longer long: take it off the list"));
        }
    }
    problems
}

/// Lines that are wider than [`LINE_COLUMNS`], beyond those in the list. A line
/// with a part of a literal may be: a sentence that is broken for its length
/// is hard to search for.
pub fn lines(sources: &[Source], exceptions: &[(&str, usize, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        let texts = source.text.lines().zip(source.code.lines()).enumerate();
        let wide: Vec<usize> = texts
            .filter(|(_, (text, code))| {
                text.chars().count() > LINE_COLUMNS && !code.contains(LITERAL)
            })
            .map(|(line, _)| line + 1)
            .collect();
        let known = exceptions.iter().find(|(path, _, _)| *path == source.path);
        let allowed = known.map_or(0, |(_, count, _)| *count);
        let (path, count) = (&source.path, wide.len());
        if count > allowed {
            problems.push(format!(
                "{path}: {count} lines are wider than {LINE_COLUMNS} columns (lines {wide:?}), and \
                 {allowed} may be: break them"
            ));
        } else if count < allowed {
            problems.push(format!(
                "{path}: {count} lines are wide, not {allowed}: lower the number in tidy::size"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_function_is_caught_unless_it_is_listed() {
        let text = format!("fn long() {{\n{}}}\nfn short() {{\n}}\n", "    f();\n".repeat(99));
        let sources = [Source::of("crates/a/src/lib.rs", &text)];
        let found = functions(&sources, &[]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("`long` has 101 lines"), "{found:?}");
        let listed = ("crates/a/src/lib.rs", "long", "one state machine");
        assert!(functions(&sources, &[listed]).is_empty());
        assert_eq!(functions(&[], &[listed]).len(), 1, "a stale entry is a problem");
        let just = format!("fn just() {{\n{}}}\n", "    f();\n".repeat(98));
        assert!(functions(&[Source::of("crates/a/src/lib.rs", &just)], &[]).is_empty());
    }

    #[test]
    fn a_wide_line_is_caught_unless_a_text_is_in_it() {
        let wide = "x".repeat(101);
        let sources = |text: &str| [Source::of("crates/a/src/lib.rs", text)];
        let of = |text: &str| lines(&sources(text), &[]).len();
        assert_eq!(of(&format!("{wide}\n")), 1);
        assert_eq!(of(&format!("// {wide}\n")), 1);
        assert_eq!(of(&format!("f(\"{wide}\");\n")), 0);
        assert_eq!(of(&format!("f(\"a\n{wide}\");\n")), 0);
        assert_eq!(of(&format!("{}\n", "汉".repeat(100))), 0, "columns are characters");
        let listed = [("crates/a/src/lib.rs", 1, "a table")];
        let with_list = |text: &str| lines(&sources(text), &listed).len();
        assert_eq!(with_list(&format!("{wide}\n")), 0);
        assert_eq!(with_list(&format!("{wide}\n{wide}\n")), 1);
        assert_eq!(with_list("narrow\n"), 1, "a ratchet goes down only");
    }
}
