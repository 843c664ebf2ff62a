//! `sim serve`: the embedded engine, or recorded hostile answers, as a server.

use std::path::Path;

use fake::{CaseBook, Config, EngineConfig, Listen, Server};

use crate::exit::Exit;
use crate::failure::Failure;

/// What `sim serve` takes.
pub(crate) struct Arguments<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) engine: EngineConfig,
    pub(crate) cases: Option<&'a str>,
    pub(crate) ground_truth: Option<&'a str>,
}

/// Serves until a signal comes, then writes the truth log.
pub(crate) fn serve(arguments: &Arguments<'_>) -> Result<Exit, Failure> {
    let address = format!("{}:{}", arguments.host, arguments.port);
    let bind = address.parse().map_err(|_| {
        Failure::new(Exit::Usage, format!("--host {}: is not an IP address", arguments.host))
    })?;
    // A truth log lists every token of every request, so it keeps them all.
    let listen = Listen { bind, ..Listen::default() };
    let truth =
        arguments.ground_truth.map(|path| store::Output::open(path.as_ref())).transpose()?;
    let signals = crate::Signals::hold().map_err(Failure::internal)?;
    let started = match arguments.cases {
        Some(folder) => Server::start_with(listen, cases(folder)?),
        None => Server::start(Config { listen, engine: arguments.engine.clone() }),
    };
    let server = started.map_err(|error| Failure::new(Exit::Usage, error))?;
    crate::say(&format!("listening on {}; stop with Ctrl-C", server.url()));
    signals.wait().map_err(Failure::internal)?;
    let log = server.stop();
    if let Some(truth) = truth {
        let lines: Vec<u8> = log.truths.iter().flat_map(wire::truth::encode_line).collect();
        truth.write(&lines)?;
    }
    crate::say(&format!("{} answers were written down", log.truths.len()));
    Ok(Exit::Ok)
}

fn cases(folder: &str) -> Result<CaseBook, Failure> {
    let folder = Path::new(folder);
    let json = store::read_file(&folder.join("cases.json"), 64 << 20)?;
    CaseBook::load(&json, |name| {
        store::read_file(&folder.join(name), 64 << 20).map_err(std::io::Error::other)
    })
    .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", folder.display())))
}
