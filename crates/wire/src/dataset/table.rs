//! Every data set that is read from disk: one table, from which `--dataset-name`,
//! its messages and the documents derive.

use std::collections::{BTreeMap, BTreeSet};

use workload::{Conversation, LengthRow, Prompt};

use super::columns::{Columns, Field};
use super::{DatasetNotes, MAX_LABEL_VALUES, Refusal};
use super::{
    azure, custom, custom_media, hub, lengths, mooncake, questions, sharegpt, sonnet, timed_trace,
};

/// What a loader takes besides the file.
pub struct Options<'a> {
    /// About how many tokens a text is.
    pub count: &'a dyn Fn(&str) -> u32,
    /// The columns that were named.
    pub columns: Columns,
    /// The only category to take.
    pub category: Option<String>,
    /// The only model to take.
    pub model: Option<String>,
    /// What to make of a poem.
    pub sonnet: sonnet::Shape,
    /// Opens files that rows name.
    pub open: custom_media::Open<'a>,
    /// True when pictures have to be in the requests, not at addresses.
    pub media_inside: bool,
    /// How a timed trace is written.
    pub trace: timed_trace::Shape,
    /// Take all turns of a row, not the first alone.
    pub multi_turn: bool,
    /// Later prompts hold the answers of the file, so each must be there.
    pub scripted: bool,
}

/// What a file gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// Prompts.
    Prompts(Vec<Prompt>),
    /// Lengths, for which text is written.
    Lengths(Vec<LengthRow>),
    /// Conversations, and the prompts of all their turns.
    Conversations {
        /// One conversation after the other.
        prompts: Vec<Prompt>,
        /// What makes conversations of them.
        conversations: Vec<Conversation>,
    },
}

impl Rows {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Prompts(rows) => rows.len(),
            Self::Lengths(rows) => rows.len(),
            Self::Conversations { conversations, .. } => conversations.len(),
        }
    }

    /// True when the file gave nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where a row stood in its file.
    pub fn source_row(&self, place: usize) -> u64 {
        match self {
            Self::Prompts(rows) => rows[place].source_row.unwrap_or(0),
            Self::Lengths(rows) => rows[place].source_row,
            Self::Conversations { prompts, conversations } => {
                let first = conversations[place].first as usize;
                prompts.get(first).and_then(|prompt| prompt.source_row).unwrap_or(0)
            }
        }
    }

    /// Keeps the rows of these places, in this order.
    pub fn take(&mut self, places: &[usize]) {
        match self {
            Self::Prompts(rows) => *rows = places.iter().map(|&at| rows[at].clone()).collect(),
            Self::Lengths(rows) => *rows = places.iter().map(|&at| rows[at].clone()).collect(),
            Self::Conversations { conversations, .. } => {
                *conversations = places.iter().map(|&at| conversations[at].clone()).collect();
            }
        }
    }

    fn labels(&self) -> Vec<&[(String, String)]> {
        match self {
            Self::Prompts(rows) | Self::Conversations { prompts: rows, .. } => {
                rows.iter().map(|row| row.labels.as_slice()).collect()
            }
            Self::Lengths(rows) => rows.iter().map(|row| row.labels.as_slice()).collect(),
        }
    }
}

/// How long answers may be, where `--osl` does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// As the rows say, else this many tokens.
    OfRows(u32),
    /// As the rows say, else as synthetic answers are.
    OfRowsOrDrawn,
    /// This many tokens.
    Fixed(u32),
}

/// What the rows of a data set say of the time at which they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Nothing.
    None,
    /// They may say it, and are a list of lengths unless a replay is asked for.
    OnRequest,
    /// They are a trace, and are replayed unless the load says when requests
    /// come.
    Replayed,
}

/// One data set.
pub struct Entry {
    /// Value of `--dataset-name`.
    pub name: &'static str,
    /// The file, or what its folder holds, in a few words.
    pub file: &'static str,
    /// The flag that sets the answers' length of this data set, if any.
    pub output_flag: Option<&'static str>,
    /// Answers without that flag.
    pub answers: Answers,
    /// Fields that `--dataset-column` may name.
    pub fields: &'static [Field],
    /// Further flags that concern it.
    pub flags: &'static [&'static str],
    /// What to do when the path is no file.
    pub path_hint: Option<&'static str>,
    /// What must be said of it in every run.
    pub note: Option<&'static str>,
    /// What its rows say of time.
    pub times: Times,
    /// How it is read.
    pub read: Read,
}

/// How a data set is read.
#[derive(Clone, Copy)]
pub enum Read {
    /// One file, by this.
    File(fn(Vec<u8>, &Options<'_>) -> (Rows, DatasetNotes)),
    /// A folder of client traces, from which rows are drawn:
    /// [`servegen`](super::servegen).
    Folder,
}

fn prompts((rows, notes): (Vec<Prompt>, DatasetNotes)) -> (Rows, DatasetNotes) {
    (Rows::Prompts(rows), notes)
}

fn asked(bytes: &[u8], options: &Options<'_>) -> (Rows, DatasetNotes) {
    if options.multi_turn {
        return questions::multi_turn(bytes, options);
    }
    prompts(questions::read(bytes, options.category.as_deref(), options.count))
}

/// Every data set, in the order of the help.
pub const DATASETS: &[Entry] = &[
    Entry {
        name: "sharegpt",
        file: "conversations, a JSON array or one a line",
        output_flag: Some("sharegpt-output-len"),
        answers: Answers::OfRowsOrDrawn,
        fields: &[],
        flags: &[],
        path_hint: None,
        note: None,
        times: Times::None,
        read: Read::File(|bytes, options| {
            if options.multi_turn {
                return sharegpt::multi_turn(&bytes, options.count);
            }
            let bounds = sharegpt::Bounds::VLLM;
            prompts(sharegpt::read(&bytes, sharegpt::Pairing::RoleAware, bounds, options.count))
        }),
    },
    Entry {
        name: "custom",
        file: "one JSON object a line",
        output_flag: Some("custom-output-len"),
        answers: Answers::OfRows(256),
        fields: &[],
        flags: &[],
        path_hint: None,
        note: None,
        times: Times::None,
        read: Read::File(|bytes, options| custom::prompts_or_turns(&bytes, options)),
    },
    Entry {
        name: "custom_image",
        file: "one JSON object a line, with paths of pictures",
        output_flag: Some("custom-output-len"),
        answers: Answers::OfRows(256),
        fields: &[],
        flags: &["custom-ensure-client-side-data"],
        path_hint: None,
        note: None,
        times: Times::None,
        read: Read::File(|bytes, options| {
            let (open, inside) = (options.open, options.media_inside);
            prompts(custom_media::images(&bytes, open, inside, options.count))
        }),
    },
    Entry {
        name: "custom_audio",
        file: "one JSON object a line, with the path of a sound",
        output_flag: Some("custom-output-len"),
        answers: Answers::OfRows(256),
        fields: &[],
        flags: &[],
        path_hint: None,
        note: None,
        times: Times::None,
        read: Read::File(|bytes, options| {
            prompts(custom_media::sounds(&bytes, options.open, options.count))
        }),
    },
    Entry {
        name: "hf",
        file: "JSON, JSON lines or Parquet with any columns",
        output_flag: Some("hf-output-len"),
        answers: Answers::OfRowsOrDrawn,
        fields: &[Field::Prompt, Field::Output, Field::Label, Field::Tools],
        flags: &[],
        path_hint: Some("nothing is fetched from a hub: give a file that is on this machine"),
        note: Some(
            "nothing is taken from a hub: the rows are those of the local file, and its name \
             decides nothing",
        ),
        times: Times::None,
        read: Read::File(|bytes, options| {
            prompts(hub::read(bytes, &options.columns, options.count))
        }),
    },
    Entry {
        name: "burstgpt",
        file: "CSV of lengths, as BurstGPT is",
        output_flag: None,
        answers: Answers::OfRowsOrDrawn,
        fields: &[Field::Input, Field::Output, Field::Time, Field::Label],
        flags: &["burstgpt-model"],
        path_hint: None,
        note: None,
        times: Times::OnRequest,
        read: Read::File(|bytes, options| {
            let (rows, notes) = lengths::read(&bytes, &options.columns, options.model.as_deref());
            (Rows::Lengths(rows), notes)
        }),
    },
    Entry {
        name: "azure",
        file: "CSV of lengths and times: the Azure LLM traces of 2023 and 2024",
        output_flag: None,
        answers: Answers::OfRowsOrDrawn,
        fields: &[Field::Input, Field::Output, Field::Time, Field::Label],
        flags: &[],
        path_hint: None,
        note: None,
        times: Times::Replayed,
        read: Read::File(|bytes, options| {
            let (rows, notes) = azure::read(&bytes, &options.columns);
            (Rows::Lengths(rows), notes)
        }),
    },
    Entry {
        name: "mooncake",
        file: "one JSON object a line: times in ms, lengths, hashes of blocks of 512 tokens",
        output_flag: None,
        answers: Answers::OfRowsOrDrawn,
        fields: &[],
        flags: &[],
        path_hint: None,
        note: None,
        times: Times::Replayed,
        read: Read::File(|bytes, options| mooncake::read(&bytes, options.count)),
    },
    Entry {
        name: "timed_trace",
        file: "one JSON object a line: a time, and lengths with hashes of blocks or a prompt",
        output_flag: None,
        answers: Answers::OfRowsOrDrawn,
        fields: &[],
        flags: &[
            "timed-trace-chunk-hash-size",
            "timed-trace-sec-multiplier",
            "timed-trace-label-timestamp",
            "timed-trace-label-input-length",
            "timed-trace-label-output-length",
            "timed-trace-label-hash-ids",
        ],
        path_hint: None,
        note: None,
        times: Times::Replayed,
        read: Read::File(|bytes, options| timed_trace::read(&bytes, &options.trace, options.count)),
    },
    Entry {
        name: "servegen",
        file: "chunk-N-trace.csv and chunk-N-dataset.json of each client, as ServeGen has them",
        output_flag: None,
        answers: Answers::OfRowsOrDrawn,
        fields: &[],
        flags: &[],
        path_hint: Some("give the folder of one model, such as data/language/m-large"),
        note: None,
        times: Times::OnRequest,
        read: Read::Folder,
    },
    Entry {
        name: "sonnet",
        file: "lines of a poem, plain text",
        output_flag: Some("sonnet-output-len"),
        answers: Answers::Fixed(150),
        fields: &[],
        flags: &["sonnet-input-len", "sonnet-prefix-len"],
        path_hint: None,
        note: None,
        times: Times::None,
        read: Read::File(|bytes, options| {
            prompts(sonnet::read(&bytes, options.sonnet, options.count))
        }),
    },
    Entry {
        name: "spec_bench",
        file: "question.jsonl of Spec-Bench or MT-Bench",
        output_flag: Some("spec-bench-output-len"),
        answers: Answers::Fixed(256),
        fields: &[],
        flags: &["spec-bench-category"],
        path_hint: None,
        note: None,
        times: Times::None,
        read: Read::File(|bytes, options| asked(&bytes, options)),
    },
    Entry {
        name: "speed_bench",
        file: "one prepared file of SPEED-Bench, SUBSET.jsonl",
        output_flag: Some("speed-bench-output-len"),
        answers: Answers::Fixed(4096),
        fields: &[],
        flags: &["speed-bench-category"],
        path_hint: Some("give one SUBSET.jsonl of the prepared folder"),
        note: None,
        times: Times::None,
        read: Read::File(|bytes, options| asked(&bytes, options)),
    },
];

/// Names of vLLM's data sets that have no file: their prompts are written.
pub const WRITTEN: &[&str] = &["random", "random-mm", "random-rerank", "prefix_repetition"];

/// True for the name of a data set that is written; `-` and `_` are the same.
pub fn is_written(name: &str) -> bool {
    let plain = |name: &str| name.replace('-', "_");
    WRITTEN.iter().any(|known| plain(known) == plain(name))
}

/// The data set of this name; `-` and `_` are the same.
pub fn named(name: &str) -> Option<&'static Entry> {
    let name = name.replace('-', "_");
    DATASETS.iter().find(|entry| entry.name == name)
}

impl Entry {
    /// Reads a file of this data set; `None` where it is no file.
    pub fn load(&self, bytes: Vec<u8>, options: &Options<'_>) -> Option<(Rows, DatasetNotes)> {
        let Read::File(read) = self.read else { return None };
        let (rows, mut notes) = read(bytes, options);
        if notes.refused.is_none() {
            notes.refused = too_many_labels(&rows);
        }
        Some((rows, notes))
    }
}

fn too_many_labels(rows: &Rows) -> Option<Refusal> {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, value) in rows.labels().into_iter().flatten() {
        let seen = values.entry(name).or_default();
        seen.insert(value);
        if seen.len() > MAX_LABEL_VALUES {
            return Some(Refusal::TooManyLabels { name: name.clone() });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use workload::estimate_tokens;

    use super::*;

    fn options() -> Options<'static> {
        Options {
            count: &estimate_tokens,
            columns: Columns::default(),
            category: None,
            model: None,
            sonnet: sonnet::Shape::VLLM,
            open: &|path| Err(format!("{path} does not exist")),
            media_inside: false,
            trace: timed_trace::Shape::default(),
            multi_turn: false,
            scripted: false,
        }
    }

    #[test]
    fn every_data_set_of_vllm_is_read_or_written() {
        // The values of `--dataset-name` of `vllm bench serve` 0.27.1.
        for name in
            "random random-mm random-rerank prefix_repetition sharegpt burstgpt sonnet custom \
            custom_image custom_audio spec_bench speed_bench timed_trace hf"
                .split_whitespace()
        {
            assert_ne!(named(name).is_some(), is_written(name), "{name}");
            assert!(named(&name.replace('_', "-")).is_some() == named(name).is_some());
        }
    }

    #[test]
    fn no_data_set_takes_an_empty_file() {
        for entry in DATASETS {
            for bytes in [&b""[..], b" \r\n\n", b"\xef\xbb\xbf"] {
                let Some((rows, notes)) = entry.load(bytes.to_vec(), &options()) else { continue };
                assert!(rows.is_empty());
                assert_eq!(notes.refused, Some(Refusal::Empty), "{}", entry.name);
            }
            let wide = entry.load(b"\xff\xfea\0".to_vec(), &options());
            let refused = wide.map(|(_, notes)| notes.refused);
            assert!(matches!(refused, None | Some(Some(Refusal::NotUtf8))), "{}", entry.name);
        }
    }

    #[test]
    fn a_label_names_a_few_classes() {
        let file = |values: usize| {
            let line =
                |n: usize| format!("{{\"prompt\":\"hello there\",\"label\":{}}}\n", n % values);
            (0..300).map(line).collect::<String>().into_bytes()
        };
        let custom = named("custom").unwrap();
        let refused = |values| custom.load(file(values), &options()).unwrap().1.refused;
        assert_eq!(refused(MAX_LABEL_VALUES), None);
        let refused = refused(MAX_LABEL_VALUES + 1).unwrap();
        assert!(refused.to_string().starts_with("the label label has more than 100"), "{refused}");
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, head in 0..5_usize) {
            let heads = [
                "",
                "PAR1",
                "[{\"prompt\":",
                "Timestamp,Request tokens,Response tokens\n",
                "{\"timestamp\": 1, \"input_length\": 9, \"hash_ids\": [",
            ];
            let bytes = [heads[head].as_bytes(), &bytes].concat();
            let sonnet = sonnet::Shape { prompts: 2, ..sonnet::Shape::VLLM };
            for entry in DATASETS {
                for multi_turn in [false, true] {
                    entry.load(bytes.clone(), &Options { sonnet, multi_turn, ..options() });
                }
            }
        }
    }
}
