//! `cargo run --release -p diagnosis -- --seeds 1000..1500 --healthy 300` prints
//! how often the rules name what is wrong. `--date DATE --json` prints the result as
//! a file keeps it, `--page FILE` the page of such a file, `--show SEED` one scenario
//! with what was drawn and what is found; `--wrong` tells of each that is not right,
//! `--all` of each.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a command")]

use std::ops::Range;
use std::process::ExitCode;

use diagnosis::judge::{Found, found, found_by_client};
use diagnosis::matrix::Matrix;
use diagnosis::page::page;
use diagnosis::scenario::{Scenario, healthy, scenario};

/// What was asked for.
#[derive(Debug, Default)]
struct Asked {
    seeds: Range<u64>,
    healthy: u32,
    date: String,
    json: bool,
    wrong: bool,
    all: bool,
    page: Option<String>,
    show: Option<u64>,
    show_healthy: Option<u64>,
}

fn asked(arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked { seeds: 0..100, healthy: 60, ..Asked::default() };
    let mut arguments = arguments.peekable();
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{name} needs a value"));
        let number = |text: String| text.parse().map_err(|_| format!("{text:?} is not a number"));
        match name.as_str() {
            "--seeds" => {
                let text = value()?;
                let (from, until) =
                    text.split_once("..").ok_or("write --seeds 1000..1500, the end left out")?;
                asked.seeds = number(from.to_owned())?..number(until.to_owned())?;
            }
            "--healthy" => asked.healthy = number(value()?)? as u32,
            "--date" => asked.date = value()?,
            "--page" => asked.page = Some(value()?),
            "--show" => asked.show = Some(number(value()?)?),
            "--show-healthy" => asked.show_healthy = Some(number(value()?)?),
            "--json" => asked.json = true,
            "--wrong" => asked.wrong = true,
            "--all" => asked.all = true,
            other => return Err(format!("{other} is not known; see the head of main.rs")),
        }
    }
    Ok(asked)
}

fn main() -> ExitCode {
    let done = asked(std::env::args().skip(1)).and_then(|asked| run(&asked));
    match done {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run(asked: &Asked) -> Result<String, String> {
    if let Some(path) = &asked.page {
        let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        let result = serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))?;
        return Ok(page(&result));
    }
    if let Some(seed) = asked.show {
        return Ok(shown(&scenario(seed)));
    }
    if let Some(seed) = asked.show_healthy {
        return Ok(shown(&healthy(seed)));
    }
    let mut matrix = Matrix::default();
    let healthy_seeds = asked.seeds.start..asked.seeds.start + u64::from(asked.healthy);
    let all = asked.seeds.clone().map(scenario).chain(healthy_seeds.map(healthy));
    for one in all {
        let (found, by_client) = (found(&one), found_by_client(&one));
        if asked.all || asked.wrong && is_wrong(&one, &found) {
            eprintln!("{}\n  client alone {}", line(&one, &found), line(&one, &by_client));
        }
        matrix.count(&one, &found, &by_client);
    }
    let seeds = format!("{} to {}", asked.seeds.start, asked.seeds.end.saturating_sub(1));
    let result = matrix.to_json(&asked.date, &seeds, asked.healthy);
    if asked.json {
        return serde_json::to_string_pretty(&result)
            .map(|text| text + "\n")
            .map_err(|error| error.to_string());
    }
    Ok(page(&result))
}

fn is_wrong(scenario: &Scenario, found: &[Found]) -> bool {
    match scenario.labels.as_slice() {
        [] => found.iter().any(|one| one.confidence == measure::finding::Confidence::Confirmed),
        labels => {
            let places = |one: &Found| labels.iter().any(|cause| one.places(cause));
            !found.iter().take(labels.len()).all(places) || found.len() < labels.len()
        }
    }
}

fn line(scenario: &Scenario, found: &[Found]) -> String {
    let labels: Vec<&str> = scenario.labels.iter().map(|cause| cause.id).collect();
    let found: Vec<String> = found
        .iter()
        .take(6)
        .map(|one| {
            let there = if one.is_there(scenario) { "" } else { " (not there)" };
            format!("{} {} {:.2}{there}", one.code, one.confidence.text().en, one.share)
        })
        .collect();
    format!("{} [{}]: {}", scenario.seed, labels.join(", "), found.join("; "))
}

fn shown(scenario: &Scenario) -> String {
    let (found, by_client) = (found(scenario), found_by_client(scenario));
    format!(
        "{}\nclient alone {}\n{} draws were rejected\n{}\n{:#?}\n",
        line(scenario, &found),
        line(scenario, &by_client),
        scenario.rejected,
        scenario.drawn,
        scenario.signals.readings,
    )
}
