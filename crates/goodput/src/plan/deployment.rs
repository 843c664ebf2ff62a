//! What the user says of the machines behind a target.

use measure::deployment::{self, Deployment};
use measure::hardware::{self, Precision};

use super::engine::{self, Open};
use crate::flags::{DEPLOYMENT, Reader, Settings, UsageError, of_group};

/// The flags of the group, and what a reader must know of a file that was read.
pub(crate) fn deployment(reader: &mut Reader<'_>, read: Open<'_>) -> (Deployment, Vec<String>) {
    let settings = reader.settings;
    let mut notes = Vec::new();
    let model = settings.text("model-shape").and_then(|name| {
        let found = engine::shape(name, read).map_err(|rule| reader.wrong("model-shape", rule));
        let (shape, said) = found.ok()?;
        notes.extend(said);
        Some(shape)
    });
    let accelerator = settings.text("accelerator").and_then(|name| {
        let found = hardware::accelerator(name);
        found.map_err(|unknown| reader.wrong("accelerator", unknown)).ok().copied()
    });
    let topology = settings.text("topology").and_then(|text| {
        deployment::topology(text).map_err(|error| reader.wrong("topology", error)).ok()
    });
    let deployment = Deployment {
        model,
        accelerator,
        topology: topology.unwrap_or_default(),
        tensor_parallel: count(reader, "tensor-parallel"),
        pipeline_parallel: count(reader, "pipeline-parallel"),
        weights: precision(reader, "weights"),
        kv_cache: precision(reader, "kv-cache-dtype"),
        price_per_hour: price(reader, "gpu-price-per-hour"),
        seats: count(reader, "max-num-seqs"),
        token_budget: count(reader, "max-num-batched-tokens"),
    };
    (deployment, notes)
}

/// The same where the engine model answers, which says all but a price itself.
pub(super) fn of_engine(reader: &mut Reader<'_>, engine: &sim::Settings) -> Deployment {
    for flag in of_group(DEPLOYMENT).filter(|flag| flag.name != "gpu-price-per-hour") {
        if reader.settings.has(flag.name) {
            let rule = "is what the engine model says of itself; change it with --set, as in --set \
                        accelerator=h200 or --set max_num_seqs=64";
            reader.wrong(flag.name, rule);
        }
    }
    let price_per_hour = price(reader, "gpu-price-per-hour");
    Deployment { price_per_hour, ..engine.deployment() }
}

/// What of a stored run's machines is given again.
pub(crate) fn given_again(settings: &Settings) -> Result<Deployment, Vec<UsageError>> {
    let mut reader = Reader::new(settings);
    let (deployment, _) = deployment(&mut reader, &crate::open);
    if reader.errors.is_empty() { Ok(deployment) } else { Err(reader.errors) }
}

fn count(reader: &mut Reader<'_>, name: &str) -> Option<u32> {
    let count: u32 = reader.value(name, "a whole number from 1")?;
    if count == 0 {
        reader.wrong(name, "must be at least 1");
        return None;
    }
    Some(count)
}

/// An amount of money above 0.
pub(crate) fn price(reader: &mut Reader<'_>, name: &str) -> Option<f64> {
    let price = reader.number(name)?;
    if price <= 0.0 {
        reader.wrong(name, "is not a number above 0");
        return None;
    }
    Some(price)
}

fn precision(reader: &mut Reader<'_>, name: &str) -> Option<Precision> {
    let text = reader.settings.text(name)?;
    Precision::parse(text).map_err(|error| reader.wrong(name, error)).ok()
}
