//! The binary as a user or a script meets it: its flags, files, exit codes and
//! output, against servers on loopback.

// The members of the summary as the design lists them.
#[path = "../../../wire/tests/designed/mod.rs"]
mod designed;
// Starting the binary, and what it told.
mod program;
// Servers to measure: scripted answers and the engine.
mod servers;

// What answers have to be like: formats and the choice of tools.
mod answers;
// Bad input: one sentence with a hint, the right exit code, no panic.
mod bad_input;
// `diagnose`, the end of a report, and runs side by side.
mod diagnose;
// A key goes through every door and must come out of none.
mod canary;
// Data sets from disk: what is read of them, what is sent, what is said.
mod datasets;
// Metrics of servers beside a load.
mod collecting;
// Conversations: turns, sessions, histories.
mod conversations;
// `--dry-run`: the resolved configuration and the schedule.
mod dry_run;
// Exit codes, one by one.
mod exit;
// `sim serve --fault`: what a run reports of answers that go wrong on request.
mod faults;
// `explain` and `--help`.
mod explain;
// `--markdown`, `--csv` and the page of a CI job.
mod files;
// `--json`: its form, and that nothing else is on standard output.
mod json;
// What a target is asked before a run: its tokenizer, and its context.
mod inquiry;
// `--isl` and `--osl` as numbers, spreads, curves and histograms.
mod lengths;
// Pictures and sounds in prompts.
mod media;
// `--slo`: objectives by label and by gaps, and rules over them.
mod objectives;
// Several workloads in one run.
mod mix;
mod pages;
// `probe`: experiments without the server's metrics.
mod probe;
// `plan`, and what is said of the machines.
mod planning;
// Embeddings and rerank: answers without tokens.
mod results;
// Adapters, models and priorities of requests, several targets.
mod routing;
// The five questions of the seed text.
mod questions;
// Shared prefixes and the state of the cache.
mod prefixes;
// What can be done with a run afterwards: report, export, import, runs.
mod runs;
// ServeGen: requests drawn from what clients of a service sent.
mod servegen;
// The command line of the seed text.
mod seed;
// The engine model in virtual time.
mod simulate;
// `sim serve`: the engine model as a server.
mod serving;
// The tokenisation cases.
mod tokenisation;
// `--tokenizer`: where it is found, and lengths by it.
mod tokenizer;
// Traces: real arrivals again.
mod traces;
// Errors of the client against a server's own clock.
mod truth;
// `--use-case`: what it sets, who wins over it, what the report begins with.
mod use_cases;
// `ui`: the local web page.
mod ui;
// `watch`: a server under the load of others.
mod watch;
