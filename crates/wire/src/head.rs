//! Request heads of HTTP/1.1.

use crate::url::Url;

/// Why a header cannot be sent. The value is never shown: it may be a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// No separator.
    #[error("a header needs NAME=VALUE or 'NAME: VALUE'")]
    Form,
    /// A name with letters that no header name may have.
    #[error("{0:?} is not a header name: letters, digits and -_. only")]
    Name(String),
    /// A value that would break the head.
    #[error("the value of header {0} holds a line break or control character")]
    Value(String),
    /// A header that the client itself must set.
    #[error("header {0} is set by goodput itself and cannot be replaced")]
    Reserved(String),
}

/// Headers that framing and identity depend on.
const RESERVED: &[&str] = &[
    "content-length",
    "transfer-encoding",
    "connection",
    "x-request-id",
    "host",
    "accept-encoding",
];

/// Reads `K=V` (vLLM) or `K: V` (curl).
pub fn parse_header(text: &str) -> Result<(String, String), HeaderError> {
    let split = text.find(['=', ':']).ok_or(HeaderError::Form)?;
    let (name, value) = (text[..split].trim(), text[split + 1..].trim());
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
        return Err(HeaderError::Name(name.chars().take(32).collect()));
    }
    if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return Err(HeaderError::Value(name.to_owned()));
    }
    if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err(HeaderError::Reserved(name.to_owned()));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// A request as bytes. `headers` go after ours; Content-Length is set when
/// there is a body.
pub fn encode(
    method: &str,
    url: &Url,
    headers: &[(String, String)],
    extra: &[(&str, &str)],
    body: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512 + body.len());
    let mut put = |parts: &[&str]| {
        for part in parts {
            bytes.extend_from_slice(part.as_bytes());
        }
    };
    put(&[method, " ", &url.path, " HTTP/1.1\r\nHost: ", &url.authority(), "\r\n"]);
    put(&["User-Agent: goodput/", env!("CARGO_PKG_VERSION"), "\r\n"]);
    // Compression would hide when a token came; identity is asked for.
    put(&["Accept-Encoding: identity\r\n"]);
    if !body.is_empty() {
        put(&["Content-Type: application/json\r\n"]);
        put(&["Content-Length: ", &body.len().to_string(), "\r\n"]);
    }
    for (name, value) in extra {
        put(&[name, ": ", value, "\r\n"]);
    }
    for (name, value) in headers {
        put(&[name, ": ", value, "\r\n"]);
    }
    put(&["\r\n"]);
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_what_http_says() {
        let url = Url::parse("http://h:1/p").unwrap();
        let bytes =
            encode("POST", &url, &[("A".into(), "b".into())], &[("x-request-id", "r-0")], b"{}");
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("POST /p HTTP/1.1\r\nHost: h:1\r\n"));
        assert!(text.contains("\r\nContent-Length: 2\r\n"));
        assert!(text.ends_with("\r\nx-request-id: r-0\r\nA: b\r\n\r\n{}"));
    }

    #[test]
    fn headers_come_in_two_spellings_and_cannot_break_the_head() {
        let right = Ok(("X-A".to_owned(), "b=c".to_owned()));
        assert_eq!(parse_header("X-A=b=c"), right);
        assert_eq!(parse_header("X-A: b=c"), right);
        assert_eq!(parse_header("X"), Err(HeaderError::Form));
        assert!(matches!(parse_header("a b: c"), Err(HeaderError::Name(_))));
        assert_eq!(parse_header("A: x\r\nB: y"), Err(HeaderError::Value("A".into())));
        assert!(matches!(parse_header("Content-Length=3"), Err(HeaderError::Reserved(_))));
    }
}
