//! Events that differ from an earlier one only in their text.
//!
//! Engines write the events of all answers from a few moulds: all bytes are the
//! same, but for the text, the name of the answer and perhaps a time stamp or a
//! running number. So an event that was parsed in full becomes a template, and
//! an event that fits it says the same with another text. The templates are
//! shared by the answers of a thread: a thousand streams with templates of
//! their own would have to fetch each from memory.
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
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use super::Heard;
use crate::api::Api;

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
    /// A string that nobody looks at, likely of this many bytes.
    String(usize),
    /// A number that nobody looks at, likely of this many digits.
    Number(usize),
}

/// The forms of the events of one API, as far as they are known: to be given
/// to all readers of one thread.
#[derive(Clone, Debug)]
pub struct Forms {
    api: Api,
    known: Rc<RefCell<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    templates: Vec<Template>,
    /// Templates made since the last event that fitted one.
    futile: u8,
}

/// The form of an event.
#[derive(Debug, Default)]
struct Template {
    kind: Vec<u8>,
    /// The bytes that are the same in every event, without the gaps.
    fixed: Vec<u8>,
    /// The gaps, each behind so many of the fixed bytes.
    gaps: Vec<(usize, Gap)>,
    /// Its data is one line.
    one_line: bool,
    heard: Heard,
    channel: Channel,
    /// Events that fitted; halved whenever a template is made.
    fits: u32,
}

/// An event that fits a template.
#[derive(Debug)]
pub(super) struct Fitting<'d> {
    /// What the event says besides its text.
    pub(super) heard: Heard,
    pub(super) channel: Channel,
    /// Valid UTF-8: not made into a `str` before someone wants it.
    text: &'d [u8],
    escaped: bool,
}

impl<'d> Fitting<'d> {
    /// The text, never empty.
    pub(super) fn text(&self) -> Cow<'d, str> {
        let text = String::from_utf8_lossy(self.text);
        if self.escaped { unescape(&text).into() } else { text }
    }
}

/// Templates kept: text, reasoning and each choice have their own, and a
/// gateway may lead to several engines.
const KEPT: usize = 8;

/// The largest event that makes a template: a token's is a hundredth of it.
const LARGEST: usize = 16 << 10;

/// After so many templates in a row that no event fitted, the events are taken
/// to differ in some other way, and templates are made seldom.
const PATIENCE: u8 = 8;

/// So seldom: a template costs about a quarter of the parse before it.
const RETRY: u8 = 16;

impl Forms {
    /// Nothing is known yet.
    pub fn new(api: Api) -> Self {
        Self { api, known: Rc::default() }
    }

    /// The API.
    pub fn api(&self) -> Api {
        self.api
    }

    /// What an event says, when it fits. `likely` is the template that the
    /// answer's last event fitted.
    #[inline]
    pub(super) fn fit<'d>(
        &self,
        likely: &mut u8,
        kind: &[u8],
        data: &'d [u8],
    ) -> Option<Fitting<'d>> {
        self.known.borrow_mut().first(likely, |template| template.fit(kind, data))
    }

    /// What the whole server-sent event at the start of `bytes` says, when it
    /// fits and has at most `limit` bytes, and what lies behind it.
    #[inline(always)]
    pub(super) fn fit_framed<'d>(
        &self,
        likely: &mut u8,
        bytes: &'d [u8],
        limit: usize,
    ) -> Option<(Fitting<'d>, &'d [u8])> {
        self.known.borrow_mut().first(likely, |template| template.fit_framed(bytes, limit))
    }

    /// Makes the template of an event that was parsed in full and whose text
    /// stands at `text`, with the `varying` fields of its API as gaps too.
    pub(super) fn learn(
        &self,
        kind: &[u8],
        data: &[u8],
        text: (Range<usize>, Channel),
        heard: Heard,
        varying: &[Varying],
    ) {
        let mut known = self.known.borrow_mut();
        let Known { templates, futile } = &mut *known;
        *futile = futile.checked_add(1).unwrap_or(PATIENCE);
        if data.len() > LARGEST || (*futile > PATIENCE && !futile.is_multiple_of(RETRY)) {
            return;
        }
        let place = if templates.len() < KEPT {
            templates.push(Template::default());
            templates.len() - 1
        } else {
            // The least used one makes room; the others keep their places.
            (0..KEPT).min_by_key(|&place| templates[place].fits).unwrap_or(0)
        };
        for template in &mut *templates {
            template.fits /= 2;
        }
        templates[place].fits = 0;
        templates[place].learn(kind, data, text, heard, varying);
    }
}

impl Known {
    /// What the first template says that has something to say, the likely one
    /// asked first.
    #[inline(always)]
    fn first<T>(
        &mut self,
        likely: &mut u8,
        mut ask: impl FnMut(&Template) -> Option<T>,
    ) -> Option<T> {
        let template = self.templates.get_mut(usize::from(*likely))?;
        let mut said = ask(template);
        if said.is_some() {
            template.fits = template.fits.saturating_add(1);
        } else {
            said = self.other(likely, &mut ask);
        }
        if said.is_some() {
            self.futile = 0;
        }
        said
    }

    #[cold]
    fn other<T>(
        &mut self,
        likely: &mut u8,
        ask: &mut impl FnMut(&Template) -> Option<T>,
    ) -> Option<T> {
        let (place, said) = self
            .templates
            .iter()
            .enumerate()
            .filter(|(place, _)| *place != usize::from(*likely))
            .find_map(|(place, template)| Some((place, ask(template)?)))?;
        let template = &mut self.templates[place];
        template.fits = template.fits.saturating_add(1);
        *likely = place as u8;
        Some(said)
    }
}

impl Template {
    /// What an event says, when it fits.
    #[inline]
    fn fit<'d>(&self, kind: &[u8], data: &'d [u8]) -> Option<Fitting<'d>> {
        if !same(&self.kind, kind) {
            return None;
        }
        let (fitting, behind) = self.fit_start(data)?;
        behind.is_empty().then_some(fitting)
    }

    /// What the whole server-sent event at the start of `bytes` says, when it
    /// fits and has at most `limit` bytes, and what lies behind it. Only the
    /// usual way to write an event is known here: a line of its kind where it
    /// has one, one line of data, a blank line; a line ends with LF or CRLF.
    #[inline(always)]
    fn fit_framed<'d>(&self, bytes: &'d [u8], limit: usize) -> Option<(Fitting<'d>, &'d [u8])> {
        if !self.one_line {
            return None;
        }
        let mut rest = bytes;
        if !self.kind.is_empty() {
            rest = line_end(behind(rest.strip_prefix(b"event: ")?, &self.kind)?)?;
        }
        let (fitting, rest) = self.fit_start(rest.strip_prefix(b"data: ")?)?;
        let rest = line_end(line_end(rest)?)?;
        (bytes.len() - rest.len() <= limit).then_some((fitting, rest))
    }

    /// What the data at the start of `bytes` says, when it fits, and what lies
    /// behind it.
    #[inline(always)]
    fn fit_start<'d>(&self, bytes: &'d [u8]) -> Option<(Fitting<'d>, &'d [u8])> {
        let (mut rest, mut from) = (bytes, 0);
        let mut text = None;
        for &(after, gap) in &self.gaps {
            rest = behind(rest, &self.fixed[from..after])?;
            from = after;
            let length = match gap {
                Gap::Text => {
                    let literal = literal(rest)?;
                    text = Some((&rest[..literal.length], literal));
                    literal.length
                }
                Gap::String(likely) => ignored_string_length(rest, likely)?,
                Gap::Number(likely) => ignored_number_length(rest, likely)?,
            };
            rest = &rest[length..];
        }
        // Without gaps there is no template, and no text either.
        let (text, Literal { escaped, ascii, .. }) = text?;
        if text.is_empty() || !(ascii || std::str::from_utf8(text).is_ok()) {
            return None;
        }
        let fitting = Fitting { heard: self.heard, channel: self.channel, text, escaped };
        Some((fitting, behind(rest, &self.fixed[from..])?))
    }

    fn learn(
        &mut self,
        kind: &[u8],
        data: &[u8],
        (text, channel): (Range<usize>, Channel),
        heard: Heard,
        varying: &[Varying],
    ) {
        self.kind.clear();
        self.kind.extend_from_slice(kind);
        self.fixed.clear();
        self.fixed.reserve(data.len());
        self.gaps.clear();
        self.one_line = !data.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
        self.heard = heard;
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

/// What lies behind `piece` at the start of `bytes`.
#[inline]
fn behind<'d>(bytes: &'d [u8], piece: &[u8]) -> Option<&'d [u8]> {
    let (start, behind) = bytes.split_at_checked(piece.len())?;
    same(start, piece).then_some(behind)
}

/// Equality without a call. The pieces are short, and the C library's `memcmp`
/// is slow with nothing: it masks its loads, and a masked load from the address
/// of an empty slice, which is no address, traps into microcode. That alone
/// cost as much as all the rest of an event.
#[inline]
fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    // The end is compared together with bytes before it that were compared
    // already: that is quicker than byte by byte.
    match one.len() {
        32.. => {
            let (words, _) = one.as_chunks::<32>();
            let (others, _) = other.as_chunks::<32>();
            words.iter().zip(others).all(|(word, other)| word == other)
                && one.last_chunk::<32>() == other.last_chunk::<32>()
        }
        16.. => ends_alike::<16>(one, other),
        8.. => ends_alike::<8>(one, other),
        4.. => ends_alike::<4>(one, other),
        _ => one.iter().eq(other),
    }
}

#[inline]
fn ends_alike<const N: usize>(one: &[u8], other: &[u8]) -> bool {
    one.first_chunk::<N>() == other.first_chunk() && one.last_chunk::<N>() == other.last_chunk()
}

/// What lies behind the end of a line. A CR alone ends a line too, but whether
/// it is alone only the next byte tells.
#[inline]
fn line_end(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [b'\n', behind @ ..] | [b'\r', b'\n', behind @ ..] => Some(behind),
        _ => None,
    }
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
                            found(value + 1..end, Gap::String(end - value - 1));
                            end
                        }
                        Some(b'-' | b'0'..=b'9') => {
                            let end = value + number_end(&data[value..]).unwrap_or_default();
                            found(value..end, Gap::Number(end - value));
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

/// What stands before the closing quote of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Literal {
    length: usize,
    escaped: bool,
    ascii: bool,
}

/// The string whose opening quote lies before `text`. `None` when there is
/// something in it that a parser has to judge.
#[inline(always)]
fn literal(text: &[u8]) -> Option<Literal> {
    let (mut length, mut escaped, mut ascii) = (0, false, true);
    loop {
        let plain = plain_length(&text[length..]);
        length += plain.0;
        ascii &= plain.1;
        match text.get(length)? {
            b'"' => return Some(Literal { length, escaped, ascii }),
            b'\\' => {
                unescaped(*text.get(length + 1)?)?;
                escaped = true;
                length += 2;
            }
            _ => return None,
        }
    }
}

/// The length of a string that nobody looks at. One of the likely length and
/// of plain ASCII is seen at a glance.
#[inline(always)]
fn ignored_string_length(text: &[u8], likely: usize) -> Option<usize> {
    let stops = |word| stops(word) | word & HIGH;
    if let Some((inside, [b'"', ..])) = text.split_at_checked(likely)
        && no_word(inside, stops)
    {
        return Some(likely);
    }
    let Literal { length, ascii, .. } = literal(text)?;
    (ascii || std::str::from_utf8(&text[..length]).is_ok()).then_some(length)
}

/// The length of a number that nobody looks at. One of the likely length that
/// is all digits is seen at a glance.
#[inline(always)]
fn ignored_number_length(text: &[u8], likely: usize) -> Option<usize> {
    if let Some((digits @ [b'1'..=b'9', ..], [next, ..])) = text.split_at_checked(likely)
        && no_word(digits, no_digits)
        && !matches!(next, b'0'..=b'9' | b'.' | b'e' | b'E')
    {
        return Some(likely);
    }
    number_end(text)
}

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

/// True when `found` finds nothing in any eight bytes of `text`.
#[inline(always)]
fn no_word(text: &[u8], found: impl Fn(u64) -> u64) -> bool {
    let Some(last) = text.last_chunk::<8>() else {
        // Eight of the same byte find what the byte does.
        return text.iter().all(|&byte| found(ONES * u64::from(byte)) == 0);
    };
    let (words, _) = text.as_chunks::<8>();
    let words = words.iter().fold(0, |all, word| all | found(u64::from_le_bytes(*word)));
    (words | found(u64::from_le_bytes(*last))) == 0
}

/// The high bits of the bytes that are no decimal digits.
#[inline(always)]
fn no_digits(word: u64) -> u64 {
    let tens = word ^ (ONES * u64::from(b'0'));
    (tens | ((tens & !HIGH) + ONES * (0x80 - 10))) & HIGH
}

/// The high bits of the quotes, backslashes and control characters. Above the
/// first one found a borrow may have set another.
#[inline(always)]
fn stops(word: u64) -> u64 {
    // A byte is below `limit` where the high bit of the difference is set and
    // its own is not.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let quote = below(word ^ (ONES * u64::from(b'"')), 1);
    let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
    (below(word, 0x20) | quote | backslash) & HIGH
}

/// The number of bytes before the first quote, backslash or control character,
/// and whether they are all ASCII.
#[inline]
fn plain_length(text: &[u8]) -> (usize, bool) {
    let (words, tail) = text.as_chunks::<8>();
    let mut high = 0;
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = stops(word);
        if found != 0 {
            // What is found is ASCII, so the bits below it are those of the
            // bytes before it.
            high |= word & (found & found.wrapping_neg()).wrapping_sub(1) & HIGH;
            return (index * 8 + found.trailing_zeros() as usize / 8, high == 0);
        }
        high |= word & HIGH;
    }
    let plain = |byte: &&u8| **byte >= 0x20 && !matches!(byte, b'"' | b'\\');
    let more = tail.iter().take_while(plain).count();
    (words.len() * 8 + more, high == 0 && tail[..more].is_ascii())
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
