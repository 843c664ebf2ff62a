//! JSON as it is met: Python writes bare NaN and Infinity, which are not JSON.

use std::borrow::Cow;

use serde_json::Value;

/// Parses JSON, reading bare `NaN`, `Infinity` and `-Infinity` outside strings
/// as null. The flag tells whether that was needed.
pub fn lenient(bytes: &[u8]) -> Result<(Value, bool), serde_json::Error> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok((value, false)),
        Err(error) => match without_nonfinite(bytes) {
            Cow::Borrowed(_) => Err(error),
            Cow::Owned(mended) => Ok((serde_json::from_slice(&mended)?, true)),
        },
    }
}

/// The text with bare non-finite numbers replaced by null; borrowed when there
/// are none. Inside strings nothing changes.
pub fn without_nonfinite(bytes: &[u8]) -> Cow<'_, [u8]> {
    const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    let mut mended: Option<Vec<u8>> = None;
    let (mut at, mut in_string) = (0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let word = (!in_string).then(|| WORDS.iter().find(|word| rest.starts_with(word))).flatten();
        if let Some(word) = word {
            mended.get_or_insert_with(|| bytes[..at].to_vec()).extend_from_slice(b"null");
            at += word.len();
            continue;
        }
        let step = if in_string && bytes[at] == b'\\' { rest.len().min(2) } else { 1 };
        if bytes[at] == b'"' {
            in_string = !in_string;
        }
        if let Some(mended) = &mut mended {
            mended.extend_from_slice(&rest[..step]);
        }
        at += step;
    }
    mended.map_or(Cow::Borrowed(bytes), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r01_nan_and_infinity_read_as_null_and_strings_stay() {
        let (value, mended) =
            lenient(br#"{"a":NaN,"b":[Infinity,-Infinity],"c":"NaN \" Infinity"}"#).unwrap();
        assert!(mended);
        assert_eq!(value, serde_json::json!({"a":null,"b":[null,null],"c":"NaN \" Infinity"}));
    }

    #[test]
    fn json_is_left_alone_and_nonsense_is_refused() {
        assert_eq!(lenient(b"[1]").unwrap(), (serde_json::json!([1]), false));
        assert!(lenient(b"{NaN").is_err());
        assert!(lenient(b"\"\\").is_err());
    }
}
