//! Tests of the tokenizers.

mod embedded;
mod hugging_face;
mod trainer;
mod written;
