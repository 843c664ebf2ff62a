//! Finding a row by what people call it.

use std::fmt;

/// The most near names that an error lists.
const MOST_NEAR: usize = 4;

/// The most characters of a name that are looked at: no row has longer ones.
const LONGEST: usize = 80;

/// A name that no row has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What was looked for: `model` or `accelerator`.
    pub kind: &'static str,
    /// The name, its first characters.
    pub asked: String,
    /// Ids of the rows that are nearest to it, nearest first.
    pub near: Vec<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, asked, near } = self;
        write!(f, "the catalogue has no {kind} {asked:?}; the nearest are {}", near.join(", "))
    }
}

impl std::error::Error for Unknown {}

/// The first row that has the name. Each row comes with its names, its id
/// first.
pub(super) fn find<'a, T: 'a>(
    kind: &'static str,
    asked: &str,
    rows: impl Iterator<Item = (&'a T, Vec<&'a str>)>,
) -> Result<&'a T, Unknown> {
    let asked: String = asked.trim().chars().take(LONGEST).collect();
    let plain = plain(&asked);
    let mut distances = Vec::new();
    for (row, names) in rows {
        let mut nearest = usize::MAX;
        for name in &names {
            let name = self::plain(name);
            if name == plain {
                return Ok(row);
            }
            nearest = nearest.min(distance(&name, &plain));
        }
        distances.push((nearest, names.first().copied().unwrap_or_default()));
    }
    distances.sort_by_key(|(distance, _)| *distance);
    let near = distances.into_iter().take(MOST_NEAR).map(|(_, id)| id.to_owned()).collect();
    Err(Unknown { kind, asked, near })
}

/// Those of `names` that are most like `asked`, the most like it first.
pub fn nearest<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let asked: String = asked.chars().take(LONGEST).collect();
    let asked = plain(&asked);
    let mut all: Vec<&str> = names.collect();
    all.sort_by_key(|name| distance(&plain(name), &asked));
    all.truncate(MOST_NEAR);
    all
}

/// A name without its owner, case, and the marks that people set as they like.
fn plain(name: &str) -> Vec<char> {
    let name = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect()
}

/// Insertions, deletions and replacements that turn one into the other
/// (Levenshtein 1966).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_textbook() {
        let of = |a: &str, b: &str| distance(&plain(a), &plain(b));
        assert_eq!(of("kitten", "sitting"), 3);
        assert_eq!(of("", "abc"), 3);
        assert_eq!(of("flaw", "lawn"), 2);
        assert_eq!(of("H100 SXM", "h100_sxm"), 0);
    }

    #[test]
    fn a_name_of_any_length_is_an_error_of_few_words() {
        let rows = [("a100", 1), ("h100", 2)];
        let named = || rows.iter().map(|(name, row)| (row, vec![*name]));
        assert_eq!(find("accelerator", "x/H-100", named()), Ok(&2));
        let error = find("accelerator", &"é".repeat(100_000), named()).unwrap_err();
        assert!(error.to_string().len() < 300, "{error}");
        assert_eq!(error.near, ["a100", "h100"]);
    }
}
