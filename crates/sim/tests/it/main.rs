//! Tests of the engine model from outside.

mod cases;
mod causes;
mod choices;
mod conservation;
mod fit;
mod growth;
mod littles_law;
mod naive;
mod oracle;
mod pipeline;
mod planning;
mod progress;
mod queueing;
mod repeated;
mod speculation;
mod watched;
mod whole;
