//! Rust sources as text: what is code, what is a comment or a literal, what is
//! a test.

/// Stands for each character inside a literal, so that columns stay where they
/// are and no rule takes a text for code.
pub const LITERAL: char = '\u{1}';

/// One source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its path from the root.
    pub path: String,
    /// Its text as written.
    pub text: String,
    /// Its code: comments are blanks and literals [`LITERAL`]s.
    pub code: String,
    /// For each line, whether it belongs to a test.
    in_test: Vec<bool>,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its line, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace.
    pub length: usize,
}

impl Source {
    /// Reads a source.
    pub fn of(path: &str, text: &str) -> Self {
        let code = blanked(text);
        let mut in_test = vec![is_test_file(path); code.lines().count()];
        for (from, until) in test_items(&code) {
            in_test[from..=until].fill(true);
        }
        Self { path: path.to_owned(), text: text.to_owned(), code, in_test }
    }

    /// The crate that it belongs to.
    pub fn krate(&self) -> &str {
        self.path.strip_prefix("crates/").and_then(|rest| rest.split('/').next()).unwrap_or("")
    }

    /// Lines of code outside tests, with their numbers from 1.
    pub fn shipped(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines(false)
    }

    /// Lines of code of tests, with their numbers from 1.
    pub fn tests(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines(true)
    }

    fn lines(&self, test: bool) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.code.lines().enumerate();
        numbered
            .filter(move |(line, _)| self.in_test[*line] == test)
            .map(|(line, code)| (line + 1, code))
    }

    /// Every path that a `use` outside tests brings in, written out, with the
    /// line of its `use`. A tree in braces would hide its paths otherwise.
    pub fn imports(&self) -> Vec<(usize, String)> {
        let mut imports = Vec::new();
        for (line, code) in self.shipped() {
            let start = code.trim_start();
            let start = start
                .strip_prefix("pub")
                .map_or(start, |rest| rest.trim_start_matches(|c| c != ' ').trim_start());
            if !start.starts_with("use ") {
                continue;
            }
            let rest: Vec<&str> = self.code.lines().skip(line - 1).collect();
            let rest = rest.join(" ");
            let Some((_, tree)) = rest.split_once("use ") else { continue };
            let tree = tree.split(';').next().unwrap_or("");
            imports.extend(written_out(tree).into_iter().map(|path| (line, path)));
        }
        imports
    }

    /// Every function with a body, those of tests as well.
    pub fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for (at, _) in self.code.match_indices("fn ") {
            if self.code[..at].chars().next_back().is_some_and(is_word) {
                continue;
            }
            let name: String = self.code[at + 3..].chars().take_while(|c| is_word(*c)).collect();
            let Some(end) = end_of_item(&self.code[at..]) else { continue };
            if name.is_empty() || !self.code[at..at + end].ends_with('}') {
                continue;
            }
            functions.push(Function {
                name,
                line: self.code[..at].matches('\n').count() + 1,
                length: self.code[at..at + end].matches('\n').count() + 1,
            });
        }
        functions
    }

    /// Names of all test functions.
    pub fn test_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (at, _) in self.code.match_indices("#[test]") {
            let rest = &self.code[at + 7..];
            if let Some((between, rest)) = rest.split_once("fn ")
                && !between.contains(['{', '}', ';'])
            {
                names.push(rest.chars().take_while(|c| is_word(*c)).collect());
            }
        }
        names
    }
}

fn is_test_file(path: &str) -> bool {
    let mut parts = path.split('/').skip(2);
    parts.any(|part| matches!(part, "tests" | "benches" | "examples" | "tests.rs"))
}

/// True when `word`, a name or a path, stands in a line by itself and not as
/// part of a longer name.
pub fn has_word(line: &str, word: &str) -> bool {
    let opens = word.chars().next().is_some_and(is_word);
    let closes = word.chars().next_back().is_some_and(is_word);
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_word);
        let after = line[at + word.len()..].chars().next().is_some_and(is_word);
        !(opens && before || closes && after)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// First and last line, from 0, of each item under `#[cfg(test)]`.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let mut items = Vec::new();
    for mark in ["#[cfg(test)]", "#[cfg(all(test"] {
        for (at, _) in code.match_indices(mark) {
            let end = end_of_item(&code[at..]).unwrap_or(code.len() - at);
            let line = |position: usize| code[..position].matches('\n').count();
            items.push((line(at), line(at + end.max(1) - 1)));
        }
    }
    items
}

/// The length of the item that `code` starts with: to its `;` or to the brace
/// that closes its body. Attributes before it belong to it.
fn end_of_item(code: &str) -> Option<usize> {
    let (mut round, mut braces) = (0_i32, 0_i32);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            '{' if round == 0 => braces += 1,
            '}' if round == 0 => {
                braces -= 1;
                if braces == 0 {
                    return Some(at + 1);
                }
            }
            ';' if round == 0 && braces == 0 => return Some(at + 1),
            _ => {}
        }
        if round < 0 || braces < 0 {
            return None;
        }
    }
    None
}

/// The paths of a `use` tree.
fn written_out(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, inside)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or("").trim();
        return if path.is_empty() { Vec::new() } else { vec![path.to_owned()] };
    };
    let inside = inside.strip_suffix('}').unwrap_or(inside);
    let (mut depth, mut from) = (0, 0);
    let mut parts = Vec::new();
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inside[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[from..]);
    let paths = parts.into_iter().flat_map(written_out);
    paths.map(|path| format!("{}{path}", head.trim()).replace("::self", "")).collect()
}

/// The code of a text: comments become blanks, the inside of literals
/// [`LITERAL`]s, and every line keeps its length.
fn blanked(text: &str) -> String {
    let text: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let (end, fill) = piece(&text, at);
        for c in &text[at..end] {
            code.push(match fill {
                Some(fill) if *c != '\n' => fill,
                _ => *c,
            });
        }
        at = end;
    }
    code
}

/// Where the piece of text at `at` ends, and what it is filled with. Quotes
/// belong to their literal.
fn piece(text: &[char], at: usize) -> (usize, Option<char>) {
    let next = |offset: usize| text.get(at + offset).copied();
    let starts_word = at == 0 || !is_word(text[at - 1]);
    match text[at] {
        '/' if next(1) == Some('/') => {
            let end = text[at..].iter().position(|c| *c == '\n');
            (end.map_or(text.len(), |end| at + end), Some(' '))
        }
        '/' if next(1) == Some('*') => (end_of_block_comment(text, at), Some(' ')),
        '"' => (end_of_string(text, at), Some(LITERAL)),
        'b' | 'c' | 'r' if starts_word => match raw_string(text, at) {
            Some(end) => (end, Some(LITERAL)),
            None => (at + 1, None),
        },
        // A lifetime has no closing quote after its first character.
        '\'' if next(1) == Some('\\') => {
            let close = text[(at + 3).min(text.len())..].iter().position(|c| *c == '\'');
            (close.map_or(text.len(), |close| at + 4 + close), Some(LITERAL))
        }
        '\'' if next(2) == Some('\'') => (at + 3, Some(LITERAL)),
        _ => (at + 1, None),
    }
}

fn end_of_block_comment(text: &[char], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            ('/', Some('*')) => depth += 1,
            ('*', Some('/')) => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

fn end_of_string(text: &[char], at: usize) -> usize {
    let mut end = at + 1;
    while end < text.len() {
        match text[end] {
            '"' => return end + 1,
            '\\' => end += 2,
            _ => end += 1,
        }
    }
    text.len()
}

/// The end of the raw string that starts at `at`, if one does.
fn raw_string(text: &[char], at: usize) -> Option<usize> {
    let mut open = at + usize::from(text[at] != 'r');
    (text.get(open) == Some(&'r')).then_some(())?;
    open += 1;
    let hashes = text[open..].iter().take_while(|c| **c == '#').count();
    (text.get(open + hashes) == Some(&'"')).then_some(())?;
    let mut end = open + hashes + 1;
    while end < text.len() {
        let closed = text[end] == '"'
            && text[end + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
        end += 1;
        if closed {
            return Some(end + hashes);
        }
    }
    Some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r##"//! A "header".
use std::{fs, io::{self, Read as _}};
/* one /* inner */ fn no() {} */
fn first<'a>(x: &'a str) -> char { let _ = "fn not() {"; let _ = r#"a " b"#; '{' }
#[cfg(test)]
mod tests {
    #[test]
    fn second() {
        assert!(true);
    }
}
fn third() -> [u8; 2] {
    ['\'' as u8, b'"']
}
"##;

    #[test]
    fn code_is_told_from_comments_and_literals() {
        let source = Source::of("crates/x/src/lib.rs", TEXT);
        for gone in ["header", "inner", "no()", "not()", "a \" b"] {
            assert!(!source.code.contains(gone), "{gone}");
        }
        assert!(source.code.contains("fn first<'a>(x: &'a str) -> char {"));
        let lengths = |text: &str| text.lines().map(|l| l.chars().count()).collect::<Vec<_>>();
        assert_eq!(lengths(&source.code), lengths(TEXT));
    }

    #[test]
    fn functions_have_their_lengths() {
        let source = Source::of("crates/x/src/lib.rs", TEXT);
        let functions: Vec<(String, usize, usize)> =
            source.functions().into_iter().map(|f| (f.name, f.line, f.length)).collect();
        let expected = [("first", 4, 1), ("second", 8, 3), ("third", 12, 3)];
        assert_eq!(functions, expected.map(|(name, line, n)| (name.to_owned(), line, n)));
        assert_eq!(source.test_names(), ["second"]);
    }

    #[test]
    fn tests_are_told_from_what_is_shipped() {
        let source = Source::of("crates/x/src/lib.rs", TEXT);
        let lines: Vec<usize> = source.tests().map(|(line, _)| line).collect();
        assert_eq!(lines, [5, 6, 7, 8, 9, 10, 11]);
        let of = |path: &str| Source::of(path, "fn f() {}\n").tests().count();
        assert_eq!(of("crates/x/tests/it/main.rs"), 1);
        assert_eq!(of("crates/x/src/foo/tests.rs"), 1);
        assert_eq!(of("crates/x/src/contests.rs"), 0);
        let declared = Source::of("crates/x/src/a.rs", "#[cfg(test)]\nmod tests;\nfn f() {}\n");
        assert_eq!(declared.shipped().count(), 1);
    }

    #[test]
    fn imports_are_written_out() {
        let source = Source::of("crates/x/src/lib.rs", TEXT);
        let paths: Vec<String> = source.imports().into_iter().map(|(_, path)| path).collect();
        assert_eq!(paths, ["std::fs", "std::io", "std::io::Read"]);
        let public = Source::of("crates/x/src/lib.rs", "pub(crate) use a::\n  {b, c as d};\n");
        let paths: Vec<String> = public.imports().into_iter().map(|(_, path)| path).collect();
        assert_eq!(paths, ["a::b", "a::c"]);
    }

    #[test]
    fn a_word_is_no_part_of_a_name() {
        assert!(has_word("File::open(x)", "File::"));
        assert!(!has_word("TruthFile::open(x)", "File::"));
        assert!(has_word("x.await?", ".await"));
        assert!(!has_word("unsafe_code", "unsafe"));
    }
}
