//! A server that listens: an embedded engine with a known clock, the engine
//! model, or a hostile script.
//!
//! It is the target of a benchmark without a URL and the oracle that the load
//! generator is tested against. So its clock comes first: every byte that it
//! sends has an absolute deadline on CLOCK_MONOTONIC, one thread keeps all
//! deadlines, and the instant just before each token's write is written down.
//!
//! Everything that is sent is a [`script`]: a list of steps with deadlines.
//! [`engine`] makes scripts of a plan, [`modelled`] pours the tokens of the engine
//! model as its steps end, by the detours that [`faults`] make, [`cases`] plays
//! recorded hostile answers, [`server`] keeps the deadlines. [`telemetry`] counts what
//! the engine model tells, on either clock.

pub mod cases;
pub mod clock;
mod draw;
pub mod engine;
pub mod faults;
pub mod modelled;
mod openai;
pub mod request;
pub mod script;
pub mod server;
pub mod telemetry;

pub use cases::{CaseBook, CaseError};
pub use engine::{Engine, EngineConfig, EngineConfigError};
pub use faults::{Fault, FaultError, FaultShare};
pub use modelled::{Modelled, ModelledConfig};
pub use request::{Limits, Request};
pub use script::{Action, Break, Piece, Play, Respond, Routes, Script, Step};
pub use server::{Config, Counters, Listen, Log, Server, StartError};
pub use telemetry::{Scraped, Scraper, Telemetry};
