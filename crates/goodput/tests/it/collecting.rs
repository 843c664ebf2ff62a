//! What is read of servers beside a load, what is kept of it, and what is said
//! where nothing can be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fake::{Request, Script, Server};
use measure::signal::{Seen, Signal};
use serde_json::{Value, json};
use wire::scrapes::{self, Collected};

use crate::program::{Told, Workplace};
use crate::servers::{closed_port, stream};

/// A server that answers chat requests, and `/metrics` so. It is given how many
/// chat requests it had answered before.
fn server(mut metrics: impl FnMut(u32) -> Script + Send + 'static) -> Server {
    let answered = AtomicU32::new(0);
    Server::start_scripted(move |request: &Request| match request.path() {
        "/metrics" => metrics(answered.load(Ordering::Relaxed)),
        _ => {
            answered.fetch_add(1, Ordering::Relaxed);
            stream(&["a", "b"], 5)
        }
    })
    .unwrap()
}

fn text(body: &str) -> Script {
    Script::whole(200, "text/plain", body)
}

/// vLLM's metrics after so many requests.
fn vllm(model: &str, finished: u32) -> String {
    let mut text = String::new();
    let labels = format!("engine=\"0\",model_name=\"{model}\"");
    for (name, kind, value) in [
        ("vllm:num_requests_running", "gauge", 1.0),
        ("vllm:num_requests_waiting", "gauge", 0.0),
        ("vllm:kv_cache_usage_perc", "gauge", 0.25),
        ("vllm:prompt_tokens_total", "counter", 10.0 * f64::from(finished)),
        ("vllm:generation_tokens_total", "counter", 2.0 * f64::from(finished)),
    ] {
        text.push_str(&format!("# TYPE {name} {kind}\n{name}{{{labels}}} {value}\n"));
    }
    let name = "vllm:request_queue_time_seconds";
    let sum = 0.01 * f64::from(finished);
    text.push_str(&format!("# TYPE {name} histogram\n"));
    for bound in ["0.3", "+Inf"] {
        text.push_str(&format!("{name}_bucket{{{labels},le=\"{bound}\"}} {finished}\n"));
    }
    text.push_str(&format!("{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {finished}\n"));
    text
}

/// Twelve requests of two users, with the run kept in `run` and its summary in
/// `s.json`.
fn bench(workplace: &Workplace, url: &str, more: &[&str]) -> Told {
    let own = ["-n", "12", "-c", "2", "--out", "run", "--json", "s.json"];
    workplace.bench(url, &[&own[..], more].concat())
}

fn collected(workplace: &Workplace) -> Collected {
    let bytes = std::fs::read(workplace.at("run/metrics.parquet")).unwrap();
    scrapes::decode(&bytes).unwrap()
}

fn first(collected: &Collected, family: &str) -> Vec<f64> {
    let value = |exposition: &wire::prometheus::Exposition| {
        exposition.family(family).unwrap().samples().next().unwrap().value
    };
    collected.sources[0].scrapes.iter().map(|scrape| value(&scrape.exposition)).collect()
}

#[test]
fn metrics_are_kept_with_the_run_and_named_in_its_manifest() {
    let workplace = Workplace::with_metrics();
    let server = server(|finished| text(&vllm("m", finished)));
    bench(&workplace, &server.url(), &[]).exits(0);
    let collected = collected(&workplace);
    let generated = first(&collected, "vllm:generation_tokens_total");
    assert_eq!((generated.first(), generated.last()), (Some(&0.0), Some(&24.0)));
    assert_eq!(collected.sources[0].name, format!("{}/metrics", server.url()));
    let manifest: Value = serde_json::from_str(&workplace.read("run/run.json")).unwrap();
    let bytes = std::fs::read(workplace.at("run/metrics.parquet")).unwrap();
    let named = json!(["metrics.parquet", scrapes::checksum(&bytes).unwrap()]);
    assert!(manifest["files"].as_array().unwrap().contains(&named), "{}", manifest["files"]);
}

#[test]
fn no_metrics_asks_for_none() {
    let workplace = Workplace::with_metrics();
    let server = server(|_| panic!("nobody asked for metrics"));
    bench(&workplace, &server.url(), &["--no-metrics"]).exits(0);
    assert!(!workplace.at("run/metrics.parquet").exists());
    let contradiction = ["--no-metrics", "--metrics-url", "http://a", "--nvml"];
    let told = bench(&workplace, &server.url(), &contradiction).exits(2);
    told.says(&["--metrics-url: asks for metrics", "--nvml: asks for metrics"]);
}

#[test]
fn wrong_flags_are_told_before_anything_is_sent() {
    let workplace = Workplace::with_metrics();
    let server = server(|_| text("x 1\n"));
    let wrong = [
        "--metrics-url",
        "engine:8000",
        "--metrics-url",
        "prometheus:p",
        "--metrics-interval",
        "1ms",
        "--metrics-header",
        "a b: c",
    ];
    let told = bench(&workplace, &server.url(), &wrong).exits(2);
    assert_eq!(told.errors().len(), 4, "{}", told.err);
    told.says(&["http://127.0.0.1:8000", "between 100.0 ms and 60", "not a header name"]);
    let told = bench(&workplace, &server.url(), &["--metrics-header", "a: b"]).exits(2);
    told.says(&["--metrics-header: is for --metrics-url"]);
    assert!(server.requests().is_empty());
}

/// What `/metrics` may be instead of metrics, and what is said then.
fn nothing_useful() -> Vec<(&'static str, Script, &'static str)> {
    let page = "<!DOCTYPE html><html><body>Please log in</body></html>";
    vec![
        ("absent", Script::json(404, &json!({"detail": "Not Found"})), "404"),
        ("a login page", Script::whole(200, "text/html", page), "HTML"),
        ("JSON", Script::json(200, &json!([{"iter": 1}])), "JSON"),
        ("nothing", text(""), "answered nothing"),
        ("endless", text(&"x 1\n".repeat(50 << 18)), "longer than 16 MiB"),
        (
            "a hanging exporter",
            Script::new().chunked_head(0, 200, "text/plain").stall(0),
            "no answer within",
        ),
    ]
}

#[test]
fn a_server_without_metrics_costs_the_run_nothing() {
    for (what, script, reason) in nothing_useful() {
        let workplace = Workplace::with_metrics();
        let server = server(move |_| script.clone());
        // The longer, the more time a reading has.
        let interval = if reason == "no answer within" { "500ms" } else { "10s" };
        bench(&workplace, &server.url(), &["--metrics-interval", interval]).exits(0);
        let summary: Value = serde_json::from_str(&workplace.read("s.json")).unwrap();
        assert_eq!(summary["outcomes"]["ok"], 12, "{what}");
        let why = summary["absent"]["signals"].as_str().unwrap();
        assert!(why.contains(reason), "{what}: {why}");
        let missing = workplace.run(&["diagnose", "run"]).exits(0).out;
        let flat = missing.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("look alike from outside"), "{what}: {missing}");
        let source = &collected(&workplace).sources[0];
        assert!(source.scrapes.is_empty(), "{what}");
        assert!(source.failed[0].reason.contains(reason), "{what}: {:?}", source.failed);
    }
}

#[test]
fn a_key_goes_to_the_targets_own_server_and_to_no_other() {
    const KEY: &str = "sk-collecting-canary";
    const HEADER: &str = "metricsHeaderCanary";
    let workplace = Workplace::with_metrics();
    let seen = Arc::new(std::sync::Mutex::new(
        Vec::<(&'static str, Option<String>, Option<String>)>::new(),
    ));
    let listening = |name: &'static str| {
        let seen = Arc::clone(&seen);
        Server::start_scripted(move |request: &Request| {
            let header = |name: &str| request.header(name).map(str::to_owned);
            if request.path() != "/v1/chat/completions" {
                seen.lock().unwrap().push((name, header("authorization"), header("x-asked")));
                // A careless exporter repeats what it was sent.
                let all = format!("{:?} {:?}", header("authorization"), header("x-asked"));
                return text(&format!("x{{all=\"{}\"}} 1\n", all.replace('"', "'")));
            }
            stream(&["a", "b"], 5)
        })
        .unwrap()
    };
    let (target, other) = (listening("target"), listening("other"));
    let further = format!("{}/engine/metrics", target.url());
    let more = [
        "--metrics-url",
        &other.url(),
        "--metrics-url",
        &further,
        "--metrics-header",
        &format!("x-asked: {HEADER}"),
        "-n",
        "2",
        "--out",
        "run",
        "--json",
        "-",
    ];
    let mut command =
        workplace.bench_command(&target.url(), &[&more[..], &["--allow-invalid"]].concat());
    let told = Told::of(command.env("OPENAI_API_KEY", KEY).output().unwrap()).exits(0);
    let bearer = Some(format!("Bearer {KEY}"));
    let seen = seen.lock().unwrap();
    assert!(seen.contains(&("other", None, Some(HEADER.to_owned()))), "{seen:?}");
    assert!(seen.contains(&("target", bearer.clone(), Some(HEADER.to_owned()))), "{seen:?}");
    assert!(seen.contains(&("target", bearer, None)), "{seen:?}");
    assert!(seen.iter().all(|(name, key, _)| *name == "target" || key.is_none()));
    let kept = collected(&workplace);
    assert_eq!(kept.sources.len(), 4, "three addresses, and this machine's accelerators");
    let mut all = format!("{} {} {kept:?}", told.out, told.err);
    for file in std::fs::read_dir(workplace.at("run")).unwrap() {
        all.push_str(&String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap()));
    }
    assert!(!all.contains(KEY) && !all.contains(HEADER));
}

#[test]
fn an_address_where_nobody_is_changes_no_exit_code() {
    let workplace = Workplace::with_metrics();
    let server = server(|finished| text(&vllm("m", finished)));
    let nobody = format!("{}/metrics", closed_port());
    let more = ["--metrics-url", &nobody, "--metrics-interval", "200ms"];
    bench(&workplace, &server.url(), &more).exits(0);
    let collected = collected(&workplace);
    assert!(collected.sources[0].failed[0].reason.contains("refused"), "{collected:?}");
    assert!(!collected.sources[1].scrapes.is_empty());
    // The target is what decides it.
    let told = bench(&workplace, &closed_port(), &["--out", "none"]);
    told.exits(3);
}

#[test]
fn a_report_from_the_directory_is_the_runs_own() {
    let workplace = Workplace::with_metrics();
    let server = server(|finished| text(&vllm("m", finished)));
    bench(&workplace, &server.url(), &[]).exits(0);
    let told: Value = serde_json::from_str(&workplace.read("s.json")).unwrap();
    let again = workplace.run(&["report", "run", "--json", "-"]).exits(0).json();
    assert_eq!(told, again);
    assert_eq!(told["signals"]["engine"], "vllm");
    assert_eq!(told["signals"]["readings"]["generated_tokens"]["value"], 24.0);
    assert_eq!(told["signals"]["readings"]["queue_time_s"]["count"], 12.0);
    // Without the file the rows still give their figures.
    std::fs::remove_file(workplace.at("run/metrics.parquet")).unwrap();
    workplace.run(&["report", "run"]).exits(0);
    std::fs::write(workplace.at("run/metrics.parquet"), b"PAR1").unwrap();
    workplace.run(&["report", "run"]).exits(0).says(&["metrics.parquet: not a whole Parquet file"]);
}

/// What a report computes from the run's directory.
fn seen(workplace: &Workplace) -> Seen {
    let rows = std::fs::read(workplace.at("run/requests-0.parquet")).unwrap();
    collected(workplace).seen(&wire::rows::decode(&rows).unwrap(), Some("m"))
}

fn notes(seen: &Seen) -> String {
    let signals = seen.signals.as_ref().expect("metrics were told");
    signals.notes.iter().map(|said| format!("{}\n", said.en)).collect()
}

#[test]
fn a_server_that_starts_again_and_one_of_another_model_are_noticed() {
    // Tokens that each reading tells: between the second and the third it began anew.
    let mut told = [10, 20, 3].into_iter();
    let mut last = 3;
    let restarting = Server::start_scripted(move |request: &Request| match request.path() {
        "/metrics" => {
            last = told.next().unwrap_or(last);
            text(&vllm("another", last))
        }
        _ => stream(&["a", "b"], 150),
    })
    .unwrap();
    let workplace = Workplace::with_metrics();
    bench(&workplace, &restarting.url(), &["--metrics-interval", "300ms"]).exits(0);
    let seen = seen(&workplace);
    let told = notes(&seen);
    assert!(told.contains("fell 1 times"), "{told}");
    assert!(told.contains("are of the model another, and m was asked for"), "{told}");
    // Ten before it, three since: two tokens each.
    let tokens = seen.signals.unwrap().increase(Signal::GeneratedTokens);
    assert_eq!(tokens, Some(26.0));
}

#[test]
fn the_engine_model_tells_its_metrics_in_virtual_time() {
    let workplace = Workplace::with_metrics();
    let run = |out: &str, more: &[&str]| {
        let own = ["sim", "run", "-n", "60", "--request-rate", "10", "--seed", "3", "--out", out];
        workplace.run(&[&own[..], &["--allow-invalid"], more].concat()).exits(0);
        std::fs::read(workplace.at(out).join("metrics.parquet")).ok()
    };
    let bytes = run("run", &[]).expect("metrics are there");
    assert_eq!(Some(&bytes), run("again", &[]).as_ref(), "the same seed gives the same metrics");
    let collected = scrapes::decode(&bytes).unwrap();
    let scrapes = &collected.sources[0].scrapes;
    // Virtual seconds, from before the first request until after the last token.
    let distances: Vec<i64> =
        scrapes.windows(2).map(|pair| (pair[1].at - pair[0].at).us()).collect();
    let (last, whole) = distances.split_last().unwrap();
    assert!(whole.len() >= 5 && whole.iter().all(|us| *us == 1_000_000), "{distances:?}");
    assert!(*last <= 1_000_000);
    let rows = std::fs::read(workplace.at("run/requests-0.parquet")).unwrap();
    let signals = collected.seen(&wire::rows::decode(&rows).unwrap(), None).signals.unwrap();
    assert_eq!(signals.engine, Some("vllm"));
    assert_eq!(signals.increase(Signal::QueueTime), Some(60.0));
    assert!(run("quick", &["--no-events"]).is_none(), "nothing slows that one down");
    assert!(run("none", &["--no-metrics"]).is_none());
    let told = workplace.run(&["sim", "run", "--metrics-url", "http://a", "--nvml"]).exits(2);
    told.says(&["--metrics-url: means nothing to sim run", "--nvml: means nothing"]);
}
