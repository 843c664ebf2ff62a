//! An exporter over HTTP.

use measure::Span;
use wire::url::Url;

use super::{Exporter, Tell, Trouble};
use crate::fetch::{FetchError, Line, Reply};

/// The most bytes of an exposition that are read during a run. The largest
/// engines tell a hundredth of it; to read more every second would take the
/// processor from the load.
const BODY_LIMIT: usize = 16 << 20;

/// Where TensorRT-LLM's server has its metrics; what it tells under `/metrics`
/// are statistics in JSON, which are gone once they were asked for.
const ELSEWHERE: &str = "/prometheus/metrics";

/// Redirects that are followed: `/metrics` is often one to `/metrics/`.
const MOST_REDIRECTS: u32 = 2;

/// Plain text first: it says the same, and less of what is not needed.
const ACCEPT: &[(&str, &str)] = &[(
    "Accept",
    "text/plain;version=0.0.4;q=0.9,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1",
)];

/// An exporter that is asked again and again over one connection.
pub(super) struct Asked<'a> {
    line: Line<'a>,
    path: String,
    has_key: bool,
    is_found: bool,
    may_turn: bool,
}

impl<'a> Asked<'a> {
    pub(super) fn new(exporter: &'a Exporter, within: Span) -> Self {
        let Exporter { target, headers, is_found, .. } = exporter;
        let is_found = *is_found;
        let line = Line {
            limit: BODY_LIMIT,
            stays: true,
            own: ACCEPT,
            ..Line::new(target, headers, within)
        };
        let path = target.url.path.clone();
        Self { line, path, has_key: !headers.is_empty(), is_found, may_turn: is_found }
    }

    /// The path of a redirect that stays at this server.
    fn redirected(&self, location: &str) -> Option<String> {
        if location.starts_with('/') && !location.starts_with("//") {
            return Some(location.to_owned());
        }
        let (own, other) = (&self.line.target.url, Url::parse(location).ok()?);
        let is_same = (own.secure, &own.host, own.port) == (other.secure, &other.host, other.port);
        is_same.then_some(other.path)
    }

    fn refused(&self, status: u16) -> Trouble {
        match status {
            401 | 403 => {
                let hint = if self.has_key { "another key" } else { "a key" };
                Trouble::lasting(format!("answered {status}: give {hint} with --metrics-header"))
            }
            404 | 405 | 501 => Trouble::lasting(format!(
                "answered {status}: no metrics are told there. SGLang needs --enable-metrics, \
                 llama.cpp --metrics; metrics at another address are read with --metrics-url"
            )),
            status => Trouble::passing(format!("answered {status}")),
        }
    }
}

impl Tell for Asked<'_> {
    fn tell(&mut self) -> Result<Vec<u8>, Trouble> {
        for _ in 0..=MOST_REDIRECTS {
            let Reply { status, location, body } =
                self.line.reply("GET", &self.path, None).map_err(|error| match error {
                    FetchError::TooLarge(_) => Trouble::lasting(error),
                    other => Trouble::passing(other),
                })?;
            match (status, location) {
                (200, _) => return Ok(body),
                (301 | 302 | 303 | 307 | 308, Some(location)) => {
                    self.path = self.redirected(&location).ok_or_else(|| {
                        let plain = location.split('?').next().unwrap_or_default();
                        Trouble::lasting(format!(
                            "redirects to {plain}, which is another server: give its address with \
                             --metrics-url"
                        ))
                    })?;
                }
                (status, _) => return Err(self.refused(status)),
            }
        }
        Err(Trouble::lasting("redirects again and again"))
    }

    fn turn_elsewhere(&mut self) -> bool {
        ELSEWHERE.clone_into(&mut self.path);
        std::mem::take(&mut self.may_turn)
    }

    fn begin_anew(&mut self) {
        self.path.clone_from(&self.line.target.url.path);
        self.may_turn = self.is_found;
    }
}
