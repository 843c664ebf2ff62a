//! What became of a rule of `--fail-if`, below a report.

use measure::threshold::{Outcome, Threshold};

use crate::catalogue::report as words;
use crate::lang::Lang;
use crate::number::short;

/// Why a run fails by this rule; nothing where it passes.
pub fn missed(rule: &Threshold, outcome: Outcome, lang: Lang) -> Option<String> {
    let text = format!("{:?}", rule.text);
    match outcome {
        Outcome::Passed(_) => None,
        Outcome::Missed(value) => Some(lang.fill(
            words::RULE_MISSED,
            &[("rule", &text), ("value", &short(value)), ("unit", &rule.unit())],
        )),
        Outcome::Undefined => Some(lang.fill(words::RULE_UNDEFINED, &[("rule", &text)])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_was_missed_is_told_with_its_value() {
        let rule = Threshold::parse("ttft.p99 > 500ms").expect("a rule");
        let said = |outcome, lang| missed(&rule, outcome, lang);
        assert_eq!(said(Outcome::Passed(1.0), Lang::En), None);
        assert_eq!(
            said(Outcome::Missed(612.0), Lang::En).as_deref(),
            Some("--fail-if \"ttft.p99 > 500ms\": is 612 ms")
        );
        assert_eq!(
            said(Outcome::Missed(612.0), Lang::Zh).as_deref(),
            Some("--fail-if \"ttft.p99 > 500ms\"：未通过，实际为 612 ms")
        );
        assert!(said(Outcome::Undefined, Lang::Zh).expect("missed").contains("没有该值"));
    }
}
