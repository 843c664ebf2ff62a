//! Mooncake's traces of the conversation, tool and synthetic workloads: JSON
//! lines with times in milliseconds and hashes of blocks of 512 tokens.
//!
//! ```text
//! {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}
//! ```
//!
//! Source of the format: kvcache-ai/Mooncake, README of FAST25-release.

use super::DatasetNotes;
use super::table::Rows;
use super::timed_trace::{self, Shape};

/// Tokens of a block.
const BLOCK: u32 = 512;

/// Milliseconds.
const SECONDS: f64 = 0.001;

/// Reads the file.
pub fn read(bytes: &[u8], count: &dyn Fn(&str) -> u32) -> (Rows, DatasetNotes) {
    let shape = Shape { block: BLOCK, seconds: SECONDS, ..Shape::default() };
    timed_trace::read(bytes, &shape, count)
}
