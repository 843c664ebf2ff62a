//! JSON as servers really write it.
//!
//! Typed reading that never fails over a type: a field of an unexpected type
//! counts as absent, because a measurement must not end over a detail of the
//! payload. Only text that is no JSON at all is an error. Strings are borrowed
//! from the event where they hold no escapes.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Visitor methods for the types that mean "absent".
macro_rules! absent {
    ($($what:ident)*) => { $(absent!(@ $what);)* };
    (@ bool) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> { Ok(Default::default()) }
    };
    (@ number) => {
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> { Ok(Default::default()) }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> { Ok(Default::default()) }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> { Ok(Default::default()) }
    };
    (@ str) => {
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> { Ok(Default::default()) }
    };
    (@ null) => {
        fn visit_unit<E>(self) -> Result<Self::Value, E> { Ok(Default::default()) }
    };
    (@ seq) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Default::default())
        }
    };
    (@ map) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Default::default())
        }
    };
}

macro_rules! expecting {
    ($what:literal) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str($what)
        }
    };
}

/// A string; a list of strings or of `{"text": …}` parts counts as their
/// concatenation; anything else as empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl Text<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, unless it is empty.
    pub(super) fn some(&self) -> Option<&str> {
        (!self.is_empty()).then_some(&*self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor(PhantomData))
    }
}

struct TextVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for TextVisitor<'a> {
    type Value = Text<'a>;
    expecting!("text");
    absent!(bool number null);

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'a>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'a>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Text<'a>, A::Error> {
        let mut all = String::new();
        while let Some(part) = seq.next_element::<Text<'_>>()? {
            all.push_str(part.as_str());
        }
        Ok(Text(Cow::Owned(all)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text<'a>, A::Error> {
        let mut found = Text::default();
        while let Some(key) = map.next_key::<Text<'_>>()? {
            if key.as_str() == "text" {
                found = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// A non-negative count; a float with a whole value counts too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) Option<u32>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountVisitor;
        impl<'de> Visitor<'de> for CountVisitor {
            type Value = Count;
            expecting!("a count");
            absent!(bool str null seq map);

            fn visit_u64<E>(self, value: u64) -> Result<Count, E> {
                Ok(Count(u32::try_from(value).ok()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Count, E> {
                Ok(Count(u32::try_from(value).ok()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Count, E> {
                let whole = value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value);
                Ok(Count(whole.then_some(value as u32)))
            }
        }
        deserializer.deserialize_any(CountVisitor)
    }
}

/// A truth value; anything that is not `true` counts as false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flag(pub(super) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FlagVisitor;
        impl<'de> Visitor<'de> for FlagVisitor {
            type Value = Flag;
            expecting!("a truth value");
            absent!(number str null seq map);

            fn visit_bool<E>(self, value: bool) -> Result<Flag, E> {
                Ok(Flag(value))
            }
        }
        deserializer.deserialize_any(FlagVisitor)
    }
}

/// The number of elements of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Length(pub(super) u32);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LengthVisitor;
        impl<'de> Visitor<'de> for LengthVisitor {
            type Value = Length;
            expecting!("a list");
            absent!(bool number str null map);

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Length, A::Error> {
                let mut length = 0u32;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    length = length.saturating_add(1);
                }
                Ok(Length(length))
            }
        }
        deserializer.deserialize_any(LengthVisitor)
    }
}

/// True for a list with an element or a text with a letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Filled(pub(super) bool);

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FilledVisitor;
        impl<'de> Visitor<'de> for FilledVisitor {
            type Value = Filled;
            expecting!("a list or a text");
            absent!(bool number null map);

            fn visit_str<E>(self, text: &str) -> Result<Filled, E> {
                Ok(Filled(!text.is_empty()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Filled, A::Error> {
                let mut filled = false;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    filled = true;
                }
                Ok(Filled(filled))
            }
        }
        deserializer.deserialize_any(FilledVisitor)
    }
}

/// An object read as `T`; anything else as absent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lax<T>(pub(super) Option<T>);

impl<T> Default for Lax<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lax<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LaxVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for LaxVisitor<T> {
            type Value = Lax<T>;
            expecting!("an object");
            absent!(bool number str null seq);

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Lax<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|value| Lax(Some(value)))
            }
        }
        deserializer.deserialize_any(LaxVisitor(PhantomData))
    }
}

/// A list of objects; elements that are none are left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = List<T>;
            expecting!("a list of objects");
            absent!(bool number str null map);

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(Lax(element)) = seq.next_element::<Lax<T>>()? {
                    list.extend(element);
                }
                Ok(List(list))
            }
        }
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

/// The most timings that are kept of one answer.
const TIMINGS_LIMIT: usize = 64;

/// The numbers of an object by name, in the order sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Numbers(pub(super) Vec<(String, f64)>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumbersVisitor;
        impl<'de> Visitor<'de> for NumbersVisitor {
            type Value = Numbers;
            expecting!("an object of numbers");
            absent!(bool number str null seq);

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Numbers, A::Error> {
                let mut numbers = Vec::new();
                while let Some((name, Number(value))) = map.next_entry::<Text<'_>, Number>()? {
                    if let Some(value) = value
                        && numbers.len() < TIMINGS_LIMIT
                    {
                        numbers.push((name.as_str().to_owned(), value));
                    }
                }
                Ok(Numbers(numbers))
            }
        }
        deserializer.deserialize_any(NumbersVisitor)
    }
}

/// A number; anything else as absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Number(pub(super) Option<f64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor;
        impl<'de> Visitor<'de> for NumberVisitor {
            type Value = Number;
            expecting!("a number");
            absent!(bool str null seq map);

            fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
                Ok(Number(Some(value as f64)))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
                Ok(Number(Some(value as f64)))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                Ok(Number(Some(value)))
            }
        }
        deserializer.deserialize_any(NumberVisitor)
    }
}

/// A name that may come as a string, a number, or an object with a `type`:
/// error codes, and the finish reasons of SGLang.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Name<'a> {
    pub(super) name: Cow<'a, str>,
    /// The object's `message`, where it had one.
    pub(super) message: Cow<'a, str>,
}

impl Name<'_> {
    /// The name, unless it is empty.
    pub(super) fn some(&self) -> Option<&str> {
        (!self.name.is_empty()).then_some(&*self.name)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameVisitor(PhantomData))
    }
}

struct NameVisitor<'a>(PhantomData<&'a ()>);

impl<'a> NameVisitor<'a> {
    fn number<E>(value: impl ToString) -> Result<Name<'a>, E> {
        Ok(Name { name: Cow::Owned(value.to_string()), message: Cow::Borrowed("") })
    }
}

impl<'de: 'a, 'a> Visitor<'de> for NameVisitor<'a> {
    type Value = Name<'a>;
    expecting!("a name");
    absent!(bool null seq);

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'a>, E> {
        Ok(Name { name: Cow::Borrowed(name), message: Cow::Borrowed("") })
    }

    fn visit_str<E>(self, name: &str) -> Result<Name<'a>, E> {
        Self::number(name)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Name<'a>, E> {
        Self::number(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Name<'a>, E> {
        Self::number(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Name<'a>, E> {
        Self::number(value)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Name<'a>, A::Error> {
        let mut found = Name::default();
        while let Some(key) = map.next_key::<Text<'_>>()? {
            match key.as_str() {
                "type" => found.name = map.next_value::<Text<'_>>()?.0,
                "message" => found.message = map.next_value::<Text<'_>>()?.0,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// The value of an `error` field: an object, or the message itself. Null,
/// `false`, an empty string and an empty object are no error.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fault<'a> {
    pub(super) present: bool,
    pub(super) message: Cow<'a, str>,
    pub(super) code: Cow<'a, str>,
    pub(super) kind: Cow<'a, str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Fault<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FaultVisitor(PhantomData))
    }
}

struct FaultVisitor<'a>(PhantomData<&'a ()>);

impl<'a> FaultVisitor<'a> {
    fn message<E>(message: Cow<'a, str>) -> Result<Fault<'a>, E> {
        Ok(Fault { present: !message.is_empty(), message, ..Fault::default() })
    }
}

impl<'de: 'a, 'a> Visitor<'de> for FaultVisitor<'a> {
    type Value = Fault<'a>;
    expecting!("an error");
    absent!(null);

    fn visit_bool<E>(self, value: bool) -> Result<Fault<'a>, E> {
        Self::message(Cow::Borrowed(if value { "true" } else { "" }))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Fault<'a>, E> {
        Self::message(Cow::Owned(if value == 0 { String::new() } else { value.to_string() }))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Fault<'a>, E> {
        Self::message(Cow::Owned(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Fault<'a>, E> {
        Self::message(Cow::Owned(value.to_string()))
    }

    fn visit_borrowed_str<E>(self, message: &'de str) -> Result<Fault<'a>, E> {
        Self::message(Cow::Borrowed(message))
    }

    fn visit_str<E>(self, message: &str) -> Result<Fault<'a>, E> {
        Self::message(Cow::Owned(message.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Fault<'a>, A::Error> {
        let mut first = Fault::default();
        while let Some(fault) = seq.next_element::<Fault<'_>>()? {
            if !first.present {
                first = fault;
            }
        }
        Ok(first)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fault<'a>, A::Error> {
        let mut fault = Fault::default();
        while let Some(key) = map.next_key::<Text<'_>>()? {
            fault.present = true;
            match key.as_str() {
                "message" | "msg" | "detail" => fault.message = map.next_value::<Text<'_>>()?.0,
                "code" => fault.code = map.next_value::<Name<'_>>()?.name,
                "type" | "error_type" => fault.kind = map.next_value::<Text<'_>>()?.0,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(fault)
    }
}

/// Text that was no JSON, made into JSON.
pub(super) struct Repaired {
    pub(super) json: Vec<u8>,
    /// Bare NaN or Infinity became null.
    pub(super) nonfinite: bool,
}

/// Makes JSON of what servers write by mistake: bare NaN and Infinity (null),
/// halves of a surrogate pair and broken UTF-8 (U+FFFD), and keys given twice
/// (the last one counts). `None` when it is still no JSON. Valid JSON comes
/// back with the same meaning.
pub(super) fn repair(data: &[u8]) -> Option<Repaired> {
    let text = String::from_utf8_lossy(data);
    let (plain, nonfinite) = replace_nonstandard(text.as_bytes());
    let value: serde_json::Value = serde_json::from_slice(&plain).ok()?;
    Some(Repaired { json: serde_json::to_vec(&value).ok()?, nonfinite })
}

/// The literals that Python and JavaScript write for numbers that JSON does
/// not have; the longest that starts alike comes first.
const NONFINITE: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

fn replace_nonstandard(text: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(text.len());
    let mut nonfinite = false;
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        if byte == b'"' {
            let end = string_end(rest);
            copy_string(&rest[..end], &mut out);
            rest = &rest[end..];
        } else if let Some(literal) = NONFINITE.iter().find(|literal| rest.starts_with(literal)) {
            out.extend_from_slice(b"null");
            nonfinite = true;
            rest = &rest[literal.len()..];
        } else {
            out.push(byte);
            rest = &rest[1..];
        }
    }
    (out, nonfinite)
}

/// The length of the string literal at the start of `text`, quotes included;
/// all of it when it does not end.
fn string_end(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// Copies a string literal; an escaped half of a surrogate pair that stands
/// alone becomes U+FFFD.
fn copy_string(literal: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < literal.len() {
        let rest = &literal[at..];
        let step = match surrogate(rest) {
            Some(high)
                if high < 0xdc00 && surrogate(&rest[6..]).is_some_and(|low| low >= 0xdc00) =>
            {
                out.extend_from_slice(&rest[..12]);
                12
            }
            Some(_) => {
                out.extend_from_slice(b"\\ufffd");
                6
            }
            // An escape is copied as a pair, so that `\\ud800` (a backslash
            // and plain text) is not taken for a surrogate.
            None => {
                let step = if rest[0] == b'\\' { 2.min(rest.len()) } else { 1 };
                out.extend_from_slice(&rest[..step]);
                step
            }
        };
        at += step;
    }
}

/// The surrogate that is written as an escape at the start of `text`.
fn surrogate(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let unit = u16::from_str_radix(digits, 16).ok()?;
    (0xd800..0xe000).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn repaired(text: &str) -> Option<(Value, bool)> {
        let repaired = repair(text.as_bytes())?;
        Some((serde_json::from_slice(&repaired.json).unwrap(), repaired.nonfinite))
    }

    #[test]
    fn bare_nonfinite_numbers_become_null_and_strings_stay() {
        let text = r#"{"a":NaN,"b":[Infinity,-Infinity],"c":"NaN \" Infinity"}"#;
        let want = json!({"a": null, "b": [null, null], "c": "NaN \" Infinity"});
        assert_eq!(repaired(text), Some((want, true)));
    }

    #[test]
    fn halves_of_surrogate_pairs_are_replaced() {
        let text = r#"["\ud83d","\ude42x","\ud83d\ude42","\\ud83d","\ud83d\u0041"]"#;
        let want = json!(["\u{fffd}", "\u{fffd}x", "🙂", "\\ud83d", "\u{fffd}A"]);
        assert_eq!(repaired(text), Some((want, false)));
    }

    #[test]
    fn broken_utf8_and_double_keys_are_read() {
        let repaired = repair(b"{\"a\":1,\"a\":\"\xff\"}").unwrap();
        assert_eq!(repaired.json, "{\"a\":\"\u{fffd}\"}".as_bytes());
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for text in ["{", "{\"a\":}", "[1,]", "{}{}", "{\"a\":\"\u{1}\"}", "[Nan]", "[\"\\"] {
            assert_eq!(repaired(text), None, "{text}");
        }
    }

    #[test]
    fn unexpected_types_count_as_absent() {
        #[derive(Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(default)]
        struct All<'a> {
            #[serde(borrow)]
            text: Text<'a>,
            count: Count,
            flag: Flag,
            length: Length,
            list: List<Lax<Count>>,
            #[serde(borrow)]
            fault: Fault<'a>,
            numbers: Numbers,
            #[serde(borrow)]
            name: Name<'a>,
        }
        for value in ["null", "false", "{}", "[]", "-1", "\"\"", "[[{\"x\":[1]}]]"] {
            let fields = ["text", "count", "flag", "length", "list", "numbers"];
            for field in fields {
                let text = format!("{{\"{field}\":{value}}}");
                let all: All<'_> = serde_json::from_str(&text).unwrap();
                if field != "length" {
                    assert_eq!(all, All::default(), "{text}");
                }
            }
        }
        let all: Lax<All<'_>> = serde_json::from_str("[{}]").unwrap();
        assert_eq!(all, Lax(None));
    }

    #[test]
    fn content_parts_are_joined() {
        let text: Text<'_> =
            serde_json::from_str(r#"[{"type":"text","text":"a"},"b",{"x":1},3]"#).unwrap();
        assert_eq!(text.as_str(), "ab");
    }

    #[test]
    fn faults_come_in_every_shape() {
        for (text, present, message, code, kind) in [
            ("null", false, "", "", ""),
            ("{}", false, "", "", ""),
            ("\"\"", false, "", "", ""),
            ("false", false, "", "", ""),
            ("\"bad\"", true, "bad", "", ""),
            (r#"{"message":"m","code":500,"type":"t"}"#, true, "m", "500", "t"),
            (r#"{"message":"m","code":null}"#, true, "m", "", ""),
            (r#"{"x":1}"#, true, "", "", ""),
            (r#"[{"msg":"first"},{"msg":"second"}]"#, true, "first", "", ""),
        ] {
            let fault: Fault<'_> = serde_json::from_str(text).unwrap();
            let seen = (fault.present, &*fault.message, &*fault.code, &*fault.kind);
            assert_eq!(seen, (present, message, code, kind), "{text}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            r#"(NaN|Infinity|"|\\){0,4}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("\\PC{0,6}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn valid_json_keeps_its_meaning(value in value()) {
            for text in [value.to_string(), format!("{value:#}")] {
                prop_assert_eq!(repaired(&text), Some((value.clone(), false)));
            }
        }

        #[test]
        fn any_bytes_are_repaired_or_refused(bytes: Vec<u8>) {
            if let Some(repaired) = repair(&bytes) {
                prop_assert!(serde_json::from_slice::<Value>(&repaired.json).is_ok());
            }
        }

        #[test]
        fn what_is_accepted_strictly_is_accepted_here(
            text in r#"[\[\]{},:"a0\\NIfinty]{0,12}"#,
        ) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(repaired(&text), Some((value, false)));
            }
        }
    }
}
