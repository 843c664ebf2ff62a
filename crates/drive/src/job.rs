//! What a run does, fixed before it starts and shared by all workers.

use std::sync::Arc;

use measure::record::URL;
use measure::{Planned, Record, Span};
use serde_json::{Map, Value, json};
use wire::api::{Api, Prompt, RequestSpec};
use wire::head;
use workload::Tokenizer;
use workload::digest::Digest;
use workload::prompt::{Content, Message, RunNonce};
use workload::schedule::{Request, Schedule};

use crate::connection::Target;
use crate::secret::Secrets;

/// How long an idle connection may be used again. Common servers close idle
/// connections after 5 s; one second less keeps clear of the race.
pub const IDLE_LIMIT: Span = Span::from_ms(4_000);

/// The longest time-out of a request: event times are 32-bit microseconds.
pub const MAX_REQUEST_TIMEOUT: Span = Span::from_ms(4_000_000);

/// Which requests may share a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// Any request may use any idle connection.
    #[default]
    Always,
    /// Only turns of one conversation share one.
    PerSession,
    /// Each request opens its own.
    Never,
}

/// A run.
#[derive(Clone)]
pub struct Job {
    /// Its id: the head of every request's `x-request-id`.
    pub run_id: String,
    /// What is sent, and when.
    pub schedule: Arc<Schedule>,
    /// What makes this run's prompts unlike those of other runs.
    pub nonce: RunNonce,
    /// Where it is sent, at least one; a request's route names the place.
    pub targets: Vec<Target>,
    /// The API spoken there.
    pub api: Api,
    /// The request without its prompt and length.
    pub template: RequestSpec,
    /// Headers of every request, keys included.
    pub headers: Vec<(String, String)>,
    /// Whose ids prompts of one text are sent as; `None` sends the text.
    pub ids_by: Option<Arc<dyn Tokenizer>>,
    /// The header that carries the id of each request's conversation, if any.
    pub session_header: Option<String>,
    /// What must never be stored or printed.
    pub secrets: Secrets,
    /// Time without a byte after which a begun answer has failed.
    pub idle_timeout: Span,
    /// Time after which any request has failed.
    pub request_timeout: Span,
    /// Age at which an idle connection is no longer used.
    pub idle_limit: Span,
    /// Which requests may share a connection.
    pub reuse: Reuse,
    /// Keep the texts of answers.
    pub keep_text: bool,
    /// Number of worker threads.
    pub threads: u32,
    /// Requests sent one after the other before the run, whose records are
    /// dropped: the leading ones of this schedule.
    pub warmup: Option<Arc<Schedule>>,
}

impl Job {
    /// A prompt of the workload as the API takes it.
    pub(crate) fn wire_prompt(&self, content: Content) -> Prompt {
        match content {
            Content::Text(text) => match &self.ids_by {
                Some(tokenizer) => Prompt::Ids(tokenizer.encode(&text)),
                None => Prompt::Text(text),
            },
            Content::Texts(texts) => Prompt::Texts(texts),
            Content::Messages(messages) => {
                Prompt::Messages(messages.into_iter().map(json_of).collect())
            }
        }
    }

    /// The fields that are merged into a body last, with those of a prompt
    /// among them where the flags give no others and the API has a place.
    pub(crate) fn extra_body(&self, of_prompt: &[(String, String)]) -> Map<String, Value> {
        let mut fields = self.template.extra_body.clone();
        for (name, value) in of_prompt.iter().filter(|(name, _)| self.api.takes_member(name)) {
            // The loader made the text from JSON, so it is some.
            if let Ok(value) = serde_json::from_str(value) {
                fields.entry(name.as_str()).or_insert(value);
            }
        }
        fields
    }

    /// The bytes of a request.
    pub(crate) fn encode(&self, request: &Request, body: &[u8]) -> Vec<u8> {
        let index = request.index;
        let id = format!("{}-{index}", self.run_id);
        let trace = trace_parent(&self.run_id, index);
        let mut extra = vec![("x-request-id", id.as_str()), ("traceparent", trace.as_str())];
        let session = self.session_header.as_ref();
        let session = session.map(|name| (name, format!("{}-s{}", self.run_id, request.session)));
        extra.extend(session.as_ref().map(|(name, id)| (name.as_str(), id.as_str())));
        let url = &self.target(request.route.target).url;
        head::encode("POST", url, &self.headers, &extra, body)
    }

    /// A target by its place.
    pub(crate) fn target(&self, place: u32) -> &Target {
        let targets = &self.targets;
        // A schedule for more targets than there are is of another job.
        targets.get(place as usize).expect("a place in the list of targets")
    }

    /// The name of a target: host and port, with its number where another has
    /// the same. Paths and queries may hold keys and stay out.
    pub(crate) fn target_name(&self, place: u32) -> String {
        let name = self.target(place).url.authority();
        let alike = self.targets.iter().filter(|target| target.url.authority() == name);
        if alike.count() > 1 { format!("{name} ({})", place + 1) } else { name }
    }

    /// What is planned of a request, with the label of its target where there
    /// are several.
    pub(crate) fn planned(&self, request: &Request) -> Planned {
        let mut planned = request.planned();
        if self.targets.len() > 1 {
            planned.labels.retain(|(name, _)| name != URL);
            planned.labels.push((URL.to_owned(), self.target_name(request.route.target)));
            planned.labels.sort();
        }
        planned
    }

    /// Takes secrets out of everything that came from the server: it may echo
    /// what it was sent.
    pub(crate) fn redact(&self, record: &mut Record) {
        let answer = &mut record.answer;
        let texts = [
            &mut answer.message,
            &mut answer.error_code,
            &mut answer.finish_reason,
            &mut answer.served_by,
            &mut answer.text,
            &mut answer.reasoning,
            &mut answer.tool_arguments,
        ];
        for text in texts.into_iter().flatten() {
            self.secrets.redact(text);
        }
        for (name, _) in &mut answer.server_timings {
            self.secrets.redact(name);
        }
    }
}

/// A message as the object that goes into the request.
fn json_of(message: Message) -> Value {
    let mut object = json!({"role": message.role, "content": wire::media::content(&message)});
    // The loader made the text from an object, so it is one.
    let members = message.members.and_then(|members| serde_json::from_str(&members).ok());
    if let (Some(Value::Object(members)), Some(object)) = (members, object.as_object_mut()) {
        object.extend::<Map<String, Value>>(members);
    }
    object
}

/// A W3C trace context whose ids are made from the run and the request, so
/// that server traces can be joined with rows.
fn trace_parent(run_id: &str, index: u32) -> String {
    let high = Digest::new().raw(run_id.as_bytes()).value();
    let low = high.rotate_left(32) ^ u64::from(index);
    // A span id of zero is invalid, so the index counts from one.
    format!("00-{high:016x}{low:016x}-{:016x}-01", u64::from(index) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_message_go_into_the_request_and_win() {
        let call = r#"{"content":null,"tool_calls":[{"id":"a"}]}"#;
        let called = Message { members: Some(call.to_owned()), ..Message::new("assistant", "") };
        let want = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]});
        assert_eq!(json_of(called), want);
        let want = json!({"role": "user", "content": "hi"});
        assert_eq!(json_of(Message::new("user", "hi")), want);
    }
}
