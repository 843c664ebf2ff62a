//! Everything a human reads.

pub mod explain;
pub mod lang;
pub mod metrics_page;
pub mod number;
pub mod terminal;
