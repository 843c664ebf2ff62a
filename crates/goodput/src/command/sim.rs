//! `sim serve`: the engine model, the embedded engine, or recorded hostile
//! answers, as a server.

use std::path::Path;

use fake::engine::Anchor;
use fake::{CaseBook, Config, EngineConfig, Listen, Modelled, ModelledConfig, Server};

use crate::command::simulate::set_error;
use crate::exit::Exit;
use crate::failure::Failure;

/// What `sim serve` takes.
pub(crate) struct Arguments<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) serves: Serves,
    pub(crate) ground_truth: Option<&'a str>,
}

/// What serves.
pub(crate) enum Serves {
    /// The engine model.
    Modelled(Box<ModelledConfig>),
    /// An engine whose clock is known in advance.
    Fixed(EngineConfig),
    /// The recorded answers of a folder.
    Cases(String),
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
    let mut what = String::new();
    let started = match &arguments.serves {
        Serves::Modelled(config) => {
            what = format!(", {}", described(&config.settings)?);
            let model = Modelled::new((**config).clone(), Anchor::now()).map_err(set_error)?;
            Server::start_with(listen, model)
        }
        Serves::Fixed(engine) => Server::start(Config { listen, engine: engine.clone() }),
        Serves::Cases(folder) => Server::start_with(listen, cases(folder)?),
    };
    let server = started.map_err(|error| Failure::new(Exit::Usage, error))?;
    crate::say(&format!("listening on {}{what}; stop with Ctrl-C", server.url()));
    signals.wait().map_err(Failure::internal)?;
    let log = server.stop();
    if let Some(truth) = truth {
        let lines: Vec<u8> = log.truths.iter().flat_map(wire::truth::encode_line).collect();
        truth.write(&lines)?;
    }
    crate::say(&format!("{} answers were written down", log.truths.len()));
    Ok(Exit::Ok)
}

/// The model, what it runs on, and what its cache holds.
fn described(settings: &sim::Settings) -> Result<String, Failure> {
    let blocks = settings.blocks().map_err(set_error)?;
    let replicas = settings.replicas + settings.prefill_replicas;
    let each = if replicas > 1 { " each" } else { "" };
    Ok(format!(
        "{} on {} × {}, {blocks} KV blocks of {} tokens{each}",
        settings.model.name,
        settings.accelerators(),
        settings.accelerator.name,
        settings.block_size,
    ))
}

fn cases(folder: &str) -> Result<CaseBook, Failure> {
    let folder = Path::new(folder);
    let json = store::read_file(&folder.join("cases.json"), 64 << 20)?;
    CaseBook::load(&json, |name| {
        store::read_file(&folder.join(name), 64 << 20).map_err(std::io::Error::other)
    })
    .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", folder.display())))
}
