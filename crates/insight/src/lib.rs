//! What a run says about its server: where the time goes, what the work cost,
//! which cause is behind a bad number, and which number is easily misread.
//!
//! Everything here is a function of records, figures and signals. A rule never
//! sees what only the engine model knows.

pub mod efficiency;
pub mod lint;
pub mod rule;
pub mod stage;
pub mod view;

use measure::Record;
use measure::deployment::Deployment;
use measure::signal::Signals;
use measure::summary::Summary;

pub use rule::{RULES, Rule};
pub use view::View;

/// Looks at a run whose figures are there, and fills in [`Summary::inside`].
pub fn examine(
    summary: &mut Summary,
    records: &[Record],
    signals: Option<Signals>,
    deployment: &Deployment,
) {
    summary.inside.signals = signals;
    let view = View::new(summary, records, deployment);
    let stages = stage::split(&view);
    let efficiency = efficiency::figures(&view);
    let findings = rule::findings(&view, &stages);
    let lints = lint::lints(&view);
    let inside = &mut summary.inside;
    inside.stages = stages;
    inside.efficiency = efficiency;
    inside.findings = Some(findings);
    inside.lints = lints;
}
