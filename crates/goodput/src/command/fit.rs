//! `sim fit`: the engine model's settings from runs that were measured.

use measure::Span;
use report::number::{percent, short};
use serde_json::{Value, json};
use sim::fit::{self, Figures, Fit, FitError, Observed};
use wire::engine::{Engine, FittedSetting, VERSION};

use crate::command::inside::{self, Told};
use crate::command::report::{self as kept, Read};
use crate::command::simulate::set_error;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::UsageError;
use crate::plan::engine;
use crate::{open, output};

/// What `sim fit` takes.
pub(crate) struct Arguments<'a> {
    pub(crate) runs: Vec<&'a str>,
    pub(crate) runs_dir: Option<&'a str>,
    pub(crate) engine: Option<&'a str>,
    pub(crate) set: Vec<String>,
    /// Names of settings to move; empty takes the usual ones.
    pub(crate) only: Vec<&'a str>,
    pub(crate) to: Option<&'a str>,
    pub(crate) json: Option<&'a str>,
}

/// Runs the command; the exit code is its result.
pub(crate) fn run(arguments: &Arguments<'_>) -> Result<Exit, Failure> {
    let json = output::Json::open(arguments.json)?;
    // A folder that cannot be written to must not cost a fit.
    let to = arguments.to.map(|path| store::Output::open(path.as_ref())).transpose()?;
    let start = engine::engine(arguments.engine, &arguments.set, &open)?;
    let names = if arguments.only.is_empty() { fit::USUAL } else { &arguments.only };
    let read = |name: &&str| kept::read(name, arguments.runs_dir);
    let runs: Vec<Read> = arguments.runs.iter().map(read).collect::<Result<_, _>>()?;
    let seen = Seen::of(&runs)?;
    drop(runs);
    let found = fit::fit(&seen.runs, &start.settings, names).map_err(fit_error)?;
    start.notes.iter().for_each(|note| crate::say(note));
    let file = described(&found, &seen, start);
    for run in seen.runs.iter().filter(|run| !run.knows_cached()) {
        crate::say(&unknown_cache(run.name()));
    }
    json.show(words(&found, &seen).trim_end());
    json.write(&to_json(&found, &seen))?;
    if !found.holds() {
        let why = format!(
            "the model does not describe these runs: it is off by {} (root mean square), more than \
             {}; no engine is written. Set what is known of the engine (model, accelerator, limits) \
             with --set, or fit runs of one kind",
            percent(found.error),
            percent(fit::POOREST)
        );
        return Err(Failure::new(Exit::Invalid, why));
    }
    if let Some((to, path)) = to.zip(arguments.to) {
        to.write(&wire::engine::encode(&file))?;
        crate::say(&format!("written to {path}; take it with --engine {path}"));
    }
    Ok(Exit::Ok)
}

/// Runs that are kept, ready to be fitted.
pub(crate) struct Seen {
    pub(crate) runs: Vec<Observed>,
    /// What the server of each says of itself, or why that is not taken.
    pub(crate) told: Vec<Result<Told, String>>,
    /// Mean time of TTFT outside of the servers, ms; none where no server says it.
    pub(crate) outside_ms: Option<f64>,
}

impl Seen {
    pub(crate) fn of(read: &[Read]) -> Result<Self, Failure> {
        let told: Vec<Result<Told, String>> = read.iter().map(inside::told).collect();
        let outside = |told: &Result<Told, String>| told.as_ref().ok()?.outside_ms;
        let known: Vec<f64> = told.iter().filter_map(outside).collect();
        let outside_ms =
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64);
        let mut runs = Vec::new();
        for (run, told) in read.iter().zip(&told) {
            let observed = Observed::of(&run.facts.run_id, &run.records, &run.facts.load);
            let mut observed = observed.map_err(fit_error)?;
            // One client measured one engine: what is not known of a run is what it
            // was in the others.
            if let Some(ms) = outside(told).or(outside_ms) {
                observed = observed.at_distance(Span::from_s(ms / 1e3));
            }
            if let Ok(told) = told {
                observed = observed.seen_inside(told.inside());
            }
            runs.push(observed);
        }
        Ok(Self { runs, told, outside_ms })
    }

    /// What is known of the server of each run, a line each.
    fn words(&self) -> String {
        let mut text = String::new();
        for (run, told) in self.runs.iter().zip(&self.told) {
            let said = match (told, self.outside_ms) {
                (Ok(told), _) => told.words(),
                (Err(why), None) => format!("{why}; fitted by its client records alone"),
                (Err(why), Some(ms)) => format!(
                    "{why}; fitted by its client records alone, with {} ms of TTFT outside of the \
                     server as in the other runs",
                    short(ms)
                ),
            };
            text.push_str(&format!("  run {}: {said}\n", last_of(run.name())));
        }
        text
    }
}

pub(crate) fn fit_error(error: FitError) -> Failure {
    match error {
        FitError::NotFitted(_) | FitError::NoStart(_) => UsageError::new("--only", error).into(),
        FitError::Settings(error) => set_error(error),
        other => Failure::new(Exit::Usage, other),
    }
}

/// What must be known of a run whose server did not say what it had cached.
pub(crate) fn unknown_cache(run: &str) -> String {
    format!(
        "run {run}: the server does not say which prompt tokens it had cached, so all count as \
         computed; with shared prefixes the fitted rates are too high"
    )
}

/// The file of a fit: what was given, then what was found.
fn described(found: &Fit, seen: &Seen, start: engine::Engine) -> Engine {
    let whole = |(name, value): (String, String)| {
        // A model's folder is found from wherever the file is read.
        let path = std::fs::canonicalize(&value).ok().filter(|_| name == "model");
        (name, path.map_or(value, |path| path.display().to_string()))
    };
    let mut settings: Vec<_> = start.assigned.into_iter().map(whole).collect();
    let fitted =
        found.fitted.iter().map(|fitted| (fitted.name.to_owned(), fitted.value.to_string()));
    settings.extend(fitted);
    Engine {
        format_version: VERSION,
        written_by: format!("goodput {}", env!("CARGO_PKG_VERSION")),
        settings,
        fitted: found
            .fitted
            .iter()
            .map(|fitted| FittedSetting {
                name: fitted.name.to_owned(),
                value: fitted.value,
                low: fitted.low,
                high: fitted.high,
                determined: fitted.determined,
            })
            .collect(),
        relative_error: Some(found.error),
        outside_ms: seen.outside_ms,
        runs: found.runs.iter().map(|(name, _, _)| name.clone()).collect(),
    }
}

/// A fit in words.
pub(crate) fn words(found: &Fit, seen: &Seen) -> String {
    let mut text = format!(
        "Engine model fitted to {} run{}, {} simulations\n\n  {:<24} {:>10} {:>10}  95 % interval\n",
        found.runs.len(),
        if found.runs.len() == 1 { "" } else { "s" },
        found.simulations,
        "setting",
        "start",
        "fitted"
    );
    for fitted in &found.fitted {
        let interval = match (fitted.low, fitted.high) {
            (Some(low), Some(high)) => format!("{} to {}", short(low), short(high)),
            (Some(low), None) => format!("{} at least", short(low)),
            (None, Some(high)) => format!("{} at most", short(high)),
            (None, None) => "any".to_owned(),
        };
        let vague = if fitted.determined { "" } else { "; these runs do not determine it" };
        text.push_str(&format!(
            "  {:<24} {:>10} {:>10}  {interval}{vague}\n",
            fitted.name,
            short(fitted.start),
            short(fitted.value),
        ));
    }
    text.push_str(&format!(
        "\n  {:<28} {:>10} {:>10} {:>8}\n",
        "run", "measured", "model", "off by"
    ));
    for (name, measured, model) in &found.runs {
        for (what, measured, model) in compared(measured, model) {
            text.push_str(&format!(
                "  {:<28} {:>10} {:>10} {:>8}\n",
                format!("{} {what}", last_of(name)),
                short(measured),
                short(model),
                off(measured, model),
            ));
        }
    }
    let and_parts =
        if seen.told.iter().any(Result::is_ok) { ", the parts of the servers' TTFT" } else { "" };
    text.push_str(&format!(
        "\n{}\n  relative error {} (root mean square over the deciles of TTFT and TPOT{and_parts} and the lengths of the runs)\n",
        seen.words(),
        percent(found.error)
    ));
    text
}

/// The last characters of a run's id, by which runs of one day differ.
fn last_of(id: &str) -> &str {
    id.char_indices().rev().nth(5).map_or(id, |(place, _)| &id[place..])
}

/// The figures of a run that people ask for: name, measured, model.
fn compared(measured: &Figures, model: &Figures) -> Vec<(&'static str, f64, f64)> {
    let mut all = vec![("mean TTFT, ms", measured.mean_ttft_ms, model.mean_ttft_ms)];
    if let Some((measured, model)) = measured.mean_tpot_ms.zip(model.mean_tpot_ms) {
        all.push(("mean TPOT, ms", measured, model));
    }
    if let Some((measured, model)) = measured.inside.zip(model.inside) {
        if let Some((measured, model)) = measured.waited_ms().zip(model.waited_ms()) {
            all.push(("front end + queue, ms", measured, model));
        }
        all.push(("prefill, ms", measured.prefill_ms, model.prefill_ms));
    }
    all.push(("requests/s", measured.requests_per_s(), model.requests_per_s()));
    all
}

/// The relative difference, with its sign.
pub(crate) fn off(measured: f64, model: f64) -> String {
    if measured == 0.0 {
        return "n/a".to_owned();
    }
    let share = (model - measured) / measured;
    let sign = if share >= 0.0 { "+" } else { "−" };
    format!("{sign}{}", percent(share.abs()))
}

fn to_json(found: &Fit, seen: &Seen) -> Value {
    let settings: Vec<Value> = found
        .fitted
        .iter()
        .map(|fitted| {
            json!({
                "name": fitted.name, "start": fitted.start, "value": fitted.value,
                "low": fitted.low, "high": fitted.high, "determined": fitted.determined,
            })
        })
        .collect();
    let runs: Vec<Value> = found
        .runs
        .iter()
        .zip(&seen.told)
        .map(|((name, measured, model), told)| {
            json!({
                "run_id": name, "measured": figures(measured), "model": figures(model),
                "server": told.as_ref().ok().map(|told| told.to_json()),
                "server_left_out": told.as_ref().err(),
            })
        })
        .collect();
    json!({
        "settings": settings, "runs": runs, "outside_ms": seen.outside_ms,
        "relative_error": found.error, "holds": found.holds(),
    })
}

fn figures(figures: &Figures) -> Value {
    json!({
        "requests": figures.ok,
        "mean_ttft_ms": figures.mean_ttft_ms,
        "mean_tpot_ms": figures.mean_tpot_ms,
        "ttft_deciles_ms": figures.ttft_ms,
        "tpot_deciles_ms": figures.tpot_ms,
        "makespan_s": figures.makespan_s,
        "req_s": figures.requests_per_s(),
        "front_end_and_queue_ms": figures.inside.and_then(|inside| inside.waited_ms()),
        "prefill_ms": figures.inside.map(|inside| inside.prefill_ms),
    })
}
