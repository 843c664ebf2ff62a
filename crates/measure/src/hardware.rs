//! What serves a model, as far as arithmetic goes: the shapes of models, the
//! peaks of accelerators, and the time that no engine can go below.
//!
//! The shapes count parameters, floating point operations and bytes; the
//! accelerators say how many of each pass in a second; [`roofline`] divides
//! one by the other. All of it are bounds: what an engine takes beyond them
//! has to be measured.

pub mod accelerator;
mod accelerators;
pub mod lookup;
pub mod model;
mod models;
pub mod precision;
pub mod roofline;

pub use accelerator::{Accelerator, FlopsPerSecond};
pub use accelerators::ACCELERATORS;
pub use lookup::Unknown;
pub use model::{Attention, FeedForward, ModelShape, Window};
pub use models::MODELS;
pub use precision::Precision;
pub use roofline::{Bound, Limit, Work};

/// Every model of the catalogue.
pub fn models() -> &'static [ModelShape] {
    MODELS
}

/// Every accelerator of the catalogue.
pub fn accelerators() -> &'static [Accelerator] {
    ACCELERATORS
}

/// The model of this id, name or Hugging Face repository, whatever its case,
/// blanks, dashes and underscores, and whoever owns the repository.
///
/// # Errors
///
/// [`Unknown`] with the names that are nearest.
pub fn model(name: &str) -> Result<&'static ModelShape, Unknown> {
    lookup::find("model", name, MODELS.iter().map(|model| (model, model.names())))
}

/// The accelerator of this id, name or other name, whatever its case, blanks,
/// dashes and underscores.
///
/// # Errors
///
/// [`Unknown`] with the names that are nearest.
pub fn accelerator(name: &str) -> Result<&'static Accelerator, Unknown> {
    lookup::find("accelerator", name, ACCELERATORS.iter().map(|one| (one, one.names())))
}
