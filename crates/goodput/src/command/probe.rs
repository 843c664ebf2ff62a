//! `probe`: short experiments that tell queue, prefill, decode, network and
//! cache apart without the server's metrics.

mod json;
mod place;

use insight::probe::{
    Beside, EXPERIMENTS, Experiment, LOAD, LONG, Limits, Press, Probe, SHORT, Step, Trial,
};
use measure::PerSecond;
use workload::arrival::Pace;
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{Batch, Lengths, Load, Mix, Part, Prefixes, Routing, Stop, Stream, Think};

use crate::command::bench;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{Reader, Settings, UsageError, parse_duration};
use crate::plan::{self, Plan};
use crate::{open, output};

use place::Place;

/// Flags of `bench` that `probe` takes, with the same meaning.
pub(crate) const FLAGS: &[&str] = &[
    "url",
    "base-url",
    "host",
    "port",
    "endpoint",
    "backend",
    "model",
    "served-model-name",
    "header",
    "api-key-env",
    "api-key-file",
    "insecure",
    "cacert",
    "ready-timeout",
    "request-id-prefix",
    "max-concurrency",
    "isl",
    "osl",
    "tokenizer",
    "ignore-eos",
    "temperature",
    "extra-body",
    "seed",
    "idle-timeout",
    "request-timeout",
    "threads",
    "set",
    "engine",
    "network",
    "disable-tqdm",
    "json",
    "lang",
];

/// What they are where nobody says it: small enough for a server that others
/// use too.
const USUAL: &[(&str, &str)] = &[("max-concurrency", "8"), ("isl", "512"), ("osl", "128")];

/// What `probe` takes besides.
pub(crate) struct Arguments<'a> {
    /// Its flags of the table.
    pub(crate) settings: &'a Settings,
    /// The time for all experiments.
    pub(crate) budget: Option<&'a str>,
    /// Names of experiments, by commas.
    pub(crate) only: Option<&'a str>,
}

/// Time for all experiments where none is given, seconds.
const BUDGET_S: f64 = 120.0;

/// The shortest and the longest, seconds.
const BUDGETS_S: (f64, f64) = (5.0, 3_600.0);

/// Runs the command; the exit code is its result.
pub(crate) fn run(arguments: &Arguments<'_>) -> Result<Exit, Failure> {
    let mut settings = bench::with_seed(arguments.settings.clone())?;
    for (name, value) in USUAL {
        if !settings.has(name) {
            settings.set(name, (*value).to_owned());
        }
    }
    let lang = crate::cli::lang(settings.text("lang"))?;
    let (mut plan, mut limits) = asked(&settings, arguments)?;
    let json = output::Json::open(settings.text("json"))?;
    let mut place = Place::of(&settings, &mut plan)?;
    limits.context = place.context();
    fits(&limits)?;
    let context = place.told();
    let mut probe = Probe::new(limits);
    let quiet = settings.is_on("disable-tqdm");
    let mut shown = None;
    while let Some(step) = probe.next(place.elapsed_s()) {
        let left_s = probe.limits().budget_s - place.elapsed_s();
        match step {
            Step::RoundTrips(count) => probe.took_round_trips(place.round_trips(count)),
            Step::Wait(s) => place.wait(s),
            Step::Trial(trial) => {
                if !quiet && shown != Some(trial.experiment) {
                    crate::say(&format!("{:.0} s: {}", place.elapsed_s(), trial.experiment.name()));
                    shown = Some(trial.experiment);
                }
                let drawn = draw(&plan, &trial, place.nonce())?;
                probe.took(trial, place.trial(&settings, &plan, &trial, drawn, left_s)?);
            }
        }
        if place.is_interrupted() {
            probe.interrupt();
        }
    }
    let conclusions = probe.conclude(&context);
    let page = report::probe::document(&conclusions, &context, probe.limits(), lang);
    json.show(output::text(&page, json.is_stdout()).trim_end());
    json.write(&json::object(&conclusions, &context, probe.limits(), place.elapsed_s()))?;
    if place.is_interrupted() {
        return Ok(Exit::Interrupted);
    }
    let made_none = conclusions.ok == 0 && !conclusions.taken.is_empty();
    Ok(if made_none { Exit::Unreachable } else { Exit::Ok })
}

/// Reads the flags; every mistake in them is told at once.
fn asked(settings: &Settings, arguments: &Arguments<'_>) -> Result<(Plan, Limits), Failure> {
    let mut reader = Reader::new(settings);
    let (input, output) = (length(&mut reader, "isl"), length(&mut reader, "osl"));
    let most_users = reader.value("max-concurrency", "a whole number from 1 to 4096").unwrap_or(1);
    if !(1..=4_096).contains(&most_users) {
        reader.wrong("max-concurrency", "must be from 1 to 4096");
    }
    let budget_s = budget(&mut reader, arguments.budget);
    let only = only(&mut reader, arguments.only);
    if settings.has("network") && plan::names_target(settings) {
        let rule = "is for experiments on the engine model: the way to a server is measured";
        reader.wrong("network", rule);
    }
    let errors = reader.errors;
    let plan = plan::resolve(settings, open);
    let plan = match plan {
        Ok(plan) if errors.is_empty() => plan,
        Ok(_) => return Err(Failure::usage(errors)),
        Err(more) => {
            let other = more.into_iter().filter(|error| !errors.contains(error));
            let all = errors.iter().cloned().chain(other).collect();
            return Err(Failure::usage(all));
        }
    };
    if plan.api.entry().yields != wire::api::Yields::Tokens {
        let rule = "probe tells prompts from answers, and this API writes none";
        return Err(UsageError::new("--backend", rule).into());
    }
    let limits = Limits { budget_s, most_users, only, input, output, context: None };
    Ok((plan, limits))
}

/// One length: experiments change it themselves.
fn length(reader: &mut Reader<'_>, name: &str) -> u32 {
    let text = reader.settings.text(name).unwrap_or_default();
    let tokens = text.trim().parse().ok().filter(|tokens| (1..=1_000_000).contains(tokens));
    tokens.unwrap_or_else(|| {
        let rule =
            "is not a whole number of tokens from 1 to 1000000; experiments vary it themselves";
        reader.wrong(name, format!("{text:?} {rule}"));
        1
    })
}

fn budget(reader: &mut Reader<'_>, text: Option<&str>) -> f64 {
    let Some(text) = text else { return BUDGET_S };
    let (least, most) = BUDGETS_S;
    let span = parse_duration(text).map(|span| span.s()).filter(|s| (least..=most).contains(s));
    span.unwrap_or_else(|| {
        reader.wrong("budget", format!("{text:?} is not a duration from 5s to 1h; write 120s"));
        BUDGET_S
    })
}

fn only(reader: &mut Reader<'_>, text: Option<&str>) -> Vec<Experiment> {
    let all = || EXPERIMENTS.iter().map(|entry| entry.experiment).collect();
    let Some(text) = text else { return all() };
    let mut wanted = Vec::new();
    for name in text.split(',').map(str::trim) {
        match Experiment::find(name) {
            Some(experiment) => wanted.push(experiment),
            None => {
                let known: Vec<&str> = EXPERIMENTS.iter().map(|entry| entry.name).collect();
                reader.wrong("only", format!("{name:?} is not one of {}", known.join(", ")));
            }
        }
    }
    wanted
}

/// Refuses a workload that the model's context cannot hold.
fn fits(limits: &Limits) -> Result<(), Failure> {
    let Some(context) = limits.context else { return Ok(()) };
    let needed = limits.input.saturating_add(limits.output);
    if needed <= context {
        return Ok(());
    }
    let rule = format!(
        "{} tokens of prompt and {} of answer are {needed}, and the model's context has {context}; lower \
         --isl or --osl",
        limits.input, limits.output
    );
    Err(UsageError::new("--isl", rule).into())
}

/// How far answers lie around their mean where several users are answered at a
/// time.
const SPREAD: f64 = 0.5;

/// The schedule of a trial: the flags' own but for lengths and load, with
/// prompts that no other trial has sent, nor with another nonce another run.
fn draw(plan: &Plan, trial: &Trial, nonce: u64) -> Result<(Schedule, RunNonce), Failure> {
    let mut stream = Stream::numbered(plan.spec.seed, "probe", trial.series.into());
    let seed = stream.bits();
    let usage = |error: &dyn std::fmt::Display| Failure::new(Exit::Usage, error);
    let fixed = |tokens: u32| Lengths::fixed(tokens).map_err(|error| usage(&error));
    let alone = trial.press == Press::Users(1);
    let answers = |mean: u32| match mean {
        mean if alone || mean == 1 => fixed(mean),
        mean => Lengths::uniform(mean, SPREAD).map_err(|error| usage(&error)),
    };
    let prompts = |tokens: u32| {
        let input = fixed(tokens)?;
        Ok::<_, Failure>(match &plan.spec.prompts {
            PromptSource::Exact { lexicon, .. } => {
                PromptSource::Exact { input, lexicon: lexicon.clone() }
            }
            _ => PromptSource::Synthetic { input },
        })
    };
    let load = match trial.press {
        Press::Users(users) => Load::Closed { users, think: Think::NONE },
        Press::Rate { req_s, users } => {
            Load::Capped { pace: Pace::flat(PerSecond::new(req_s), 1.0), users }
        }
    };
    let part = |name: &str, weight: f64, input: u32, output: u32| {
        Ok::<_, Failure>(Part {
            name: name.to_owned(),
            weight,
            prompts: prompts(input)?,
            pictures: None,
            prefixes: Prefixes::NONE,
            batch: Batch::One,
            output: OutputLength::Drawn(answers(output)?),
            output_forced: plan.spec.output_forced,
            repeats: true,
            routing: Routing::default(),
        })
    };
    let prompts = if trial.beside == Beside::Canaries {
        let parts = vec![
            part(LOAD, 6.0, trial.input, trial.output)?,
            part(SHORT, 1.0, insight::probe::LEAST_INPUT, 1)?,
            part(LONG, 1.0, trial.input, 1)?,
        ];
        PromptSource::Mix(Box::new(Mix::new(parts).map_err(|error| usage(&error))?))
    } else {
        prompts(trial.input)?
    };
    let spec = Spec {
        seed,
        load,
        stop: Stop::Count(trial.requests),
        prompts,
        output: OutputLength::Drawn(answers(trial.output)?),
        // Nothing is found in a cache that was not sent twice on purpose.
        cache: CacheRegime::None,
        ..plan.spec.clone()
    };
    let (schedule, _) = Schedule::draw(spec).map_err(|error| usage(&error))?;
    Ok((schedule, RunNonce::new(stream.bits() ^ nonce)))
}
