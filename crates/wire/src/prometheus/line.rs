//! One line with a sample.

use std::borrow::Cow;

use memchr::memchr2;

/// A label and its value.
pub(super) type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// A sample as its line says; its labels lie beside it.
#[derive(Debug, PartialEq)]
pub(super) struct Written<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) value: f64,
    /// In milliseconds, or in seconds where the format is OpenMetrics.
    pub(super) timestamp: Option<f64>,
    pub(super) has_exemplar: bool,
    /// Bytes of the line before the value.
    pub(super) until_value: usize,
}

/// Reads `line` and fills `labels`. `None` where it is no sample.
pub(super) fn sample<'a>(line: &'a str, labels: &mut Vec<Pair<'a>>) -> Option<Written<'a>> {
    labels.clear();
    let mut cursor = Cursor { rest: line };
    cursor.skip_blanks();
    let mut name = cursor.word().map(Cow::Borrowed);
    let is_apart = cursor.rest.starts_with(BLANKS);
    cursor.skip_blanks();
    if cursor.take('{') {
        cursor.labels(&mut name, labels)?;
        cursor.skip_blanks();
    } else if !is_apart {
        return None;
    }
    let until_value = line.len() - cursor.rest.len();
    let value = cursor.number()?;
    cursor.skip_blanks();
    let timestamp = match cursor.rest.as_bytes().first() {
        None | Some(b'#') => None,
        Some(_) => Some(cursor.number()?),
    };
    cursor.skip_blanks();
    let has_exemplar = cursor.take('#');
    if has_exemplar {
        cursor.skip_blanks();
    }
    let ends_well =
        if has_exemplar { cursor.rest.starts_with('{') } else { cursor.rest.is_empty() };
    ends_well.then_some(Written { name: name?, value, timestamp, has_exemplar, until_value })
}

/// A number as the formats write it. Underscores between digits, hexadecimal
/// digits and words other than `NaN` and `Inf` are none.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// A line as it is read from its beginning.
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a str,
}

const BLANKS: [char; 2] = [' ', '\t'];

impl<'a> Cursor<'a> {
    pub(super) fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(BLANKS);
    }

    fn take(&mut self, mark: char) -> bool {
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn split(&mut self, at: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(at);
        self.rest = rest;
        taken
    }

    /// A name of letters, digits, underscores and colons.
    fn word(&mut self) -> Option<&'a str> {
        let belongs = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b':';
        let end = self.rest.bytes().position(|byte| !belongs(&byte)).unwrap_or(self.rest.len());
        let starts_well = self.rest.bytes().next().is_some_and(|first| !first.is_ascii_digit());
        (end > 0 && starts_well).then(|| self.split(end))
    }

    /// A name, with or without quotation marks.
    pub(super) fn name(&mut self) -> Option<Cow<'a, str>> {
        if self.rest.starts_with('"') { self.quoted() } else { self.word().map(Cow::Borrowed) }
    }

    /// A text in quotation marks. The formats give a meaning to three
    /// characters after a backslash; before another one it stands for itself.
    fn quoted(&mut self) -> Option<Cow<'a, str>> {
        if !self.take('"') {
            return None;
        }
        let mut unescaped: Option<String> = None;
        loop {
            let at = memchr2(b'"', b'\\', self.rest.as_bytes())?;
            let plain = self.split(at);
            if self.take('"') {
                return Some(match unescaped {
                    None => Cow::Borrowed(plain),
                    Some(text) => Cow::Owned(text + plain),
                });
            }
            let text = unescaped.get_or_insert_default();
            text.push_str(plain);
            self.take('\\');
            let escaped = self.rest.chars().next()?;
            self.split(escaped.len_utf8());
            match escaped {
                'n' => text.push('\n'),
                '"' | '\\' => text.push(escaped),
                other => text.extend(['\\', other]),
            }
        }
    }

    /// Labels up to the closing brace. A text in quotation marks without a value
    /// is the name of the sample.
    fn labels(
        &mut self,
        name: &mut Option<Cow<'a, str>>,
        labels: &mut Vec<Pair<'a>>,
    ) -> Option<()> {
        loop {
            self.skip_blanks();
            if self.take('}') {
                break;
            }
            let is_quoted = self.rest.starts_with('"');
            let label = self.name()?;
            self.skip_blanks();
            if self.take('=') {
                self.skip_blanks();
                labels.push((label, self.quoted()?));
            } else if is_quoted && name.is_none() {
                *name = Some(label);
            } else {
                return None;
            }
            self.skip_blanks();
            if !self.take(',') {
                self.take('}').then_some(())?;
                break;
            }
        }
        labels.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        labels.windows(2).all(|pair| pair[0].0 != pair[1].0).then_some(())
    }

    fn number(&mut self) -> Option<f64> {
        let end = self.rest.find(BLANKS).unwrap_or(self.rest.len());
        number(self.split(end))
    }
}
