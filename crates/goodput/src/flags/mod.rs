//! Flags: one table, from which parsing, help, documents and tests derive.

mod settings;
mod table;
mod vllm;

use std::fmt;

pub(crate) use settings::{
    Reader, Settings, add_group, add_named, add_to, for_each_secret, parse_duration, refusal,
    storable_url, values_of, with_dashes,
};
pub(crate) use table::{BENCH, CSV, DATA, DEPLOYMENT, ISOLATED, MARKDOWN, SLO};
pub(crate) use vllm::REFUSED;

/// One flag of `bench`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    /// Long name, without dashes. Underscores are taken for dashes.
    pub(crate) name: &'static str,
    /// One-letter name.
    pub(crate) short: Option<char>,
    /// Other long names with the same meaning.
    pub(crate) also: &'static [&'static str],
    /// What it takes.
    pub(crate) takes: Takes,
    /// Heading in the help.
    pub(crate) group: &'static str,
    /// What it does, with its default.
    pub(crate) help: &'static str,
    /// Its relation to `vllm bench serve`.
    pub(crate) vllm: Vllm,
    /// Whether its value may be stored and printed.
    pub(crate) secrecy: Secrecy,
}

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Nothing: it is on or off.
    Nothing,
    /// One value, of which the last wins.
    One(&'static str),
    /// One or more values after it; the last occurrence wins.
    Several(&'static str),
    /// One value each time; all count.
    Each(&'static str),
}

/// A flag's relation to `vllm bench serve` 0.27.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vllm {
    /// Same name, same meaning.
    Same,
    /// Same name; the words say what differs.
    Other(&'static str),
    /// vLLM has no such flag.
    Ours,
}

/// Whether a value may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrecy {
    /// It may.
    Open,
    /// Only the part before `=` or `:`.
    Header,
    /// An address, whose query may hold a key.
    Url,
    /// JSON, of which members with telling names are hidden.
    Json,
}

/// The flag of this name or alias.
pub(crate) fn named(name: &str) -> Option<&'static Flag> {
    BENCH.iter().find(|flag| flag.name == name || flag.also.contains(&name))
}

/// The flags of a group.
pub(crate) fn of_group(group: &'static str) -> impl Iterator<Item = &'static Flag> {
    BENCH.iter().filter(move |flag| flag.group == group)
}

/// What the user typed is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsageError {
    /// The flag or argument.
    pub(crate) what: String,
    /// The rule and a hint, one sentence.
    pub(crate) rule: String,
}

impl UsageError {
    pub(crate) fn new(what: impl Into<String>, rule: impl fmt::Display) -> Self {
        Self { what: what.into(), rule: rule.to_string() }
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.rule)
    }
}

impl std::error::Error for UsageError {}
