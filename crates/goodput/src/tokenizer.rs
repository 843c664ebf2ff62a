//! Which tokenizer `--tokenizer` means: a file, a folder, or a model whose
//! files lie in Hugging Face's cache already. Nothing is fetched.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use workload::Tokenizer;

/// The name of the one that needs no file.
pub(crate) const EMBEDDED: &str = "embedded";

/// The name of the one that the target has.
pub(crate) const SERVER: &str = "server";

/// What is looked for in a folder.
const FILE: &str = "tokenizer.json";

/// The largest file that is read: the largest vocabularies have some 40 MB.
const LIMIT: u64 = 512 << 20;

/// The tokenizer of this name, or one sentence that says why there is none.
pub(crate) fn load(
    name: &str,
    read: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
) -> Result<Arc<dyn Tokenizer>, String> {
    if name == EMBEDDED {
        return Ok(tokens::embedded());
    }
    let path = find(name, cache().as_deref())?;
    let path = path.to_string_lossy();
    let bytes = read(&path, LIMIT)?;
    tokens::read(name, &path, &bytes).map_err(|error| error.to_string())
}

/// Where the file of a name lies: the path itself, or the newest snapshot of a
/// model in the cache.
fn find(name: &str, cache: Option<&Path>) -> Result<PathBuf, String> {
    let path = Path::new(name);
    if path.is_file() {
        return Ok(path.to_owned());
    }
    if path.is_dir() {
        let file = path.join(FILE);
        if file.is_file() {
            return Ok(file);
        }
        return Err(format!(
            "the folder {name} holds no {FILE}; name the folder of a model with its fast \
             tokenizer, or the file itself"
        ));
    }
    let Some((owner, model)) = cached_model(name) else {
        return Err(format!(
            "{name} is no file, no folder and no ORG/MODEL; write the path of a {FILE}, or \
             {EMBEDDED}"
        ));
    };
    let absent = |place: &str| {
        format!(
            "{name} is no file and no folder, and {place}; nothing is downloaded: fetch it first \
             (hf download {name} {FILE}), or write the path of a {FILE}"
        )
    };
    let Some(cache) = cache else { return Err(absent("no Hugging Face cache is known")) };
    let snapshots = cache.join(format!("models--{owner}--{model}")).join("snapshots");
    let found = std::fs::read_dir(&snapshots).into_iter().flatten().flatten();
    let found = found.filter_map(|entry| {
        let file = entry.path().join(FILE);
        let changed = file.metadata().ok()?.modified().ok()?;
        Some((changed, file))
    });
    // Two snapshots of one instant are taken in the order of their names.
    let newest = found.max();
    newest
        .map(|(_, file)| file)
        .ok_or_else(|| absent(&format!("the cache {} has no {FILE} of it", cache.display())))
}

/// Owner and model of `ORG/MODEL`, in the letters that such names have.
fn cached_model(name: &str) -> Option<(&str, &str)> {
    let (owner, model) = name.split_once('/')?;
    let plain = |part: &str| {
        let letter = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(letter)
    };
    (plain(owner) && plain(model)).then_some((owner, model))
}

/// The folder where Hugging Face's own tools keep what they fetched.
fn cache() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("HF_HUB_CACHE")
        .or_else(|| set("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/huggingface/hub")))
}
