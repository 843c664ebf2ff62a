//! Which cause comes first: the one that explains most, and never after what it
//! causes.

use measure::finding::{Class, Confidence, Finding};

/// Causes, and what they bring about: when both are found, the second is told
/// after all that stand for themselves.
const CAUSES: &[(&str, &[&str])] = &[
    ("kv_capacity", &["kv_admission", "preemption_stalls", "kv_thrash", "over_saturation"]),
    ("preemption_stalls", &["kv_admission", "kv_thrash"]),
    ("kv_admission", &["over_saturation"]),
    ("seat_limit", &["over_saturation"]),
    ("prefill_backlog", &["prefill_slowed", "seat_limit", "over_saturation"]),
    ("deferred", &["prefill_backlog", "seat_limit", "over_saturation"]),
    ("replica_imbalance", &["over_saturation", "not_steady"]),
    ("over_saturation", &["not_steady"]),
    ("cold_start", &["not_steady"]),
    ("throttled", &["not_steady", "over_saturation", "slow_drift"]),
    ("slow_drift", &["not_steady"]),
    ("client_bottleneck", &["distance"]),
    ("upstream_queue", &["distance"]),
    ("connection_limit", &["errors"]),
    ("memory_edge", &["errors"]),
    ("grammar_compilation", &["deferred"]),
    ("kv_handover", &["kv_fetch"]),
    ("offload_thrash", &["kv_fetch"]),
    ("processor_contention", &["noisy_host"]),
    ("tensor_parallel_bound", &["busy_but_useless"]),
    ("expert_exchange", &["busy_but_useless"]),
    ("expert_imbalance", &["busy_but_useless"]),
    ("proxy_buffering", &["output_path", "distance"]),
    ("prefix_evicted", &["prefix_not_hit", "prefill_interference"]),
    ("prefix_not_hit", &["prefill_interference"]),
    ("prefill_bound", &["prefill_interference"]),
    ("host_bound", &["busy_but_useless"]),
    ("underload", &["kv_spare", "cost_slack"]),
    ("kv_spare", &["reserved_memory"]),
];

/// Rules that only say what follows from others.
const FOLLOWS: &[&str] = &["past_the_knee", "hidden_queue"];

/// Share from which on a cause is told at all.
const TOLD: f64 = 0.05;

/// Share of what is wrong from which on a cause is as sure as its evidence: what
/// explains less is one step less sure.
pub const MATTERS: f64 = 0.3;

/// A cause explains about as much as what it brings about, at least.
const AS_MUCH: f64 = 0.9;

/// Orders findings, leaves out what explains next to nothing, and is less sure of
/// what explains little or is brought about by another.
pub(super) fn order(found: &mut Vec<Finding>) {
    found.retain(|finding| finding.share >= TOLD);
    let ids: Vec<(&str, Confidence, f64)> =
        found.iter().map(|one| (one.rule, one.confidence, one.share)).collect();
    let explained = |finding: &Finding| {
        let by_another = CAUSES.iter().any(|(cause, effects)| {
            effects.contains(&finding.rule)
                && ids.iter().any(|(rule, confidence, share)| {
                    rule == cause
                        && *confidence >= finding.confidence.min(Confidence::Likely)
                        && *share >= AS_MUCH * finding.share
                })
        });
        by_another || (FOLLOWS.contains(&finding.rule) && ids.len() > 1)
    };
    let places: Vec<(&str, bool)> =
        found.iter().map(|finding| (finding.rule, explained(finding))).collect();
    let is_explained =
        |finding: &Finding| places.iter().any(|(rule, is)| *rule == finding.rule && *is);
    found.sort_by(|a, b| {
        is_explained(a)
            .cmp(&is_explained(b))
            .then(statement(a).cmp(&statement(b)))
            .then(weight(b).total_cmp(&weight(a)))
            .then(a.rule.cmp(b.rule))
    });
    for finding in found {
        if finding.share < MATTERS || is_explained(finding) {
            finding.confidence = less_sure(finding.confidence);
        }
    }
}

/// The next lower confidence.
fn less_sure(confidence: Confidence) -> Confidence {
    match confidence {
        Confidence::Confirmed => Confidence::Likely,
        Confidence::Likely | Confidence::Possible => Confidence::Possible,
    }
}

/// True of what is no fault: it comes after all faults.
fn statement(finding: &Finding) -> bool {
    finding.class == Class::Underload
}

/// How much a cause explains, less where it is less sure.
fn weight(finding: &Finding) -> f64 {
    let sure = match finding.confidence {
        Confidence::Confirmed => 1.0,
        Confidence::Likely => 0.7,
        Confidence::Possible => 0.4,
    };
    sure * finding.share
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::RULES;

    #[test]
    fn every_cause_and_effect_is_a_rule() {
        let known = |id: &str| RULES.iter().any(|rule| rule.id == id);
        for (cause, effects) in CAUSES {
            assert!(known(cause), "{cause}");
            effects.iter().for_each(|effect| assert!(known(effect), "{effect}"));
        }
        FOLLOWS.iter().for_each(|id| assert!(known(id), "{id}"));
    }
}
