//! Files of lengths: a histogram, one entry a line.

use workload::{Bucket, LengthError};

use workload::length::MAX_BUCKETS;

/// A line of a histogram that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("line {line}: {error}")]
pub struct HistogramError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub error: LengthError,
}

/// Reads a histogram: `LENGTH WEIGHT` or `FROM-TO WEIGHT` a line, with a colon,
/// comma, semicolon, tab or blank between. Blank lines, lines that begin with
/// `#`, and a first line of names are passed over. An empty list means that the
/// file has no entry.
pub fn histogram(bytes: &[u8]) -> Result<Vec<Bucket>, HistogramError> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut buckets = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let entry = line.trim();
        let names = buckets.is_empty() && entry.starts_with(|c: char| c.is_alphabetic());
        if entry.is_empty() || entry.starts_with('#') || (place == 0 && names) {
            continue;
        }
        let wrong = |error| HistogramError { line: place + 1, error };
        // The cut makes the message of a hostile line short.
        let shown = || LengthError::Bucket(entry.chars().take(40).collect());
        let split = entry.split_once([':', ',', ';', '\t']).or_else(|| entry.split_once(' '));
        let (lengths, weight) = split.ok_or_else(|| wrong(shown()))?;
        buckets.push(Bucket::read(lengths, weight).map_err(|error| match error {
            LengthError::Bucket(_) => wrong(shown()),
            error => wrong(error),
        })?);
        if buckets.len() > MAX_BUCKETS {
            return Err(wrong(LengthError::TooManyBuckets));
        }
    }
    Ok(buckets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use workload::Lengths;

    #[test]
    fn lines_of_every_usual_form_are_entries() {
        let file = "\u{feff}tokens,weight\r\n# chat\r\n\r\n128,5\r\n256-511:3\n 512\t2 \n7 ; 0\n";
        let lengths = Lengths::histogram(histogram(file.as_bytes()).unwrap()).unwrap();
        assert_eq!(lengths.describe(), "histogram:128:5,256-511:3,512:2,7:0");
    }

    #[test]
    fn a_bad_line_is_named() {
        for (file, line, words) in [
            ("128,5\nx,3", 2, "LENGTH:WEIGHT"),
            ("tokens,weight\n0,3", 2, "at least 1"),
            ("128", 1, "LENGTH:WEIGHT"),
            ("128,5\n99999999,1", 2, "over the limit"),
        ] {
            let error = histogram(file.as_bytes()).unwrap_err();
            assert_eq!(error.line, line);
            assert!(error.to_string().contains(words), "{error}");
        }
        assert_eq!(histogram(b"tokens,weight\n"), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_entries_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = histogram(&bytes).map(Lengths::histogram);
        }
    }
}
