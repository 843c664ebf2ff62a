//! The client side: sockets, clocks, tasks. It walks a schedule against a
//! target and gives back one record a request.

mod alarm;
mod clock;
pub mod collector;
mod connection;
mod exchange;
pub mod fetch;
mod idle;
mod interrupt;
mod job;
mod places;
mod run;
pub mod secret;
mod talk;
mod tap;
mod tcp;
mod timer;
pub mod tls;
pub mod tokenizer;
pub mod transport;
mod worker;

pub use clock::{Clock, monotonic_ns};
pub use connection::Target;
pub use interrupt::Control;
pub use job::{IDLE_LIMIT, Job, MAX_REQUEST_TIMEOUT, Reuse};
pub use run::{Early, End, Happening, Instrument, StartError, StopRules, run};
