//! What a target is asked before a run, and never during one: how its own
//! tokenizer counts, and whether its context holds what is planned.

use std::sync::Arc;

use drive::tokenizer::{AskError, ServerTokenizer};
use measure::Span;
use workload::Tokenizer;
use workload::prompt::RunNonce;
use workload::schedule::Schedule;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::UsageError;
use crate::plan::Plan;
use crate::target::Resolved;

/// How long one answer of the tokenizer may take that was asked for.
const WITHIN: Span = Span::from_ms(10_000);

/// How long one answer may take that is only a second opinion.
const OPINION_WITHIN: Span = Span::from_ms(2_000);

/// Prompts that a second opinion is asked for.
const OPINIONS: u32 = 5;

/// Makes the plan's lengths exact by the server's own tokenizer.
pub(crate) fn count_by_server(
    plan: &mut Plan,
    resolved: &Resolved,
) -> Result<Arc<ServerTokenizer>, Failure> {
    let server = Arc::new(find(resolved, WITHIN).map_err(unasked)?);
    let counted = plan.count_by(Arc::<ServerTokenizer>::clone(&server));
    // What was not answered has no tokens, so nothing else that is wrong with
    // the counts means anything then.
    answered(&server)?;
    counted.map_err(|error| UsageError::new("--tokenizer", error))?;
    Ok(server)
}

/// Fails when a question to the tokenizer got no answer.
pub(crate) fn answered(server: &ServerTokenizer) -> Result<(), Failure> {
    server.failure().map_or(Ok(()), |error| Err(unasked(error)))
}

fn find(resolved: &Resolved, within: Span) -> Result<ServerTokenizer, AskError> {
    // Of several addresses the first answers for all: they serve one model.
    let Some(target) = resolved.targets.first().cloned() else {
        return Err(AskError::Answer(resolved.shown.clone()));
    };
    let headers = resolved.headers.clone();
    ServerTokenizer::find(target, &resolved.root, headers, &resolved.model, within)
}

fn unasked(error: AskError) -> Failure {
    match error {
        AskError::Unreachable { .. } | AskError::Key { .. } => {
            Failure::new(Exit::Unreachable, format!("--tokenizer server: {error}"))
        }
        error => UsageError::new("--tokenizer server", error).into(),
    }
}

/// Holds a few prompts, exact by a tokenizer on this machine, against the
/// server's own count. The difference is told: the user may want it so.
pub(crate) fn second_opinion(
    plan: &Plan,
    resolved: &Resolved,
    schedule: &Schedule,
    nonce: RunNonce,
) -> Option<String> {
    let ours = plan.tokenizer.as_ref().filter(|_| !plan.asks_server)?;
    let lexicon = schedule.spec().prompts.exact_lexicon();
    let lexicon = lexicon.filter(|_| resolved.embedded.is_none())?;
    let server = find(resolved, OPINION_WITHIN).ok()?;
    let counts = schedule.counts(&server, nonce, OPINIONS);
    let around = |added: u32| u64::from(counts.texts) * u64::from(added);
    let added = if plan.adds_special_tokens() { server.added() } else { 0 };
    let (asked, found) = (counts.asked + around(lexicon.special()), counts.found + around(added));
    if server.failure().is_some() || asked == found {
        return None;
    }
    Some(format!(
        "the server counts {found} tokens in {} prompts where the tokenizer {} counts {asked}, \
         {:.3} times as many: the lengths are not the server's; --tokenizer server counts as it does",
        counts.texts,
        ours.name(),
        found as f64 / asked as f64,
    ))
}

/// Refuses prompts of ours that the model's context cannot hold; of rows of a
/// file, it says how many there are.
pub(crate) fn fits(resolved: &Resolved, schedule: &Schedule) -> Result<Option<String>, Failure> {
    let Some(context) = resolved.context else { return Ok(None) };
    let whose = format!("that the server tells of {}", resolved.model);
    fits_in(context, &whose, schedule)
}

/// The same for a context of so many tokens, `whose` in words.
pub(crate) fn fits_in(
    context: u32,
    whose: &str,
    schedule: &Schedule,
) -> Result<Option<String>, Failure> {
    let Some(beyond) = schedule.beyond(context) else { return Ok(None) };
    let of_rows = schedule.spec().prompts.is_of_rows();
    let (input, output) = (beyond.input, beyond.output);
    let longest = format!(
        "the longest has {input} tokens and up to {output} of output, {} together",
        u64::from(input) + u64::from(output)
    );
    if of_rows && beyond.requests < beyond.of {
        return Ok(Some(format!(
            "{} of {} prompts with their outputs are longer than the model's context of {context} \
             tokens, and the server may refuse them: {longest}",
            beyond.requests, beyond.of
        )));
    }
    let flags = if of_rows { "--osl" } else { "--isl or --osl" };
    let rule = format!(
        "{} of {} prompts with their outputs are longer than the context of {context} tokens \
         {whose}: {longest}; lower {flags}, or serve the model with a longer context",
        beyond.requests, beyond.of
    );
    let flag = if of_rows { "--dataset-path" } else { "--isl" };
    Err(UsageError::new(flag, rule).into())
}
