//! docs/hardware.md in the repository is what the catalogues say today.

use std::path::Path;
use std::{env, fs};

use measure::hardware::{accelerators, models};
use report::hardware_page::page;

#[test]
fn the_repository_page_of_hardware_is_current() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hardware.md"));
    let page = page();
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(path, &page).expect("docs/hardware.md can be written");
    }
    let stored = fs::read_to_string(path).unwrap_or_default();
    // Not assert_eq: two copies of the page would bury the message.
    assert!(
        stored == page,
        "docs/hardware.md is not what the catalogues say; run \
         UPDATE=1 cargo test -p report --test hardware_page"
    );
}

#[test]
fn every_row_is_one_line_with_its_source() {
    let page = page();
    let ids = models().iter().map(|model| (model.id.as_ref(), model.source.as_ref()));
    let chips = accelerators().iter().map(|one| (one.id, one.source));
    for (id, source) in ids.chain(chips) {
        let rows: Vec<&str> =
            page.lines().filter(|line| line.starts_with(&format!("| `{id}`"))).collect();
        assert_eq!(rows.len(), 1, "{id}");
        assert!(rows[0].ends_with(&format!("| {source} |")), "{id}");
    }
}

#[test]
fn figures_of_a_known_row_are_written_as_makers_write_them() {
    let page = page();
    let row = |id: &str| {
        let start = format!("| `{id}`");
        page.lines().find(|line| line.starts_with(&start)).expect("it has a row").to_owned()
    };
    let llama = "| 8.03 | 8.03 | 7.50 | 32 | 4096 | 32 | 8 of 128 | full | dense, 14336 | 131072 | 131072 |";
    assert!(row("llama-3.1-8b").contains(llama), "{}", row("llama-3.1-8b"));
    let deepseek = "| latent | rank 512 + 64 | 8 of 256 experts, 2048; 1 shared; dense layers: 3 | 163840 | 70272 |";
    assert!(row("deepseek-v3").contains(deepseek), "{}", row("deepseek-v3"));
    let h100 = "| 80 | 3.35 | 67 | 989 | 1979 | 1979 |  | 700 | 450 | NVLink 4 | 295 |";
    assert!(row("h100-sxm").contains(h100), "{}", row("h100-sxm"));
    assert!(row("gh200-96gb").starts_with("| `gh200-96gb` † |"), "{}", row("gh200-96gb"));
}
