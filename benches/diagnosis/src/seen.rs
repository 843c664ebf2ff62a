//! What a server told over a run, as signals.

use measure::At;
use measure::signal::Signals;
use wire::prometheus::{Exposition, Reader};
use wire::signals::{self, Scrape};

use crate::world::{MODEL, Played};

/// The signals of a run: from its first send to its last event.
pub(crate) fn signals(played: &Played) -> Signals {
    let mut reader = Reader::default();
    let told: Vec<(At, Exposition)> = played
        .scrapes
        .iter()
        .map(|(at, text)| (*at, reader.read(text.as_bytes()).expect("what wire itself wrote")))
        .collect();
    let scrapes: Vec<Scrape<'_>> = told
        .iter()
        .map(|(at, exposition)| Scrape { at: *at, source: "127.0.0.1:8000", exposition })
        .collect();
    let stamps = played.records.iter().map(|record| &record.stamps);
    let from = stamps.clone().filter_map(|stamps| stamps.sent_at).min().unwrap_or_default();
    let until = stamps.filter_map(|stamps| stamps.ended_at).max().unwrap_or_default();
    signals::read(&scrapes, from, until, Some(MODEL))
}
