//! The engine model behind a socket: [`sim::Cluster`] on the real clock.
//!
//! A request is submitted at the instant at which its last byte reached this
//! host, and its tokens are due at the instants that the model gives. Lateness of
//! this process moves no instant of the model: steps are taken in model time,
//! however late they are looked at, and what is overdue is written at once.

mod detour;
mod hearing;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use sim::{Cluster, Content, Settings, SettingsError};
use wire::exposition::{CONTENT_TYPE, Facts, Profile};
use workload::Tokenizer;
use workload::digest::Digest;

use self::detour::Detour;
use self::hearing::{Hearing, UnderWay};
use crate::draw::mix;
use crate::engine::Anchor;
use crate::faults::{self, Effect, Fault, FaultShare, Target};
use crate::openai::{
    Answer, Ask, Kind, Refused, Route, Served, Tally, Voice, Words, not_allowed, route, spell,
};
use crate::request::Request;
use crate::script::{Piece, Play, Respond, Script, Step, whole_head};

/// The header that names what a request belongs to, for routers that keep it
/// together.
const SESSION: &str = "x-session-id";

/// Steps are looked at so long after their end at most, while their tokens are on
/// their way out: requests that came before the end and were read after it are
/// then in time for the next step.
const MOST_GRACE_NS: u64 = 200_000;

/// Tokens of the answers to one request that are spelt beforehand, so that a later
/// prompt finds them. What is longer is found so far.
const MOST_SPELT: u32 = 1 << 20;

/// What the modelled server is like.
#[derive(Clone, Debug)]
pub struct ModelledConfig {
    /// Model, accelerators and limits.
    pub settings: Settings,
    /// The one name served; a request for another is answered with 404. None
    /// accepts any, and lists the model's own.
    pub model: Option<String>,
    /// What prompts are cut by; without one, words and marks are tokens.
    pub tokenizer: Option<Arc<dyn Tokenizer>>,
    /// Of words and of accepted drafts.
    pub seed: u64,
    /// Output tokens of a request that names no limit.
    pub default_output_tokens: u32,
    /// Whose names `/metrics` has.
    pub profile: Profile,
    /// Whether answers carry the server's own timings.
    pub per_request_metrics: bool,
    /// What goes wrong with answers on their way out, drawn for each request.
    pub faults: Vec<FaultShare>,
    /// Whether a request may force a fault on itself, by [`faults::HEADER`]. It
    /// then gets that one and none that is drawn.
    pub faults_by_header: bool,
}

impl Default for ModelledConfig {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            model: None,
            tokenizer: None,
            seed: 0,
            default_output_tokens: 128,
            profile: Profile::Vllm,
            per_request_metrics: false,
            faults: Vec::new(),
            faults_by_header: false,
        }
    }
}

/// The engine model as a server: a function of requests and instants. It reads no
/// clock.
#[derive(Debug)]
pub struct Modelled {
    config: ModelledConfig,
    anchor: Anchor,
    cluster: Cluster,
    hearing: Hearing,
    words: Arc<Words>,
    /// The request under way on each connection.
    of_connection: HashMap<u64, u64>,
    requests: u64,
    /// The last instant at which something happened in the model: nothing may be
    /// submitted before it.
    happened_ns: u64,
    grace_ns: u64,
}

impl Modelled {
    /// A server without requests, whose model time begins at `anchor`.
    ///
    /// # Errors
    /// Settings that cannot be together, with the arithmetic.
    pub fn new(config: ModelledConfig, anchor: Anchor) -> Result<Self, SettingsError> {
        let cluster = Cluster::new(&config.settings, config.seed)?;
        let words = Arc::new(Words::spelt(config.tokenizer.as_deref()));
        Ok(Self {
            hearing: Hearing::new(&config)?,
            grace_ns: (cluster.output_ns() / 2).min(MOST_GRACE_NS),
            words,
            of_connection: HashMap::new(),
            requests: 0,
            happened_ns: 0,
            cluster,
            config,
            anchor,
        })
    }

    /// The name under which the model is listed.
    fn model(&self) -> &str {
        self.config.model.as_deref().unwrap_or(&self.config.settings.model.id)
    }

    const fn facts(&self) -> &Facts {
        self.hearing.telemetry.facts()
    }

    fn created_s(&self, at_ns: u64) -> u64 {
        self.anchor.unix_s + self.model_ns(at_ns) / 1_000_000_000
    }

    /// An instant of the monotonic clock in model time.
    fn model_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.anchor.monotonic_ns)
    }

    /// Lets everything happen that happens until this instant of model time. An
    /// answer that is cut short leaves the engine then, as if its client had left.
    fn advance(&mut self, until_ns: u64) {
        loop {
            let next = [self.cluster.next_ns(), self.hearing.cut_ns()].into_iter().flatten().min();
            let Some(next_ns) = next.filter(|next_ns| *next_ns <= until_ns) else { return };
            while let Some(id) = self.hearing.take_cut(next_ns) {
                let answers = self.cluster.abort(id, next_ns, &mut self.hearing);
                self.hearing.telemetry.leaves(id, answers);
            }
            self.cluster.advance(next_ns, &mut self.hearing);
            self.happened_ns = next_ns;
        }
    }

    fn generate(&mut self, request: &Request, kind: Kind, path: &'static str) -> Play {
        let understood = self.understood(request, kind).and_then(|(ask, output)| {
            let faults = self.faults(request, &ask)?;
            Ok((ask, output, faults))
        });
        let (ask, output, faults) = match understood {
            Ok(understood) => understood,
            Err(refused) => return self.refuse(request, path, &refused, ""),
        };
        let refusal = faults.iter().find_map(|fault| match fault.effect {
            Effect::Refuse { status, retry_after_s } => Some((status, retry_after_s)),
            _ => None,
        });
        let Some((status, retry_after_s)) = refusal else {
            return self.begin(request, path, ask, output, &faults);
        };
        self.requests += 1;
        let header = retry_after_s.map(|s| format!("retry-after: {s}\r\n")).unwrap_or_default();
        self.refuse(request, path, &Refused::by_fault(status), &header)
    }

    /// What goes wrong with the answer to a request.
    fn faults(&self, request: &Request, ask: &Ask) -> Result<Vec<Fault>, Refused> {
        let target = Target { streams: ask.stream, chat: ask.chat };
        let allowed = self.config.faults_by_header;
        let Some(forced) = request.header(faults::HEADER).filter(|_| allowed) else {
            let ModelledConfig { faults, seed, .. } = &self.config;
            return Ok(faults::drawn(faults, *seed, self.requests + 1, target));
        };
        let fault = Fault::read(forced).and_then(|fault| fault.on(target));
        let refused = |error| Refused::bad(format!("{}: {error}", faults::HEADER), None);
        fault.map(|fault| vec![fault]).map_err(refused)
    }

    fn understood(&self, request: &Request, kind: Kind) -> Result<(Ask, Output), Refused> {
        let salt = mix(self.config.seed, self.requests + 1, 2);
        let tally = Tally::spelling(self.config.tokenizer.as_deref(), salt);
        let ask = Ask::of_kind(kind, &request.body, tally)?
            .for_model(self.config.model.as_deref())?
            .streamable(request)?;
        let room = ask.room(self.facts().context)?;
        let default = self.config.default_output_tokens.max(ask.min_tokens).min(room);
        let limit = ask.limit.unwrap_or(default);
        Ok(match ask.results {
            // A vector or a score is there when a first token would be.
            Some(_) => (ask, Output { limit: 1, natural: None, most: 1 }),
            None => {
                // Without a limit the model is what ends the answer.
                let natural = (ask.limit.is_none() && !ask.ignore_eos).then_some(limit);
                let most = ask.limit.unwrap_or(room);
                (ask, Output { limit, natural, most })
            }
        })
    }

    fn begin(
        &mut self,
        request: &Request,
        path: &'static str,
        mut ask: Ask,
        output: Output,
        faults: &[Fault],
    ) -> Play {
        self.requests += 1;
        let id = self.requests;
        if faults.iter().any(|fault| fault.effect == Effect::NoUsage) {
            (ask.include_usage, ask.continuous_usage) = (false, false);
        }
        let at_ns = self.model_ns(request.arrival_ns).max(self.happened_ns);
        let prompt_tokens = ask.prompt_tokens;
        let (ids, priority) = (std::mem::take(&mut ask.ids), ask.priority);
        let adapter = self.adapter(&ask);
        let voice = Voice {
            model: self.model(),
            created_s: self.created_s(request.arrival_ns),
            number: id,
            words: &self.words,
            words_seed: mix(self.config.seed, id, 1),
        };
        let mut answer = Answer::new(ask, request, &voice);
        for fault in faults {
            if let Effect::Reasoning { tokens, field } = fault.effect {
                answer.reason(tokens, field);
            }
        }
        let queued_ns = self.cluster.submit(
            at_ns,
            sim::Ask {
                id,
                prompt: prompt(ids, prompt_tokens, id, &answer, output.limit),
                answer: mix(self.config.seed, id, 3),
                choices: answer.ask.choices,
                limit: output.limit,
                natural: output.natural,
                priority,
                adapter,
                session: session(request),
                computed: 0,
            },
        );
        let truth_id = Some(answer.truth_id.clone());
        let head = answer.ask.stream.then(|| Step::send(0, answer.head()));
        self.of_connection.insert(request.connection, id);
        let instants = (at_ns, queued_ns);
        let detour = Detour::of(faults, at_ns, answer.ask.choices);
        let under_way = UnderWay::new(answer, request, path, instants, output.most, detour);
        self.hearing.begins(id, under_way);
        let steps = Box::new(head.into_iter());
        Play { start_ns: request.arrival_ns, steps, truth_id, more: true }
    }

    /// Adapters are served under names of their own.
    fn adapter(&self, ask: &Ask) -> Option<u64> {
        let name = ask.model.as_deref().filter(|name| *name != self.model())?;
        Some(Digest::new().raw(name.as_bytes()).value())
    }

    /// A refusal, with further header lines.
    fn refuse(
        &mut self,
        request: &Request,
        path: &'static str,
        refused: &Refused,
        header: &str,
    ) -> Play {
        self.told(request, path, refused.status, &refused.body(), header)
    }

    /// An answer that is told at once, with further header lines.
    fn told(
        &mut self,
        request: &Request,
        path: &'static str,
        status: u16,
        body: &serde_json::Value,
        header: &str,
    ) -> Play {
        let body = body.to_string();
        let (asked, bytes) = (request.body.len() as u64, body.len() as u64);
        // The model's front end takes its time before the engine, not here.
        let endpoint = (path, if request.method == "GET" { "GET" } else { "POST" });
        self.hearing.http.answered(endpoint, status, asked, Some(bytes), 0.0);
        let head = whole_head(status, "application/json", body.len(), header);
        Play::of(Script::new().send(0, head + &body), request.arrival_ns)
    }

    fn metrics(&mut self, request: &Request) -> Script {
        self.advance(self.model_ns(request.arrival_ns));
        self.hearing.telemetry.look_at(self.cluster.replicas());
        let created_s = self.anchor.unix_s as f64;
        let text = self.hearing.telemetry.text(self.model(), created_s, &self.hearing.http);
        Script::whole(200, CONTENT_TYPE, text)
    }

    fn tokenize(&mut self, request: &Request) -> Play {
        let tally = Tally::spelling(self.config.tokenizer.as_deref(), 0);
        let (status, body) = match spell(&request.body, tally) {
            Ok(ids) => (
                200,
                json!({
                    "count": ids.len(),
                    "max_model_len": self.facts().context,
                    "tokens": ids,
                    "token_strs": null,
                }),
            ),
            Err(refused) => (refused.status, refused.body()),
        };
        self.told(request, "/tokenize", status, &body, "")
    }

    fn detokenize(&mut self, request: &Request) -> Play {
        let (status, body) = match (&self.config.tokenizer, ids_of(&request.body)) {
            (Some(tokenizer), Ok(ids)) => (200, json!({"prompt": tokenizer.decode(&ids)})),
            (None, _) => {
                let refused = Refused::bad("words stand for tokens here: give --tokenizer", None);
                (refused.status, refused.body())
            }
            (Some(_), Err(refused)) => (refused.status, refused.body()),
        };
        self.told(request, "/detokenize", status, &body, "")
    }

    fn reset_prefix_cache(&mut self, request: &Request) -> Script {
        self.advance(self.model_ns(request.arrival_ns));
        if self.cluster.reset_prefix_cache() {
            return Script::new().send(0, whole_head(200, "text/plain", 0, ""));
        }
        let message = "requests hold blocks of the cache: reset it when none is under way";
        let error = json!({"message": message, "type": "Conflict", "param": null, "code": 409});
        Script::json(409, &json!({"error": error}))
    }
}

impl Respond for Modelled {
    fn answer(&mut self, request: &Request) -> Play {
        if let Route::Answer(kind, path) = route(request) {
            return self.generate(request, kind, path);
        }
        let script = match (request.method.as_str(), request.path()) {
            ("POST", "/tokenize") => return self.tokenize(request),
            ("POST", "/detokenize") => return self.detokenize(request),
            ("POST", "/reset_prefix_cache") => self.reset_prefix_cache(request),
            ("GET", "/metrics") => self.metrics(request),
            (_, "/tokenize" | "/detokenize" | "/reset_prefix_cache") => not_allowed("POST"),
            (_, "/metrics") => not_allowed("GET"),
            _ => Served {
                name: self.model(),
                context_tokens: self.facts().context,
                created_s: self.created_s(request.arrival_ns),
            }
            .plain(request),
        };
        Play::of(script, request.arrival_ns)
    }

    fn wake_ns(&self) -> Option<u64> {
        let step = self.cluster.next_ns().map(|at_ns| at_ns + self.grace_ns);
        let next = [step, self.hearing.due_ns()].into_iter().flatten().min();
        next.map(|at_ns| at_ns + self.anchor.monotonic_ns)
    }

    fn wake(&mut self, now_ns: u64) -> Vec<(u64, Play)> {
        self.advance(self.model_ns(now_ns).saturating_sub(self.grace_ns));
        Vec::new()
    }

    fn pour(&mut self, now_ns: u64, piece: &mut Piece) -> bool {
        // What is cut short is counted before its end is written.
        let until_ns = self.model_ns(now_ns);
        while let Some(cut_ns) = self.hearing.cut_ns().filter(|at_ns| *at_ns <= until_ns) {
            self.advance(cut_ns);
        }
        let poured = self.hearing.pour(self.model_ns(now_ns), self.anchor.monotonic_ns, piece);
        if poured && piece.last {
            self.of_connection.remove(&piece.connection);
        }
        poured
    }

    fn left(&mut self, connection: u64, now_ns: u64) {
        let Some(id) = self.of_connection.remove(&connection) else { return };
        let now_ns = self.model_ns(now_ns);
        self.advance(now_ns);
        let answers = self.cluster.abort(id, now_ns.max(self.happened_ns), &mut self.hearing);
        self.hearing.leaves(id, answers);
    }
}

/// How long an answer may be, and will be.
#[derive(Clone, Copy, Debug)]
struct Output {
    limit: u32,
    natural: Option<u32>,
    /// What the request allows.
    most: u32,
}

/// The prompt as the engine sees it, with the answers that will follow where their
/// tokens are known.
fn prompt(ids: Vec<u32>, tokens: u32, id: u64, answer: &Answer, limit: u32) -> Content {
    if answer.ask.results.is_some() {
        return Content::own(id, tokens);
    }
    let prompt = ids.into();
    let choices = answer.ask.choices;
    let each = limit.min(MOST_SPELT / u32::from(choices));
    let mut answers = Vec::new();
    for choice in 0..choices {
        match answer.ids(choice, each) {
            Some(answered) => answers.extend(answered),
            None => return Content::Tokens(prompt),
        }
    }
    Content::Spelt { prompt, answers: answers.into(), each, choice: 0 }
}

/// What a request belongs to: its session, or its connection.
fn session(request: &Request) -> u64 {
    match request.header(SESSION) {
        Some(name) => Digest::new().raw(name.as_bytes()).value(),
        None => mix(request.connection, 0, 0),
    }
}

fn ids_of(body: &[u8]) -> Result<Vec<u32>, Refused> {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let ids = body["tokens"].as_array().and_then(|ids| {
        let id = |id: &serde_json::Value| u32::try_from(id.as_u64()?).ok();
        ids.iter().map(id).collect::<Option<Vec<u32>>>()
    });
    ids.ok_or_else(|| Refused::bad("tokens must be a list of ids", Some("tokens")))
}

#[cfg(test)]
mod tests;
