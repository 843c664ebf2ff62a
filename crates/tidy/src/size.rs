//! How long a function and how wide a line may be.

use crate::source::{LITERAL, Source};

/// The most lines of a function.
pub const FUNCTION_LINES: usize = 100;

/// The most columns of a line of code.
pub const LINE_COLUMNS: usize = 100;

/// Longer functions that are left as they are: path, name, reason.
pub const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];

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

/// Lines that are wider than [`LINE_COLUMNS`]. A line with a part of a literal
/// may be: breaking a sentence for its length makes it hard to search for.
pub fn lines(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        for (line, (text, code)) in source.text.lines().zip(source.code.lines()).enumerate() {
            let columns = text.chars().count();
            if columns > LINE_COLUMNS && !code.contains(LITERAL) {
                problems.push(format!(
                    "{}:{}: {columns} columns, and {LINE_COLUMNS} is the most: break it",
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
        let of = |text: &str| lines(&[Source::of("crates/a/src/lib.rs", text)]).len();
        assert_eq!(of(&format!("{wide}\n")), 1);
        assert_eq!(of(&format!("// {wide}\n")), 1);
        assert_eq!(of(&format!("f(\"{wide}\");\n")), 0);
        assert_eq!(of(&format!("f(\"a\n{wide}\");\n")), 0);
        assert_eq!(of(&format!("{}\n", "汉".repeat(100))), 0, "columns are characters");
    }
}
