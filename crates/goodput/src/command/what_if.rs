//! `sim run --like RUN`: the requests of a run under other settings.

use measure::definition::GOODPUT;
use measure::facts::RunFacts;
use measure::statistics::Distribution;
use measure::summary::{Summary, summarise};
use measure::{Outcome, Span};
use report::number::short;
use serde_json::{Value, json};
use sim::fit::{self, Observed};
use workload::prompt::RunNonce;
use workload::schedule::Schedule;

use crate::command::bench;
use crate::command::fit::{Seen, fit_error, off, unknown_cache, words};
use crate::command::report::{self as kept, Read};
use crate::command::simulate;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{Reader, Settings, UsageError};
use crate::plan::engine::Engine;
use crate::plan::{self, Plan, deployment, engine, objective};
use crate::{cli, open, output, target};

/// What the command takes.
pub(crate) struct Arguments<'a> {
    /// The run whose requests are played again.
    pub(crate) like: &'a str,
    /// Its own flags: those of [`HEEDED`].
    pub(crate) settings: &'a Settings,
}

/// Flags of `sim run` that mean something with `--like`; all else is the run's.
const HEEDED: &[&str] =
    &["set", "engine", "runs-dir", "json", "goodput", "slo", "gpu-price-per-hour"];

/// Runs the command; the exit code is its result.
pub(crate) fn run(arguments: &Arguments<'_>) -> Result<Exit, Failure> {
    let settings = arguments.settings;
    let unheeded = settings.typed().filter(|flag| !HEEDED.contains(flag));
    let unheeded: Vec<UsageError> = unheeded
        .map(|flag| {
            let heeded: Vec<String> = HEEDED.iter().map(|flag| format!("--{flag}")).collect();
            let rule = format!(
                "means nothing with --like, which takes {}; the load is the run's own",
                heeded.join(", ")
            );
            UsageError::new(format!("--{flag}"), rule)
        })
        .collect();
    if !unheeded.is_empty() {
        return Err(Failure::usage(unheeded));
    }
    let price = price(settings)?;
    let json = output::Json::open(settings.text("json"))?;
    let mut run = kept::read(arguments.like, settings.text("runs-dir"))?;
    let texts =
        |flag: &str| -> Vec<&str> { settings.all(flag).iter().map(String::as_str).collect() };
    let slo = objective::parse(texts("goodput"), texts("slo"))?;
    run.judge_by(slo.as_ref())?;
    let changes = settings.all("set");
    let mut notes = Vec::new();
    let own = own_settings(&run);
    let mut engine = baseline(settings, &run, own.as_ref(), &mut notes)?;
    let one_way = one_way(&run, own.as_ref(), engine.outside_ms, &mut notes)?;
    let observed = observed(&run, own.as_ref(), one_way, &mut notes)?;
    let baseline = engine.settings.clone();
    for assignment in changes {
        engine.assign(assignment, &open)?;
    }
    notes.append(&mut engine.notes);
    let changed = engine.settings;
    let simulated = |engine: &sim::Settings| -> Result<Summary, Failure> {
        let records = observed.records(engine, true).map_err(simulate::set_error)?;
        let facts = RunFacts { simulated: true, interrupted: false, ..run.facts.clone() };
        Ok(summarise(&records, &facts, &GOODPUT))
    };
    let measured = summarise(&run.records, &run.facts, &GOODPUT);
    let sides = [simulated(&baseline)?, simulated(&changed)?];
    let engines = [&baseline, &changed];
    let rows = rows(&measured, &sides, engines, price);
    json.show(table(&rows, changes, &run.facts, &notes).trim_end());
    json.write(&to_json(&rows, changes, &run.facts, &notes))?;
    Ok(Exit::Ok)
}

/// Price of one accelerator, for an hour.
fn price(settings: &Settings) -> Result<Option<f64>, Failure> {
    let mut reader = Reader::new(settings);
    let price = deployment::price(&mut reader, "gpu-price-per-hour");
    if reader.errors.is_empty() { Ok(price) } else { Err(Failure::usage(reader.errors)) }
}

/// True where the run's own flags say which engine model answered it: it had no
/// address.
fn has_own_engine(run: &Read) -> bool {
    run.facts.simulated && [simulate::TARGET, target::EMBEDDED].contains(&run.facts.target.as_str())
}

/// The flags that made the run; none where this version does not take its
/// command line.
fn own_settings(run: &Read) -> Option<Settings> {
    let mut settings = cli::settings_of(&run.argv)?;
    settings.add_stored(&run.settings);
    settings.set("seed", run.facts.load.seed.to_string());
    Some(settings)
}

/// From the client to the engine, and back, each: as the engine model that made
/// the run had it, else half of what of TTFT passed outside of the server in the
/// runs that the engine was fitted to. That of the run itself is not looked at: the
/// model is held against it.
fn one_way(
    run: &Read,
    own: Option<&Settings>,
    fitted_ms: Option<f64>,
    notes: &mut Vec<String>,
) -> Result<Span, Failure> {
    if has_own_engine(run) {
        return Ok(own.map_or(Ok(Span::ZERO), simulate::one_way)?);
    }
    let Some(ms) = fitted_ms else { return Ok(Span::ZERO) };
    notes.push(format!(
        "{} ms of TTFT pass outside of the server, as in the runs that the engine was fitted to",
        short(ms)
    ));
    Ok(Span::from_s(ms / 2e3))
}

/// The run, ready to be played again: by its schedule, where that can be drawn
/// again and all of it was sent, else by its rows.
fn observed(
    run: &Read,
    own: Option<&Settings>,
    one_way: Span,
    notes: &mut Vec<String>,
) -> Result<Observed, Failure> {
    let id = &run.facts.run_id;
    let whole = !run.facts.interrupted
        && run.records.iter().all(|record| record.outcome != Outcome::Cancelled);
    let timeout = run.facts.request_timeout.unwrap_or(Span::from_ms(600_000));
    let mut idle_timeout = timeout;
    let observed = match own.filter(|_| whole).and_then(|own| schedule(own, run)) {
        Some((plan, schedule)) => {
            idle_timeout = plan.idle_timeout;
            let choices = simulate::choices(&plan)?;
            let nonce = RunNonce::new(schedule.spec().seed);
            let warmup = plan::warmup(&plan, &schedule);
            let observed = Observed::of_schedule(id, schedule, nonce, &run.records);
            observed.asking_for(choices).after(warmup)
        }
        None => {
            let why = if whole { "its schedule cannot be drawn again" } else { "it was stopped" };
            notes.push(format!(
                "requests are those of the run's rows, because {why}: what was cached stays cached, \
                 whatever is set, and requests that failed are left out"
            ));
            Observed::of(id, &run.records, &run.facts.load).map_err(fit_error)?
        }
    };
    Ok(observed.within(timeout, idle_timeout, one_way))
}

/// The schedule of a run, drawn again from its flags; none where that gives
/// another one.
fn schedule(own: &Settings, run: &Read) -> Option<(Plan, Schedule)> {
    let plan = plan::resolve(own, open).ok()?;
    let (schedule, _) = bench::draw(&plan).ok()?;
    (schedule.hash() == run.facts.load.schedule_hash).then_some((plan, schedule))
}

/// The engine of the run: the one that is described, the one that made it, or
/// the one that fits it.
fn baseline(
    settings: &Settings,
    run: &Read,
    own: Option<&Settings>,
    notes: &mut Vec<String>,
) -> Result<Engine, Failure> {
    if let Some(described) = settings.text("engine") {
        return Ok(engine::engine(Some(described), &[], &open)?);
    }
    let id = &run.facts.run_id;
    if has_own_engine(run) {
        let own = own.ok_or_else(|| {
            let rule = format!(
                "is needed: this version does not take the command line of run {id}, so the engine \
                 that made it is not known"
            );
            Failure::from(UsageError::new("--engine", rule))
        })?;
        return Ok(engine::engine(own.text("engine"), own.all("set"), &open)?);
    }
    let seen = Seen::of(std::slice::from_ref(run))?;
    let found = fit::fit(&seen.runs, &sim::Settings::default(), fit::USUAL).map_err(fit_error)?;
    if !found.holds() {
        let why = format!(
            "{}\nthe model with its usual model and accelerator does not describe run {id}; fit it \
             with sim fit RUN --set model=… --set accelerator=… --to FILE, and give --engine FILE",
            words(&found, &seen).trim_end(),
        );
        return Err(Failure::new(Exit::Invalid, why));
    }
    notes.push(format!(
        "the engine was fitted to this run, off by {:.1} %, as {} on {}",
        100.0 * found.error,
        found.settings.model.name,
        found.settings.accelerator.name
    ));
    notes.extend(seen.told.iter().filter_map(|told| {
        let why = told.as_ref().err()?;
        Some(format!("it was fitted by client records alone: {why}"))
    }));
    if !seen.runs.iter().all(Observed::knows_cached) {
        notes.push(unknown_cache(id));
    }
    let outside_ms = seen.outside_ms;
    Ok(Engine { settings: found.settings, outside_ms, ..Engine::default() })
}

/// One line: what it is, its unit, and its value measured, in the model, and
/// changed.
struct Row {
    name: &'static str,
    key: &'static str,
    unit: &'static str,
    values: [Option<f64>; 3],
}

fn rows(
    measured: &Summary,
    [baseline, changed]: &[Summary; 2],
    [before, after]: [&sim::Settings; 2],
    price: Option<f64>,
) -> Vec<Row> {
    let all = [measured, baseline, changed];
    let percentile = |key: &'static str, which: usize| {
        all.map(|summary| distribution(summary, key).and_then(|found| found.percentiles[which]))
    };
    let of = |value: &dyn Fn(&Summary) -> Option<f64>| all.map(value);
    let row = |name, key, unit, values| Row { name, key, unit, values };
    let mean = |key: &'static str| {
        all.map(|summary| distribution(summary, key).and_then(|found| found.mean))
    };
    let ok = |summary: &Summary| Some(summary.outcomes.ok as f64);
    let failed = |summary: &Summary| Some((summary.outcomes.total() - summary.outcomes.ok) as f64);
    let mut rows = vec![
        row("ended well", "ok", "requests", of(&ok)),
        row("did not", "not_ok", "requests", of(&failed)),
        row("TTFT mean", "ttft_ms.mean", "ms", mean("ttft_ms")),
        row("TTFT P50", "ttft_ms.p50", "ms", percentile("ttft_ms", 0)),
        row("TTFT P99", "ttft_ms.p99", "ms", percentile("ttft_ms", 3)),
        row("TPOT mean", "tpot_ms.mean", "ms/token", mean("tpot_ms")),
        row("TPOT P50", "tpot_ms.p50", "ms/token", percentile("tpot_ms", 0)),
        row("TPOT P99", "tpot_ms.p99", "ms/token", percentile("tpot_ms", 3)),
        row("ICL P99", "icl_ms.p99", "ms", percentile("icl_ms", 3)),
        row("E2EL P99", "e2el_ms.p99", "ms", percentile("e2el_ms", 3)),
        row("output", "output_tok_s", "tok/s", of(&|summary| summary.throughput.output_tok_s)),
        row("requests", "req_s", "req/s", of(&|summary| summary.throughput.req_s)),
    ];
    if measured.goodput.is_some() {
        let goodput = |summary: &Summary| summary.goodput.as_ref()?.req_s;
        let attainment = |summary: &Summary| summary.goodput.as_ref()?.attainment;
        rows.push(row("goodput", "goodput_req_s", "req/s", of(&goodput)));
        rows.push(row("attainment", "attainment", "", of(&attainment)));
    }
    let count = |engine: &sim::Settings| f64::from(engine.accelerators());
    let accelerators = [None, Some(count(before)), Some(count(after))];
    rows.push(row("accelerators", "accelerators", "", accelerators));
    if let Some(price) = price {
        let cost = |summary: &Summary, engine: &sim::Settings| {
            let rate = summary.throughput.output_tok_s.filter(|rate| *rate > 0.0)?;
            Some(count(engine) * price / 3600.0 / rate * 1e6)
        };
        let costs = [None, cost(baseline, before), cost(changed, after)];
        rows.push(row("cost", "cost_per_million_output_tokens", "/1M output tokens", costs));
    }
    rows
}

fn distribution<'a>(summary: &'a Summary, key: &str) -> Option<&'a Distribution> {
    summary.metrics.iter().find(|(known, _)| *known == key).map(|(_, found)| found)
}

fn table(rows: &[Row], changes: &[String], facts: &RunFacts, notes: &[String]) -> String {
    let changes = if changes.is_empty() { "nothing".to_owned() } else { changes.join(", ") };
    let mut text = format!(
        "What if · SIMULATED · requests of run {}\n  changed: {changes}\n\n  {:<14} {:>12} {:>12} {:>12} {:>9}\n",
        facts.run_id, "", "measured", "model", "changed", "by"
    );
    for row in rows {
        let [measured, model, changed] =
            row.values.map(|value| value.map_or_else(|| "n/a".to_owned(), short));
        let by = match (row.values[1], row.values[2]) {
            (Some(model), Some(changed)) => off(model, changed),
            _ => "n/a".to_owned(),
        };
        text.push_str(&format!(
            "  {:<14} {measured:>12} {model:>12} {changed:>12} {by:>9}  {}\n",
            row.name, row.unit
        ));
    }
    text.push_str("\n  Measured against model says how well the model describes the run; changed is held against the model.\n");
    for note in notes {
        text.push_str(&format!("  {note}\n"));
    }
    text
}

fn to_json(rows: &[Row], changes: &[String], facts: &RunFacts, notes: &[String]) -> Value {
    let figures: Vec<Value> = rows
        .iter()
        .map(|row| {
            let [measured, model, changed] = row.values;
            json!({
                "key": row.key, "unit": row.unit,
                "measured": measured, "model": model, "changed": changed,
            })
        })
        .collect();
    json!({
        "run_id": facts.run_id, "simulated": true, "changes": changes,
        "figures": figures, "notes": notes,
    })
}
