//! The engine model: what a serving engine does with a load, step by step, in
//! virtual time. It reads no clock: instants come in and go out as numbers.

mod adapter;
mod block;
mod choice;
pub mod client;
mod cluster;
mod content;
mod cost;
pub mod fit;
mod inside;
pub mod planning;
mod replica;
mod scheduler;
mod settings;

pub use choice::{Choice, ChoicesError, MOST_CHOICES, choices};
pub use cluster::{Ask, Audience, Cluster, TooLong};
pub use content::{BlockHash, Content, Stretch};
pub use cost::{Cost, StepCost};
pub use inside::Inside;
pub use replica::{Gauges, Listener, Replica, Slowdown, StepReport, Totals};
pub use scheduler::{
    Begun, Ended, Finish, Limits, Policy, PrefixCounts, Sink, Speculation, Submission, Work,
};
pub use settings::{Memory, Router, SETTINGS, Setting, Settings, SettingsError};
