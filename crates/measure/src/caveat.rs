//! Caveats: what makes a result weaker than it looks. They travel beside the
//! result and are never a reason to hide it.

use crate::said::Said;

/// One caveat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caveat {
    /// Stable name, for JSON and tests.
    pub id: &'static str,
    /// What it means here, one sentence with the numbers.
    pub text: Said,
}

impl Caveat {
    /// A caveat with its words.
    pub fn new(id: &'static str, text: Said) -> Self {
        Self { id, text }
    }
}
