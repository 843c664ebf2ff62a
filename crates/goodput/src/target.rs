//! Where a run's requests go: a served endpoint, or the embedded engine on
//! loopback.

use std::sync::Arc;

use drive::secret::Secrets;
use drive::{Target, fetch, tls};
use measure::Span;
use serde_json::Value;
use wire::api::Api;
use wire::url::Url;

use crate::flags::{Settings, UsageError, for_each_secret, storable_url};
use crate::plan::{Address, Plan};

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
    // Whatever stands in the query of an address may be a key.
    let mut secrets = secrets;
    for part in address.urls.iter().chain(&address.endpoint) {
        for pair in part.split_once('?').map_or("", |(_, query)| query).split('&') {
            if let Some((name, value)) = pair.split_once('=')
                && name != "api-version"
            {
                secrets.add(value);
            }
        }
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
    let (model, engine) = match plan.model.clone() {
        Some(model) => (model, None),
        None => common_model(&bases, &headers, &secrets)?,
    };
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
        engine,
        headers,
        secrets,
        embedded: None,
    })
}

/// The first model that every target lists.
fn common_model(
    targets: &[Target],
    headers: &[(String, String)],
    secrets: &Secrets,
) -> Result<(String, Option<String>), Unresolved> {
    let mut found: Option<(String, Option<String>)> = None;
    for target in targets {
        let (model, engine) = first_model(target, headers, secrets)?;
        match &found {
            Some((first, _)) if *first != model => {
                let rule = format!(
                    "is needed: {} names the model {first:?} and {} names {model:?}",
                    targets[0].url.authority(),
                    target.url.authority()
                );
                return Err(UsageError::new("--model", rule).into());
            }
            Some(_) => {}
            None => found = Some((model, engine)),
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

/// The first model that the server lists, and who it says owns it.
fn first_model(
    target: &Target,
    headers: &[(String, String)],
    secrets: &Secrets,
) -> Result<(String, Option<String>), Unresolved> {
    let path = target.url.path.split('?').next().unwrap_or_default();
    let base = path.find("/v1").map_or(path.trim_end_matches('/'), |at| &path[..at]);
    let path = format!("{base}/v1/models");
    let shown = storable_url(&target.url.with_path(&path).to_string());
    let (status, body) = fetch::get(target, &path, headers, MODELS_WITHIN)
        .map_err(|error| Unresolved::Unreachable(format!("{shown}: {error}")))?;
    if matches!(status, 401 | 403) {
        return Err(Unresolved::Unreachable(format!(
            "{shown} answered {status}; give a key with --api-key-env or --api-key-file"
        )));
    }
    let list: Option<Value> = serde_json::from_slice(&body).ok().filter(|_| status == 200);
    let first = list.as_ref().and_then(|list| list.get("data")?.get(0));
    let text = |key: &str| first?.get(key)?.as_str().map(|text| secrets.redacted(text));
    match text("id") {
        Some(model) => Ok((model, text("owned_by"))),
        None => Err(Unresolved::Usage(UsageError::new(
            "--model",
            format!("is needed: {shown} answered {status} and names no model"),
        ))),
    }
}

fn embedded(
    plan: &Plan,
    headers: Vec<(String, String)>,
    secrets: Secrets,
) -> Result<Resolved, Unresolved> {
    let model = plan.model.clone().unwrap_or_else(|| "embedded".to_owned());
    let engine = fake::EngineConfig {
        // Adapters and further models have names that it does not know.
        model: (!plan.has_names()).then(|| model.clone()),
        tokenizer: plan.tokenizer.clone(),
        ..fake::EngineConfig::default()
    };
    let server = fake::Server::start(fake::Config { engine, ..fake::Config::default() }).map_err(
        |error| Unresolved::Internal(format!("the embedded engine cannot start: {error}")),
    )?;
    let internal = |error: &dyn std::fmt::Display| Unresolved::Internal(error.to_string());
    let full = plan
        .api
        .endpoint_url(&server.url(), None, Some(&model))
        .map_err(|error| internal(&error))?;
    let url = Url::parse(&full).map_err(|error| internal(&error))?;
    let tls = tls::client_config(&tls::Trust::System).map_err(|error| internal(&error))?;
    Ok(Resolved {
        shown: "embedded engine".to_owned(),
        targets: vec![Target { url, tls }],
        model,
        engine: Some("goodput embedded engine".to_owned()),
        headers,
        secrets,
        embedded: Some(server),
    })
}
