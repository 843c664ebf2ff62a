//! METRICS.md in the repository is what the registry says today.

use std::path::Path;
use std::{env, fs};

use measure::metric::METRICS;
use measure::outcome::{FailureKind, NotSentKind};
use measure::record::Warnings;
use measure::undefined::Undefined;
use report::metrics_page::page;

#[test]
fn the_repository_page_is_current() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../METRICS.md"));
    let page = page();
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(path, &page).expect("METRICS.md can be written");
    }
    let stored = fs::read_to_string(path).unwrap_or_default();
    // Not assert_eq: two copies of the page would bury the message.
    assert!(
        stored == page,
        "METRICS.md is not what the registry says; run \
         UPDATE=1 cargo test -p report --test metrics_page"
    );
}

#[test]
fn every_metric_has_one_section_with_all_its_fields_and_a_link_to_it() {
    let page = page();
    for metric in METRICS {
        let anchor = format!("<a id=\"{}\"></a>", metric.key);
        assert_eq!(page.matches(&anchor).count(), 1, "{}", metric.key);
        let link = format!("[{}](#{})", metric.symbol, metric.key);
        assert!(page.contains(&link), "{link}");
        let from = page.find(&anchor).expect("counted above");
        let section = &page[from..];
        let section = &section[..section[1..].find("<a id=").map_or(section.len(), |end| end + 1)];
        for field in [
            metric.symbol,
            metric.name.en,
            metric.name.zh,
            metric.text.en,
            metric.text.zh,
            metric.unit.symbol(),
            metric.formula,
            metric.population,
            metric.undefined_when,
            metric.pitfalls.en,
            metric.pitfalls.zh,
            metric.source,
            metric.peers,
        ] {
            assert!(section.contains(field), "{}: {field}", metric.key);
        }
    }
}

#[test]
fn every_kind_warning_and_reason_is_listed() {
    let page = page();
    let names = FailureKind::ALL
        .iter()
        .map(|kind| kind.name())
        .chain(NotSentKind::ALL.iter().map(|kind| kind.name()))
        .chain(Warnings::NAMES.iter().map(|(_, name)| *name))
        .chain(Undefined::ALL.iter().map(|reason| reason.name()));
    for name in names {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn links_inside_the_page_lead_somewhere() {
    let page = page();
    let headings: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|heading| heading.to_lowercase().replace(' ', "-"))
        .collect();
    for link in page.split("](#").skip(1) {
        let target = link.split(')').next().unwrap_or_default();
        let known = page.contains(&format!("<a id=\"{target}\"></a>"))
            || headings.iter().any(|heading| heading == target);
        assert!(known, "#{target}");
    }
}
