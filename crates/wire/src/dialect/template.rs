//! Events that differ from the one before only in their text.
//!
//! Engines write the events of an answer from one mould: all bytes are the
//! same, but for the text and perhaps a time stamp or a running number. So an
//! event that was parsed in full becomes a template, and an event that fits it
//! says the same with another text.
//!
//! That is exact, not a guess. A template begins with the first byte of the
//! event and ends with its last. Its gaps are whole strings and numbers of the
//! JSON that was parsed; before a gap the bytes are the same, so a parser is in
//! the same state, and a string or number that ends where the next fixed bytes
//! begin leaves it in the same state again. Nothing inside a text can pass for
//! structure, because the first quote ends the gap. Whatever a parser might
//! judge otherwise does not fit and is parsed in full: an empty text, a control character, a `\u`
//! escape, bytes that are no UTF-8.

use std::borrow::Cow;
use std::ops::Range;

use super::Now;

/// Where output goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Channel {
    #[default]
    Text,
    Reasoning,
    /// Reasoning that is a summary.
    Summary,
}

/// What an event did to the listener, as far as it tells whether another event
/// of the same form would do the same.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// Address and length of its only text.
    text: Option<(usize, usize)>,
    channel: Channel,
    /// It did something that is more than its form, or had several texts.
    beyond: bool,
}

impl Trace {
    /// The event has this text.
    pub(super) fn text(&mut self, channel: Channel, text: &str) {
        self.beyond |= self.text.is_some();
        self.text = Some((text.as_ptr() as usize, text.len()));
        self.channel = channel;
    }

    /// The event did something that the next one of its form might not do.
    pub(super) fn beyond(&mut self) {
        self.beyond = true;
    }

    /// Where the text stands in `data`, as a whole string of the JSON, when the
    /// event was nothing but one text. `None` too when the parser had to
    /// rewrite the text, so that it lies elsewhere.
    pub(super) fn text_in(&self, data: &[u8]) -> Option<(Range<usize>, Channel)> {
        let (address, length) = self.text.filter(|_| !self.beyond)?;
        let start = address.checked_sub(data.as_ptr() as usize)?;
        let end = start.checked_add(length)?;
        let before = data.get(start.checked_sub(1)?)?;
        (*before == b'"' && *data.get(end)? == b'"').then_some((start..end, self.channel))
    }
}

/// A field that differs from event to event and that its dialect does not
/// look at, whatever its value: the depth of its key in brackets, and the key.
pub(super) type Varying = (u32, &'static str);

/// What may stand in a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    /// The text of the event.
    Text,
    /// A string that nobody looks at.
    String,
    /// A number that nobody looks at.
    Number,
}

/// The form of an event.
#[derive(Debug, Default)]
pub(super) struct Template {
    kind: Vec<u8>,
    /// The bytes that are the same in every event, without the gaps.
    fixed: Vec<u8>,
    /// The gaps, each behind so many of the fixed bytes.
    gaps: Vec<(usize, Gap)>,
    now: Now,
    channel: Channel,
    /// Templates made since the last event that fitted one.
    unused: u8,
}

/// An event that fits a template.
#[derive(Debug)]
pub(super) struct Fitting<'d> {
    /// What the event says besides its text.
    pub(super) now: Now,
    pub(super) channel: Channel,
    text: &'d str,
    escaped: bool,
}

impl<'d> Fitting<'d> {
    /// The text, never empty. Where it is not kept it may come as it was
    /// written, with its escapes.
    pub(super) fn text(&self, kept: bool) -> Cow<'d, str> {
        if kept && self.escaped { unescape(self.text).into() } else { self.text.into() }
    }
}

/// After so many templates in a row that no event fitted, the events of an
/// answer are taken to differ in some other way, and templates are made seldom.
const PATIENCE: u8 = 8;

/// So seldom: a template costs about an eighth of the parse before it.
const RETRY: u8 = 16;

impl Template {
    /// What an event says, when it fits.
    #[inline]
    pub(super) fn fit<'d>(&mut self, kind: &[u8], data: &'d [u8]) -> Option<Fitting<'d>> {
        if self.gaps.is_empty() || !same(&self.kind, kind) {
            return None;
        }
        let (mut rest, mut from) = (data, 0);
        let (mut text, mut escaped) = (&b""[..], false);
        for &(after, gap) in &self.gaps {
            rest = rest.strip_prefix(&self.fixed[from..after])?;
            from = after;
            let end = match gap {
                Gap::Text => {
                    let end;
                    (end, escaped) = string_end(rest)?;
                    text = &rest[..end];
                    end
                }
                Gap::String => string_end(rest)?.0,
                Gap::Number => number_end(rest)?,
            };
            rest = &rest[end..];
        }
        if text.is_empty() || rest != &self.fixed[from..] {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        self.unused = 0;
        Some(Fitting { now: self.now, channel: self.channel, text, escaped })
    }

    /// Makes the template of an event that was parsed in full and whose text
    /// stands at `text`. At first all but the text is taken as fixed, because
    /// that is quickest; when the next event of the kind does not fit, the
    /// `varying` fields become gaps too.
    pub(super) fn learn(
        &mut self,
        kind: &[u8],
        data: &[u8],
        (text, channel): (Range<usize>, Channel),
        now: Now,
        varying: &[Varying],
    ) {
        let varying = if self.unused == 0 { &[] } else { varying };
        self.unused = self.unused.checked_add(1).unwrap_or(PATIENCE);
        if self.unused > PATIENCE && !self.unused.is_multiple_of(RETRY) {
            return;
        }
        self.kind.clear();
        self.kind.extend_from_slice(kind);
        self.fixed.clear();
        self.fixed.reserve(data.len());
        self.gaps.clear();
        self.now = now;
        self.channel = channel;
        let mut places = vec![(text, Gap::Text)];
        for_each_value(data, varying, |place, gap| places.push((place, gap)));
        places.sort_by_key(|(place, _)| place.start);
        let mut from = 0;
        for (place, gap) in places {
            // Nobody looks at a varying field, so no text can lie in one.
            let Some(before) = data.get(from..place.start) else { return self.gaps.clear() };
            self.fixed.extend_from_slice(before);
            self.gaps.push((self.fixed.len(), gap));
            from = place.end;
        }
        self.fixed.extend_from_slice(&data[from..]);
    }
}

/// Equality without a call for the usual empty kind. The C library's `memcmp`
/// masks its loads, and a masked load from the address of an empty slice, which
/// is no address, traps into microcode: that alone cost as much as all the rest
/// of an event.
#[inline]
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && (one.is_empty() || one == other)
}

/// Finds the strings and numbers of the `varying` fields in valid JSON. The
/// place of a string is what stands between its quotes.
fn for_each_value(data: &[u8], varying: &[Varying], mut found: impl FnMut(Range<usize>, Gap)) {
    if varying.is_empty() {
        return;
    }
    let (mut at, mut depth) = (0, 0u32);
    while at < data.len() {
        match data[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let key = at + 1..at + 1 + literal_length(&data[at + 1..]);
                at = key.end;
                // Only a key has a colon behind it.
                let colon = at + 1 + blanks(&data[(at + 1).min(data.len())..]);
                let known = |&(level, name): &Varying| {
                    level == depth && name.as_bytes() == &data[key.clone()]
                };
                if data.get(colon) == Some(&b':') && varying.iter().any(known) {
                    let value = colon + 1 + blanks(&data[colon + 1..]);
                    at = match data.get(value) {
                        Some(b'"') => {
                            let end = value + 1 + literal_length(&data[value + 1..]);
                            found(value + 1..end, Gap::String);
                            end
                        }
                        Some(b'-' | b'0'..=b'9') => {
                            let end = value + number_end(&data[value..]).unwrap_or_default();
                            found(value..end, Gap::Number);
                            // The next byte belongs to what follows.
                            end - 1
                        }
                        _ => colon,
                    };
                }
            }
            _ => {}
        }
        at += 1;
    }
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

/// The length of a string literal up to its closing quote, in valid JSON.
fn literal_length(text: &[u8]) -> usize {
    let mut at = 0;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    at.min(text.len())
}

/// The length of a string up to its closing quote, and whether it holds
/// escapes. `None` when there is something in it that a parser has to judge.
#[inline]
fn string_end(text: &[u8]) -> Option<(usize, bool)> {
    let (mut at, mut escaped) = (0, false);
    loop {
        at += plain_length(&text[at..]);
        match text.get(at)? {
            b'"' => return Some((at, escaped)),
            b'\\' => {
                unescaped(*text.get(at + 1)?)?;
                escaped = true;
                at += 2;
            }
            _ => return None,
        }
    }
}

/// The number of bytes before the first quote, backslash or control character.
#[inline]
fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // A byte of `word` is below `limit` where the high bit of the difference
    // is set and its own is not. A borrow can only spoil bytes above the first
    // one found.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let (words, tail) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = (below(word, 0x20) | quote | backslash) & HIGH;
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let plain = |byte: &&u8| **byte >= 0x20 && !matches!(byte, b'"' | b'\\');
    words.len() * 8 + tail.iter().take_while(plain).count()
}

/// The length of the JSON number at the start of `text`.
#[inline]
fn number_end(text: &[u8]) -> Option<usize> {
    let digits = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(text.first() == Some(&b'-'));
    at += match (text.get(at)?, digits(at)) {
        (b'0', _) => 1,
        (_, 0) => return None,
        (_, length) => length,
    };
    if text.get(at) == Some(&b'.') {
        let length = digits(at + 1);
        if length == 0 {
            return None;
        }
        at += 1 + length;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1;
        at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
        let length = digits(at.min(text.len()));
        if length == 0 {
            return None;
        }
        at += length;
    }
    Some(at)
}

/// The character that an escape of one letter stands for.
fn unescaped(letter: u8) -> Option<char> {
    Some(match letter {
        b'"' | b'\\' | b'/' => char::from(letter),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}

/// The text that the escapes in `text` stand for, all of one letter.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        plain.push_str(before);
        plain.extend(behind.bytes().next().and_then(unescaped));
        rest = behind.get(1..).unwrap_or_default();
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests;
