//! The traces of Azure's LLM inference services: CSV with dates of seven
//! fraction digits in 2023 and with an offset from UTC in 2024.
//!
//! ```text
//! TIMESTAMP,ContextTokens,GeneratedTokens
//! 2023-11-16 18:15:46.6805900,374,44
//! 2024-05-10 00:00:00.009930+00:00,2162,5
//! ```
//!
//! Source of the format: Azure/AzurePublicDataset,
//! `AzureLLMInferenceDataset2023.md` and `AzureLLMInferenceDataset2024.md`.

use workload::LengthRow;

use super::columns::Columns;
use super::{DatasetNotes, lengths};

/// Reads the file; without a column of times it is none of these.
pub fn read(bytes: &[u8], columns: &Columns) -> (Vec<LengthRow>, DatasetNotes) {
    lengths::read_timed(bytes, columns)
}
