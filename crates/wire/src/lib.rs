//! Every byte format that crosses the process: what a machine reads or writes.
//!
//! Bytes in, values out, and back. No sockets, no files, no clock: decoders
//! take bytes and the time they came, so that tests use a fake clock.

pub mod api;
pub mod dataset;
pub mod dialect;
pub mod engine;
pub mod export;
pub mod exposition;
pub mod floor;
pub mod foreign;
pub mod head;
pub mod history;
pub mod http1;
pub mod hugging_face_config;
pub mod json;
pub mod lengths;
pub mod media;
pub mod ndjson;
pub mod notes;
pub mod prometheus;
pub mod reader;
pub mod rows;
pub mod run;
pub mod scrapes;
mod seal;
pub mod signals;
pub mod sse;
pub mod summary;
mod timeline;
pub mod tokenize;
pub mod truth;
pub mod url;
pub mod watch;
