//! Whether prompts go out as texts or as a tokenizer's ids.

use std::sync::Arc;

use measure::facts::WorkloadFacts;
use wire::api::Api;
use workload::Tokenizer;
use workload::prompt::{Content, PromptSource};

use crate::flags::Reader;
use crate::tokenizer::SERVER;

/// True when prompts are to be sent as ids. What cannot be is told.
pub(super) fn sends_ids(
    reader: &mut Reader<'_>,
    api: Api,
    prompts: &PromptSource,
    conversations: bool,
    tokenizer: Option<&Arc<dyn Tokenizer>>,
    facts: &mut WorkloadFacts,
) -> bool {
    const FLAG: &str = "prompt-format";
    let ids = reader.choice(FLAG, &[("text", false), ("token-ids", true)]).unwrap_or(false);
    if !ids {
        return false;
    }
    if !api.takes_ids() {
        let rule = format!("{} takes texts only; ids go to openai and sglang", api.name());
        reader.wrong(FLAG, rule);
    } else if reader.settings.text("tokenizer") == Some(SERVER) {
        let rule = "ids are made while the run goes on, and the server is not asked then; give a \
                    --tokenizer that lies on this machine";
        reader.wrong(FLAG, rule);
    } else if tokenizer.is_none() && !reader.settings.has("tokenizer") {
        reader.wrong(FLAG, "ids are a tokenizer's; give the --tokenizer of the model");
    } else if conversations || !are_texts(prompts) {
        let rule = "messages and turns have no ids before the server's template is around them; \
                    leave it out";
        reader.wrong(FLAG, rule);
    }
    facts.notes.push("prompts are sent as token ids".to_owned());
    true
}

fn are_texts(prompts: &PromptSource) -> bool {
    match prompts {
        PromptSource::List { prompts, .. } => {
            prompts.iter().all(|prompt| matches!(prompt.content, Content::Text(_)))
        }
        PromptSource::Mix(mix) => mix.parts().iter().all(|part| are_texts(&part.prompts)),
        PromptSource::Synthetic { .. }
        | PromptSource::Exact { .. }
        | PromptSource::Lengths { .. } => true,
    }
}
