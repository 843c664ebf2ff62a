//! Documents: that they say nothing which the sources do not hold.

use crate::repository::{File, Repository};
use crate::source::Source;

/// The most lines of ARCHITECTURE.md: two pages are read, ten are not.
pub const ARCHITECTURE_LINES: usize = 120;

/// The first heading under the newest version in CHANGELOG.md.
const MOVES: &str = "### Changes that move numbers";

/// Names that a page must have because a source has them.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// The page.
    pub page: &'static str,
    /// The source.
    pub source: &'static str,
    /// Which of its texts.
    pub names: Names,
}

/// Which literals of a source are names that people look up.
#[derive(Clone, Copy, Debug)]
pub enum Names {
    /// Those without blanks between two marks.
    Between(&'static str, &'static str),
    /// Those before a colon: keys of JSON.
    Keys,
    /// The first one behind each mark.
    Behind(&'static str),
}

/// Every page that lists what a source holds.
pub const LISTED: &[Listed] = &[
    Listed {
        page: "docs/run-directory.md",
        source: "crates/wire/src/rows.rs",
        names: Names::Between("static COLUMNS", "\n];"),
    },
    Listed {
        page: "docs/outcomes.md",
        source: "crates/measure/src/outcome.rs",
        names: Names::Between("kinds! {\n", "impl Outcome"),
    },
    Listed {
        page: "docs/outcomes.md",
        source: "crates/measure/src/caveats.rs",
        names: Names::Behind("Caveat::new("),
    },
    Listed {
        page: "docs/outcomes.md",
        source: "crates/measure/src/caveats/cache.rs",
        names: Names::Behind("Caveat::new("),
    },
    Listed {
        page: "docs/outcomes.md",
        source: "crates/measure/src/record.rs",
        names: Names::Between("warnings! {\n", "\n}"),
    },
    Listed {
        page: "docs/outcomes.md",
        source: "crates/measure/src/validity.rs",
        names: Names::Behind("Check {"),
    },
    Listed {
        page: "docs/definitions.md",
        source: "crates/measure/src/definition.rs",
        names: Names::Between("pub const PRESETS", ";"),
    },
    Listed { page: "docs/json.md", source: "crates/wire/src/summary.rs", names: Names::Keys },
    Listed { page: "docs/json.md", source: "crates/wire/src/export.rs", names: Names::Keys },
];

/// Names of a source that its page does not have in backticks.
pub fn listed(repository: &Repository, table: &[Listed]) -> Vec<String> {
    let mut problems = Vec::new();
    for Listed { page, source, names } in table {
        let names = names_in(repository.text(source), *names);
        if names.is_empty() {
            problems.push(format!("{source} holds no names for {page}: mend tidy::documents"));
        }
        let text = repository.text(page);
        for name in names.iter().filter(|name| !text.contains(&format!("`{name}`"))) {
            problems.push(format!("{page}: `{name}` of {source} is missing: describe it"));
        }
    }
    problems
}

fn names_in(source: &str, names: Names) -> Vec<String> {
    let plain = |name: &&str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        !name.is_empty() && name.chars().all(fits)
    };
    let source = source.split("#[cfg(test)]").next().unwrap_or("");
    let found: Vec<&str> = match names {
        Names::Between(from, until) => {
            let rest = source.split_once(from).map_or("", |(_, rest)| rest);
            let table = rest.split_once(until).map_or("", |(table, _)| table);
            table.split('"').skip(1).step_by(2).filter(plain).collect()
        }
        Names::Keys => {
            let pieces: Vec<&str> = source.split('"').collect();
            let keys = pieces.windows(2).filter(|pair| pair[1].starts_with(": "));
            keys.map(|pair| pair[0]).filter(plain).collect()
        }
        Names::Behind(mark) => {
            let behind = source.split(mark).skip(1);
            behind.filter_map(|rest| rest.split('"').nth(1)).filter(plain).collect()
        }
    };
    let mut found: Vec<String> = found.into_iter().map(str::to_owned).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Exit codes in the source that the page does not have, and the reverse.
pub fn exit_codes(source: &str, page: &str) -> Vec<String> {
    let codes = source.lines().filter_map(|line| {
        let code = line.trim().strip_suffix(',')?.split_once(" = ")?.1;
        code.parse::<u8>().ok()
    });
    let codes: Vec<u8> = codes.collect();
    let rows = page.lines().filter_map(|line| {
        let cell = line.strip_prefix('|')?.split('|').next()?;
        cell.trim().trim_matches('`').parse::<u8>().ok()
    });
    let rows: Vec<u8> = rows.collect();
    let mut problems = Vec::new();
    if codes.is_empty() {
        problems.push("no exit codes were found in the source: mend tidy::documents".to_owned());
    }
    for code in codes.iter().filter(|code| !rows.contains(code)) {
        problems.push(format!("docs/exit-codes.md has no row for {code}: describe it"));
    }
    for row in rows.iter().filter(|row| !codes.contains(row)) {
        problems.push(format!("docs/exit-codes.md describes {row}, which nothing returns"));
    }
    problems
}

/// Invariants of ARCHITECTURE.md without a test, or with one that is not
/// there; and a page that is too long.
pub fn architecture(page: &str, sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    let lines = page.lines().count();
    if lines > ARCHITECTURE_LINES {
        problems.push(format!(
            "ARCHITECTURE.md has {lines} lines, and {ARCHITECTURE_LINES} is the most: cut what \
             the code says by itself"
        ));
    }
    let tests: Vec<String> = sources.iter().flat_map(Source::test_names).collect();
    let section = page.split("\n## Invariants").nth(1).unwrap_or("");
    let section = section.split("\n## ").next().unwrap_or("");
    let mut invariants: Vec<String> = Vec::new();
    for line in section.lines() {
        if line.starts_with(|c: char| c.is_ascii_digit()) {
            invariants.push(line.to_owned());
        } else if let Some(last) = invariants.last_mut() {
            last.push(' ');
            last.push_str(line.trim());
        }
    }
    if invariants.is_empty() {
        problems.push("ARCHITECTURE.md has no numbered list under ## Invariants".to_owned());
    }
    for invariant in invariants {
        let number = invariant.split('.').next().unwrap_or("");
        let named = invariant.split_once("*Held by").map_or("", |(_, rest)| rest);
        let named: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            problems.push(format!(
                "ARCHITECTURE.md: invariant {number} names no test: end it with *Held by `test`.*"
            ));
        }
        for name in named.iter().filter(|name| !tests.iter().any(|test| test == *name)) {
            problems.push(format!(
                "ARCHITECTURE.md: invariant {number} names the test `{name}`, which is not there"
            ));
        }
    }
    problems
}

/// Crates that ARCHITECTURE.md's map leaves out.
pub fn codemap<'a>(page: &str, crates: impl Iterator<Item = &'a str>) -> Vec<String> {
    crates
        .filter(|name| !page.lines().any(|line| line.starts_with(&format!("| `{name}` |"))))
        .map(|name| format!("ARCHITECTURE.md: the map has no row for `{name}`"))
        .collect()
}

/// Pages of measured results: the page and its file without their endings, what
/// writes them, the member that each result has once, the page's table of them.
pub const MEASURED: &[(&str, &str, &str, &str)] = &[
    ("docs/fidelity", "scripts/fidelity", "a_a", "## All figures"),
    ("docs/real-vllm", "scripts/real-vllm", "case", "## All figures"),
    ("docs/stages", "scripts/stages", "draw", "## All draws"),
];

/// A page of measured results that is older than its file, or holds other ones:
/// its date must be the file's, and each result has its line.
pub fn measured(
    (name, script, each, table): (&str, &str, &str, &str),
    page: &str,
    file: &str,
) -> Vec<String> {
    let member = |name: &str| {
        let after = file.split_once(&format!("\"{name}\": "))?.1;
        Some(after.split([',', '\n']).next().unwrap_or_default().trim_matches('"').to_owned())
    };
    let mut problems = Vec::new();
    match member("date") {
        Some(date) if page.contains(&format!("Run of {date}:")) => {}
        date => problems.push(format!(
            "{name}.md is not of the run of {date:?} in {name}.json: write it again with {script} \
             --page {name}.json"
        )),
    }
    let results = file.matches(&format!("\"{each}\":")).count();
    let section = page.split_once(table).map_or("", |(_, after)| after);
    let section = section.split_once("\n## ").map_or(section, |(before, _)| before);
    // Two lines are the head of the table.
    let lines = section.lines().filter(|line| line.starts_with('|')).count().saturating_sub(2);
    if results != lines {
        problems.push(format!("{name}.md shows {lines} results, and {name}.json holds {results}"));
    }
    problems
}

/// What is wrong with CHANGELOG.md: no section on top, another heading first,
/// or a metric whose definition was raised without a word.
pub fn changelog(page: &str, metrics: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let newest = page.split("\n## ").nth(1).unwrap_or("");
    if newest.is_empty() {
        problems.push("CHANGELOG.md has no version: begin with ## Unreleased".to_owned());
    }
    if newest.lines().find(|line| line.starts_with("### ")) != Some(MOVES) {
        problems.push(format!("CHANGELOG.md: the first heading of a version is {MOVES}"));
    }
    let moves: String = page
        .split(MOVES)
        .skip(1)
        .map(|section| section.split("\n##").next().unwrap_or(""))
        .collect();
    for (key, definition) in definitions(metrics) {
        let told = moves.lines().any(|line| {
            line.contains(&format!("`{key}`")) && line.contains(&format!("definition {definition}"))
        });
        if definition > 1 && !told {
            problems.push(format!(
                "CHANGELOG.md: say under {MOVES} what moved with `{key}` (definition {definition})"
            ));
        }
    }
    problems
}

/// Key and definition of each metric in the registry's source.
fn definitions(metrics: &str) -> Vec<(&str, u32)> {
    let mut found = Vec::new();
    let mut key = None;
    for line in metrics.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("key: \"") {
            key = rest.strip_suffix("\",");
        } else if let Some(rest) = line.strip_prefix("definition: ")
            && let (Some(key), Ok(number)) = (key, rest.trim_end_matches(',').parse())
        {
            found.push((key, number));
        }
    }
    found
}

/// Marks of unfinished work, and paths of one person's machine.
pub fn words(files: &[File]) -> Vec<String> {
    // Written in two halves, so that this file does not hold them.
    let unfinished = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
    let machine = [
        concat!("/wo", "rk/"),
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/Use", "rs/"),
        concat!("C:", "\\"),
    ];
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.path != "Cargo.lock") {
        for (line, text) in file.text.lines().enumerate() {
            let place = format!("{}:{}", file.path, line + 1);
            for word in unfinished.iter().filter(|word| crate::source::has_word(text, word)) {
                problems.push(format!("{place}: {word}: do it, or say what is missing"));
            }
            for path in machine.iter().filter(|path| text.contains(**path)) {
                problems
                    .push(format!("{place}: {path} is a path of one machine: make it relative"));
            }
        }
    }
    problems
}

/// Links in Markdown that lead to no file of the repository, or to no heading
/// of it.
pub fn links(repository: &Repository) -> Vec<String> {
    let mut problems = Vec::new();
    for page in repository.pages() {
        for (line, target) in targets(&page.text) {
            let foreign = target.contains("://") || target.starts_with("mailto:");
            if foreign {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let place = format!("{}:{line}", page.path);
            let Some(path) = resolved(&page.path, path) else {
                problems.push(format!("{place}: {target} leads out of the repository"));
                continue;
            };
            if !repository.paths.contains(&path) {
                problems.push(format!("{place}: {target} leads nowhere: mend the link"));
            } else if !anchor.is_empty()
                && path.ends_with(".md")
                && !anchors(repository.text(&path)).iter().any(|known| known == anchor)
            {
                problems.push(format!("{place}: {path} has no heading for #{anchor}"));
            }
        }
    }
    problems
}

/// Targets of `[words](target)` outside code, with their lines from 1.
fn targets(page: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (line, text) in page.lines().enumerate() {
        if text.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Behind an odd number of backticks is inline code.
        for (at, _) in text.match_indices("](") {
            let rest = &text[at + 2..];
            if text[..at].matches('`').count() % 2 == 0
                && let Some((target, _)) = rest.split_once(')')
            {
                found.push((line + 1, target));
            }
        }
    }
    found
}

/// The path of a link's target from the root.
fn resolved(page: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(page.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a page: of its headings, and those written as HTML.
fn anchors(page: &str) -> Vec<String> {
    let mut found: Vec<String> = page
        .split("<a id=\"")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
        .collect();
    for heading in page.lines().filter(|line| line.starts_with('#')) {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        found.push(kept.collect::<String>().replace(' ', "-"));
    }
    found
}

/// Names like `wire::rows` in our own pages that are in no source.
pub fn symbols(repository: &Repository) -> Vec<String> {
    let mut problems = Vec::new();
    for page in repository.pages() {
        for (line, text) in page.text.lines().enumerate() {
            for name in text.split('`').skip(1).step_by(2) {
                if let Some(missing) = missing_symbol(repository, name) {
                    problems.push(format!(
                        "{}:{}: `{name}`: there is no {missing}: mend the name",
                        page.path,
                        line + 1
                    ));
                }
            }
        }
    }
    problems
}

/// The part of `krate::module::item` that does not exist; `None` when all of
/// it does, and for text that is no such name.
fn missing_symbol<'a>(repository: &Repository, name: &'a str) -> Option<&'a str> {
    let mut parts = name.split("::");
    let krate = parts.next()?;
    let root = format!("crates/{krate}/src");
    let named = |c: char| c.is_alphanumeric() || c == '_';
    if !repository.paths.contains(&root) || !name.contains("::") {
        return None;
    }
    let mut directory = root.clone();
    let mut file = format!("{root}/lib.rs");
    if !repository.paths.contains(&file) {
        file = format!("{root}/main.rs");
    }
    for part in parts {
        if !part.chars().all(named) {
            return None;
        }
        let below = format!("{directory}/{part}");
        let places = [format!("{below}.rs"), format!("{below}/mod.rs")];
        match places.into_iter().find(|place| repository.paths.contains(place)) {
            Some(place) => (directory, file) = (below, place),
            None if crate::source::has_word(repository.text(&file), part) => {}
            None => return Some(part),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(files: &[(&str, &str)]) -> Repository {
        let mut repository = Repository::default();
        for (path, text) in files {
            repository.files.push(File { path: (*path).to_owned(), text: (*text).to_owned() });
            for (at, _) in path.match_indices('/') {
                repository.paths.insert(path[..at].to_owned());
            }
            repository.paths.insert((*path).to_owned());
        }
        repository
    }

    #[test]
    fn a_name_that_the_page_lacks_is_caught_whatever_its_form() {
        let files = [
            ("p.md", "`index` `ok`"),
            (
                "a.rs",
                "static COLUMNS: &[&str] = &[\n n!(\"index\"), m(\"late_us\", \"two words\"),\n];",
            ),
            ("b.rs", "json!({\"ok\": 1, \"lost\": f(\"other\")})\n#[cfg(test)]\n\"test\": 1"),
            ("c.rs", "Caveat::new(\n  \"ok\", \"x\")\nCaveat::new(\"gone\", y)"),
        ];
        let repository = repository(&files);
        let check =
            |source, names| listed(&repository, &[Listed { page: "p.md", source, names }]).len();
        assert_eq!(check("a.rs", Names::Between("static COLUMNS", "\n];")), 1);
        assert_eq!(check("b.rs", Names::Keys), 1);
        assert_eq!(check("c.rs", Names::Behind("Caveat::new(")), 1);
        assert_eq!(check("a.rs", Names::Between("no such mark", ";")), 1, "an empty list");
    }

    #[test]
    fn exit_codes_are_the_same_on_both_sides() {
        let source = "enum Exit {\n    Ok = 0,\n    Usage = 2,\n}\n";
        assert!(exit_codes(source, "| Code |\n| 0 | ok |\n| `2` | usage |\n").is_empty());
        assert_eq!(exit_codes(source, "| 0 | ok |\n| 9 | no |\n").len(), 2);
        assert_eq!(exit_codes("", "").len(), 1);
    }

    #[test]
    fn an_invariant_without_a_living_test_is_caught() {
        let sources =
            [Source::of("crates/a/tests/a.rs", "#[test]\nfn holds() {}\nfn helper() {}\n")];
        let check = |text: &str| architecture(&format!("# A\n\n## Invariants\n\n{text}"), &sources);
        assert!(check("1. It holds. *Held by\n   `holds`.*\n").is_empty());
        assert_eq!(check("1. It holds.\n").len(), 1);
        assert_eq!(check("1. It holds. *Held by `holds`, `gone`.*\n").len(), 1);
        assert_eq!(check("1. It holds. *Held by `helper`.*\n").len(), 1, "no test");
        assert_eq!(check("").len(), 1);
        let long = format!("1. It holds. *Held by `holds`.*\n{}", "\n".repeat(ARCHITECTURE_LINES));
        assert_eq!(check(&long).len(), 1);
    }

    #[test]
    fn a_crate_that_is_not_on_the_map_is_caught() {
        let page = "| `wire` | formats |\n";
        assert_eq!(codemap(page, ["wire", "drive"].into_iter()).len(), 1);
    }

    #[test]
    fn a_definition_that_moved_in_silence_is_caught() {
        let page = |moves: &str| {
            format!("# Changelog\n\n## Unreleased\n\n{MOVES}\n\n{moves}\n\n### Added\n\n- x\n")
        };
        let metrics = "key: \"ttft_ms\",\n definition: 2,\n key: \"tpot_ms\",\n definition: 1,\n";
        assert_eq!(changelog(&page(""), metrics).len(), 1);
        assert!(changelog(&page("- `ttft_ms`, definition 2: later"), metrics).is_empty());
        assert_eq!(changelog(&page("- `ttft_ms`, definition 1: first"), metrics).len(), 1);
        assert_eq!(changelog("# Changelog\n\n## Unreleased\n\n### Added\n", "").len(), 1);
        assert_eq!(changelog("# Changelog\n", "").len(), 2);
    }

    #[test]
    fn a_page_of_older_results_is_caught() {
        let file = "{\n \"date\": \"2026-01-02\",\n \"results\": [{\"a_a\": 0.1}]\n}\n";
        let page = |date: &str| {
            format!("Run of {date}: x\n\n## All figures\n\n| a |\n|---|\n| 1 |\n\n## Next\n| b |\n")
        };
        let measured = |page: &str, file: &str| measured(MEASURED[0], page, file).len();
        assert_eq!(measured(&page("2026-01-02"), file), 0);
        assert_eq!(measured(&page("2026-01-01"), file), 1);
        let more = file.replace("}]", "}, {\"a_a\": 0.2}]");
        assert_eq!(measured(&page("2026-01-02"), &more), 1);
    }

    #[test]
    fn unfinished_work_and_machine_paths_are_caught() {
        let file = |text: String| [File { path: "a.md".to_owned(), text }];
        assert_eq!(words(&file(format!("x {} y", concat!("TO", "DO")))).len(), 1);
        assert_eq!(words(&file(format!("see {}x", concat!("/ho", "me/")))).len(), 1);
        assert!(words(&file("a photodiode at https://host/homes/x".to_owned())).is_empty());
    }

    #[test]
    fn a_link_that_leads_nowhere_is_caught() {
        let pages = [
            (
                "README.md",
                "[a](docs/a.md) [b](docs/b.md) [c](https://x.y/z) `[d](e)`\n```\n[f](g)\n```\n",
            ),
            (
                "docs/a.md",
                "# One two\n<a id=\"x\"></a>\n[up](../README.md) [h](#one-two) [i](a.md#x) [j](#three)\n",
            ),
        ];
        let found = links(&repository(&pages));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("docs/b.md leads nowhere"));
        assert!(found[1].contains("no heading for #three"));
        assert_eq!(links(&repository(&[("a.md", "[x](../../y)")])).len(), 1);
    }

    #[test]
    fn a_symbol_that_is_in_no_source_is_caught() {
        let check = |text: &str| {
            let files = [
                ("crates/wire/src/lib.rs", "pub mod rows;\n"),
                ("crates/wire/src/rows.rs", "pub const VERSION: &str = \"1\";\n"),
                ("A.md", text),
            ];
            symbols(&repository(&files)).len()
        };
        assert_eq!(check("`wire::rows` `wire::rows::VERSION` `std::fs` `wire::rows::{a, b}`"), 0);
        assert_eq!(check("`wire::columns`"), 1);
        assert_eq!(check("`wire::rows::MISSING`"), 1);
    }
}
