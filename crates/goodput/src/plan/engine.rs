//! The engine model that a run without a target is answered by.

use std::path::Path;

use measure::hardware::{self, ModelShape};
use wire::hugging_face_config;

use crate::flags::UsageError;

/// Opens a file of at most so many bytes.
pub(crate) type Open<'a> = &'a dyn Fn(&str, u64) -> Result<Vec<u8>, String>;

/// An engine, and what a reader must know of how it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Engine {
    pub(crate) settings: sim::Settings,
    /// What was assigned to get there, name and value, in its order.
    pub(crate) assigned: Vec<(String, String)>,
    pub(crate) notes: Vec<String>,
    /// What of TTFT no setting is for, where it was fitted so: see
    /// [`wire::engine::Engine::outside_ms`].
    pub(crate) outside_ms: Option<f64>,
}

/// The engine of a description, where one is given, with what is set besides.
/// Later settings win.
///
/// # Errors
/// A file that describes no engine, a setting that is none.
pub(crate) fn engine(
    described: Option<&str>,
    set: &[String],
    read: Open<'_>,
) -> Result<Engine, UsageError> {
    let mut engine = Engine::default();
    if let Some(path) = described {
        let wrong = |rule: String| UsageError::new("--engine", format!("{path}: {rule}"));
        let bytes = read(path, wire::engine::MOST_BYTES).map_err(wrong)?;
        let file = wire::engine::decode(&bytes).map_err(|error| wrong(error.to_string()))?;
        engine.outside_ms = file.outside_ms.filter(|ms| ms.is_finite() && *ms >= 0.0);
        for (name, value) in file.settings {
            let assignment = format!("{name}={value}");
            engine.assign(&assignment, read).map_err(|error| wrong(error.rule))?;
        }
    }
    for assignment in set {
        engine.assign(assignment, read)?;
    }
    Ok(engine)
}

impl Engine {
    /// Sets one setting. A model may be a `config.json` too, or a folder with one.
    pub(crate) fn assign(&mut self, assignment: &str, read: Open<'_>) -> Result<(), UsageError> {
        self.set(assignment, read)?;
        let pair = assignment.split_once('=');
        self.assigned.extend(pair.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Ok(())
    }

    fn set(&mut self, assignment: &str, read: Open<'_>) -> Result<(), UsageError> {
        let wrong = |rule: String| UsageError::new("--set", rule);
        if let Some(path) = assignment.strip_prefix("model=").filter(|path| is_file(path)) {
            let (shape, notes) = shape_of_file(path, read).map_err(wrong)?;
            self.settings.model = shape;
            self.notes.extend(notes);
            return Ok(());
        }
        self.settings.set(assignment).map_err(|error| wrong(error.to_string()))
    }
}

/// The shape of a model by its name in the catalogue or its file, with what a
/// reader must know of it.
///
/// # Errors
/// A sentence: near names, or what is wrong with the file.
pub(crate) fn shape(name: &str, read: Open<'_>) -> Result<(ModelShape, Vec<String>), String> {
    if is_file(name) {
        return shape_of_file(name, read);
    }
    let shape = hardware::model(name).map_err(|unknown| {
        format!("{unknown}; or give the model's config.json, or the folder that holds it")
    })?;
    Ok((shape.clone(), Vec::new()))
}

fn shape_of_file(path: &str, read: Open<'_>) -> Result<(ModelShape, Vec<String>), String> {
    let file = Path::new(path);
    let file = if file.is_dir() { file.join("config.json") } else { file.to_path_buf() };
    let shown = file.display().to_string();
    let bytes = read(&shown, hugging_face_config::MOST_BYTES as u64)?;
    let name = path.trim_end_matches('/');
    let read = hugging_face_config::read(&bytes, name);
    let read = read.map_err(|error| format!("{shown}: {error}"))?;
    let notes = read.notes.iter().map(|note| format!("{shown}: {note}")).collect();
    Ok((read.shape, notes))
}

/// True for what names a file and no model of the catalogue.
fn is_file(path: &str) -> bool {
    path.ends_with(".json") || Path::new(path).join("config.json").is_file()
}
