//! The shape of the workspace and of each crate.

use crate::manifest::Manifest;
use crate::repository::File;

/// What is wrong with the root manifest.
pub fn root(manifest: &Manifest) -> Vec<String> {
    let mut problems = Vec::new();
    if manifest.has("package") {
        problems.push(
            "Cargo.toml: the root is a virtual manifest: move the package into crates/".to_owned(),
        );
    }
    let wanted = [
        ("workspace", "members", "[\"crates/*\", \"benches/*\"]"),
        ("workspace", "default-members", "[\"crates/goodput\"]"),
        ("workspace.lints.rust", "unsafe_code", "forbid"),
        ("workspace.lints.rust", "missing_docs", "warn"),
        ("workspace.lints.clippy", "too_many_lines", "warn"),
    ];
    for (section, key, value) in wanted {
        if manifest.value(section, key) != Some(value) {
            problems.push(format!("Cargo.toml: [{section}] {key} must be {value}"));
        }
    }
    problems
}

/// Crates whose manifest or first lines are not as those of the others.
pub fn crates(manifests: &[(String, Manifest)], files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for (folder, manifest) in manifests {
        let mut say = |words: &str| problems.push(format!("crates/{folder}: {words}"));
        if manifest.value("package", "name") != Some(folder) {
            say("name the package as its folder");
        }
        if manifest.value("lints", "workspace") != Some("true") {
            say("add [lints] workspace = true, so that the same lints hold everywhere");
        }
        for key in ["version", "edition", "rust-version", "license", "publish"] {
            if manifest.value("package", &format!("{key}.workspace")) != Some("true") {
                say(&format!("write {key}.workspace = true: the crates are one program"));
            }
        }
        let root = ["lib", "main"].map(|name| format!("crates/{folder}/src/{name}.rs"));
        let root = root.iter().find_map(|path| files.iter().find(|file| file.path == *path));
        // `//! stub` and the like say nothing.
        let says = root.and_then(|file| file.text.lines().next());
        if !says.is_some_and(|line| line.starts_with("//! ") && line.len() > 25) {
            say("begin lib.rs or main.rs with //! and a sentence that says what the crate is");
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"a\"\nversion.workspace = true\n\
        edition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n\
        publish.workspace = true\n[lints]\nworkspace = true\n";

    fn problems(manifest: &str, first_line: &str) -> Vec<String> {
        let path = "crates/a/src/lib.rs".to_owned();
        let file = File { path, text: format!("{first_line}\n\nfn f() {{}}\n") };
        crates(&[("a".to_owned(), Manifest::of(manifest))], &[file])
    }

    #[test]
    fn each_broken_habit_is_caught() {
        let header = "//! What is wanted of a first line.";
        assert!(problems(GOOD, header).is_empty());
        assert_eq!(problems(GOOD, "// not a header of the crate").len(), 1);
        assert_eq!(problems(GOOD, "//! stub").len(), 1);
        assert_eq!(problems(&GOOD.replace("\"a\"", "\"b\""), header).len(), 1);
        assert_eq!(problems(&GOOD.replace("[lints]", "[lint]"), header).len(), 1);
        assert_eq!(problems(&GOOD.replace("edition.workspace", "edition"), header).len(), 1);
    }

    #[test]
    fn the_root_is_virtual_and_strict() {
        assert_eq!(root(&Manifest::of("[package]\nname = \"a\"\n")).len(), 6);
        let good = "[workspace]\nmembers = [\"crates/*\", \"benches/*\"]\ndefault-members = [\"crates/goodput\"]\n\
            [workspace.lints.rust]\nunsafe_code = \"forbid\"\nmissing_docs = \"warn\"\n\
            [workspace.lints.clippy]\ntoo_many_lines = \"warn\"\n";
        assert!(root(&Manifest::of(good)).is_empty());
    }
}
