//! Caveats: what makes a result weaker than it looks. They travel beside the
//! result and are never a reason to hide it.

/// One caveat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caveat {
    /// Stable name, for JSON and tests.
    pub id: &'static str,
    /// What it means here, one sentence with the numbers.
    pub text: String,
}

impl Caveat {
    /// A caveat with its words.
    pub fn new(id: &'static str, text: impl Into<String>) -> Self {
        Self { id, text: text.into() }
    }
}
