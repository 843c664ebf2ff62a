//! Answers without tokens: a vector of each text, a score of each document.
//!
//! A text's vector counts its words in eight places, by a hash of each, and has
//! length 1: texts that share words are near each other. A document's score is
//! the share of words that it has in common with the query. Both are real
//! functions of the text, cheap, and the same in every run.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use workload::digest::Digest;

/// Numbers in a vector.
const PLACES: usize = 8;

/// The vector of a text.
pub(super) fn vector(text: &str) -> [f64; PLACES] {
    let mut counts = [0.0; PLACES];
    for word in words(text) {
        let hash = Digest::new().raw(word.as_bytes()).value();
        // The top bit decides the sign, so that unlike texts are far apart.
        let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
        counts[(hash % PLACES as u64) as usize] += sign;
    }
    let length = counts.iter().map(|count| count * count).sum::<f64>().sqrt();
    if length > 0.0 {
        counts.iter_mut().for_each(|count| *count /= length);
    } else {
        counts[0] = 1.0;
    }
    counts
}

/// The score of a document under a query, from 0 to 1: words in both, of the
/// words in either.
pub(super) fn score(query: &str, document: &str) -> f64 {
    let (query, document): (BTreeSet<_>, BTreeSet<_>) =
        (words(query).collect(), words(document).collect());
    let both = query.intersection(&document).count();
    let either = query.union(&document).count();
    both as f64 / either.max(1) as f64
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// The body of an answer with vectors.
pub(super) fn vectors_body(texts: &[String]) -> Value {
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            json!({"object": "embedding", "index": index, "embedding": vector(text)})
        })
        .collect();
    json!({"object": "list", "data": data})
}

/// The body of an answer with scores, the best first.
pub(super) fn scores_body(query: &str, documents: &[String], top_n: Option<u32>) -> Value {
    let mut scored: Vec<(usize, f64)> =
        documents.iter().map(|document| score(query, document)).enumerate().collect();
    scored.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    scored.truncate(top_n.map_or(usize::MAX, |most| most as usize));
    let results: Vec<Value> = scored
        .into_iter()
        .map(|(index, score)| {
            json!({
                "index": index,
                "document": {"text": documents[index]},
                "relevance_score": score,
            })
        })
        .collect();
    json!({"results": results})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_length_one_and_follow_the_words() {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let one = vector("The cat sat on the mat.");
        assert!((dot(&one, &one) - 1.0).abs() < 1e-12);
        assert_eq!(one, vector("the CAT sat, on the mat"));
        let near = dot(&one, &vector("The cat sat on the hat."));
        let far = dot(&one, &vector("Quarterly revenue grew by nine percent."));
        assert!(near > far, "{near} {far}");
        assert!((vector("").iter().sum::<f64>() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn documents_with_more_of_the_query_come_first() {
        let documents = ["a dog".to_owned(), "a grey cat".to_owned(), "rain".to_owned()];
        let body = scores_body("grey cat", &documents, Some(2));
        let places: Vec<_> =
            body["results"].as_array().unwrap().iter().map(|r| &r["index"]).collect();
        assert_eq!(places, [1, 0]);
        assert!((score("x y", "y x") - 1.0).abs() < f64::EPSILON);
        assert!(score("", "").abs() < f64::EPSILON);
    }
}
