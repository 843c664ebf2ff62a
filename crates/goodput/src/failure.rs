//! What ends the program early: words for the user, and the exit code.

use std::fmt::Display;

use crate::exit::Exit;
use crate::flags::UsageError;

/// A failure of the program, in words.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the program ends.
    pub(crate) exit: Exit,
    /// One sentence each.
    pub(crate) words: Vec<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, words: impl Display) -> Self {
        Self { exit, words: vec![words.to_string()] }
    }

    pub(crate) fn usage(errors: Vec<UsageError>) -> Self {
        Self { exit: Exit::Usage, words: errors.iter().map(UsageError::to_string).collect() }
    }

    pub(crate) fn internal(words: impl Display) -> Self {
        Self::new(Exit::Internal, words)
    }
}

impl From<UsageError> for Failure {
    fn from(error: UsageError) -> Self {
        Self::usage(vec![error])
    }
}

impl From<store::StoreError> for Failure {
    fn from(error: store::StoreError) -> Self {
        // A wrong path is the user's to mend; a full disk is not a mistake in
        // the command.
        let exit = if error.is_disk_full() { Exit::Internal } else { Exit::Usage };
        Self::new(exit, error)
    }
}
