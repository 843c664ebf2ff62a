//! Questions with a category: Spec-Bench's `question.jsonl`, MT-Bench, and the
//! prepared files of SPEED-Bench.
//!
//! ```text
//! {"question_id": 81, "category": "writing", "turns": ["Compose a travel post.", "…"]}
//! {"category": "coding", "messages": [{"role": "user", "content": "…"}]}
//! ```
//!
//! A row gives one prompt, unless all turns are asked for: its first turn, or
//! its messages up to the first one of the user. The category is the label `category`.

use serde_json::{Map, Value};
use workload::{Content, Prompt};

use super::table::{Options, Rows};
use super::{DatasetNotes, Reason, custom, json_rows, labels, sessions};

/// Reads the file; of one category only where one is asked for.
pub fn read(
    bytes: &[u8],
    category: Option<&str>,
    count: &dyn Fn(&str) -> u32,
) -> (Vec<Prompt>, DatasetNotes) {
    let mut prompts = Vec::new();
    let notes = json_rows::each(bytes, &mut |notes, place, bytes| {
        let row = json_rows::object(bytes, place);
        match row.and_then(|row| prompt_of(&row, category, count)) {
            Ok(prompt) => prompts.push(Prompt { source_row: Some(place.number()), ..prompt }),
            Err(reason) => notes.skip(place, None, reason),
        }
    });
    (prompts, notes)
}

/// Reads the file and gives every row as a conversation of all its turns.
pub fn multi_turn(bytes: &[u8], options: &Options<'_>) -> (Rows, DatasetNotes) {
    let mut builder = sessions::Builder::new(options.scripted);
    let notes = json_rows::each(bytes, &mut |notes, place, bytes| {
        let turns = json_rows::object(bytes, place).and_then(|row| {
            let prompt = prompt_of(&row, options.category.as_deref(), options.count)?;
            let prompt = Prompt { source_row: Some(place.number()), ..prompt };
            turns_of(&row, prompt, options.count)
        });
        if let Err(reason) = turns.and_then(|turns| builder.add_chain(turns)) {
            notes.skip(place, None, reason);
        }
    });
    (builder.rows(), notes)
}

/// All turns of a row whose first one is `first`.
fn turns_of(
    row: &Map<String, Value>,
    first: Prompt,
    count: &dyn Fn(&str) -> u32,
) -> Result<Vec<sessions::ScriptedTurn>, Reason> {
    if let Some(Value::Array(turns)) = row.get("turns") {
        let turn = |turn: &Value| {
            let text = turn.as_str().ok_or(Reason::PromptNotText)?;
            let content = Content::Text(text.to_owned());
            let input_tokens = Some(custom::tokens_of(&content, count)?);
            Ok((Prompt { content, input_tokens, ..first.clone() }, Vec::new()))
        };
        return turns.iter().map(turn).collect();
    }
    let messages = custom::messages_of(row.get("messages").unwrap_or(&Value::Null))?;
    // Without answers between them each message of the user is a turn.
    if messages.iter().any(|message| message.role == "assistant") {
        return Ok(sessions::cut(Prompt { content: Content::Messages(messages), ..first }, count));
    }
    let mut turns: Vec<sessions::ScriptedTurn> = Vec::new();
    let mut added = Vec::new();
    for message in messages {
        let asks = message.role == "user";
        added.push(message);
        if asks {
            let content = Content::Messages(std::mem::take(&mut added));
            let input_tokens = Some(custom::tokens_of(&content, count)?);
            turns.push((Prompt { content, input_tokens, ..first.clone() }, Vec::new()));
        }
    }
    Ok(turns)
}

fn prompt_of(
    row: &Map<String, Value>,
    wanted: Option<&str>,
    count: &dyn Fn(&str) -> u32,
) -> Result<Prompt, Reason> {
    let category = row.get("category").filter(|category| !category.is_null());
    let category = category.map(labels::value).transpose()?;
    if let Some(wanted) = wanted
        && category.as_deref().is_none_or(|category| !category.eq_ignore_ascii_case(wanted))
    {
        return Err(Reason::NotAskedFor("category"));
    }
    let content = match (row.get("turns"), row.get("messages")) {
        (Some(Value::Array(turns)), _) => match turns.first() {
            Some(Value::String(turn)) => Content::Text(turn.clone()),
            _ => return Err(Reason::PromptNotText),
        },
        (_, Some(messages)) => {
            let mut messages = custom::messages_of(messages)?;
            let asks = messages.iter().position(|message| message.role == "user");
            messages.truncate(asks.ok_or(Reason::NoHumanTurn)? + 1);
            Content::Messages(messages)
        }
        _ => return Err(Reason::NoPrompt),
    };
    let input_tokens = custom::tokens_of(&content, count)?;
    Ok(Prompt {
        content,
        input_tokens: Some(input_tokens),
        max_output_tokens: None,
        source_row: None,
        labels: category.map(|category| ("category".to_owned(), category)).into_iter().collect(),
        body: Vec::new(),
        priority: None,
    })
}

#[cfg(test)]
mod tests {
    use workload::estimate_tokens;

    use super::*;

    const FILE: &[u8] = br#"{"question_id": 81, "category": "writing", "turns": ["Compose a post.", "Now shorter."], "reference": []}
{"question_id": 160, "category": "math", "turns": ["What is 6 times 7?"]}
{"category": "coding", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Sort a list."}, {"role": "user", "content": "Now backwards."}]}
{"category": "math", "turns": []}
{"turns": ["No category."]}
"#;

    fn texts(prompts: &[Prompt]) -> Vec<String> {
        let text = |prompt: &Prompt| match &prompt.content {
            Content::Texts(_) => panic!("one prompt"),
            Content::Text(text) => text.clone(),
            Content::Messages(messages) => messages.last().unwrap().content.clone(),
        };
        prompts.iter().map(text).collect()
    }

    #[test]
    fn the_first_turn_is_the_prompt_and_the_category_a_label() {
        let (prompts, notes) = read(FILE, None, &estimate_tokens);
        assert_eq!(
            texts(&prompts),
            ["Compose a post.", "What is 6 times 7?", "Sort a list.", "No category."]
        );
        let label = |value: &str| vec![("category".to_owned(), value.to_owned())];
        let labels: Vec<_> = prompts.iter().map(|prompt| prompt.labels.clone()).collect();
        assert_eq!(labels, [label("writing"), label("math"), label("coding"), Vec::new()]);
        assert_eq!(notes.skipped.len(), 1);
        assert_eq!(notes.skipped[0].to_string(), "line 4: prompt is not a string");
    }

    #[test]
    fn a_category_is_chosen_by_its_name() {
        let (prompts, notes) = read(FILE, Some("Math"), &estimate_tokens);
        assert_eq!(texts(&prompts), ["What is 6 times 7?"]);
        assert_eq!(notes.skipped_by_reason["not_asked_for"], 3);
        assert_eq!(notes.skipped[0].to_string(), "line 1: not of the category asked for");
    }
}
