//! Command lines of the parts: `--name value` pairs, then what follows `--`.

use std::collections::BTreeMap;
use std::str::FromStr;

/// Names whose presence alone means something.
const SWITCHES: &[&str] = &["await-watch", "kernel-stamps", "lockstep", "quick"];

/// A read command line.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    values: BTreeMap<String, String>,
    /// Words after `--`.
    pub(crate) rest: Vec<String>,
}

impl Arguments {
    /// Reads the words of a command line.
    ///
    /// # Errors
    /// A word that is no flag, or a flag without its value, in words.
    pub(crate) fn read(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut words = words.into_iter();
        let mut read = Self::default();
        while let Some(word) = words.next() {
            if word == "--" {
                read.rest = words.collect();
                break;
            }
            let name = word
                .strip_prefix("--")
                .ok_or_else(|| format!("{word:?} is not a flag; flags start with --"))?;
            let value = if SWITCHES.contains(&name) {
                "true".to_owned()
            } else {
                words.next().ok_or_else(|| format!("--{name} needs a value"))?
            };
            read.values.insert(name.to_owned(), value);
        }
        Ok(read)
    }

    /// True when the flag was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The flag's text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The flag's text.
    ///
    /// # Errors
    /// The flag is missing.
    pub(crate) fn need(&self, name: &str) -> Result<&str, String> {
        self.text(name).ok_or_else(|| format!("--{name} is needed"))
    }

    /// The flag's number, or `otherwise` when it was not given.
    ///
    /// # Errors
    /// It is not a number of that kind.
    pub(crate) fn number<N: FromStr>(&self, name: &str, otherwise: N) -> Result<N, String> {
        match self.text(name) {
            None => Ok(otherwise),
            Some(text) => text.parse().map_err(|_| format!("--{name}: {text:?} is not a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Arguments, String> {
        Arguments::read(words.split(' ').map(str::to_owned))
    }

    #[test]
    fn pairs_switches_and_the_rest_are_told_apart() {
        let arguments = read("--streams 4 --quick -- goodput --json -").unwrap();
        assert_eq!(arguments.number("streams", 1u32), Ok(4));
        assert_eq!(arguments.number("tokens", 7u32), Ok(7));
        assert!(arguments.has("quick") && !arguments.has("lockstep"));
        assert_eq!(arguments.rest, ["goodput", "--json", "-"]);
    }

    #[test]
    fn mistakes_name_the_flag() {
        assert!(read("streams").unwrap_err().contains("streams"));
        assert!(read("--streams").unwrap_err().contains("--streams"));
        assert!(
            read("--streams x").unwrap().number("streams", 1u32).unwrap_err().contains("\"x\"")
        );
        assert!(read("--quick").unwrap().need("url").unwrap_err().contains("--url"));
    }
}
