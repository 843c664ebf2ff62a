//! What is wrong with a server that is watched: the rules, judged from signals
//! alone, and since when each cause is there.
//!
//! No request was measured, so nothing is confirmed: that takes a client's
//! symptom beside the server's evidence.

use measure::At;
use measure::definition::{Endpoint, GOODPUT};
use measure::deployment::Deployment;
use measure::facts::{InstrumentFacts, LoadFacts, LoadKind, RunFacts, WorkloadFacts};
use measure::finding::{Confidence, Finding};
use measure::request::Settings;
use measure::said::{Said, said};
use measure::signal::{Signal, Signals};
use measure::stage::Stages;
use measure::summary::summarise;
use measure::watch::{Event, Held, Kind};

use crate::rule;
use crate::view::View;

/// Glances in a row that must agree before a cause is there, or is gone: one
/// glance may fall on a burst.
const STEADY: u32 = 3;

/// Scrapes below which a window says nothing of what is usual.
const LEAST_SCRAPES: u32 = 5;

/// What is wrong, over the glances so far.
#[derive(Debug, Default)]
pub struct Watch {
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    held: Held,
    /// Glances in a row that had it, until it was told.
    seen: u32,
    /// Glances in a row that lacked it.
    missed: u32,
    is_told: bool,
}

impl Watch {
    /// Takes what was found at one instant and says what is new and what is gone.
    pub fn take(&mut self, at: At, found: Vec<Finding>) -> Vec<Event> {
        let mut events = Vec::new();
        for known in &mut self.known {
            known.missed += 1;
        }
        let mut order = Vec::new();
        for finding in found {
            let place = self.known.iter().position(|one| one.held.finding.rule == finding.rule);
            let mut known = match place {
                Some(place) => self.known.remove(place),
                None => Known {
                    held: Held { finding: finding.clone(), since: at },
                    seen: 0,
                    missed: 0,
                    is_told: false,
                },
            };
            known.held.finding = finding;
            known.missed = 0;
            known.seen += 1;
            if known.seen >= STEADY && !known.is_told {
                known.is_told = true;
                events.push(found_now(at, &known.held.finding));
            }
            order.push(known);
        }
        for known in std::mem::take(&mut self.known) {
            if known.is_told && known.missed >= STEADY {
                events.push(gone(at, &known.held));
            } else if known.is_told {
                order.push(known);
            }
        }
        self.known = order;
        events
    }

    /// What is wrong now, what explains most first.
    pub fn held(&self) -> Vec<Held> {
        self.known.iter().filter(|known| known.is_told).map(|known| known.held.clone()).collect()
    }
}

fn found_now(at: At, finding: &Finding) -> Event {
    let (title, sure) = (&finding.title, finding.confidence.text());
    let says = Said {
        en: format!("{} ({}): {}", title.en, sure.en, finding.says.en),
        zh: format!("{}（{}）：{}", title.zh, sure.zh, finding.says.zh),
    };
    Event { at, kind: Kind::Found, of: finding.rule.to_owned(), says }
}

fn gone(at: At, held: &Held) -> Event {
    let (title, length_s) = (&held.finding.title, (at - held.since).s());
    let says = Said {
        en: format!("not seen any more, after {length_s:.0} s: {}", title.en),
        zh: format!("{length_s:.0} 秒后不再出现：{}", title.zh),
    };
    Event { at, kind: Kind::Gone, of: held.finding.rule.to_owned(), says }
}

/// The causes that the signals of a window show by themselves. None is looked
/// for in a window that is too short, or in which nothing was served.
pub fn judge(signals: &Signals, target: &str, deployment: &Deployment) -> Vec<Finding> {
    let readings = signals.gauge(Signal::Running).or(signals.gauge(Signal::QueueDepth));
    let is_short = readings.is_none_or(|gauge| gauge.n < LEAST_SCRAPES);
    let served = signals.increase(Signal::Finished).unwrap_or(0.0)
        + signals.gauge(Signal::Running).map_or(0.0, |running| running.max);
    if is_short || served <= 0.0 {
        return Vec::new();
    }
    let mut summary = summarise(&[], &facts(target, deployment), &GOODPUT);
    summary.inside.signals = Some(signals.clone());
    let view = View::watched(&summary, deployment);
    let mut found = rule::findings(&view, &Stages::default());
    for finding in &mut found {
        finding.confidence = finding.confidence.min(Confidence::Likely);
        finding.missing.push(said!(
            "what clients see: a short goodput bench beside this traffic would tell",
            "客户端所见：可在现有流量之外运行一次短时 goodput bench"
        ));
    }
    found
}

/// A run in which nothing was sent.
fn facts(target: &str, deployment: &Deployment) -> RunFacts {
    RunFacts {
        run_id: String::new(),
        target: target.to_owned(),
        engine: None,
        model: None,
        simulated: false,
        api: String::new(),
        endpoint: Endpoint::Chat,
        load: LoadFacts {
            kind: LoadKind::Unknown,
            request_rate: None,
            burstiness: None,
            users: None,
            arrivals: String::new(),
            planned_duration: None,
            seed: 0,
            schedule_hash: String::new(),
            replay: None,
        },
        workload: WorkloadFacts::default(),
        slo: None,
        settings: Settings::default(),
        percentiles: Vec::new(),
        instrument: InstrumentFacts::default(),
        request_timeout: None,
        source_duration_s: None,
        as_reported: Vec::new(),
        isolated: Vec::new(),
        deployment: deployment.clone(),
        rows_kept: false,
        interrupted: false,
    }
}
