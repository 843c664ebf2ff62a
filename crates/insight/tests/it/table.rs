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

/// The rule base's table, family by family.
const CODES: &[(char, usize)] =
    &[('V', 9), ('Q', 10), ('P', 10), ('D', 14), ('K', 6), ('C', 5), ('H', 3), ('N', 4), ('E', 4)];

#[test]
fn the_rule_base_is_there_whole_and_in_its_order() {
    let listed = |(family, count): &(char, usize)| {
        (1..=*count).map(|number| format!("{family}{number}")).collect::<Vec<_>>()
    };
    let codes: Vec<String> = CODES.iter().flat_map(listed).collect();
    assert_eq!(codes.len(), 65);
    let sorted = |mut codes: Vec<String>| {
        codes.sort();
        codes
    };
    let ours: Vec<String> = RULES.iter().map(|rule| rule.code.to_owned()).collect();
    assert_eq!(sorted(ours), sorted(codes));
    let families: String = RULES.iter().filter_map(|rule| rule.code.chars().next()).collect();
    let order: String = CODES.iter().flat_map(|(family, n)| vec![*family; *n]).collect();
    assert_eq!(families, order);
}

/// Flags of `vllm serve`; the first line says which version's and how they were
/// found.
const VLLM: &str = include_str!("../flags/vllm.txt");

#[test]
fn every_flag_of_vllm_is_one_that_it_takes() {
    let known: BTreeSet<&str> = VLLM.lines().skip(1).collect();
    assert!(known.len() > 300 && VLLM.starts_with("# "));
    for rule in RULES {
        for (engine, flags) in rule.advice.iter().flat_map(|advice| advice.flags) {
            let names = flags.split([' ', ',']).filter(|word| word.starts_with("--"));
            if *engine == "vllm" {
                names.for_each(|name| assert!(known.contains(name), "{}: {name}", rule.id));
            }
        }
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
