//! The APIs that can be measured: one table, one entry each, and from it the
//! URL, the headers and the body of a request.

use measure::TokensSource;
use serde_json::{Map, Value, json};
use workload::media::MediaKind;

use crate::history;

/// An API that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI chat completions.
    OpenaiChat,
    /// OpenAI completions, the plain-prompt API.
    OpenaiCompletions,
    /// OpenAI responses.
    OpenaiResponses,
    /// Anthropic messages.
    Anthropic,
    /// Ollama's chat API.
    Ollama,
    /// Ollama's generate API: chosen by the URL, not by a name of its own.
    OllamaGenerate,
    /// Hugging Face text-generation-inference.
    Tgi,
    /// SGLang's native API.
    Sglang,
    /// Triton's generate extension.
    Triton,
    /// OpenAI embeddings of texts.
    Embeddings,
    /// The same of messages, as vLLM takes them: text with pictures.
    EmbeddingsChat,
    /// vLLM's pooling.
    Pooling,
    /// Rerank in the form of Cohere and Jina.
    Rerank,
}

/// What an answer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// Text, token by token.
    Tokens,
    /// A vector of each text.
    Vectors,
    /// A score of each document.
    Scores,
}

/// How events are framed in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// One JSON object a line.
    Ndjson,
}

/// What shows that an answer is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndMark {
    /// `[DONE]`, or any finish reason.
    DoneOrFinishReason,
    /// An event of the API's own that says so.
    TerminalEvent,
    /// Nothing but a clean end of the body.
    CleanClose,
}

/// How a key is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthStyle {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// `x-api-key: KEY`.
    XApiKey,
}

impl AuthStyle {
    /// Header name and value that carry `key`.
    pub fn header(self, key: &str) -> (&'static str, String) {
        match self {
            Self::Bearer => ("authorization", format!("Bearer {key}")),
            Self::XApiKey => ("x-api-key", key.to_owned()),
        }
    }
}

/// What is fixed about one API.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The API.
    pub api: Api,
    /// Values of `--backend` that mean it, the canonical one first. Empty for
    /// an API that only a URL chooses.
    pub names: &'static [&'static str],
    /// The usual path; `{model}` stands for the model's name.
    pub path: &'static str,
    /// Framing of the answer when its content type does not say.
    pub framing: Framing,
    /// Where the server's own count of output tokens comes from.
    pub tokens_source: TokensSource,
    /// What ends an answer.
    pub end_mark: EndMark,
    /// How a key is sent.
    pub auth: AuthStyle,
    /// Headers that it needs besides content type and key.
    pub headers: &'static [(&'static str, &'static str)],
    /// True when the API takes messages with roles, false for a plain prompt.
    pub takes_messages: bool,
    /// True when an output length can be forced (`ignore_eos`).
    pub can_ignore_eos: bool,
    /// True when engines behind the API know a `priority` of a request.
    pub takes_priority: bool,
    /// What an answer is made of.
    pub yields: Yields,
    /// What messages may hold besides text.
    pub media: &'static [MediaKind],
}

/// All that the OpenAI chat form has a part for.
const ALL_MEDIA: &[MediaKind] =
    &[MediaKind::Image, MediaKind::ImageAddress, MediaKind::Audio, MediaKind::Video];
/// Pictures, sent along or named by their address.
const PICTURES: &[MediaKind] = &[MediaKind::Image, MediaKind::ImageAddress];

const ACCEPT_SSE: (&str, &str) = ("accept", "text/event-stream");
const ACCEPT_JSON: (&str, &str) = ("accept", "application/json");
const ACCEPT_NDJSON: (&str, &str) = ("accept", "application/x-ndjson");

/// Every API.
pub const APIS: &[Entry] = &[
    Entry {
        api: Api::OpenaiChat,
        names: &["openai-chat"],
        path: "/v1/chat/completions",
        framing: Framing::Sse,
        tokens_source: TokensSource::Usage,
        end_mark: EndMark::DoneOrFinishReason,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_SSE],
        takes_messages: true,
        can_ignore_eos: true,
        takes_priority: true,
        yields: Yields::Tokens,
        media: ALL_MEDIA,
    },
    Entry {
        api: Api::OpenaiCompletions,
        names: &["openai-completions", "openai", "vllm"],
        path: "/v1/completions",
        framing: Framing::Sse,
        tokens_source: TokensSource::Usage,
        end_mark: EndMark::DoneOrFinishReason,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_SSE],
        takes_messages: false,
        can_ignore_eos: true,
        takes_priority: true,
        yields: Yields::Tokens,
        media: &[],
    },
    Entry {
        api: Api::OpenaiResponses,
        names: &["openai-responses"],
        path: "/v1/responses",
        framing: Framing::Sse,
        tokens_source: TokensSource::Usage,
        end_mark: EndMark::TerminalEvent,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_SSE],
        takes_messages: true,
        can_ignore_eos: true,
        takes_priority: true,
        yields: Yields::Tokens,
        media: PICTURES,
    },
    Entry {
        api: Api::Anthropic,
        names: &["anthropic"],
        path: "/v1/messages",
        framing: Framing::Sse,
        tokens_source: TokensSource::Usage,
        end_mark: EndMark::TerminalEvent,
        auth: AuthStyle::XApiKey,
        headers: &[ACCEPT_SSE, ("anthropic-version", "2023-06-01")],
        takes_messages: true,
        can_ignore_eos: false,
        takes_priority: false,
        yields: Yields::Tokens,
        media: PICTURES,
    },
    Entry {
        api: Api::Ollama,
        names: &["ollama"],
        path: "/api/chat",
        framing: Framing::Ndjson,
        tokens_source: TokensSource::Server,
        end_mark: EndMark::TerminalEvent,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_NDJSON],
        takes_messages: true,
        can_ignore_eos: false,
        takes_priority: false,
        yields: Yields::Tokens,
        media: &[MediaKind::Image],
    },
    Entry {
        api: Api::OllamaGenerate,
        names: &[],
        path: "/api/generate",
        framing: Framing::Ndjson,
        tokens_source: TokensSource::Server,
        end_mark: EndMark::TerminalEvent,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_NDJSON],
        takes_messages: false,
        can_ignore_eos: false,
        takes_priority: false,
        yields: Yields::Tokens,
        media: &[],
    },
    Entry {
        api: Api::Tgi,
        names: &["tgi"],
        path: "/generate_stream",
        framing: Framing::Sse,
        tokens_source: TokensSource::Server,
        end_mark: EndMark::TerminalEvent,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_SSE],
        takes_messages: false,
        can_ignore_eos: false,
        takes_priority: false,
        yields: Yields::Tokens,
        media: &[],
    },
    Entry {
        api: Api::Sglang,
        names: &["sglang"],
        path: "/generate",
        framing: Framing::Sse,
        tokens_source: TokensSource::Server,
        end_mark: EndMark::DoneOrFinishReason,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_SSE],
        takes_messages: false,
        can_ignore_eos: true,
        takes_priority: true,
        yields: Yields::Tokens,
        media: &[],
    },
    Entry {
        api: Api::Triton,
        names: &["triton"],
        path: "/v2/models/{model}/generate_stream",
        framing: Framing::Sse,
        tokens_source: TokensSource::Chunks,
        end_mark: EndMark::CleanClose,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_SSE],
        takes_messages: false,
        can_ignore_eos: false,
        takes_priority: false,
        yields: Yields::Tokens,
        media: &[],
    },
    Entry {
        api: Api::Embeddings,
        names: &["openai-embeddings"],
        path: "/v1/embeddings",
        framing: Framing::Sse,
        tokens_source: TokensSource::Usage,
        end_mark: EndMark::TerminalEvent,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_JSON],
        takes_messages: false,
        can_ignore_eos: false,
        takes_priority: true,
        yields: Yields::Vectors,
        media: &[],
    },
    Entry {
        api: Api::EmbeddingsChat,
        names: &["openai-embeddings-chat"],
        path: "/v1/embeddings",
        framing: Framing::Sse,
        tokens_source: TokensSource::Usage,
        end_mark: EndMark::TerminalEvent,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_JSON],
        takes_messages: true,
        can_ignore_eos: false,
        takes_priority: true,
        yields: Yields::Vectors,
        media: ALL_MEDIA,
    },
    Entry {
        api: Api::Pooling,
        names: &["vllm-pooling"],
        path: "/pooling",
        framing: Framing::Sse,
        tokens_source: TokensSource::Usage,
        end_mark: EndMark::TerminalEvent,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_JSON],
        takes_messages: false,
        can_ignore_eos: false,
        takes_priority: true,
        yields: Yields::Vectors,
        media: &[],
    },
    Entry {
        api: Api::Rerank,
        names: &["rerank", "vllm-rerank"],
        path: "/v1/rerank",
        framing: Framing::Sse,
        tokens_source: TokensSource::Usage,
        end_mark: EndMark::TerminalEvent,
        auth: AuthStyle::Bearer,
        headers: &[ACCEPT_JSON],
        takes_messages: false,
        can_ignore_eos: false,
        takes_priority: true,
        yields: Yields::Scores,
        media: &[],
    },
];

/// Values of vLLM's `--backend` that are not spoken, each with the reason.
pub const REFUSED: &[(&str, &str)] = &[
    (
        "openai-audio",
        "transcriptions are sent as forms of files; send sounds in chat with --dataset-name \
         custom_audio",
    ),
    ("openai-embeddings-clip", "use openai-embeddings-chat, and leave the text of the rows out"),
    ("openai-embeddings-vlm2vec", "use openai-embeddings-chat, with the parts in the rows' order"),
    ("infinity-embeddings", "its form of pictures is its own; use openai-embeddings for texts"),
    (
        "infinity-embeddings-clip",
        "its form of pictures is its own; use openai-embeddings for texts",
    ),
];

/// Why a URL cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No `http://` or `https://`.
    #[error("--url {0:?} has no scheme; write http://{0}")]
    NoScheme(String),
    /// A scheme that is not spoken.
    #[error("--url {url:?} has the scheme {scheme:?}; only http and https are spoken")]
    UnknownScheme {
        /// The URL as given.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// Nothing between the scheme and the path.
    #[error("--url {0:?} names no host; write http://HOST:PORT")]
    NoHost(String),
    /// White space or a control character, which would break the request line.
    #[error("--url {0:?} contains white space or a control character; encode it as %20")]
    Blank(String),
    /// A whole URL where a path is expected.
    #[error("--endpoint {0:?} must be a path such as /v1/completions; give the rest as --url")]
    EndpointIsUrl(String),
    /// Triton's path contains the model's name.
    #[error(
        "this API has the model in its path; give --model or a --url that ends in generate_stream"
    )]
    ModelNeeded,
}

impl Api {
    /// What is fixed about this API.
    pub fn entry(self) -> &'static Entry {
        // The table is in the order of the enum; a test holds that.
        &APIS[self as usize]
    }

    /// The canonical name; that of the chat API for Ollama's generate.
    pub fn name(self) -> &'static str {
        self.entry().names.first().copied().unwrap_or("ollama")
    }

    /// The API that a value of `--backend` means; `_` counts as `-`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.replace('_', "-");
        APIS.iter().find(|entry| entry.names.contains(&name.as_str())).map(|entry| entry.api)
    }

    /// This API, or its sibling where the URL says so: an Ollama URL that ends
    /// with `/api/generate`.
    #[must_use]
    pub fn for_url(self, url: &str) -> Self {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        let generate = path.trim_end_matches('/').ends_with("/api/generate");
        if self == Self::Ollama && generate { Self::OllamaGenerate } else { self }
    }

    /// True when the server puts the model's special tokens around a prompt by
    /// itself and counts them, as endpoints of plain prompts do. Where a chat
    /// template is rendered, the template decides. Ollama renders one for its
    /// generate API too.
    pub fn adds_special_tokens(self) -> bool {
        !self.entry().takes_messages && self != Self::OllamaGenerate
    }

    /// True for the APIs that take the ids of a prompt in place of its text.
    pub const fn takes_ids(self) -> bool {
        matches!(self, Self::OpenaiCompletions | Self::Sglang)
    }

    /// True where the member of a row's body has a place in a request: what
    /// concerns tools in APIs of messages, a format where there is one.
    pub fn takes_member(self, name: &str) -> bool {
        match name {
            "tools" | "tool_choice" => self.entry().takes_messages,
            "response_format" => self.takes_format(),
            _ => true,
        }
    }

    /// True for the APIs that take `response_format`.
    pub const fn takes_format(self) -> bool {
        matches!(self, Self::OpenaiChat | Self::OpenaiCompletions)
    }

    /// True for the two OpenAI APIs whose events hold choices.
    pub const fn has_choices(self) -> bool {
        matches!(self, Self::OpenaiChat | Self::OpenaiCompletions)
    }

    /// The URL that requests go to. `url` may be a server, a server with the
    /// first part of the path (`/v1`), or the whole address: a URL that ends
    /// with the endpoint is taken as it is; one that ends with the endpoint's
    /// first segments gets the rest; any other gets all of it. The endpoint is
    /// the API's usual path unless `endpoint` names another. A query stays
    /// where it is.
    pub fn endpoint_url(
        self,
        url: &str,
        endpoint: Option<&str>,
        model: Option<&str>,
    ) -> Result<String, UrlError> {
        let url = url.trim();
        let address = url.split('#').next().unwrap_or_default();
        let (address, query) = match address.split_once('?') {
            Some((address, query)) => (address, Some(query)),
            None => (address, None),
        };
        let path_at = check_address(url, address)?;
        let (server, base) = address.split_at(path_at);
        let base = base.trim_end_matches('/');
        let path = match endpoint.map(str::trim).filter(|endpoint| !endpoint.is_empty()) {
            Some(endpoint) if endpoint.contains("://") => {
                return Err(UrlError::EndpointIsUrl(endpoint.to_owned()));
            }
            Some(endpoint) => format!("/{}", endpoint.trim_start_matches('/')),
            None => self.usual_path(base, model)?,
        };
        let missing = missing_path(base, &path);
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Ok(format!("{server}{base}{missing}{query}"))
    }

    fn usual_path(self, base: &str, model: Option<&str>) -> Result<String, UrlError> {
        let path = self.entry().path;
        let Some((_, last)) = path.split_once("{model}") else { return Ok(path.to_owned()) };
        if base.ends_with(last) {
            return Ok(last.to_owned());
        }
        let model = model.ok_or(UrlError::ModelNeeded)?;
        Ok(path.replace("{model}", model))
    }
}

/// Checks scheme and host; gives the offset of the path.
fn check_address(url: &str, address: &str) -> Result<usize, UrlError> {
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(UrlError::Blank(url.to_owned()));
    }
    let Some((scheme, rest)) = address.split_once("://") else {
        return Err(UrlError::NoScheme(url.to_owned()));
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(UrlError::UnknownScheme { url: url.to_owned(), scheme: scheme.to_owned() });
    }
    let host = rest.split('/').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return Err(UrlError::NoHost(url.to_owned()));
    }
    Ok(scheme.len() + 3 + host.len())
}

/// The part of `path` that `base` does not end with yet.
fn missing_path<'p>(base: &str, path: &'p str) -> &'p str {
    // A gateway may have a prefix of its own in place of /v1 before an
    // endpoint that is written out: Azure's deployments, say.
    let behind_version = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/'));
    if behind_version.is_some_and(|rest| base.ends_with(rest)) {
        return "";
    }
    let borders = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    let held = borders.filter(|at| *at > 0 && base.ends_with(&path[..*at])).max();
    &path[held.unwrap_or(0)..]
}

/// The prompt of one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    /// Plain text; one user message for an API of messages.
    Text(String),
    /// The ids of a text, for an API that takes them ([`Api::takes_ids`]).
    Ids(Vec<u32>),
    /// Several texts in one request: to embed each; for rerank the query, then
    /// the documents.
    Texts(Vec<String>),
    /// Messages in the OpenAI form: objects with `role` and `content`. An API
    /// of plain prompts gets their contents with blank lines between.
    Messages(Vec<Value>),
}

/// How OpenAI chat names the output limit. Old servers know only the second,
/// newer hosted ones only the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LengthField {
    /// `max_completion_tokens`.
    #[default]
    MaxCompletionTokens,
    /// `max_tokens`.
    MaxTokens,
}

/// What one request asks for, apart from the API.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSpec {
    /// The model's name at the server.
    pub model: String,
    /// The prompt.
    pub prompt: Prompt,
    /// Output limit in tokens.
    pub max_output_tokens: Option<u32>,
    /// Least output in tokens; sent only when given, since only some engines
    /// know it.
    pub min_output_tokens: Option<u32>,
    /// The name of the output limit in the chat API.
    pub length_field: LengthField,
    /// Stream the answer.
    pub stream: bool,
    /// Ask for usage figures in every event, not only the last.
    pub continuous_usage: bool,
    /// Go on to the limit whatever the model says; sent only when true, to an
    /// API that knows it ([`Entry::can_ignore_eos`]).
    pub ignore_eos: bool,
    /// Further sampling fields, by the API's own names: they go where the API
    /// keeps its sampling fields.
    pub sampling: Map<String, Value>,
    /// The request's place in the server's queue; sent only when given, to an
    /// API that knows it ([`Entry::takes_priority`]).
    pub priority: Option<i32>,
    /// Fields merged into the top level last: they win over everything.
    pub extra_body: Map<String, Value>,
}

impl RequestSpec {
    /// A streamed request for `model` with nothing else asked.
    pub fn new(model: impl Into<String>, prompt: Prompt) -> Self {
        Self {
            model: model.into(),
            prompt,
            max_output_tokens: None,
            min_output_tokens: None,
            length_field: LengthField::default(),
            stream: true,
            continuous_usage: false,
            ignore_eos: false,
            sampling: Map::new(),
            priority: None,
            extra_body: Map::new(),
        }
    }
}

/// Output limit of an Anthropic request without one: the API insists on a
/// number.
pub const ANTHROPIC_DEFAULT_MAX_TOKENS: u32 = 1024;

impl Api {
    /// The JSON body of a request, in the API's own field names.
    pub fn body(self, spec: &RequestSpec) -> Vec<u8> {
        let mut body = match self {
            Self::OpenaiChat | Self::OpenaiCompletions => openai_body(self, spec),
            Self::OpenaiResponses => responses_body(spec),
            Self::Anthropic => anthropic_body(spec),
            Self::Ollama | Self::OllamaGenerate => ollama_body(self, spec),
            Self::Tgi => tgi_body(spec),
            Self::Sglang => sglang_body(spec),
            Self::Triton => triton_body(spec),
            Self::Embeddings | Self::EmbeddingsChat | Self::Pooling => embeddings_body(self, spec),
            Self::Rerank => rerank_body(spec),
        };
        body.extend(spec.priority.map(|number| ("priority".to_owned(), json!(number))));
        body.extend(spec.extra_body.clone());
        // A map of strings and numbers always serialises.
        serde_json::to_vec(&Value::Object(body)).unwrap_or_default()
    }
}

/// A map of the fields that have a value.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn messages(prompt: &Prompt) -> Vec<Value> {
    match prompt {
        Prompt::Text(text) => vec![json!({"role": "user", "content": text})],
        Prompt::Ids(_) => messages(&Prompt::Text(plain_text(prompt))),
        Prompt::Texts(texts) => {
            texts.iter().map(|text| json!({"role": "user", "content": text})).collect()
        }
        Prompt::Messages(messages) => messages.clone(),
    }
}

fn plain_text(prompt: &Prompt) -> String {
    match prompt {
        Prompt::Text(text) => text.clone(),
        // Where an API takes none, numbers are all that can be said of them.
        Prompt::Ids(ids) => ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
        Prompt::Texts(texts) => texts.join("\n\n"),
        Prompt::Messages(messages) => {
            let contents: Vec<String> = messages.iter().map(message_text).collect();
            contents.join("\n\n")
        }
    }
}

/// The prompt of an API that takes ids in place of a text.
fn text_or_ids(prompt: &Prompt) -> Value {
    match prompt {
        Prompt::Ids(ids) => Value::from(ids.clone()),
        _ => plain_text(prompt).into(),
    }
}

/// The text of one message, whose content may be a list of parts.
fn message_text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn openai_body(api: Api, spec: &RequestSpec) -> Map<String, Value> {
    let limit = spec.max_output_tokens.map(Value::from);
    let mut body = spec.sampling.clone();
    if api == Api::OpenaiChat {
        let field = match spec.length_field {
            LengthField::MaxCompletionTokens => "max_completion_tokens",
            LengthField::MaxTokens => "max_tokens",
        };
        body.extend(object([
            ("messages", Some(Value::Array(messages(&spec.prompt)))),
            (field, limit),
        ]));
    } else {
        let prompt = text_or_ids(&spec.prompt);
        body.extend(object([("prompt", Some(prompt)), ("max_tokens", limit)]));
    }
    let options = object([
        ("include_usage", Some(true.into())),
        ("continuous_usage_stats", spec.continuous_usage.then_some(true.into())),
    ]);
    body.extend(object([
        ("model", Some(spec.model.clone().into())),
        ("stream", Some(spec.stream.into())),
        ("stream_options", spec.stream.then_some(Value::Object(options))),
        ("min_tokens", spec.min_output_tokens.map(Value::from)),
        ("ignore_eos", spec.ignore_eos.then_some(true.into())),
    ]));
    body
}

/// The messages, each part of a content that is a list rewritten.
fn with_parts(messages: Vec<Value>, part: impl Fn(Value) -> Value) -> Vec<Value> {
    let rewritten = |mut message: Value| {
        if let Some(Value::Array(parts)) = message.get_mut("content") {
            *parts = std::mem::take(parts).into_iter().map(&part).collect();
        }
        message
    };
    messages.into_iter().map(rewritten).collect()
}

/// The address in a part of an image, whichever way it is written.
fn image_address(part: &Value) -> Option<&str> {
    let image = part.get("image_url")?;
    image.get("url").unwrap_or(image).as_str()
}

/// The media type and the base64 of a data URL.
fn inline_data(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// A part as the responses API has it.
fn responses_part(part: Value) -> Value {
    if let Some(url) = image_address(&part) {
        let detail = part["image_url"].get("detail").cloned();
        return Value::Object(object([
            ("type", Some("input_image".into())),
            ("image_url", Some(url.into())),
            ("detail", detail),
        ]));
    }
    match part["text"].as_str() {
        Some(text) => json!({"type": "input_text", "text": text}),
        None => part,
    }
}

fn responses_body(spec: &RequestSpec) -> Map<String, Value> {
    let input = match &spec.prompt {
        Prompt::Text(_) | Prompt::Ids(_) | Prompt::Texts(_) => plain_text(&spec.prompt).into(),
        Prompt::Messages(messages) => {
            let messages = with_parts(messages.clone(), responses_part);
            Value::Array(history::for_responses(messages))
        }
    };
    let mut body = spec.sampling.clone();
    body.extend(object([
        ("model", Some(spec.model.clone().into())),
        ("input", Some(input)),
        ("max_output_tokens", spec.max_output_tokens.map(Value::from)),
        ("stream", Some(spec.stream.into())),
        ("min_tokens", spec.min_output_tokens.map(Value::from)),
        ("ignore_eos", spec.ignore_eos.then_some(true.into())),
    ]));
    body
}

/// A part as Anthropic has it.
fn anthropic_part(part: Value) -> Value {
    let Some(url) = image_address(&part) else { return part };
    let source = match inline_data(url) {
        Some((media_type, data)) => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        None => json!({"type": "url", "url": url}),
    };
    json!({"type": "image", "source": source})
}

/// Anthropic keeps system text outside the messages.
fn anthropic_body(spec: &RequestSpec) -> Map<String, Value> {
    let is_system =
        |message: &Value| matches!(message["role"].as_str(), Some("system" | "developer"));
    let (system, turns): (Vec<Value>, Vec<Value>) =
        messages(&spec.prompt).into_iter().partition(is_system);
    let turns = with_parts(turns, anthropic_part);
    let system: Vec<String> = system.iter().map(message_text).collect();
    let limit = spec.max_output_tokens.unwrap_or(ANTHROPIC_DEFAULT_MAX_TOKENS);
    let mut body = spec.sampling.clone();
    body.extend(object([
        ("model", Some(spec.model.clone().into())),
        ("messages", Some(Value::Array(history::for_anthropic(turns)))),
        ("system", (!system.is_empty()).then(|| system.join("\n\n").into())),
        ("max_tokens", Some(limit.into())),
        ("stream", Some(spec.stream.into())),
    ]));
    body
}

/// A message as Ollama has it: the text in one piece, images beside it.
fn ollama_message(mut message: Value) -> Value {
    let Some(parts) = message["content"].as_array() else { return message };
    let images: Vec<Value> =
        parts.iter().filter_map(|part| Some(inline_data(image_address(part)?)?.1.into())).collect();
    message["content"] = message_text(&message).into();
    if !images.is_empty() {
        message["images"] = Value::Array(images);
    }
    message
}

fn ollama_body(api: Api, spec: &RequestSpec) -> Map<String, Value> {
    let mut options = spec.sampling.clone();
    options.extend(object([("num_predict", spec.max_output_tokens.map(Value::from))]));
    let prompt = if api == Api::Ollama {
        let messages = messages(&spec.prompt).into_iter().map(ollama_message).collect();
        ("messages", Some(Value::Array(history::for_ollama(messages))))
    } else {
        ("prompt", Some(plain_text(&spec.prompt).into()))
    };
    object([
        ("model", Some(spec.model.clone().into())),
        prompt,
        ("stream", Some(spec.stream.into())),
        ("options", (!options.is_empty()).then_some(Value::Object(options))),
    ])
}

/// TGI has no model field; `details` makes the last event carry the finish
/// reason and the token count.
fn tgi_body(spec: &RequestSpec) -> Map<String, Value> {
    let mut parameters = spec.sampling.clone();
    parameters.extend(object([
        ("max_new_tokens", spec.max_output_tokens.map(Value::from)),
        ("details", Some(true.into())),
    ]));
    object([
        ("inputs", Some(plain_text(&spec.prompt).into())),
        ("parameters", Some(Value::Object(parameters))),
    ])
}

fn sglang_body(spec: &RequestSpec) -> Map<String, Value> {
    let mut sampling = spec.sampling.clone();
    sampling.extend(object([
        ("max_new_tokens", spec.max_output_tokens.map(Value::from)),
        ("min_new_tokens", spec.min_output_tokens.map(Value::from)),
        ("ignore_eos", spec.ignore_eos.then_some(true.into())),
    ]));
    let name = if matches!(spec.prompt, Prompt::Ids(_)) { "input_ids" } else { "text" };
    object([
        (name, Some(text_or_ids(&spec.prompt))),
        ("sampling_params", Some(Value::Object(sampling))),
        ("stream", Some(spec.stream.into())),
    ])
}

fn triton_body(spec: &RequestSpec) -> Map<String, Value> {
    let mut body = spec.sampling.clone();
    body.extend(object([
        ("text_input", Some(plain_text(&spec.prompt).into())),
        ("max_tokens", spec.max_output_tokens.map(Value::from)),
        ("stream", Some(spec.stream.into())),
    ]));
    body
}

/// OpenAI's embeddings, and vLLM's two forms that differ in the name of what is
/// embedded. A batch is a list, also of one.
fn embeddings_body(api: Api, spec: &RequestSpec) -> Map<String, Value> {
    let input = match &spec.prompt {
        _ if api == Api::EmbeddingsChat => ("messages", Value::Array(messages(&spec.prompt))),
        Prompt::Texts(texts) => ("input", Value::from(texts.clone())),
        _ => ("input", plain_text(&spec.prompt).into()),
    };
    object([("model", Some(spec.model.clone().into())), (input.0, Some(input.1))])
}

/// Rerank as Cohere, Jina, vLLM and llama.cpp take it.
fn rerank_body(spec: &RequestSpec) -> Map<String, Value> {
    let (query, documents) = match &spec.prompt {
        Prompt::Texts(texts) => match texts.split_first() {
            Some((query, documents)) => (query.clone(), documents.to_vec()),
            None => (String::new(), Vec::new()),
        },
        _ => (plain_text(&spec.prompt), Vec::new()),
    };
    object([
        ("model", Some(spec.model.clone().into())),
        ("query", Some(query.into())),
        ("documents", Some(documents.into())),
    ])
}

impl Api {
    /// Results that an answer to this request has to hold: one for each text,
    /// or for each document that the request does not do without. 0 where
    /// answers are tokens.
    pub fn results_of(self, spec: &RequestSpec) -> u32 {
        let texts = match &spec.prompt {
            Prompt::Texts(texts) => u32::try_from(texts.len()).unwrap_or(u32::MAX),
            Prompt::Text(_) | Prompt::Ids(_) | Prompt::Messages(_) => 1,
        };
        match self.entry().yields {
            Yields::Tokens => 0,
            Yields::Vectors if self == Self::EmbeddingsChat => 1,
            Yields::Vectors => texts,
            Yields::Scores => {
                let documents = texts.saturating_sub(1);
                let most = spec.extra_body.get("top_n").and_then(Value::as_u64);
                most.and_then(|most| u32::try_from(most).ok()).unwrap_or(documents).min(documents)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum_and_names_are_unique() {
        let mut names = Vec::new();
        for (index, entry) in APIS.iter().enumerate() {
            assert_eq!(entry.api as usize, index);
            names.extend_from_slice(entry.names);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn names_and_aliases_are_found() {
        for (name, api) in [
            ("openai-chat", Api::OpenaiChat),
            ("openai", Api::OpenaiCompletions),
            ("vllm", Api::OpenaiCompletions),
            ("openai_completions", Api::OpenaiCompletions),
            ("openai-responses", Api::OpenaiResponses),
            ("anthropic", Api::Anthropic),
            ("ollama", Api::Ollama),
            ("tgi", Api::Tgi),
            ("sglang", Api::Sglang),
            ("triton", Api::Triton),
            ("openai-embeddings", Api::Embeddings),
            ("vllm-pooling", Api::Pooling),
            ("vllm-rerank", Api::Rerank),
        ] {
            assert_eq!(Api::from_name(name), Some(api), "{name}");
        }
        assert_eq!(Api::from_name("grpc"), None);
    }

    #[track_caller]
    fn url(api: Api, url: &str, endpoint: Option<&str>, want: &str) {
        assert_eq!(api.endpoint_url(url, endpoint, Some("m")).as_deref(), Ok(want), "{url}");
    }

    #[test]
    fn urls_of_every_api() {
        let h = "http://h:1";
        for (api, path) in [
            (Api::OpenaiCompletions, "/v1/completions"),
            (Api::OpenaiResponses, "/v1/responses"),
            (Api::Anthropic, "/v1/messages"),
            (Api::Ollama, "/api/chat"),
            (Api::Tgi, "/generate_stream"),
            (Api::Sglang, "/generate"),
            (Api::Triton, "/v2/models/m/generate_stream"),
            (Api::Embeddings, "/v1/embeddings"),
            (Api::Pooling, "/pooling"),
            (Api::Rerank, "/v1/rerank"),
        ] {
            let whole = format!("{h}{path}");
            url(api, h, None, &whole);
            url(api, &whole, None, &whole);
            url(api, &format!("{h}/S01"), None, &format!("{h}/S01{path}"));
        }
        url(Api::Ollama, "http://h/api", None, "http://h/api/chat");
        let triton = "http://h/v2/models/other/generate_stream";
        assert_eq!(Api::Triton.endpoint_url(triton, None, None).as_deref(), Ok(triton));
        assert_eq!(Api::Triton.endpoint_url(h, None, None), Err(UrlError::ModelNeeded));
    }

    #[test]
    fn endpoints_queries_and_odd_hosts() {
        let chat = Api::OpenaiChat;
        let azure = "https://x.azure.com/openai/deployments/d/chat/completions?api-version=1";
        url(chat, azure, None, azure);
        url(chat, "http://h/v1?a=b", None, "http://h/v1/chat/completions?a=b");
        url(chat, "http://v1", None, "http://v1/v1/chat/completions");
        url(chat, "http://h/xv1", None, "http://h/xv1/v1/chat/completions");
        url(chat, "http://h/api/v1", Some("/chat/completions"), "http://h/api/v1/chat/completions");
        url(chat, "http://h", Some("v1/x"), "http://h/v1/x");
        url(chat, "http://h/v1", Some("/v1/x"), "http://h/v1/x");
        url(chat, "HTTP://[::1]:80/", None, "HTTP://[::1]:80/v1/chat/completions");
    }

    #[test]
    fn bad_urls_say_what_to_write() {
        let chat = |url: &str| Api::OpenaiChat.endpoint_url(url, None, None).unwrap_err();
        assert!(chat("localhost:8000").to_string().contains("http://localhost:8000"));
        assert!(matches!(chat("ftp://h"), UrlError::UnknownScheme { .. }));
        assert!(matches!(chat("http:///v1"), UrlError::NoHost(_)));
        assert!(matches!(chat("http://h/a b"), UrlError::Blank(_)));
        let endpoint = Api::Tgi.endpoint_url("http://h", Some("http://x/y"), None);
        assert!(matches!(endpoint, Err(UrlError::EndpointIsUrl(_))));
    }

    #[test]
    fn ollama_generate_is_chosen_by_the_url() {
        assert_eq!(Api::Ollama.for_url("http://h/api/generate"), Api::OllamaGenerate);
        assert_eq!(Api::Ollama.for_url("http://h"), Api::Ollama);
        assert_eq!(Api::OpenaiChat.for_url("http://h/api/generate"), Api::OpenaiChat);
    }

    fn body(api: Api, change: impl FnOnce(&mut RequestSpec)) -> Value {
        let mut spec = RequestSpec::new("m", Prompt::Text("hi".to_owned()));
        spec.max_output_tokens = Some(7);
        change(&mut spec);
        serde_json::from_slice(&api.body(&spec)).unwrap()
    }

    #[test]
    fn bodies_have_each_apis_own_fields_and_nothing_else() {
        let turn = json!([{"role": "user", "content": "hi"}]);
        for (api, want) in [
            (
                Api::OpenaiChat,
                json!({"model": "m", "messages": turn, "max_completion_tokens": 7,
                    "stream": true, "stream_options": {"include_usage": true}}),
            ),
            (
                Api::OpenaiCompletions,
                json!({"model": "m", "prompt": "hi", "max_tokens": 7,
                    "stream": true, "stream_options": {"include_usage": true}}),
            ),
            (
                Api::OpenaiResponses,
                json!({"model": "m", "input": "hi", "max_output_tokens": 7, "stream": true}),
            ),
            (
                Api::Anthropic,
                json!({"model": "m", "messages": turn, "max_tokens": 7, "stream": true}),
            ),
            (
                Api::Ollama,
                json!({"model": "m", "messages": turn, "stream": true,
                    "options": {"num_predict": 7}}),
            ),
            (
                Api::OllamaGenerate,
                json!({"model": "m", "prompt": "hi", "stream": true,
                    "options": {"num_predict": 7}}),
            ),
            (
                Api::Tgi,
                json!({"inputs": "hi", "parameters": {"max_new_tokens": 7, "details": true}}),
            ),
            (
                Api::Sglang,
                json!({"text": "hi", "sampling_params": {"max_new_tokens": 7}, "stream": true}),
            ),
            (Api::Triton, json!({"text_input": "hi", "max_tokens": 7, "stream": true})),
            (Api::Embeddings, json!({"model": "m", "input": "hi"})),
            (Api::EmbeddingsChat, json!({"model": "m", "messages": turn})),
            (Api::Pooling, json!({"model": "m", "input": "hi"})),
        ] {
            assert_eq!(body(api, |_| ()), want, "{api:?}");
        }
    }

    #[test]
    fn engine_only_fields_are_sent_only_when_asked() {
        let chat = body(Api::OpenaiChat, |spec| {
            spec.ignore_eos = true;
            spec.min_output_tokens = Some(7);
            spec.continuous_usage = true;
            spec.length_field = LengthField::MaxTokens;
            spec.sampling.insert("temperature".into(), 0.into());
            spec.extra_body.insert("stream".into(), false.into());
        });
        assert_eq!(chat["ignore_eos"], true);
        assert_eq!(chat["min_tokens"], 7);
        assert_eq!(chat["stream_options"]["continuous_usage_stats"], true);
        assert_eq!(chat["max_tokens"], 7);
        assert_eq!(chat["max_completion_tokens"], Value::Null);
        assert_eq!(chat["temperature"], 0);
        assert_eq!(chat["stream"], false, "the extra body wins");
        let sglang = body(Api::Sglang, |spec| spec.ignore_eos = true);
        assert_eq!(sglang["sampling_params"]["ignore_eos"], true);
        for entry in APIS {
            let text = body(entry.api, |spec| spec.ignore_eos = true).to_string();
            assert_eq!(text.contains("ignore_eos"), entry.can_ignore_eos, "{:?}", entry.api);
        }
    }

    #[test]
    fn messages_fit_every_api() {
        let turns = vec![
            json!({"role": "system", "content": "be brief"}),
            json!({"role": "user", "content": [{"type": "text", "text": "hi"}]}),
        ];
        let ask = |api| body(api, |spec| spec.prompt = Prompt::Messages(turns.clone()));
        assert_eq!(ask(Api::OpenaiChat)["messages"], json!(turns));
        let anthropic = ask(Api::Anthropic);
        assert_eq!(anthropic["system"], "be brief");
        assert_eq!(anthropic["messages"], json!(turns[1..]));
        assert_eq!(ask(Api::OpenaiCompletions)["prompt"], "be brief\n\nhi");
    }

    /// Bodies from the API references: OpenAI "Images and vision" and "Audio"
    /// (chat and responses), Anthropic "Vision", Ollama "chat request with
    /// images". Ollama's pictures have no place in the text.
    #[test]
    fn pictures_have_each_apis_own_form() {
        let data = "data:image/png;base64,iVBORw0KGgo=";
        let turn = json!([{"role": "user", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": data}},
            {"type": "image_url", "image_url": {"url": "https://h/x.png", "detail": "low"}},
        ]}]);
        let ask = |api| {
            body(api, |spec| {
                spec.prompt = Prompt::Messages(turn.as_array().unwrap().clone());
            })
        };
        assert_eq!(ask(Api::OpenaiChat)["messages"], turn);
        assert_eq!(
            ask(Api::OpenaiResponses)["input"][0]["content"],
            json!([
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": data},
                {"type": "input_image", "image_url": "https://h/x.png", "detail": "low"},
            ])
        );
        assert_eq!(
            ask(Api::Anthropic)["messages"][0]["content"],
            json!([
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {
                    "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=",
                }},
                {"type": "image", "source": {"type": "url", "url": "https://h/x.png"}},
            ])
        );
        assert_eq!(
            ask(Api::Ollama)["messages"],
            json!([{"role": "user", "content": "What is this?", "images": ["iVBORw0KGgo="]}])
        );
    }

    /// Bodies of the API references: OpenAI "Create embeddings", Cohere
    /// "Rerank" v2, Jina "Reranker".
    #[test]
    fn several_texts_are_a_list_or_a_query_with_documents() {
        let ask = |api: Api, more: Value| {
            let texts = ["q", "a", "b"].map(str::to_owned).to_vec();
            let mut spec = RequestSpec::new("m", Prompt::Texts(texts));
            spec.extra_body = more.as_object().unwrap().clone();
            let body: Value = serde_json::from_slice(&api.body(&spec)).unwrap();
            (body, api.results_of(&spec))
        };
        assert_eq!(
            ask(Api::Embeddings, json!({"dimensions": 8})),
            (json!({"model": "m", "input": ["q", "a", "b"], "dimensions": 8}), 3)
        );
        let ranked = json!({"model": "m", "query": "q", "documents": ["a", "b"]});
        assert_eq!(ask(Api::Rerank, json!({})), (ranked, 2));
        assert_eq!(ask(Api::Rerank, json!({"top_n": 1})).1, 1);
        assert_eq!(ask(Api::OpenaiChat, json!({})).1, 0);
    }

    #[test]
    fn refused_backends_are_no_names() {
        assert!(REFUSED.iter().all(|(name, _)| Api::from_name(name).is_none()));
        // Every backend of `vllm bench serve` 0.27.1.
        for name in "vllm openai openai-chat openai-audio openai-embeddings \
            openai-embeddings-chat openai-embeddings-clip openai-embeddings-vlm2vec \
            infinity-embeddings infinity-embeddings-clip vllm-pooling vllm-rerank"
            .split_whitespace()
        {
            let refused = REFUSED.iter().any(|(other, _)| *other == name);
            assert!(refused != Api::from_name(name).is_some(), "{name}");
        }
    }

    /// vLLM's and OpenAI's completions take a list of ids as `prompt`, SGLang's
    /// `/generate` as `input_ids`.
    #[test]
    fn ids_go_where_the_api_takes_them() {
        let ids = |api| body(api, |spec| spec.prompt = Prompt::Ids(vec![5, 0, 7]));
        assert_eq!(ids(Api::OpenaiCompletions)["prompt"], json!([5, 0, 7]));
        let sglang = ids(Api::Sglang);
        assert_eq!(sglang["input_ids"], json!([5, 0, 7]));
        assert_eq!(sglang["text"], Value::Null);
    }

    #[test]
    fn anthropic_always_has_a_limit() {
        let body = body(Api::Anthropic, |spec| spec.max_output_tokens = None);
        assert_eq!(body["max_tokens"], ANTHROPIC_DEFAULT_MAX_TOKENS);
    }

    #[test]
    fn keys_go_where_the_api_expects_them() {
        let auth = |api: Api| api.entry().auth.header("k");
        assert_eq!(auth(Api::OpenaiChat), ("authorization", "Bearer k".to_owned()));
        assert_eq!(auth(Api::Anthropic), ("x-api-key", "k".to_owned()));
    }
}
