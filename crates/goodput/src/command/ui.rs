//! `ui`: the local web page.

use std::net::{IpAddr, SocketAddr};

use report::lang::Lang;
use web::{Server, Settings, Token};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::UsageError;
use crate::{host, output};

/// What `ui` takes.
pub(crate) struct Arguments<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: &'a str,
    pub(crate) runs_dir: Option<&'a str>,
    pub(crate) token: Option<String>,
    pub(crate) lang: Lang,
}

/// Serves until a signal comes.
pub(crate) fn run(arguments: &Arguments<'_>) -> Result<Exit, Failure> {
    let settings = settings(arguments).map_err(Failure::usage)?;
    let with_token = settings.token.is_some();
    let signals = crate::Signals::hold().map_err(Failure::internal)?;
    let server = Server::start(settings).map_err(|error| Failure::new(Exit::Usage, error))?;
    // The token is a secret, and a terminal is looked at by others.
    let how = if with_token { ", with ?token= and the token behind it the first time" } else { "" };
    crate::say(&format!("open {}{how}; stop with Ctrl-C", server.url()));
    signals.wait().map_err(Failure::internal)?;
    server.stop();
    Ok(Exit::Ok)
}

/// What was given as a server takes it, or all mistakes in it.
fn settings(arguments: &Arguments<'_>) -> Result<Settings, Vec<UsageError>> {
    let mut wrong = Vec::new();
    let mut note = |flag: &str, rule: &str| wrong.push(UsageError::new(flag, rule));
    let ip: Option<IpAddr> = arguments.host.parse().ok();
    if ip.is_none() {
        note("--host", "is not an IP address; write 127.0.0.1, ::1, or 0.0.0.0 for every one");
    }
    let port: Option<u16> = arguments.port.parse().ok();
    if port.is_none() {
        note("--port", "is not a port from 0 to 65535");
    }
    let token = arguments.token.as_deref().map(str::parse::<Token>).transpose();
    if let Err(error) = &token {
        note("--token", &error.to_string());
    }
    match (ip, port, token) {
        (Some(ip), Some(port), Ok(token)) => Ok(Settings {
            bind: SocketAddr::new(ip, port),
            token,
            runs_dir: output::runs_dir(arguments.runs_dir),
            lang: arguments.lang,
            version: env!("CARGO_PKG_VERSION"),
            now_ms: || host::wall_time().0,
        }),
        _ => Err(wrong),
    }
}
