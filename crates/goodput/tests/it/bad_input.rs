//! Bad input: one sentence with a hint, the right exit code, no panic.

use fake::{Request, Script, Server};
use serde_json::{Value, json};

use crate::program::{Told, Workplace};
use crate::servers::{closed_port, engine, playing, refusing, stream, text};

/// Runs one request against a script; gives its row and what was told.
#[track_caller]
fn one(script: Script, more: &[&str], code: i32) -> (Value, Told) {
    let (workplace, server) = (Workplace::new(), playing(script));
    let arguments = [&["-n", "1", "-c", "1", "--out", "run"], more].concat();
    let told = workplace.judged_bench(&server.url(), &arguments).exits(code);
    let [row] = <[Value; 1]>::try_from(workplace.export("run")).unwrap();
    (row, told)
}

#[test]
fn a_host_that_does_not_resolve() {
    let workplace = Workplace::new();
    // An empty label cannot be put into a question, so no resolver is asked.
    let told = workplace.bench("http://no..host:1", &["-n", "9"]).exits(3);
    told.says(&["dns", "no..host", "host name"]);
}

#[test]
fn a_server_that_does_not_know_the_model() {
    let (workplace, server) = (Workplace::new(), refusing(404, "The model `m` does not exist."));
    let told = workplace.bench(&server.url(), &["-n", "20", "-c", "1"]).exits(3);
    told.says(&["404", "The model `m` does not exist.", "404 another path"]);
    let told = workplace.run(&["bench", &server.url()]).exits(2);
    told.says(&["--model", "404"]);
}

#[test]
fn a_server_that_wants_less() {
    let refusal =
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\ncontent-length: 9\r\n\r\nslow down";
    let (row, _) = one(Script::new().send(0, refusal), &[], 4);
    assert_eq!((&row["kind"], &row["status"]), (&"http_status".into(), &429.into()));
    assert_eq!((&row["retry_after_s"], &row["message"]), (&2.0.into(), &"slow down".into()));
    assert!(row["ttft_ms"].is_null());
}

#[test]
fn a_login_page_in_place_of_a_stream() {
    let page = Script::whole(200, "text/html", "<html><title>Please sign in</title></html>");
    let (row, told) = one(page, &[], 4);
    assert_eq!(row["kind"], "bad_content_type");
    assert!(row["message"].as_str().unwrap().contains("Please sign in"), "{row}");
    assert!(told.out.contains("bad_content_type"), "{}", told.out);
}

#[test]
fn a_body_without_end() {
    let comment = ": still here\n\n";
    let chunk = format!("{:x}\r\n{comment}\r\n", comment.len());
    let script = Script::new().chunked_head(0, 200, "text/event-stream").endless(0, 5, chunk);
    let (row, _) = one(script, &["--request-timeout", "300ms"], 4);
    assert_eq!(row["kind"], "total_timeout");
}

#[test]
fn a_server_that_never_answers() {
    let (row, told) = one(Script::new().stall(0), &["--request-timeout", "200ms"], 3);
    assert_eq!(row["kind"], "total_timeout");
    told.says(&["gave no HTTP response (total_timeout)", "--request-timeout"]);
}

#[test]
fn silence_in_the_middle() {
    let script = Script::new().chunked_head(0, 200, "text/event-stream").chunk(0, text("one"));
    let (row, told) = one(script.stall(0), &["--idle-timeout", "100ms"], 4);
    assert_eq!(row["kind"], "idle_timeout");
    assert!(told.out.contains("--idle-timeout"), "no hint in\n{}", told.out);
}

#[test]
fn bytes_that_are_no_utf8_and_no_json() {
    let stream = || Script::new().chunked_head(0, 200, "text/event-stream");
    let (row, _) = one(stream().chunk(0, b"data: {\"a\": \xff\xfe}\n\n").last_chunk(0), &[], 4);
    assert_eq!(row["kind"], "malformed_event");
    let (row, _) = one(stream().chunk(0, "data: {\"choices\": [\n\n").last_chunk(0), &[], 4);
    assert_eq!(row["kind"], "malformed_event");
    assert!(row["message"].is_string());
    let (row, _) = one(Script::new().send(0, b"\x00\xff\x80 nonsense\r\n\r\n").close(0), &[], 3);
    assert_eq!(row["kind"], "malformed_http");
}

#[test]
fn a_run_is_never_written_over_another() {
    let (workplace, server) = (Workplace::new(), engine());
    workplace.bench(&server.url(), &["-n", "1", "--osl", "2", "--out", "run"]).exits(0);
    let before = workplace.read("run/summary.json");
    let sent = server.requests().len();
    let told = workplace.bench(&server.url(), &["-n", "1", "--osl", "2", "--out", "run"]).exits(2);
    let told = told.says(&["run", "never written over", "--out"]);
    assert_eq!(told.errors().len(), 1);
    assert_eq!(workplace.read("run/summary.json"), before);
    assert_eq!(server.requests().len(), sent, "nothing is sent before the place is found taken");
    // An empty directory is fine, a file is not.
    std::fs::create_dir(workplace.at("empty")).unwrap();
    workplace.bench(&server.url(), &["-n", "1", "--osl", "2", "--out", "empty"]).exits(0);
    let file = workplace.file("file", "x");
    workplace.bench(&server.url(), &["-n", "1", "--out", file]).exits(2);
}

#[test]
fn a_full_disk_is_1_and_the_run_is_kept() {
    let (workplace, server) = (Workplace::new(), engine());
    let told = workplace
        .bench(&server.url(), &["-n", "2", "--osl", "2", "--json", "/dev/full", "--out", "run"]);
    let told = told.exits(1).says(&["/dev/full", "free some space"]);
    assert_eq!(told.errors().len(), 1, "{}", told.err);
    assert!(told.out.contains("run directory"), "the report is lost");
    assert_eq!(workplace.export("run").len(), 2);
}

#[test]
fn a_run_directory_on_a_full_disk_is_found_before_anything_is_sent() {
    let (workplace, server) = (Workplace::new(), engine());
    let disk = workplace.at("disk");
    std::fs::create_dir(&disk).unwrap();
    // A mount that only this process tree sees goes away with it.
    let inside = |script: String| {
        let arguments = ["--user", "--map-root-user", "--mount", "sh", "-c", script.as_str()];
        std::process::Command::new("unshare").args(arguments).current_dir(workplace.path()).output()
    };
    let mount = format!("mount -t tmpfs -o size=256k none {}", disk.display());
    if !inside(format!("{mount} && exit 0")).is_ok_and(|output| output.status.success()) {
        // Where nothing can be mounted the other tests of full disks stand alone.
        return;
    }
    let bench = format!(
        "{mount} && exec {} bench --url {} --model m --prompt hi -n 2 --out disk/run",
        env!("CARGO_BIN_EXE_goodput"),
        server.url()
    );
    let told = Told::of(inside(bench).unwrap()).exits(1).says(&["disk/run", "free some space"]);
    assert_eq!(told.errors().len(), 1, "{}", told.err);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn files_that_cannot_be_read_are_named_with_their_flag() {
    let workplace = Workplace::new();
    std::fs::create_dir(workplace.at("folder")).unwrap();
    for file in ["missing", "folder"] {
        for (flag, more) in [
            ("--dataset-path", &["--dataset-name", "custom"][..]),
            ("--api-key-file", &[]),
            ("--config", &[]),
            ("--cacert", &[]),
        ] {
            let start = ["bench", "--url", "https://127.0.0.1:9", "--model", "m", flag, file];
            let told = workplace.run(&[&start, more].concat()).exits(2).says(&[flag, file]);
            assert_eq!(told.errors().len(), 1, "{}", told.err);
        }
        workplace.run(&["import", file]).exits(2).says(&[file]);
        workplace.run(&["report", file]).exits(2).says(&[file]);
    }
    let told = workplace.bench("http://127.0.0.1:9", &["--json", "no/such/folder.json"]).exits(2);
    told.says(&["no/such/folder.json", "check the path"]);
    workplace
        .bench("http://127.0.0.1:9", &["--api-key-env", "NO_SUCH_VARIABLE"])
        .exits(2)
        .says(&["--api-key-env", "NO_SUCH_VARIABLE"]);
    let nothing = workplace.file("nothing.pem", "no certificate");
    let told = workplace.bench("https://127.0.0.1:9", &["--cacert", nothing]).exits(2);
    told.says(&["--cacert", "PEM"]);
    let empty = workplace.file("empty.jsonl", "");
    let told = workplace
        .bench("http://127.0.0.1:9", &["--dataset-name", "custom", "--dataset-path", empty]);
    told.exits(2).says(&["--dataset-path"]);
}

#[test]
fn damaged_run_directories_are_told_and_do_not_crash() {
    let (workplace, server) = (Workplace::new(), engine());
    workplace.bench(&server.url(), &["-n", "4", "--osl", "2", "--out", "run"]).exits(0);
    let rows: Vec<_> = std::fs::read_dir(workplace.at("run"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "parquet"))
        .collect();
    assert_eq!(rows.len(), 1);
    let bytes = std::fs::read(&rows[0]).unwrap();
    std::fs::write(&rows[0], &bytes[..bytes.len() / 2]).unwrap();
    let told = workplace.run(&["report", "run"]);
    assert_ne!(told.code, Some(0), "half a file is no run: {}", told.out);
    std::fs::write(workplace.at("run/run.json"), "{\"format\": ").unwrap();
    workplace.run(&["report", "run"]).exits(2).says(&["run.json"]);
    std::fs::remove_file(workplace.at("run/run.json")).unwrap();
    workplace.run(&["report", "run"]).exits(2).says(&["run.json"]);
    workplace.run(&["report", "."]).exits(2).says(&["not a run directory"]);
}

#[test]
fn a_target_that_is_not_there_yet_is_waited_for() {
    let workplace = Workplace::new();
    let told = workplace.bench(&closed_port(), &["-n", "1", "--ready-timeout", "600ms"]).exits(3);
    told.says(&["took no connection within"]);
    let server = engine();
    let arguments = ["-n", "1", "--osl", "2", "--ready-check-timeout-sec", "5"];
    workplace.bench(&server.url(), &arguments).exits(0);
    assert_eq!(server.requests().len(), 1, "readiness sends no request");
}

#[test]
fn the_first_model_that_is_listed_is_asked() {
    let workplace = Workplace::new();
    let server = Server::start_scripted(|request: &Request| match request.path() {
        "/v1/models" => {
            Script::json(200, &json!({"data": [{"id": "first", "owned_by": "vllm"}, {"id": "b"}]}))
        }
        "/v1/chat/completions" => stream(&["a", "b"], 1),
        _ => Script::whole(404, "text/plain", ""),
    })
    .unwrap();
    for url in [server.url(), format!("{}/v1", server.url()), format!("{}/v1/", server.url())] {
        let told = workplace.run(&[
            "bench",
            &url,
            "-n",
            "2",
            "--isl",
            "8",
            "--json",
            "-",
            "--allow-invalid",
        ]);
        let summary = told.exits(0).json();
        assert_eq!((&summary["model"], &summary["engine"]), (&"first".into(), &"vllm".into()));
    }
    let body: Value = serde_json::from_slice(&server.requests()[1].body).unwrap();
    assert_eq!(body["model"], "first");
}

#[test]
fn a_reader_that_goes_away_is_no_crash() {
    let (workplace, server) = (Workplace::new(), engine());
    let mut command = workplace.bench_command(
        &server.url(),
        &["-n", "2", "--osl", "2", "--out", "run", "--allow-invalid"],
    );
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    Told::of(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(workplace.export("run").len(), 2);
}

#[test]
fn a_load_that_makes_no_sense() {
    let workplace = Workplace::new();
    let ramp = |strategy, start, end| {
        format!("--ramp-up-strategy={strategy} --ramp-up-start-rps={start} --ramp-up-end-rps={end}")
    };
    let cases = [
        ("--request-rate=-3".to_owned(), "--request-rate must be greater than 0"),
        ("--stages=5:30s,,6:1s".to_owned(), "stage 2 is \"\"; write RATE:DURATION"),
        ("--stages=5 --arrivals=uniform".to_owned(), "stage 1 is \"5\""),
        ("--load-shape=inf".to_owned(), "is no shape"),
        ("--stages=5".to_owned(), "stage 1 is \"5\""),
        ("--stages=".to_owned(), "stage 1 is \"\""),
        ("--stages=4:1s,-5:30s".to_owned(), "stage 2 of --stages must have a rate from 0; got -5"),
        ("--stages=5:0s".to_owned(), "stage 1 of --stages must last longer than 0"),
        ("--stages=0:5s".to_owned(), "every rate of --stages is 0"),
        ("--stages=5:5s --request-rate=4".to_owned(), "so does --request-rate; give one"),
        ("--load-shape=saw:x=1".to_owned(), "is no shape; write sine:mean=10"),
        ("--load-shape=sine:mean=5".to_owned(), "lacks amplitude, period"),
        ("--load-shape=sine:mean=5,mean=4".to_owned(), "mean stands there twice"),
        ("--load-shape=sine:middle=5".to_owned(), "not one of mean, amplitude, period"),
        ("--load-shape=sine:mean=5,amplitude=6,period=1m".to_owned(), "its mean of 5"),
        ("--load-shape=sine:mean=5,amplitude=x,period=1m".to_owned(), "\"x\" is not a rate"),
        ("--load-shape=sine:mean=5,amplitude=1,period=0".to_owned(), "period of a sine"),
        ("--load-shape=bursts:on=-1,off=0,on_for=5s,off_for=1s".to_owned(), "on of bursts"),
        ("--load-shape=bursts:on=1,off=0,on_for=5s,off_for=0s".to_owned(), "off_for of bursts"),
        ("--load-shape=bursts:on=1,off=0,on_for=x,off_for=1s".to_owned(), "not a duration"),
        (ramp("cubic", 1, 2), "not one of linear, exponential"),
        (ramp("linear", -1, 2), "--ramp-up-start-rps must be a number from 0; got -1"),
        (ramp("linear", 1, 0), "--ramp-up-end-rps must be a number above 0; got 0"),
        (ramp("exponential", 0, 2), "above 0 for an exponential ramp"),
        (
            "--ramp-up-strategy=linear --ramp-up-end-rps=1".to_owned(),
            "--ramp-up-start-rps: is missing",
        ),
        ("--ramp-up-start-rps=4".to_owned(), "needs --ramp-up-strategy"),
        ("--arrivals=weird --request-rate=4".to_owned(), "constant, poisson, gamma, uniform"),
        ("--arrivals=gamma --request-rate=4".to_owned(), "gamma needs --burstiness"),
        ("--arrivals=uniform --burstiness=2 --request-rate=4".to_owned(), "leave out --burstiness"),
        ("--arrivals=poisson -c=4".to_owned(), "give --request-rate, --stages"),
        ("--think-time=-1 -c=4".to_owned(), "not a duration"),
        ("--think-time=normal:mean=1s -c=4".to_owned(), "write 2s, exponential:mean=2s"),
        ("--think-time=uniform:from=3s,to=1s -c=4".to_owned(), "must not be over the longest"),
        ("--think-time=1s --request-rate=4".to_owned(), "leave out the rate and give -c"),
    ];
    for (flags, words) in cases {
        let mut arguments = vec!["bench", "--dry-run", "--url", "http://h:1"];
        arguments.extend(flags.split_whitespace());
        let told = workplace.run(&arguments).exits(2);
        assert!(told.err.contains(words), "{flags}: {}", told.err);
        assert_eq!(told.err.lines().count(), 1, "{flags}: {}", told.err);
    }
}
