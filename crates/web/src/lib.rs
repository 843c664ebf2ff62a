//! The local web page: a server for one person's browser, on loopback unless
//! that person says otherwise and sets a token.
//!
//! What it may be asked is a table in `route`; who may ask is decided in
//! `gate`, which is pure; what a run is comes from [`store`], [`measure`] and
//! [`report`], off the threads that answer. It computes no figure of its own
//! and starts no run.

mod answer;
mod gate;
mod route;
mod server;
mod shelf;

use std::net::SocketAddr;
use std::path::PathBuf;

use report::lang::Lang;

pub use gate::{Token, TokenError};
pub use server::{Server, StartError};

/// What a server is to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen; port 0 takes a free one.
    pub bind: SocketAddr,
    /// What a browser must show to be let in; needed off loopback.
    pub token: Option<Token>,
    /// The folder of run directories.
    pub runs_dir: PathBuf,
    /// The language in which the page opens.
    pub lang: Lang,
    /// The program's version.
    pub version: &'static str,
    /// Milliseconds since 1970: a run that changed a moment ago is being
    /// written.
    pub now_ms: fn() -> u64,
}
