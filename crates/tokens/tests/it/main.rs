//! Tests of the tokenizers.

mod embedded;
mod hugging_face;
mod tiktoken;
mod trainer;
mod written;
