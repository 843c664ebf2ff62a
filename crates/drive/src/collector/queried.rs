//! A Prometheus server, asked after the run for what it scraped during it.

use std::collections::BTreeMap;

use measure::{At, Span};
use wire::prometheus::Reader;
use wire::scrapes::queried::{self, Told};
use wire::scrapes::{Keeper, MOST_VALUES, Scrape, Source};

use super::{Exporter, Trouble};
use crate::clock::Clock;
use crate::fetch::Line;

/// How long an answer may take: nothing is measured any more.
const WITHIN: Span = Span::from_ms(20_000);

/// The most bytes of an answer.
const BODY_LIMIT: usize = 64 << 20;

/// So long before the run samples are asked for, so that there is one before its
/// beginning: servers are usually scraped every fifteen seconds.
const BEFORE: Span = Span::from_ms(60_000);

/// A server that will be asked.
pub(super) struct Server {
    exporter: Exporter,
    matchers: String,
}

impl Server {
    pub(super) const fn new(exporter: Exporter, matchers: String) -> Self {
        Self { exporter, matchers }
    }

    /// One source for each instance that the server scraped since `clock` began.
    pub(super) fn sources(&self, clock: Clock) -> Vec<Source> {
        let failed = |trouble: Trouble| {
            let mut source = Source::new(self.exporter.name.clone());
            source.fail(clock.now(), trouble.reason);
            vec![source]
        };
        let (offset_us, told) = match self.ask(clock) {
            Ok(answers) => answers,
            Err(trouble) => return failed(trouble),
        };
        if told.is_empty() {
            let reason = "the server scraped no engine and no exporter during the run";
            return failed(Trouble::passing(reason));
        }
        let most_values = MOST_VALUES / told.len();
        let sources = told.into_iter().map(|(instance, told)| {
            let name = format!("{} by {}", instance, self.exporter.name);
            source(Keeper::new(Source::new(name), most_values), offset_us, &told)
        });
        sources.collect()
    }

    /// What its clock is ahead of ours by, in microseconds, and what it scraped.
    fn ask(&self, clock: Clock) -> Result<(i64, BTreeMap<String, Vec<Told>>), Trouble> {
        let Exporter { target, headers, .. } = &self.exporter;
        let mut line =
            Line { limit: BODY_LIMIT, stays: true, ..Line::new(target, headers, WITHIN) };
        let root = target.url.path.trim_end_matches('/').to_owned();
        let mut get = |path: &str| {
            let (status, body) =
                line.ask("GET", &format!("{root}{path}"), None).map_err(Trouble::passing)?;
            // A refused query has another status and says why in its body.
            match status {
                200 | 400 | 422 | 503 => Ok(body),
                status => Err(Trouble::passing(format!("answered {status}"))),
            }
        };
        let asked_at = clock.now();
        let body = get(queried::TIME)?;
        let middle_us = (asked_at.us() + clock.now().us()) / 2;
        let offset_us = queried::time_ms(&body).map_err(Trouble::passing)? * 1_000 - middle_us;
        let last = clock.now() - At::ZERO + BEFORE;
        let body = get(&queried::samples_path(&self.matchers, last.s().ceil() as u64))?;
        Ok((offset_us, queried::samples(&body).map_err(Trouble::passing)?))
    }
}

fn source(mut keeper: Keeper, offset_us: i64, told: &[Told]) -> Source {
    let mut reader = Reader::default();
    for Told { at_ms, text } in told {
        let at = At::from_us(at_ms * 1_000 - offset_us);
        match reader.read(text.as_bytes()) {
            Ok(exposition) => {
                keeper.push(Scrape { at, took: Span::ZERO, late: Span::ZERO, exposition });
            }
            Err(why) => keeper.fail(at, why.to_string()),
        }
    }
    keeper.into_source()
}
