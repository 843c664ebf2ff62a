//! Scenarios with known causes, and how often the rules name them.
//!
//! A [`world::World`] is a deployment, a load and a client. Into one a
//! [`cause::Cause`] is put; the world is played with and without it, and kept as a
//! [`scenario::Scenario`] when the cause shows. [`judge`] asks the rules, who see
//! what a run has and nothing of this; [`matrix`] counts.

pub mod between;
pub mod cause;
pub mod ground;
pub mod judge;
pub mod matrix;
pub mod page;
pub mod scenario;
mod seen;
pub mod world;
