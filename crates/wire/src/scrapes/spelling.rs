//! Lines of an exposition as they are written.

use std::borrow::Cow;
use std::fmt::{Display, Write};

/// A label with its value.
pub(super) fn pair(label: &str, value: &str) -> String {
    format!("{}=\"{}\"", name(label), escaped(value))
}

/// A name as it stands in an exposition: in quotation marks unless it is a plain
/// word.
pub(super) fn name(name: &str) -> Cow<'_, str> {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    let is_plain = name.bytes().all(belongs)
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if is_plain { Cow::Borrowed(name) } else { format!("\"{}\"", escaped(name)).into() }
}

/// Adds the line of a sample; `labels` are those between its braces.
pub(super) fn line(text: &mut String, named: &str, labels: &str, value: impl Display) {
    let spelling = name(named);
    let _ = match (spelling == named, labels.is_empty()) {
        (true, true) => writeln!(text, "{named} {value}"),
        (true, false) => writeln!(text, "{named}{{{labels}}} {value}"),
        // A name that is no plain word stands between the braces.
        (false, true) => writeln!(text, "{{{spelling}}} {value}"),
        (false, false) => writeln!(text, "{{{spelling},{labels}}} {value}"),
    };
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
