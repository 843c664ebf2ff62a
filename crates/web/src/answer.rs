//! Answers with the headers that each must have.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
    LOCATION, REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use report::html::{SCRIPTS, STYLES, Shell, WEB_STYLE};
use serde_json::json;
use store::StoreError;

use crate::gate::Refusal;
use crate::route::NoRoute;

/// An answer as it is sent.
pub(crate) type Answer = Response<Full<Bytes>>;

/// What may be done with an answer that is no page: nothing.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What went wrong, for the one who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// How a program tells faults apart.
    pub(crate) status: StatusCode,
    /// What and where, in one sentence.
    pub(crate) error: String,
    /// What to do about it.
    pub(crate) hint: &'static str,
    /// The methods that the path has, where that is the matter.
    allow: Option<&'static str>,
}

impl Fault {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>, hint: &'static str) -> Self {
        Self { status, error: error.into(), hint, allow: None }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let (status, error, hint) = match refusal {
            Refusal::Name => (
                StatusCode::FORBIDDEN,
                "the Host header names another server than this one",
                "open the address that goodput ui printed, by number or as localhost",
            ),
            Refusal::Page => (
                StatusCode::FORBIDDEN,
                "the Origin header names another page than this server's own",
                "change things in the page of goodput ui, or send Authorization: Bearer with the \
                 token",
            ),
            Refusal::Token => (
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong",
                "open the page once with ?token= and the token behind its address, or send \
                 Authorization: Bearer with it",
            ),
        };
        Self::new(status, error, hint)
    }
}

impl From<NoRoute> for Fault {
    fn from(none: NoRoute) -> Self {
        match none {
            NoRoute::Path => Self::new(
                StatusCode::NOT_FOUND,
                "there is nothing at this path",
                "the page is at /, its data below /api/runs",
            ),
            NoRoute::Method(allowed) => Self {
                allow: Some(allowed),
                ..Self::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    format!("this path has {allowed} only"),
                    "docs/ui.md lists every path with its method",
                )
            },
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let (status, hint) = match &error {
            StoreError::NotARun { .. } | StoreError::BadName { .. } => {
                let error = "there is no run of this id in the runs directory";
                let hint = "it may be in the trash; read the list of runs again";
                return Self::new(StatusCode::NOT_FOUND, error, hint);
            }
            StoreError::Outside { .. } => {
                (StatusCode::CONFLICT, "only what lies in the runs directory itself is moved")
            }
            StoreError::Rows { .. } | StoreError::TooLarge { .. } | StoreError::Memory { .. } => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "the run stays listed; goodput runs rm moves it away",
            ),
            StoreError::Notes { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, "mend notes.json in the run's directory")
            }
            _ if error.is_disk_full() => {
                (StatusCode::INSUFFICIENT_STORAGE, "free some space and try again")
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "look at the runs directory and its rights"),
        };
        Self::new(status, error.to_string(), hint)
    }
}

/// JSON text.
pub(crate) fn data(text: String) -> Answer {
    full(StatusCode::OK, JSON, text.into())
}

/// A fault: an object for scripts, two lines for a person who opened the page.
pub(crate) fn fault(fault: &Fault, for_scripts: bool) -> Answer {
    let mut answer = if for_scripts {
        let object = json!({ "error": fault.error, "hint": fault.hint });
        full(fault.status, JSON, object.to_string().into())
    } else {
        full(fault.status, TEXT, format!("{}\n{}\n", fault.error, fault.hint).into())
    };
    let headers = answer.headers_mut();
    if let Some(allow) = fault.allow {
        headers.insert(ALLOW, HeaderValue::from_static(allow));
    }
    if fault.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

/// To the page without the token in its address, which a cookie holds now.
pub(crate) fn remember(cookie: &str) -> Answer {
    let mut answer = full(StatusCode::SEE_OTHER, TEXT, Bytes::new());
    let headers = answer.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("/"));
    let cookie = HeaderValue::from_str(cookie).expect("a token is made of plain characters");
    headers.insert(SET_COOKIE, cookie);
    answer
}

fn full(status: StatusCode, kind: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    let fixed: [(HeaderName, &'static str); 7] = [
        (CONTENT_TYPE, kind),
        // Runs change, and another person may use the browser next.
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, NOTHING),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// The files of the page, which are in the program.
#[derive(Debug)]
pub(crate) struct Files {
    page: Bytes,
    policy: HeaderValue,
    assets: Vec<Asset>,
}

#[derive(Debug)]
struct Asset {
    name: &'static str,
    kind: &'static str,
    body: Bytes,
    tag: HeaderValue,
}

impl Files {
    pub(crate) fn new(shell: Shell) -> Self {
        // Scripts set styles as properties, which 'self' allows; nothing needs
        // a style in the markup. The import map has no address of its own, so
        // its hash stands for it.
        let policy = format!(
            "default-src 'none'; script-src 'self' 'sha256-{}'; style-src 'self'; \
             connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
            hash(shell.import_map.as_bytes())
        );
        let script = |one: &report::html::Script| {
            let text = [one.text, one.behind].concat();
            Asset::new(one.file, "text/javascript; charset=utf-8", text)
        };
        let style = STYLES.iter().copied().chain([WEB_STYLE]).collect();
        let style = Asset::new("page.css", "text/css; charset=utf-8", style);
        Self {
            page: shell.html.into(),
            policy: HeaderValue::from_str(&policy).expect("a policy is plain text"),
            assets: SCRIPTS.iter().map(script).chain([style]).collect(),
        }
    }

    pub(crate) fn page(&self) -> Answer {
        let mut answer = full(StatusCode::OK, "text/html; charset=utf-8", self.page.clone());
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        answer
    }

    /// A script or the style sheet; only a note where the browser has it.
    pub(crate) fn asset(&self, name: &str, known: Option<&HeaderValue>) -> Result<Answer, Fault> {
        let asset = self.assets.iter().find(|one| one.name == name).ok_or(NoRoute::Path)?;
        let same = known == Some(&asset.tag);
        let (status, body) = match same {
            true => (StatusCode::NOT_MODIFIED, Bytes::new()),
            false => (StatusCode::OK, asset.body.clone()),
        };
        let mut answer = full(status, asset.kind, body);
        // Another version of the program may listen here tomorrow.
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        answer.headers_mut().insert(ETAG, asset.tag.clone());
        Ok(answer)
    }
}

impl Asset {
    fn new(name: &'static str, kind: &'static str, text: String) -> Self {
        let tag = format!("\"{}\"", hash(text.as_bytes()));
        let tag = HeaderValue::from_str(&tag).expect("base64 is plain text");
        Self { name, kind, body: text.into(), tag }
    }
}

/// SHA-256 as policies write it.
fn hash(bytes: &[u8]) -> String {
    STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, bytes))
}
