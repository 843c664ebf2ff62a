//! The files that go into pages: vendored ones as they were published, and all
//! of them without an address that a page would fetch from.

use std::path::{Path, PathBuf};

use report::html::{SCRIPTS, STYLES};

fn vendor() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/vendor")
}

fn sha256(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn vendored_files_are_as_published() {
    let list = std::fs::read_to_string(vendor().join("CHECKSUMS")).expect("the list is there");
    let mut listed: Vec<&str> = Vec::new();
    for line in list.lines() {
        let (sum, name) = line.split_once("  ").expect("sum and name");
        assert_eq!(sha256(&vendor().join(name)), sum, "{name} was changed");
        listed.push(name);
    }
    for entry in std::fs::read_dir(vendor()).expect("the folder is there") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_str().expect("a plain name");
        let own = ["CHECKSUMS", "README.md"].contains(&name);
        assert!(own || listed.contains(&name), "{name} is not in CHECKSUMS");
    }
    for licence in ["LICENSE.preact", "LICENSE.htm", "LICENSE.uplot"] {
        assert!(listed.contains(&licence), "{licence}");
    }
}

#[test]
fn no_script_and_no_style_names_an_address_to_fetch() {
    let texts = SCRIPTS.iter().map(|script| (script.file, script.text));
    for (name, text) in texts.chain(STYLES.iter().map(|text| ("style", *text))) {
        for mark in
            ["fetch(\"http", "fetch('http", "url(http", "@import", "src=\"http", "import(\"http"]
        {
            assert!(!text.contains(mark), "{name} holds {mark}");
        }
    }
}

#[test]
fn every_script_is_named_by_those_that_import_it() {
    for script in SCRIPTS.iter().filter(|script| script.name.starts_with("goodput/")) {
        for part in script.text.split("from '").skip(1) {
            let name = part.split('\'').next().unwrap_or_default();
            assert!(SCRIPTS.iter().any(|known| known.name == name), "{}: {name}", script.file);
        }
    }
}
