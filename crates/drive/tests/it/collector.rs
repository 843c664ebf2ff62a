//! Collectors: what is read of servers and exporters beside a load, and what is
//! said where nothing is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use drive::collector::{Collector, Exporter, Place, Plan};
use drive::secret::Secrets;
use drive::tls::{Trust, client_config};
use drive::{Clock, Target};
use fake::{Request, Script, Server};
use measure::{At, Outcome, Span};
use wire::scrapes::{Collected, Source};
use wire::url::Url;

use crate::build::{Bench, answer, closed};
use crate::tls::Secure;

/// A reading may take most of this, on a busy machine too.
const INTERVAL: Span = Span::from_ms(1_000);

fn exporter(url: &str) -> Exporter {
    Exporter {
        name: "it".to_owned(),
        target: Target {
            url: Url::parse(url).unwrap(),
            tls: client_config(&Trust::Anybody).unwrap(),
        },
        headers: vec![("Authorization".to_owned(), "Bearer sk-collector".to_owned())],
        is_found: true,
    }
}

fn plan(place: Place) -> Plan {
    plan_every(INTERVAL, place)
}

fn plan_every(interval: Span, place: Place) -> Plan {
    let mut secrets = Secrets::default();
    secrets.add("Bearer sk-collector");
    Plan { places: vec![place], interval, secrets }
}

/// Collects from before `meanwhile` until after it.
fn collect(place: Place, meanwhile: impl FnOnce()) -> Collected {
    let collector = Collector::start(plan(place)).unwrap();
    meanwhile();
    collector.finish(Clock::starting_in(Span::ZERO))
}

fn one(collected: Collected) -> Source {
    let [source] = <[Source; 1]>::try_from(collected.sources).unwrap();
    source
}

/// The source of an exporter that answers every request so.
fn told(answer: impl FnMut(&Request) -> Script + Send + 'static) -> (Source, Vec<Request>) {
    let server = Server::start_scripted(answer).unwrap();
    let source =
        one(collect(Place::Exporter(exporter(&format!("{}/metrics", server.url()))), || ()));
    (source, server.requests())
}

fn text(body: &str) -> Script {
    Script::whole(200, "text/plain", body)
}

#[track_caller]
fn value(source: &Source, scrape: usize, family: &str) -> f64 {
    let exposition = &source.scrapes[scrape].exposition;
    exposition.family(family).unwrap().samples().next().unwrap().value
}

#[test]
fn metrics_are_read_before_during_and_after_a_load() {
    let count = Arc::new(AtomicU32::new(0));
    let own = Arc::clone(&count);
    let server = Server::start_scripted(move |request: &Request| match request.path() {
        "/metrics" => text(&format!("x_total {}\n", own.load(Ordering::Relaxed))),
        _ => {
            own.fetch_add(1, Ordering::Relaxed);
            answer(60)
        }
    })
    .unwrap();
    let mut records = Vec::new();
    let collected = {
        let place = Place::Exporter(exporter(&format!("{}/metrics", server.url())));
        let collector = Collector::start(plan(place)).unwrap();
        let ran = Bench::at(&server.url()).load(closed(2), 10).run();
        ran.all_ok();
        records.extend(ran.records);
        collector.finish(ran.end.clock)
    };
    let source = one(collected);
    let last = source.scrapes.len() - 1;
    assert_eq!((value(&source, 0, "x_total"), value(&source, last, "x_total")), (0.0, 10.0));
    assert!(last >= 1, "{last}");
    assert!(source.failed.is_empty(), "{:?}", source.failed);
    let sent_at = records.iter().filter_map(|record| record.stamps.sent_at).min().unwrap();
    let ended_at = records.iter().filter_map(|record| record.stamps.ended_at).max().unwrap();
    assert!(source.scrapes[0].at <= sent_at && source.scrapes[last].at >= ended_at);
    assert!(source.scrapes.windows(2).all(|pair| pair[0].at < pair[1].at));
    // One connection carries all readings, with the run's headers.
    let readings: Vec<Request> =
        server.requests().into_iter().filter(|request| request.path() == "/metrics").collect();
    assert!(readings.iter().all(|request| request.connection == readings[0].connection));
    assert_eq!(readings[0].header("authorization"), Some("Bearer sk-collector"));
}

#[test]
fn what_will_never_tell_metrics_is_asked_once_and_the_reason_is_kept() {
    let page = "<!DOCTYPE html><html><body>Log in</body></html>";
    let cases: [(&str, Script, &str); 6] = [
        ("no metrics", Script::whole(404, "text/plain", "no"), "answered 404"),
        ("a key is wanted", Script::whole(401, "text/plain", "no"), "--metrics-header"),
        ("a login page", Script::whole(200, "text/html", page), "a page of HTML"),
        ("something else", text("hello\nworld\n"), "is not Prometheus' text"),
        (
            "another server",
            redirect("https://elsewhere.example/x?key=1"),
            "redirects to https://elsewhere.example/x,",
        ),
        ("a circle", redirect("/metrics"), "again and again"),
    ];
    for (what, script, reason) in cases {
        let (source, _) = told(move |_| script.clone());
        assert!(source.scrapes.is_empty(), "{what}");
        let [failed] = &*source.failed else { panic!("{what}: {:?}", source.failed) };
        assert_eq!(failed.count, 1, "{what}");
        assert!(failed.reason.contains(reason), "{what}: {}", failed.reason);
    }
}

fn redirect(location: &str) -> Script {
    Script::new().send(
        0,
        format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
        ),
    )
}

#[test]
fn a_redirect_to_another_path_is_followed() {
    let (source, requests) = told(|request| match request.path() {
        "/metrics" => redirect("/metrics/"),
        _ => text("x 1\n"),
    });
    assert_eq!(value(&source, 0, "x"), 1.0);
    let redirected = requests.iter().filter(|request| request.path() == "/metrics").count();
    assert_eq!(redirected, 1, "the next readings go there at once");
}

#[test]
fn after_json_metrics_are_looked_for_where_that_server_has_them() {
    let (source, _) = told(|request| match request.path() {
        "/metrics" => Script::json(200, &serde_json::json!([])),
        "/prometheus/metrics" => text("x 1\n"),
        path => panic!("{path} was asked for"),
    });
    assert_eq!(value(&source, 0, "x"), 1.0);
    let (source, requests) = told(|request| match request.path() {
        "/metrics" => Script::json(200, &serde_json::json!([])),
        _ => Script::json(404, &serde_json::json!({})),
    });
    let reason = &source.failed[0].reason;
    assert!(reason.contains("answered JSON") && reason.contains("answered 404"), "{reason}");
    assert_eq!(requests.len(), 2, "its statistics are not drained");
}

#[test]
fn an_exposition_that_is_too_long_is_not_read_to_its_end() {
    let body = "x 1\n".repeat(50 << 18);
    assert!(body.len() >= 50_000_000);
    let server = Server::start_scripted(move |_: &Request| text(&body)).unwrap();
    let place = Place::Exporter(exporter(&server.url()));
    // Time enough for what is read of it, however busy the machine is.
    let plan = plan_every(Span::from_ms(10_000), place);
    let source = one(Collector::start(plan).unwrap().finish(Clock::starting_in(Span::ZERO)));
    let requests = server.requests();
    assert!(source.failed[0].reason.contains("longer than 16 MiB"), "{:?}", source.failed);
    assert_eq!(requests.len(), 1, "it is not asked again");
}

#[test]
fn an_exporter_that_hangs_disturbs_no_request() {
    let server = Server::start_scripted(|request: &Request| match request.path() {
        "/metrics" => Script::new().chunked_head(0, 200, "text/plain").chunk(0, "x 1\n").stall(0),
        _ => answer(50),
    })
    .unwrap();
    let place = Place::Exporter(exporter(&format!("{}/metrics", server.url())));
    let source = one(collect(place, || {
        let ran = Bench::at(&server.url()).load(closed(2), 8).run();
        assert_eq!(ran.count(Outcome::Ok), 8);
    }));
    assert!(source.scrapes.is_empty());
    assert_eq!(source.failed.len(), 1, "{:?}", source.failed);
    assert!(source.failed[0].reason.contains("no answer within"), "{:?}", source.failed);
    assert!(source.failed[0].count >= 2, "it is tried again");
}

#[test]
fn an_exporter_that_comes_back_is_read_again() {
    let count = AtomicU32::new(0);
    let (source, _) = {
        let server = Server::start_scripted(move |_: &Request| {
            match count.fetch_add(1, Ordering::Relaxed) {
                0 => Script::whole(503, "text/plain", "starting"),
                1 => text(""),
                2 => text("# nothing was counted yet\n"),
                _ => text("x 1\n"),
            }
        })
        .unwrap();
        let place = Place::Exporter(exporter(&server.url()));
        let collector = Collector::start(plan_every(Span::from_ms(300), place)).unwrap();
        let asked = || server.requests().len();
        while asked() < 5 {
            std::thread::yield_now();
        }
        (one(collector.finish(Clock::starting_in(Span::ZERO))), ())
    };
    assert!(!source.scrapes.is_empty());
    assert_eq!(source.failed.len(), 3, "{:?}", source.failed);
}

#[test]
fn a_key_that_an_exporter_echoes_is_not_kept() {
    let (source, _) = told(|_| text("x{key=\"sk-collector\"} 1\n"));
    let sample = source.scrapes[0].exposition.family("x").unwrap().samples().next().unwrap();
    assert_eq!(sample.labels.get("key"), Some("[redacted]"));
    let (source, _) = told(|_| text("sk-collector is not a key here\n"));
    assert!(!source.failed[0].reason.contains("sk-collector"), "{}", source.failed[0].reason);
}

#[test]
fn metrics_are_read_over_tls() {
    let secure = Secure::start("localhost");
    let source = one(collect(Place::Exporter(exporter(&secure.url("/metrics"))), || ()));
    // That server tells everybody a stream of tokens, which is no exposition.
    assert!(source.failed[0].reason.contains("not Prometheus' text"), "{:?}", source.failed);
}

#[test]
fn nobody_at_the_address_is_a_reason() {
    let source = one(collect(Place::Exporter(exporter("http://127.0.0.1:9/metrics")), || ()));
    assert!(source.scrapes.is_empty());
    assert!(source.failed[0].reason.contains("refused"), "{:?}", source.failed);
}

#[test]
fn a_machine_without_the_drivers_library_says_so() {
    let source = one(collect(Place::Nvml { is_found: false }, || ()));
    assert_eq!(source.name, "nvml");
    // Where there is a driver, it is read instead.
    assert!(!source.scrapes.is_empty() || source.failed[0].reason.contains("NVIDIA"));
}

#[test]
fn a_prometheus_server_is_asked_once_by_its_own_clock() {
    // Its clock is a century ahead: only differences of it are believed.
    const NOW_S: u64 = 4_900_000_000;
    let server = Server::start_scripted(|request: &Request| {
        let query = request.target.clone();
        let result = if query.contains("time()") {
            serde_json::json!({"resultType": "scalar", "result": [NOW_S, NOW_S.to_string()]})
        } else {
            let values = [(NOW_S - 10, "1"), (NOW_S - 5, "2")];
            let name = "vllm:num_requests_running";
            let metric = serde_json::json!({"__name__": name, "instance": "a:8000", "job": "v"});
            let series = serde_json::json!({"metric": metric, "values": values});
            serde_json::json!({"resultType": "matrix", "result": [series]})
        };
        Script::json(200, &serde_json::json!({"status": "success", "data": result}))
    })
    .unwrap();
    let exporter = exporter(&server.url());
    let place = Place::PrometheusServer(exporter, "job=\"v\"".to_owned());
    let collector = Collector::start(plan(place)).unwrap();
    assert!(server.requests().is_empty(), "not before the run is over");
    let run = Clock::starting_in(Span::ZERO);
    let source = one(collector.finish(run));
    assert_eq!(source.name, "a:8000 by it");
    assert_eq!(value(&source, 1, "vllm:num_requests_running"), 2.0);
    let at: Vec<At> = source.scrapes.iter().map(|scrape| scrape.at).collect();
    assert_eq!((at[1] - at[0]).us(), 5_000_000);
    // Five seconds before it was asked, which was after `run` began.
    let since = (at[1] - At::ZERO).s();
    assert!((-5.0..55.0).contains(&since), "{since}");
}

#[test]
fn each_reading_is_told_as_it_comes() {
    let count = AtomicU32::new(0);
    let server =
        Server::start_scripted(move |_: &Request| match count.fetch_add(1, Ordering::Relaxed) {
            1 => Script::whole(503, "text/plain", "busy"),
            n => text(&format!("x {n}\n")),
        })
        .unwrap();
    let (outlet, news) = std::sync::mpsc::channel();
    let plan = plan_every(Span::from_ms(300), Place::Exporter(exporter(&server.url())));
    let collector = Collector::telling(plan, outlet).unwrap();
    let told: Vec<_> = news.iter().take(3).collect();
    assert!(told.iter().all(|news| news.source == "it"));
    assert!(told.windows(2).all(|pair| pair[0].at < pair[1].at));
    let kinds = [told[0].reading.is_ok(), told[1].reading.is_ok(), told[2].reading.is_ok()];
    assert_eq!(kinds, [true, false, true]);
    assert!(told[2].at <= collector.clock().now());
    collector.finish(Clock::starting_in(Span::ZERO));
}

#[test]
fn who_is_told_of_each_reading_hears_of_a_place_that_refused_before() {
    let count = AtomicU32::new(0);
    let server = Server::start_scripted(move |request: &Request| match request.path() {
        "/login" => Script::whole(200, "text/html", "<html>log in</html>"),
        _ if count.fetch_add(1, Ordering::Relaxed) == 0 => redirect("/login"),
        _ => text("x 1\n"),
    })
    .unwrap();
    let (outlet, news) = std::sync::mpsc::channel();
    let plan = plan_every(Span::from_ms(300), Place::Exporter(exporter(&server.url())));
    let collector = Collector::telling(plan, outlet).unwrap();
    let told: Vec<_> = news.iter().take(2).map(|news| news.reading).collect();
    let why = told[0].as_ref().unwrap_err();
    assert!(why.contains("HTML"), "{why}");
    assert!(told[1].is_ok(), "it is asked where it was asked at first");
    let source = one(collector.finish(Clock::starting_in(Span::ZERO)));
    assert!(source.scrapes.len() <= 2, "what is told is not kept");
}
