//! Who may touch the world: which crates are pure, who opens files, connects,
//! listens and reads clocks, and where figures are computed.

use crate::manifest::Manifest;
use crate::source::{Source, has_word};

/// Crates without any effect: values in, values out.
pub const PURE: &[&str] = &["measure", "workload", "tokens", "wire", "sim", "insight", "report"];

/// What a pure crate must not name.
pub const EFFECTS: &[&str] = &[
    "std::net",
    "std::fs",
    "std::thread",
    "std::env::var",
    "std::env::var_os",
    "std::process",
    "thread::spawn",
    "thread::sleep",
    "Instant::now",
    "std::time::Instant",
    "SystemTime",
    "async fn",
    ".await",
    "println!",
    "eprintln!",
    "print!",
    "eprint!",
    "thread_rng",
    "rand::rng",
    "from_os_rng",
];

/// Packages that exist to have effects: no pure crate is built on one.
pub const EFFECTFUL_PACKAGES: &[&str] = &[
    "tokio",
    "tokio-rustls",
    "nix",
    "rustls",
    "rustls-native-certs",
    "hyper",
    "hyper-util",
    "h2",
    "reqwest",
    "axum",
    "async-nats",
    "object_store",
    "ratatui",
    "indicatif",
    "mio",
    "socket2",
];

/// One thing that only some places may do.
#[derive(Clone, Copy, Debug)]
pub struct Right {
    /// How it looks in a source.
    pub words: &'static [&'static str],
    /// Crates (`store`) and files (`crates/drive/src/clock.rs`) that may.
    pub places: &'static [&'static str],
    /// The rule in words, with what to do instead.
    pub rule: &'static str,
}

/// Every right and who has it.
pub const RIGHTS: &[Right] = &[
    Right {
        words: &[
            "std::fs",
            "tokio::fs",
            "File::open",
            "File::create",
            "File::options",
            "OpenOptions",
        ],
        places: &["store", "goodput", "tidy"],
        rule: "only store and the binary open files: take bytes as an argument",
    },
    Right {
        words: &["TcpListener", "UnixListener", "UnixDatagram", "UdpSocket"],
        places: &["fake", "web"],
        rule: "only fake and web listen",
    },
    Right {
        words: &["TcpStream::connect", "TcpStream::connect_timeout", "UnixStream::connect"],
        places: &["drive", "fleet"],
        rule: "only drive connects: use drive::fetch for requests that are not timed",
    },
    Right {
        words: &["SystemTime::now", "CLOCK_REALTIME"],
        // Kernel receive stamps are on the wall clock: two places translate
        // them, and fill in the `created` field of answers.
        places: &[
            "crates/goodput/src/host.rs",
            "crates/drive/src/clock.rs",
            "crates/fake/src/clock.rs",
        ],
        rule: "wall time is read once a run, by the binary: take it as an argument",
    },
    Right {
        words: &["clock_gettime", "Instant::now", "std::time::Instant"],
        // The last two hand deadlines to the runtime's timer, which knows only
        // its own instants; no stamp comes from there.
        places: &[
            "crates/drive/src/clock.rs",
            "crates/fake/src/clock.rs",
            "crates/drive/src/exchange.rs",
            "crates/drive/src/fetch.rs",
        ],
        rule: "there is one monotonic clock: use drive::Clock, or take the time as an argument",
    },
    Right {
        words: &[".stamps."],
        // They carry stamps from the wire to the file and out again; the binary
        // tells the writer of parts what time it is.
        places: &[
            "measure",
            "sim",
            "drive",
            "crates/goodput/src/command/session.rs",
            "crates/goodput/src/command/simulate.rs",
            "crates/wire/src/rows.rs",
            "crates/wire/src/export.rs",
            "crates/wire/src/foreign/vllm.rs",
        ],
        rule: "a latency is computed in measure and nowhere else: add it to measure::request",
    },
    Right {
        words: &[
            "fn quantile",
            "fn percentile",
            "fn median",
            "fn interpolate",
            "fn p50",
            "fn p90",
            "fn p99",
        ],
        places: &["crates/measure/src/quantile.rs"],
        rule: "a quantile is computed in measure::quantile and nowhere else",
    },
];

/// Effects in the sources and manifests of pure crates.
pub fn purity(sources: &[Source], manifests: &[(String, Manifest)]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| PURE.contains(&source.krate())) {
        for (line, word) in found(source, EFFECTS) {
            problems.push(format!(
                "{}:{line}: `{word}` in a pure crate: let the caller do it and pass the result in",
                source.path
            ));
        }
    }
    for (name, manifest) in manifests.iter().filter(|(name, _)| PURE.contains(&name.as_str())) {
        for package in manifest.dependencies() {
            if EFFECTFUL_PACKAGES.contains(&package) {
                problems.push(format!(
                    "crates/{name}/Cargo.toml: {package} in a pure crate: what needs it belongs \
                     in drive, fake, store or the binary"
                ));
            }
        }
    }
    problems
}

/// Places that do what they have no right to.
pub fn rights(sources: &[Source], rights: &[Right]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        for right in rights {
            let allowed = |place: &&str| **place == *source.krate() || **place == source.path;
            if right.places.iter().any(allowed) {
                continue;
            }
            for (line, word) in found(source, right.words) {
                problems.push(format!("{}:{line}: `{word}`: {}", source.path, right.rule));
            }
        }
    }
    problems
}

/// Lines outside tests where one of `words` stands, written out in full or
/// brought in by a `use`.
fn found<'a>(source: &Source, words: &[&'a str]) -> Vec<(usize, &'a str)> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    let imports = source.imports();
    for word in words {
        let lines = source.shipped().filter(|(_, code)| has_word(code, word));
        found.extend(lines.map(|(line, _)| (line, *word)));
        let imports = imports.iter().filter(|(_, path)| has_word(path, word));
        found.extend(imports.map(|(line, _)| (*line, *word)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::of(path, text)
    }

    #[test]
    fn every_effect_in_a_pure_crate_is_caught() {
        for word in EFFECTS {
            let text = format!("fn f() {{\n    let x = {word}();\n}}\n");
            let found = purity(&[source("crates/wire/src/a.rs", &text)], &[]);
            assert!(!found.is_empty(), "{word}");
            assert!(found[0].starts_with("crates/wire/src/a.rs:2: "), "{found:?}");
        }
        let hidden = "use std::{\n    collections::BTreeMap,\n    fs,\n};\n";
        assert_eq!(purity(&[source("crates/measure/src/a.rs", hidden)], &[]).len(), 1);
    }

    #[test]
    fn tests_comments_and_texts_of_pure_crates_are_free() {
        let text = "/// Reads no SystemTime.\nconst HINT: &str = \"std::fs\";\n\
                    const E: &str = env!(\"X\");\n#[cfg(test)]\nmod tests { use std::fs; }\n";
        assert!(purity(&[source("crates/report/src/a.rs", text)], &[]).is_empty());
        assert!(purity(&[source("crates/wire/tests/a.rs", "use std::fs;\n")], &[]).is_empty());
        assert!(purity(&[source("crates/drive/src/a.rs", "use std::net::X;\n")], &[]).is_empty());
    }

    #[test]
    fn an_effectful_package_under_a_pure_crate_is_caught() {
        let manifest = |text: &str| [("wire".to_owned(), Manifest::of(text))];
        assert_eq!(purity(&[], &manifest("[dependencies]\ntokio = \"1\"\n")).len(), 1);
        assert!(purity(&[], &manifest("[dev-dependencies]\ntokio = \"1\"\n")).is_empty());
    }

    #[test]
    fn every_right_is_denied_to_a_stranger_and_left_to_its_owner() {
        for right in RIGHTS {
            for word in right.words {
                let text = format!(
                    "fn f() {{ a{}x }}\n",
                    if word.starts_with('.') { (*word).to_owned() } else { format!("; {word} ") }
                );
                let stranger = [source("crates/report/src/a.rs", &text)];
                assert_eq!(rights(&stranger, &[*right]).len(), 1, "{word}: {text}");
                for place in right.places {
                    let path = match place.ends_with(".rs") {
                        true => (*place).to_owned(),
                        false => format!("crates/{place}/src/a.rs"),
                    };
                    assert!(rights(&[source(&path, &text)], &[*right]).is_empty(), "{path}");
                }
            }
        }
    }

    #[test]
    fn a_name_that_ends_like_a_right_is_none() {
        let text = "fn f() { TruthFile::default(); percentile_name(1.0); }\nfn percentiles() {}\n";
        assert!(rights(&[source("crates/wire/src/a.rs", text)], RIGHTS).is_empty());
    }
}
