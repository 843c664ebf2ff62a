//! What was observed when a model was served, and what it means.
//!
//! A run is a list of [`record::Record`]s; a metric is a function of records.
//! Nothing here reads a clock, a socket, a file or a random source.

pub mod accuracy;
pub mod bins;
pub mod capacity;
pub mod caveat;
pub mod caveats;
pub mod conversations;
pub mod course;
pub mod definition;
pub mod deployment;
pub mod efficiency;
pub mod facts;
pub mod fairness;
pub mod finding;
pub mod goodput;
pub mod hardware;
pub mod metric;
pub mod outcome;
pub mod peaks;
pub mod picture;
pub mod quantile;
pub mod record;
pub mod replay;
pub mod request;
pub mod said;
pub mod signal;
pub mod slices;
pub mod slo;
pub mod stage;
pub mod statistics;
pub mod summary;
pub mod tally;
pub mod threshold;
pub mod undefined;
pub mod unit;
pub mod use_case;
pub mod validity;
pub mod watch;
pub mod window;

pub use outcome::{Blame, FailureKind, NotSentKind, Outcome};
pub use record::{
    Answer, Carries, Counts, Event, Events, Planned, ReasoningDisclosure, Record, SourceTimes,
    Stamps, TokensSource, Warnings,
};
pub use undefined::Undefined;
pub use unit::{At, PerSecond, Span, Tokens};
