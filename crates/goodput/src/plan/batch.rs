//! Requests that are answered by vectors or scores: several texts in one, and
//! what such an answer has no figure of.

use measure::facts::WorkloadFacts;
use wire::api::{Api, Yields};
use workload::prompt::PromptSource;
use workload::schedule::OutputLength;
use workload::{Batch, Lengths, Prefixes, Ranking};

use crate::flags::Reader;

/// The data set of queries with documents.
pub(super) const RANKING: &str = "random-rerank";

/// What a request carries of written texts.
pub(super) fn batch(
    reader: &mut Reader<'_>,
    api: Api,
    prompts: &PromptSource,
    facts: &mut WorkloadFacts,
) -> Batch {
    let name = reader.settings.text("dataset-name").unwrap_or("random").replace('_', "-");
    let size: u32 = reader.value("random-batch-size", "a whole number from 1").unwrap_or(1);
    let apart = reader.settings.is_on("no-reranker");
    let yields = api.entry().yields;
    if name == RANKING {
        if yields != Yields::Scores {
            let rule = format!("{RANKING} needs an API that ranks; give --backend rerank");
            reader.wrong("dataset-name", rule);
            return Batch::One;
        }
        return ranking(reader, prompts, size, apart, facts);
    }
    if yields == Yields::Scores {
        let rule =
            format!("{} ranks documents under a query; give --dataset-name {RANKING}", api.name());
        reader.wrong("backend", rule);
    }
    if apart {
        reader.wrong("no-reranker", format!("concerns --dataset-name {RANKING} only"));
    }
    if size == 1 {
        return Batch::One;
    }
    let takes = matches!(api, Api::Embeddings | Api::Pooling);
    if !takes || name != "random" {
        let rule = "several texts in one request are random ones for openai-embeddings, \
                    vllm-pooling or rerank";
        reader.wrong("random-batch-size", rule);
        return Batch::One;
    }
    facts.input_lengths = format!("{size} texts of {}", facts.input_lengths);
    checked(reader, Batch::Texts(size))
}

/// Several texts have no beginning in common.
pub(super) fn without_prefixes(reader: &mut Reader<'_>, batch: &Batch, prefixes: Prefixes) {
    if *batch != Batch::One && prefixes != Prefixes::NONE {
        let given = ["shared-prefix-len", "session-prefix-len"];
        let flag = given.into_iter().find(|flag| reader.settings.has(flag));
        let rule = "a request of several texts has no prefix; leave it out";
        reader.wrong(flag.unwrap_or("dataset-name"), rule);
    }
}

/// A query and documents, by vLLM's arithmetic.
fn ranking(
    reader: &mut Reader<'_>,
    prompts: &PromptSource,
    size: u32,
    apart: bool,
    facts: &mut WorkloadFacts,
) -> Batch {
    let lengths = match prompts {
        PromptSource::Synthetic { input } | PromptSource::Exact { input, .. } => Some(input),
        _ => None,
    };
    let (mean, spread) = match lengths {
        Some(Lengths::Fixed(mean)) => (mean.get(), 0.0),
        Some(Lengths::Uniform { mean, spread }) => (mean.get(), *spread),
        _ => {
            let rule = format!("{RANKING} halves one number; give one, and --random-range-ratio");
            reader.wrong("isl", rule);
            return Batch::One;
        }
    };
    // Where all are embedded apart, vLLM counts the query among them.
    let documents = if apart { size.saturating_sub(1) } else { size };
    if documents == 0 {
        let rule = "with --no-reranker it counts the query too, so it is 2 or more";
        reader.wrong("random-batch-size", rule);
        return Batch::One;
    }
    facts.source = format!("synthetic queries and documents ({RANKING})");
    let with =
        if documents == 1 { "a document".to_owned() } else { format!("{documents} documents") };
    facts.input_lengths = if apart {
        format!("a query and {with}, each of {}", facts.input_lengths)
    } else {
        format!("a query with {with}, each pair of {}", facts.input_lengths)
    };
    checked(reader, Batch::Ranking(Ranking { documents, mean, spread, together: !apart }))
}

fn checked(reader: &mut Reader<'_>, batch: Batch) -> Batch {
    match batch.check(true) {
        Ok(()) => batch,
        Err(rule) => {
            reader.wrong("random-batch-size", rule);
            Batch::One
        }
    }
}

/// How long answers may be: where they have no tokens, nothing is asked for.
pub(super) fn output(
    reader: &Reader<'_>,
    api: Api,
    output: OutputLength,
    facts: &mut WorkloadFacts,
) -> OutputLength {
    if api.entry().yields == Yields::Tokens {
        return output;
    }
    facts.output_lengths = "none: this kind of request generates no tokens".to_owned();
    if reader.settings.has("osl") {
        facts.notes.push("--osl did nothing: this kind of request generates no tokens".to_owned());
    }
    OutputLength::Unlimited
}
