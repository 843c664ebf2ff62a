//! Before a run: what the server's prefix cache may hold of its prompts, and
//! the call that empties it.

use std::path::Path;

use drive::{Target, fetch};
use measure::Span;
use wire::run::Manifest;
use wire::url::Url;
use workload::prompt::{CacheRegime, PromptSource};
use workload::schedule::Schedule;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{Settings, UsageError, storable_url};
use crate::plan::Plan;
use crate::target::Resolved;

/// The flag of the call.
const RESET: &str = "reset-cache-url";

/// How long the call may take.
const RESET_WITHIN: Span = Span::from_ms(30_000);

/// Earlier runs that are looked at, the newest first.
const LOOKED_AT: usize = 200;

/// Empties the cache where that was asked for, at every address that the flag
/// names, and says so for the report.
pub(crate) fn reset(settings: &Settings, resolved: &Resolved) -> Result<Option<String>, Failure> {
    let Some(text) = settings.text(RESET) else { return Ok(None) };
    let wrong = |rule: String| Failure::from(UsageError::new("--reset-cache-url", rule));
    if resolved.embedded.is_some() {
        return Err(wrong("the embedded engine has no prefix cache; leave it out".to_owned()));
    }
    let places: Vec<(Target, String)> = if text.starts_with('/') {
        resolved.targets.iter().map(|target| (target.clone(), text.to_owned())).collect()
    } else {
        let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        let (path, tls) = (url.path.clone(), resolved.targets[0].tls.clone());
        vec![(Target { url, tls }, path)]
    };
    for (target, path) in &places {
        let shown = storable_url(&target.url.with_path(path).to_string());
        let answered = fetch::post(target, path, &resolved.headers, RESET_WITHIN);
        let (status, _) = answered.map_err(|error| {
            let words = format!("--reset-cache-url: POST {shown}: {error}; nothing was sent");
            Failure::new(Exit::Unreachable, words)
        })?;
        if !(200..300).contains(&status) {
            let rule = format!("POST {shown} answered {status}, so the cache is as it was");
            return Err(wrong(format!("{rule}; nothing was sent")));
        }
    }
    let shown = storable_url(text);
    Ok(Some(format!("the prefix cache was emptied before the run by POST {shown}")))
}

/// What to say where an earlier run in the folder sent prompts of this one to
/// the same target, and neither run had nonces: the cache may still hold them.
pub(crate) fn repeated(
    settings: &Settings,
    plan: &Plan,
    schedule: &Schedule,
    resolved: &Resolved,
    runs_dir: &Path,
) -> Option<String> {
    let primes_all = schedule.cache() == CacheRegime::Warm && schedule.prefix_tokens() == Some(0);
    let one_text =
        matches!(&plan.spec.prompts, PromptSource::List { prompts, .. } if prompts.len() == 1);
    if schedule.cache().has_nonce() || primes_all || one_text || resolved.embedded.is_some() {
        return None;
    }
    let earlier = store::list_runs(runs_dir).ok()?.into_iter().take(LOOKED_AT).find(|run| {
        let manifest = store::read_file(&run.path.join("run.json"), 64 << 20).ok();
        let manifest = manifest.and_then(|bytes| wire::run::decode(&bytes).ok());
        manifest.is_some_and(|manifest| shares_prompts(&manifest, settings, plan, resolved))
    })?;
    Some(format!(
        "the earlier run {} sent the same prompts to this target, whose prefix cache may still \
         hold them: take --prefix-cache cold, another --seed, or --reset-cache-url",
        earlier.id
    ))
}

fn shares_prompts(
    earlier: &Manifest,
    settings: &Settings,
    plan: &Plan,
    resolved: &Resolved,
) -> bool {
    let (facts, own) = (&earlier.facts, &plan.workload);
    let regime = CacheRegime::from_name(&facts.workload.cache_regime);
    let flag = |name: &str| earlier.settings.iter().find(|setting| setting.name == name);
    let same_text = flag("prompt").map(|setting| setting.value.as_str()) == settings.text("prompt");
    // Rows of a file are the same whatever the seed.
    let drawn = plan.spec.prompts.is_written();
    facts.target == resolved.shown
        && facts.model.as_ref() == Some(&resolved.model)
        && regime.is_some_and(|regime| !regime.has_nonce())
        && facts.workload.source == own.source
        && facts.workload.input_lengths == own.input_lengths
        && facts.workload.tokenizer == own.tokenizer
        && same_text
        && (!drawn || facts.load.seed == plan.spec.seed)
}
