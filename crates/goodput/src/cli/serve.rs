//! The arguments of `sim serve`: which engine serves, and what it is like.

use std::sync::Arc;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use wire::exposition::Profile;
use workload::Tokenizer;

use crate::command::sim::{Arguments, Serves, serve};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{self, UsageError};
use crate::plan::engine::engine;
use crate::{open, tokenizer};

const EXAMPLES: &str = "\
Examples:
  goodput sim serve                                   an 8B model on one H100
  goodput sim serve --set model=llama-3.1-70b --set tensor_parallel_size=4
  goodput sim serve --set max_num_seqs=32 --set num_gpu_blocks_override=9000
  goodput sim serve --fault truncate,after=20,share=0.1 --fault comments
  goodput sim serve --ttft 40ms --token-interval 12ms a fixed clock instead of the model

goodput sim settings lists what --set takes.";

/// Flags of the engine with a fixed clock. Any of them chooses it.
const FIXED: &[&str] = &[
    "ttft",
    "ttft-per-prompt-token",
    "token-interval",
    "max-num-seqs",
    "chunk-tokens",
    "lockstep",
    "role-at-accept",
];

/// Flags of the engine model.
const MODELLED: &[&str] = &[
    "engine",
    "set",
    "metrics-profile",
    "enable-per-request-metrics",
    "fault",
    "faults-by-header",
];

/// Examples, and every fault with its keys.
fn after_help() -> String {
    let faults = fake::faults::KINDS.iter();
    let lines = faults.map(|kind| format!("  {:<44} {}\n", kind.usage(), kind.does));
    let faults: String = lines.collect();
    format!("{EXAMPLES}\n\nFaults, each with its keys and their defaults:\n{faults}")
}

/// The subcommand.
pub(super) fn command() -> Command {
    let with_value = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let fixed = |name, value, help| with_value(name, value, help).help_heading("Fixed clock");
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("serve")
        .about("Serve the engine model (OpenAI chat and completions, vLLM's metrics), an engine with a fixed clock, or recorded answers")
        .after_help(after_help())
        .arg(with_value("host", "IP", "Address to listen on").default_value("127.0.0.1"))
        .arg(with_value("port", "N", "Port, 0 for a free one").default_value("8000"))
        .arg(with_value("model", "NAME", "Name under which the model is served, and no other [any]; --set model=… says which it is"))
        .arg(with_value("set", "NAME=VALUE", "Sets the engine model: its model, accelerator, limits, speed (repeat it)").action(ArgAction::Append))
        .arg(with_value("engine", "FILE", "Start from the settings of this file, as sim fit writes it"))
        .arg(with_value("seed", "N", "Of words, accepted drafts [0]"))
        .arg(with_value("tokenizer", "NAME", "What prompts are cut by: a tokenizer.json, a model's folder, embedded [words and marks]"))
        .arg(with_value("metrics-profile", "vllm|sglang", "Names of /metrics [vllm]"))
        .arg(switch("enable-per-request-metrics", "Put the server's own timings into answers, as vLLM's flag does"))
        .arg(with_value("fault", "NAME[,KEY=VALUE…]", "Lets answers of the model go wrong on their way out, share=0..1 of them [all]; names and keys are below (repeat it)").action(ArgAction::Append))
        .arg(switch("faults-by-header", "Let a request force a fault on itself with the header x-goodput-fault: NAME[,KEY=VALUE…]"))
        .arg(with_value("ground-truth", "FILE", "Write true instants to this file at the end"))
        .arg(with_value("cases", "DIR", "Play the cases of DIR/cases.json: POST /CASE-ID/… answers with its bytes on its time line"))
        .arg(fixed("ttft", "D", "Fixed part of TTFT, such as 40ms"))
        .arg(fixed("ttft-per-prompt-token", "D", "Part of TTFT for each prompt token"))
        .arg(fixed("token-interval", "D", "Time between tokens"))
        .arg(fixed("max-num-seqs", "N", "Requests answered at once; the rest waits"))
        .arg(fixed("chunk-tokens", "N", "Tokens in one event"))
        .arg(switch("lockstep", "All streams emit on one step grid").help_heading("Fixed clock"))
        .arg(switch("role-at-accept", "Send the role event when the request is accepted").help_heading("Fixed clock"))
}

/// Reads the arguments and serves.
pub(super) fn run(matches: &ArgMatches) -> Result<Exit, Failure> {
    let mut given = Given { matches, errors: Vec::new() };
    let port = given.number("port", "is not a port from 0 to 65535");
    let serves = given.serves();
    if !given.errors.is_empty() {
        return Err(Failure::usage(given.errors));
    }
    serve(&Arguments {
        host: given.text("host").unwrap_or("127.0.0.1"),
        port: port.unwrap_or(8000),
        serves,
        ground_truth: given.text("ground-truth"),
    })
}

const WHOLE: &str = "is not a whole number";

/// What was given, and what is wrong with it.
struct Given<'a> {
    matches: &'a ArgMatches,
    errors: Vec<UsageError>,
}

impl<'a> Given<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.matches.get_one::<String>(name).map(String::as_str)
    }

    fn wrong(&mut self, name: &str, rule: impl std::fmt::Display) {
        self.errors.push(UsageError::new(format!("--{name}"), rule));
    }

    /// A value, or none where it is not given or wrong.
    fn read<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let read = self.text(name).map(read)?;
        read.map_err(|rule| self.wrong(name, rule)).ok()
    }

    fn number<N: std::str::FromStr>(&mut self, name: &str, rule: &str) -> Option<N> {
        self.read(name, |text| text.parse().map_err(|_| rule.to_owned()))
    }

    fn duration(&mut self, name: &str) -> Option<Duration> {
        let span = self.read(name, |text| {
            let rule = || "is not a duration; write 40ms".to_owned();
            flags::parse_duration(text).ok_or_else(rule)
        });
        span.map(|span| Duration::from_micros(span.us().unsigned_abs()))
    }

    fn tokenizer(&mut self) -> Option<Arc<dyn Tokenizer>> {
        self.read("tokenizer", |name| tokenizer::load(name, &open))
    }

    /// The first of these that was given.
    fn first_of(&self, names: &[&'static str]) -> Option<&'static str> {
        let source = |name: &&&str| self.matches.value_source(name);
        let given = |name: &&&str| source(name) == Some(clap::parser::ValueSource::CommandLine);
        names.iter().find(given).copied()
    }

    /// Which engine serves: the model, unless something of another is given.
    fn serves(&mut self) -> Serves {
        let (fixed, modelled) = (self.first_of(FIXED), self.first_of(MODELLED));
        let other = match (fixed, self.text("cases")) {
            (Some(fixed), _) => Some((fixed, "chooses the engine with a fixed clock")),
            (None, Some(_)) => Some(("cases", "plays recorded answers")),
            (None, None) => None,
        };
        if let (Some(modelled), Some((other, does))) = (modelled, other) {
            let hint = if other == "max-num-seqs" { " (seats: --set max_num_seqs=N)" } else { "" };
            let rule = format!(
                "is for the engine model, and --{other} {does} instead; leave out one of the \
                 two{hint}"
            );
            self.wrong(modelled, rule);
        }
        match (self.text("cases"), fixed) {
            (Some(folder), _) => Serves::Cases(folder.to_owned()),
            (None, Some(_)) => Serves::Fixed(self.fixed()),
            (None, None) => Serves::Modelled(Box::new(self.modelled())),
        }
    }

    fn fixed(&mut self) -> fake::EngineConfig {
        let usual = fake::EngineConfig::default();
        fake::EngineConfig {
            model: self.text("model").map(str::to_owned),
            ttft: self.duration("ttft").unwrap_or(usual.ttft),
            ttft_per_prompt_token: self
                .duration("ttft-per-prompt-token")
                .unwrap_or(usual.ttft_per_prompt_token),
            token_interval: self.duration("token-interval").unwrap_or(usual.token_interval),
            max_num_seqs: self.number("max-num-seqs", WHOLE).unwrap_or(usual.max_num_seqs),
            chunk_tokens: self.number("chunk-tokens", WHOLE).unwrap_or(usual.chunk_tokens),
            lockstep: self.matches.get_flag("lockstep"),
            role_chunk_at_accept: self.matches.get_flag("role-at-accept"),
            seed: self.number("seed", WHOLE).unwrap_or(usual.seed),
            tokenizer: self.tokenizer(),
            ..usual
        }
    }

    fn faults(&mut self) -> Vec<fake::FaultShare> {
        let texts = self.matches.get_many::<String>("fault").unwrap_or_default();
        let read: Vec<_> = texts.map(|text| fake::FaultShare::read(text)).collect();
        let read = read.into_iter().map(|read| read.map_err(|error| self.wrong("fault", error)));
        read.filter_map(Result::ok).collect()
    }

    fn modelled(&mut self) -> fake::ModelledConfig {
        let usual = fake::ModelledConfig::default();
        let set: Vec<String> =
            self.matches.get_many::<String>("set").unwrap_or_default().cloned().collect();
        let engine = engine(self.text("engine"), &set, &open)
            .map_err(|error| self.errors.push(error))
            .unwrap_or_default();
        engine.notes.iter().for_each(|note| crate::say(note));
        let settings = engine.settings;
        let profile = self.read("metrics-profile", |name| {
            let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name()).collect();
            let rule = || format!("{name:?} is not one of {}", names.join(", "));
            Profile::find(name).ok_or_else(rule)
        });
        let faults = self.faults();
        fake::ModelledConfig {
            settings,
            model: self.text("model").map(str::to_owned),
            tokenizer: self.tokenizer(),
            seed: self.number("seed", WHOLE).unwrap_or(usual.seed),
            profile: profile.unwrap_or(usual.profile),
            per_request_metrics: self.matches.get_flag("enable-per-request-metrics"),
            faults,
            faults_by_header: self.matches.get_flag("faults-by-header"),
            ..usual
        }
    }
}
