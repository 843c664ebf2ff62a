//! This repository, held to the rules of `tidy`.

use std::path::Path;

use tidy::manifest::Manifest;
use tidy::repository::Repository;
use tidy::{dependencies, documents, effects, layers, names, size, sleeps, unwanted, workspace};

fn repository() -> Repository {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    Repository::read(root).expect("the repository can be read")
}

#[track_caller]
fn holds(problems: &[String]) {
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn crates_depend_downwards_only() {
    holds(&layers::check(&repository().manifests()));
}

#[test]
fn pure_crates_have_no_effects() {
    let repository = repository();
    holds(&effects::purity(&repository.sources(), &repository.manifests()));
}

#[test]
fn only_the_named_places_touch_the_world_or_compute_figures() {
    holds(&effects::rights(&repository().sources(), effects::RIGHTS));
}

#[test]
fn modules_have_names_that_say_something() {
    let repository = repository();
    let paths = repository.paths.iter().map(String::as_str);
    holds(&names::check(paths, &repository.sources()));
}

#[test]
fn functions_are_short() {
    holds(&size::functions(&repository().sources(), size::LONG_FUNCTIONS));
}

#[test]
fn lines_fit_the_page() {
    holds(&size::lines(&repository().sources(), size::WIDE_LINES));
}

#[test]
fn code_is_finished_and_safe() {
    holds(&unwanted::words(&repository().sources()));
}

#[test]
fn ignored_tests_have_a_reason() {
    holds(&unwanted::ignored_tests(&repository().sources(), unwanted::IGNORED));
}

#[test]
fn no_test_sleeps() {
    holds(&sleeps::check(&repository().sources(), sleeps::ALLOWED));
}

#[test]
fn the_workspace_is_virtual_and_strict() {
    holds(&workspace::root(&Manifest::of(repository().text("Cargo.toml"))));
}

#[test]
fn crates_are_made_alike() {
    let repository = repository();
    holds(&workspace::crates(&repository.manifests(), &repository.files));
}

#[test]
fn every_dependency_has_a_reason() {
    let repository = repository();
    let root = Manifest::of(repository.text("Cargo.toml"));
    holds(&dependencies::direct(&root, &repository.manifests(), dependencies::ALLOWED));
}

#[test]
fn packages_are_few() {
    holds(&dependencies::locked(repository().text("Cargo.lock"), dependencies::LOCKED));
}

#[test]
fn every_invariant_names_a_test_that_exists() {
    let repository = repository();
    holds(&documents::architecture(repository.text("ARCHITECTURE.md"), &repository.sources()));
}

#[test]
fn the_map_shows_every_crate() {
    let repository = repository();
    let manifests = repository.manifests();
    let crates = manifests.iter().map(|(folder, _)| folder.as_str());
    holds(&documents::codemap(repository.text("ARCHITECTURE.md"), crates));
}

#[test]
fn the_changelog_tells_what_moved_first() {
    let repository = repository();
    let metrics = repository.text("crates/measure/src/metric/table.rs");
    holds(&documents::changelog(repository.text("CHANGELOG.md"), metrics));
}

#[test]
fn pages_of_measured_results_are_of_their_files() {
    let repository = repository();
    for of @ (name, ..) in documents::MEASURED {
        let (page, file) = (format!("{name}.md"), format!("{name}.json"));
        holds(&documents::measured(*of, repository.text(&page), repository.text(&file)));
    }
}

#[test]
fn pages_list_what_the_sources_hold() {
    holds(&documents::listed(&repository(), documents::LISTED));
}

#[test]
fn the_page_of_exit_codes_has_all_of_them() {
    let repository = repository();
    let source = repository.text("crates/goodput/src/exit.rs");
    holds(&documents::exit_codes(source, repository.text("docs/exit-codes.md")));
}

#[test]
fn symbols_in_pages_exist() {
    holds(&documents::symbols(&repository()));
}

#[test]
fn links_lead_somewhere() {
    holds(&documents::links(&repository()));
}

#[test]
fn no_text_holds_unfinished_work_or_machine_paths() {
    holds(&documents::words(&repository().files));
}

#[test]
fn the_licence_is_there() {
    let repository = repository();
    let text = repository.text("LICENSE");
    let manifest = Manifest::of(repository.text("Cargo.toml"));
    let named = manifest.value("workspace.package", "license") == Some("Apache-2.0");
    assert!(named && text.contains("Apache License") && text.contains("Version 2.0"));
}
