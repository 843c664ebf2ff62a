//! Schedules of written prompts, and their texts.

use measure::Span;
use workload::prompt::{CacheRegime, Content, PromptSource, RunNonce};
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{Load, Stop, Think};

/// So many requests of a source, one after the other.
pub(crate) fn schedule(
    prompts: PromptSource,
    count: u32,
    seed: u64,
    cache: CacheRegime,
) -> Schedule {
    let spec = Spec {
        seed,
        load: Load::Closed { users: 1, think: Think::Fixed(Span::ZERO) },
        stop: Stop::Count(count),
        prompts,
        pictures: None,
        batch: workload::Batch::One,
        output: OutputLength::Unlimited,
        output_forced: false,
        cache,
        nonce_in_own_prompts: false,
        prefixes: workload::Prefixes::NONE,
        labels: Vec::new(),
        routing: workload::Routing::default(),
        conversations: None,
    };
    Schedule::draw(spec).unwrap().0
}

/// The prompts of a schedule.
pub(crate) fn texts(schedule: &Schedule, nonce: u64) -> Vec<String> {
    let text = |request| match schedule.prompt(&request, RunNonce::new(nonce)).content {
        Content::Text(text) => text,
        Content::Texts(_) | Content::Messages(_) => panic!("a written prompt is a text"),
    };
    schedule.requests().map(text).collect()
}
