//! One file a subcommand.

pub(crate) mod bench;
mod beside;
pub(crate) mod diagnose;
pub(crate) mod engine_settings;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod fit;
pub(crate) mod import;
mod inside;
pub(crate) mod planning;
pub(crate) mod probe;
pub(crate) mod report;
pub(crate) mod runs;
pub(crate) mod selftest;
mod session;
pub(crate) mod sim;
pub(crate) mod simulate;
pub(crate) mod ui;
pub(crate) mod watch;
pub(crate) mod what_if;
