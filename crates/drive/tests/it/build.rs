//! Jobs with the usual settings, scripted answers, and what came of a run.

use std::sync::Arc;

use drive::secret::Secrets;
use drive::tls::{Trust, client_config};
use drive::{Control, End, Happening, IDLE_LIMIT, Job, Reuse, StopRules, Target};
use fake::Script;
use measure::{At, Outcome, PerSecond, Record, Span, Tokens};
use rustls::ClientConfig;
use wire::api::{Api, Prompt, RequestSpec};
use wire::url::Url;
use workload::{
    CacheRegime, Lengths, Load, OutputLength, Pace, PromptSource, Request, RunNonce, Schedule,
    Spec, Stop, Think,
};

/// Everything that a run is made from; tests change what they are about.
pub(crate) struct Bench {
    pub(crate) url: String,
    /// Further targets.
    pub(crate) also: Vec<String>,
    pub(crate) spec: Spec,
    pub(crate) requests: Option<Vec<Request>>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) session_header: Option<String>,
    pub(crate) secrets: Secrets,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) idle_timeout: Span,
    pub(crate) request_timeout: Span,
    pub(crate) idle_limit: Span,
    pub(crate) reuse: Reuse,
    pub(crate) keep_text: bool,
    pub(crate) threads: u32,
    pub(crate) rules: StopRules,
    pub(crate) control: Control,
    pub(crate) warmup: Option<Arc<Schedule>>,
}

/// What came of a run.
pub(crate) struct Ran {
    /// In order of index.
    pub(crate) records: Vec<Record>,
    pub(crate) end: End,
}

/// The head of every `x-request-id`.
pub(crate) const RUN: &str = "run";

impl Bench {
    /// Chat requests of one short text, one after the other.
    pub(crate) fn at(url: &str) -> Self {
        Self {
            url: format!("{url}/v1/chat/completions"),
            also: Vec::new(),
            spec: Spec {
                seed: 7,
                load: closed(1),
                stop: Stop::Count(1),
                prompts: PromptSource::fixed("hi"),
                pictures: None,
                batch: workload::Batch::One,
                output: OutputLength::Drawn(Lengths::Fixed(Tokens::new(4))),
                output_forced: false,
                cache: CacheRegime::AsIs,
                nonce_in_own_prompts: false,
                prefixes: workload::Prefixes::NONE,
                labels: Vec::new(),
                routing: workload::Routing::default(),
                conversations: None,
            },
            requests: None,
            headers: Vec::new(),
            session_header: None,
            secrets: Secrets::default(),
            tls: client_config(&Trust::Anybody).expect("TLS can be set up"),
            idle_timeout: Span::from_ms(5_000),
            request_timeout: Span::from_ms(10_000),
            idle_limit: IDLE_LIMIT,
            reuse: Reuse::Always,
            keep_text: false,
            threads: 1,
            rules: StopRules { max_errors: None, max_error_rate: None },
            control: Control::default(),
            warmup: None,
        }
    }

    pub(crate) fn load(mut self, load: Load, count: u32) -> Self {
        self.spec.load = load;
        self.spec.stop = Stop::Count(count);
        self
    }

    pub(crate) fn run(self) -> Ran {
        self.watch(|_| {})
    }

    /// Runs and shows what happens meanwhile.
    pub(crate) fn watch(self, mut seen: impl FnMut(&Happening)) -> Ran {
        let schedule = match self.requests {
            Some(requests) => Schedule::of_requests(self.spec, requests),
            None => Schedule::draw(self.spec),
        };
        let job = Job {
            run_id: RUN.to_owned(),
            schedule: Arc::new(schedule.expect("a schedule can be drawn").0),
            nonce: RunNonce::new(1),
            targets: [&self.url]
                .into_iter()
                .chain(&self.also)
                .map(|url| Target {
                    url: Url::parse(url).expect("the test's own URL"),
                    tls: Arc::clone(&self.tls),
                })
                .collect(),
            api: Api::OpenaiChat,
            template: RequestSpec::new("m", Prompt::Text(String::new())),
            headers: self.headers,
            ids_by: None,
            session_header: self.session_header,
            secrets: self.secrets,
            idle_timeout: self.idle_timeout,
            request_timeout: self.request_timeout,
            idle_limit: self.idle_limit,
            reuse: self.reuse,
            keep_text: self.keep_text,
            threads: self.threads,
            warmup: self.warmup,
        };
        let mut records = Vec::new();
        let end = drive::run(Arc::new(job), self.rules, &self.control, |happening| {
            seen(&happening);
            if let Happening::Ended(record) = happening {
                records.push(*record);
            }
        })
        .expect("the run can start");
        records.sort_by_key(|record| record.index);
        Ran { records, end }
    }
}

impl Ran {
    /// The only record.
    pub(crate) fn one(self) -> Record {
        let [record] = <[Record; 1]>::try_from(self.records).expect("one request was planned");
        record
    }

    pub(crate) fn count(&self, outcome: Outcome) -> usize {
        self.records.iter().filter(|record| record.outcome == outcome).count()
    }

    #[track_caller]
    pub(crate) fn all_ok(&self) {
        for record in &self.records {
            let said = &record.answer.message;
            assert_eq!(record.outcome, Outcome::Ok, "request {}: {said:?}", record.index);
        }
    }

    /// Most requests that were between send and end at one instant.
    pub(crate) fn most_in_flight(&self) -> i32 {
        let spans = self
            .records
            .iter()
            .filter_map(|record| Some((record.stamps.sent_at?, record.stamps.ended_at?)));
        // At one instant ends come before starts.
        let mut edges: Vec<(At, i32)> =
            spans.flat_map(|(sent, ended)| [(sent, 1), (ended, -1)]).collect();
        edges.sort_unstable();
        let mut now = 0;
        edges
            .into_iter()
            .map(|(_, step)| {
                now += step;
                now
            })
            .max()
            .unwrap_or(0)
    }
}

pub(crate) fn closed(users: u32) -> Load {
    Load::Closed { users, think: Think::NONE }
}

/// Constant gaps.
pub(crate) fn even(per_second: f64) -> Load {
    Load::Open { pace: Pace::flat(PerSecond::new(per_second), f64::INFINITY) }
}

/// One event with text.
pub(crate) fn text(text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}}}}]}}\n\n")
}

/// The event with this finish reason.
pub(crate) fn finish(reason: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n"
    )
}

pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A stream that begins at once.
pub(crate) fn stream() -> Script {
    Script::new().chunked_head(0, 200, "text/event-stream")
}

/// Bytes as one chunk of a body.
pub(crate) fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// The end of a stream that began with [`stream`], in one write: the next
/// request may come as soon as the answer is over, and only a connection whose
/// framing is over too can carry it.
pub(crate) fn ending(script: Script, at_ms: u64) -> Script {
    script.send(at_ms, format!("{}{}0\r\n\r\n", chunk(&finish("stop")), chunk(DONE)))
}

/// A whole answer: a first token at once, a second after `ms`.
pub(crate) fn answer(ms: u64) -> Script {
    ending(stream().chunk(0, text("one")).chunk(ms, text("two")), ms)
}

/// The index of a request as its server sees it.
pub(crate) fn index(request: &fake::Request) -> u32 {
    let id = request.header("x-request-id").expect("every request has an id");
    id.strip_prefix("run-").and_then(|index| index.parse().ok()).expect("RUN-INDEX")
}
