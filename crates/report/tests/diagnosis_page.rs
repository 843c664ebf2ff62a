//! docs/diagnosis.md in the repository is what the rules say today.

use std::path::Path;
use std::{env, fs};

use insight::rule::RULES;
use report::diagnosis_page::page;

#[test]
fn the_repository_page_of_the_diagnosis_is_current() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnosis.md"));
    let page = page();
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(path, &page).expect("docs/diagnosis.md can be written");
    }
    let stored = fs::read_to_string(path).unwrap_or_default();
    // Not assert_eq: two copies of the page would bury the message.
    assert!(
        stored == page,
        "docs/diagnosis.md is not what the rules say; run \
         UPDATE=1 cargo test -p report --test diagnosis_page"
    );
}

#[test]
fn every_rule_is_one_row_of_as_many_cells_as_the_heading() {
    let page = page();
    let heading = page.lines().find(|line| line.starts_with("| Code")).expect("a heading");
    for rule in RULES {
        let start = format!("| {} | `{}` |", rule.code, rule.id);
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with(&start)).collect();
        assert_eq!(rows.len(), 1, "{}", rule.id);
        assert_eq!(rows[0].matches('|').count(), heading.matches('|').count(), "{}", rule.id);
    }
}
