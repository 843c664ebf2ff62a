//! Everything a human reads.

pub mod accuracy;
pub mod catalogue;
mod columns;
pub mod content;
pub mod document;
pub mod explain;
pub mod glossary;
pub mod html;
pub mod lang;
pub mod metrics_page;
pub mod number;
pub mod terminal;
pub mod threshold;
