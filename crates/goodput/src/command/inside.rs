//! What a run's server says of itself, as the engine model is fitted to it.

use measure::definition::GOODPUT;
use measure::stage::Stages;
use report::number::{percent, short};
use serde_json::{Value, json};
use sim::Inside;

use crate::command::report::{Read, figures};

/// Where the mean TTFT of a run went, as its server says it, ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) front_end_ms: Option<f64>,
    pub(crate) queue_ms: Option<f64>,
    pub(crate) prefill_ms: f64,
    /// What of the client's TTFT passed outside of the server: the network, a
    /// gateway, the way between socket and engine. None where the server does not
    /// say its own TTFT.
    pub(crate) outside_ms: Option<f64>,
}

/// Share of requests that did not end well above which the server's means are
/// not of those that are fitted.
const MOST_FAILED: f64 = 0.05;

/// What the server of a run says, where it is of this run alone.
///
/// # Errors
/// Why it is not taken, as a clause.
pub(crate) fn told(run: &Read) -> Result<Told, String> {
    let summary = figures(run, &GOODPUT);
    let outcomes = &summary.outcomes;
    let sent = outcomes.total() - outcomes.not_sent;
    let bad = (sent - outcomes.ok) as f64 / sent.max(1) as f64;
    if bad > MOST_FAILED {
        return Err(format!(
            "{} of its requests did not end well, and the server's means are of these too",
            percent(bad)
        ));
    }
    of_stages(&summary.inside.stages)
}

fn of_stages(stages: &Stages) -> Result<Told, String> {
    if let Some(why) = &stages.refused {
        return Err(why.en.clone());
    }
    if ["kv_transfer", "decode_admission"].iter().any(|id| stages.stage(id).is_some()) {
        let why = "its engines compute prompts or write answers only, and their means are not \
                   those of one engine";
        return Err(why.to_owned());
    }
    // What is left of TTFT may lie anywhere.
    let measured = |id: &str| {
        let stage = stages.stage(id).filter(|stage| !stage.is_residual)?;
        Some(stage.mean_ms)
    };
    let Some(prefill_ms) = measured("prefill") else {
        return Err("the server does not say how long a prompt takes".to_owned());
    };
    let (front_end_ms, queue_ms) = (measured("front_end"), measured("queue"));
    let known = front_end_ms.zip(queue_ms);
    // A client that sends late is no part of the way.
    let within = ["client_wait", "front_end", "queue", "prefill"];
    let without = stages.stages.iter().filter(|stage| !within.contains(&stage.id));
    let outside_ms = known.map(|_| without.map(|stage| stage.mean_ms).sum::<f64>().max(0.0));
    Ok(Told { front_end_ms, queue_ms, prefill_ms, outside_ms })
}

impl Told {
    /// The same as the fit takes it.
    pub(crate) fn inside(&self) -> Inside {
        let waited = self.front_end_ms.zip(self.queue_ms);
        let ttft_ms = waited.map(|(front_end, queue)| front_end + queue + self.prefill_ms);
        Inside { ttft_ms, prefill_ms: self.prefill_ms }
    }

    /// In words, without a full stop.
    pub(crate) fn words(&self) -> String {
        let named = [("front end", self.front_end_ms), ("queue", self.queue_ms)];
        let named = named.into_iter().filter_map(|(name, ms)| Some((name, ms?)));
        let parts: Vec<String> = named
            .chain([("prefill", self.prefill_ms)])
            .map(|(name, ms)| format!("{name} {} ms", short(ms)))
            .collect();
        let way = match self.outside_ms {
            Some(ms) => {
                format!("{} ms of TTFT pass outside of it and are taken as they were", short(ms))
            }
            None => "not its own TTFT, so what passes outside of it is taken for its front end"
                .to_owned(),
        };
        format!("the server says {}; {way}", parts.join(", "))
    }

    pub(crate) fn to_json(self) -> Value {
        json!({
            "front_end_ms": self.front_end_ms, "queue_ms": self.queue_ms,
            "prefill_ms": self.prefill_ms, "outside_ms": self.outside_ms,
        })
    }
}
