//! `export`: a run's requests in another form.

use std::path::Path;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::UsageError;

use super::report;

/// Writes one JSON object a request to a file that ends in `.jsonl`.
pub(crate) fn run(
    run: &str,
    runs_dir: Option<&str>,
    to: &str,
    definitions: &str,
) -> Result<Exit, Failure> {
    if Path::new(to).extension().is_none_or(|ending| ending != "jsonl") {
        let rule =
            format!("{to:?} has an ending that is not known; write a file that ends in .jsonl");
        return Err(UsageError::new("--to", rule).into());
    }
    let read = report::read(run, runs_dir)?;
    let definition = report::definition(definitions, &read.facts)?;
    let mut text = String::new();
    for record in &read.records {
        text.push_str(&wire::export::row(record, &definition, read.facts.settings).to_string());
        text.push('\n');
    }
    for note in &read.notes {
        crate::say(note);
    }
    store::write_file_atomic(to.as_ref(), text.as_bytes())?;
    crate::say(&format!("{} requests written to {to}", read.records.len()));
    Ok(Exit::Ok)
}
