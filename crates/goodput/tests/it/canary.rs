//! A key goes through every door and must come out of none.

use std::path::Path;

use fake::{Request, Script, Server};
use serde_json::{Value, json};

use crate::program::{Told, Workplace};
use crate::servers::event;

/// The doors, and the key that goes through each. They have nothing in common
/// that a server would say by itself.
const KEYS: &[(&str, &str)] = &[
    ("environment", "sk-canary-Env7f3a9c51e2"),
    ("file", "filecanary+File4b8d/20c6e9=="),
    ("header", "canaryHeader91fe77ab03"),
    ("cookie", "canaryCookie5aa1c4d8f2"),
    ("query", "canaryQuery%2Fd0e6b3947c"),
    ("extra body", "canaryBody68e2f1a0b7"),
    ("variable header", "canaryVariable3c9e55d1"),
];

/// What counts as a key having come out: eight letters from its middle.
fn traces() -> Vec<(&'static str, String)> {
    KEYS.iter()
        .map(|(door, key)| {
            let tail = &key[key.len() - 10..key.len() - 2];
            (*door, tail.to_owned())
        })
        .collect()
}

/// Everything that a request held, as a careless server would repeat it.
fn everything(request: &Request) -> String {
    let headers: Vec<String> =
        request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let key = body["api_key"].as_str().unwrap_or_default().to_owned();
    let target = request.target.replace("%2F", "/");
    format!("{} {target} {} {key}", request.target, headers.join(" | "))
}

/// Repeats everything, each request in another way.
fn echo(request: &Request) -> Script {
    let all = everything(request);
    if request.path() == "/metrics" {
        let label = all.replace(['\\', '"'], "");
        return Script::whole(200, "text/plain", format!("echo{{all=\"{label}\"}} 1\n{all}\n"));
    }
    let stream = || Script::new().chunked_head(0, 200, "text/event-stream");
    let text = |text: &str| event(&json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
    let finish = |reason: &str| {
        event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
    };
    let error = json!({"error": {"message": all, "type": all, "code": all}});
    let id = request.header("x-request-id").unwrap_or_default();
    let index: usize = id.rsplit('-').next().and_then(|index| index.parse().ok()).unwrap_or(0);
    match index % 8 {
        0 => Script::json(500, &error),
        1 => stream().chunk(0, text("one")).chunk(1, event(&error)).last_chunk(1),
        2 => {
            let (head, tail) = all.split_at(all.len() / 2);
            stream()
                .chunk(0, text(head))
                .chunk(1, text(tail))
                .chunk(2, finish(&all))
                .chunk(2, "data: [DONE]\n\n")
                .last_chunk(2)
        }
        3 => Script::new().send(
            0,
            format!(
                "HTTP/1.1 307 Temporary Redirect\r\nx-served-by: {all}\r\nserver: {all}\r\n\
                 location: {all}\r\ncontent-length: 0\r\n\r\n"
            ),
        ),
        4 => Script::whole(200, "text/html", format!("<html>{all}</html>")),
        5 => stream().chunk(0, format!("data: {{\"broken {all}\n\n")).last_chunk(0),
        6 => Script::whole(400, "text/plain", format!("{} {all}", "x".repeat(300))),
        _ => stream()
            .chunk(
                0,
                event(&json!({"choices": [{"index": 0, "delta": {"reasoning_content": all}}]})),
            )
            .chunk(1, text(&all))
            .chunk(2, finish("stop"))
            .chunk(2, "data: [DONE]\n\n")
            .last_chunk(2),
    }
}

/// Every file below a directory.
fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[track_caller]
fn clean(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for (door, trace) in traces() {
        if let Some(at) = text.find(&trace) {
            let around: String = text[..at].chars().rev().take(60).collect();
            let around: String = around.chars().rev().collect();
            panic!("{what} holds the key of the {door}, after {around:?}");
        }
    }
}

#[track_caller]
fn clean_output(what: &str, told: &Told) {
    clean(&format!("standard output of {what}"), told.out.as_bytes());
    clean(&format!("standard error of {what}"), told.err.as_bytes());
}

fn key(door: &str) -> &'static str {
    KEYS.iter().find(|(name, _)| *name == door).unwrap().1
}

/// One run with all doors open; the API key from its file or the environment.
fn leak(from_file: bool) {
    let workplace = Workplace::with_metrics();
    let server = Server::start_scripted(echo).unwrap();
    // Kept outside of what is searched.
    let outside = Workplace::with_metrics();
    outside.file("key", format!("{}\n", key("file")));
    let key_file = outside.at("key").display().to_string();
    let url = format!("{}/v1/chat/completions?api-version=1&token={}", server.url(), key("query"));
    let header = format!("X-Secret: {}", key("header"));
    let cookie = format!("Cookie=theme=dark; sid={}", key("cookie"));
    let body = json!({"nested": {"auth_token": "x"}, "api_key": key("extra body")}).to_string();
    let mut arguments = vec![
        "bench",
        "--url",
        &url,
        "--model",
        "m",
        "--prompt",
        "hi",
        "-n",
        "24",
        "-c",
        "2",
        "--header",
        &header,
        "--header",
        &cookie,
        "--extra-body",
        &body,
        "--save-text",
        "--json",
        "summary.json",
        "--out",
        "run",
        "--result-filename",
        "copy.json",
        "--save-result",
        "--allow-invalid",
    ];
    if from_file {
        arguments.extend(["--api-key-file", &key_file]);
    }
    let mut command = workplace.command(&arguments);
    command.env("OPENAI_API_KEY", key("environment"));
    let told = Told::of(command.output().unwrap()).exits(0);
    clean_output("bench", &told);

    // The keys were really sent, and the server really repeated them.
    let mut seen = server.requests();
    seen.retain(|request| request.path() != "/metrics");
    assert_eq!(seen.len(), 24);
    let repeated = everything(&seen[2]);
    let sent_key = if from_file { key("file") } else { key("environment") };
    for (door, secret) in KEYS.iter().filter(|(door, _)| *door != "variable header") {
        let is_api_key = ["file", "environment"].contains(door);
        assert_eq!(repeated.contains(secret), !is_api_key || *secret == sent_key, "{door}");
    }

    for command in [
        &["report", "run"][..],
        &["report", "run", "--json", "-"],
        &["report", "run", "--definitions", "vllm"],
        &["export", "run", "--to", "rows.jsonl"],
        &["runs", "ls", "--runs-dir", "."],
    ] {
        clean_output(&format!("{command:?}"), &workplace.run(command).exits(0));
    }
    let rows = workplace.rows("rows.jsonl");
    let texts = rows.iter().filter(|row| row["text"].as_str().is_some_and(|text| !text.is_empty()));
    assert!(texts.count() >= 6, "texts were kept");
    assert!(rows.iter().any(|row| row["message"].is_string()));
    for path in files(workplace.path()) {
        clean(&path.display().to_string(), &std::fs::read(&path).unwrap());
    }
    let manifest = workplace.read("run/run.json");
    assert!(manifest.contains("[redacted]") && manifest.contains("api-version=1"), "{manifest}");
}

#[test]
fn a_key_from_the_environment_comes_out_nowhere() {
    leak(false);
}

#[test]
fn a_key_from_a_file_comes_out_nowhere() {
    leak(true);
}

#[test]
fn keys_in_variables_and_config_files_come_out_nowhere() {
    let workplace = Workplace::with_metrics();
    let server = Server::start_scripted(echo).unwrap();
    let outside = Workplace::with_metrics();
    outside.file("goodput.toml", format!("url = \"{}/?token={}\"\n", server.url(), key("query")));
    let config = outside.at("goodput.toml").display().to_string();
    let mut command = workplace.command(&[
        "bench",
        "--config",
        &config,
        "--model",
        "m",
        "--prompt",
        "hi",
        "-n",
        "16",
        "-c",
        "1",
        "--json",
        "summary.json",
        "--out",
        "run",
        "--allow-invalid",
        "--save-text",
    ]);
    command.env("GOODPUT_HEADER", format!("X-Secret={}", key("variable header")));
    let told = Told::of(command.output().unwrap()).exits(0);
    assert!(everything(&server.requests()[0]).contains(key("variable header")));
    clean_output("bench", &told);
    clean_output("export", &workplace.run(&["export", "run", "--to", "rows.jsonl"]).exits(0));
    for path in files(workplace.path()) {
        clean(&path.display().to_string(), &std::fs::read(&path).unwrap());
    }
    let mut dry = workplace.command(&["bench", "--config", &config, "--dry-run", "--json", "-"]);
    dry.env("GOODPUT_HEADER", format!("X-Secret={}", key("variable header")));
    clean_output("the dry run", &Told::of(dry.output().unwrap()).exits(0));
}

#[test]
fn a_list_of_models_that_repeats_the_key_does_not_show_it() {
    let workplace = Workplace::with_metrics();
    for status in [200, 401, 404, 500] {
        let server = Server::start_scripted(move |request: &Request| {
            let all = everything(request);
            Script::json(status, &json!({"data": [{"id": all, "owned_by": all}], "error": all}))
        })
        .unwrap();
        let url = format!("{}?token={}", server.url(), key("query"));
        let mut command = workplace.command(&["bench", &url, "-n", "3", "--isl", "8"]);
        command.env("OPENAI_API_KEY", key("environment"));
        let told = Told::of(command.output().unwrap());
        assert!(everything(&server.requests()[0]).contains(key("environment")));
        clean_output("bench", &told);
    }
    for path in files(workplace.path()) {
        clean(&path.display().to_string(), &std::fs::read(&path).unwrap());
    }
}

#[test]
fn mistakes_around_a_key_do_not_show_it() {
    let workplace = Workplace::with_metrics();
    let secret = key("header");
    for arguments in [
        &["--url", &format!("127.0.0.1:9/?token={secret}")][..],
        &["--url", &format!("http://user:{secret}@127.0.0.1:9/")],
        &["--url", &format!("ftp://127.0.0.1:9/?token={secret}")],
        &["--header", secret],
        &["--header", &format!("X-Key: {secret}\nmore")],
        &["--extra-body", &format!("{{\"api_key\": \"{secret}\"")],
    ] {
        let told = workplace.run(&[&["bench", "--model", "m", "-n", "1"], arguments].concat());
        assert_ne!(told.code, Some(0), "{arguments:?}");
        clean_output(&format!("{arguments:?}"), &told);
    }
}
