//! `export`: a run's requests in another form.

use std::path::Path;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::UsageError;

use super::report;

/// Writes one JSON object a request to a file that ends in `.jsonl`, and one
/// row a request to one that ends in `.csv`.
pub(crate) fn run(
    run: &str,
    runs_dir: Option<&str>,
    to: &str,
    definitions: &str,
) -> Result<Exit, Failure> {
    let ending = Path::new(to).extension().and_then(|ending| ending.to_str());
    if !matches!(ending, Some("jsonl" | "csv")) {
        let rule = format!(
            "{to:?} has an ending that is not known; write a file that ends in .jsonl or .csv"
        );
        return Err(UsageError::new("--to", rule).into());
    }
    let read = report::read(run, runs_dir)?;
    let definition = report::definition(definitions, &read.facts)?;
    let (records, settings) = (&read.records, read.facts.settings);
    let bytes = if ending == Some("csv") {
        wire::export::csv::file(records, &definition, settings)
    } else {
        let rows = records.iter().map(|record| wire::export::row(record, &definition, settings));
        rows.map(|row| format!("{row}\n")).collect::<String>().into_bytes()
    };
    for note in &read.notes {
        crate::say(note);
    }
    store::write_file_atomic(to.as_ref(), &bytes)?;
    crate::say(&format!("{} requests written to {to}", read.records.len()));
    Ok(Exit::Ok)
}
