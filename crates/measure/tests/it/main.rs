//! What the definitions of the design say of hand-made records: golden values,
//! the seed texts' worked examples, the cases, vLLM's rules, and properties.

mod build;
mod capacity;
mod cases;
mod conversations;
mod hardware;
mod picture;
mod properties;
mod request;
mod seeds;
mod slices;
mod slo;
mod summary;
mod tally;
mod vllm;
mod wild;
mod window;
