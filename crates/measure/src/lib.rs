//! What was observed when a model was served, and what it means.
//!
//! A run is a list of [`record::Record`]s; a metric is a function of records.
//! Nothing here reads a clock, a socket, a file or a random source.

pub mod outcome;
pub mod record;
pub mod unit;

pub use outcome::{Blame, FailureKind, NotSentKind, Outcome};
pub use record::{
    Answer, Carries, Counts, Event, Events, Planned, ReasoningDisclosure, Record, SourceTimes,
    Stamps, TokensSource, Warnings,
};
pub use unit::{At, PerSecond, Span, Tokens};
