//! Everything a human reads.

pub mod accuracy;
pub mod bars;
pub mod catalogue;
mod columns;
pub mod content;
pub mod diagnosis_page;
pub mod document;
pub mod explain;
pub mod glossary;
pub mod hardware_page;
pub mod html;
pub mod lang;
pub mod markdown;
pub mod metrics_page;
pub mod number;
pub mod planning;
pub mod probe;
pub mod signals;
pub mod svg;
pub mod terminal;
pub mod threshold;
pub mod watch;
