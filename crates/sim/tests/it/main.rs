//! Tests of the engine model from outside.

mod whole;
