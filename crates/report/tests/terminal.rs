//! The report in a terminal, whole pages. `INSTA_UPDATE=always cargo test -p
//! report --test terminal` accepts new ones; read the difference.

#[allow(dead_code, reason = "one builder for the tests of two crates")]
mod runs;

use measure::definition::{Definition, Endpoint};
use measure::summary::{Summary, summarise};
use report::content::{LATENCIES, beside, diagnosis, document, in_short};
use report::lang::Lang;
use report::terminal::{Style, render};

/// Columns that no line goes over.
const COLUMNS: usize = 110;

const SECTIONS: &[&str] = &[
    "1 Definitions",
    "2 What was offered",
    "3 What went wrong",
    "4 Workload",
    "5 Latencies and phases",
    "6 Mean against tail",
    "7 Throughput",
    "8 Resources",
    "9 Directions",
    "10 Goodput",
    "11 Caveats",
];

fn plain(summary: &Summary) -> String {
    render(&document(summary, None, Lang::En), Style::default())
}

fn chinese(summary: &Summary) -> String {
    render(&document(summary, None, Lang::Zh), Style::default())
}

/// Every page of every run, under our definitions and under vLLM's.
fn pages() -> Vec<(String, Summary, String)> {
    let vllm = Definition::preset("vllm", Endpoint::Chat).expect("a preset");
    let mut pages = Vec::new();
    for (name, run) in runs::all() {
        let ours = run.summary();
        pages.push((name.to_owned(), ours.clone(), plain(&ours)));
        let theirs = summarise(&run.records, &run.facts, &vllm);
        let page = plain(&theirs);
        pages.push((format!("{name} as vllm"), theirs, page));
    }
    pages
}

fn line<'a>(page: &'a str, start: &str) -> &'a str {
    let found = page.lines().find(|line| line.trim_start().starts_with(start));
    found.unwrap_or_else(|| panic!("no line starts with {start:?} in\n{page}"))
}

#[test]
fn pages_look_as_they_did() {
    for (name, run) in runs::all() {
        insta::assert_snapshot!(name, plain(&run.summary()));
    }
}

#[test]
fn chinese_pages_look_as_they_did() {
    for (name, run) in [
        ("zh_healthy", runs::healthy()),
        ("zh_failing", runs::failing()),
        ("zh_imported_chat", runs::imported_chat()),
    ] {
        insta::assert_snapshot!(name, chinese(&run.summary()));
    }
}

#[test]
fn what_was_seen_inside_looks_as_it_did() {
    let seen = runs::seen();
    insta::assert_snapshot!("seen", plain(&seen));
    insta::assert_snapshot!("zh_seen", chinese(&seen));
    let diagnosis = |lang| render(&diagnosis(&seen, lang), Style::default());
    insta::assert_snapshot!("diagnosis", diagnosis(Lang::En));
    insta::assert_snapshot!("zh_diagnosis", diagnosis(Lang::Zh));
}

#[test]
fn a_lint_stands_once_behind_the_number_that_it_concerns() {
    let page = plain(&runs::seen());
    let lints: Vec<&str> = page.lines().filter(|line| line.contains("easily misread")).collect();
    assert_eq!(lints.len(), 3, "{page}");
    let place = |words: &str| page.find(words).unwrap_or_else(|| panic!("no {words} in\n{page}"));
    let tail = place("6 Mean against tail");
    let (mean, busy, other) =
        (place("(mean_only)"), place("(busy_as_efficiency)"), place("(of_no_number)"));
    assert!(place("5 Latencies") < mean && mean < tail, "{page}");
    assert!(place("8 Resources") < busy && busy < place("9 Directions"), "{page}");
    assert!(other > place("11 Caveats"), "a number that is not shown:\n{page}");
}

#[test]
fn conditions_stand_next_to_every_headline() {
    for (name, run) in runs::all() {
        for lang in Lang::ALL {
            let page = document(&run.summary(), None, *lang);
            let load = &run.facts.load.arrivals;
            for condition in
                [&run.facts.workload.input_lengths, &run.facts.workload.cache_regime, load]
            {
                assert!(
                    page.conditions.contains(condition.as_str()),
                    "{name}: {}",
                    page.conditions
                );
            }
        }
    }
    // Right below the headline, before anything else is said.
    let page = plain(&runs::healthy().summary());
    assert!(
        page.lines().nth(2).is_some_and(|line| line.starts_with("  conditions: input 512 tokens"))
    );
}

#[test]
fn runs_side_by_side_say_in_which_condition_they_differ() {
    let one = runs::healthy().summary();
    let mut other = runs::healthy();
    other.facts.workload.cache_regime = "warm".to_owned();
    let other = other.summary();
    let page = render(&beside(&[&one, &other], Lang::En), Style::default());
    let row = line(&page, "state of the prefix cache");
    assert!(row.contains("cold") && row.contains("warm"), "{page}");
    assert!(page.contains("not comparable"), "{page}");
    assert_eq!(page.matches("conditions: input 512 tokens").count(), 2, "{page}");
    let same = render(&beside(&[&one, &one], Lang::En), Style::default());
    assert!(same.contains("are the same") && !same.contains("not comparable"), "{same}");
    insta::assert_snapshot!("beside", page);
}

#[test]
fn the_paragraph_names_the_first_finding_or_says_why_there_is_none() {
    let seen = runs::seen();
    let english = in_short(&seen, Lang::En);
    for part in ["confirmed", "all seats are taken", "--max-num-seqs", "TTFT", "goodput diagnose"] {
        assert!(english.contains(part), "{english}");
    }
    let simulated = |simulated| {
        let mut seen = seen.clone();
        seen.facts.simulated = simulated;
        in_short(&seen, Lang::En).contains("simulation")
    };
    assert!(simulated(true) && !simulated(false));
    let mut nothing = seen.clone();
    nothing.inside.findings = Some(Vec::new());
    let said = in_short(&nothing, Lang::En);
    assert!(
        said.contains("no rule found a cause") && said.contains("prefixes were evicted"),
        "{said}"
    );
    let invalid = in_short(&runs::unreachable().summary(), Lang::Zh);
    assert!(invalid.contains("INVALID"), "{invalid}");
}

/// Every page in both languages.
fn pages_of_both() -> Vec<(String, String)> {
    let both = |(name, summary, english): (String, Summary, String)| {
        [(format!("{name} in Chinese"), chinese(&summary)), (name, english)]
    };
    pages().into_iter().flat_map(both).collect()
}

#[test]
fn sections_stand_on_every_page_in_the_order_of_analysis_and_are_counted() {
    for (name, _, page) in pages() {
        let numbered: Vec<&str> =
            page.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
        assert_eq!(numbered.len(), SECTIONS.len(), "{name}: {numbered:?}");
        for (line, section) in numbered.iter().zip(SECTIONS) {
            assert!(line.starts_with(section), "{name}: {line:?} is not {section:?}");
        }
    }
}

#[test]
fn no_line_is_wider_than_a_terminal_and_none_ends_in_blanks() {
    for (name, page) in pages_of_both() {
        for line in page.lines() {
            // Counted as if every character outside ASCII were wide where it may be.
            let wide = line.chars().filter(|c| ('\u{2e80}'..='\u{ffdc}').contains(c)).count();
            assert!(line.chars().count() + wide <= COLUMNS, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
        }
    }
}

#[test]
fn nothing_that_a_server_says_steers_the_terminal() {
    for (name, page) in pages_of_both() {
        for c in page.chars() {
            assert!(!c.is_control() || c == '\n', "{name}: {c:?}");
            assert!(!('\u{202a}'..='\u{202e}').contains(&c), "{name}: {c:?}");
        }
    }
    let failing = plain(&runs::failing().summary());
    assert!(line(&failing, "the first said:").contains("slow down [2J ]0;pwned"), "{failing}");
}

#[test]
fn every_missing_value_has_its_reason() {
    for (name, page) in pages_of_both() {
        let below = ["ITL percentiles n/a (", "ITL 分位数 n/a（"];
        for line in page.lines().skip(2) {
            let bare = line
                .split("n/a")
                .skip(1)
                .filter(|rest| !rest.starts_with(" (") && !rest.starts_with('（'));
            // A cell of a table has no room; the line below the table says why.
            let in_table = line.trim_start().starts_with("ITL")
                && below.iter().any(|below| page.contains(below));
            assert!(in_table || bare.count() == 0, "{name}: {line}");
        }
    }
}

#[test]
fn without_answers_there_is_no_latency_and_none_reads_zero() {
    for name in ["unreachable", "nothing_sent"] {
        let page = pages().into_iter().find(|(page, ..)| page == name).expect("a run").2;
        let from = page.find("5 Latencies").expect("a section");
        let until = page.find("7 Throughput").expect("a section");
        let latencies = &page[from..until];
        assert!(!latencies.contains(" 0 ") && !latencies.contains(" 0\n"), "{latencies}");
        for symbol in ["TTFT", "TPOT", "ITL", "ICL", "E2EL"] {
            let named = |line: &&str| line.contains(symbol) && line.contains("n/a (");
            assert!(latencies.lines().any(|line| named(&line)), "{latencies}");
        }
        assert!(page.lines().nth(1).expect("a headline").contains("INVALID"));
    }
}

#[test]
fn the_headline_says_what_counts() {
    let healthy = plain(&runs::healthy().summary());
    // 975 of 1000 meet 300 ms; 25 a second are offered; 2.5 % wait 400 ms, and
    // 50 µs until they are sent. A TPOT is 242 ms over 20 tokens. The last of
    // the 21 000 tokens comes at 39.96 + 0.4 + 0.24 + 0.588 + 0.002 s.
    assert_eq!(
        healthy.lines().nth(1).expect("a headline").trim(),
        "VALID · goodput 24.4 req/s (97.5 % attained) · TTFT P99 400 ms · TPOT P50 12.1 ms · 510 output tok/s"
    );
    let single = plain(&runs::single().summary());
    let headline = single.lines().nth(1).expect("a headline");
    assert!(single.starts_with("goodput report · SIMULATED"), "{single}");
    assert!(headline.contains("TTFT P99 150 ms (n=1)"), "{headline}");
    let mut failing = runs::failing();
    failing.records.retain(|record| record.index < 95);
    let failing = plain(&failing.summary());
    let headline = failing.lines().nth(1).expect("a headline");
    assert!(headline.contains("of the 60 of 95 ok: TTFT P99"), "{headline}");
}

#[test]
fn percentiles_that_were_asked_for_are_columns_in_their_places() {
    let healthy = plain(&runs::healthy().summary());
    let header: Vec<&str> = line(&healthy, "unit").split_whitespace().collect();
    assert_eq!(
        header,
        ["unit", "n", "mean", "std", "min", "P50", "P75", "P90", "P95", "P99", "P99.9", "max"]
    );
    // 1000 samples leave ten above P99 and one above P99.9.
    let row: Vec<&str> = healthy
        .lines()
        .filter(|line| line.trim_start().starts_with("TTFT "))
        .nth(1)
        .expect("a row")
        .split_whitespace()
        .collect();
    assert_eq!((row[10], row[11]), ("400", "400*"), "{row:?}");
    assert!(healthy.contains("* fewer than ten samples lie beyond"), "{healthy}");
}

#[test]
fn a_time_out_bounds_the_tail_and_a_failure_takes_it_away() {
    let page = plain(&runs::failing().summary());
    let from = page.find("over all requests").expect("a table");
    let e2el = line(&page[from..], "E2EL");
    assert!(e2el.contains("never"), "{e2el}");
    // Without the refused ones the cut-off waits are the tail.
    let mut cut = runs::failing();
    cut.records.retain(|record| record.index < 60 || (75..85).contains(&record.index));
    let page = plain(&cut.summary());
    let e2el = line(&page[page.find("over all requests").expect("a table")..], "E2EL");
    assert!(e2el.contains("≥ 30\u{202f}000"), "{e2el}");
    assert!(page.contains("a time-out cut the wait off"), "{page}");
}

#[test]
fn rows_are_those_that_were_asked_for() {
    let summary = runs::healthy().summary();
    let page = render(&document(&summary, Some(&LATENCIES[..1]), Lang::En), Style::default());
    let from = page.find("5 Latencies").expect("a section");
    let until = page.find("7 Throughput").expect("a section");
    let shown =
        |symbol: &str| page[from..until].lines().any(|line| line.trim_start().starts_with(symbol));
    assert!(shown("TTFT") && !shown("E2EL") && !shown("ICL"));
}

#[test]
fn labels_align_whatever_the_width_of_their_letters() {
    let page = plain(&runs::healthy().summary());
    // A sentence above may break in front of a label too.
    let (_, page) = page.split_once("10 Goodput").expect("a section");
    // Each of the five letters takes two columns.
    let columns = |line: &str| {
        let at = line.find(|c: char| c.is_ascii_digit()).expect("a share");
        line[..at].chars().map(|c| if c >= '\u{2e80}' { 2 } else { 1 }).sum::<usize>()
    };
    assert_eq!(columns(line(page, "tenant=上海交易所")), columns(line(page, "tenant=interactive")));
}

#[test]
fn colours_are_only_there_when_asked_for() {
    let summary = runs::single().summary();
    let coloured = render(&document(&summary, None, Lang::En), Style { color: true });
    assert!(coloured.contains("\u{1b}[1;32mVALID\u{1b}[0m"));
    let plain = plain(&summary);
    let stripped =
        coloured.replace("\u{1b}[1;32m", "").replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
    assert_eq!(stripped, plain);
}
