//! `sim settings`: what can be set of the engine model.

use measure::hardware;
use sim::SETTINGS;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};

/// Prints every setting with its default and what it means, and the names of
/// models and accelerators.
pub(crate) fn run(to: Option<&str>) -> Result<Exit, Failure> {
    let json = output::Json::open(to)?;
    let usual = sim::Settings::default();
    let mut text = "Settings of the engine model: --set NAME=VALUE\n\n".to_owned();
    let mut rows = Vec::new();
    for setting in SETTINGS {
        let value = setting.value(&usual);
        text.push_str(&format!("  {:<28} {:<14} {}\n", setting.name, value, setting.text));
        rows.push(json!({"name": setting.name, "default": value, "text": setting.text}));
    }
    let models: Vec<&str> = hardware::models().iter().map(|model| model.id.as_ref()).collect();
    let accelerators: Vec<&str> = hardware::accelerators().iter().map(|one| one.id).collect();
    text.push_str(&format!(
        "\nmodels: {}\n\naccelerators: {}\n",
        models.join(", "),
        accelerators.join(", ")
    ));
    json.show(text.trim_end());
    json.write(&Value::from_iter([
        ("settings", Value::from(rows)),
        ("models", json!(models)),
        ("accelerators", json!(accelerators)),
    ]))?;
    Ok(Exit::Ok)
}
