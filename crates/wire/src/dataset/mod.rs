//! Data sets: files of prompts.
//!
//! Each loader takes a file's bytes and gives the prompts that can be used and
//! notes about everything that cannot, with its place and the rule it breaks. A
//! broken row never ends the load: real files have them, and a reader that
//! stops at the first one hides the other thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use measure::Span;

pub mod azure;
#[cfg(test)]
mod case;
pub mod columns;
pub mod custom;
pub mod custom_media;
pub mod hub;
mod instant;
mod json_rows;
mod labels;
pub mod lengths;
pub mod mooncake;
mod parquet_rows;
pub mod questions;
pub mod servegen;
mod sessions;
pub mod sharegpt;
pub mod sonnet;
pub mod table;
pub mod timed_trace;

/// How many skipped entries are listed one by one. The rest is counted, so a
/// file of nothing but rubbish needs no more memory than this.
pub const MAX_LISTED: usize = 1000;

/// The longest name of a row that is kept in the notes, in characters.
const MAX_ID_CHARS: usize = 120;

/// What a loader has to say about a file besides its prompts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatasetNotes {
    /// Rows, or lines that are not blank.
    pub entries: u64,
    /// Lines with nothing on them. They are no error.
    pub blank_lines: u64,
    /// The first [`MAX_LISTED`] entries that gave no prompt.
    pub skipped: Vec<Skipped>,
    /// How many entries gave no prompt, by [`Reason::name`].
    pub skipped_by_reason: BTreeMap<&'static str, u64>,
    /// The entry, counted from 1, in the middle of which the file ends.
    pub truncated_at: Option<u64>,
    /// The file's columns, where it has a head that names them.
    pub columns: Option<BTreeSet<String>>,
    /// Keys of rows that are known and were not taken.
    pub set_aside: BTreeSet<&'static str>,
    /// When each row came, in time from the earliest of them and in the order of
    /// the rows; empty where the file does not say.
    pub times: Vec<Span>,
    /// Why the whole file gave nothing.
    pub refused: Option<Refusal>,
}

/// One entry that gave no prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Where it stands.
    pub place: Place,
    /// Its own name, where it has one; cut when long.
    pub id: Option<String>,
    /// The rule that it breaks.
    pub reason: Reason,
}

/// A place in a data file, counted from 1 as an editor counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The n-th row of an array.
    Row(u64),
    /// The n-th line, blank ones counted.
    Line(u64),
}

impl Place {
    /// The number alone.
    pub const fn number(self) -> u64 {
        match self {
            Self::Row(number) | Self::Line(number) => number,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(number) => write!(f, "row {number}"),
            Self::Line(number) => write!(f, "line {number}"),
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "{} ({id}): {}", self.place, self.reason),
            None => write!(f, "{}: {}", self.place, self.reason),
        }
    }
}

/// Why an entry gave no prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Not JSON; what the parser said.
    #[error("broken JSON: {0}")]
    BrokenJson(String),
    /// JSON, but no object.
    #[error("not a JSON object")]
    NotAnObject,
    /// No list of turns.
    #[error("no conversations")]
    NoConversations,
    /// A list of turns too short for a question and an answer.
    #[error("fewer than two turns")]
    FewerThanTwoTurns,
    /// Nobody asks.
    #[error("no human turn")]
    NoHumanTurn,
    /// A question and no answer after it.
    #[error("no answer turn")]
    NoAnswerTurn,
    /// A turn of the first pair has no text.
    #[error("turn without value")]
    TurnWithoutValue,
    /// A prompt without a letter in it.
    #[error("empty prompt")]
    EmptyPrompt,
    /// An answer without a letter in it: it gives no length to ask for.
    #[error("empty answer")]
    EmptyAnswer,
    /// Neither `prompt` nor `messages`.
    #[error("no prompt")]
    NoPrompt,
    /// Both `prompt` and `messages`.
    #[error("both prompt and messages")]
    TwoPrompts,
    /// `prompt` is no string.
    #[error("prompt is not a string")]
    PromptNotText,
    /// `messages` is no list of roles with text.
    #[error("messages is not a list of {{role, content}} with text, images or audio")]
    BadMessages,
    /// `content` is no list of texts and images.
    #[error("content is not a list of parts of type text, image or image_url")]
    BadParts,
    /// A row of images without one.
    #[error("no image_files: a path or a list of paths")]
    NoImage,
    /// A row of sounds without one.
    #[error("no audio: the path of a sound")]
    NoAudio,
    /// A file that cannot be read; what was said of it.
    #[error("{0}")]
    File(String),
    /// A file that is no picture.
    #[error("{0} is no PNG, JPEG, GIF or WebP picture")]
    NotAnImage(String),
    /// A file that is no sound by its name.
    #[error("{0} has no suffix of a sound, such as .wav or .mp3")]
    NotASound(String),
    /// An address where the bytes are wanted.
    #[error(
        "an image at an address is not fetched here; give a file, or leave out --custom-ensure-client-side-data"
    )]
    NotFetched,
    /// More media than memory should hold.
    #[error("the files before it are more than 2 GiB together")]
    TooMuchMedia,
    /// An output length of 0.
    #[error("zero length")]
    ZeroLength,
    /// An output length below 0.
    #[error("negative length")]
    NegativeLength,
    /// An output length that is no whole number.
    #[error("output length is not a whole number")]
    BadLength,
    /// An output length over the limit of a schedule.
    #[error("output length is over {}", workload::MAX_TOKENS)]
    LengthTooLarge,
    /// A label that is no short text, number or truth value.
    #[error("a label is not a text of 1 to 120 characters, a number, true or false")]
    BadLabel,
    /// A member of a request body that no server takes so.
    #[error("{0} is not an object, nor a text where one is taken")]
    BadMember(&'static str),
    /// `tools` is no list of objects.
    #[error("tools is not a list of objects")]
    BadTools,
    /// `priority` is no whole number.
    #[error("priority is not a whole number of 32 bits")]
    BadPriority,
    /// A row of a trace without response: the request failed there.
    #[error("failed request, without response tokens")]
    FailedRequest,
    /// A prompt length over the limit of a schedule.
    #[error("prompt length is over {}", workload::MAX_TOKENS)]
    InputTooLarge,
    /// A length of a trace that is no whole number.
    #[error("{0} is not a whole number")]
    NoNumber(&'static str),
    /// A time of a trace that is neither seconds nor a date.
    #[error("time is neither a number of seconds nor a date like 2023-11-16 18:15:46.68")]
    BadTime,
    /// No time under this key.
    #[error("no time: the row has no {0}")]
    NoTime(String),
    /// No length under this key.
    #[error("the row has neither a prompt nor {0}")]
    NoKey(String),
    /// Hashes that name other blocks than the prompt has.
    #[error("{ids} hash ids for {tokens} tokens, which need {needed} of {size}")]
    BlockCount {
        /// Hashes.
        ids: u64,
        /// Length of the prompt.
        tokens: u32,
        /// Tokens of a block.
        size: u32,
        /// Blocks of the prompt.
        needed: u32,
    },
    /// Hashes that are none.
    #[error("hash ids are not a list of texts or whole numbers under 2^64")]
    BadHashId,
    /// A text among lengths, or the other way round.
    #[error("a prompt among rows of lengths, or lengths among prompts; a file has one of the two")]
    OtherKind,
    /// Not among what was asked for.
    #[error("not of the {0} asked for")]
    NotAskedFor(&'static str),
    /// A line of a table with another number of fields than its head.
    #[error("not as many fields as the first line has columns")]
    FieldCount,
    /// `session` or `id` is neither a text nor a whole number.
    #[error("{0} is not a text of 1 to 120 characters or a number")]
    BadName(&'static str),
    /// `parents` is no list of ids.
    #[error("parents is not a list of ids")]
    BadParents,
    /// `think_ms` is no pause.
    #[error("think_ms is not a number from 0 to {}", workload::conversation::MAX_THINK.ms())]
    BadThink,
    /// `history` is no truth value.
    #[error("history is not true or false")]
    BadHistory,
    /// `answer` is neither a text nor messages of the assistant.
    #[error("answer is not a text or messages of the assistant")]
    BadAnswer,
    /// A row with parents belongs to a session.
    #[error("parents without a session: rows that wait for each other share one")]
    ParentsWithoutSession,
    /// A parent that is not there.
    #[error("it waits for {0}, which is the id of no row")]
    UnknownParent(String),
    /// A parent on another worker, perhaps.
    #[error("it waits for {0}, which is in another session")]
    ParentElsewhere(String),
    /// An id that means two rows.
    #[error("the id {0} stands twice in its session")]
    SameId(String),
    /// Turns that wait for each other.
    #[error("it waits for itself, by way of the rows that it waits for")]
    Circle,
    /// Over the limit of a chain.
    #[error("more than {} turns one after the other", workload::conversation::MAX_TURNS)]
    TooDeep,
    /// Over the limit of a fan-out.
    #[error(
        "more than {} turns wait for one, or one for more than that",
        workload::conversation::MAX_FAN_OUT
    )]
    TooWide,
    /// Over the limit of a session.
    #[error("more turns than one conversation may have")]
    TooManyTurns,
    /// A row that says nothing after the row before it.
    #[error("no message but those of the turn before it and an answer to that")]
    NothingNew,
    /// The script lacks an answer that later prompts should hold.
    #[error("no scripted answer, which --history scripted needs for turns that go on")]
    NoScriptedAnswer,
    /// Another row of the session is bad.
    #[error("in the session of line {0}")]
    InBadSession(u64),
    /// Under the filter's bound.
    #[error("prompt shorter than {0} tokens")]
    PromptTooShort(u32),
    /// Under the filter's bound.
    #[error("answer shorter than {0} tokens")]
    AnswerTooShort(u32),
    /// Over the filter's bound.
    #[error("prompt longer than {0} tokens")]
    PromptTooLong(u32),
    /// Over the filter's bound.
    #[error("prompt and answer together longer than {0} tokens")]
    PairTooLong(u32),
}

impl Reason {
    /// The name in JSON and in counts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::BrokenJson(_) => "broken_json",
            Self::NotAnObject => "not_an_object",
            Self::NoConversations => "no_conversations",
            Self::FewerThanTwoTurns => "fewer_than_two_turns",
            Self::NoHumanTurn => "no_human_turn",
            Self::NoAnswerTurn => "no_answer_turn",
            Self::TurnWithoutValue => "turn_without_value",
            Self::EmptyPrompt => "empty_prompt",
            Self::EmptyAnswer => "empty_answer",
            Self::NoPrompt => "no_prompt",
            Self::TwoPrompts => "two_prompts",
            Self::PromptNotText => "prompt_not_text",
            Self::BadMessages => "bad_messages",
            Self::BadParts => "bad_parts",
            Self::NoImage => "no_image",
            Self::NoAudio => "no_audio",
            Self::File(_) => "no_file",
            Self::NotAnImage(_) => "not_an_image",
            Self::NotASound(_) => "not_a_sound",
            Self::NotFetched => "not_fetched",
            Self::TooMuchMedia => "too_much_media",
            Self::ZeroLength => "zero_length",
            Self::NegativeLength => "negative_length",
            Self::BadLength => "bad_length",
            Self::LengthTooLarge => "length_too_large",
            Self::BadLabel => "bad_label",
            Self::BadMember(_) => "bad_member",
            Self::BadTools => "bad_tools",
            Self::BadPriority => "bad_priority",
            Self::FailedRequest => "failed_request",
            Self::InputTooLarge => "input_too_large",
            Self::NoNumber(_) => "no_number",
            Self::BadTime => "bad_time",
            Self::NoTime(_) => "no_time",
            Self::NoKey(_) => "no_length",
            Self::BlockCount { .. } => "block_count",
            Self::BadHashId => "bad_hash_id",
            Self::OtherKind => "other_kind",
            Self::NotAskedFor(_) => "not_asked_for",
            Self::FieldCount => "field_count",
            Self::BadName(_) => "bad_name",
            Self::BadParents => "bad_parents",
            Self::BadThink => "bad_think",
            Self::BadHistory => "bad_history",
            Self::BadAnswer => "bad_answer",
            Self::ParentsWithoutSession => "parents_without_session",
            Self::UnknownParent(_) => "unknown_parent",
            Self::ParentElsewhere(_) => "parent_elsewhere",
            Self::SameId(_) => "same_id",
            Self::Circle => "circle",
            Self::TooDeep => "too_deep",
            Self::TooWide => "too_wide",
            Self::TooManyTurns => "too_many_turns",
            Self::NothingNew => "nothing_new",
            Self::NoScriptedAnswer => "no_scripted_answer",
            Self::InBadSession(_) => "in_bad_session",
            Self::PromptTooShort(_) => "prompt_too_short",
            Self::AnswerTooShort(_) => "answer_too_short",
            Self::PromptTooLong(_) => "prompt_too_long",
            Self::PairTooLong(_) => "pair_too_long",
        }
    }
}

/// Why a whole file gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing but space.
    #[error("the file is empty")]
    Empty,
    /// It begins with a mark of UTF-16 or UTF-32.
    #[error("the file is not UTF-8; save it as UTF-8 and try again")]
    NotUtf8,
    /// Neither of the two forms.
    #[error("the file is neither a JSON array of rows nor one JSON object a line")]
    NotRows,
    /// A column that is needed is not there.
    #[error(
        "there is no column {wanted}; the file has {found}; name the one to take with \
         --dataset-column {field}=COLUMN"
    )]
    NoColumn {
        /// What it is needed for.
        field: &'static str,
        /// The names that were looked for.
        wanted: String,
        /// The names that are there.
        found: String,
    },
    /// A column of labels that is no such thing.
    #[error(
        "the label {name} has more than {MAX_LABEL_VALUES} different values; a label names a few \
         classes of requests, take another column"
    )]
    TooManyLabels {
        /// The label.
        name: String,
    },
    /// A Parquet file that cannot be read; what the reader said.
    #[error("the Parquet file cannot be read: {0}")]
    Parquet(String),
    /// A Parquet file in a compression that is not known here.
    #[error(
        "the Parquet file is compressed with {0}; write it again with snappy, or give its rows as \
         JSON lines"
    )]
    ParquetCodec(String),
    /// More media than memory should hold.
    #[error("its pictures or sounds are more than 2 GiB together; split the data set")]
    TooMuchMedia,
    /// Lines that are all longer than the prompt is to be.
    #[error(
        "no line of the file fits into {0} tokens beside the prefix; raise --sonnet-input-len or \
         lower --sonnet-prefix-len"
    )]
    LinesTooLong(u32),
}

/// The most values that one label may have in a file: each is a row of tables
/// in the report.
pub const MAX_LABEL_VALUES: usize = 100;

impl DatasetNotes {
    /// How many entries gave no prompt, listed or not.
    pub fn skipped_count(&self) -> u64 {
        self.skipped_by_reason.values().sum()
    }

    fn skip(&mut self, place: Place, id: Option<String>, reason: Reason) {
        *self.skipped_by_reason.entry(reason.name()).or_default() += 1;
        if self.skipped.len() < MAX_LISTED {
            let id = id.map(|id| id.chars().take(MAX_ID_CHARS).collect());
            self.skipped.push(Skipped { place, id, reason });
        }
    }

    fn refused(refusal: Refusal) -> Self {
        Self { refused: Some(refusal), ..Self::default() }
    }
}

/// A file's text without its byte order mark. UTF-16 is told apart here,
/// because as JSON it would only give a riddle.
fn without_mark(bytes: &[u8]) -> Result<&[u8], Refusal> {
    let bytes = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => rest,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Err(Refusal::NotUtf8),
        _ => bytes,
    };
    if is_blank(bytes) { Err(Refusal::Empty) } else { Ok(bytes) }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// One line of a file.
struct Line<'a> {
    /// From 1.
    number: u64,
    /// Without its end.
    bytes: &'a [u8],
    /// False only for a last line that the file just stops in.
    ended: bool,
}

/// The lines of a file, ended by LF or CR LF. What follows the last end is a
/// line when it is not empty.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    bytes.split_inclusive(|&byte| byte == b'\n').zip(1..).map(|(line, number)| {
        let ended = line.ends_with(b"\n");
        let bytes = line.strip_suffix(b"\n").unwrap_or(line);
        Line { number, bytes: bytes.strip_suffix(b"\r").unwrap_or(bytes), ended }
    })
}

/// Hands over each line that is not blank, and counts those that are.
fn each_line<'b>(
    bytes: &'b [u8],
    notes: &mut DatasetNotes,
    take: &mut dyn FnMut(&mut DatasetNotes, Line<'b>),
) {
    for line in lines(bytes) {
        if is_blank(line.bytes) {
            notes.blank_lines += 1;
        } else {
            take(notes, line);
        }
    }
}

/// The lines of a file that are not blank, with their numbers.
fn each_line_of(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    lines(bytes).filter(|line| !is_blank(line.bytes)).map(|line| (line.number, line.bytes))
}

/// What the parser says, without the line number that it counts inside the
/// slice and that would mislead beside ours. The column is right only where an
/// entry is a line.
fn broken_json(error: &serde_json::Error, place: Place) -> Reason {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    Reason::BrokenJson(match place {
        Place::Row(_) => what.to_owned(),
        Place::Line(_) => format!("{what} at column {}", error.column()),
    })
}
