//! Who may ask. A page of any site can make a browser send requests to
//! loopback, and a name that resolves to loopback makes that site's own
//! scripts read the answers; so the name that was asked for, the page that
//! asks and, where there is one, the token are checked before anything else.

use std::fmt;
use std::hint::black_box;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Method};

/// The fewest characters of a token: it is all that stands between a network
/// and the runs, and it may be guessed at as fast as the server answers.
const TOKEN_LEAST: usize = 16;

/// The most characters of a token.
const TOKEN_MOST: usize = 256;

/// What a person set as a secret. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// Why a text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Too short to hold, or too long to type.
    #[error(
        "has {found} characters and must have {TOKEN_LEAST} to {TOKEN_MOST}; `openssl rand -hex 16` makes one"
    )]
    Length {
        /// Its characters.
        found: usize,
    },
    /// It would need an escape in an address or a cookie.
    #[error("holds {0:?}, and only letters, digits and - . _ ~ stand in an address as they are")]
    Character(char),
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        if let Some(odd) = text.chars().find(|c| !plain(*c)) {
            return Err(TokenError::Character(odd));
        }
        if !(TOKEN_LEAST..=TOKEN_MOST).contains(&text.len()) {
            return Err(TokenError::Length { found: text.len() });
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Whether a text is this token. The time it takes depends on the text and
    /// not on how much of it is right.
    fn is(&self, given: &[u8]) -> bool {
        let token = self.0.as_bytes();
        let mut different = u8::from(given.len() != token.len());
        for (place, byte) in given.iter().enumerate() {
            different |= black_box(byte ^ token[place % token.len()]);
        }
        black_box(different) == 0
    }
}

/// What is checked of every request.
#[derive(Debug)]
pub(crate) struct Gate {
    bound: IpAddr,
    token: Option<Token>,
    /// Cookies know no ports: two servers on one machine need two names.
    cookie: String,
}

/// How a request came through.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// It is to be answered.
    Through,
    /// The token stood in the page's address: it moves into this cookie, and
    /// out of the history of the browser.
    Remember(String),
}

/// Why a request did not come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The name in the address is not one of this server's.
    Name,
    /// Another page asks for a change, or none that says its name.
    Page,
    /// No token, or a wrong one.
    Token,
}

impl Gate {
    pub(crate) fn new(bound: IpAddr, port: u16, token: Option<Token>) -> Self {
        Self { bound, token, cookie: format!("goodput_{port}") }
    }

    /// Checks a request, whatever it asks for.
    pub(crate) fn check(&self, request: &Parts) -> Result<Pass, Refusal> {
        let host = host(request).filter(|host| self.is_own(host)).ok_or(Refusal::Name)?;
        let bearer = self.shows_bearer(&request.headers);
        let changes = !matches!(request.method, Method::GET | Method::HEAD);
        // Only a page that this server allowed could send a bearer token, and
        // it allows none: such a request is a program's.
        if changes && !bearer && !is_from(&request.headers, &host) {
            return Err(Refusal::Page);
        }
        let Some(token) = &self.token else { return Ok(Pass::Through) };
        if bearer || self.shows_cookie(&request.headers, token) {
            return Ok(Pass::Through);
        }
        match in_address(request) {
            Some(given) if token.is(given.as_bytes()) => Ok(Pass::Remember(format!(
                "{}={given}; Path=/; HttpOnly; SameSite=Strict",
                self.cookie
            ))),
            _ => Err(Refusal::Token),
        }
    }

    /// A name can be made to resolve to any address by whoever owns it, and a
    /// number or `localhost` cannot. The port is left out: a tunnel has
    /// another, and it is the name that an attacker needs.
    fn is_own(&self, host: &Authority) -> bool {
        if host.host().eq_ignore_ascii_case("localhost") {
            return true;
        }
        let number = host.host().trim_start_matches('[').trim_end_matches(']');
        number.parse::<IpAddr>().is_ok_and(|ip| {
            ip == self.bound
                || self.bound.is_unspecified()
                || (ip.is_loopback() && self.bound.is_loopback())
        })
    }

    fn shows_bearer(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).map_or(&[][..], HeaderValue::as_bytes);
        let Some(token) = &self.token else { return false };
        given.split_at_checked(7).is_some_and(|(scheme, given)| {
            scheme.eq_ignore_ascii_case(b"bearer ") && token.is(given)
        })
    }

    fn shows_cookie(&self, headers: &HeaderMap, token: &Token) -> bool {
        let texts = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        texts
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(name, value)| name == self.cookie && token.is(value.as_bytes()))
    }
}

/// The name that was asked for. One that is said twice is none.
fn host(request: &Parts) -> Option<Authority> {
    let only: Authority = only(&request.headers, HOST)?.parse().ok()?;
    // A target with a name in it must name the same.
    let same = request.uri.authority().is_none_or(|named| *named == only);
    (same && !only.as_str().contains('@')).then_some(only)
}

/// Whether the page that asks is this server's own. Browsers say it with every
/// request that is no plain reading.
fn is_from(headers: &HeaderMap, host: &Authority) -> bool {
    let page = only(headers, ORIGIN).unwrap_or_default();
    // In front of a server that others reach stands one that speaks TLS.
    let named = page.strip_prefix("http://").or_else(|| page.strip_prefix("https://"));
    named.is_some_and(|named| named.eq_ignore_ascii_case(host.as_str()))
}

fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// The token in the address of the page, where alone a person can type it.
fn in_address(request: &Parts) -> Option<&str> {
    if request.method != Method::GET || request.uri.path() != "/" {
        return None;
    }
    request.uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    const TOKEN: &str = "0123456789abcdef";

    fn gate(bound: &str, token: Option<&str>) -> Gate {
        let token = token.map(|token| token.parse().expect("it is one"));
        Gate::new(bound.parse().expect("it is an address"), 8321, token)
    }

    fn check(
        gate: &Gate,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<Pass, Refusal> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        gate.check(&request.body(()).expect("it is a request").into_parts().0)
    }

    #[test]
    fn only_the_servers_own_names_are_answered() {
        let loopback = gate("127.0.0.1", None);
        let of = |gate: &Gate, host| check(gate, "GET", "/", &[("host", host)]);
        for own in ["127.0.0.1:8321", "localhost:8321", "LOCALHOST", "localhost:9", "[::1]:8321"] {
            assert_eq!(of(&loopback, own), Ok(Pass::Through), "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example:8321",
            "10.0.0.7",
            "a@localhost",
            "",
            "127.0.0.1.nip.io",
        ] {
            assert_eq!(of(&loopback, other), Err(Refusal::Name), "{other}");
        }
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(check(&loopback, "GET", "/", &twice), Err(Refusal::Name));
        assert_eq!(check(&loopback, "GET", "/", &[]), Err(Refusal::Name));
        let absolute = check(&loopback, "GET", "http://evil.example/", &[("host", "localhost")]);
        assert_eq!(absolute, Err(Refusal::Name));
        let everywhere = gate("0.0.0.0", None);
        assert_eq!(of(&everywhere, "10.0.0.7:8321"), Ok(Pass::Through));
        assert_eq!(of(&everywhere, "evil.example"), Err(Refusal::Name));
        let one = gate("10.0.0.7", None);
        assert_eq!(of(&one, "10.0.0.7"), Ok(Pass::Through));
        assert_eq!(of(&one, "127.0.0.1"), Err(Refusal::Name));
    }

    #[test]
    fn a_change_comes_from_the_servers_own_page() {
        let gate = gate("127.0.0.1", None);
        let of = |origin: &[(&str, &str)]| {
            check(&gate, "POST", "/", &[&[("host", "localhost:8321")], origin].concat())
        };
        assert_eq!(of(&[("origin", "http://localhost:8321")]), Ok(Pass::Through));
        let others = ["null", "http://localhost:1", "http://127.0.0.1:8321", "localhost:8321", ""];
        for other in others.into_iter().chain(["http://localhost:8321.evil.example"]) {
            assert_eq!(of(&[("origin", other)]), Err(Refusal::Page), "{other}");
        }
        assert_eq!(of(&[]), Err(Refusal::Page));
    }

    #[test]
    fn a_token_is_shown_in_a_header_a_cookie_or_once_in_the_address() {
        let gate = gate("127.0.0.1", Some(TOKEN));
        let of = |method: &str, target: &str, more: &[(&str, &str)]| {
            check(&gate, method, target, &[&[("host", "localhost")], more].concat())
        };
        let bearer = format!("Bearer {TOKEN}");
        let cookie = format!("a=b; goodput_8321={TOKEN}");
        assert_eq!(of("GET", "/", &[]), Err(Refusal::Token));
        assert_eq!(of("POST", "/", &[("authorization", &bearer)]), Ok(Pass::Through));
        assert_eq!(of("GET", "/api/runs", &[("cookie", &cookie)]), Ok(Pass::Through));
        assert_eq!(of("POST", "/", &[("cookie", &cookie)]), Err(Refusal::Page));
        let page = format!("/?x=1&token={TOKEN}");
        let pass = of("GET", &page, &[]).expect("the token is right");
        let set = format!("goodput_8321={TOKEN}; Path=/; HttpOnly; SameSite=Strict");
        assert_eq!(pass, Pass::Remember(set));
        assert_eq!(of("GET", &format!("/api/runs?token={TOKEN}"), &[]), Err(Refusal::Token));
        let half = &TOKEN[..8];
        for wrong in
            [half.to_owned(), format!("{TOKEN}{TOKEN}"), format!("{TOKEN}0"), String::new()]
        {
            let (bearer, page) = (format!("Bearer {wrong}"), format!("/?token={wrong}"));
            assert_eq!(of("GET", "/", &[("authorization", &bearer)]), Err(Refusal::Token));
            assert_eq!(of("GET", &page, &[]), Err(Refusal::Token));
        }
    }

    #[test]
    fn a_token_is_long_enough_and_needs_no_escape() {
        assert_eq!("short".parse::<Token>(), Err(TokenError::Length { found: 5 }));
        assert_eq!("0123456789abcde;".parse::<Token>(), Err(TokenError::Character(';')));
        let token: Token = TOKEN.parse().expect("it is one");
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
