//! What the flags say of lengths: how long prompts are, and answers.

use serde_json::Value;
use workload::Lengths;

use crate::flags::Reader;

/// Largest file of a histogram that is read.
const LIMIT: u64 = 64 << 20;

/// The lengths of one flag: as given, or `default` with the spread of
/// defaults. `ratio` is what `--random-range-ratio` says of them.
pub(super) fn lengths(
    reader: &mut Reader<'_>,
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    name: &str,
    default: u32,
    default_spread: f64,
    ratio: Option<f64>,
) -> Lengths {
    let read = match reader.settings.text(name) {
        None => spread(default, ratio.unwrap_or(default_spread)),
        Some(text) => given(text, open, ratio.unwrap_or(0.0)),
    };
    read.unwrap_or_else(|error| {
        reader.wrong(name, error);
        Lengths::Fixed(measure::Tokens::new(1))
    })
}

fn spread(mean: u32, spread: f64) -> Result<Lengths, String> {
    let lengths = if spread > 0.0 { Lengths::uniform(mean, spread) } else { Lengths::fixed(mean) };
    lengths.map_err(|error| error.to_string())
}

fn given(
    text: &str,
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    ratio: f64,
) -> Result<Lengths, String> {
    let lengths = match Lengths::file_of(text) {
        Some(path) => {
            let bytes = open(path, LIMIT)?;
            let of_file = |error: &dyn std::fmt::Display| format!("{path}: {error}");
            let buckets = wire::lengths::histogram(&bytes).map_err(|error| of_file(&error))?;
            Lengths::histogram(buckets).map_err(|error| of_file(&error))?
        }
        None => text.parse().map_err(|error: workload::LengthError| error.to_string())?,
    };
    match lengths {
        Lengths::Fixed(mean) => spread(mean.get(), ratio),
        _ if ratio > 0.0 => {
            Err(format!("{text} has a spread of its own; leave out --random-range-ratio"))
        }
        other => Ok(other),
    }
}

/// vLLM's spread of input and output: one number for both, or an object of
/// `input` and `output`.
pub(super) fn ratios(reader: &mut Reader<'_>) -> (Option<f64>, Option<f64>) {
    const NAME: &str = "random-range-ratio";
    let Some(text) = reader.settings.text(NAME) else { return (None, None) };
    let read = match serde_json::from_str(text.trim()) {
        Ok(Value::Number(both)) => both.as_f64().map(|both| (both, both)),
        Ok(Value::Object(members)) if members.len() == 2 => {
            let of = |key: &str| members.get(key).and_then(Value::as_f64);
            of("input").zip(of("output"))
        }
        // Numbers that JSON does not know, such as .5.
        _ => text.trim().parse().ok().map(|both: f64| (both, both)),
    };
    let share = |ratio: f64| (0.0..1.0).contains(&ratio);
    match read {
        Some((input, output)) if share(input) && share(output) => (Some(input), Some(output)),
        _ => {
            let rule = "must be a share from 0 to below 1, as in 0.25, or one for each length, as \
                        in '{\"input\": 0.3, \"output\": 0.5}'";
            reader.wrong(NAME, format!("{text:?} {rule}"));
            (None, None)
        }
    }
}
