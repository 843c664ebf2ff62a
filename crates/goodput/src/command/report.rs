//! `report`: recompute a run's figures from its directory, under any
//! definition.

use measure::Record;
use measure::definition::{Definition, PRESETS};
use measure::facts::RunFacts;
use measure::slo::Slo;
use measure::summary::summarise;
use measure::threshold::Threshold;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::UsageError;
use crate::output;

/// What `report` takes.
pub(crate) struct Arguments<'a> {
    pub(crate) run: &'a str,
    pub(crate) runs_dir: Option<&'a str>,
    pub(crate) json: Option<&'a str>,
    pub(crate) definitions: &'a str,
    pub(crate) goodput: Vec<&'a str>,
    pub(crate) fail_if: Vec<&'a str>,
    pub(crate) ground_truth: Option<&'a str>,
}

/// A run read back.
pub(crate) struct Read {
    pub(crate) facts: RunFacts,
    pub(crate) records: Vec<Record>,
    pub(crate) notes: Vec<String>,
    /// The run's clock anchor on CLOCK_MONOTONIC.
    pub(crate) anchor_ns: i64,
}

/// Opens a run by path, id prefix or `latest`.
pub(crate) fn read(run: &str, runs_dir: Option<&str>) -> Result<Read, Failure> {
    let open = store::open_run(run, &output::runs_dir(runs_dir))?;
    let manifest = wire::run::decode(&open.read_json("run.json")?)
        .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", open.path.display())))?;
    let rows = open.records()?;
    let notes = rows.notes.iter().map(ToString::to_string).collect();
    let anchor_ns = i64::try_from(manifest.anchor_monotonic_ns).unwrap_or(i64::MAX);
    Ok(Read { facts: manifest.facts, records: rows.records, notes, anchor_ns })
}

pub(crate) fn run(arguments: &Arguments<'_>) -> Result<Exit, Failure> {
    let mut run = read(arguments.run, arguments.runs_dir)?;
    if !arguments.goodput.is_empty() {
        let slo = Slo::parse_goodput(arguments.goodput.iter().copied())
            .map_err(|error| Failure::new(Exit::Usage, error))?;
        run.facts.slo = Some(slo);
    }
    let rules: Vec<Threshold> = arguments
        .fail_if
        .iter()
        .map(|text| Threshold::parse(text))
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::new(Exit::Usage, format!("--fail-if {error}")))?;
    let definition = definition(arguments.definitions, &run.facts)?;
    let summary = summarise(&run.records, &run.facts, &definition);
    let json = output::Json::open(arguments.json)?;
    let mut text = output::report(&summary, None, json.is_stdout());
    if let Some(path) = arguments.ground_truth {
        text.push_str(&output::errors_against_truth(path, &run.records, run.anchor_ns)?);
    }
    for note in &run.notes {
        crate::say(note);
    }
    json.show(text.trim_end());
    json.write(&wire::summary::to_json(&summary))?;
    Ok(output::thresholds(&rules, &summary))
}

/// The preset of this name for the run's endpoint.
pub(crate) fn definition(name: &str, facts: &RunFacts) -> Result<Definition, Failure> {
    Definition::preset(name, facts.endpoint).ok_or_else(|| {
        UsageError::new("--definitions", format!("{name:?} is not one of {}", PRESETS.join(", ")))
            .into()
    })
}
