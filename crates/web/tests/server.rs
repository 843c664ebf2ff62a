//! The server as a browser, a stranger's page and a careless client meet it:
//! over sockets on loopback, on run directories of this test.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use measure::facts::LoadKind;
use report::lang::Lang;
use serde_json::{Value, json};
use store::{RunDirectory, RunId};
use web::{Server, Settings, StartError};
use wire::run::Manifest;

#[allow(dead_code, unused_imports, reason = "the builder serves the tests of measure first")]
#[path = "../../measure/tests/it/build.rs"]
mod build;

const TOKEN: &str = "a-token-of-23-characters";

/// Longer ago than any run here was written: nothing is old.
const fn long_ago() -> u64 {
    0
}

/// In the year 2286: every run is old.
const fn far_ahead() -> u64 {
    10_000_000_000_000
}

/// A server on runs of its own; both are gone at the end.
struct Place {
    folder: PathBuf,
    server: Option<Server>,
}

impl Place {
    fn new() -> Self {
        Self::with(None, far_ahead)
    }

    fn with(token: Option<&str>, now_ms: fn() -> u64) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("goodput-web-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("the name is unique");
        let server = Server::start(Settings {
            bind: "127.0.0.1:0".parse().expect("it is an address"),
            token: token.map(|token| token.parse().expect("it is one")),
            runs_dir: folder.join("runs"),
            lang: Lang::En,
            version: "0.0.0-test",
            now_ms,
        });
        Self { folder, server: Some(server.expect("a port is free")) }
    }

    fn runs(&self) -> PathBuf {
        self.folder.join("runs")
    }

    /// The address without the path.
    fn authority(&self) -> String {
        self.server.as_ref().expect("it runs").address().to_string()
    }

    /// A run of four requests; with a summary when it is done.
    fn run(&self, unix_ms: u64, done: bool) -> String {
        let id = RunId::new(unix_ms, [7; 10]);
        let run = RunDirectory::create_in(&self.runs(), id).expect("it is new");
        let mut facts = build::facts(LoadKind::Open);
        facts.run_id = id.to_string();
        facts.model = Some("</script><b>m</b>".to_owned());
        let records = build::records((0..4).map(|index| {
            let asked = build::request(index).at(i64::from(index) * 100).usage(2);
            asked.event(40, build::TEXT).event(60, build::TEXT).event(61, build::FINISH)
        }));
        let manifest = Manifest {
            argv: Vec::new(),
            settings: Vec::new(),
            facts: facts.clone(),
            host: Vec::new(),
            started_at: "2026-01-01T00:00:00.000000Z".to_owned(),
            anchor_monotonic_ns: 0,
            written_by: "test".to_owned(),
            files: Vec::new(),
            validity: Vec::new(),
            definitions: Vec::new(),
        };
        run.write_json("run.json", &wire::run::encode(&manifest)).expect("the disk takes it");
        run.write_part(0, 0, &records).expect("the disk takes it");
        if done {
            run.finish(0).expect("the parts are whole");
            let summary =
                measure::summary::summarise(&records, &facts, &measure::definition::GOODPUT);
            let summary = wire::summary::to_json(&summary).to_string();
            run.write_json("summary.json", summary.as_bytes()).expect("the disk takes it");
        }
        id.to_string()
    }

    /// Sends bytes as they are and reads the answer to the end.
    fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.authority()).expect("it listens");
        stream.write_all(request).expect("it reads");
        let mut bytes = Vec::new();
        // What came before a reset is an answer too.
        let _ = stream.read_to_end(&mut bytes);
        Answer::of(&bytes)
    }

    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let own = self.authority();
        let mut head = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.push_str(&format!("host: {own}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = body.len();
        self.raw(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes())
    }

    fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[], "")
    }

    /// As the server's own page asks.
    fn change(&self, method: &str, target: &str, body: &str) -> Answer {
        let origin = format!("http://{}", self.authority());
        self.ask(method, target, &[("origin", &origin)], body)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.server.take().expect("it runs").stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Self {
            status: status.unwrap_or_else(|| panic!("no status in {text:?}")),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, text)| text)
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A fault with words for a person, and nothing that a page could run.
    #[track_caller]
    fn fault(&self, status: u16, words: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let object = self.json();
        assert!(object["error"].as_str().is_some_and(|text| text.contains(words)), "{self:?}");
        assert!(object["hint"].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"));
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("it is there").file_name();
    let mut names: Vec<String> =
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_page_may_run_its_own_scripts_and_nothing_else() {
    let place = Place::new();
    let page = place.get("/");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").expect("the page has one");
    for part in [
        "default-src 'none'",
        "script-src 'self' 'sha256-",
        "style-src 'self';",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{part} in {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"));
    for answer in [page, place.get("/api/runs"), place.get("/assets/web.js"), place.get("/no")] {
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{answer:?}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
        assert!(answer.header("cache-control").is_some_and(|text| text.starts_with("no-")));
        assert!(answer.header("content-security-policy").is_some());
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[test]
fn every_script_of_the_import_map_is_there_and_is_sent_once() {
    let place = Place::new();
    let page = place.get("/").body;
    let map = page.split("<script type=\"importmap\">").nth(1).expect("the page has one");
    let map: Value =
        serde_json::from_str(map.split("</script>").next().unwrap_or("")).expect("it is JSON");
    let scripts = map["imports"].as_object().expect("it is an object");
    assert!(scripts.len() > 15);
    for path in scripts.values().filter_map(Value::as_str).chain(["/assets/page.css"]) {
        let asset = place.get(path);
        let kind = if path.ends_with(".css") { "text/css" } else { "text/javascript" };
        assert_eq!(asset.status, 200, "{path}");
        assert_eq!(asset.header("content-type"), Some(format!("{kind}; charset=utf-8").as_str()));
        let tag = asset.header("etag").expect("it has one").to_owned();
        let again = place.ask("GET", path, &[("if-none-match", &tag)], "");
        assert_eq!((again.status, again.body.as_str()), (304, ""), "{path}");
    }
    assert_eq!(place.get("/assets/../page.css").status, 404);
    assert_eq!(place.get("/assets/vendor/..%2fweb.js").status, 404);
}

#[test]
fn a_stranger_behind_another_name_is_refused() {
    let place = Place::new();
    let id = place.run(1, true);
    for host in ["evil.example", "localhost.evil.example", "10.1.2.3"] {
        let path = format!("/api/runs/{id}");
        place.ask("GET", &path, &[("host", host)], "").fault(403, "Host");
        assert_eq!(place.ask("GET", "/", &[("host", host)], "").status, 403);
    }
    let port = place.authority().split(':').nth(1).unwrap_or("").to_owned();
    let own = place.ask("GET", "/", &[("host", &format!("localhost:{port}"))], "");
    assert_eq!(own.status, 200);
    assert_eq!(place.raw(b"GET / HTTP/1.0\r\n\r\n").status, 403);
}

#[test]
fn a_change_is_refused_to_other_pages_and_changes_nothing() {
    let place = Place::new();
    let id = place.run(1, true);
    let body = r#"{"tags":["x"],"note":""}"#;
    let origins = [None, Some("null"), Some("http://evil.example"), Some("http://127.0.0.1:1")];
    for origin in origins {
        let headers: Vec<(&str, &str)> = origin.iter().map(|text| ("origin", *text)).collect();
        let (notes, trash) = (format!("/api/runs/{id}/notes"), format!("/api/runs/{id}/trash"));
        place.ask("PUT", &notes, &headers, body).fault(403, "Origin");
        place.ask("POST", &trash, &headers, "").fault(403, "Origin");
    }
    let line = &place.get("/api/runs").json()["runs"][0];
    assert_eq!((&line["id"], &line["tags"]), (&json!(id), &json!([])));
}

#[test]
fn a_token_is_asked_for_everywhere_and_leaves_the_address() {
    let place = Place::with(Some(TOKEN), far_ahead);
    let id = place.run(1, true);
    for path in ["/", "/assets/web.js", "/nowhere", "/?token=wrong-wrong-wrong-wrong"] {
        let answer = place.get(path);
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        assert!(!answer.body.contains(TOKEN));
    }
    place.get("/api/runs").fault(401, "token");
    let entered = place.get(&format!("/?token={TOKEN}"));
    assert_eq!((entered.status, entered.header("location")), (303, Some("/")));
    let cookie = entered.header("set-cookie").expect("it is remembered");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap_or("").to_owned();
    let listed = place.ask("GET", "/api/runs", &[("cookie", &cookie)], "");
    assert_eq!(listed.json()["runs"][0]["id"], json!(id));
    // A cookie goes along with what other pages ask; a bearer token does not.
    let trash = format!("/api/runs/{id}/trash");
    place.ask("POST", &trash, &[("cookie", &cookie)], "").fault(403, "Origin");
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(place.ask("POST", &trash, &[("authorization", &bearer)], "").status, 200);
}

#[test]
fn without_a_token_only_loopback_is_served() {
    let place = Place::new();
    let settings = Settings {
        bind: "0.0.0.0:0".parse().expect("it is an address"),
        token: None,
        runs_dir: place.runs(),
        lang: Lang::En,
        version: "0",
        now_ms: long_ago,
    };
    let refused = Server::start(settings).map(|_| ()).expect_err("it is open to all");
    assert!(matches!(refused, StartError::Open(_)));
    assert!(refused.to_string().contains("--token"), "{refused}");
    let taken = Settings {
        bind: place.authority().parse().expect("it is one"),
        token: None,
        runs_dir: place.runs(),
        lang: Lang::En,
        version: "0",
        now_ms: long_ago,
    };
    let refused = Server::start(taken).map(|_| ()).expect_err("another one is there");
    assert!(refused.to_string().contains("--port"), "{refused}");
}

#[test]
fn the_list_has_every_run_with_its_figures_or_its_reason() {
    let place = Place::new();
    assert_eq!(place.get("/api/runs").json(), json!({"runs": [], "of": 0}));
    let (done, damaged, cut) = (place.run(3, true), place.run(2, true), place.run(1, false));
    fs::write(place.runs().join(&damaged).join("run.json"), "{").expect("the disk takes it");
    let listed = place.get("/api/runs").json();
    let of = |place: usize| listed["runs"][place].clone();
    assert_eq!(listed["of"], 3);
    assert_eq!((&of(0)["id"], &of(0)["state"]), (&json!(done), &json!("done")));
    assert_eq!((&of(0)["ok"], &of(0)["ttft_p50_ms"]), (&json!(4), &json!(40.0)));
    assert_eq!((&of(0)["made_ms"], &of(0)["model"]), (&json!(3), &json!("</script><b>m</b>")));
    assert_eq!((&of(1)["id"], &of(1)["state"]), (&json!(damaged), &json!("unreadable")));
    assert!(of(1)["reason"].as_str().is_some_and(|text| text.contains("run.json")));
    assert_eq!((&of(2)["id"], &of(2)["state"]), (&json!(cut), &json!("cut_off")));
    place.get(&format!("/api/runs/{damaged}")).fault(422, "run.json");
}

#[test]
fn a_run_is_page_data_as_a_report_holds_it() {
    let place = Place::new();
    let id = place.run(1, true);
    let told = place.get(&format!("/api/runs/{id}")).json();
    assert_eq!((&told["run"]["id"], &told["state"]), (&json!(id), &json!("done")));
    assert_eq!(told["run"]["notes"], json!([]));
    assert_eq!(told["run"]["picture"]["requests"]["of"], 4);
    assert!(told["run"]["documents"]["zh"]["sections"].is_array());
    // It is kept, and read again when its rows change.
    let rows = place.runs().join(&id).join("requests-0.parquet");
    fs::write(rows, "no rows").expect("the disk takes it");
    place.get(&format!("/api/runs/{id}")).fault(422, "requests-0.parquet");
}

#[test]
fn a_run_without_rows_is_listed_and_says_why_it_has_no_page() {
    let place = Place::new();
    let id = place.run(1, true);
    let manifest = place.runs().join(&id).join("run.json");
    let bytes = fs::read(&manifest).expect("it was written");
    let mut counted: Value = serde_json::from_slice(&bytes).expect("JSON");
    counted["facts"]["rows_kept"] = json!(false);
    fs::write(&manifest, counted.to_string()).expect("the disk takes it");
    let listed = place.get("/api/runs").json();
    assert_eq!((&listed["runs"][0]["id"], &listed["runs"][0]["ok"]), (&json!(id), &json!(4)));
    place.get(&format!("/api/runs/{id}")).fault(422, "kept no rows (--no-events)");
}

#[test]
fn a_run_that_is_being_written_can_be_read_and_not_moved() {
    let place = Place::with(None, long_ago);
    let id = place.run(1, false);
    assert_eq!(place.get("/api/runs").json()["runs"][0]["state"], "writing");
    let told = place.get(&format!("/api/runs/{id}")).json();
    assert_eq!((&told["state"], &told["run"]["id"]), (&json!("writing"), &json!(id)));
    place.change("POST", &format!("/api/runs/{id}/trash"), "").fault(409, "being written");
    assert_eq!(entries(&place.runs()), [id]);
}

#[test]
fn no_id_leads_out_of_the_runs_directory() {
    let place = Place::new();
    let id = place.run(1, true);
    let secret = place.folder.join("secret");
    fs::create_dir(&secret).expect("the name is free");
    fs::copy(place.runs().join(&id).join("run.json"), secret.join("run.json"))
        .expect("it is there");
    std::os::unix::fs::symlink(&secret, place.runs().join("link")).expect("the name is free");
    for other in [
        "..%2fsecret",
        "%2e%2e%2fsecret",
        "..",
        "%2e",
        "link",
        "latest",
        "..%5csecret",
        "a%00b",
        &id[..8],
        &secret.display().to_string().replace('/', "%2f"),
    ] {
        let path = format!("/api/runs/{other}");
        place.get(&path).fault(404, "no run of this id");
        place
            .change("PUT", &format!("{path}/notes"), r#"{"tags":[],"note":""}"#)
            .fault(404, "no run");
        place.change("POST", &format!("{path}/trash"), "").fault(404, "no run");
    }
    place.get("/api/runs/../../secret").fault(404, "nothing at this path");
    assert_eq!(entries(&secret), ["run.json"]);
    place.get(&format!("/api/runs/{}", RunId::new(9, [1; 10]))).fault(404, "no run of this id");
}

#[test]
fn notes_come_back_and_limits_are_told() {
    let place = Place::new();
    let id = place.run(1, true);
    let path = format!("/api/runs/{id}/notes");
    let notes = json!({"tags": ["基线", "a b"], "note": "<b>one</b>\ntwo"});
    assert_eq!(place.change("PUT", &path, &notes.to_string()).json(), notes);
    let listed = place.get("/api/runs").json();
    let told = place.get(&format!("/api/runs/{id}")).json();
    for kept in [&listed["runs"][0], &told] {
        assert_eq!((&kept["tags"], &kept["note"]), (&notes["tags"], &notes["note"]));
    }
    place.change("PUT", &path, "{").fault(422, "notes are");
    place.change("PUT", &path, &json!({"tags": [""], "note": ""}).to_string()).fault(422, "tag");
    let long = json!({"tags": [], "note": "x".repeat(4_001)}).to_string();
    place.change("PUT", &path, &long).fault(422, "4000");
    place.change("PUT", &path, &"x".repeat(70_000)).fault(413, "larger");
    let chunked = format!(
        "PUT {path} HTTP/1.1\r\nhost: {0}\r\norigin: http://{0}\r\nconnection: close\r\n\
         transfer-encoding: chunked\r\n\r\n{1:x}\r\n{2}\r\n0\r\n\r\n",
        place.authority(),
        70_000,
        "x".repeat(70_000)
    );
    place.raw(chunked.as_bytes()).fault(413, "larger");
    assert_eq!(place.get("/api/runs").json()["runs"][0]["tags"], notes["tags"]);
    fs::write(place.runs().join(&id).join("notes.json"), "{").expect("the disk takes it");
    place.change("PUT", &path, &notes.to_string()).fault(422, "notes.json");
    assert!(place.get("/api/runs").json()["runs"][0]["notes_fault"].is_string());
}

#[test]
fn a_run_goes_to_the_trash_and_off_the_list() {
    let place = Place::new();
    let (id, other) = (place.run(1, true), place.run(2, true));
    assert_eq!(place.get(&format!("/api/runs/{id}")).status, 200);
    let moved = place.change("POST", &format!("/api/runs/{id}/trash"), "");
    assert_eq!(moved.status, 200, "{moved:?}");
    assert_eq!(entries(&place.runs().join(".trash")), std::slice::from_ref(&id));
    assert_eq!(place.get("/api/runs").json()["of"], 1);
    place.get(&format!("/api/runs/{id}")).fault(404, "no run of this id");
    place.change("POST", &format!("/api/runs/{id}/trash"), "").fault(404, "no run of this id");
    assert_eq!(place.get(&format!("/api/runs/{other}")).status, 200);
}

#[test]
fn wrong_methods_and_paths_are_told() {
    let place = Place::new();
    let id = place.run(1, true);
    let wrong = place.change("DELETE", &format!("/api/runs/{id}"), "");
    wrong.fault(405, "GET, HEAD");
    assert_eq!(wrong.header("allow"), Some("GET, HEAD"));
    place.get(&format!("/api/runs/{id}/trash")).fault(405, "POST");
    place.get("/api/other").fault(404, "nothing at this path");
    let head = place.ask("HEAD", "/", &[], "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(place.raw(b"not HTTP at all\r\n\r\n").status, 400);
}
