//! The rules: one file each, each a value with its words and its judgement.

mod bursts;
mod busy_but_useless;
mod cache_contamination;
mod cautious_admission;
mod client_bottleneck;
mod cold_start;
mod connection_limit;
mod cost_slack;
mod decode_compute_bound;
mod deferred;
mod distance;
mod errors;
mod expert_exchange;
mod expert_imbalance;
mod expert_spread;
mod front_end;
mod grammar_compilation;
mod graph_miss;
mod head_of_line;
mod hidden_queue;
mod host_bound;
mod image_encoding;
mod kv_admission;
mod kv_bandwidth;
mod kv_capacity;
mod kv_fetch;
mod kv_handover;
mod kv_spare;
mod kv_thrash;
mod memory_edge;
mod noisy_host;
mod not_steady;
mod offload_thrash;
mod output_path;
mod over_saturation;
mod packet_loss;
mod past_the_knee;
mod phase_mix;
mod pipeline_bubbles;
mod preemption_stalls;
mod prefill_backlog;
mod prefill_bound;
mod prefill_inefficient;
mod prefill_interference;
mod prefill_slowed;
mod prefix_evicted;
mod prefix_not_hit;
mod processor_contention;
mod proxy_buffering;
mod quadratic_attention;
mod rank_lockstep;
mod ranking;
mod replica_imbalance;
mod reserved_memory;
mod sampling_cost;
mod seat_limit;
mod shared_accelerator;
mod signs;
mod slow_drift;
mod speculation_crowded;
mod speculation_ineffective;
mod tensor_parallel_bound;
mod throttled;
mod uncontrolled_lengths;
mod underload;
mod upstream_queue;
mod weight_bandwidth;

use measure::finding::{Class, Confidence, Direction, Evidence, Finding, From};
use measure::metric::Text;
use measure::said::Said;
use measure::signal::Signal;
use measure::stage::Stages;

pub use self::ranking::MATTERS;
use crate::view::View;

/// A cause that can be told from what a run shows.
#[derive(Debug)]
pub struct Rule {
    /// Stable id.
    pub id: &'static str,
    /// Its letter and number in the rule base: `Q1`.
    pub code: &'static str,
    /// Where the bottleneck lies.
    pub class: Class,
    /// The cause in a few words.
    pub title: Text,
    /// What the client sees, with the ratios.
    pub symptom: Text,
    /// What the server must show.
    pub required: Text,
    /// The experiment that tells this cause from those that look alike.
    pub check: Text,
    /// The same as a command; `{target}` is the run's target, `{run}` its id.
    pub command: &'static str,
    /// What to change.
    pub advice: &'static [Advice],
    /// Keys of the metrics that must improve.
    pub improves: &'static [&'static str],
    /// False where it was tested on made data only.
    pub seen_live: bool,
    /// Whether it is the cause here.
    pub judge: fn(&View<'_>, &Stages) -> Option<Case>,
}

/// Something to change, and how engines name it.
#[derive(Debug)]
pub struct Advice {
    /// What to do, and what it costs.
    pub text: Text,
    /// Flags by engine key: `("vllm", "--max-num-seqs")`.
    pub flags: &'static [(&'static str, &'static str)],
}

/// What a rule found.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// How sure.
    pub confidence: Confidence,
    /// How much of what is wrong it explains, 0 to 1.
    pub share: f64,
    /// What happens here, in a sentence with the numbers.
    pub says: Said,
    /// The numbers for it.
    pub evidence: Vec<Evidence>,
    /// The numbers against it.
    pub against: Vec<Evidence>,
    /// What is missing to be sure.
    pub missing: Vec<Said>,
}

impl Case {
    /// A case with its numbers.
    pub(crate) fn new(
        confidence: Confidence,
        share: f64,
        says: Said,
        evidence: Vec<Evidence>,
    ) -> Self {
        let share = share.clamp(0.0, 1.0);
        Self { confidence, share, says, evidence, against: Vec::new(), missing: Vec::new() }
    }

    /// Numbers that speak against it.
    fn against(mut self, against: impl IntoIterator<Item = Evidence>) -> Self {
        self.against.extend(against);
        self
    }

    /// What is missing to be sure.
    pub(crate) fn missing(mut self, missing: impl IntoIterator<Item = Said>) -> Self {
        self.missing.extend(missing);
        self
    }
}

/// Every rule, in the order of the rule base.
pub static RULES: &[&Rule] = &[
    &underload::RULE,
    &client_bottleneck::RULE,
    &hidden_queue::RULE,
    &not_steady::RULE,
    &uncontrolled_lengths::RULE,
    &cache_contamination::RULE,
    &errors::RULE,
    &cold_start::RULE,
    &noisy_host::RULE,
    &seat_limit::RULE,
    &kv_admission::RULE,
    &prefill_backlog::RULE,
    &over_saturation::RULE,
    &bursts::RULE,
    &deferred::RULE,
    &replica_imbalance::RULE,
    &head_of_line::RULE,
    &upstream_queue::RULE,
    &cautious_admission::RULE,
    &prefill_bound::RULE,
    &prefill_inefficient::RULE,
    &quadratic_attention::RULE,
    &prefill_slowed::RULE,
    &prefix_not_hit::RULE,
    &prefix_evicted::RULE,
    &image_encoding::RULE,
    &front_end::RULE,
    &grammar_compilation::RULE,
    &kv_fetch::RULE,
    &weight_bandwidth::RULE,
    &kv_bandwidth::RULE,
    &host_bound::RULE,
    &graph_miss::RULE,
    &decode_compute_bound::RULE,
    &prefill_interference::RULE,
    &preemption_stalls::RULE,
    &expert_spread::RULE,
    &expert_imbalance::RULE,
    &speculation_ineffective::RULE,
    &speculation_crowded::RULE,
    &sampling_cost::RULE,
    &output_path::RULE,
    &slow_drift::RULE,
    &kv_capacity::RULE,
    &kv_thrash::RULE,
    &kv_spare::RULE,
    &memory_edge::RULE,
    &offload_thrash::RULE,
    &reserved_memory::RULE,
    &tensor_parallel_bound::RULE,
    &pipeline_bubbles::RULE,
    &expert_exchange::RULE,
    &rank_lockstep::RULE,
    &kv_handover::RULE,
    &throttled::RULE,
    &processor_contention::RULE,
    &shared_accelerator::RULE,
    &distance::RULE,
    &proxy_buffering::RULE,
    &packet_loss::RULE,
    &connection_limit::RULE,
    &past_the_knee::RULE,
    &busy_but_useless::RULE,
    &cost_slack::RULE,
    &phase_mix::RULE,
];

/// The rule of this id or code.
pub fn find(word: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == word || rule.code.eq_ignore_ascii_case(word))
}

/// What the rules find: what explains most comes first.
pub fn findings(view: &View<'_>, stages: &Stages) -> Vec<Finding> {
    let mut found: Vec<Finding> = RULES
        .iter()
        .filter_map(|rule| Some(finding(rule, (rule.judge)(view, stages)?, view)))
        .collect();
    ranking::order(&mut found);
    found
}

fn finding(rule: &'static Rule, case: Case, view: &View<'_>) -> Finding {
    let engine = view.signals().and_then(|signals| signals.engine);
    let facts = &view.summary.facts;
    let command = command(rule.command, &facts.target, &facts.run_id);
    Finding { command, ..found(rule, case, engine) }
}

/// A case in the words of its rule, with the flags of an engine; the experiment
/// is that of the rule, without its command.
pub(crate) fn found(rule: &'static Rule, case: Case, engine: Option<&str>) -> Finding {
    let directions = rule.advice.iter().map(|advice| {
        let flag = advice.flags.iter().find(|(key, _)| Some(*key) == engine);
        Direction { text: advice.text.into(), flag: flag.map(|(_, flag)| (*flag).to_owned()) }
    });
    Finding {
        rule: rule.id,
        class: rule.class,
        confidence: case.confidence,
        title: rule.title.into(),
        says: case.says,
        evidence: case.evidence,
        against: case.against,
        missing: case.missing,
        experiment: rule.check.into(),
        command: None,
        directions: directions.collect(),
        improves: rule.improves,
        share: case.share,
        seen_live: rule.seen_live,
    }
}

/// Words in both languages.
const fn text(en: &'static str, zh: &'static str) -> Text {
    Text { en, zh }
}

/// The command of an experiment with the run's names in it; none where there is
/// none, or where it asks a target without an address: the embedded engine ends
/// with its run.
pub(crate) fn command(command: &str, target: &str, run_id: &str) -> Option<String> {
    let gone = command.contains("{target}") && !target.starts_with("http");
    if command.is_empty() || gone {
        return None;
    }
    let run = if run_id.is_empty() { "latest" } else { run_id };
    Some(command.replace("{target}", &quoted(target)).replace("{run}", &quoted(run)))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A number of the evidence.
fn number(what: Said, value: f64, unit: &'static str, from: From) -> Evidence {
    Evidence { what, value, unit, from }
}

/// One that the client measured.
fn client(what: Said, value: f64, unit: &'static str) -> Evidence {
    number(what, value, unit, From::Client)
}

/// One that the server told.
fn server(what: Said, value: f64, unit: &'static str) -> Evidence {
    number(what, value, unit, From::Server)
}

/// What the server told of a signal, by its name in the table of signals.
fn told(view: &View<'_>, signal: Signal) -> Option<Evidence> {
    let entry = signal.entry();
    let unit = if entry.unit == "ratio" { "" } else { entry.unit };
    view.signal(signal).map(|value| server(entry.name.into(), value, unit))
}

/// One that follows from model and accelerator.
fn bound(what: Said, value: f64, unit: &'static str) -> Evidence {
    number(what, value, unit, From::Bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_or_there_is_none() {
        let url = "http://h:8000/v1?a=1&b=2";
        let probe = "goodput bench {target}";
        let known = Some("goodput bench 'http://h:8000/v1?a=1&b=2'".to_owned());
        assert_eq!(command(probe, url, "01J"), known);
        assert_eq!(command(probe, "embedded engine", "01J"), None, "it is gone");
        assert_eq!(command("", url, "01J"), None);
        let like = command("goodput sim run --like {run}", "engine model", "01J");
        assert_eq!(like.as_deref(), Some("goodput sim run --like 01J"));
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
