//! Rules about the repository itself, read from its manifests, sources and
//! documents as text.
//!
//! Each rule is a function over texts that gives the problems that it found,
//! each as a sentence that says what to do. Its own tests show that it catches
//! what it is for; `tests/repository.rs` holds this repository to all of them.
//! Only the standard library is used, so that the rules are known before
//! anything else is built.
//!
//! Where a rule has exceptions, they stand in a list beside it with the reason.
//! Such a list is a ratchet: an entry that is no longer needed is a problem too.

pub mod dependencies;
pub mod documents;
pub mod effects;
pub mod layers;
pub mod manifest;
pub mod names;
pub mod repository;
pub mod size;
pub mod sleeps;
pub mod source;
pub mod unwanted;
pub mod workspace;
