//! The tokenizer that every goodput has: no file is needed for exact lengths
//! against the embedded engine.

use std::sync::{Arc, LazyLock};

use workload::Tokenizer;

use crate::bpe::Bpe;

/// Learned from this repository's documents and synthetic prose by the trainer
/// in this crate's tests, which writes it anew with `UPDATE=1`.
const VOCABULARY: &[u8] = include_bytes!("embedded.bpe");

/// A different vocabulary is a different tokenizer and takes another number:
/// prompts of two versions compare only under one name.
const NAME: &str = "embedded-1";

static EMBEDDED: LazyLock<Arc<Bpe>> = LazyLock::new(|| {
    Arc::new(Bpe::of_bytes(NAME, VOCABULARY).expect("a test reads the embedded vocabulary"))
});

/// The embedded tokenizer: 4096 tokens, made once a process.
pub fn embedded() -> Arc<dyn Tokenizer> {
    Arc::<Bpe>::clone(&EMBEDDED)
}
