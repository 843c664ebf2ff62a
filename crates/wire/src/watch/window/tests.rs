use measure::watch::{Figure, Kind};

use super::*;
use crate::prometheus;

const PLACE: &str = "http://a/metrics";

/// vLLM after so many requests, at so many waiting.
fn vllm(finished: u32, waiting: u32) -> String {
    format!(
        "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 2\n\
         # TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting {waiting}\n\
         # TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total {}\n\
         # TYPE vllm:request_success_total counter\n\
         vllm:request_success_total{{finished_reason=\"stop\"}} {finished}\n",
        100 * finished
    )
}

/// The same from a process that began at this time.
fn begun(at_s: u32, finished: u32) -> String {
    let gauge = "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds";
    format!("{}{gauge} {at_s}\n", vllm(finished, 0))
}

fn at(at_s: f64) -> At {
    At::from_us((at_s * 1e6) as i64)
}

struct Watching(Window);

impl Watching {
    fn new(length_s: i64) -> Self {
        Self(Window::new(Span::from_ms(length_s * 1_000), None))
    }

    /// Kinds of what happened.
    fn read(&mut self, place: &str, at_s: f64, text: &str) -> Vec<Kind> {
        let exposition = prometheus::read(text.as_bytes()).unwrap();
        let at = at(at_s);
        let scrape = Scrape { at, took: Span::ZERO, late: Span::ZERO, exposition };
        self.0.take(place, at, Ok(scrape)).iter().map(|event| event.kind).collect()
    }

    fn fail(&mut self, at_s: f64, reason: &str) -> Vec<Kind> {
        let events = self.0.take(PLACE, at(at_s), Err(reason.to_owned()));
        events.iter().map(|event| event.kind).collect()
    }

    fn value(&self, id: &str) -> Result<f64, String> {
        let signals = self.0.signals().ok_or("no signals")?;
        Figure::find(id).unwrap().value(&signals).map_err(|why| why.en)
    }
}

#[test]
fn rates_are_of_the_window_and_levels_of_the_last_reading() {
    let mut watching = Watching::new(10);
    // Two requests a second, then five.
    for second in 0..30 {
        let finished = if second <= 15 { 2 * second } else { 30 + 5 * (second - 15) };
        assert_eq!(watching.read(PLACE, f64::from(second), &vllm(finished, second)), []);
    }
    assert_eq!(watching.value("req_s"), Ok(5.0));
    assert_eq!(watching.value("output_tok_s"), Ok(500.0));
    assert_eq!(watching.value("waiting"), Ok(29.0));
    assert_eq!(watching.0.signals().unwrap().length_s(), 10.0);
    assert_eq!(watching.0.places[0].scrapes.len(), 11, "what is older is not kept");
}

#[test]
fn one_reading_has_levels_and_no_rates() {
    let mut watching = Watching::new(10);
    watching.read(PLACE, 0.0, &vllm(7, 3));
    assert_eq!(watching.value("waiting"), Ok(3.0));
    let why = watching.value("req_s").unwrap_err();
    assert!(why.contains("Only one scrape"), "{why}");
}

#[test]
fn a_restart_begins_the_window_anew_and_is_no_negative_rate() {
    for (first, second, kind) in [
        (begun(100, 50), begun(200, 4), Kind::Restarted),
        (vllm(50, 0), vllm(4, 0), Kind::Restarted),
        (begun(100, 50), begun(100, 4), Kind::Reset),
        // It had served as much by then: only its beginning tells.
        (begun(100, 50), begun(200, 60), Kind::Restarted),
    ] {
        let mut watching = Watching::new(30);
        watching.read(PLACE, 0.0, &first);
        watching.read(PLACE, 1.0, &first);
        assert_eq!(watching.read(PLACE, 2.0, &second), [kind]);
        assert!(watching.value("req_s").is_err(), "nothing between two readings yet");
        let more = second.replace("reason=\"stop\"} ", "reason=\"stop\"} 1");
        assert_eq!(watching.read(PLACE, 3.0, &more), []);
        assert!(watching.value("req_s").unwrap() > 0.0);
        assert_eq!(watching.0.places().next().unwrap().restarts, 1);
    }
}

#[test]
fn a_metric_that_goes_missing_is_absent_with_its_reason_and_comes_back() {
    let mut watching = Watching::new(30);
    let whole = |finished: u32| vllm(finished, 5);
    let part = |finished: u32| {
        let lines = whole(finished);
        let lines = lines.lines().filter(|line| !line.contains("num_requests_waiting"));
        lines.filter(|line| !line.contains("generation")).collect::<Vec<_>>().join("\n") + "\n"
    };
    for second in 0..4 {
        watching.read(PLACE, f64::from(second), &whole(second));
    }
    assert_eq!(watching.read(PLACE, 4.0, &part(4)), [Kind::Missing]);
    assert_eq!(watching.read(PLACE, 5.0, &part(5)), []);
    let why = watching.value("waiting").unwrap_err();
    assert!(why.contains("until 2 s ago"), "{why}");
    assert!(watching.value("output_tok_s").is_err(), "what is not told is no rate of 0");
    assert_eq!(watching.value("req_s"), Ok(1.0), "the rest goes on");
    assert_eq!(watching.read(PLACE, 6.0, &whole(6)), [Kind::Back]);
    assert_eq!(watching.value("waiting"), Ok(5.0));
    assert_eq!(watching.value("output_tok_s"), Ok(100.0));
}

#[test]
fn a_silent_server_is_told_once_a_reason_and_has_no_figures() {
    let mut watching = Watching::new(30);
    assert_eq!(watching.fail(0.0, "refused"), [Kind::Unread]);
    assert_eq!(watching.fail(1.0, "refused"), []);
    assert_eq!(watching.fail(2.0, "answered HTML"), [Kind::Unread]);
    assert!(watching.0.signals().is_none());
    assert_eq!(watching.read(PLACE, 3.0, &vllm(1, 0)), [Kind::Read]);
    watching.read(PLACE, 4.0, &vllm(3, 0));
    assert_eq!(watching.fail(5.0, "refused"), [Kind::Unread]);
    assert!(watching.0.signals().is_none(), "old figures are not those of now");
    // The same process again: what it counted meanwhile is known.
    assert_eq!(watching.read(PLACE, 6.0, &vllm(7, 0)), [Kind::Read]);
    assert_eq!(watching.value("req_s"), Ok(2.0));
    let place = watching.0.places().next().unwrap();
    assert_eq!((place.taken, place.failed, place.restarts), (3, 4, 0));
}

#[test]
fn of_two_engines_the_one_that_answers_is_told_alone() {
    let mut watching = Watching::new(30);
    let other = "http://b/metrics";
    for second in 0..3 {
        watching.read(PLACE, f64::from(second), &vllm(second, 1));
        watching.read(other, f64::from(second) + 0.1, &vllm(3 * second, 2));
    }
    assert_eq!(watching.value("waiting"), Ok(3.0));
    assert_eq!(watching.value("running"), Ok(4.0));
    watching.fail(3.0, "refused");
    watching.read(other, 3.1, &vllm(9, 2));
    assert_eq!(watching.value("waiting"), Ok(2.0));
    assert!((watching.value("req_s").unwrap() - 3.0).abs() < 1e-9);
}

#[test]
fn two_processes_behind_one_address_are_told_once() {
    let mut watching = Watching::new(30);
    let mut kinds = Vec::new();
    for second in 0..20 {
        let finished = if second % 2 == 0 { 500 + second } else { 10 + second };
        kinds.extend(watching.read(PLACE, f64::from(second), &vllm(finished, 0)));
    }
    assert_eq!(kinds, [Kind::Restarted, Kind::Restarted, Kind::Reset]);
    let notes = watching.0.signals().unwrap().notes;
    assert!(notes.iter().any(|note| note.en.contains("in turn")), "{notes:?}");
    assert_eq!(watching.0.places().next().unwrap().restarts, 10);
}
