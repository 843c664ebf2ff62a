use super::*;

/// Every field of every meaning of a word has a label and words.
fn assert_full(word: &str) {
    for lang in Lang::ALL {
        let entries = entries(word, *lang);
        assert!(!entries.is_empty(), "{word} has no meaning in {}", lang.code());
        for entry in entries {
            assert!(!entry.opening.trim().is_empty(), "{word} {lang:?}: {}", entry.heading);
            assert!(!entry.fields.is_empty(), "{word} {lang:?}: {}", entry.heading);
            for (label, text) in &entry.fields {
                assert!(!label.trim().is_empty() && !text.trim().is_empty(), "{word} {label}");
            }
        }
    }
}

fn has_chinese(text: &str) -> bool {
    text.chars().any(|c| columns(c.encode_utf8(&mut [0; 4])) == 2)
}

#[test]
fn every_known_word_explains_itself_in_both_languages() {
    for word in words() {
        if !causes::LISTS.contains(&word) {
            assert_full(word);
        }
        let english = explain(word, Lang::En).expect("known");
        let chinese = explain(word, Lang::Zh).expect("known");
        assert!(!has_chinese(&english), "{word}:\n{english}");
        assert!(has_chinese(&chinese), "{word}:\n{chinese}");
    }
}

#[test]
fn every_metric_kind_warning_and_reason_is_a_known_word() {
    let words = words();
    for metric in METRICS {
        assert!(words.contains(&metric.key) && words.contains(&metric.symbol), "{}", metric.key);
    }
    for kind in FailureKind::ALL {
        assert!(words.contains(&kind.name()));
    }
    for kind in NotSentKind::ALL {
        assert!(words.contains(&kind.name()));
    }
    for (_, name) in Warnings::NAMES {
        assert!(words.contains(name));
    }
    for reason in Undefined::ALL {
        assert!(words.contains(&reason.name()));
    }
}

#[test]
fn warnings_have_words_in_the_order_of_their_bits() {
    let here: Vec<(Warnings, &str)> =
        WARNINGS.iter().map(|warning| (warning.warning, warning.name())).collect();
    assert_eq!(here, Warnings::NAMES);
}

#[test]
fn chinese_texts_of_the_registry_are_chinese() {
    for metric in METRICS {
        for text in [metric.name, metric.text, metric.pitfalls] {
            assert!(has_chinese(text.zh), "{}: {}", metric.key, text.zh);
            assert!(!has_chinese(text.en), "{}: {}", metric.key, text.en);
        }
    }
}

#[test]
fn a_key_a_symbol_and_odd_spelling_lead_to_the_same_metric() {
    let tpot = explain("TPOT", Lang::En).expect("a metric");
    assert!(tpot.starts_with("TPOT — Time per output token\n"), "{tpot}");
    for word in ["tpot", "tpot_ms", "  Tpot "] {
        assert_eq!(explain(word, Lang::En).as_ref(), Some(&tpot), "{word}");
    }
    assert_eq!(explain("finish_lag", Lang::Zh), explain("finish lag", Lang::Zh));
    assert!(explain("finish_lag", Lang::Zh).is_some());
}

#[test]
fn a_rule_is_found_by_its_id_and_by_its_code_and_is_in_the_list() {
    let rule = explain("seat_limit", Lang::En).expect("a rule");
    assert!(rule.starts_with("seat_limit (Q1) — all seats are taken\n"), "{rule}");
    for part in ["queueing", "--max-num-seqs", "TTFT", "goodput probe URL"] {
        assert!(rule.contains(part), "no {part} in\n{rule}");
    }
    assert_eq!(explain("q1", Lang::En), Some(rule));
    let list = explain("rules", Lang::Zh).expect("a list");
    for rule in insight::RULES {
        let row = list.lines().find(|line| line.contains(&format!(" {} ", rule.id)));
        let row = row.unwrap_or_else(|| panic!("{} is not in\n{list}", rule.id));
        assert!(row.trim_start().starts_with(rule.code), "{row}");
    }
}

#[test]
fn a_word_with_two_meanings_gets_both() {
    let both = explain("n_gt_1", Lang::En).expect("known");
    assert!(both.contains("answer warning") && both.contains("why a value is missing"), "{both}");
    assert_eq!(explain("n-gt-1", Lang::En), Some(both));
}

#[test]
fn lines_fit_the_terminal_and_do_not_start_with_a_closing_mark() {
    for word in words() {
        for lang in Lang::ALL {
            for line in explain(word, *lang).expect("known").lines() {
                assert!(columns(line) <= COLUMNS, "{word}: {line}");
                assert!(!line.trim_start().starts_with(['，', '。', '、', '）', '；']), "{line}");
            }
        }
    }
}

#[test]
fn an_unknown_word_is_unknown_and_a_slip_finds_its_word() {
    assert_eq!(explain("nonsense", Lang::En), None);
    assert_eq!(explain("", Lang::En), None);
    assert_eq!(closest("tptf"), None);
    for (slip, right) in [
        ("tfft", "TTFT"),
        ("TPTO", "TPOT"),
        ("atainment", "attainment"),
        ("idle-timout", "idle_timeout"),
        ("not_streemed", "not_streamed"),
        ("goodpt", "goodput"),
    ] {
        assert_eq!(closest(slip), Some(right), "{slip}");
    }
    assert_eq!(closest("zzzzzzzzzzzz"), None);
    assert_eq!(closest(""), None);
}

#[test]
fn edits_count_a_swap_of_neighbours_as_one() {
    assert_eq!(edits("", "abc"), 3);
    assert_eq!(edits("abc", "abc"), 0);
    assert_eq!(edits("tpto", "tpot"), 1);
    assert_eq!(edits("kitten", "sitting"), 3);
}
