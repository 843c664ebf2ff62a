//! `watch`: lines, objects, what happens to a server meanwhile, how it ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use fake::{Request, Script, Server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::program::Workplace;
use crate::servers::closed_port;

/// vLLM after so many requests, from a process that began at this time.
fn vllm(began_s: u32, finished: u32, has_queue: bool) -> String {
    let queue = "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 3\n";
    format!(
        "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {began_s}\n\
         # TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 2\n{}\
         # TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total {}\n",
        if has_queue { queue } else { "" },
        10 * finished
    )
}

fn text(body: &str) -> Script {
    Script::whole(200, "text/plain", body)
}

/// A server that gives these readings one after the other, then the last one
/// for ever, and nothing else.
fn readings(readings: Vec<Script>) -> Server {
    let mut readings = readings.into_iter();
    let mut last = Script::json(404, &Value::Null);
    Server::start_scripted(move |request: &Request| {
        assert_eq!(request.path(), "/metrics");
        if let Some(next) = readings.next() {
            last = next;
        }
        last.clone()
    })
    .unwrap()
}

/// A watch under way, whose lines are read as they come.
struct Watching {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Watching {
    fn start(workplace: &Workplace, arguments: &[&str]) -> Self {
        let mut command = workplace.command(&[&["watch"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Lines until one is as wanted; that one is the last.
    fn until(&mut self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let mut seen = Vec::new();
        for line in self.lines.by_ref() {
            seen.push(line.unwrap());
            if seen.last().is_some_and(|line| wanted(line)) {
                return seen;
            }
        }
        panic!("it ended before: {seen:#?}");
    }

    /// Ends it as Ctrl-C does; what it still tells, and its exit code.
    fn stop(mut self) -> (Option<i32>, String, String) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT).unwrap();
        let rest = self.lines.map(Result::unwrap).collect::<Vec<_>>().join("\n");
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert!(!err.contains("panicked"), "{err}");
        (self.child.wait().unwrap().code(), rest, err)
    }
}

fn object(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Kinds of the events of lines. A reading may come too late on a busy machine,
/// which is an event too, and no part of what a test makes happen.
fn events(lines: &[String]) -> Vec<String> {
    let of_line = |line: &String| object(line)["events"].as_array().unwrap().clone();
    let all = lines.iter().flat_map(of_line);
    let kinds = all.filter(|event| !event["says"].as_str().unwrap().contains("no answer within"));
    kinds.map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_restart_a_lost_metric_and_a_login_page_are_told_and_watched_on() {
    let page = "<!DOCTYPE html><html><body>Please log in</body></html>";
    let told = |begun, finished, has_queue| text(&vllm(begun, finished, has_queue));
    let mut script = Vec::new();
    script.extend((0..4).map(|n| told(100, 40 + n, true)));
    script.extend((0..4).map(|n| told(200, n, true)));
    script.extend((4..8).map(|n| told(200, n, false)));
    script.extend((0..2).map(|_| Script::whole(200, "text/html", page)));
    script.extend((8..200).map(|n| told(200, n, true)));
    let server = readings(script);
    let workplace = Workplace::new();
    let arguments = ["--json", "-", "--interval", "400ms", "--window", "4s"];
    let mut watching = Watching::start(&workplace, &[&[&*server.url()], &arguments[..]].concat());
    let mut lines = watching.until(|line| line.contains("\"restarted\""));
    lines.extend(watching.until(|line| line.contains("\"missing\"")));
    let lost = object(lines.last().unwrap());
    assert_eq!(lost["figures"]["waiting"], Value::Null);
    let why = lost["absent"]["waiting"].as_str().unwrap();
    assert!(why.contains("told it until"), "{why}");
    assert_eq!(lost["figures"]["running"], 2.0, "the rest goes on");
    lines.extend(watching.until(|line| line.contains("HTML")));
    let page = object(lines.last().unwrap());
    let figures = page["figures"].as_object().unwrap();
    assert!(figures.values().all(Value::is_null), "old figures are not those of now");
    lines.extend(watching.until(|line| line.contains("\"told_again\"")));
    let after = watching.until(|line| object(line)["figures"]["output_tok_s"].is_number());
    assert_eq!(object(after.last().unwrap())["figures"]["waiting"], 3.0);
    let kinds = events(&lines);
    assert_eq!(kinds, ["restarted", "missing", "unread", "read_again", "told_again"]);
    let (code, _, err) = watching.stop();
    assert_eq!(code, Some(0));
    assert!(err.contains("restarts 1") && err.contains("output tokens"), "{err}");
}

#[test]
fn a_server_under_load_is_seen_on_plain_lines_and_as_objects() {
    let server = crate::servers::modelled();
    let workplace = Workplace::new();
    let url = server.url();
    let mut lines = Watching::start(&workplace, &[&url, "--interval", "300ms", "--lang", "zh"]);
    let mut objects = Watching::start(&workplace, &[&url, "--interval", "300ms", "--json", "-"]);
    lines.until(|line| line.contains("运行 0"));
    objects.until(|line| object(line)["figures"]["running"] == 0.0);
    workplace.bench(&url, &["-n", "16", "-c", "4", "--osl", "8"]).exits(0);
    let seen = |line: &str| object(line)["figures"]["req_s"].as_f64() > Some(0.0);
    let last = object(objects.until(seen).last().unwrap());
    assert_eq!(last["schema"], "goodput.watch/1");
    assert_eq!(last["engine"], "vllm");
    for figure in ["output_tok_s", "kv_usage", "queue_ms", "prefill_ms", "server_ttft_ms"] {
        assert!(last["figures"][figure].is_number(), "{figure}: {last}");
    }
    assert!(last["absent"]["gpu_busy"].as_str().unwrap().contains("--metrics-url"));
    lines.until(|line| line.contains("req/s") && !line.contains("请求 0 req/s"));
    let (code, rest, _) = lines.stop();
    assert_eq!(code, Some(0));
    assert!(rest.contains("全程数据"), "{rest}");
    assert_eq!(objects.stop().0, Some(0));
}

#[test]
fn it_ends_after_its_duration_and_says_3_where_nothing_was_ever_read() {
    let workplace = Workplace::new();
    let server = readings(vec![text(&vllm(1, 1, true))]);
    let own = ["--interval", "200ms", "--window", "1s", "--duration"];
    let told = workplace.run(&[&["watch", &server.url()], &own[..], &["500ms"]].concat()).exits(0);
    assert!(told.out.contains("run 2") && told.out.contains("requests –"), "{}", told.out);
    let nobody = closed_port();
    let told = workplace.run(&[&["watch", &nobody], &own[..], &["300ms"]].concat()).exits(3);
    assert!(told.out.contains("gives no metrics"), "{}", told.out);
    assert!(!told.out.contains("Nothing was found"), "{}", told.out);
}

#[test]
fn every_mistake_of_watch_is_told_at_once_and_nothing_is_asked() {
    let workplace = Workplace::new();
    let server = readings(Vec::new());
    let wrong = [
        "watch",
        &server.url(),
        "--interval",
        "1ms",
        "--duration",
        "soon",
        "--json",
        "x.jsonl",
        "--metrics-url",
        "prometheus:http://p:9090",
    ];
    let told = workplace.run(&wrong).exits(2);
    assert_eq!(told.errors().len(), 4, "{}", told.err);
    told.says(&["--interval", "--duration", "--json - > FILE", "--metrics-url", "Prometheus"]);
    let told = workplace.run(&["watch", &server.url(), "--window", "1h"]).exits(2);
    told.says(&["--window", "--interval"]);
    workplace.run(&["watch", "h:8000"]).exits(2).says(&["URL"]);
    assert!(server.requests().is_empty());
}
