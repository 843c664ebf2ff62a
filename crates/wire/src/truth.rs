//! Ground truth of a server with a known clock: when each request was complete
//! there and when each token was written. JSON lines, one a request:
//! `{"id", "arrival_ns", "token_ns": [offsets from arrival]}` on
//! CLOCK_MONOTONIC, so that a load generator on the same machine can be held
//! against it.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a server did for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// The request's `x-request-id`, or the server's own name for it when the
    /// client sent none.
    pub id: String,
    /// CLOCK_MONOTONIC nanoseconds when the request was complete at the server.
    pub arrival_ns: u64,
    /// Nanoseconds from `arrival_ns` to just before the write that carried the
    /// token; one entry a token, so tokens of one chunk share a value.
    pub token_ns: Vec<u64>,
    /// Where the server meant each token to be, as `token_ns`. The difference
    /// is the server's own error, not the client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_token_ns: Option<Vec<u64>>,
    /// Tokens that the kernel did not take at once because the client read too
    /// slowly: their instants are lower bounds, not truth.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_tokens: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A decoded truth file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TruthFile {
    /// One entry a line, in the order of the file. An id may occur twice: a
    /// client may have sent a request again.
    pub truths: Vec<Truth>,
    /// Number (from 1) of a last line that was cut off, as when the writer was
    /// killed. That line is not in `truths`.
    pub cut_line: Option<usize>,
}

/// Why a truth file was refused. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TruthError {
    /// The line is not an object of the right shape.
    #[error("truth line {line}: {message}; each line is {{\"id\", \"arrival_ns\", \"token_ns\"}}")]
    Shape {
        /// Number of the line.
        line: usize,
        /// What the parser found.
        message: String,
    },
    /// A stream's tokens are written in order, so their instants do not fall.
    #[error("truth line {line}: token_ns falls at token {token} (counted from 0)")]
    Falls {
        /// Number of the line.
        line: usize,
        /// Index of the token that is earlier than the one before it.
        token: usize,
    },
    /// A plan must name one instant for each token.
    #[error("truth line {line}: {planned} planned_token_ns for {tokens} token_ns")]
    PlanLength {
        /// Number of the line.
        line: usize,
        /// Entries in `token_ns`.
        tokens: usize,
        /// Entries in `planned_token_ns`.
        planned: usize,
    },
}

/// One line of the log, with its line feed.
pub fn encode_line(truth: &Truth) -> Vec<u8> {
    // Strings and integers cannot fail to serialise into memory.
    let mut line = serde_json::to_vec(truth).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reads a whole log. A cut last line is reported, not refused; empty lines are
/// skipped; fields that are not known are ignored.
///
/// # Errors
/// The first line that is not a truth line.
pub fn decode(bytes: &[u8]) -> Result<TruthFile, TruthError> {
    let mut file = TruthFile::default();
    for (index, text) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let line = index + 1;
        if text.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Truth>(text) {
            Ok(truth) => {
                check(&truth, line)?;
                file.truths.push(truth);
            }
            // Only a line without its end can have been cut: a whole line that
            // stops early is damage.
            Err(error) if error.is_eof() && !text.ends_with(b"\n") => file.cut_line = Some(line),
            Err(error) => return Err(TruthError::Shape { line, message: error.to_string() }),
        }
    }
    Ok(file)
}

fn check(truth: &Truth, line: usize) -> Result<(), TruthError> {
    let falls = truth.token_ns.windows(2).position(|pair| pair[1] < pair[0]);
    if let Some(before) = falls {
        return Err(TruthError::Falls { line, token: before + 1 });
    }
    match &truth.planned_token_ns {
        Some(planned) if planned.len() != truth.token_ns.len() => Err(TruthError::PlanLength {
            line,
            tokens: truth.token_ns.len(),
            planned: planned.len(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn line_has_exactly_the_documented_keys() {
        let truth =
            Truth { id: "r-0".into(), arrival_ns: 1_000, token_ns: vec![5, 7], ..Truth::default() };
        let expected: &[u8] = b"{\"id\":\"r-0\",\"arrival_ns\":1000,\"token_ns\":[5,7]}\n";
        assert_eq!(encode_line(&truth), expected);
    }

    #[test]
    fn reads_lines_of_other_writers() {
        let file =
            decode(b"\n{\"token_ns\": [], \"id\":\"\", \"arrival_ns\": 1, \"more\": {}}\r\n")
                .unwrap();
        assert_eq!(file.truths, [Truth { arrival_ns: 1, ..Truth::default() }]);
        assert_eq!(file.cut_line, None);
    }

    #[test]
    fn last_line_without_line_feed_is_whole_when_its_json_is() {
        let file = decode(b"{\"id\":\"a\",\"arrival_ns\":1,\"token_ns\":[]}").unwrap();
        assert_eq!((file.truths.len(), file.cut_line), (1, None));
    }

    #[test]
    fn every_cut_of_the_last_line_is_reported() {
        let first = encode_line(&Truth { id: "é".into(), ..Truth::default() });
        let second =
            encode_line(&Truth { id: "漢".into(), token_ns: vec![12], ..Truth::default() });
        for cut in 1..second.len() - 1 {
            let bytes = [&first[..], &second[..cut]].concat();
            let file = decode(&bytes).unwrap();
            assert_eq!((file.truths.len(), file.cut_line), (1, Some(2)), "cut at {cut}");
        }
    }

    #[test]
    fn damage_is_an_error_with_the_line_number() {
        let good = "{\"id\":\"a\",\"arrival_ns\":1,\"token_ns\":[1]}\n";
        let bad = |line: &str| decode(format!("{good}\n{line}\n{good}").as_bytes()).unwrap_err();
        for line in ["{\"id\":\"a\"", "{\"id\":\"a\"}", "nonsense", "[]", "\u{0}", "{\"id\":1}"] {
            assert!(matches!(bad(line), TruthError::Shape { line: 3, .. }), "{line}");
        }
        let negative = bad("{\"id\":\"a\",\"arrival_ns\":-1,\"token_ns\":[]}");
        assert!(matches!(negative, TruthError::Shape { line: 3, .. }));
        assert_eq!(
            bad("{\"id\":\"a\",\"arrival_ns\":1,\"token_ns\":[5,5,4]}"),
            TruthError::Falls { line: 3, token: 2 }
        );
        assert_eq!(
            bad("{\"id\":\"a\",\"arrival_ns\":1,\"token_ns\":[5],\"planned_token_ns\":[]}"),
            TruthError::PlanLength { line: 3, tokens: 1, planned: 0 }
        );
    }

    fn truths() -> impl Strategy<Value = Vec<Truth>> {
        let tokens = prop::collection::vec((any::<u64>(), any::<u64>()), 0..6);
        let truth = (any::<String>(), any::<u64>(), tokens, any::<bool>(), any::<u32>()).prop_map(
            |(id, arrival_ns, tokens, with_plan, held_tokens)| {
                let (mut token_ns, planned): (Vec<u64>, Vec<u64>) = tokens.into_iter().unzip();
                token_ns.sort_unstable();
                let planned_token_ns = with_plan.then_some(planned);
                Truth { id, arrival_ns, token_ns, planned_token_ns, held_tokens }
            },
        );
        prop::collection::vec(truth, 0..5)
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(truths in truths()) {
            let bytes: Vec<u8> = truths.iter().flat_map(encode_line).collect();
            let file = decode(&bytes).unwrap();
            prop_assert_eq!(file, TruthFile { truths, cut_line: None });
        }

        #[test]
        fn any_bytes_give_a_file_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
