//! Everything a human reads.

pub mod catalogue;
pub mod content;
pub mod document;
pub mod explain;
pub mod glossary;
pub mod html;
pub mod lang;
pub mod metrics_page;
pub mod number;
pub mod terminal;
