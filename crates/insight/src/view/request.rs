//! One request that ended well, as rules see it.

use measure::course::Course;
use measure::request::Timed;
use measure::summary::Summary;
use measure::{Outcome, Record};

/// What the server said of its own times for one request, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timings {
    /// Loading the model.
    pub load_ms: Option<f64>,
    /// Wait for the first step.
    pub queue_ms: Option<f64>,
    /// First step to first token.
    pub prefill_ms: Option<f64>,
    /// First to last token.
    pub decode_ms: Option<f64>,
}

/// Where a timing is kept.
type Place = fn(&mut Timings) -> &mut Option<f64>;

/// Names under which servers send their timings, what they are, and how many ms
/// their unit has. vLLM's `time_to_first_token_ms` counts from the first step.
const NAMES: &[(&str, Place, f64)] = &[
    ("queue_time_ms", |timings| &mut timings.queue_ms, 1.0),
    ("time_to_first_token_ms", |timings| &mut timings.prefill_ms, 1.0),
    ("generation_time_ms", |timings| &mut timings.decode_ms, 1.0),
    ("prompt_ms", |timings| &mut timings.prefill_ms, 1.0),
    ("predicted_ms", |timings| &mut timings.decode_ms, 1.0),
    ("load_duration", |timings| &mut timings.load_ms, 1e-6),
    ("prompt_eval_duration", |timings| &mut timings.prefill_ms, 1e-6),
    ("eval_duration", |timings| &mut timings.decode_ms, 1e-6),
];

impl Timings {
    /// Those of an answer.
    pub fn of(record: &Record) -> Self {
        let mut timings = Self::default();
        for (name, value) in &record.answer.server_timings {
            if let Some((_, place, ms)) = NAMES.iter().find(|(known, ..)| known == name) {
                *place(&mut timings) = Some(value * ms).filter(|ms| ms.is_finite());
            }
        }
        timings
    }
}

/// A request that ended well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Its place among the rows of the view.
    pub place: usize,
    /// When it was sent, seconds.
    pub sent_s: f64,
    /// When it was over, seconds.
    pub ended_s: f64,
    /// From the intent to the send, ms.
    pub wait_ms: f64,
    /// From the send to the first token, ms.
    pub ttft_ms: Option<f64>,
    /// From the send to the end of the answer, ms.
    pub e2el_ms: Option<f64>,
    /// Time per output token, ms.
    pub tpot_ms: Option<f64>,
    /// Prompt tokens.
    pub input: Option<f64>,
    /// Of them found in a cache, where the server says so.
    pub cached: Option<f64>,
    /// Output tokens.
    pub output: Option<f64>,
    /// What the server said of its times.
    pub timings: Timings,
}

impl Seen {
    /// Prompt tokens that were computed, as far as it is known.
    pub fn uncached(&self) -> Option<f64> {
        Some((self.input? - self.cached.unwrap_or(0.0)).max(0.0))
    }
}

/// Requests that ended well, in the order of their sends.
pub(super) fn seen(timed: &[Timed<'_>], courses: &[Course], summary: &Summary) -> Vec<Seen> {
    let apart = summary.facts.api == "anthropic";
    let rows = timed.iter().zip(courses).enumerate();
    let of_row = |(place, (request, course)): (usize, (&Timed<'_>, &Course))| {
        if request.record.outcome != Outcome::Ok {
            return None;
        }
        let (sent_s, ended_s) = (course.sent_s?, course.ended_s?);
        let since_sent = |at_s: Option<f64>| Some((at_s? - sent_s) * 1e3);
        let counts = &request.record.answer.counts;
        let cached = counts.cached.map(|tokens| f64::from(tokens.get()));
        // Anthropic's prompt count leaves cached tokens out.
        let beside = cached.filter(|_| apart).unwrap_or(0.0);
        let planned = request.record.planned.input_tokens;
        let input = counts.prompt.or(planned).map(|tokens| f64::from(tokens.get()) + beside);
        Some(Seen {
            place,
            sent_s,
            ended_s,
            wait_ms: (sent_s - course.intended_s) * 1e3,
            ttft_ms: since_sent(course.first_token_s),
            e2el_ms: since_sent(course.last_token_s.or(course.ended_s)),
            tpot_ms: request.tpot_streamed().ok(),
            input,
            cached,
            output: request.output_tokens().ok().map(f64::from),
            timings: Timings::of(request.record),
        })
    };
    let mut seen: Vec<Seen> = rows.filter_map(of_row).collect();
    seen.sort_by(|a, b| a.sent_s.total_cmp(&b.sent_s).then(a.place.cmp(&b.place)));
    seen
}
