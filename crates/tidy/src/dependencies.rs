//! Packages of other people: which, why, and how many in all.

use crate::layers;
use crate::manifest::Manifest;

/// Each package that a crate here names, and why it is not written here.
pub const ALLOWED: &[(&str, &str)] = &[
    ("arrow-array", "columns of rows: what Parquet is written from and read into"),
    ("arrow-schema", "types of those columns"),
    (
        "base64",
        "columns and scripts inside an HTML report, pictures inside a request, tokens of tiktoken's files",
    ),
    ("bytes", "the Parquet reader takes its file so"),
    ("clap", "parsing and help of the command line, fed from our table of flags"),
    ("comfy-table", "columns of the terminal report that fit wide characters"),
    ("csv", "quotes and line ends of RFC 4180"),
    ("fancy-regex", "the expressions by which tiktoken cuts texts look ahead"),
    ("flate2", "gzip and deflate that came unasked, and CRC-32 of row files"),
    ("hdrhistogram", "the client's lag for every event, in bounded memory"),
    ("http-body-util", "bodies of the web page's requests and answers, under a limit"),
    ("httparse", "heads of HTTP/1.1, under the timed path"),
    ("hyper", "HTTP/1.1 of the web page, which is not timed; a router for six paths is ours"),
    ("hyper-util", "hyper over tokio, and the end of connections under way"),
    ("indicatif", "the moving line while a run goes on"),
    ("insta", "snapshots of what people read (tests)"),
    ("jpeg-encoder", "pictures of prompts, as photographs are sent; pure code with no dependency"),
    ("memchr", "ends of lines in streams, at the speed of memory"),
    ("nix", "system calls without unsafe code of our own: clocks, timers, sockets, signals"),
    ("nvml-wrapper", "readings of NVIDIA accelerators, by the driver's library where there is one"),
    ("parquet", "files of rows that DuckDB, pandas and polars read"),
    ("png", "pictures of prompts without loss, by the encoder that most of Rust uses"),
    ("proptest", "properties over generated input (tests)"),
    ("rand_chacha", "a generator with a published algorithm, the same on every platform"),
    ("rand_distr", "gamma and exponential gaps"),
    ("ratatui", "the page of a watched server in a terminal: layout, tables, charts, raw mode"),
    ("rcgen", "certificates for tests of TLS (tests)"),
    ("ring", "SHA-256 of the page's import map for its policy, and of vendored files (tests)"),
    ("rustls", "TLS with one provider, chosen explicitly"),
    ("rustls-native-certs", "the certificate authorities that the system trusts"),
    ("serde", "forms of stored JSON"),
    ("serde_json", "JSON of every API and file"),
    ("thiserror", "the words of error enums beside their variants"),
    (
        "tokenizers",
        "tokenizer.json of every model, counted by the code that models are trained with",
    ),
    ("tokio", "tasks and readiness on each worker's thread"),
    ("tokio-rustls", "TLS over those"),
    ("toml", "--config files"),
    ("zune-jpeg", "a decoder that shares no code with the encoder (tests)"),
    ("zune-png", "the same for PNG (tests)"),
];

/// The most packages in `Cargo.lock`, our own crates among them. Each is built
/// on two cores and may break tomorrow; raise it only with the reason in the
/// commit. It was 200 before hdrhistogram and what that needs, and 202 before
/// csv with csv-core and ryu, and the web page: `web` itself, hyper and what that
/// needs; 214 before `tokens` and the `tokenizers` library, whose normalisers,
/// regular expressions and models have to be those that servers use; 262 before
/// the encoders of PNG and JPEG, and the decoders that hold them to account; 271
/// before `sim` and the bench of its speed; 273 before `insight` and the bench of its
/// judgement; 275 before `nvml-wrapper`, which loads a library and wraps its errors; 281 before
/// `ratatui` with crossterm, of whose forty a third are for other systems and not built.
pub const LOCKED: usize = 321;

/// Packages that are used and not in `allowed`, or the reverse.
pub fn direct(
    root: &Manifest,
    manifests: &[(String, Manifest)],
    allowed: &[(&str, &str)],
) -> Vec<String> {
    let mut problems = Vec::new();
    let ours = |name: &str| layers::ALLOWED.iter().any(|(known, _)| *known == name);
    let used = manifests.iter().flat_map(|(_, manifest)| manifest.all_dependencies());
    let used: Vec<&str> = used.filter(|name| !ours(name)).collect();
    for (folder, manifest) in manifests {
        for name in manifest.all_dependencies() {
            if !ours(name) && !allowed.iter().any(|(known, _)| *known == name) {
                problems.push(format!(
                    "crates/{folder}/Cargo.toml: {name} is not in tidy::dependencies: list it \
                     with the reason, or do without it"
                ));
            }
        }
    }
    for (name, reason) in allowed {
        if !used.contains(name) {
            problems.push(format!("no crate uses {name} ({reason}): take it off the list"));
        }
    }
    for name in root.workspace_dependencies() {
        if !ours(name) && !used.contains(&name) {
            problems.push(format!("Cargo.toml: no crate uses {name}: take it out"));
        }
    }
    problems
}

/// A `Cargo.lock` with more than `most` packages.
pub fn locked(lock: &str, most: usize) -> Vec<String> {
    let packages = lock.lines().filter(|line| line.trim() == "[[package]]").count();
    if packages == 0 {
        return vec!["Cargo.lock is missing or holds nothing: commit it".to_owned()];
    }
    if packages > most {
        return vec![format!(
            "Cargo.lock holds {packages} packages, and {most} is the most: drop a feature or a \
             dependency (cargo tree --duplicates), or raise the limit with the reason"
        )];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlisted_package_and_a_stale_entry_are_caught() {
        let root = Manifest::of("[workspace.dependencies]\nbytes = \"1\"\nold = \"1\"\n");
        let wire = ("wire".to_owned(), Manifest::of("[dependencies]\nmeasure = 1\nbytes = 1\n"));
        let crates = [wire];
        let found = direct(&root, &crates, &[("gone", "x")]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("bytes is not in tidy::dependencies"));
        assert!(found[1].contains("no crate uses gone"));
        assert!(found[2].contains("no crate uses old"));
        let root = Manifest::of("[workspace.dependencies]\nbytes = \"1\"\n");
        assert!(direct(&root, &crates, &[("bytes", "x")]).is_empty());
    }

    #[test]
    fn tests_need_a_reason_for_their_packages_too() {
        let crates =
            [("wire".to_owned(), Manifest::of("[dev-dependencies]\nproptest.workspace = true\n"))];
        assert_eq!(direct(&Manifest::default(), &crates, &[]).len(), 1);
    }

    #[test]
    fn every_reason_is_one() {
        for (name, reason) in ALLOWED {
            assert!(reason.len() > 10, "{name}");
        }
    }

    #[test]
    fn a_lock_file_has_a_limit() {
        let lock = "[[package]]\nname = \"a\"\n[[package]]\nname = \"b\"\n";
        assert!(locked(lock, 2).is_empty());
        assert_eq!(locked(lock, 1).len(), 1);
        assert_eq!(locked("", 1).len(), 1);
    }
}
