//! The table of settings in docs/sim-serve.md is what `--set` takes today.

use std::path::Path;
use std::{env, fs};

use sim::{SETTINGS, Settings};

const BEGINS: &str = "<!-- settings: UPDATE=1 cargo test -p sim --test settings_page -->\n";
const ENDS: &str = "<!-- end of settings -->\n";

fn table() -> String {
    let usual = Settings::default();
    let rows = SETTINGS.iter().map(|setting| {
        format!("| `{}` | {} | {} |\n", setting.name, setting.value(&usual), setting.text)
    });
    let head = "| Name | Default | Meaning |\n|---|---|---|\n";
    [head.to_owned()].into_iter().chain(rows).collect()
}

#[test]
fn the_table_of_settings_is_current() {
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
        "docs/sim-serve.md is not what --set takes; run \
         UPDATE=1 cargo test -p sim --test settings_page"
    );
}
