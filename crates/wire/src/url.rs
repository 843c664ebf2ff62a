//! Addresses of targets: scheme, host, port and path of an http or https URL.

use std::fmt;

/// A target's address, without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// True for https.
    pub secure: bool,
    /// Host name or address, without brackets.
    pub host: String,
    /// Port, the scheme's own when none is written.
    pub port: u16,
    /// Path and query, beginning with a slash.
    pub path: String,
}

/// Why a URL cannot be a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error(
        "{0:?} does not begin with http:// or https://; write it in full, as in http://127.0.0.1:8000"
    )]
    Scheme(String),
    /// No host.
    #[error("the URL names no host; write it as in http://127.0.0.1:8000")]
    Host,
    /// A port that is no port.
    #[error("the port {0:?} is not a number from 1 to 65535")]
    Port(String),
    /// User name or password in the URL.
    #[error(
        "the URL holds a user name or password, which would be stored with the run; send them with --header 'Authorization: Basic …' or --api-key-env"
    )]
    Credentials,
    /// Bytes that cannot stand in a request line.
    #[error(
        "the URL holds a blank, a control character or a letter outside ASCII; encode it with %XX"
    )]
    Characters,
}

impl Url {
    /// Reads a URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (secure, rest) = if let Some(rest) = strip(text, "http://") {
            (false, rest)
        } else if let Some(rest) = strip(text, "https://") {
            (true, rest)
        } else {
            // The text may hold a key by mistake, so only its beginning is shown.
            return Err(UrlError::Scheme(text.chars().take(16).collect()));
        };
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Characters);
        }
        let split = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(split);
        if authority.contains('@') {
            return Err(UrlError::Credentials);
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => {
                let (host, after) = inner.split_once(']').ok_or(UrlError::Host)?;
                (host, after.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() {
            return Err(UrlError::Host);
        }
        let port = match port {
            Some(port) => match port.parse() {
                Ok(0) | Err(_) => return Err(UrlError::Port(port.to_owned())),
                Ok(port) => port,
            },
            None if secure => 443,
            None => 80,
        };
        let tail = tail.split('#').next().unwrap_or_default();
        let path = if tail.starts_with('/') { tail.to_owned() } else { format!("/{tail}") };
        Ok(Self { secure, host: host.to_owned(), port, path })
    }

    /// Host and port as they stand in the Host header.
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.secure { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// The same target with another path.
    #[must_use]
    pub fn with_path(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }
}

fn strip<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let head = text.get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then(|| &text[scheme.len()..])
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_take_their_parts_and_give_them_back() {
        for (text, host, port, path) in [
            ("http://h:8000/v1", "h", 8000, "/v1"),
            ("http://h", "h", 80, "/"),
            ("HTTPS://h/x?y=1#z", "h", 443, "/x?y=1"),
            ("http://[::1]:81/", "::1", 81, "/"),
            ("http://h?x", "h", 80, "/?x"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.host.as_str(), url.port, url.path.as_str()), (host, port, path));
            assert_eq!(Url::parse(&url.to_string()).unwrap(), url);
        }
    }

    #[test]
    fn what_is_no_target_is_refused_with_the_rule() {
        assert!(matches!(Url::parse("h:8000"), Err(UrlError::Scheme(_))));
        assert_eq!(Url::parse("http:///x"), Err(UrlError::Host));
        assert_eq!(Url::parse("http://h:0"), Err(UrlError::Port("0".into())));
        assert_eq!(Url::parse("http://h:99999"), Err(UrlError::Port("99999".into())));
        assert_eq!(Url::parse("http://u:p@h"), Err(UrlError::Credentials));
        assert_eq!(Url::parse("http://h/a b"), Err(UrlError::Characters));
        assert_eq!(Url::parse("http://h/\r\nx"), Err(UrlError::Characters));
        let key = Url::parse("sk-verysecretverysecretverysecret").unwrap_err().to_string();
        assert!(!key.contains("verysecretverysecretverysecret"));
    }
}
