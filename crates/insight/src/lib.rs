//! What a run says about its server: where the time goes, what the work cost,
//! which cause is behind a bad number, and which number is easily misread.
//!
//! Everything here is a function of records, figures and signals. A rule never
//! sees what only the engine model knows.

pub mod conditions;
pub mod efficiency;
pub mod fit;
pub mod gaps;
pub mod lint;
pub mod missing;
pub mod probe;
pub mod rule;
pub mod stage;
pub mod symptom;
pub mod view;
pub mod watch;

use measure::Record;
use measure::definition::{Definition, GOODPUT};
use measure::deployment::Deployment;
use measure::facts::RunFacts;
use measure::signal::{Seen, Signals};
use measure::summary::{Summary, summarise};

pub use rule::{RULES, Rule};
pub use view::View;

/// All figures of a run, and what follows from them about its server. The one
/// way to a summary that people or programs are shown. Causes are looked for by
/// our own definitions, whatever figures are shown under.
pub fn summary(
    records: &[Record],
    facts: &RunFacts,
    definition: &Definition,
    seen: Seen,
    deployment: &Deployment,
) -> Summary {
    let mut own = summarise(records, facts, &GOODPUT);
    own.inside.unread = seen.unread;
    examine(&mut own, records, seen.signals, deployment);
    if *definition == own.definition { own } else { under(&own, records, definition) }
}

/// The figures of the same run by other definitions; what follows from them stays.
pub fn under(own: &Summary, records: &[Record], definition: &Definition) -> Summary {
    if *definition == own.definition {
        return own.clone();
    }
    Summary { inside: own.inside.clone(), ..summarise(records, &own.facts, definition) }
}

/// Looks at a run whose figures are there, and fills in [`Summary::inside`].
pub fn examine(
    summary: &mut Summary,
    records: &[Record],
    signals: Option<Signals>,
    deployment: &Deployment,
) {
    summary.inside.signals = signals;
    let caveats = measure::caveats::of_signals(summary);
    summary.caveats.extend(caveats);
    let view = View::new(summary, records, deployment);
    let stages = stage::split(&view);
    let efficiency = efficiency::figures(&view);
    // Rules and lints speak about shares and figures that are there by then.
    summary.inside.stages = stages;
    summary.inside.efficiency = efficiency;
    let view = View::new(summary, records, deployment);
    let findings = rule::findings(&view, &summary.inside.stages);
    let mut lints = lint::lints(&view);
    lints.extend(efficiency::lints(&summary.inside.efficiency));
    let missing = missing::missing(&view);
    let inside = &mut summary.inside;
    inside.findings = Some(findings);
    inside.lints = lints;
    inside.missing = missing;
}
