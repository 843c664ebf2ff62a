//! What the flags say of a data set: its file, its columns, its lengths, and
//! what must be said of the run that is made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use measure::facts::WorkloadFacts;
use wire::api::Api;
use wire::dataset::DatasetNotes;
use wire::dataset::columns::{Columns, Field};
use wire::dataset::sonnet;
use wire::dataset::table::{Answers, DATASETS, Entry, Options, Read, Rows, WRITTEN, named};
use workload::prompt::{Order, PromptSource};
use workload::schedule::OutputLength;
use workload::{Conversation, Lengths, Prompt, Replay, Tokenizer, estimate_tokens};

use super::{servegen, trace};
use crate::flags::Reader;

/// Largest file that is read.
const LIMIT: u64 = 8 << 30;

/// Largest file of a picture or sound.
const MEDIA_LIMIT: u64 = 256 << 20;

/// Prompts that are made of a poem when no number of requests is given.
const VERSES: u32 = 1_000;

/// The most prompts that are made of a poem before the run.
const MAX_VERSES: u32 = 1_000_000;

/// The most tokens of all prompts of a poem together: they are in memory.
const MAX_VERSE_TOKENS: u64 = 1_000_000_000;

/// Bad rows that a message names one by one.
const NAMED_ROWS: usize = 3;

/// What a data set makes of a run.
pub(super) struct Data {
    pub(super) prompts: PromptSource,
    pub(super) output: OutputLength,
    pub(super) facts: WorkloadFacts,
    /// When requests come, where the rows say it.
    pub(super) replay: Option<Replay>,
    /// What makes conversations of the prompts.
    pub(super) conversations: Option<Vec<Conversation>>,
}

impl Data {
    /// Requests that are no turns and come when the flags say.
    pub(super) fn alone(prompts: PromptSource, output: Lengths, facts: WorkloadFacts) -> Self {
        let output = OutputLength::Drawn(output);
        Self { prompts, output, facts, replay: None, conversations: None }
    }
}

/// Reads the data set `name`; `output` is the limit of answers that the other
/// flags give. Every mistake goes into `reader`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    name: &str,
    output: Lengths,
    api: Api,
    tokenizer: Option<&Arc<dyn Tokenizer>>,
) -> Option<Data> {
    let entry = entry(reader, name)?;
    let count = |text: &str| {
        tokenizer.map_or_else(|| estimate_tokens(text), |tokenizer| tokenizer.count(text))
    };
    let settings = reader.settings;
    let beside =
        |named: &str| beside(settings.text("dataset-path").unwrap_or_default(), named, open);
    let options = options(reader, entry, &count, &beside)?;
    let Some(path) = reader.settings.text("dataset-path") else {
        let kind = if matches!(entry.read, Read::Folder) { "folder" } else { "file" };
        let rule = format!("--dataset-name {} needs a {kind}: {}", entry.name, entry.file);
        reader.wrong("dataset-path", rule);
        return None;
    };
    let replayed = trace::is_replayed(reader, Some(entry));
    let window = if replayed { trace::window(reader) } else { None };
    let Loaded { mut rows, mut notes, said: of_folder } = match entry.read {
        Read::File(_) => file(reader, open, entry, path, &options)?,
        Read::Folder => folder(reader, open, entry, path, (replayed, window))?,
    };
    let usable = rows.len();
    let replay = if replayed {
        let times = std::mem::take(&mut notes.times);
        Some(trace::replay(reader, path, &mut rows, times, window)?)
    } else {
        None
    };
    let output = answers(reader, entry, output);
    let mut facts = facts(&format!("{} {path}", entry.name), &rows, &output);
    facts.tokenizer = tokenizer.map(|tokenizer| tokenizer.name().to_owned());
    facts.notes.extend(entry.note.map(str::to_owned));
    facts.notes.extend(of_folder);
    facts.notes.extend(said(&rows, &notes, api));
    facts.notes.extend(unused(reader, entry));
    facts.notes.extend(trace::said(reader, entry, replay.as_ref(), usable));
    let in_order = replayed || reader.settings.is_on("disable-shuffle");
    let order = if in_order { Order::AsIs } else { Order::Shuffled };
    let (prompts, conversations) = match rows {
        Rows::Prompts(prompts) => (PromptSource::List { prompts, order }, None),
        Rows::Lengths(rows) => (PromptSource::Lengths { rows, order, lexicon: None }, None),
        Rows::Conversations { prompts, conversations } => {
            (PromptSource::List { prompts, order }, Some(conversations))
        }
    };
    Some(Data { prompts, output, facts, replay, conversations })
}

/// What was read from disk.
struct Loaded {
    rows: Rows,
    notes: DatasetNotes,
    /// What must be said of a folder.
    said: Vec<String>,
}

/// Reads a data set of one file.
fn file(
    reader: &mut Reader<'_>,
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    entry: &Entry,
    path: &str,
    options: &Options<'_>,
) -> Option<Loaded> {
    let bytes = match open(path, LIMIT) {
        Ok(bytes) => bytes,
        Err(error) => {
            let hint = entry.path_hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            reader.wrong("dataset-path", format!("{error}{hint}"));
            return None;
        }
    };
    let (rows, notes) = entry.load(bytes, options)?;
    if let Some(refused) = &notes.refused {
        reader.wrong("dataset-path", format!("{path}: {refused}"));
        return None;
    }
    if rows.is_empty() {
        reader.wrong("dataset-path", format!("{path} has no usable row: {}", reasons(&notes)));
        return None;
    }
    Some(Loaded { rows, notes, said: Vec::new() })
}

/// Draws the rows of a folder of client traces.
fn folder(
    reader: &mut Reader<'_>,
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    entry: &Entry,
    path: &str,
    (replayed, window): (bool, Option<trace::Window>),
) -> Option<Loaded> {
    // What is wrong with these two is told where they belong.
    let quiet = |flag: &str| reader.settings.text(flag).map(str::trim);
    let count = quiet("num-prompts").and_then(|text| text.parse().ok());
    let seed = quiet("seed").and_then(|text| text.parse().ok()).unwrap_or(0);
    let count = count.filter(|count| *count > 0);
    let asked = servegen::Asked { replayed, window, count, seed };
    let hint = entry.path_hint.unwrap_or_default();
    let drawn = servegen::read(reader, open, path, hint, &asked)?;
    let notes = DatasetNotes { times: drawn.times, ..DatasetNotes::default() };
    Some(Loaded { rows: drawn.rows, notes, said: drawn.said })
}

/// Opens a file that a row names: from the folder of the data set, so that the
/// two can be moved together, else from where the command runs.
fn beside(
    dataset: &str,
    named: &str,
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let folder = Path::new(dataset).parent().unwrap_or(Path::new(""));
    let joined = folder.join(named);
    open(&joined.to_string_lossy(), MEDIA_LIMIT)
        .or_else(|error| open(named, MEDIA_LIMIT).map_err(|_| error))
}

fn entry(reader: &mut Reader<'_>, name: &str) -> Option<&'static Entry> {
    let entry = named(name);
    if entry.is_none() {
        let read = DATASETS.iter().map(|entry| entry.name);
        let names: Vec<_> = WRITTEN.iter().copied().chain(read).collect();
        reader.wrong("dataset-name", format!("{name:?} is not one of {}", names.join(", ")));
    }
    entry
}

fn options<'a>(
    reader: &mut Reader<'_>,
    entry: &Entry,
    count: &'a dyn Fn(&str) -> u32,
    open: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
) -> Option<Options<'a>> {
    let settings = reader.settings;
    let columns = match Columns::parse(settings.all("dataset-column")) {
        Ok(columns) => columns,
        Err(error) => {
            reader.wrong("dataset-column", error);
            return None;
        }
    };
    if let Some((field, _)) = columns.pairs().find(|(field, _)| !entry.fields.contains(field)) {
        let known: Vec<_> = entry.fields.iter().copied().map(Field::name).collect();
        let rule = match known.as_slice() {
            [] => format!("the keys of {} are fixed; hf takes any columns", entry.name),
            known => format!("{} has no {}; it has {}", entry.name, field.name(), known.join(", ")),
        };
        reader.wrong("dataset-column", rule);
        return None;
    }
    let whole = "a whole number of tokens";
    // What is wrong with these three is told where they belong.
    let quiet = |flag: &str| settings.text(flag).and_then(|text| text.trim().parse::<u32>().ok());
    let shape = sonnet::Shape {
        input: reader
            .value("sonnet-input-len", whole)
            .or_else(|| quiet("isl"))
            .unwrap_or(sonnet::Shape::VLLM.input),
        prefix: reader.value("sonnet-prefix-len", whole).unwrap_or(sonnet::Shape::VLLM.prefix),
        prompts: quiet("num-prompts").unwrap_or(VERSES).clamp(1, MAX_VERSES),
        seed: settings.text("seed").and_then(|seed| seed.trim().parse().ok()).unwrap_or(0),
    };
    let tokens = u64::from(shape.input) * u64::from(shape.prompts);
    if entry.name == "sonnet" && tokens > MAX_VERSE_TOKENS {
        let rule = format!("{tokens} tokens of all prompts are more than {MAX_VERSE_TOKENS}");
        reader.wrong("sonnet-input-len", format!("{rule}; lower it, or --num-prompts"));
        return None;
    }
    let of = |flag: &str| {
        let concerned = entry.flags.contains(&flag);
        settings.text(flag).filter(|_| concerned).map(str::to_owned)
    };
    Some(Options {
        count,
        columns,
        category: of("spec-bench-category").or_else(|| of("speed-bench-category")),
        model: of("burstgpt-model"),
        sonnet: shape,
        open,
        media_inside: settings.is_on("custom-ensure-client-side-data"),
        trace: trace::shape(reader),
        multi_turn: settings.is_on("multi-turn"),
        scripted: settings.text("history") == Some("scripted"),
    })
}

/// How long answers may be: `--osl` wins, then the flag of the data set.
fn answers(reader: &mut Reader<'_>, entry: &Entry, output: Lengths) -> OutputLength {
    if reader.settings.has("osl") {
        return OutputLength::Drawn(output);
    }
    let flag = entry.output_flag;
    match flag.and_then(|flag| Some((flag, reader.value::<i64>(flag, "a whole number")?))) {
        // vLLM's way to say that the file decides; here it always does.
        Some((_, -1)) if matches!(entry.answers, Answers::OfRows(_)) => {
            OutputLength::OfPrompt { otherwise: None }
        }
        Some((flag, n)) => match u32::try_from(n).ok().and_then(|n| Lengths::fixed(n).ok()) {
            Some(fixed) if matches!(entry.answers, Answers::OfRows(_)) => {
                OutputLength::OfPrompt { otherwise: Some(fixed) }
            }
            Some(fixed) => OutputLength::Drawn(fixed),
            None => {
                reader.wrong(flag, format!("{n} is not a length in tokens"));
                OutputLength::Unlimited
            }
        },
        None => match entry.answers {
            Answers::OfRows(n) => OutputLength::OfPrompt { otherwise: Lengths::fixed(n).ok() },
            Answers::OfRowsOrDrawn => OutputLength::OfPrompt { otherwise: Some(output) },
            Answers::Fixed(n) => {
                Lengths::fixed(n).map_or(OutputLength::Unlimited, OutputLength::Drawn)
            }
        },
    }
}

fn facts(source: &str, rows: &Rows, output: &OutputLength) -> WorkloadFacts {
    WorkloadFacts {
        source: match rows {
            Rows::Conversations { prompts, conversations } => format!(
                "{source}: {} conversations of {} turns together",
                conversations.len(),
                prompts.len()
            ),
            rows => format!("{source}: {} rows", rows.len()),
        },
        input_lengths: match rows {
            Rows::Prompts(_) => "as the rows are".to_owned(),
            Rows::Conversations { .. } => {
                "as the rows are, each after the turns before it".to_owned()
            }
            Rows::Lengths(_) => "as the rows say".to_owned(),
        },
        output_lengths: match output {
            OutputLength::Drawn(lengths) => lengths.describe(),
            OutputLength::OfPrompt { otherwise: Some(lengths) } => {
                format!("as the rows say, else {}", lengths.describe())
            }
            _ => "as the rows say".to_owned(),
        },
        ..WorkloadFacts::default()
    }
}

/// What a reader of the result must know of the file.
fn said(rows: &Rows, notes: &DatasetNotes, api: Api) -> Vec<String> {
    let mut said = Vec::new();
    if notes.skipped_count() > 0 {
        said.push(format!("{} rows were skipped: {}", notes.skipped_count(), reasons(notes)));
    }
    if let Some(at) = &notes.truncated_at {
        said.push(format!("the file is cut off at {at}; rows before that are used"));
    }
    if !notes.set_aside.is_empty() {
        let body: Vec<&str> = notes.set_aside.iter().copied().collect();
        said.push(format!(
            "not taken from the rows: {}; the run's own are sent, the same in every request",
            body.join(", ")
        ));
    }
    let prompts: &[Prompt] = match rows {
        Rows::Prompts(prompts) | Rows::Conversations { prompts, .. } => prompts,
        Rows::Lengths(_) => &[],
    };
    if prompts.iter().any(|row| row.priority.is_some()) && !api.entry().takes_priority {
        said.push("the priorities of the rows are not sent: this API knows none".to_owned());
    }
    let members = prompts.iter().flat_map(|row| &row.body).map(|(name, _)| name.as_str());
    let homeless: BTreeSet<&str> = members.filter(|name| !api.takes_member(name)).collect();
    for name in homeless {
        said.push(format!("the {name} of the rows are not sent: this API has no place for them"));
    }
    said
}

/// Flags that belong to another data set and so do nothing.
fn unused(reader: &Reader<'_>, entry: &Entry) -> Vec<String> {
    let own = |flag: &str| entry.flags.contains(&flag) || entry.output_flag == Some(flag);
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for other in DATASETS {
        for flag in other.output_flag.iter().chain(other.flags) {
            if reader.settings.has(flag) && !own(flag) {
                owners.entry(flag).or_default().push(other.name);
            }
        }
    }
    let said = owners.into_iter().map(|(flag, names)| {
        format!("--{flag} did nothing: it concerns {} only", names.join(", "))
    });
    said.collect()
}

/// Why rows were skipped: each reason with its count, then the first rows by
/// their places, so that they can be found and mended.
fn reasons(notes: &DatasetNotes) -> String {
    if notes.skipped.is_empty() {
        return "it holds no row at all".to_owned();
    }
    let reasons = notes.skipped_by_reason.iter();
    let counts: Vec<_> = reasons.map(|(reason, count)| format!("{reason} ({count})")).collect();
    let named: Vec<_> = notes.skipped.iter().take(NAMED_ROWS).map(ToString::to_string).collect();
    format!("{}; {}", counts.join(", "), named.join("; "))
}
