//! Tests of the engine model from outside.

mod fit;
mod whole;
