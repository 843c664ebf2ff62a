//! Where a run's requests go: a served endpoint, or the embedded engine on
//! loopback.

use std::sync::Arc;

use drive::secret::Secrets;
use drive::{Target, fetch, tls};
use fake::engine::Anchor;
use fake::{Modelled, ModelledConfig};
use measure::Span;
use serde_json::Value;
use wire::api::Api;
use wire::tokenize::ListedModel;
use wire::url::Url;

use crate::command::simulate;
use crate::flags::{Settings, UsageError, for_each_secret, storable_url};
use crate::plan::{Address, Plan};

/// The target of a run without an address, as a result shows it.
pub(crate) const EMBEDDED: &str = "embedded engine";

/// How long the model list may take.
const MODELS_WITHIN: Span = Span::from_ms(10_000);

/// A target, ready to be sent to.
pub(crate) struct Resolved {
    /// At least one.
    pub(crate) targets: Vec<Target>,
    /// As it may be stored.
    pub(crate) shown: String,
    pub(crate) model: String,
    pub(crate) engine: Option<String>,
    /// Tokens of a prompt and its answer together at most, where the server was
    /// asked for its models and told.
    pub(crate) context: Option<u32>,
    /// The path that the server's own endpoints, such as `/tokenize`, are
    /// under; empty most often.
    pub(crate) root: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) secrets: Secrets,
    /// The embedded engine, when it is the target; it lives as long as this.
    pub(crate) embedded: Option<fake::Server>,
}

/// Why there is no target.
pub(crate) enum Unresolved {
    /// The command line is wrong.
    Usage(UsageError),
    /// Nothing answered.
    Unreachable(String),
    /// A defect or a lack of resources.
    Internal(String),
}

impl From<UsageError> for Unresolved {
    fn from(error: UsageError) -> Self {
        Self::Usage(error)
    }
}

/// Resolves the target of a plan.
pub(crate) fn resolve(settings: &Settings, plan: &Plan) -> Result<Resolved, Unresolved> {
    let (headers, mut secrets) = headers(settings, plan.api, plan.address.is_none())?;
    let mut extra = Value::Object(plan.template.extra_body.clone());
    for_each_secret(&mut extra, &mut |secret| secrets.add(secret));
    match &plan.address {
        Some(address) => served(settings, plan, address, headers, secrets),
        None => embedded(plan, headers, secrets),
    }
}

fn headers(
    settings: &Settings,
    api: Api,
    embedded: bool,
) -> Result<(Vec<(String, String)>, Secrets), UsageError> {
    let mut secrets = Secrets::default();
    let entry = api.entry();
    let mut headers: Vec<(String, String)> = entry
        .headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    if let Some(key) = key(settings)? {
        secrets.add(&key);
        // The embedded engine knows no keys, so it is sent none.
        if !embedded {
            let (name, value) = entry.auth.header(&key);
            headers.push((name.to_owned(), value));
        }
    }
    for text in settings.all("header") {
        let (name, value) =
            wire::head::parse_header(text).map_err(|error| UsageError::new("--header", error))?;
        secrets.add(&value);
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        headers.push((name, value));
    }
    Ok((headers, secrets))
}

fn key(settings: &Settings) -> Result<Option<String>, UsageError> {
    let key = if let Some(path) = settings.text("api-key-file") {
        let bytes = store::read_file(path.as_ref(), 64 * 1024)
            .map_err(|error| UsageError::new("--api-key-file", error))?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    } else if let Some(variable) = settings.text("api-key-env") {
        let value = std::env::var(variable).map_err(|_| {
            UsageError::new(
                "--api-key-env",
                format!("the environment has no variable {variable:?}"),
            )
        })?;
        Some(value)
    } else {
        std::env::var("OPENAI_API_KEY").ok()
    };
    let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    if key.as_ref().is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
        return Err(UsageError::new(
            "API key",
            "holds blanks or control characters; check its file or variable",
        ));
    }
    Ok(key)
}

fn served(
    settings: &Settings,
    plan: &Plan,
    address: &Address,
    headers: Vec<(String, String)>,
    secrets: Secrets,
) -> Result<Resolved, Unresolved> {
    let mut secrets = secrets;
    for part in address.urls.iter().chain(&address.endpoint) {
        hide_query(part, &mut secrets);
    }
    let trust = trust(settings)?;
    let tls = tls::client_config(&trust).map_err(|error| UsageError::new("TLS", error))?;
    let wrong = |place: usize| if place == 0 { "--url" } else { "--also-url" };
    let mut bases = Vec::new();
    for (place, url) in address.urls.iter().enumerate() {
        let url = Url::parse(url).map_err(|error| UsageError::new(wrong(place), error))?;
        bases.push(Target { url, tls: Arc::clone(&tls) });
    }
    if let Some(within) = plan.ready_timeout {
        for (base, url) in bases.iter().zip(&address.urls) {
            fetch::wait_until_listening(base, within).map_err(|error| {
                Unresolved::Unreachable(format!(
                    "{} took no connection within {within}: {error}",
                    storable_url(url)
                ))
            })?;
        }
    }
    let models: Vec<Models<'_>> =
        bases.iter().map(|base| Models::of(base, plan.api, &headers, &secrets)).collect();
    let (model, listed) = match plan.model.clone() {
        // A server that is asked about tokens is asked about its context too.
        Some(model) if plan.asks_server || plan.tokenizer.is_some() => {
            let listed = models.first().and_then(|models| models.named(&model));
            (model, listed)
        }
        Some(model) => (model, None),
        None => common_model(&models).map(|model| (model.id.clone(), Some(model)))?,
    };
    let given = plan.model.is_some();
    let root = models.first().map(|models| models.root.clone()).unwrap_or_default();
    let (mut targets, mut shown) = (Vec::new(), Vec::new());
    for (place, url) in address.urls.iter().enumerate() {
        let full = plan
            .api
            .endpoint_url(url, address.endpoint.as_deref(), Some(&model))
            .map_err(|error| UsageError::new(wrong(place), error))?;
        let url = Url::parse(&full).map_err(|error| UsageError::new(wrong(place), error))?;
        shown.push(storable_url(&full));
        targets.push(Target { url, tls: Arc::clone(&tls) });
    }
    Ok(Resolved {
        shown: shown.join(", "),
        targets,
        model,
        context: listed.as_ref().and_then(|model| model.context),
        engine: listed.and_then(|model| model.owner).filter(|_| !given),
        root,
        headers,
        secrets,
        embedded: None,
    })
}

/// Whatever stands in the query of an address may be a key.
fn hide_query(address: &str, secrets: &mut Secrets) {
    for pair in address.split_once('?').map_or("", |(_, query)| query).split('&') {
        if let Some((name, value)) = pair.split_once('=')
            && name != "api-version"
        {
            secrets.add(value);
        }
    }
}

/// A server that is watched and asked for nothing but its metrics.
pub(crate) fn watched(settings: &Settings, address: &str) -> Result<Resolved, UsageError> {
    let (headers, mut secrets) = headers(settings, Api::OpenaiChat, false)?;
    hide_query(address, &mut secrets);
    let tls = tls::client_config(&trust(settings)?);
    let tls = tls.map_err(|error| UsageError::new("TLS", error))?;
    let url = Url::parse(address).map_err(|error| UsageError::new("URL", error))?;
    Ok(Resolved {
        shown: storable_url(address),
        targets: vec![Target { url, tls }],
        model: String::new(),
        engine: None,
        context: None,
        root: String::new(),
        headers,
        secrets,
        embedded: None,
    })
}

/// The first model that every target lists, with the shortest of their
/// contexts.
fn common_model(targets: &[Models<'_>]) -> Result<ListedModel, Unresolved> {
    let mut found: Option<ListedModel> = None;
    for models in targets {
        let model = models.first()?;
        match &mut found {
            Some(first) if first.id != model.id => {
                let rule = format!(
                    "is needed: {} names the model {:?} and {} names {:?}",
                    targets[0].target.url.authority(),
                    first.id,
                    models.target.url.authority(),
                    model.id
                );
                return Err(UsageError::new("--model", rule).into());
            }
            Some(first) => {
                first.context = [first.context, model.context].into_iter().flatten().min();
            }
            None => found = Some(model),
        }
    }
    found.ok_or_else(|| Unresolved::Internal("a run without a target".to_owned()))
}

fn trust(settings: &Settings) -> Result<tls::Trust, UsageError> {
    match settings.text("cacert") {
        _ if settings.is_on("insecure") => Ok(tls::Trust::Anybody),
        Some(path) => store::read_file(path.as_ref(), 16 << 20)
            .map(tls::Trust::Also)
            .map_err(|error| UsageError::new("--cacert", error)),
        None => Ok(tls::Trust::System),
    }
}

/// The path before `/v1`, or before the API's own path.
fn root(url: &Url, api: Api) -> String {
    let path = url.path.split('?').next().unwrap_or_default().trim_end_matches('/');
    let root = match path.find("/v1") {
        Some(at) => &path[..at],
        None => path.strip_suffix(api.entry().path).unwrap_or(path),
    };
    root.to_owned()
}

/// The list of models at a server.
struct Models<'a> {
    target: &'a Target,
    root: String,
    headers: &'a [(String, String)],
    secrets: &'a Secrets,
}

impl<'a> Models<'a> {
    fn of(
        target: &'a Target,
        api: Api,
        headers: &'a [(String, String)],
        secrets: &'a Secrets,
    ) -> Self {
        Self { target, root: root(&target.url, api), headers, secrets }
    }

    fn path(&self) -> String {
        format!("{}/v1/models", self.root)
    }

    /// The first model of the list.
    fn first(&self) -> Result<ListedModel, Unresolved> {
        let shown = storable_url(&self.target.url.with_path(&self.path()).to_string());
        let (status, body) = fetch::get(self.target, &self.path(), self.headers, MODELS_WITHIN)
            .map_err(|error| Unresolved::Unreachable(format!("{shown}: {error}")))?;
        if matches!(status, 401 | 403) {
            return Err(Unresolved::Unreachable(format!(
                "{shown} answered {status}; give a key with --api-key-env or --api-key-file"
            )));
        }
        self.listed(status, &body).into_iter().next().ok_or_else(|| {
            Unresolved::Usage(UsageError::new(
                "--model",
                format!("is needed: {shown} answered {status} and names no model"),
            ))
        })
    }

    /// The entry of a model that the user named, where there is one: a list
    /// that holds one model only may know it by another name.
    fn named(&self, name: &str) -> Option<ListedModel> {
        let answer = fetch::get(self.target, &self.path(), self.headers, MODELS_WITHIN);
        let (status, body) = answer.ok()?;
        let mut listed = self.listed(status, &body);
        match listed.iter().position(|model| model.id == name) {
            Some(place) => Some(listed.swap_remove(place)),
            None => listed.pop().filter(|_| listed.is_empty()),
        }
    }

    fn listed(&self, status: u16, body: &[u8]) -> Vec<ListedModel> {
        if status != 200 {
            return Vec::new();
        }
        let mut listed = wire::tokenize::models(body);
        for model in &mut listed {
            model.id = self.secrets.redacted(&model.id);
            model.owner = model.owner.as_deref().map(|owner| self.secrets.redacted(owner));
        }
        listed
    }
}

fn embedded(
    plan: &Plan,
    headers: Vec<(String, String)>,
    secrets: Secrets,
) -> Result<Resolved, Unresolved> {
    let engine = plan.engine.clone().unwrap_or_default();
    let model = plan.model.clone().unwrap_or_else(|| engine.model.id.to_string());
    let described = simulate::described(&engine);
    let config = ModelledConfig {
        settings: engine,
        // Adapters and further models have names that it does not know.
        model: (!plan.has_names()).then(|| model.clone()),
        tokenizer: plan.tokenizer.clone(),
        seed: plan.spec.seed,
        ..ModelledConfig::default()
    };
    let modelled =
        Modelled::new(config, Anchor::now()).map_err(|error| UsageError::new("--set", error))?;
    let server = fake::Server::start_with(fake::Listen::default(), modelled)
        .map_err(|error| Unresolved::Internal(format!("the engine model cannot start: {error}")))?;
    let internal = |error: &dyn std::fmt::Display| Unresolved::Internal(error.to_string());
    let full = plan
        .api
        .endpoint_url(&server.url(), None, Some(&model))
        .map_err(|error| internal(&error))?;
    let url = Url::parse(&full).map_err(|error| internal(&error))?;
    let tls = tls::client_config(&tls::Trust::System).map_err(|error| internal(&error))?;
    Ok(Resolved {
        shown: EMBEDDED.to_owned(),
        targets: vec![Target { url, tls }],
        model,
        engine: Some(described),
        context: None,
        root: String::new(),
        headers,
        secrets,
        embedded: Some(server),
    })
}
