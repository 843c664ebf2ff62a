//! `plan`: what a model on some accelerators can do at best, what the engine
//! model makes of it, and from which load on it is cheaper than a hosted API.

use measure::capacity::{self, ApiPrice, Ask, BreakEven, Degree, Line, Prediction, Tried};
use measure::definition::GOODPUT;
use measure::slo::Slo;
use measure::summary::summarise;
use report::planning::{Api, CapacityOf, Plan};
use serde_json::{Value, json};
use sim::planning;

use crate::command::report as kept;
use crate::command::simulate::set_error;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{Reader, Settings, UsageError};
use crate::plan::deployment::{self, price};
use crate::plan::engine::{self, Engine};
use crate::plan::objective;
use crate::{open, output};

/// Flags of `bench` that `plan` takes, with the same meaning.
pub(crate) const FLAGS: &[&str] = &[
    "model-shape",
    "accelerator",
    "weights",
    "kv-cache-dtype",
    "max-num-seqs",
    "max-num-batched-tokens",
    "gpu-price-per-hour",
    "isl",
    "osl",
    "use-case",
    "goodput",
    "slo",
    "request-rate",
    "set",
    "engine",
    "seed",
    "json",
    "lang",
    "runs-dir",
];

/// The use case that a plan is of where none is given.
pub(crate) const USE_CASE: &str = "chat";

/// What `plan` takes besides.
pub(crate) struct Arguments<'a> {
    /// Its flags of the table.
    pub(crate) settings: &'a Settings,
    /// Degrees to compare, by commas.
    pub(crate) tensor_parallel: Option<&'a str>,
    /// The share of requests that must meet the objective.
    pub(crate) attainment: Option<&'a str>,
    /// Prices of a hosted API.
    pub(crate) api_price: Option<&'a str>,
    /// The run whose goodput stands for the capacity.
    pub(crate) run: Option<&'a str>,
}

/// Degrees that are compared where none are given.
const DEGREES: &[u32] = &[1, 2, 4, 8];

/// The most degrees.
const MOST_DEGREES: usize = 8;

/// The seed of the model's arrivals where none is given: a plan is the same each
/// time.
const SEED: u64 = 0;

/// Everything that a plan is made from.
struct Asked {
    ask: Ask,
    base: sim::Settings,
    degrees: Vec<u32>,
    attainment: f64,
    wanted_req_s: Option<f64>,
    api: Option<ApiPrice>,
    seed: u64,
    notes: Vec<String>,
}

/// Runs the command; the exit code is its result.
pub(crate) fn run(arguments: &Arguments<'_>) -> Result<Exit, Failure> {
    let settings = arguments.settings;
    let lang = crate::cli::lang(settings.text("lang"))?;
    let asked = asked(arguments)?;
    let json = output::Json::open(settings.text("json"))?;
    let degrees = degrees(&asked)?;
    if let [Degree { bounds: Err(why), .. }] = degrees.as_slice() {
        return Err(Failure::new(Exit::Usage, why));
    }
    let api = api(&asked, &degrees, arguments)?;
    let plan = Plan {
        model: asked.base.model.name.to_string(),
        accelerator: asked.base.accelerator.name.to_owned(),
        precisions: [
            asked.base.quantization.name().to_owned(),
            asked.base.kv_cache_dtype.name().to_owned(),
        ],
        ask: &asked.ask,
        attainment: asked.attainment,
        degrees: &degrees,
        wanted_req_s: asked.wanted_req_s,
        api,
    };
    let document = report::planning::document(&plan, lang);
    let mut text = output::text(&document, json.is_stdout());
    for note in &asked.notes {
        text.push_str(&format!("  {note}\n"));
    }
    json.show(text.trim_end());
    json.write(&to_json(&plan, &asked))?;
    Ok(Exit::Ok)
}

/// Reads the flags; every mistake in them is told at once.
fn asked(arguments: &Arguments<'_>) -> Result<Asked, Failure> {
    let settings = arguments.settings;
    let mut reader = Reader::new(settings);
    let input = length(&mut reader, "isl");
    let output = length(&mut reader, "osl");
    let slo = slo(&mut reader);
    let price_per_hour = price(&mut reader, "gpu-price-per-hour");
    let wanted_req_s = rate(&mut reader);
    let seed = reader.value("seed", "a whole number from 0").unwrap_or(SEED);
    let (engine, degrees) = (base(&mut reader), given_degrees(&mut reader, arguments));
    let attainment = attainment(&mut reader, arguments.attainment);
    let api = api_price(&mut reader, arguments.api_price);
    if api.is_some() && price_per_hour.is_none() && arguments.run.is_none() {
        reader.wrong("api-price", "is held against --gpu-price-per-hour, which is not given");
    }
    if arguments.run.is_some() && api.is_none() {
        reader.wrong("run", "gives its goodput for --api-price, which is not given");
    }
    if !reader.errors.is_empty() {
        return Err(Failure::usage(reader.errors));
    }
    let Engine { settings: base, notes, .. } = engine;
    Ok(Asked {
        ask: Ask { input, output, slo, price_per_hour },
        base,
        degrees,
        attainment,
        wanted_req_s,
        api,
        seed,
        notes,
    })
}

/// One length in tokens: a plan is of requests that are alike.
fn length(reader: &mut Reader<'_>, name: &str) -> u32 {
    let Some(text) = reader.settings.text(name) else {
        reader.wrong(name, "is not said by this use case; give a number of tokens");
        return 1;
    };
    let tokens = text.trim().parse().ok().filter(|tokens| (1..=10_000_000).contains(tokens));
    tokens.unwrap_or_else(|| {
        let rule = "is not a whole number of tokens from 1 to 10000000; a plan is of one length";
        reader.wrong(name, format!("{text:?} {rule}"));
        1
    })
}

fn slo(reader: &mut Reader<'_>) -> Slo {
    let settings = reader.settings;
    let texts = |name: &str| settings.all(name).iter().map(String::as_str);
    let slo = objective::parse(texts("goodput"), texts("slo"));
    let slo = slo.unwrap_or_else(|error| {
        reader.errors.push(error);
        None
    });
    let slo = slo.unwrap_or_default();
    if !slo.labelled.is_empty() {
        reader.wrong("slo", "has sets for labels, and requests of a plan have none");
    }
    slo
}

fn rate(reader: &mut Reader<'_>) -> Option<f64> {
    let wanted = reader.number("request-rate")?;
    if wanted > 0.0 {
        return Some(wanted);
    }
    reader.wrong("request-rate", "is not a number above 0");
    None
}

/// The engine that is planned: described, set, and what the flags of the
/// machines say over it.
fn base(reader: &mut Reader<'_>) -> Engine {
    let settings = reader.settings;
    let read: engine::Open<'_> = &open;
    let mut engine = match engine::engine(settings.text("engine"), settings.all("set"), read) {
        Ok(engine) => engine,
        Err(error) => {
            reader.errors.push(error);
            Engine::default()
        }
    };
    let (given, notes) = deployment::deployment(reader, read);
    engine.notes.extend(notes);
    let own = &mut engine.settings;
    if let Some(model) = given.model {
        own.model = model;
    }
    own.accelerator = given.accelerator.unwrap_or(own.accelerator);
    own.quantization = given.weights.unwrap_or(own.quantization);
    own.kv_cache_dtype = given.kv_cache.unwrap_or(own.kv_cache_dtype);
    own.max_num_seqs = given.seats.unwrap_or(own.max_num_seqs);
    own.max_num_batched_tokens = given.token_budget.unwrap_or(own.max_num_batched_tokens);
    if own.replicas != 1 || own.prefill_replicas != 0 {
        let rule = "a plan is of one engine that does both; leave replicas and prefill_replicas out, \
                    and ask for a load with --request-rate";
        reader.wrong("set", rule);
    }
    engine
}

/// The degrees to compare: given, the one that is set, or the usual ones.
fn given_degrees(reader: &mut Reader<'_>, arguments: &Arguments<'_>) -> Vec<u32> {
    let Some(text) = arguments.tensor_parallel else {
        let set = reader.settings.all("set").iter().any(|one| {
            let name = one.split('=').next().unwrap_or_default();
            sim::Setting::find(name).is_ok_and(|found| found.name == "tensor_parallel_size")
        });
        return if set { Vec::new() } else { DEGREES.to_vec() };
    };
    let read: Option<Vec<u32>> = text.split(',').map(|one| one.trim().parse().ok()).collect();
    let read = read.filter(|degrees| {
        degrees.len() <= MOST_DEGREES && degrees.iter().all(|degree| (1..=1024).contains(degree))
    });
    read.unwrap_or_else(|| {
        let rule = "is not a list of at most 8 whole numbers from 1 to 1024, as in 1,2,4,8";
        reader.wrong("tensor-parallel", format!("{text:?} {rule}"));
        Vec::new()
    })
}

fn attainment(reader: &mut Reader<'_>, text: Option<&str>) -> f64 {
    let Some(text) = text else { return 0.99 };
    let share = text.trim().parse().ok().filter(|share: &f64| *share > 0.0 && *share <= 1.0);
    share.unwrap_or_else(|| {
        reader.wrong("attainment", format!("{text:?} is not a share above 0 and up to 1"));
        0.99
    })
}

/// Reads `in=0.15,out=0.6,cached=0.075`.
fn api_price(reader: &mut Reader<'_>, text: Option<&str>) -> Option<ApiPrice> {
    let text = text?;
    let mut wrong = |rule: String| {
        reader.wrong("api-price", format!("{text:?} {rule}; write in=0.15,out=0.60"));
    };
    let mut prices: [Option<f64>; 3] = [None; 3];
    for part in text.split(',') {
        let (name, price) = part.split_once('=').unwrap_or((part, ""));
        let places = ["in", "out", "cached"];
        let Some(place) = places.iter().position(|known| *known == name.trim()) else {
            wrong(format!("has {:?}, and the prices are in, out and cached", name.trim()));
            return None;
        };
        let price = price.trim().parse().ok().filter(|price: &f64| (0.0..1e9).contains(price));
        if price.is_none() || prices[place].is_some() {
            wrong(format!("has no price for {}, or two", places[place]));
            return None;
        }
        prices[place] = price;
    }
    match prices {
        [Some(input), Some(output), cached] if input + output > 0.0 => {
            Some(ApiPrice { input, output, cached })
        }
        _ => {
            wrong("needs prices of a million tokens in and out, one above 0".to_owned());
            None
        }
    }
}

/// Each degree with its bounds and what the engine model makes of it.
/// Each on a thread of its own: the engine model takes seconds for one.
fn degrees(asked: &Asked) -> Result<Vec<Degree>, Failure> {
    let own = [asked.base.tensor_parallel_size];
    let wanted = if asked.degrees.is_empty() { &own[..] } else { &asked.degrees };
    std::thread::scope(|scope| {
        let start = |&degree: &u32| scope.spawn(move || divided(asked, degree));
        let begun: Vec<_> = wanted.iter().map(start).collect();
        let ended = begun.into_iter().map(|one| match one.join() {
            Ok(degree) => degree,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    })
}

/// The model over so many accelerators.
fn divided(asked: &Asked, tensor_parallel: u32) -> Result<Degree, Failure> {
    let settings = sim::Settings { tensor_parallel_size: tensor_parallel, ..asked.base.clone() };
    let accelerators = settings.accelerators();
    let (settings, engine) = match fitting(&settings, &asked.ask) {
        Ok(fitting) => fitting,
        Err(why) => {
            return Ok(Degree { tensor_parallel, accelerators, bounds: Err(why), predicted: None });
        }
    };
    let most = engine.requests_per_s(&asked.ask, engine.largest_batch(&asked.ask).max(1.0));
    crate::say(&format!("tensor parallel {tensor_parallel}: asking the engine model"));
    let found = planning::predict(&settings, &asked.ask, asked.attainment, most, asked.seed);
    let degree = Degree {
        tensor_parallel,
        accelerators,
        bounds: Ok(capacity::bounds(&engine, &asked.ask)),
        predicted: Some(found.map_err(set_error)?),
    };
    let found = degree.predicted_req_s().map_or("none".to_owned(), |one| format!("{one:.2}"));
    crate::say(&format!("tensor parallel {tensor_parallel}: {found} good requests a second"));
    Ok(degree)
}

/// The engine of a degree. Without a `max_model_len` of the user's, the context
/// is what the requests need: a plan asks for no more.
fn fitting(
    settings: &sim::Settings,
    ask: &Ask,
) -> Result<(sim::Settings, capacity::Engine), String> {
    let needed = ask.input.saturating_add(ask.output);
    if needed > settings.model.context {
        return Err(format!(
            "{} + {} tokens are {needed}, and the context of {} has {}",
            ask.input, ask.output, settings.model.name, settings.model.context
        ));
    }
    let usual = planning::context_of(ask).min(settings.model.context);
    let max_model_len = settings.max_model_len.unwrap_or(usual);
    if needed > max_model_len {
        return Err(format!(
            "{} + {} tokens are {needed}, and max_model_len is {max_model_len}",
            ask.input, ask.output
        ));
    }
    let settings = sim::Settings { max_model_len: Some(max_model_len), ..settings.clone() };
    let engine = settings.engine().map_err(|error| error.to_string())?;
    Ok((settings, engine))
}

/// A hosted API beside the deployment: a run's goodput, or the model's capacity.
fn api(
    asked: &Asked,
    degrees: &[Degree],
    arguments: &Arguments<'_>,
) -> Result<Option<Api>, Failure> {
    let Some(prices) = asked.api else { return Ok(None) };
    if let Some(run) = arguments.run {
        return of_run(asked, prices, run, arguments.settings).map(Some);
    }
    let Some(degree) = capacity::best(degrees) else { return Ok(None) };
    let price = asked.ask.price_per_hour.unwrap_or_default();
    let (input, output) = (f64::from(asked.ask.input), f64::from(asked.ask.output));
    let even = BreakEven {
        api_per_request: prices.of(input, 0.0, output),
        own_per_second: f64::from(degree.accelerators) * price / 3_600.0,
        capacity_req_s: degree.predicted_req_s().unwrap_or_default(),
    };
    Ok(Some(Api { even, capacity_of: CapacityOf::Model(degree.tensor_parallel) }))
}

/// The same by the goodput that was measured, with the run's own lengths.
fn of_run(asked: &Asked, prices: ApiPrice, run: &str, settings: &Settings) -> Result<Api, Failure> {
    let wrong = |rule: String| Failure::from(UsageError::new("--run", rule));
    let mut read = kept::read(run, settings.text("runs-dir"))?;
    let given = settings.has("goodput") || settings.has("slo");
    if given || read.facts.slo.is_none() {
        read.judge_by(Some(&asked.ask.slo))?;
    }
    let machines = &read.facts.deployment;
    let count = machines.accelerators().ok_or_else(|| {
        wrong(format!(
            "run {} does not say how many accelerators served it; write its report again with \
             --topology, or measure with it",
            read.facts.run_id
        ))
    })?;
    let price =
        asked.ask.price_per_hour.or(machines.price_per_hour).ok_or_else(|| {
            wrong("has no price of an accelerator: --gpu-price-per-hour".to_owned())
        })?;
    let summary = summarise(&read.records, &read.facts, &GOODPUT);
    let rate = summary.goodput.as_ref().and_then(|goodput| goodput.req_s);
    let capacity_req_s = rate.filter(|rate| *rate > 0.0).ok_or_else(|| {
        wrong(format!("run {} has no good request, so nothing is served well", read.facts.run_id))
    })?;
    let tokens = &summary.tokens;
    let (Some(input), Some(output)) = (tokens.input, tokens.output) else {
        return Err(wrong(format!(
            "run {} does not say how many tokens it had",
            read.facts.run_id
        )));
    };
    let ok = summary.outcomes.ok.max(1) as f64;
    let cached = tokens.cached.unwrap_or(0).min(input) as f64;
    let even = BreakEven {
        api_per_request: prices.of(input as f64 - cached, cached, output as f64) / ok,
        own_per_second: f64::from(count) * price / 3_600.0,
        capacity_req_s,
    };
    Ok(Api { even, capacity_of: CapacityOf::Run(read.facts.run_id.clone()) })
}

fn to_json(plan: &Plan<'_>, asked: &Asked) -> Value {
    json!({
        "model": asked.base.model.id,
        "accelerator": asked.base.accelerator.id,
        "weights": plan.precisions[0],
        "kv_cache_dtype": plan.precisions[1],
        "input_tokens": asked.ask.input,
        "output_tokens": asked.ask.output,
        "slo": asked.ask.slo.to_string(),
        "attainment": asked.attainment,
        "gpu_price_per_hour": asked.ask.price_per_hour,
        "degrees": plan.degrees.iter().map(|one| degree(one, &asked.ask)).collect::<Vec<_>>(),
        "best": capacity::best(plan.degrees).map(|one| one.tensor_parallel),
        "wanted": wanted(plan),
        "api": plan.api.as_ref().map(hosted),
        "notes": asked.notes,
    })
}

fn degree(degree: &Degree, ask: &Ask) -> Value {
    let lines = degree.bounds.as_deref().unwrap_or_default();
    json!({
        "tensor_parallel": degree.tensor_parallel,
        "accelerators": degree.accelerators,
        "refused": degree.bounds.as_ref().err(),
        "bounds": lines.iter().map(bound).collect::<Vec<_>>(),
        "predicted": degree.predicted.as_ref().map(prediction),
        "predicted_output_tok_s_per_accelerator":
            degree.predicted_by_accelerator().map(|rate| rate * f64::from(ask.output)),
        "predicted_cost_per_million_tokens": degree.predicted_cost(ask),
        "share_of_bound": degree.share_of_bound(),
    })
}

fn bound(line: &Line) -> Value {
    json!({
        "key": line.key,
        "name": line.name.en,
        "unit": line.unit,
        "value": line.value.as_ref().ok(),
        "reason": line.value.as_ref().err().map(|why| &why.en),
        "formula": line.formula.en,
    })
}

fn prediction(found: &Prediction) -> Value {
    json!({
        "simulated": true,
        "met": found.met.as_ref().map(tried),
        "missed": found.missed.as_ref().map(tried),
        "tries": found.tries,
    })
}

fn tried(one: &Tried) -> Value {
    json!({
        "req_s": one.req_s,
        "judged": one.judged,
        "attainment": one.attainment,
        "queue_grows": one.grows,
        "ttft_ms": {"p50": one.ttft_ms[0], "p99": one.ttft_ms[1]},
        "tpot_ms": one.tpot_ms.map(|[mean, p99]| json!({"mean": mean, "p99": p99})),
    })
}

fn wanted(plan: &Plan<'_>) -> Value {
    let best = capacity::best(plan.degrees);
    let found = plan.wanted_req_s.zip(best.and_then(|one| Some((one, one.predicted_req_s()?))));
    let Some((wanted, (degree, one))) = found else { return Value::Null };
    let engines = (wanted / one).ceil();
    json!({
        "req_s": wanted,
        "tensor_parallel": degree.tensor_parallel,
        "engines": engines,
        "accelerators": engines * f64::from(degree.accelerators),
    })
}

fn hosted(api: &Api) -> Value {
    let even = &api.even;
    let of = match &api.capacity_of {
        CapacityOf::Run(id) => json!({"run_id": id}),
        CapacityOf::Model(degree) => json!({"model_at_tensor_parallel": degree}),
    };
    json!({
        "api_cost_per_request": even.api_per_request,
        "own_cost_per_request_at_full_load": even.own_per_request(),
        "own_cost_per_hour": 3_600.0 * even.own_per_second,
        "break_even_req_s": even.req_s(),
        "capacity_req_s": even.capacity_req_s,
        "break_even_utilisation": even.utilisation(),
        "capacity_of": of,
    })
}
