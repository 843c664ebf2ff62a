//! A server that is watched: readings of its metrics as a sliding window of
//! signals, and what is seen of it as one JSON object each time.

mod line;
mod window;

pub use line::line;
pub use window::Window;
