//! From what the user typed to what a run does: every rule about flags that
//! concerns more than one of them.

use std::sync::Arc;

use drive::Reuse;
use measure::definition::PRESETS;
use measure::deployment::Deployment;
use measure::facts::{ENGINE_FACTS, WorkloadFacts};
use measure::fairness::Isolated;
use measure::slo::Slo;
use measure::threshold::Threshold;
use measure::{Span, Tokens};
use serde_json::{Map, Value};
use wire::api::{Api, LengthField, Prompt as WirePrompt, RequestSpec, Yields};
use wire::dataset::table::is_written;
use wire::run::Setting;
use workload::media::Pictures;
use workload::prompt::{CacheRegime, Order, Prompt, PromptSource};
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{
    Batch, Conversations, Lexicon, LexiconError, Load, ModelKind, Prefixes, Replay, Routing, Stop,
    Think, Tokenizer,
};

use crate::flags::{Reader, Settings, UsageError, storable_url};
use crate::tokenizer;

mod batch;
mod data;
pub(crate) mod deployment;
pub(crate) mod engine;
mod ids;
mod lengths;
mod load;
mod media;
pub(crate) mod metrics;
mod mix;
pub(crate) mod objective;
mod prefix;
mod routing;
mod servegen;
mod trace;
mod turns;

use data::Data;

/// What the embedded engine speaks.
const EMBEDDED: &[Api] =
    &[Api::OpenaiChat, Api::OpenaiCompletions, Api::Embeddings, Api::EmbeddingsChat, Api::Rerank];

/// Spread of lengths when none was given: everything equal would hide how a
/// server treats unequal requests.
const DEFAULT_SPREAD: f64 = 0.25;

/// What a run does, as far as flags decide it.
pub(crate) struct Plan {
    /// Where to, unless the embedded engine is the target.
    pub(crate) address: Option<Address>,
    pub(crate) api: Api,
    /// As the server knows it.
    pub(crate) model: Option<String>,
    pub(crate) spec: Spec,
    pub(crate) warmups: u32,
    pub(crate) workload: WorkloadFacts,
    /// What lengths are counted by; without one they are estimates.
    pub(crate) tokenizer: Option<Arc<dyn Tokenizer>>,
    /// True when the server is to be asked for the counts, which only a
    /// resolved target can be.
    pub(crate) asks_server: bool,
    /// The lengths of prompts as they were asked for, before anything is said
    /// of who counts them.
    asked_lengths: String,
    pub(crate) template: RequestSpec,
    pub(crate) slo: Option<Slo>,
    /// Runs in which labels were alone, read before this one.
    pub(crate) isolated: Vec<Isolated>,
    pub(crate) thresholds: Vec<Threshold>,
    pub(crate) percentiles: Vec<f64>,
    pub(crate) rows: Option<Vec<&'static str>>,
    pub(crate) stall_ms: f64,
    pub(crate) idle_timeout: Span,
    pub(crate) request_timeout: Span,
    pub(crate) ready_timeout: Option<Span>,
    pub(crate) max_errors: Option<u64>,
    pub(crate) max_error_rate: Option<f64>,
    pub(crate) threads: u32,
    pub(crate) reuse: Reuse,
    /// Prompts go out as the tokenizer's ids.
    pub(crate) sends_ids: bool,
    /// The header that names each request's conversation.
    pub(crate) session_header: Option<String>,
    pub(crate) definitions: String,
    /// The engine model, where there is no address.
    pub(crate) engine: Option<sim::Settings>,
    /// What is said of the machines that serve.
    pub(crate) deployment: Deployment,
    /// Where metrics of servers are read; none where none are.
    pub(crate) metrics: Option<metrics::Metrics>,
}

impl Plan {
    /// The models asked for, as a result shows them; `base` is the run's own,
    /// which adapters are of.
    pub(crate) fn models_shown(&self, base: &str) -> String {
        let mut shown: Vec<&str> = Vec::new();
        for routing in routings(&self.spec.routing, &self.spec.prompts) {
            let models = models(routing);
            let models = if models.is_empty() { vec![base] } else { models };
            shown.extend(
                models.into_iter().filter(|name| !shown.contains(name)).collect::<Vec<_>>(),
            );
        }
        shown.join(", ")
    }

    /// True when requests ask for names besides the run's own model.
    pub(crate) fn has_names(&self) -> bool {
        let routings = routings(&self.spec.routing, &self.spec.prompts);
        routings.iter().any(|routing| routing.models.is_some())
    }

    /// Takes the engine model that answers, where one does.
    fn take(&mut self, engine: Option<engine::Engine>) {
        let Some(engine) = engine else { return };
        self.workload.notes.extend(engine.notes);
        self.engine = Some(engine.settings);
    }

    /// Takes what is said of the machines, by the user or by the engine model.
    fn name_machines(
        &mut self,
        reader: &mut Reader<'_>,
        read: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    ) {
        self.deployment = match &self.engine {
            Some(engine) => deployment::of_engine(reader, engine),
            None => {
                let (deployment, notes) = deployment::deployment(reader, read);
                self.workload.notes.extend(notes);
                deployment
            }
        };
    }

    /// The settings that nobody gave, with the values that they took: a run
    /// must be repeatable by a version with other defaults.
    pub(crate) fn defaults(&self, settings: &Settings, schedule: &Schedule) -> Vec<Setting> {
        let load = schedule.load();
        let text = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        let stop = self.spec.stop;
        [
            ("backend", self.api.name().to_owned()),
            ("num-prompts", text(stop.count().map(|count| count.to_string()))),
            ("duration", text(stop.duration().map(|span| format!("{}s", span.s())))),
            ("request-rate", text(load.rate().map(|rate| rate.get().to_string()))),
            ("arrivals", text(arrivals(load))),
            ("burstiness", text(load.burstiness().map(|burstiness| burstiness.to_string()))),
            ("max-concurrency", text(load.users().map(|users| users.to_string()))),
            ("seed", self.spec.seed.to_string()),
            ("num-warmups", self.warmups.to_string()),
            ("dataset-name", "random".to_owned()),
            ("isl", self.workload.input_lengths.clone()),
            ("tokenizer", text(self.workload.tokenizer.clone())),
            ("osl", self.workload.output_lengths.clone()),
            ("prefix-cache", schedule.cache().name().to_owned()),
            ("idle-timeout", format!("{}s", self.idle_timeout.s())),
            ("request-timeout", format!("{}s", self.request_timeout.s())),
            ("threads", self.threads.to_string()),
            ("stall-ms", self.stall_ms.to_string()),
            ("definitions", self.definitions.clone()),
        ]
        .into_iter()
        .filter(|(name, _)| !settings.has(name))
        .map(|(name, value)| Setting { name: name.to_owned(), value, origin: "default".to_owned() })
        .collect()
    }
}

impl Plan {
    /// True when the server puts special tokens around a prompt: it does with a
    /// plain text, and takes ids as they are.
    pub(crate) fn adds_special_tokens(&self) -> bool {
        self.api.adds_special_tokens() && !self.sends_ids
    }

    /// Makes the lengths of prompts that are ours exact under a tokenizer.
    pub(crate) fn count_by(&mut self, tokenizer: Arc<dyn Tokenizer>) -> Result<(), LexiconError> {
        if self.spec.prompts.is_written() {
            let special = if self.adds_special_tokens() { tokenizer.added() } else { 0 };
            let lexicon = Arc::new(Lexicon::proven(&*tokenizer)?.with_special(special));
            self.spec.prompts = self.spec.prompts.clone().exact_by(lexicon);
        }
        // Rows of a file were counted before the server could be asked.
        if self.spec.prompts.is_written() || !self.asks_server {
            self.workload.tokenizer = Some(tokenizer.name().to_owned());
        }
        self.tokenizer = Some(tokenizer);
        self.say_who_counts();
        Ok(())
    }

    /// Says in the workload's facts by whom the lengths are counted, and what
    /// the server adds to them.
    fn say_who_counts(&mut self) {
        if !self.spec.prompts.is_written() {
            return;
        }
        let Some(lexicon) = self.spec.prompts.exact_lexicon() else {
            self.workload.input_lengths = format!("{}, estimated", self.asked_lengths);
            return;
        };
        let (asked, counted_by) = (&self.asked_lengths, lexicon.tokenizer());
        let beside = match lexicon.special() {
            // The embedded engine has no template.
            0 if self.api.entry().takes_messages && self.address.is_some() => {
                ", before the server's chat template".to_owned()
            }
            0 => String::new(),
            added => format!(", {added} of them added by the server"),
        };
        self.workload.input_lengths =
            format!("{asked}, exact by the tokenizer {counted_by}{beside}");
    }
}

/// How requests come by the clock, in a word.
fn arrivals(load: &Load) -> Option<String> {
    let of_trace = load.replay().map(|_| "trace".to_owned());
    of_trace.or_else(|| Some(load.pace()?.process.name().to_owned()))
}

/// Where to, as given: URLs, at least one, and an endpoint path for all.
pub(crate) struct Address {
    pub(crate) urls: Vec<String>,
    pub(crate) endpoint: Option<String>,
}

/// Resolves settings. `read` opens files.
pub(crate) fn resolve(
    settings: &Settings,
    read: impl Fn(&str, u64) -> Result<Vec<u8>, String>,
) -> Result<Plan, Vec<UsageError>> {
    let mut reader = Reader::new(settings);
    let address = address(&mut reader);
    let embedded = address.is_none();
    let api = api(&mut reader, address.as_ref());
    // The caller draws one where none was given; this is after a wrong one.
    let seed = reader.value("seed", "a whole number from 0").unwrap_or(0);
    let tokenizer = tokenizer(&mut reader, &read, embedded);
    let make = if settings.has("mix") { mix::mix } else { sent };
    let sent = make(&mut reader, &read, embedded, api, tokenizer.as_ref());
    let Sent { prompts, pictures, prefixes, batch, output, output_forced, routing, facts, .. } =
        sent;
    let (conversations, replay, mut routing, mut workload) =
        (sent.conversations, sent.replay, routing, facts);
    let urls = address.as_ref().map_or(&[][..], |address| &address.urls);
    routing.targets = routing::targets(&mut reader, urls);
    workload.notes.extend(routing::said_of_targets(&routing, urls));
    let (units, turns) = (turns::units(conversations.as_ref(), &prompts), conversations.is_some());
    let sends_ids =
        ids::sends_ids(&mut reader, api, &prompts, turns, tokenizer.as_ref(), &mut workload);
    let asked_lengths = workload.input_lengths.clone();
    let (load, stop) =
        load::load(&mut reader, embedded, seed, &prompts, units, replay, &mut workload.notes);
    let threads = threads(&mut reader, &load, &output);
    let cache = cache(&mut reader, &prompts);
    let template = template(&mut reader, api);
    let slo = objective::slo(&mut reader);
    if let Some(slo) = &slo {
        objective::possible(&mut reader, slo, api, &template.extra_body);
    }
    let thresholds = objective::thresholds(&mut reader, slo.as_ref());
    workload.random_text = prompts.is_written();
    workload.output_forced = output_forced || parts_force_output(&prompts);
    describe(&mut reader, &mut workload);
    let percentiles = percentiles(&mut reader);
    let rows = rows(&mut reader);
    let (idle_timeout, request_timeout) = timeouts(&mut reader);
    let definitions = settings.text("definitions").unwrap_or("goodput").to_owned();
    if !PRESETS.contains(&definitions.as_str()) {
        reader
            .wrong("definitions", format!("{definitions:?} is not one of {}", PRESETS.join(", ")));
    }
    let mut plan = Plan {
        api,
        model: model(settings, &routing, &prompts),
        spec: Spec {
            seed,
            load,
            stop,
            prompts,
            pictures,
            prefixes,
            batch,
            output,
            output_forced,
            cache,
            nonce_in_own_prompts: settings.has("prefix-cache"),
            labels: Vec::new(),
            routing,
            conversations,
        },
        warmups: reader.value("num-warmups", "a whole number from 0").unwrap_or(0),
        workload,
        tokenizer: None,
        asks_server: !embedded && settings.text("tokenizer") == Some(tokenizer::SERVER),
        asked_lengths,
        template,
        slo,
        isolated: Vec::new(),
        thresholds,
        percentiles,
        rows,
        stall_ms: positive(&mut reader, "stall-ms").unwrap_or(500.0),
        idle_timeout,
        request_timeout,
        ready_timeout: reader.duration("ready-timeout").filter(|span| *span > Span::ZERO),
        max_errors: reader.value("max-errors", "a whole number from 0"),
        max_error_rate: share(&mut reader, "max-error-rate"),
        threads,
        reuse: reuse(&mut reader),
        sends_ids,
        session_header: turns::session_header(&mut reader),
        definitions,
        engine: None,
        deployment: Deployment::default(),
        metrics: metrics::metrics(&mut reader),
        address,
    };
    plan.take(engine(&mut reader, &read, embedded));
    plan.name_machines(&mut reader, &read);
    match tokenizer.map(|tokenizer| plan.count_by(tokenizer)) {
        Some(Err(error)) => reader.wrong("tokenizer", error),
        Some(Ok(())) => {}
        None => plan.say_who_counts(),
    }
    if reader.errors.is_empty() { Ok(plan) } else { Err(reader.errors) }
}

/// The model that is asked for where a request has none of its own. Of several
/// models the first, so that the server need not be asked for one that nobody
/// wants.
fn model(settings: &Settings, routing: &Routing, prompts: &PromptSource) -> Option<String> {
    let given = settings.text("served-model-name").or_else(|| settings.text("model"));
    let routings = routings(routing, prompts);
    let first = || routings.iter().map(|routing| models(routing).first().copied()).min().flatten();
    given.or_else(first).map(str::to_owned)
}

/// What requests are dealt to: the run's, or that of each part of a mix.
fn routings<'a>(routing: &'a Routing, prompts: &'a PromptSource) -> Vec<&'a Routing> {
    match prompts {
        PromptSource::Mix(mix) => mix.parts().iter().map(|part| &part.routing).collect(),
        _ => vec![routing],
    }
}

/// The models that requests are dealt to, none of which is an adapter.
fn models(routing: &Routing) -> Vec<&str> {
    match &routing.models {
        Some((ModelKind::Model, choice)) => {
            choice.options().iter().map(|(name, _)| name.as_str()).collect()
        }
        _ => Vec::new(),
    }
}

/// True where a flag names a target.
pub(crate) fn names_target(settings: &Settings) -> bool {
    ["url", "base-url", "host", "port"].iter().any(|flag| settings.has(flag))
}

fn address(reader: &mut Reader<'_>) -> Option<Address> {
    let settings = reader.settings;
    let endpoint = settings.text("endpoint").map(str::to_owned);
    let url = settings.text("url").or_else(|| settings.text("base-url")).map(str::to_owned);
    let url = url.or_else(|| {
        if !settings.has("host") && !settings.has("port") {
            return None;
        }
        let host = settings.text("host").unwrap_or("127.0.0.1");
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let port: u16 = reader.value("port", "a port from 1 to 65535").unwrap_or(8000);
        Some(format!("http://{host}:{port}"))
    });
    if url.is_none() && endpoint.is_some() {
        reader.wrong("endpoint", "a path needs a target; give --url or --host and --port");
    }
    let also = settings.all("also-url");
    if url.is_none() && !also.is_empty() {
        reader.wrong("also-url", "is a further address; give the first with --url");
    }
    let urls: Vec<String> = url.into_iter().chain(also.iter().cloned()).collect();
    for (place, url) in urls.iter().enumerate() {
        if urls[..place].contains(url) {
            reader.wrong("also-url", format!("{} is there twice", storable_url(url)));
        }
    }
    (!urls.is_empty()).then_some(Address { urls, endpoint })
}

impl Address {
    /// The URLs as they may be stored and printed.
    pub(crate) fn shown(&self) -> String {
        let urls: Vec<String> = self.urls.iter().map(|url| storable_url(url)).collect();
        urls.join(", ")
    }
}

fn api(reader: &mut Reader<'_>, address: Option<&Address>) -> Api {
    let name = reader.settings.text("backend").unwrap_or("openai-chat");
    let Some(api) = Api::from_name(name) else {
        let plain = name.replace('_', "-");
        if let Some((_, why)) = wire::api::REFUSED.iter().find(|(known, _)| *known == plain) {
            reader.wrong("backend", format!("{name} is not spoken: {why}"));
            return Api::OpenaiChat;
        }
        // An API that only a URL chooses has no name.
        let known: Vec<&str> =
            wire::api::APIS.iter().filter_map(|entry| entry.names.first().copied()).collect();
        reader.wrong("backend", format!("{name:?} is not one of {}", known.join(", ")));
        return Api::OpenaiChat;
    };
    let Some(address) = address else {
        if !EMBEDDED.contains(&api) {
            let names: Vec<_> = EMBEDDED.iter().map(|api| api.name()).collect();
            let names = names.join(", ");
            let rule = format!("the embedded engine speaks {names}; give --url for other APIs");
            reader.wrong("backend", rule);
        }
        return api;
    };
    let of = |url: &String| api.for_url(address.endpoint.as_deref().unwrap_or(url));
    let first = address.urls.first().map_or(api, of);
    if address.urls.iter().any(|url| of(url) != first) {
        reader.wrong("also-url", "leads to another API than --url; one run speaks one");
    }
    first
}

/// The engine model that answers where there is no address.
fn engine(
    reader: &mut Reader<'_>,
    read: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    embedded: bool,
) -> Option<engine::Engine> {
    if !embedded {
        for flag in ["set", "engine"] {
            if reader.settings.has(flag) {
                reader.wrong(
                    flag,
                    "is about the engine model, and an address was given: leave one out",
                );
            }
        }
        return None;
    }
    let settings = reader.settings;
    match engine::engine(settings.text("engine"), settings.all("set"), read) {
        Ok(engine) => Some(engine),
        Err(error) => {
            reader.errors.push(error);
            None
        }
    }
}

/// What prompts are counted by. The embedded engine counts by its own
/// tokenizer, so that the lengths of a run without flags are exact; what a
/// served model counts by, only the user knows.
fn tokenizer(
    reader: &mut Reader<'_>,
    read: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    embedded: bool,
) -> Option<Arc<dyn Tokenizer>> {
    let otherwise = embedded.then_some(tokenizer::EMBEDDED);
    let name = match reader.settings.text("tokenizer").or(otherwise)? {
        tokenizer::SERVER if embedded => tokenizer::EMBEDDED,
        tokenizer::SERVER => return None,
        name => name,
    };
    tokenizer::load(name, read).map_err(|error| reader.wrong("tokenizer", error)).ok()
}

/// What is sent, as far as flags decide it: by a run, or by one part of a mix.
struct Sent {
    prompts: PromptSource,
    pictures: Option<Pictures>,
    prefixes: Prefixes,
    batch: Batch,
    output: OutputLength,
    output_forced: bool,
    routing: Routing,
    conversations: Option<Conversations>,
    facts: WorkloadFacts,
    /// When requests come, where the rows of a trace say it.
    replay: Option<Replay>,
}

fn sent(
    reader: &mut Reader<'_>,
    read: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    embedded: bool,
    api: Api,
    tokenizer: Option<&Arc<dyn Tokenizer>>,
) -> Sent {
    let Data { prompts, output, mut facts, replay, conversations } =
        workload(reader, read, embedded, api, tokenizer);
    let conversations = turns::conversations(reader, read, conversations, &mut facts);
    let batch = batch::batch(reader, api, &prompts, &mut facts);
    let output = batch::output(reader, api, output, &mut facts);
    if conversations.is_some() && api.entry().yields != Yields::Tokens {
        reader.wrong("backend", "vectors and scores are no answers that a later turn could hold");
    }
    let prefixes = prefix::prefixes(reader, prompts.is_written());
    batch::without_prefixes(reader, &batch, prefixes);
    facts.input_lengths = prefix::describe(prefixes, &facts.input_lengths);
    facts.notes.extend(prefix::unused(reader));
    let pictures = media::pictures(reader);
    media::check(reader, api, &prompts, pictures.as_ref());
    facts.notes.extend(media::said(&prompts, pictures.as_ref()));
    let routing = routing::routing(reader, api);
    facts.notes.extend(routing::said(&routing));
    let output_forced = reader.settings.is_on("ignore-eos");
    if output_forced && !api.entry().can_ignore_eos {
        reader.wrong("ignore-eos", format!("the API {} has no such field", api.name()));
    }
    Sent {
        prompts,
        pictures,
        prefixes,
        batch,
        output,
        output_forced,
        routing,
        conversations,
        facts,
        replay,
    }
}

fn workload(
    reader: &mut Reader<'_>,
    read: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    embedded: bool,
    api: Api,
    tokenizer: Option<&Arc<dyn Tokenizer>>,
) -> Data {
    let settings = reader.settings;
    let (input_ratio, output_ratio) = lengths::ratios(reader);
    let (isl, osl) = if embedded { (4096, 128) } else { (512, 128) };
    let spread = if embedded { 0.0 } else { DEFAULT_SPREAD };
    let input = lengths::lengths(reader, read, "isl", isl, spread, input_ratio);
    let output = lengths::lengths(reader, read, "osl", osl, spread, output_ratio);
    let name = settings.text("dataset-name").unwrap_or("random");
    let counted_by = tokenizer.map(|tokenizer| tokenizer.name().to_owned());
    let mut facts = WorkloadFacts { tokenizer: counted_by, ..WorkloadFacts::default() };
    if let Some(text) = settings.text("prompt") {
        if settings.has("dataset-name") || settings.has("dataset-path") {
            reader.wrong(
                "prompt",
                "is a workload of its own; leave out --dataset-name and --dataset-path",
            );
        }
        facts.source = "one text, the same in every request".to_owned();
        facts.input_lengths = "as the text is".to_owned();
        facts.output_lengths = output.describe();
        let mut prompt = Prompt::text(text);
        if let Some(tokenizer) = tokenizer {
            prompt.input_tokens = Some(Tokens::new(tokenizer.count(text)));
        }
        let prompts = PromptSource::List { prompts: vec![prompt], order: Order::AsIs };
        trace::is_replayed(reader, None);
        return Data::alone(prompts, output, facts);
    }
    let with_pictures = name.replace('_', "-") == media::RANDOM;
    let repeats = prefix::is_repetition(name);
    if is_written(name) {
        trace::is_replayed(reader, None);
        let (input, output) = match repeats {
            true => prefix::repetition_lengths(reader, input, output),
            false => (input, output),
        };
        if settings.has("dataset-path") {
            reader.wrong(
                "dataset-path",
                "random prompts have no file; give the --dataset-name that it is of, such as \
                 sharegpt or custom",
            );
        }
        if settings.has("dataset-column") {
            reader
                .wrong("dataset-column", "random prompts have no columns; give --dataset-name hf");
        }
        facts.source = match (with_pictures, repeats) {
            (true, _) => "synthetic text and pictures (random-mm)".to_owned(),
            (_, true) => format!("synthetic text ({})", prefix::REPETITION),
            _ => "synthetic text (random)".to_owned(),
        };
        facts.input_lengths = format!("{} tokens", input.describe());
        facts.output_lengths = output.describe();
        return Data::alone(PromptSource::Synthetic { input }, output, facts);
    }
    data::read(reader, read, name, output.clone(), api, tokenizer)
        .unwrap_or_else(|| Data::alone(PromptSource::Synthetic { input }, output, facts))
}

fn cache(reader: &mut Reader<'_>, prompts: &PromptSource) -> CacheRegime {
    let words: Vec<(&str, CacheRegime)> =
        CacheRegime::ALL.iter().map(|regime| (regime.name(), *regime)).collect();
    let default = if prompts.is_written() { CacheRegime::Cold } else { CacheRegime::AsIs };
    reader.choice("prefix-cache", &words).unwrap_or(default)
}

fn template(reader: &mut Reader<'_>, api: Api) -> RequestSpec {
    let mut sampling = Map::new();
    for name in [
        "temperature",
        "top-p",
        "min-p",
        "frequency-penalty",
        "presence-penalty",
        "repetition-penalty",
    ] {
        if let Some(value) = reader.number(name) {
            sampling.insert(name.replace('-', "_"), value.into());
        }
    }
    for name in ["top-k", "logprobs"] {
        if let Some(value) = reader.value::<i64>(name, "a whole number") {
            sampling.insert(name.replace('-', "_"), value.into());
        }
    }
    if api.entry().yields != Yields::Tokens {
        for name in sampling.keys() {
            reader.wrong(&name.replace('_', "-"), format!("{} samples nothing", api.name()));
        }
    }
    let extra_body = match reader.settings.text("extra-body") {
        None => Map::new(),
        Some(text) => match serde_json::from_str(text) {
            Ok(Value::Object(members)) => members,
            _ => {
                reader.wrong("extra-body", "must be one JSON object, as in '{\"top_k\": 1}'");
                Map::new()
            }
        },
    };
    let extra_body = answers(reader, api, extra_body);
    let continuous =
        reader.choice("token-counts", &[("final", false), ("continuous", true)]).unwrap_or(false);
    if continuous && !matches!(api, Api::OpenaiChat | Api::OpenaiCompletions) {
        reader.wrong("token-counts", format!("{} has no continuous counts", api.name()));
    }
    let fields = [
        ("max_completion_tokens", LengthField::MaxCompletionTokens),
        ("max_tokens", LengthField::MaxTokens),
    ];
    RequestSpec {
        sampling,
        extra_body,
        continuous_usage: continuous,
        length_field: reader.choice("length-field", &fields).unwrap_or_default(),
        ..RequestSpec::new("", WirePrompt::Text(String::new()))
    }
}

/// True when a part of a mix has the whole length of its answers written.
fn parts_force_output(prompts: &PromptSource) -> bool {
    matches!(prompts, PromptSource::Mix(mix) if mix.parts().iter().any(|part| part.output_forced))
}

/// What is known of the workload besides where its prompts come from.
fn describe(reader: &mut Reader<'_>, workload: &mut WorkloadFacts) {
    let settings = reader.settings;
    workload.use_case = settings.text("use-case").map(str::to_owned);
    for fact in settings.text("engine-facts").into_iter().flat_map(|list| list.split(',')) {
        let fact = fact.trim();
        if ENGINE_FACTS.contains(&fact) {
            workload.engine_facts.push(fact.to_owned());
        } else {
            let known = ENGINE_FACTS.join(", ");
            reader.wrong("engine-facts", format!("{fact:?} is not one of {known}"));
        }
    }
}

/// Adds what answers have to be like: `--extra-body` wins, then the flags, then
/// rows.
fn answers(
    reader: &mut Reader<'_>,
    api: Api,
    mut extra_body: Map<String, Value>,
) -> Map<String, Value> {
    if let Some(text) = reader.settings.text("response-format") {
        match serde_json::from_str(text) {
            Ok(format @ Value::Object(_)) => {
                extra_body.entry("response_format").or_insert(format);
            }
            _ => reader.wrong(
                "response-format",
                "must be one JSON object, as in '{\"type\": \"json_object\"}'",
            ),
        }
        if !api.takes_format() {
            let rule = format!("{} has no such field; see its own with --extra-body", api.name());
            reader.wrong("response-format", rule);
        }
    }
    if let Some(text) = reader.settings.text("tool-choice") {
        // A word is no JSON, and an object is.
        let choice = serde_json::from_str(text).ok().filter(Value::is_object);
        extra_body.entry("tool_choice").or_insert(choice.unwrap_or_else(|| text.into()));
        if !matches!(api, Api::OpenaiChat | Api::OpenaiResponses) {
            let rule = format!(
                "is sent to openai-chat and openai-responses, not to {}; see its own \
                                field with --extra-body",
                api.name()
            );
            reader.wrong("tool-choice", rule);
        }
    }
    extra_body
}

fn percentiles(reader: &mut Reader<'_>) -> Vec<f64> {
    let Some(text) = reader.settings.text("metric-percentiles") else { return Vec::new() };
    let mut percentiles = Vec::new();
    for item in text.split(',') {
        match item.trim().parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => percentiles.push(percent),
            _ => reader
                .wrong("metric-percentiles", format!("{item:?} is not a number from 0 to 100")),
        }
    }
    percentiles
}

fn rows(reader: &mut Reader<'_>) -> Option<Vec<&'static str>> {
    let text = reader.settings.text("percentile-metrics")?;
    let mut rows = Vec::new();
    for item in text.split(',').map(str::trim) {
        match report::content::LATENCIES.iter().find(|key| key.strip_suffix("_ms") == Some(item)) {
            Some(key) => rows.push(*key),
            None => {
                let known: Vec<&str> = report::content::LATENCIES
                    .iter()
                    .filter_map(|key| key.strip_suffix("_ms"))
                    .collect();
                reader.wrong(
                    "percentile-metrics",
                    format!("{item:?} is not one of {}", known.join(", ")),
                );
            }
        }
    }
    Some(rows)
}

fn timeouts(reader: &mut Reader<'_>) -> (Span, Span) {
    let idle = reader.duration("idle-timeout").unwrap_or(Span::from_ms(60_000));
    let total = reader.duration("request-timeout").unwrap_or(Span::from_ms(600_000));
    for (name, span) in [("idle-timeout", idle), ("request-timeout", total)] {
        if span <= Span::ZERO || span > drive::MAX_REQUEST_TIMEOUT {
            reader
                .wrong(name, format!("must lie above 0 and up to {}", drive::MAX_REQUEST_TIMEOUT));
        }
    }
    (idle, total)
}

/// Chunks a second that one sending thread is trusted with.
const CHUNKS_PER_THREAD: f64 = 50_000.0;

/// Tokens a second of one user, for a guess at the chunks to come: faster than
/// what common engines stream.
const TOKENS_PER_USER: f64 = 100.0;

fn threads(reader: &mut Reader<'_>, load: &Load, output: &OutputLength) -> u32 {
    if matches!(reader.settings.text("threads"), None | Some("auto")) {
        let tokens = match output {
            OutputLength::Drawn(lengths) | OutputLength::OfPrompt { otherwise: Some(lengths) } => {
                // A bell's end is far above what most of its draws are.
                f64::from(lengths.range().1.get()).min(2.0 * lengths.mean())
            }
            _ => 1_000.0,
        };
        let by_rate = load.peak_rps().map_or(f64::INFINITY, |rps| rps * tokens);
        let by_users =
            load.users().map_or(f64::INFINITY, |users| f64::from(users) * TOKENS_PER_USER);
        let chunks = by_rate.min(by_users);
        let wanted = if chunks.is_finite() { (chunks / CHUNKS_PER_THREAD).ceil() } else { 1.0 };
        // The standard library reads the control group's quota too.
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        return (wanted as u32).clamp(1, cores as u32);
    }
    match reader.value("threads", "a number from 1 to 256, or auto") {
        Some(threads @ 1..=256) => threads,
        Some(_) => {
            reader.wrong("threads", "must be from 1 to 256, or auto");
            1
        }
        None => 1,
    }
}

fn reuse(reader: &mut Reader<'_>) -> Reuse {
    let words =
        [("always", Reuse::Always), ("per-session", Reuse::PerSession), ("never", Reuse::Never)];
    reader.choice("connection-reuse", &words).unwrap_or_default()
}

fn positive(reader: &mut Reader<'_>, name: &str) -> Option<f64> {
    let value = reader.number(name)?;
    if value <= 0.0 {
        reader.wrong(name, "must be above 0");
    }
    Some(value)
}

fn share(reader: &mut Reader<'_>, name: &str) -> Option<f64> {
    let value = reader.number(name)?;
    if !(0.0..1.0).contains(&value) {
        reader.wrong(name, "must be a share from 0 to below 1");
    }
    Some(value)
}

/// The schedule of the warm-up: like the run's, but from another seed, so that
/// no prompt of ours is measured that was sent before.
pub(crate) fn warmup(plan: &Plan, schedule: &Schedule) -> Option<Schedule> {
    if schedule.cache() == CacheRegime::Warm {
        // The run's own prompts, or what they begin with.
        return schedule.priming(plan.warmups);
    }
    let (seed, count) = (plan.spec.seed ^ 0x5741_524d, plan.warmups);
    if count == 0 {
        return None;
    }
    let spec = Spec {
        seed,
        load: Load::Closed { users: 1, think: Think::NONE },
        stop: Stop::Count(count),
        ..plan.spec.clone()
    };
    Schedule::draw(spec).ok().map(|(schedule, _)| schedule)
}
