//! What a client asked of an engine: the bodies of its endpoints.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use workload::Tokenizer;
use workload::digest::Digest;
use workload::prompt::{estimate_tokens, estimated_pieces};

use super::results;
use crate::draw::mix;
use crate::request::Request;

/// An image costs as many prompt tokens as a tile of a common vision encoder,
/// whatever its size; a sound or a film costs the same.
const MEDIA_TOKENS: u32 = 256;

/// A request for text, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) chat: bool,
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) continuous_usage: bool,
    pub(crate) prompt_tokens: u32,
    /// The prompt's tokens by their ids, where they were asked for.
    pub(crate) ids: Vec<u32>,
    /// Smaller comes first.
    pub(crate) priority: i32,
    /// Most output tokens, where named.
    pub(crate) limit: Option<u32>,
    pub(crate) min_tokens: u32,
    pub(crate) ignore_eos: bool,
    /// Answers asked for.
    pub(crate) choices: u8,
    /// The answer's vectors or scores, where it has no tokens.
    pub(crate) results: Option<Value>,
}

/// Counts the tokens of a prompt, and writes their ids down where that is wanted.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    tokenizer: Option<&'a dyn Tokenizer>,
    count: u32,
    ids: Option<Vec<u32>>,
    /// Makes the ids of a picture those of no other.
    salt: u64,
}

impl<'a> Tally<'a> {
    /// Counts only.
    pub(crate) fn counting(tokenizer: Option<&'a dyn Tokenizer>) -> Self {
        Self { tokenizer, count: 0, ids: None, salt: 0 }
    }

    /// Writes ids down. Pictures and sounds, which are not looked at, get ids by
    /// `salt`, a number that no other request has.
    pub(crate) fn spelling(tokenizer: Option<&'a dyn Tokenizer>, salt: u64) -> Self {
        Self { tokenizer, count: 0, ids: Some(Vec::new()), salt }
    }

    /// The ids so far.
    pub(crate) fn into_ids(self) -> Vec<u32> {
        self.ids.unwrap_or_default()
    }

    fn text(&mut self, text: &str) {
        let count = match (&mut self.ids, self.tokenizer) {
            (None, _) => text_tokens(text, self.tokenizer),
            (Some(ids), Some(tokenizer)) => {
                let new = tokenizer.encode(text);
                ids.extend_from_slice(&new);
                saturated(new.len())
            }
            (Some(ids), None) => {
                let before = ids.len();
                estimated_pieces(text, |piece, tokens| {
                    ids.extend((0..tokens).map(|part| id_of_piece(piece, part)));
                });
                saturated(ids.len() - before)
            }
        };
        self.count = self.count.saturating_add(count);
    }

    fn given_ids(&mut self, given: &[u32]) {
        self.count = self.count.saturating_add(saturated(given.len()));
        if let Some(ids) = &mut self.ids {
            ids.extend_from_slice(given);
        }
    }

    fn medium(&mut self) {
        self.count = self.count.saturating_add(MEDIA_TOKENS);
        if let Some(ids) = &mut self.ids {
            let begins = ids.len() as u64;
            let own = (0..u64::from(MEDIA_TOKENS)).map(|part| mix(self.salt, begins, part) as u32);
            ids.extend(own);
        }
    }

    /// The number of tokens, and at least one: an engine computes something.
    fn at_least_one(&mut self) -> u32 {
        if self.count == 0 {
            self.given_ids(&[0]);
        }
        self.count
    }
}

/// The id of a part of a word, where words stand for tokens: words are told apart
/// by their hash.
pub(crate) fn id_of_piece(piece: &str, part: u32) -> u32 {
    let digest = Digest::new().raw(piece.as_bytes()).number(u64::from(part)).value();
    (digest ^ (digest >> 32)) as u32
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text after a prompt.
    Completion,
    /// Text after messages.
    Chat,
    /// A vector of each text.
    Vectors,
    /// A score of each document.
    Scores,
}

/// Why a body is not answered with text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    kind: &'static str,
    message: String,
    param: Option<&'static str>,
}

impl Refused {
    pub(crate) fn bad(message: impl Into<String>, param: Option<&'static str>) -> Self {
        Self { status: 400, kind: "BadRequestError", message: message.into(), param }
    }

    /// What a fault made of a request.
    pub(crate) fn by_fault(status: u16) -> Self {
        let kind = match status {
            429 => "RateLimitError",
            500.. => "InternalServerError",
            _ => "BadRequestError",
        };
        let message = "refused by a fault that was asked for".to_owned();
        Self { status, kind, message, param: None }
    }

    /// Prompt and output together do not fit.
    pub(crate) fn context(context: u32, prompt: u32, output: u32) -> Self {
        let message = format!(
            "the context holds {context} tokens, but the prompt has {prompt} and {output} output tokens were asked for"
        );
        Self::bad(message, Some("max_tokens"))
    }

    /// The error object, in vLLM's shape.
    pub(crate) fn body(&self) -> Value {
        json!({"error": {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.status,
        }})
    }
}

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Prompt>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    min_tokens: Option<u32>,
    ignore_eos: Option<bool>,
    n: Option<u64>,
    temperature: Option<f64>,
    best_of: Option<u32>,
    echo: Option<bool>,
    logprobs: Option<Value>,
    priority: Option<i32>,
}

#[derive(Default, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

/// A body of the embeddings endpoint, with texts or with messages.
#[derive(Deserialize)]
struct ToEmbed {
    model: Option<String>,
    input: Option<OneOrMany>,
    messages: Option<Vec<Message>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// A body of the rerank endpoint.
#[derive(Deserialize)]
struct ToRank {
    model: Option<String>,
    query: String,
    documents: Vec<String>,
    top_n: Option<u32>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
    image_url: Option<IgnoredAny>,
    input_audio: Option<IgnoredAny>,
    video_url: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Prompt {
    Text(String),
    Ids(Vec<u32>),
    Texts(Vec<String>),
    IdLists(Vec<Vec<u32>>),
}

impl Ask {
    /// Reads a body. What would change the shape of the answer and is not
    /// made here (log-probabilities, echo) is refused rather than ignored.
    fn read(body: &[u8], chat: bool, mut tally: Tally<'_>) -> Result<Self, Refused> {
        let body: Body = understood(body)?;
        refuse_unmade(&body)?;
        let choices = sim::choices(body.n, body.temperature)
            .map_err(|error| Refused::bad(error.to_string(), Some("n")))?;
        body.tally(chat, &mut tally)?;
        let named = if chat { body.max_completion_tokens } else { None }.or(body.max_tokens);
        let limit = match named {
            Some(limit) if limit < 1 => {
                let message = format!("max_tokens must be at least 1, got {limit}");
                return Err(Refused::bad(message, Some("max_tokens")));
            }
            // Beyond the type is beyond any context.
            Some(limit) => Some(u32::try_from(limit).unwrap_or(u32::MAX)),
            None => None,
        };
        let options = body.stream_options.unwrap_or_default();
        let include_usage = options.include_usage.unwrap_or(false);
        Ok(Self {
            chat,
            model: body.model,
            stream: body.stream.unwrap_or(false),
            include_usage,
            continuous_usage: include_usage && options.continuous_usage_stats.unwrap_or(false),
            prompt_tokens: tally.at_least_one(),
            ids: tally.into_ids(),
            priority: body.priority.unwrap_or(0),
            limit,
            min_tokens: body.min_tokens.unwrap_or(0),
            ignore_eos: body.ignore_eos.unwrap_or(false),
            choices,
            results: None,
        })
    }

    /// Reads a body of any kind.
    pub(crate) fn of_kind(kind: Kind, body: &[u8], tally: Tally<'_>) -> Result<Self, Refused> {
        let tokenizer = tally.tokenizer;
        match kind {
            Kind::Completion => Self::read(body, false, tally),
            Kind::Chat => Self::read(body, true, tally),
            Kind::Vectors => {
                let body: ToEmbed = understood(body)?;
                let (tokens, texts) = body.texts(tokenizer)?;
                Ok(Self::without_tokens(body.model, tokens, results::vectors_body(&texts)))
            }
            Kind::Scores => {
                let body: ToRank = understood(body)?;
                if body.documents.is_empty() {
                    let message = "documents must hold a document";
                    return Err(Refused::bad(message, Some("documents")));
                }
                let query = text_tokens(&body.query, tokenizer);
                let pair = |text: &String| query.saturating_add(text_tokens(text, tokenizer));
                let tokens = body.documents.iter().map(pair).fold(0, u32::saturating_add);
                let scores = results::scores_body(&body.query, &body.documents, body.top_n);
                Ok(Self::without_tokens(body.model, tokens, scores))
            }
        }
    }

    fn without_tokens(model: Option<String>, prompt_tokens: u32, results: Value) -> Self {
        Self {
            chat: false,
            model,
            stream: false,
            include_usage: false,
            continuous_usage: false,
            prompt_tokens,
            ids: Vec::new(),
            priority: 0,
            limit: None,
            min_tokens: 0,
            ignore_eos: false,
            choices: 1,
            results: Some(results),
        }
    }

    /// Refuses to answer more than once, for an engine that cannot.
    pub(crate) fn answered_once(self) -> Result<Self, Refused> {
        if self.choices > 1 {
            return Err(Refused::bad("n is not offered by this engine", Some("n")));
        }
        Ok(self)
    }

    /// How many tokens the answer may have after this prompt.
    pub(crate) fn room(&self, context: u32) -> Result<u32, Refused> {
        let room = context.saturating_sub(self.prompt_tokens);
        match self.limit.unwrap_or(1) {
            wanted if wanted > room => Err(Refused::context(context, self.prompt_tokens, wanted)),
            _ => Ok(room),
        }
    }

    /// Refuses another model than the one served.
    pub(crate) fn for_model(self, served: Option<&str>) -> Result<Self, Refused> {
        match (served, self.model.as_deref()) {
            (Some(served), Some(asked)) if served != asked => Err(Refused {
                status: 404,
                kind: "NotFoundError",
                message: format!("The model `{asked}` does not exist."),
                param: Some("model"),
            }),
            _ => Ok(self),
        }
    }

    /// Refuses to stream to a client that knows no chunks.
    pub(crate) fn streamable(self, request: &Request) -> Result<Self, Refused> {
        if self.stream && request.http_1_0 {
            return Err(Refused::bad("streaming needs HTTP/1.1", Some("stream")));
        }
        Ok(self)
    }
}

fn understood<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Refused> {
    serde_json::from_slice(body)
        .map_err(|error| Refused::bad(format!("the body was not understood: {error}"), None))
}

impl ToEmbed {
    /// Tokens, and the text of each vector.
    fn texts(&self, tokenizer: Option<&dyn Tokenizer>) -> Result<(u32, Vec<String>), Refused> {
        if let Some(messages) = self.messages.as_deref().filter(|messages| !messages.is_empty()) {
            let tokens = messages.iter().map(|message| message.tokens(tokenizer));
            let text = messages.iter().map(Message::text).collect::<Vec<_>>().join("\n");
            return Ok((tokens.fold(0, u32::saturating_add), vec![text]));
        }
        let texts = match &self.input {
            Some(OneOrMany::One(text)) => vec![text.clone()],
            Some(OneOrMany::Many(texts)) if !texts.is_empty() => texts.clone(),
            _ => {
                let message = "input must be a text or a list of texts";
                return Err(Refused::bad(message, Some("input")));
            }
        };
        let tokens = texts.iter().map(|text| text_tokens(text, tokenizer));
        Ok((tokens.fold(0, u32::saturating_add), texts))
    }
}

impl Body {
    fn tally(&self, chat: bool, tally: &mut Tally<'_>) -> Result<(), Refused> {
        if chat {
            let messages = self.messages.as_deref().filter(|messages| !messages.is_empty());
            let messages = messages
                .ok_or_else(|| Refused::bad("messages must hold a message", Some("messages")))?;
            messages.iter().for_each(|message| message.tally(tally));
            return Ok(());
        }
        let prompt = self.prompt.as_ref();
        prompt.ok_or_else(|| Refused::bad("prompt is missing", Some("prompt")))?.tally(tally)
    }
}

/// The ids of what a tokenizer is asked about: a prompt, or messages.
pub(crate) fn spell(body: &[u8], mut tally: Tally<'_>) -> Result<Vec<u32>, Refused> {
    let body: Body = understood(body)?;
    body.tally(body.messages.is_some(), &mut tally)?;
    Ok(tally.into_ids())
}

fn refuse_unmade(body: &Body) -> Result<(), Refused> {
    let logprobs = match &body.logprobs {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(_) => true,
    };
    let unmade = [
        (body.best_of.is_some_and(|count| count != 1), "best_of"),
        (body.echo == Some(true), "echo"),
        (logprobs, "logprobs"),
    ];
    match unmade.iter().find(|(asked, _)| *asked) {
        Some((_, param)) => {
            Err(Refused::bad(format!("{param} is not offered by this engine"), Some(param)))
        }
        None => Ok(()),
    }
}

impl Message {
    fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => {
                parts.iter().filter_map(|part| part.text.as_deref()).collect()
            }
        }
    }

    fn tally(&self, tally: &mut Tally<'_>) {
        match &self.content {
            None => {}
            Some(Content::Text(text)) => tally.text(text),
            Some(Content::Parts(parts)) => {
                for part in parts {
                    if let Some(text) = &part.text {
                        tally.text(text);
                    }
                    let media = [&part.image_url, &part.input_audio, &part.video_url];
                    media.into_iter().flatten().for_each(|_| tally.medium());
                }
            }
        }
    }

    fn tokens(&self, tokenizer: Option<&dyn Tokenizer>) -> u32 {
        let mut tally = Tally::counting(tokenizer);
        self.tally(&mut tally);
        tally.count
    }
}

impl Prompt {
    fn tally(&self, tally: &mut Tally<'_>) -> Result<(), Refused> {
        match self {
            Self::Text(text) => tally.text(text),
            Self::Ids(ids) => tally.given_ids(ids),
            Self::Texts(texts) => match texts.as_slice() {
                [text] => tally.text(text),
                _ => return Err(Refused::bad(ONE_PROMPT, Some("prompt"))),
            },
            Self::IdLists(lists) => match lists.as_slice() {
                [ids] => tally.given_ids(ids),
                _ => return Err(Refused::bad(ONE_PROMPT, Some("prompt"))),
            },
        }
        Ok(())
    }
}

const ONE_PROMPT: &str = "only one prompt a request is offered";

/// Without a tokenizer, the same estimate as the workload's, so that a prompt
/// asked for by length is counted as that length. What matters is that the
/// count is the same every time and that usage states it.
fn text_tokens(text: &str, tokenizer: Option<&dyn Tokenizer>) -> u32 {
    tokenizer.map_or_else(|| estimate_tokens(text), |tokenizer| tokenizer.count(text))
}

fn saturated(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
