//! What the work cost: shares of the hardware's peaks, memory, energy, money.
//! Every figure names where its inputs came from, or why it has no value.

use crate::said::Said;

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The metric's key.
    pub key: &'static str,
    /// The value, or why there is none and what would expose it.
    pub value: Result<f64, Said>,
    /// The unit.
    pub unit: &'static str,
    /// Where its inputs came from, with their values.
    pub inputs: Vec<Said>,
}

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Efficiency {
    /// By key, in the order of the registry.
    pub figures: Vec<Figure>,
    /// The six signals that together say whether busy is useful.
    pub panel: Vec<Figure>,
}

impl Efficiency {
    /// The figure of this key.
    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.key == key)
    }

    /// Its value.
    pub fn value(&self, key: &str) -> Option<f64> {
        self.figure(key)?.value.as_ref().ok().copied()
    }
}
