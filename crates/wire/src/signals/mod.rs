//! What each engine and exporter calls the signals of [`measure::signal`].
//!
//! One table an engine, data only: for each signal the families that tell it, in
//! order of preference, with the unit that they have, the setting that exposes
//! them where they are off by default, and what misleads in them. [`read`] turns
//! timed expositions into signals over a window by these tables.

mod amd;
mod dcgm;
mod dynamo;
mod follow;
mod llamacpp;
mod lmdeploy;
mod node;
mod read;
mod sglang;
mod tgi;
mod trtllm;
mod value;
mod vllm;
mod way;

pub use read::{Scrape, read};
pub use way::{How, Pick, Way};

use std::collections::BTreeSet;

use measure::metric::Text;
use measure::signal::{Role, Signal, Teller, Telling};

use crate::prometheus::Exposition;

/// Every table; of several that tell one signal the first counts. Engines come
/// before what stands in front of them.
pub const TABLES: &[Table] = &[
    vllm::TABLE,
    sglang::TABLE,
    tgi::TABLE,
    trtllm::TABLE,
    trtllm::TRITON,
    llamacpp::TABLE,
    lmdeploy::TABLE,
    dynamo::TABLE,
    dcgm::TABLE,
    amd::TABLE,
    node::TABLE,
];

/// How one engine or exporter tells of itself.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Stable name.
    pub key: &'static str,
    /// Its own name.
    pub name: &'static str,
    /// The version whose names these are.
    pub version: &'static str,
    /// How the names of its families begin.
    pub prefixes: &'static [&'static str],
    /// What exposes metrics at all, where that is off by default.
    pub exposed_by: &'static str,
    /// Labels that tell one instance from another.
    pub instances: &'static [&'static str],
    /// Labels of ranks that tell the same of one instance: they are not added.
    pub alike: &'static [&'static str],
    /// The label that says whether an instance has prompts or answers only.
    pub role_label: Option<&'static str>,
    /// What an instance is, where no label says it.
    pub role: Role,
    /// Families whose labels are settings.
    pub settings: &'static [&'static str],
    /// Its signals.
    pub entries: &'static [Entry],
}

/// A table with nothing in it, for tables to start from.
const NONE: Table = Table {
    key: "",
    name: "",
    version: "",
    prefixes: &[],
    exposed_by: "",
    instances: &[],
    alike: &[],
    role_label: None,
    role: Role::Both,
    settings: &[],
    entries: &[],
};

impl Table {
    /// Whether an exposition has families of this engine.
    pub fn is_told_by(&self, exposition: &Exposition) -> bool {
        exposition.families().any(|family| self.has(family.name()))
    }

    /// Whether a family is of this engine, by its name.
    fn has(&self, family: &str) -> bool {
        self.prefixes.iter().any(|prefix| family.starts_with(prefix))
    }

    /// The entry of a signal.
    pub fn entry(&self, signal: Signal) -> Option<&'static Entry> {
        self.entries.iter().find(|entry| entry.signal == signal)
    }

    /// Whether it is of accelerators or hosts, and of no engine.
    pub fn is_of_devices(&self) -> bool {
        self.role == Role::Device
    }
}

/// The engine whose metrics an exposition has.
pub fn detect(exposition: &Exposition) -> Option<&'static Table> {
    TABLES.iter().find(|table| !table.is_of_devices() && table.is_told_by(exposition))
}

/// The signals that an exposition tells, by any table whose families it has.
pub fn told(exposition: &Exposition) -> BTreeSet<Signal> {
    let has = |family: &&str| {
        exposition.family(family).is_some_and(|family| family.samples().next().is_some())
    };
    let is_told = |entry: &&Entry| entry.ways.iter().any(|way| way.families().iter().all(&has));
    let tables = TABLES.iter().filter(|table| table.is_told_by(exposition));
    tables.flat_map(|table| table.entries).filter(is_told).map(|entry| entry.signal).collect()
}

/// One signal of one engine.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Which.
    pub signal: Signal,
    /// How it is told, in order of preference.
    pub ways: &'static [Way],
    /// What exposes it, where it is off by default.
    pub exposed_by: &'static str,
    /// Whether a value that is 0 from the beginning means that it is switched off.
    pub zero_is_off: bool,
    /// What misleads in it.
    pub trap: Option<Text>,
}

const fn of(signal: Signal, ways: &'static [Way]) -> Entry {
    Entry { signal, ways, exposed_by: "", zero_is_off: false, trap: None }
}

impl Entry {
    const fn exposed_by(mut self, what: &'static str) -> Self {
        self.exposed_by = what;
        self
    }

    const fn zero_is_off(mut self) -> Self {
        self.zero_is_off = true;
        self
    }

    const fn trap(mut self, en: &'static str, zh: &'static str) -> Self {
        self.trap = Some(Text { en, zh });
        self
    }
}

/// The tables as a person reads them.
pub fn tellers() -> Vec<Teller> {
    let telling = |entry: &Entry| Telling {
        signal: entry.signal,
        ways: entry.ways.iter().map(ToString::to_string).collect(),
        exposed_by: entry.exposed_by,
        trap: entry.trap,
    };
    let teller = |table: &Table| Teller {
        key: table.key,
        name: table.name,
        version: table.version,
        exposed_by: table.exposed_by,
        telling: table.entries.iter().map(telling).collect(),
    };
    TABLES.iter().map(teller).collect()
}

#[cfg(test)]
mod tests;
