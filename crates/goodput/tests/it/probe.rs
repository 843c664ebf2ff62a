//! `probe`: experiments on the engine model, whose causes are known, and at
//! servers that do not like it.

use std::sync::mpsc::channel;
use std::time::Duration;

use fake::{Request, Script, Server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::program::{Told, Workplace};
use crate::servers::{closed_port, engine, refusing, stream, text};
use crate::serving::Serving;

fn probed(more: &[&str]) -> Value {
    Workplace::new().run(&[&["probe", "--json", "-"], more].concat()).exits(0).json()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn rules(found: &Value) -> Vec<&str> {
    let findings = found["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["rule"].as_str().unwrap()).collect()
}

fn experiment<'a>(found: &'a Value, name: &str) -> &'a Value {
    let all = found["experiments"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

const LADDERS: [&str; 4] = ["--only", "lengths,ladder,contexts", "--max-concurrency", "16"];

/// Seats, lengths and seeds of a few draws.
#[test]
fn seats_hold_as_many_requests_whatever_their_prompts() {
    for (seats, input, seed) in [(3.0, "512", "1"), (5.0, "256", "2"), (11.0, "768", "3")] {
        let set = format!("max_num_seqs={seats}");
        let drawn = ["--set", &set, "--isl", input, "--seed", seed, "--budget", "1h"];
        let found = probed(&[&LADDERS[..], &drawn].concat());
        assert_eq!(rules(&found)[0], "seat_limit", "{drawn:?}");
        assert_eq!(found["findings"][0]["confidence"], "likely");
        for ladder in found["figures"]["ladders"].as_array().unwrap() {
            let limit = number(&ladder["limit"]);
            assert!((limit / seats - 1.0).abs() < 0.1, "{limit} of {seats}");
        }
    }
}

/// Blocks of 16 tokens: the number of requests falls as their prompts grow, and
/// with it what they hold stays.
#[test]
fn a_full_cache_holds_as_many_tokens_whatever_the_prompts() {
    for (blocks, input, seed) in [(260.0, "512", "1"), (420.0, "768", "2")] {
        let set = format!("num_gpu_blocks_override={blocks}");
        let sets = ["--set", &set, "--set", "max_model_len=4096", "--isl", input, "--seed", seed];
        let found = probed(&[&LADDERS[..], &sets, &["--budget", "1h"]].concat());
        assert_eq!(rules(&found)[0], "kv_capacity", "{sets:?}");
        assert_eq!(found["findings"][0]["confidence"], "likely");
        let ladders = found["figures"]["ladders"].as_array().unwrap();
        for ladder in ladders {
            let level = ladder["levels"].as_array().unwrap().last().unwrap();
            let each = number(&level["input_tokens"]) + number(&level["output_tokens"]) / 2.0;
            let share = number(&ladder["limit"]) * each / (blocks * 16.0);
            assert!((0.7..1.15).contains(&share), "{share}");
        }
        let limit = |place: usize| number(&ladders[place]["limit"]);
        assert!(limit(0) > 2.5 * limit(1));
    }
}

#[test]
fn an_engine_with_room_is_said_to_have_no_limit_there() {
    let found = probed(&["--only", "lengths,ladder,contexts", "--seed", "3"]);
    assert_eq!(rules(&found), [] as [&str; 0]);
    let missing = found["missing"].to_string();
    assert!(missing.contains("up to 8 users"), "{missing}");
}

/// What the model's arithmetic takes for a token of a prompt.
fn truth_ms_per_token() -> f64 {
    let cost = sim::Settings::default().cost();
    1e3 * cost.flops_per_token / (cost.peak_flops_per_s * cost.compute_efficiency)
}

#[test]
fn the_slope_over_the_length_is_the_models_own() {
    let found = probed(&["--only", "lengths"]);
    let fit = &found["figures"]["lengths"]["fit"];
    let slope = number(&fit["b_ms_per_token"]) / truth_ms_per_token();
    assert!((0.85..1.15).contains(&slope), "{slope} in {fit}");
    let interval = &fit["intervals"]["b_ms_per_token"];
    assert!(number(&interval[0]) <= number(&interval[1]));
    // One user, one token: nothing else was sent but the baseline.
    assert_eq!(experiment(&found, "ladder")["trials"], Value::Array(Vec::new()));
    assert!(!experiment(&found, "baseline")["trials"].as_array().unwrap().is_empty());
}

/// Short answers to long prompts: what holds them up are prompts, and nothing is
/// said of seats.
#[test]
fn prompts_that_take_the_time_are_a_backlog_and_no_lack_of_seats() {
    let found = probed(&["--only", "lengths,ladder", "--isl", "2048", "--osl", "8", "--seed", "1"]);
    assert_eq!(rules(&found), ["prefill_backlog"]);
    assert_eq!(found["figures"]["ladders"][0]["limit"], Value::Null);
}

/// Many long contexts: each answer in the batch adds the reading of its keys and
/// values, and the host's work for it, as the model has them.
#[test]
fn the_slope_over_the_batch_is_the_reading_of_keys_and_values() {
    let lengths = ["--isl", "1024", "--osl", "512", "--max-concurrency", "32", "--budget", "1h"];
    let found = probed(&[&["--only", "lengths,ladder,contexts"][..], &lengths].concat());
    assert_eq!(rules(&found), ["kv_bandwidth"]);
    assert_eq!(found["findings"][0]["confidence"], "possible");
    // Throughput that bends is described, with what is known of it.
    let scaling = &found["figures"]["ladders"][0]["scaling"];
    let (sigma, interval) = (number(&scaling["sigma"]), &scaling["intervals"]["sigma"]);
    assert!(number(&interval[0]) <= sigma && sigma <= number(&interval[1]), "{scaling}");
    let cost = sim::Settings::default().cost();
    for (ladder, input) in
        found["figures"]["ladders"].as_array().unwrap().iter().zip([1024.0, 4096.0])
    {
        let bytes = (input + 256.0) * cost.kv_bytes_per_token;
        let read_s = bytes / (cost.peak_bytes_per_s * cost.memory_efficiency);
        let truth_ms = 1e3 * (read_s + cost.host_per_sequence_s);
        let slope = number(&ladder["tpot_over_batch"]["k_ms"]) / truth_ms;
        assert!((0.8..1.2).contains(&slope), "{slope} at {input}");
    }
}

#[test]
fn a_longer_way_is_in_the_transport_and_not_in_the_prefill() {
    let arguments = ["--only", "transport,lengths", "--seed", "5"];
    let near = probed(&arguments);
    let far = probed(&[&arguments[..], &["--network", "40ms"]].concat());
    let fit = |found: &Value, key: &str| number(&found["figures"]["lengths"]["fit"][key]);
    assert_eq!(number(&far["figures"]["transport"]["connect_ms"]), 40.0);
    let slopes = fit(&far, "b_ms_per_token") / fit(&near, "b_ms_per_token");
    assert!((0.95..1.05).contains(&slopes), "{slopes}");
    let added = fit(&far, "a_ms") - fit(&near, "a_ms");
    assert!((added - 40.0).abs() < 1.0, "{added}");
    assert!(rules(&far).contains(&"distance") && !rules(&near).contains(&"distance"));
}

#[test]
fn the_share_of_a_known_prompt_is_found_within_a_block() {
    let arguments = ["--only", "lengths,prefix"];
    let of = |more: &[&str]| probed(&[&arguments[..], more].concat());
    for block in [16.0, 256.0] {
        let found = of(&["--set", &format!("block_size={block}")]);
        let prefix = &found["figures"]["prefix"];
        let input = number(&prefix["input_tokens"]);
        // All whole blocks but that of the last token.
        let truth = ((input - 1.0) / block).floor() * block / input;
        let share = number(&prefix["warm_share"]);
        assert!((share - truth).abs() <= block / input + 0.02, "{share} for {truth}");
        assert_eq!(rules(&found), [] as [&str; 0]);
    }
    let off = of(&["--set", "enable_prefix_caching=false"]);
    assert!(number(&off["figures"]["prefix"]["warm_share"]) < 0.02);
    assert_eq!(rules(&off), ["prefix_not_hit"]);
    assert_eq!(off["findings"][0]["confidence"], "likely");
}

#[test]
fn the_time_of_a_token_by_whole_answers_is_that_of_the_gaps() {
    let found = probed(&["--only", "outputs"]);
    let by_answers = number(&found["figures"]["outputs"]["fit"]["ms_per_token"]);
    let by_gaps = number(&found["figures"]["baseline"]["tpot_ms"]);
    assert!((by_answers / by_gaps - 1.0).abs() < 0.05, "{by_answers} and {by_gaps}");
}

#[test]
fn what_does_not_fit_the_budget_is_left_out_and_said() {
    let found = probed(&["--budget", "6s", "--seed", "1"]);
    // An estimate may be off by a trial.
    assert!(number(&found["elapsed_s"]) < 9.0, "{}", found["elapsed_s"]);
    assert!(number(&found["requests"]["ok"]) > 3.0);
    let left: Vec<&Value> = found["experiments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["left_out"])
        .filter(|why| !why.is_null())
        .collect();
    assert!(!left.is_empty());
    assert!(left[0].as_str().unwrap().contains("budget of 6 s"), "{left:?}");
}

#[test]
fn the_same_seed_finds_the_same_on_the_model() {
    let arguments = ["--only", "ladder,rates,canary", "--seed", "9"];
    assert_eq!(probed(&arguments), probed(&arguments));
}

#[test]
fn a_served_model_is_probed_over_sockets() {
    let workplace = Workplace::new();
    let serving = Serving::start(&workplace, &[]);
    let url = serving.url();
    let told = workplace
        .run(&[
            "probe",
            &url,
            "--only",
            "transport,baseline,outputs",
            "--isl",
            "32",
            "--osl",
            "4",
            "--budget",
            "60s",
            "--json",
            "-",
        ])
        .exits(0);
    let found = told.json();
    let transport = &found["figures"]["transport"];
    assert_eq!(number(&transport["connections"]), 10.0);
    assert!(number(&transport["connect_ms"]) > 0.0);
    assert!(number(&transport["answer_ms"]["p50"]) > 0.0);
    assert!(found["target"].as_str().unwrap().starts_with(&url));
    assert!(number(&found["figures"]["baseline"]["ttft_ms"]) > 0.0);
    assert_eq!(number(&found["requests"]["failed"]), 0.0);
    assert!(!workplace.at("runs").exists(), "a probe leaves no run");
    serving.end();
}

#[test]
fn a_server_that_refuses_is_left_alone() {
    let workplace = Workplace::new();
    let probe = |url: &str| -> Told {
        workplace.run(&["probe", url, "--model", "m", "--json", "-", "--disable-tqdm"])
    };
    for (status, message) in [(429, "slow down"), (500, "broken")] {
        let server = refusing(status, message);
        let told = probe(&server.url()).exits(3);
        let found = told.json();
        let why = found["ended_early"].as_str().unwrap();
        assert!(why.contains(message) && why.contains(&status.to_string()), "{why}");
        assert!(number(&found["requests"]["failed"]) <= 3.0);
        assert!(!experiment(&found, "lengths")["left_out"].is_null());
    }
    probe(&closed_port()).exits(3);
}

/// A server that refuses what comes first of the ladder, for a second.
#[test]
fn a_server_that_asks_for_silence_gets_it_and_half_the_load() {
    let workplace = Workplace::new();
    let (arrived, arrival) = channel();
    let refusal =
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nbusy";
    let mut count = 0;
    let server = Server::start_scripted(move |request: &Request| {
        if request.target.ends_with("/models") {
            return Script::json(200, &serde_json::json!({"data": []}));
        }
        count += 1;
        let _ = arrived.send(request.arrival_ns);
        // So quick a baseline has 20 requests.
        let is_first = (21..=24).contains(&count);
        if is_first { Script::new().send(0, refusal) } else { stream(&["one", "two"], 1) }
    })
    .unwrap();
    let url = server.url();
    let arguments = ["--model", "m", "--only", "ladder,outputs", "--isl", "8", "--osl", "2"];
    let found = workplace.run(&[&["probe", &url, "--json", "-"], &arguments[..]].concat());
    let found = found.exits(0).json();
    let left = experiment(&found, "ladder")["left_out"].as_str().unwrap();
    assert!(left.contains("at most 1 were sent"), "{left}");
    assert!(found["ended_early"].is_null(), "{}", found["ended_early"]);
    let at_ns: Vec<u64> = arrival.try_iter().collect();
    let silent = at_ns[20..].windows(2).filter(|pair| pair[1] - pair[0] >= 950_000_000).count();
    assert_eq!(silent, 1, "the answers of several lengths come after a second");
}

/// What was found until then is told, and nothing is asked after it.
#[test]
fn an_interrupt_is_130_with_what_there_is() {
    let workplace = Workplace::new();
    let (arrived, arrival) = channel();
    let server = Server::start_scripted(move |request: &Request| {
        let _ = arrived.send(request.target.clone());
        Script::new().chunked_head(0, 200, "text/event-stream").chunk(0, text("one")).stall(1)
    })
    .unwrap();
    let url = server.url();
    let arguments = ["probe", &url, "--model", "m", "--only", "baseline,lengths", "--json", "-"];
    let mut command = workplace.command(&arguments);
    let piped = std::process::Stdio::piped;
    let child = command.stdout(piped()).stderr(piped()).spawn().unwrap();
    arrival.recv_timeout(Duration::from_secs(20)).expect("the baseline is sent");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let found = Told::of(child.wait_with_output().unwrap()).exits(130).json();
    assert_eq!(found["ended_early"], "it was interrupted");
    assert_eq!(experiment(&found, "lengths")["left_out"], "it was interrupted");
    assert_eq!(arrival.try_iter().count(), 0);
}

#[test]
fn mistakes_are_told_before_anything_is_sent() {
    let workplace = Workplace::new();
    let server = engine();
    let url = server.url();
    for (arguments, words) in [
        (&["--only", "ladders"][..], "transport, baseline, lengths"),
        (&["--budget", "1s"], "from 5s to 1h"),
        (&["--isl", "512±25%"], "experiments vary it themselves"),
        (&["--max-concurrency", "0"], "--max-concurrency"),
        (&["--network", "2ms"], "the way to a server is measured"),
        (&["--backend", "openai-embeddings"], "--backend"),
        (&["--set", "max_num_seqs=4"], "--set"),
        (&["--lang", "fr"], "--lang"),
    ] {
        let told = workplace.run(&[&["probe", &url], arguments].concat()).exits(2);
        assert!(told.err.contains(words), "{arguments:?}: {}", told.err);
    }
    workplace.run(&["probe", "--isl", "200000"]).exits(2).says(&["context has"]);
}

#[test]
fn a_person_reads_it_in_both_languages() {
    let workplace = Workplace::new();
    let arguments =
        ["probe", "--only", "transport,lengths,ladder,contexts", "--set", "max_num_seqs=4"];
    let read =
        |lang: &str| workplace.run(&[&arguments[..], &["--lang", lang]].concat()).exits(0).out;
    let english = read("en");
    for words in
        ["SIMULATED", "prefill rate", "all seats are taken", "likely", "What could not be told"]
    {
        assert!(english.contains(words), "{words} in\n{english}");
    }
    let chinese = read("zh");
    for words in ["模拟", "预填充速率", "席位已满", "很可能", "无法得出的结论"]
    {
        assert!(chinese.contains(words), "{words} in\n{chinese}");
    }
}

/// The experiment of a rule is a command of this program, with flags that it
/// has.
#[test]
fn the_experiment_of_every_rule_is_a_command_that_exists() {
    let workplace = Workplace::new();
    for rule in insight::RULES.iter().filter(|rule| !rule.command.is_empty()) {
        let words = commands(rule.command);
        assert!(!words.is_empty(), "{}: {}", rule.id, rule.command);
        for arguments in words {
            // Help is asked for last, so every flag before it was read.
            let told = workplace.run(&[&arguments[..], &["--help".to_owned()]].concat());
            assert_eq!(told.code, Some(0), "{}: {arguments:?}\n{}", rule.id, told.err);
        }
    }
    let wrong = workplace.run(&["bench", "http://h", "--no-such-flag", "--help"]);
    assert_eq!(wrong.code, Some(2), "an unknown flag would be seen");
}

/// The arguments behind each `goodput` of a line of a shell.
fn commands(line: &str) -> Vec<Vec<String>> {
    let word = |word: &str| match word {
        "{target}" => "http://127.0.0.1:9".to_owned(),
        "{run}" => "latest".to_owned(),
        word if word.starts_with('$') => "8".to_owned(),
        word => word.trim_matches('\'').to_owned(),
    };
    let commands = line.split("goodput ").skip(1);
    let command = |command: &str| command.split([';', '|', '&']).next().unwrap().to_owned();
    commands.map(|rest| command(rest).split_whitespace().map(word).collect()).collect()
}
