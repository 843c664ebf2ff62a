//! Makes the embedded vocabulary: `UPDATE=1 cargo test -p tokens --release
//! the_embedded_vocabulary_reads` writes it anew from the repository's documents
//! and from synthetic prose.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use workload::Lengths;
use workload::prompt::{CacheRegime, PromptSource};

use crate::written::{schedule, texts};

/// Learns pairs by frequency: the most frequent pair in the pieces of a text
/// is joined, again and again; of equally frequent ones the smallest.
pub(crate) fn train(text: &str, pairs: usize) -> Vec<(u16, u16)> {
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    for piece in tokens::pieces(text) {
        *counted.entry(piece).or_default() += 1;
    }
    let mut words: Vec<(Vec<u16>, u64)> = counted
        .iter()
        .map(|(piece, count)| (piece.bytes().map(u16::from).collect(), *count))
        .collect();
    let mut counts: HashMap<(u16, u16), u64> = HashMap::new();
    let mut places: HashMap<(u16, u16), HashSet<usize>> = HashMap::new();
    for (place, (word, count)) in words.iter().enumerate() {
        for pair in word.windows(2).map(|pair| (pair[0], pair[1])) {
            *counts.entry(pair).or_default() += count;
            places.entry(pair).or_default().insert(place);
        }
    }
    let mut made = Vec::new();
    while made.len() < pairs {
        let best = counts.iter().max_by_key(|(pair, count)| (**count, Reverse(**pair)));
        let Some((&pair, _)) = best.filter(|(_, count)| **count > 1) else { break };
        let id = 256 + made.len() as u16;
        made.push(pair);
        let touched: BTreeSet<usize> =
            places.remove(&pair).unwrap_or_default().into_iter().collect();
        for place in touched {
            let (word, count) = &mut words[place];
            for old in word.windows(2) {
                let left = counts.get_mut(&(old[0], old[1])).unwrap();
                *left -= *count;
            }
            *word = joined(word, pair, id);
            for new in word.windows(2).map(|new| (new[0], new[1])) {
                *counts.entry(new).or_default() += *count;
                places.entry(new).or_default().insert(place);
            }
        }
        counts.retain(|_, count| *count > 0);
    }
    made
}

fn joined(word: &[u16], pair: (u16, u16), id: u16) -> Vec<u16> {
    let mut joined = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, after @ ..] = rest {
        match after {
            [second, beyond @ ..] if (*first, *second) == pair => {
                joined.push(id);
                rest = beyond;
            }
            _ => {
                joined.push(*first);
                rest = after;
            }
        }
    }
    joined
}

/// What the vocabulary is learned from: the documents, and prose of the words
/// that prompts are written from, so that most of them are one token.
pub(crate) fn corpus() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files =
        vec![root.join("METRICS.md"), root.join("README.md"), root.join("README.zh-CN.md")];
    let docs = std::fs::read_dir(root.join("docs")).unwrap();
    files.extend(docs.map(|entry| entry.unwrap().path()));
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    let documents = files.iter().map(|path| std::fs::read_to_string(path).unwrap());
    documents.chain([prose()]).collect::<Vec<_>>().join("\n")
}

fn prose() -> String {
    let prompts = PromptSource::Synthetic { input: Lengths::fixed(1000).unwrap() };
    texts(&schedule(prompts, 64, 1, CacheRegime::AsIs), 0).join("\n")
}

#[test]
fn the_most_frequent_pair_is_joined_first() {
    // Of " ab", which comes three times, "ab" comes in " abc" too.
    let pairs = train(" ab ab ab abc", 3);
    let (a, b) = (u16::from(b'a'), u16::from(b'b'));
    assert_eq!(pairs, [(u16::from(b' '), a), (256, b)]);
    // Two more ends: nothing that comes once is learned.
    assert_eq!(train("abab", 9), [(a, b)]);
}
