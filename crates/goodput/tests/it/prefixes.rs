//! Prefixes that prompts share, and what the server's cache may know of them,
//! against a server that has one.

use serde_json::Value;

use crate::program::{Told, Workplace};
use crate::servers::{self, Caching};

/// Runs against a caching server and gives what was told.
fn bench(workplace: &Workplace, url: &str, more: &[&str]) -> Told {
    let start = ["bench", url, "--backend", "openai", "--model", "m", "-c", "1", "--osl", "1"];
    let end = ["--allow-invalid", "--json", "-"];
    let told = workplace.run(&[&start, more, &end].concat());
    told.exits(0)
}

fn caveats(summary: &Value) -> Vec<&str> {
    let caveats = summary["caveats"].as_array().unwrap();
    caveats.iter().map(|caveat| caveat["id"].as_str().unwrap()).collect()
}

/// Cached tokens of each request, in the order of the schedule.
fn cached(workplace: &Workplace, directory: &str) -> Vec<u64> {
    let rows = workplace.export(directory);
    rows.iter().map(|row| row["cached_tokens"].as_u64().unwrap()).collect()
}

const SHARED: &[&str] = &["-n", "12", "--shared-prefix-len", "50", "--isl", "30"];

#[test]
fn a_regime_has_the_cached_tokens_that_it_stands_for() {
    let workplace = Workplace::new();
    for (regime, first, others) in
        [("none", 0, 0), ("warm", 50, 50), ("cold", 0, 50), ("as-is", 0, 50)]
    {
        let server = Caching::default().start();
        let told = bench(
            &workplace,
            &server.url(),
            &[SHARED, &["--prefix-cache", regime, "--out", regime]].concat(),
        );
        let summary = told.json();
        let mut expected = vec![others; 12];
        expected[0] = first;
        assert_eq!(cached(&workplace, regime), expected, "{regime}");
        assert_eq!(summary["workload"]["cache_regime"], regime);
        assert_eq!(summary["workload"]["prefix_tokens"], 50);
        let share = (first + 11 * others) as f64 / (12.0 * 80.0);
        assert_eq!(summary["tokens"]["cached_share"], share, "{regime}");
        assert!(!caveats(&summary).contains(&"cache_regime_contradicted"), "{summary}");
        assert!(told.err.contains(&format!("{regime}; ")), "{}", told.err);
        let sent = server.requests().len();
        assert_eq!(sent, if regime == "warm" { 13 } else { 12 }, "one request primes the prefix");
    }
}

#[test]
fn each_of_several_prefixes_is_primed_once_and_has_a_table() {
    let workplace = Workplace::new();
    let server = Caching::default().start();
    let repetition = [
        "--dataset-name",
        "prefix_repetition",
        "--prefix-repetition-prefix-len",
        "40",
        "--prefix-repetition-suffix-len",
        "20",
        "--prefix-repetition-num-prefixes",
        "3",
        "--prefix-repetition-output-len",
        "1",
        "-n",
        "13",
        "--prefix-cache",
        "warm",
        "--out",
        "warm",
        "--goodput",
        "ttft:60000",
    ];
    let summary = bench(&workplace, &server.url(), &repetition).json();
    assert_eq!(server.requests().len(), 13 + 3);
    assert_eq!(cached(&workplace, "warm"), [40; 13]);
    assert!(summary["workload"]["source"].as_str().unwrap().contains("prefix_repetition"));
    let lengths = summary["workload"]["input_lengths"].as_str().unwrap();
    assert!(lengths.starts_with("one of 3 prefixes of 40 + 20 tokens"), "{lengths}");
    let tables = summary["goodput"]["per_label"]["prefix"].as_object().unwrap();
    let of: Vec<u64> = tables.values().map(|table| table["of"].as_u64().unwrap()).collect();
    assert_eq!(of.iter().sum::<u64>(), 13, "the remainder is sent too");
    assert_eq!(of, [5, 4, 4]);
}

#[test]
fn a_state_that_the_counts_contradict_is_said() {
    let workplace = Workplace::new();
    let server = Caching { is_off: true, ..Caching::default() }.start();
    let warm = [SHARED, &["--prefix-cache", "warm"]].concat();
    let summary = bench(&workplace, &server.url(), &warm).json();
    assert!(caveats(&summary).contains(&"cache_regime_contradicted"), "{summary}");
    assert_eq!(summary["tokens"]["cached_share"], 0.0);
    let silent = servers::engine();
    let told = bench(&workplace, &silent.url(), SHARED);
    let summary = told.json();
    assert!(summary["tokens"]["cached_share"].is_null());
    assert!(summary["absent"]["tokens.cached_share"].as_str().unwrap().contains("does not say"));
    assert!(told.err.contains("cold; cached share n/a (the server does not say"), "{}", told.err);
}

#[test]
fn a_repeated_seed_is_warned_of_and_its_hits_are_seen() {
    let workplace = Workplace::new();
    let server = Caching::default().start();
    let url = server.url();
    let random = ["-n", "6", "--isl", "90", "--prefix-cache", "as-is", "--seed", "9"];
    let notes = |summary: &Value| summary["workload"]["notes"].to_string();
    let first = bench(&workplace, &url, &random);
    assert!(!notes(&first.json()).contains("earlier run"), "{}", first.err);
    let again = bench(&workplace, &url, &random);
    let summary = again.json();
    assert!(notes(&summary).contains("earlier run"), "{summary}");
    assert!(again.err.contains("earlier run"), "{}", again.err);
    assert!(caveats(&summary).contains(&"warm_prefix_cache"));
    assert_eq!(summary["tokens"]["cached_share"], 1.0);
    // Another seed, another server, or a nonce: nothing to warn of.
    let other = bench(&workplace, &url, &[&random[..], &["--seed", "10"]].concat()).json();
    assert!(!notes(&other).contains("earlier run"), "{other}");
    let elsewhere = Caching::default().start();
    let other = bench(&workplace, &elsewhere.url(), &random).json();
    assert!(!notes(&other).contains("earlier run"), "{other}");
    let cold = bench(&workplace, &url, &[&random[..], &["--prefix-cache", "cold"]].concat()).json();
    assert!(!notes(&cold).contains("earlier run"), "{cold}");
    // Another rate draws the same prompts.
    let faster = [&random[..], &["-c", "2"]].concat();
    assert!(notes(&bench(&workplace, &url, &faster).json()).contains("earlier run"));
}

#[test]
fn the_reset_call_empties_the_cache_before_the_run() {
    let workplace = Workplace::new();
    let server = Caching::default().start();
    let url = server.url();
    let random = ["-n", "6", "--isl", "90", "--prefix-cache", "as-is", "--seed", "9"];
    bench(&workplace, &url, &random);
    let reset = ["--reset-cache-url", "/reset_prefix_cache", "--header", "X-Tenant=a"];
    let summary = bench(&workplace, &url, &[&random[..], &reset, &["--out", "r"]].concat()).json();
    assert!(cached(&workplace, "r").iter().all(|cached| *cached < 3), "{summary}");
    let notes = summary["workload"]["notes"].to_string();
    assert!(notes.contains("was emptied before the run") && !notes.contains("earlier run"));
    let requests = server.requests();
    let call = requests.iter().find(|request| request.path() == "/reset_prefix_cache").unwrap();
    assert_eq!((call.method.as_str(), call.header("x-tenant")), ("POST", Some("a")));
    // Warm is primed after it, and a whole address is as good as a path.
    let address = format!("{url}/reset_prefix_cache");
    let warm = [&random[..], &["--prefix-cache", "warm", "--reset-cache-url", &address]].concat();
    assert_eq!(bench(&workplace, &url, &warm).json()["tokens"]["cached_share"], 1.0);
}

#[test]
fn a_reset_call_that_fails_ends_the_command_before_anything_is_sent() {
    let workplace = Workplace::new();
    let server = servers::refusing(404, "no such path");
    let reset = ["bench", &server.url(), "--model", "m", "--reset-cache-url", "/nowhere"];
    workplace.run(&reset).exits(2).says(&["--reset-cache-url", "404", "/nowhere"]);
    assert_eq!(server.requests().len(), 1, "the call and nothing else");
    assert!(!workplace.at("runs").exists());
    let gone = servers::closed_port();
    let reset = ["bench", &server.url(), "--model", "m", "--reset-cache-url", &gone];
    workplace.run(&reset).exits(3).says(&["--reset-cache-url"]);
    let wrong = ["bench", &server.url(), "--model", "m", "--reset-cache-url", "ftp://x"];
    workplace.run(&wrong).exits(2).says(&["--reset-cache-url"]);
    let nobody = ["bench", "--reset-cache-url", "/reset"];
    workplace.run(&nobody).exits(2).says(&["--reset-cache-url", "embedded engine"]);
}

#[test]
fn wrong_prefixes_are_one_sentence_each() {
    let workplace = Workplace::new();
    let refused = |arguments: &[&str], words: &[&str]| {
        let start = ["bench", "http://127.0.0.1:9", "--model", "m", "--dry-run"];
        workplace.run(&[&start, arguments].concat()).exits(2).says(words);
    };
    refused(&["--shared-prefix-len", "many"], &["--shared-prefix-len"]);
    refused(&["--shared-prefix-len", "99999999"], &["--shared-prefix-len", "limit"]);
    refused(
        &["--prompt", "hi", "--random-prefix-len", "5"],
        &["--shared-prefix-len", "sent as they are"],
    );
    let repetition = ["--dataset-name", "prefix-repetition"];
    let zero = ["--prefix-repetition-num-prefixes", "0"];
    refused(&[&repetition[..], &zero].concat(), &["--prefix-repetition-num-prefixes", "from 1"]);
    let zero = ["--prefix-repetition-suffix-len", "0"];
    refused(&[&repetition[..], &zero].concat(), &["--prefix-repetition-suffix-len"]);
}

#[test]
fn flags_of_vllm_make_the_prompts_that_they_make_there() {
    let workplace = Workplace::new();
    let plan = |arguments: &[&str]| {
        let start = ["bench", "http://127.0.0.1:9", "--model", "m", "--dry-run", "--json", "-"];
        workplace.run(&[&start, arguments].concat()).exits(0).json()
    };
    let repetition = plan(&["--dataset-name", "prefix_repetition"]);
    let lengths = repetition["workload"]["input_lengths"].as_str().unwrap();
    assert!(lengths.starts_with("one of 10 prefixes of 256 + 256 tokens"), "{lengths}");
    assert_eq!(repetition["workload"]["output_lengths"], "128");
    let shared = plan(&["--random-prefix-len", "64", "--random-input-len", "100"]);
    let lengths = shared["workload"]["input_lengths"].as_str().unwrap();
    assert!(lengths.starts_with("a shared prefix of 64 + 100 tokens"), "{lengths}");
    let unused = plan(&["--prefix-repetition-prefix-len", "64"]);
    assert!(unused["workload"]["notes"].to_string().contains("did nothing"), "{unused}");
    let alone = plan(&["--session-prefix-len", "9"]);
    assert!(alone["workload"]["notes"].to_string().contains("a session of its own"), "{alone}");
}
