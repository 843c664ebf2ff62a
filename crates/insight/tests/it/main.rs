//! The rules, the stages and what they are made of, held against the engine
//! model and against made signals.

mod causes;
mod made;
mod model;
mod probe;
mod stages;
mod table;
mod unseen;
mod watched;
