//! `import`: another tool's result as a run directory.

use std::path::Path;

use measure::At;
use measure::definition::GOODPUT;
use measure::deployment::Deployment;
use measure::signal::Seen;
use store::{PartWriter, RunDirectory, RunId};
use wire::foreign::vllm;
use wire::run::Manifest;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::{host, output};

/// Largest file that is read.
const FILE_LIMIT: u64 = 4 << 30;

pub(crate) fn run(file: &str, out: Option<&str>, runs_dir: Option<&str>) -> Result<Exit, Failure> {
    let bytes = store::read_file(file.as_ref(), FILE_LIMIT)?;
    let import = vllm::import(&bytes)
        .map_err(|error| Failure::new(Exit::Usage, format!("{file}: {error}")))?;
    let (started_ms, started_at) = host::wall_time();
    let run_id = RunId::new(started_ms, host::random().map_err(Failure::internal)?);
    let directory = match out {
        Some(path) => RunDirectory::create(Path::new(path))?,
        None => RunDirectory::create_in(&output::runs_dir(runs_dir), run_id)?,
    };
    let path = directory.path().display().to_string();
    let mut facts = import.facts;
    facts.run_id = run_id.to_string();
    let mut writer = PartWriter::new(directory, 0, At::ZERO);
    import.records.into_iter().for_each(|record| writer.push(record));
    writer.flush(At::ZERO)?;
    writer.sink().finish(0)?;
    let files = writer.sink().checksums()?;
    let (records, directory) = writer.into_parts();
    let (seen, deployment) = (Seen::default(), Deployment::default());
    let summary = insight::summary(&records, &facts, &GOODPUT, seen, &deployment);
    let summary = wire::summary::to_json(&summary);
    let manifest = Manifest {
        argv: vec!["goodput".to_owned(), "import".to_owned(), file.to_owned()],
        settings: Vec::new(),
        facts,
        host: host::facts(),
        started_at,
        anchor_monotonic_ns: 0,
        written_by: format!("goodput {}", env!("CARGO_PKG_VERSION")),
        files,
        validity: Vec::new(),
        definitions: GOODPUT.card().stored(),
    };
    directory.write_json("run.json", &wire::run::encode(&manifest))?;
    directory.write_json("summary.json", format!("{summary:#}").as_bytes())?;
    for note in &import.notes {
        crate::say(note);
    }
    crate::print(&format!(
        "{} requests imported to {path}\nnext: goodput report {path} --definitions vllm",
        records.len()
    ));
    Ok(Exit::Ok)
}
