//! `instrument arrivals`: how late goodput's send path lets requests go, idle
//! and while streams in step are read on the same thread. `bench` has no load
//! that is both at once, so this walks a schedule made by hand through the
//! same crate `drive`.

use std::sync::Arc;

use drive::secret::Secrets;
use drive::tls::{Trust, client_config};
use drive::{Control, Happening, IDLE_LIMIT, Job, Reuse, StopRules, Target};
use measure::facts::{LoadFacts, LoadKind};
use measure::validity::lateness;
use measure::{At, Outcome, PerSecond, Record, Span, Tokens};
use serde_json::json;
use wire::api::{Api, Prompt, RequestSpec};
use wire::url::Url;
use workload::prompt::{CacheRegime, PromptRef, PromptSource, RunNonce};
use workload::schedule::{OutputLength, Spec};
use workload::{After, Arrivals, Load, Request, Schedule, Stop, Stream};

use crate::arguments::Arguments;
use crate::errors::distribution;

/// The measured arrivals begin this long after the long streams: their own
/// burst of requests is over then.
const SETTLED: Span = Span::from_ms(1_500);

/// Prints the lateness of `--rate` Poisson arrivals a second for `--seconds`
/// beside `--streams` long answers with a token every `--interval-us`.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let address = arguments.need("address")?;
    let streams: u32 = arguments.number("streams", 0)?;
    let rate: f64 = arguments.number("rate", 500.0)?;
    let seconds: f64 = arguments.number("seconds", 4.0)?;
    let interval_us: f64 = arguments.number("interval-us", 20_000.0)?;
    crate::limits::raise_open_files();
    let schedule = schedule(streams, rate, seconds, interval_us)?;
    let job = Arc::new(job(address, schedule)?);
    let rules = StopRules { max_errors: None, max_error_rate: None };
    let mut records: Vec<Record> = Vec::new();
    drive::run(job, rules, &Control::default(), |happening| {
        if let Happening::Ended(record) = happening {
            records.push(*record);
        }
    })
    .map_err(|error| error.to_string())?;
    let facts = LoadFacts {
        kind: LoadKind::Open,
        request_rate: Some(rate),
        burstiness: Some(1.0),
        users: None,
        arrivals: String::new(),
        planned_duration: None,
        seed: 0,
        schedule_hash: String::new(),
        replay: None,
    };
    let mut late_us: Vec<f64> = records
        .iter()
        .filter(|record| record.index >= streams)
        .filter_map(|record| lateness(record, &facts))
        .map(|span| span.us() as f64)
        .collect();
    late_us.sort_by(f64::total_cmp);
    let failed = records.iter().filter(|record| record.outcome != Outcome::Ok).count();
    let report = json!({"lateness_us": distribution(&late_us), "not_ok": failed});
    crate::say(&report.to_string());
    Ok(())
}

fn schedule(streams: u32, rate: f64, seconds: f64, interval_us: f64) -> Result<Schedule, String> {
    let rate = PerSecond::new(rate);
    let prompts = PromptSource::fixed("one two three four five six seven");
    let spec = Spec {
        seed: 0,
        load: Load::Open { pace: workload::Pace::flat(rate, 1.0) },
        stop: Stop::Duration(Span::from_s(seconds)),
        prompts,
        pictures: None,
        batch: workload::Batch::One,
        output: OutputLength::Unlimited,
        output_forced: true,
        cache: CacheRegime::AsIs,
        nonce_in_own_prompts: false,
        prefixes: workload::Prefixes::NONE,
        labels: Vec::new(),
        routing: workload::Routing::default(),
        conversations: None,
    };
    let request = |index: u32, at: At, tokens: u32| Request {
        index,
        after: After::Instant(at),
        session: index,
        turn: 0,
        labels: Vec::new(),
        prompt: PromptRef::Listed(0),
        input_tokens: None,
        max_output_tokens: Some(Tokens::new(tokens)),
        output_forced: true,
        route: workload::Route::default(),
    };
    // The long answers outlast the arrivals by half a second.
    let long = ((SETTLED.s() + seconds + 0.5) * 1e6 / interval_us).ceil() as u32;
    let mut requests: Vec<Request> =
        (0..streams).map(|index| request(index, At::ZERO, long)).collect();
    let last = At::ZERO + Span::from_s(seconds);
    let arrivals = Arrivals::new(workload::Pace::flat(rate, 1.0), Stream::new(0, "arrivals"));
    for (index, at) in (streams..).zip(arrivals.take_while(|at| *at < last)) {
        requests.push(request(index, at + SETTLED, 1));
    }
    let (schedule, _) = Schedule::of_requests(spec, requests).map_err(|error| error.to_string())?;
    Ok(schedule)
}

fn job(address: &str, schedule: Schedule) -> Result<Job, String> {
    let url = Url::parse(&format!("http://{address}/v1/chat/completions"))
        .map_err(|error| error.to_string())?;
    let tls = client_config(&Trust::Anybody).map_err(|error| error.to_string())?;
    Ok(Job {
        run_id: "arrivals".to_owned(),
        schedule: Arc::new(schedule),
        nonce: RunNonce::new(0),
        targets: vec![Target { url, tls }],
        api: Api::OpenaiChat,
        template: RequestSpec::new("tok", Prompt::Text(String::new())),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        ids_by: None,
        session_header: None,
        secrets: Secrets::default(),
        idle_timeout: Span::from_ms(60_000),
        request_timeout: Span::from_ms(120_000),
        idle_limit: IDLE_LIMIT,
        reuse: Reuse::Always,
        keep_text: false,
        threads: 1,
        warmup: None,
    })
}
