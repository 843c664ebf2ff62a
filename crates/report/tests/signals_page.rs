//! docs/signals.md in the repository is what the tables of signals say today.

use std::path::Path;
use std::{env, fs};

use measure::signal::Signal;
use report::lang::Lang;
use report::signals::{explain, page, words};
use wire::signals::tellers;

#[test]
fn the_repository_page_of_signals_is_current() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/signals.md"));
    let page = page(&tellers());
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(path, &page).expect("docs/signals.md can be written");
    }
    let stored = fs::read_to_string(path).unwrap_or_default();
    // Not assert_eq: two copies of the page would bury the message.
    assert!(
        stored == page,
        "docs/signals.md is not what the tables say; run \
         UPDATE=1 cargo test -p report --test signals_page"
    );
}

#[test]
fn every_signal_and_every_engine_is_explained_in_both_languages() {
    let tellers = tellers();
    for word in words(&tellers) {
        let english = explain(word, Lang::En, &tellers).expect("it is a word");
        let chinese = explain(word, Lang::Zh, &tellers).expect("it is a word");
        assert!(english.len() > 60 && english != chinese, "{word}: {english}");
        assert!(chinese.chars().any(|c| ('\u{4e00}'..'\u{9fff}').contains(&c)), "{chinese}");
    }
    assert_eq!(explain("no_such_signal", Lang::En, &tellers), None);
}

#[test]
fn a_signal_names_every_engine_that_tells_it() {
    let tellers = tellers();
    let told = explain("Queue depth", Lang::En, &tellers).expect("however it is typed");
    for family in ["vllm:num_requests_waiting", "sglang:num_queue_reqs", "tgi_queue_size"] {
        assert!(told.contains(family), "{told}");
    }
    for signal in Signal::ALL {
        let tells = tellers.iter().any(|teller| teller.telling.iter().any(|t| t.signal == *signal));
        assert!(tells, "{signal:?} is told by nobody");
    }
}
