//! Lines that begin with `#`: what a family is, or a remark.

use std::borrow::Cow;

use super::Kind;
use super::line::Cursor;

/// What a comment says.
#[derive(Debug, PartialEq)]
pub(super) enum Comment<'a> {
    Help(Cow<'a, str>, &'a str),
    Type(Cow<'a, str>, Kind),
    Unit(Cow<'a, str>, &'a str),
    /// The end of an OpenMetrics exposition.
    End,
    /// A remark, which says nothing to a machine.
    Remark,
}

/// Reads what stands after the `#`.
pub(super) fn read(text: &str) -> Comment<'_> {
    let mut cursor = Cursor { rest: text };
    cursor.skip_blanks();
    let word = cursor.name().unwrap_or_default();
    if word == "EOF" && cursor.rest.trim().is_empty() {
        return Comment::End;
    }
    cursor.skip_blanks();
    let Some(name) = cursor.name() else { return Comment::Remark };
    let rest = cursor.rest.trim();
    match word.as_ref() {
        "HELP" => Comment::Help(name, rest),
        "TYPE" => Comment::Type(name, Kind::find(rest)),
        "UNIT" => Comment::Unit(name, rest),
        _ => Comment::Remark,
    }
}

/// A help text with its line breaks and backslashes as they were meant.
pub(super) fn unescaped(help: &str) -> Box<str> {
    if !help.contains('\\') {
        return help.into();
    }
    let mut text = String::with_capacity(help.len());
    let mut letters = help.chars();
    while let Some(letter) = letters.next() {
        let escaped = if letter == '\\' { letters.next() } else { None };
        match escaped {
            None => text.push(letter),
            Some('n') => text.push('\n'),
            Some(other @ ('\\' | '"')) => text.push(other),
            Some(other) => text.extend(['\\', other]),
        }
    }
    text.into()
}
