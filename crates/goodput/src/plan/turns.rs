//! The flags that make conversations of requests.

use measure::facts::WorkloadFacts;
use workload::prompt::PromptSource;
use workload::{Conversation, Conversations, History, Script, Think, TurnCount, Turns};

use super::lengths;
use super::load::{Units, think_of};
use crate::flags::Reader;

/// Flags that mean something only where there are later turns.
const OF_TURNS: &[&str] = &["turn-think-time", "history"];

/// The conversations: those of a data set, or of `--turns`.
pub(super) fn conversations(
    reader: &mut Reader<'_>,
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    listed: Option<Vec<Conversation>>,
    facts: &mut WorkloadFacts,
) -> Option<Conversations> {
    let settings = reader.settings;
    let count: Option<TurnCount> = settings
        .text("turns")
        .and_then(|text| text.parse().map_err(|error| reader.wrong("turns", error)).ok());
    let synthetic =
        !settings.has("prompt") && matches!(settings.text("dataset-name"), None | Some("random"));
    if settings.has("turns") && !synthetic {
        reader.wrong(
            "turns",
            "is the number of turns of synthetic conversations; those of a data set are its own, \
             see --multi-turn",
        );
    }
    if settings.is_on("multi-turn") && synthetic {
        reader.wrong(
            "multi-turn",
            "takes all turns of a data set's conversations; say --turns for synthetic ones",
        );
    }
    let history = reader
        .choice("history", &[History::Real, History::Scripted].map(|one| (one.name(), one)))
        .unwrap_or_default();
    if settings.has("turn-input-len") && count.is_none() {
        reader.wrong("turn-input-len", "needs --turns: it is the length of later turns");
    }
    let script = match (listed, count) {
        (Some(all), _) => Script::Listed(all),
        (None, Some(count)) => {
            if history == History::Scripted {
                reader.wrong(
                    "history",
                    "scripted answers are those of a data set; synthetic turns have none",
                );
            }
            Script::Written(written(reader, open, count, facts))
        }
        (None, None) => {
            // A data set that could not be read has said so.
            if settings.is_on("multi-turn") && !synthetic && reader.errors.is_empty() {
                reader.wrong(
                    "multi-turn",
                    "this workload has no turns; sharegpt, custom, spec_bench and speed_bench do",
                );
            }
            let lone = OF_TURNS.iter().find(|flag| settings.has(flag));
            if let Some(flag) = lone.filter(|_| reader.errors.is_empty()) {
                reader.wrong(
                    flag,
                    "concerns later turns, and there are none; give --turns, --multi-turn or a \
                     data set with sessions",
                );
            }
            return None;
        }
    };
    facts.notes.push(match history {
        History::Real => "prompts of later turns hold the answers of this run".to_owned(),
        History::Scripted => "prompts of later turns hold the answers of the file".to_owned(),
    });
    let think = think_of(reader, "turn-think-time");
    if let Err(error) = think.check() {
        reader.wrong("turn-think-time", error);
        return Some(Conversations { script, think: Think::NONE, history });
    }
    Some(Conversations { script, think, history })
}

/// Turns that are written, told in the facts.
fn written(
    reader: &mut Reader<'_>,
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    count: TurnCount,
    facts: &mut WorkloadFacts,
) -> Turns {
    const FLAG: &str = "turn-input-len";
    let given = reader.settings.has(FLAG);
    // The default is never taken: without the flag first turns say how long.
    let input = given.then(|| lengths::lengths(reader, open, FLAG, 1, 0.0, None));
    facts.source = format!("{}, conversations of {count} turns", facts.source);
    let later = input.as_ref().map_or_else(
        || format!("{} in each turn", facts.input_lengths),
        |input| {
            format!("{} in first turns, {} in later ones", facts.input_lengths, input.describe())
        },
    );
    facts.input_lengths = format!("{later}, each after the turns before it");
    Turns { count, input }
}

/// What the load lets go one by one.
pub(super) fn units(conversations: Option<&Conversations>, prompts: &PromptSource) -> Units {
    let listed = match conversations.map(|conversations| &conversations.script) {
        Some(Script::Listed(all)) => Some(all.len()),
        Some(Script::Written(_)) | None => prompts.listed(),
    };
    Units { listed, are_conversations: conversations.is_some() }
}

/// The header that names each request's conversation, checked to be one.
pub(super) fn session_header(reader: &mut Reader<'_>) -> Option<String> {
    const FLAG: &str = "session-header";
    let name = reader.settings.text(FLAG)?;
    // The characters of a token in RFC 9110.
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        reader.wrong(
            FLAG,
            format!("{name:?} is no name of a header; write one such as x-session-id"),
        );
    }
    Some(name.to_owned())
}
