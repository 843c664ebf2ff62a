//! `cargo run --release -p workloads -- --bench` tells how fast prompts are
//! written and texts encoded; a word after it picks some of the benchmarks.
//! `GOODPUT_TEST_TOKENIZER` names a model's tokenizer.json to be measured too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use measure::Span;
use workload::prompt::{CacheRegime, Content, PromptSource, RunNonce};
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{Lengths, Lexicon, Load, Stop, Think, Tokenizer};

/// Prompts of the large case and tokens of each.
const PROMPTS: u32 = 100_000;
const TOKENS: u32 = 1_024;

fn main() {
    divan::main();
}

/// The tokenizers that there are.
const TOKENIZERS: &[&str] = &["embedded", "model"];

fn tokenizer(name: &str) -> Option<Arc<dyn Tokenizer>> {
    if name == "embedded" {
        return Some(tokens::embedded());
    }
    let path = std::env::var_os("GOODPUT_TEST_TOKENIZER")?;
    let bytes = std::fs::read(path).expect("the file can be read");
    Some(tokens::read(name, "tokenizer.json", &bytes).expect("the file is a tokenizer.json"))
}

fn schedule(tokenizer: &dyn Tokenizer) -> Schedule {
    let lexicon = Lexicon::proven(tokenizer).expect("the tokenizer makes exact lengths");
    let input = Lengths::fixed(TOKENS).expect("a length above 0");
    let spec = Spec {
        seed: 0,
        load: Load::Closed { users: 1, think: Think::Fixed(Span::ZERO) },
        stop: Stop::Count(PROMPTS),
        prompts: PromptSource::Exact { input, lexicon: Arc::new(lexicon) },
        pictures: None,
        batch: workload::Batch::One,
        output: OutputLength::Unlimited,
        output_forced: false,
        cache: CacheRegime::Cold,
        nonce_in_own_prompts: false,
        prefixes: workload::Prefixes::NONE,
        labels: Vec::new(),
        routing: workload::Routing::default(),
        conversations: None,
    };
    Schedule::draw(spec).expect("a closed loop of a count can be drawn").0
}

fn text(schedule: &Schedule, index: u32) -> String {
    let request = schedule.request(index).expect("an index inside the plan");
    match schedule.prompt(&request, RunNonce::new(1)).content {
        Content::Text(text) => text,
        Content::Texts(_) | Content::Messages(_) => String::new(),
    }
}

#[divan::bench(args = TOKENIZERS, max_time = 2)]
fn proving(bencher: Bencher<'_, '_>, name: &str) {
    let Some(tokenizer) = tokenizer(name) else { return };
    bencher.bench_local(|| Lexicon::proven(black_box(&*tokenizer)));
}

#[divan::bench(args = TOKENIZERS, max_time = 2)]
fn encoding(bencher: Bencher<'_, '_>, name: &str) {
    let Some(tokenizer) = tokenizer(name) else { return };
    let text = text(&schedule(&*tokenizer), 0);
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| tokenizer.count(black_box(&text)));
}

#[divan::bench]
fn one_prompt(bencher: Bencher<'_, '_>) {
    let schedule = schedule(&*tokens::embedded());
    bencher.counter(ItemsCount::new(1usize)).bench_local(|| text(&schedule, black_box(77)));
}

/// All prompts of a large run on two threads, each let go of at once, and the
/// check of lengths that a run makes first.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn hundred_thousand_on_two_threads(bencher: Bencher<'_, '_>) {
    let tokenizer = tokens::embedded();
    bencher.counter(ItemsCount::new(PROMPTS)).bench_local(|| {
        let schedule = schedule(&*tokenizer);
        let checked = schedule.check_lengths(&*tokenizer, RunNonce::new(1));
        assert_eq!(checked, Ok(PROMPTS / 100));
        let bytes = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for worker in 0..2 {
                let (schedule, bytes) = (&schedule, &bytes);
                scope.spawn(move || {
                    for index in (worker..PROMPTS).step_by(2) {
                        let length = text(schedule, index).len() as u64;
                        bytes.fetch_add(length, Ordering::Relaxed);
                    }
                });
            }
        });
        bytes.into_inner()
    });
}
