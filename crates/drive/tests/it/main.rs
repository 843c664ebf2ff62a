//! The load generator against real sockets: scripted and engine servers, TLS
//! peers and closed ports, all on loopback.

// Jobs with the usual settings, scripted answers, and what came of a run.
mod build;
// What a peer may do with the bytes of an answer.
mod bytes;
// Metrics, read beside a load.
mod collector;
// Stopping: by hand, and by the rules that stop a run.
mod cancel;
// Every kind of failure, each made by a peer or a lack of something.
mod failures;
// Peers that send without end, too slowly, in crumbs or too early.
mod hostile;
// Dead idle connections, reuse, retirement.
mod keep_alive;
// Load models: who sends when.
mod load;
// A process of its own for limits that would hit other tests too.
mod process;
// Keys that a server echoes.
mod secrets;
// The order of instants in every record.
mod stamps;
// Conversations: histories, fan-out, failures in the middle.
mod talks;
// TLS with a certificate of our own making.
mod tls;
// The server's own tokenizer, asked before a run.
mod tokenizer;
