//! Result files of other tools: bytes in, records and facts out.

pub mod vllm;
