//! `report`: recompute a run's figures from its directory, under any
//! definition.

use measure::Record;
use measure::definition::{Definition, PRESETS};
use measure::deployment::Deployment;
use measure::facts::RunFacts;
use measure::fairness::{self, Isolated};
use measure::slo::{Slo, labels_of};
use measure::summary::Summary;
use measure::threshold::Threshold;
use report::html::PageRun;
use report::lang::Lang;
use wire::scrapes::Collected;

use super::beside;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::UsageError;
use crate::output::{self, Asked, Pages};
use crate::plan::objective;

/// What `report` takes.
pub(crate) struct Arguments<'a> {
    pub(crate) runs: Vec<&'a str>,
    pub(crate) runs_dir: Option<&'a str>,
    pub(crate) json: Option<&'a str>,
    pub(crate) definitions: &'a str,
    pub(crate) goodput: Vec<&'a str>,
    pub(crate) slo: Vec<&'a str>,
    pub(crate) isolated: Vec<String>,
    pub(crate) fail_if: Vec<&'a str>,
    pub(crate) ground_truth: Option<&'a str>,
    /// What is said of the machines now; it wins over what was said at the run.
    pub(crate) deployment: Deployment,
    pub(crate) asked: Asked<'a>,
    pub(crate) lang: Lang,
}

/// A run read back.
pub(crate) struct Read {
    pub(crate) facts: RunFacts,
    pub(crate) records: Vec<Record>,
    pub(crate) notes: Vec<String>,
    /// The run's clock anchor on CLOCK_MONOTONIC.
    pub(crate) anchor_ns: i64,
    /// The command line that made it.
    pub(crate) argv: Vec<String>,
    /// Its settings with their origins.
    pub(crate) settings: Vec<wire::run::Setting>,
    /// What was scraped of servers.
    pub(crate) collected: Collected,
}

impl Read {
    /// Takes another objective than the run's own, where one is given.
    pub(crate) fn judge_by(&mut self, slo: Option<&Slo>) -> Result<(), Failure> {
        let Some(slo) = slo else { return Ok(()) };
        let mut slo = slo.clone();
        slo.name_labels(&labels_of(&self.records))
            .map_err(|error| UsageError::new(error.flag, error.sentence()))?;
        self.facts.slo = Some(slo);
        Ok(())
    }
}

impl Read {
    /// Takes what is said of the machines over what was said at the run.
    pub(crate) fn run_on(&mut self, deployment: &Deployment) {
        self.facts.deployment = deployment.clone().over(&self.facts.deployment);
    }
}

/// The runs of `--isolated`, as `LABEL=VALUE:RUN` or `RUN`.
pub(crate) fn isolated(given: &[String], runs_dir: Option<&str>) -> Result<Vec<Isolated>, Failure> {
    let mut all = Vec::new();
    for text in given {
        // A value may have a colon, as an address has, and a run has none.
        let labelled = text.rsplit_once(':').and_then(|(label, run)| {
            let (name, value) = label.split_once('=')?;
            Some((Some((name, value)), run))
        });
        let (label, name) = labelled.unwrap_or((None, text));
        let run = read(name, runs_dir)?;
        let found = fairness::isolated(&run.records, &run.facts.run_id, label);
        let found =
            found.map_err(|rule| UsageError::new("--isolated", format!("{text:?}: {rule}")))?;
        all.extend(found);
    }
    Ok(all)
}

/// Rules that this objective can decide.
fn rules(texts: &[&str], slo: Option<&Slo>) -> Result<Vec<Threshold>, Failure> {
    let rules = texts.iter().map(|text| objective::checked(text, slo));
    let rules: Result<_, String> = rules.collect();
    rules.map_err(|rule| UsageError::new("--fail-if", rule).into())
}

/// Opens a run by path, id prefix or `latest`.
pub(crate) fn read(run: &str, runs_dir: Option<&str>) -> Result<Read, Failure> {
    let open = store::open_run(run, &output::runs_dir(runs_dir))?;
    let manifest = wire::run::decode(&open.read_json("run.json")?)
        .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", open.path.display())))?;
    if !manifest.facts.rows_kept {
        return Err(UsageError::new("RUN", without_rows(&open)).into());
    }
    let rows = open.records()?;
    let mut notes: Vec<String> = rows.notes.iter().map(ToString::to_string).collect();
    // What the rows say stands without them.
    let collected = open.metrics().unwrap_or_else(|error| {
        notes.push(error.to_string());
        Collected::default()
    });
    let anchor_ns = i64::try_from(manifest.anchor_monotonic_ns).unwrap_or(i64::MAX);
    let (argv, settings) = (manifest.argv, manifest.settings);
    let (facts, records) = (manifest.facts, rows.records);
    Ok(Read { facts, records, notes, anchor_ns, argv, settings, collected })
}

/// What is said of a run that kept no request.
fn without_rows(open: &store::OpenRun) -> String {
    let figures = match open.has("summary.json") {
        Ok(true) => format!("its figures are in {}", open.path.join("summary.json").display()),
        _ => "it was stopped before its end and has no figures".to_owned(),
    };
    format!(
        "{} kept no rows (--no-events), so nothing can be computed from it again: {figures}; run \
         it without --no-events to keep them",
        open.id
    )
}

pub(crate) fn run(arguments: &Arguments<'_>) -> Result<Exit, Failure> {
    let slo = objective::parse(arguments.goodput.iter().copied(), arguments.slo.iter().copied())?;
    if arguments.runs.len() > 1 {
        return overlay(arguments, slo.as_ref());
    }
    let pages = Pages::open(arguments.asked, arguments.lang)?;
    let json = output::Json::open(arguments.json)?;
    let mut run = read(arguments.runs.first().copied().unwrap_or("latest"), arguments.runs_dir)?;
    run.judge_by(slo.as_ref())?;
    run.run_on(&arguments.deployment);
    if !arguments.isolated.is_empty() {
        run.facts.isolated = isolated(&arguments.isolated, arguments.runs_dir)?;
    }
    let rules = rules(&arguments.fail_if, run.facts.slo.as_ref())?;
    let definition = definition(arguments.definitions, &run.facts)?;
    let summary = figures(&run, &definition);
    let mut text = output::report(&summary, None, arguments.lang, json.is_stdout());
    if let Some(path) = arguments.ground_truth {
        let (records, anchor_ns) = (&run.records, run.anchor_ns);
        text.push_str(&output::errors_against_truth(path, records, anchor_ns, arguments.lang)?);
    }
    for note in &run.notes {
        crate::say(note);
    }
    json.show(text.trim_end());
    json.write(&wire::summary::to_json(&summary))?;
    pages.write_one(&run.records, &summary, &run.notes, None)?;
    Ok(output::thresholds(&rules, &summary, arguments.lang))
}

/// All figures of a run that was read back, and what follows from them.
pub(crate) fn figures(run: &Read, definition: &Definition) -> Summary {
    let seen = run.collected.seen(&run.records, run.facts.model.as_deref());
    insight::summary(&run.records, &run.facts, definition, seen, &run.facts.deployment)
}

/// Several runs: side by side as text, over each other in a page.
fn overlay(arguments: &Arguments<'_>, slo: Option<&Slo>) -> Result<Exit, Failure> {
    let of_one = [
        ("--csv", arguments.asked.csv.is_some()),
        ("--fail-if", !arguments.fail_if.is_empty()),
        ("--isolated", !arguments.isolated.is_empty()),
        ("--ground-truth", arguments.ground_truth.is_some()),
    ];
    if let Some((flag, _)) = of_one.into_iter().find(|(_, given)| *given) {
        return Err(UsageError::new(flag, "is of one run; give one RUN").into());
    }
    let pages = Pages::open_beside(arguments.asked, arguments.lang)?;
    let json = output::Json::open(arguments.json)?;
    let mut runs = Vec::new();
    for name in &arguments.runs {
        let mut run = read(name, arguments.runs_dir)?;
        run.judge_by(slo)?;
        run.run_on(&arguments.deployment);
        let definition = definition(arguments.definitions, &run.facts)?;
        let summary = figures(&run, &definition);
        for note in &run.notes {
            crate::say(&format!("{name}: {note}"));
        }
        // Charts are for a page only.
        let records = if pages.are_wanted() { &run.records[..] } else { &[] };
        runs.push(PageRun::of(records, &summary, &run.notes));
    }
    let summaries: Vec<&Summary> = runs.iter().map(|run| &run.summary).collect();
    let page = report::content::beside(&summaries, arguments.lang);
    json.show(output::text(&page, json.is_stdout()).trim_end());
    json.write(&beside::object(&summaries))?;
    pages.write_beside(&runs, &page)?;
    Ok(Exit::Ok)
}

/// The preset of this name for the run's endpoint.
pub(crate) fn definition(name: &str, facts: &RunFacts) -> Result<Definition, Failure> {
    Definition::preset(name, facts.endpoint).ok_or_else(|| {
        UsageError::new("--definitions", format!("{name:?} is not one of {}", PRESETS.join(", ")))
            .into()
    })
}
