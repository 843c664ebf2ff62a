//! What is known to cause slow answers.
