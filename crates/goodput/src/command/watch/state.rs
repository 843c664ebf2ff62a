//! What is known of a server that is watched: readings in, glances out. No clock
//! is read here.

use std::collections::BTreeSet;

use measure::At;
use measure::Span;
use measure::deployment::Deployment;
use measure::watch::{Course, Event, Glance};
use wire::scrapes::Scrape;
use wire::watch::Window;

/// What is watched and how.
pub(super) struct Asked {
    /// The server, without secrets.
    pub(super) target: String,
    pub(super) window: Span,
    pub(super) model: Option<String>,
    /// What the user says of its machines.
    pub(super) deployment: Deployment,
    /// Names of the places that will tell.
    pub(super) places: BTreeSet<String>,
}

/// A server as far as it was seen.
pub(super) struct State {
    asked: Asked,
    window: Window,
    watch: insight::watch::Watch,
    course: Course,
    events: Vec<Event>,
    /// Places that told since the last glance, and when the last of them did.
    told: BTreeSet<String>,
    at: At,
}

impl State {
    pub(super) fn new(asked: Asked) -> Self {
        Self {
            window: Window::new(asked.window, asked.model.clone()),
            asked,
            watch: insight::watch::Watch::default(),
            course: Course::default(),
            events: Vec::new(),
            told: BTreeSet::new(),
            at: At::ZERO,
        }
    }

    /// Takes a reading. There is a glance when every place has told since the
    /// last one, and before one tells for the second time: a slow exporter holds
    /// up nobody.
    pub(super) fn take(
        &mut self,
        source: &str,
        at: At,
        reading: Result<Scrape, String>,
    ) -> Vec<Glance> {
        let mut glances = Vec::new();
        if self.told.contains(source) {
            glances.push(self.glance());
        }
        self.at = self.at.max(at);
        // What was not expected is waited for from now on, if it tells anything.
        if reading.is_ok() {
            self.asked.places.insert(source.to_owned());
        }
        self.events.extend(self.window.take(source, at, reading));
        self.told.insert(source.to_owned());
        if self.told.is_superset(&self.asked.places) {
            glances.push(self.glance());
        }
        glances
    }

    /// Everything so far.
    pub(super) const fn course(&self) -> &Course {
        &self.course
    }

    fn glance(&mut self) -> Glance {
        self.told.clear();
        let signals = self.window.signals();
        let Asked { target, deployment, .. } = &self.asked;
        let found = signals.as_ref();
        let found = found.map(|signals| insight::watch::judge(signals, target, deployment));
        let mut events = std::mem::take(&mut self.events);
        events.extend(self.watch.take(self.at, found.unwrap_or_default()));
        let glance = Glance {
            at: self.at,
            signals,
            events,
            held: self.watch.held(),
            places: self.window.places().cloned().collect(),
        };
        self.course.take(&glance);
        glance
    }
}

#[cfg(test)]
mod tests {
    use measure::watch::{Figure, Kind};

    use super::*;

    fn state(places: &[&str]) -> State {
        State::new(Asked {
            target: "http://h:8000".to_owned(),
            window: Span::from_ms(30_000),
            model: None,
            deployment: Deployment { seats: Some(8), ..Deployment::default() },
            places: places.iter().map(|place| (*place).to_owned()).collect(),
        })
    }

    fn at(second: u32) -> At {
        At::from_us(i64::from(second) * 1_000_000)
    }

    fn scrape(second: u32, text: &str) -> Result<Scrape, String> {
        let exposition = wire::prometheus::read(text.as_bytes()).unwrap();
        Ok(Scrape { at: at(second), took: Span::ZERO, late: Span::ZERO, exposition })
    }

    /// vLLM with all its eight seats taken, `waiting` requests before them.
    fn full(second: u32, waiting: u32) -> Result<Scrape, String> {
        let text = format!(
            "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 8\n\
             # TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting {waiting}\n\
             # TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc 0.2\n\
             # TYPE vllm:request_success counter\nvllm:request_success_total {second}\n\
             # TYPE vllm:num_preemptions counter\nvllm:num_preemptions_total 0\n\
             # TYPE vllm:request_queue_time_seconds histogram\n\
             vllm:request_queue_time_seconds_sum {second}\n\
             vllm:request_queue_time_seconds_count {second}\n\
             # TYPE vllm:time_to_first_token_seconds histogram\n\
             vllm:time_to_first_token_seconds_sum {}\n\
             vllm:time_to_first_token_seconds_count {second}\n",
            1.25 * f64::from(second)
        );
        scrape(second, &text)
    }

    #[test]
    fn a_finding_comes_with_since_when_and_goes_with_its_cause() {
        let mut state = state(&["a"]);
        let mut events = Vec::new();
        for second in 0..90 {
            let waiting = if second < 40 { 5 } else { 0 };
            for glance in state.take("a", at(second), full(second, waiting)) {
                events.extend(glance.events.into_iter().map(|event| (event.kind, event.of)));
                let since: Vec<At> = glance.held.iter().map(|held| held.since).collect();
                assert!(since.iter().all(|since| *since <= glance.at));
            }
        }
        let own = |kind| (kind, "seat_limit".to_owned());
        assert_eq!(events, [own(Kind::Found), own(Kind::Gone)]);
        let [found] = &state.course().found[..] else { panic!("{:?}", state.course().found) };
        assert!(found.since < at(15), "{found:?}");
        assert!((at(40)..at(75)).contains(&found.until), "{found:?}");
        let waited = state.course().usual.iter().find(|usual| usual.id == "waiting").unwrap();
        assert_eq!((waited.n, waited.most), (90, 5.0));
    }

    #[test]
    fn a_slow_place_holds_up_no_glance() {
        let mut state = state(&["a", "b"]);
        assert_eq!(state.take("a", at(0), full(0, 0)).len(), 0, "b has not told yet");
        assert_eq!(state.take("b", at(0), Err("refused".to_owned())).len(), 1);
        assert_eq!(state.take("a", at(1), full(1, 0)).len(), 0);
        let told = state.take("a", at(2), full(2, 0));
        assert_eq!(told.iter().map(|glance| glance.at).collect::<Vec<_>>(), [at(1)]);
    }

    #[test]
    fn what_was_never_told_keeps_its_reason_for_the_end() {
        let mut state = state(&["a"]);
        for second in 0..3 {
            state.take("a", at(second), full(second, 0));
        }
        state.take("a", at(3), Err("refused".to_owned()));
        let course = state.course();
        let of = |id: &str| course.absent.iter().any(|(known, _)| *known == id);
        assert!(of("output_tok_s") && of("gpu_busy") && !of("waiting"));
        assert!(course.saw_anything());
        assert!(Figure::find("queue_ms").is_some_and(|figure| figure.unit == "ms"));
    }
}
