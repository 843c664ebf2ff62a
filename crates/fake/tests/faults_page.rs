//! The table of faults in docs/sim-serve.md is what `--fault` takes today.

use std::path::Path;
use std::{env, fs};

use fake::faults::{KINDS, Kind};
use measure::Outcome;

const BEGINS: &str = "<!-- faults: UPDATE=1 cargo test -p fake --test faults_page -->\n";
const ENDS: &str = "<!-- end of faults -->\n";

/// What a client should report, with the names of outcomes and warnings as code.
fn reported(kind: &Kind) -> String {
    let outcome = match kind.outcome {
        Outcome::Failed(failure) => format!("failed, `{}`", failure.name()),
        other => other.name().to_owned(),
    };
    let warnings = kind.warnings.names().into_iter().map(|name| format!(", warning `{name}`"));
    let shows = (!kind.shows.is_empty()).then(|| format!("; {}", kind.shows));
    [outcome].into_iter().chain(warnings).chain(shows).collect()
}

fn table() -> String {
    let rows = KINDS
        .iter()
        .map(|kind| format!("| `{}` | {} | {} |\n", kind.usage(), kind.does, reported(kind)));
    let head = "| Fault, with its keys and their defaults | What it does | What a client should report |\n|---|---|---|\n";
    [head.to_owned()].into_iter().chain(rows).collect()
}

#[test]
fn the_table_of_faults_is_current() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sim-serve.md"));
    let page = fs::read_to_string(path).expect("the page is there");
    let (before, rest) = page.split_once(BEGINS).expect("the table begins");
    let (stored, after) = rest.split_once(ENDS).expect("the table ends");
    let table = table();
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        let page = [before, BEGINS, &table, ENDS, after].concat();
        fs::write(path, page).expect("the page can be written");
        return;
    }
    // Not assert_eq: two copies of the table would bury the message.
    assert!(
        stored == table,
        "docs/sim-serve.md is not what --fault takes; run \
         UPDATE=1 cargo test -p fake --test faults_page"
    );
}
