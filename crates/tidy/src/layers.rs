//! Which crate may depend on which.

use crate::manifest::Manifest;

/// Each crate and the crates of this workspace that it may be built on. Those
/// that are not written yet have their place already.
pub const ALLOWED: &[(&str, &[&str])] = &[
    ("measure", &[]),
    ("workload", &["measure"]),
    ("tokens", &["workload"]),
    ("wire", &["measure", "workload"]),
    ("sim", &["measure", "workload"]),
    ("insight", &["measure", "workload"]),
    ("report", &["measure", "insight"]),
    ("store", &["measure", "workload", "wire"]),
    ("drive", &["measure", "workload", "wire", "store"]),
    ("fake", &["measure", "workload", "wire", "sim"]),
    ("web", &["measure", "workload", "wire", "sim", "insight", "report", "store"]),
    ("fleet", &["measure", "workload", "wire", "store", "drive"]),
    (
        "goodput",
        &[
            "measure", "workload", "tokens", "wire", "sim", "insight", "report", "store", "drive",
            "fake", "web", "fleet",
        ],
    ),
    ("tidy", &[]),
];

/// Crates whose manifests reach up in the list, or that are not in it.
pub fn check(manifests: &[(String, Manifest)]) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, manifest) in manifests {
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| known == name) else {
            problems.push(format!(
                "crates/{name} has no place: give it one in tidy::layers and in ARCHITECTURE.md"
            ));
            continue;
        };
        for dependency in manifest.dependencies() {
            let ours = ALLOWED.iter().any(|(known, _)| *known == dependency);
            if ours && !allowed.contains(&dependency) {
                problems.push(format!(
                    "{name} must not depend on {dependency}: move what it needs down, or pass it \
                     in as an argument from the binary"
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(name: &str, manifest: &str) -> Vec<String> {
        check(&[(name.to_owned(), Manifest::of(manifest))])
    }

    #[test]
    fn a_crate_that_reaches_up_is_named() {
        let found = problems("wire", "[dependencies]\nmeasure = 1\ndrive.workspace = true\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("wire must not depend on drive"), "{found:?}");
        assert_eq!(problems("fake", "[dependencies]\ndrive = 1\n").len(), 1);
        assert_eq!(problems("drive", "[dependencies]\nfake = 1\n").len(), 1);
        assert_eq!(problems("measure", "[dependencies]\nmeasure = 1\n").len(), 1);
    }

    #[test]
    fn tests_may_use_what_they_like() {
        assert!(problems("drive", "[dev-dependencies]\nfake.workspace = true\n").is_empty());
        assert!(problems("goodput", "[dependencies]\nfake = 1\nclap = 1\n").is_empty());
    }

    #[test]
    fn an_unknown_crate_needs_a_place() {
        assert!(problems("extra", "")[0].contains("has no place"));
    }

    #[test]
    fn the_list_goes_from_below_to_above() {
        for (position, (name, allowed)) in ALLOWED.iter().enumerate() {
            for below in *allowed {
                let place = ALLOWED.iter().position(|(known, _)| known == below);
                assert!(place.is_some_and(|place| place < position), "{name} → {below}");
            }
        }
        let of = |wanted: &str| ALLOWED.iter().find(|(name, _)| *name == wanted).unwrap().1;
        assert!(!of("drive").contains(&"fake") && !of("fake").contains(&"drive"));
    }
}
