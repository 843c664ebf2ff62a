//! What holds for every rule.

use std::collections::BTreeSet;

use insight::RULES;
use insight::symptom::SYMPTOMS;
use measure::finding::Class;
use measure::metric::METRICS;

#[test]
fn ids_and_codes_are_unique_and_found() {
    let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    let codes: BTreeSet<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert_eq!((ids.len(), codes.len()), (RULES.len(), RULES.len()));
    for rule in RULES {
        assert_eq!(insight::rule::find(rule.id).map(|rule| rule.code), Some(rule.code));
        assert_eq!(
            insight::rule::find(&rule.code.to_lowercase()).map(|rule| rule.id),
            Some(rule.id)
        );
    }
}

#[test]
fn every_rule_has_its_words_in_both_languages() {
    for rule in RULES {
        for text in [rule.title, rule.symptom, rule.required, rule.check] {
            assert!(!text.en.is_empty() && !text.zh.is_empty(), "{}", rule.id);
            assert!(!text.en.contains("  "), "{}: {}", rule.id, text.en);
        }
        assert!(!rule.advice.is_empty(), "{}", rule.id);
        for advice in rule.advice {
            assert!(!advice.text.en.is_empty() && !advice.text.zh.is_empty(), "{}", rule.id);
        }
    }
}

#[test]
fn what_must_improve_is_a_metric() {
    for rule in RULES {
        assert!(!rule.improves.is_empty(), "{}", rule.id);
        for key in rule.improves {
            assert!(METRICS.iter().any(|metric| metric.key == *key), "{}: {key}", rule.id);
        }
    }
}

/// Seed 000: tricks for throughput do not mend TTFT, and a busier GPU mends
/// neither P99 nor the KV cache.
#[test]
fn no_wait_prompt_or_cache_is_mended_by_throughput_or_utilisation() {
    let no_measure = [
        "output_tok_s",
        "input_tok_s",
        "input_computed_tok_s",
        "total_tok_s",
        "req_s",
        "completed_rps",
        "gpu_utilisation",
        "gpu_memory",
        "kv_cache_usage",
        "mfu",
        "hfu",
        "per_gpu_output_tok_s",
        "tps_per_megawatt",
    ];
    for rule in RULES {
        if matches!(rule.class, Class::Queueing | Class::Prefill | Class::KvCapacity) {
            let bad = rule.improves.iter().find(|key| no_measure.contains(key));
            assert_eq!(bad, None, "{}", rule.id);
        }
    }
}

#[test]
fn every_symptom_names_rules() {
    for row in SYMPTOMS {
        for id in row.rules {
            assert!(insight::rule::find(id).is_some(), "{}: {id}", row.id);
        }
    }
    assert_eq!(SYMPTOMS.len(), 15);
}
