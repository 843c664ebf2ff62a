//! `--mix`: several workloads in one run. A part is written as flags of a
//! workload, which win over those of the run and mean what they mean there.

use std::fmt::Display;
use std::sync::Arc;

use measure::facts::WorkloadFacts;
use wire::api::Api;
use workload::prompt::PromptSource;
use workload::schedule::OutputLength;
use workload::{Batch, Mix, Part, Prefixes, Routing, Tokenizer, named_weight};

use super::{Sent, sent};
use crate::flags::{self, Flag, Reader, Settings, Takes, UsageError};

/// Largest file of parts.
const LIMIT: u64 = 1 << 20;

/// The longest name of a part: it is the value of a label.
const MAX_NAME: usize = 120;

/// Flags of a part that do not say what a prompt is.
const ALSO: &[&str] =
    &["ignore-eos", "priority", "lora-modules", "lora-assignment", "model-mix", "model-assignment"];

/// Flags of prompts that hold for the whole run.
const OF_THE_RUN: &[&str] = &[
    "mix",
    "tokenizer",
    "prefix-cache",
    "reset-cache-url",
    "oversample",
    "no-oversample",
    "skip-chat-template",
    "skip-tokenizer-init",
];

/// A part as it was written.
struct Written {
    name: String,
    weight: f64,
    /// Flags and their values.
    own: Vec<(&'static Flag, Vec<String>)>,
}

/// A part read, and what is to be said of it.
struct Read {
    part: Part,
    facts: WorkloadFacts,
}

/// What is to be said of a part.
struct Told {
    name: String,
    facts: WorkloadFacts,
}

/// Resolves the parts; every mistake goes into `reader`.
pub(super) fn mix(
    reader: &mut Reader<'_>,
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    embedded: bool,
    api: Api,
    tokenizer: Option<&Arc<dyn Tokenizer>>,
) -> Sent {
    let before = reader.errors.len();
    let mut written: Vec<Written> = Vec::new();
    for text in reader.settings.all("mix") {
        match parts(text, open) {
            Ok(parts) => written.extend(parts),
            Err(error) => reader.errors.push(error),
        }
    }
    let mut read = Vec::new();
    for part in &written {
        let settings = part.settings(reader.settings);
        let mut of_part = Reader::new(&settings);
        read.push(part.read(&mut of_part, open, embedded, api, tokenizer));
        for error in of_part.errors {
            let error = part.named(error, reader.settings);
            if !reader.errors.contains(&error) {
                reader.errors.push(error);
            }
        }
    }
    let longest = read
        .iter()
        .map(|read| read.part.output.clone())
        .max_by(|a, b| expected(a).total_cmp(&expected(b)));
    let told = |read: Read| {
        let told = Told { name: read.part.name.clone(), facts: read.facts };
        (read.part, told)
    };
    // A part may hold a whole data set, so it is moved.
    let (parts, told): (Vec<Part>, Vec<Told>) = read.into_iter().map(told).unzip();
    match Mix::new(parts) {
        Ok(mix) => {
            let facts = facts(&mix, &told, tokenizer);
            let output = longest.unwrap_or(OutputLength::Unlimited);
            whole(PromptSource::Mix(Box::new(mix)), output, facts)
        }
        Err(error) => {
            // Parts that could not be read are missing, and that is told.
            if reader.errors.len() == before {
                reader.wrong("mix", error);
            }
            whole(PromptSource::fixed(""), OutputLength::Unlimited, WorkloadFacts::default())
        }
    }
}

/// What is sent, of which the parts say what is not prompts.
fn whole(prompts: PromptSource, output: OutputLength, facts: WorkloadFacts) -> Sent {
    let routing = Routing::default();
    Sent {
        prompts,
        pictures: None,
        prefixes: Prefixes::NONE,
        batch: Batch::One,
        output,
        output_forced: false,
        routing,
        conversations: None,
        facts,
        replay: None,
    }
}

/// About how many tokens an answer has.
fn expected(output: &OutputLength) -> f64 {
    match output {
        OutputLength::Drawn(lengths) | OutputLength::OfPrompt { otherwise: Some(lengths) } => {
            lengths.mean()
        }
        OutputLength::Unlimited | OutputLength::OfPrompt { otherwise: None } => 0.0,
    }
}

/// The parts of one `--mix`: that part, or those of a file.
fn parts(
    text: &str,
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
) -> Result<Vec<Written>, UsageError> {
    let text = text.trim();
    if !text.ends_with(".toml") || text.contains(['=', ' ']) {
        return Ok(vec![inline(text)?]);
    }
    let wrong = |rule: String| UsageError::new("--mix", rule);
    let bytes = open(text, LIMIT).map_err(wrong)?;
    let content = String::from_utf8(bytes).map_err(|_| wrong(format!("{text} is not UTF-8")))?;
    let table: toml::Table = content
        .parse()
        .map_err(|error: toml::de::Error| wrong(format!("{text}: {}", error.message())))?;
    table.into_iter().map(|(name, value)| tabled(text, name, value)).collect()
}

/// Reads `NAME:WEIGHT key=value …`.
fn inline(text: &str) -> Result<Written, UsageError> {
    let words = words(text)
        .ok_or_else(|| UsageError::new("--mix", format!("{text:?} has a quote without its end")))?;
    let Some((head, own)) = words.split_first().filter(|(head, _)| !head.contains('=')) else {
        let rule =
            format!("{text:?} does not begin with NAME or NAME:WEIGHT, as in 'chat:3 isl=512'");
        return Err(UsageError::new("--mix", rule));
    };
    let (name, weight) = named_weight(head).map_err(|error| UsageError::new("--mix", error))?;
    let mut part = Written::new(name, weight)?;
    for word in own {
        let (key, value) = word.split_once('=').unwrap_or((word, "true"));
        part.add(key, vec![value.to_owned()], word.contains('='))?;
    }
    Ok(part)
}

/// Reads one table of a file.
fn tabled(file: &str, name: String, value: toml::Value) -> Result<Written, UsageError> {
    let toml::Value::Table(table) = value else {
        let rule = format!("{file}: {name} is not a table; write [{name}] and its flags below");
        return Err(UsageError::new("--mix", rule));
    };
    let mut part = Written::new(&name, 1.0)?;
    for (key, value) in table {
        if key == "weight" {
            let weight = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
            part.weight = weight.ok_or_else(|| part.wrong("weight is not a number"))?;
            continue;
        }
        let values = flags::values_of(&value).ok_or_else(|| {
            part.wrong(format!("{key} must be a text, number, true, false or a list"))
        })?;
        part.add(&key, values, true)?;
    }
    Ok(part)
}

/// Words with blanks between; what is between quotes is one word, as a shell
/// reads it. `None` when a quote is not closed.
fn words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(mark) if c == mark => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

impl Written {
    fn new(name: &str, weight: f64) -> Result<Self, UsageError> {
        let fits = (1..=MAX_NAME).contains(&name.chars().count());
        if !fits || name.contains(':') || name.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            let rule = format!(
                "{name:?} is no name of a part: up to {MAX_NAME} characters without blanks and \
                 colons, and a weight behind a colon, as in chat:3"
            );
            return Err(UsageError::new("--mix", rule));
        }
        Ok(Self { name: name.to_owned(), weight, own: Vec::new() })
    }

    fn wrong(&self, rule: impl Display) -> UsageError {
        UsageError::new(format!("--mix {}", self.name), rule)
    }

    /// Adds a flag. `has_value` is false for a key that stands alone, which a
    /// switch may.
    fn add(&mut self, key: &str, values: Vec<String>, has_value: bool) -> Result<(), UsageError> {
        let name = key.replace('_', "-");
        let Some(flag) = flags::named(&name) else {
            return Err(self.wrong(format!("{key:?} is not a flag; see bench --help")));
        };
        let of_workload = flag.group == flags::DATA && !OF_THE_RUN.contains(&flag.name);
        if !of_workload && !ALSO.contains(&flag.name) {
            let rule =
                format!("--{} is not a workload's flag: it holds for the whole run", flag.name);
            return Err(self.wrong(rule));
        }
        if flag.takes == Takes::Nothing {
            if !matches!(values.as_slice(), [one] if one == "true" || one == "false") {
                return Err(self.wrong(format!("{key} is true or false")));
            }
        } else if !has_value {
            return Err(self.wrong(format!("{key} has no value; write {key}=VALUE")));
        }
        match self.own.iter_mut().find(|(known, _)| known.name == flag.name) {
            Some((_, known)) if matches!(flag.takes, Takes::Each(_)) => known.extend(values),
            Some(_) => return Err(self.wrong(format!("{key} is given twice"))),
            None => self.own.push((flag, values)),
        }
        Ok(())
    }

    /// The run's settings, with the part's own over them.
    fn settings(&self, of_run: &Settings) -> Settings {
        let mut settings = of_run.clone();
        for (flag, values) in &self.own {
            settings.replace(flag.name, values.clone());
        }
        settings
    }

    /// An error of a flag, with the part's name where the part is to blame.
    fn named(&self, error: UsageError, of_run: &Settings) -> UsageError {
        let flag = error.what.trim_start_matches("--");
        let own = self.own.iter().any(|(known, _)| known.name == flag);
        if !own && of_run.has(flag) {
            return error;
        }
        UsageError::new(format!("--mix {}: {}", self.name, error.what), error.rule)
    }

    fn read(
        &self,
        reader: &mut Reader<'_>,
        open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
        embedded: bool,
        api: Api,
        tokenizer: Option<&Arc<dyn Tokenizer>>,
    ) -> Read {
        let sent = sent(reader, open, embedded, api, tokenizer);
        if sent.conversations.is_some() {
            reader.wrong(
                "mix",
                "draws requests and not conversations; hold those in a run of their own, without \
                 --turns, --multi-turn and sessions here",
            );
        }
        let settings = reader.settings;
        let part = Part {
            name: self.name.clone(),
            weight: self.weight,
            prompts: sent.prompts,
            pictures: sent.pictures,
            prefixes: sent.prefixes,
            batch: sent.batch,
            output: sent.output,
            output_forced: sent.output_forced,
            // One text for all requests is repeated by its nature.
            repeats: settings.has("prompt") || settings.is_on("oversample"),
            routing: sent.routing,
        };
        Read { part, facts: sent.facts }
    }
}

/// What is said of the parts together.
fn facts(mix: &Mix, told: &[Told], tokenizer: Option<&Arc<dyn Tokenizer>>) -> WorkloadFacts {
    let of = |name: &str| told.iter().find(|told| told.name == name).map(|told| &told.facts);
    let joined = |text: fn(&WorkloadFacts) -> &str| {
        let named = mix
            .parts()
            .iter()
            .filter_map(|part| Some(format!("{} {}", part.name, text(of(&part.name)?))));
        named.collect::<Vec<_>>().join("; ")
    };
    let sources = mix.shares().filter_map(|(part, share)| {
        let percent = (share * 1e3).round() / 10.0;
        Some(format!("{} {percent} % ({})", part.name, of(&part.name)?.source))
    });
    WorkloadFacts {
        source: format!("mix of {}", sources.collect::<Vec<_>>().join(", ")),
        input_lengths: joined(|facts| &facts.input_lengths),
        output_lengths: joined(|facts| &facts.output_lengths),
        tokenizer: tokenizer.map(|tokenizer| tokenizer.name().to_owned()),
        notes: notes(told),
        ..WorkloadFacts::default()
    }
}

/// The notes of the parts by name; once, where one holds for all.
fn notes(told: &[Told]) -> Vec<String> {
    let everywhere = |note: &String| told.iter().all(|told| told.facts.notes.contains(note));
    let mut notes = Vec::new();
    for Told { name, facts } in told {
        for note in &facts.notes {
            let said = if everywhere(note) { note.clone() } else { format!("{name}: {note}") };
            if !notes.contains(&said) {
                notes.push(said);
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        inline(text).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_part_is_a_name_a_weight_and_flags() {
        let part = inline("rag:0.5 isl=8192 prompt='two words' ignore_eos").unwrap();
        assert_eq!((part.name.as_str(), part.weight), ("rag", 0.5));
        let own: Vec<_> =
            part.own.iter().map(|(flag, values)| (flag.name, values.join("|"))).collect();
        assert_eq!(
            own,
            [
                ("isl", "8192".to_owned()),
                ("prompt", "two words".to_owned()),
                ("ignore-eos", "true".to_owned())
            ]
        );
        let columns = inline("a dataset-column=prompt=q dataset-column=label=l").unwrap();
        assert_eq!(columns.own[0].1, ["prompt=q", "label=l"]);
        assert_eq!(inline("chat").unwrap().weight, 1.0);
    }

    #[test]
    fn what_is_no_part_is_refused_with_its_name() {
        for (text, words) in [
            ("", "does not begin with NAME"),
            ("isl=5", "does not begin with NAME"),
            (":3 isl=5", "has no name"),
            ("chat:3x isl=5", "\"chat:3x\" is no name of a part"),
            ("chat colour=red", "--mix chat: \"colour\" is not a flag"),
            ("chat request-rate=5", "--mix chat: --request-rate is not a workload's flag"),
            ("chat tokenizer=x", "--mix chat: --tokenizer is not a workload's flag"),
            ("chat mix=x", "--mix chat: --mix is not a workload's flag"),
            ("chat isl", "--mix chat: isl has no value"),
            ("chat isl=1 input-len=2", "--mix chat: input-len is given twice"),
            ("chat ignore-eos=maybe", "--mix chat: ignore-eos is true or false"),
            ("chat prompt='x", "has a quote without its end"),
        ] {
            let told = refused(text);
            assert!(told.contains(words), "{text}: {told}");
        }
    }

    #[test]
    fn a_file_has_a_table_for_each_part() {
        let file = "[chat]\nweight = 3\nisl = 512\nignore-eos = true\n[rag]\ndataset_column = [\"prompt=q\"]\n";
        let open = |_: &str, _: u64| Ok(file.as_bytes().to_vec());
        let parts = parts("mix.toml", &open).unwrap();
        let told: Vec<_> =
            parts.iter().map(|part| (part.name.as_str(), part.weight, part.own.len())).collect();
        assert_eq!(told, [("chat", 3.0, 2), ("rag", 1.0, 1)]);
        for (file, words) in [
            ("chat = 3", "chat is not a table"),
            ("[chat]\nweight = \"x\"", "--mix chat: weight is not a number"),
            ("[chat]\nisl = {a = 1}", "--mix chat: isl must be a text"),
            ("[chat", "mix.toml: "),
        ] {
            let open = |_: &str, _: u64| Ok(file.as_bytes().to_vec());
            let told = super::parts("mix.toml", &open).map(|_| ()).unwrap_err().to_string();
            assert!(told.contains(words), "{file}: {told}");
        }
    }

    #[test]
    fn words_are_those_of_a_shell() {
        let read = |text| words(text).map(|words| words.join("|"));
        assert_eq!(read(" a  b=c\td "), Some("a|b=c|d".to_owned()));
        assert_eq!(read("p='x \"y\" z' q=\"it's\""), Some("p=x \"y\" z|q=it's".to_owned()));
        assert_eq!(read("p='' ''"), Some("p=|".to_owned()));
        assert_eq!(read("p='x"), None);
        assert_eq!(read(""), Some(String::new()));
    }
}
