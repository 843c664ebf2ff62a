//! The arguments of `sim serve`: which engine serves, and what it is like.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use wire::exposition::Profile;

use crate::command::sim::{Arguments, Serves, serve};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{self, UsageError};
use crate::plan::engine::engine;
use crate::tokenizer;

const EXAMPLES: &str = "\
Examples:
  goodput sim serve                                   an 8B model on one H100
  goodput sim serve --set model=llama-3.1-70b --set tensor_parallel_size=4
  goodput sim serve --set max_num_seqs=32 --set num_gpu_blocks_override=9000
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
const MODELLED: &[&str] = &["engine", "set", "metrics-profile", "enable-per-request-metrics"];

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
        .after_help(EXAMPLES)
        .arg(with_value("host", "IP", "Address to listen on").default_value("127.0.0.1"))
        .arg(with_value("port", "N", "Port, 0 for a free one").default_value("8000"))
        .arg(with_value("model", "NAME", "Name under which the model is served, and no other [any]; --set model=… says which it is"))
        .arg(with_value("set", "NAME=VALUE", "Sets the engine model: its model, accelerator, limits, speed (repeat it)").action(ArgAction::Append))
        .arg(with_value("engine", "FILE", "Start from the settings of this file, as sim fit writes it"))
        .arg(with_value("seed", "N", "Of words, accepted drafts [0]"))
        .arg(with_value("tokenizer", "NAME", "What prompts are cut by: a tokenizer.json, a model's folder, embedded [words and marks]"))
        .arg(with_value("metrics-profile", "vllm|sglang", "Names of /metrics [vllm]"))
        .arg(switch("enable-per-request-metrics", "Put the server's own timings into answers, as vLLM's flag does"))
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
    let given = Given { matches };
    let port = given.text("port").unwrap_or("8000");
    serve(&Arguments {
        host: given.text("host").unwrap_or("127.0.0.1"),
        port: port.parse().map_err(|_| wrong("port", "is not a port from 0 to 65535"))?,
        serves: given.serves()?,
        ground_truth: given.text("ground-truth"),
    })
}

fn wrong(name: &str, rule: impl std::fmt::Display) -> Failure {
    UsageError::new(format!("--{name}"), rule).into()
}

fn read(path: &str, limit: u64) -> Result<Vec<u8>, String> {
    store::read_file(path.as_ref(), limit).map_err(|error| error.to_string())
}

/// What was given.
struct Given<'a> {
    matches: &'a ArgMatches,
}

impl<'a> Given<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.matches.get_one::<String>(name).map(String::as_str)
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Failure> {
        let number = self.text(name).map(str::parse);
        number.transpose().map_err(|_| wrong(name, "is not a whole number"))
    }

    fn duration(&self, name: &str) -> Result<Option<Duration>, Failure> {
        let rule = "is not a duration; write 40ms";
        let span = self.text(name).map(|text| flags::parse_duration(text).ok_or(wrong(name, rule)));
        Ok(span.transpose()?.map(|span| Duration::from_micros(span.us().unsigned_abs())))
    }

    /// The first of these that was given.
    fn first_of(&self, names: &[&'static str]) -> Option<&'static str> {
        let source = |name: &&&str| self.matches.value_source(name);
        let given = |name: &&&str| source(name) == Some(clap::parser::ValueSource::CommandLine);
        names.iter().find(given).copied()
    }

    /// Which engine serves: the model, unless something of another is given.
    fn serves(&self) -> Result<Serves, Failure> {
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
            return Err(wrong(modelled, rule));
        }
        if let Some(folder) = self.text("cases") {
            return Ok(Serves::Cases(folder.to_owned()));
        }
        match fixed {
            Some(_) => self.fixed().map(Serves::Fixed),
            None => self.modelled().map(|config| Serves::Modelled(Box::new(config))),
        }
    }

    fn tokenizer(&self) -> Result<Option<std::sync::Arc<dyn workload::Tokenizer>>, Failure> {
        let loaded = self.text("tokenizer").map(|name| tokenizer::load(name, &read));
        loaded.transpose().map_err(|rule| wrong("tokenizer", rule))
    }

    fn fixed(&self) -> Result<fake::EngineConfig, Failure> {
        let usual = fake::EngineConfig::default();
        Ok(fake::EngineConfig {
            model: self.text("model").map(str::to_owned),
            ttft: self.duration("ttft")?.unwrap_or(usual.ttft),
            ttft_per_prompt_token: self
                .duration("ttft-per-prompt-token")?
                .unwrap_or(usual.ttft_per_prompt_token),
            token_interval: self.duration("token-interval")?.unwrap_or(usual.token_interval),
            max_num_seqs: self.number("max-num-seqs")?.unwrap_or(usual.max_num_seqs),
            chunk_tokens: self.number("chunk-tokens")?.unwrap_or(usual.chunk_tokens),
            lockstep: self.matches.get_flag("lockstep"),
            role_chunk_at_accept: self.matches.get_flag("role-at-accept"),
            seed: self.number("seed")?.unwrap_or(usual.seed),
            tokenizer: self.tokenizer()?,
            ..usual
        })
    }

    fn modelled(&self) -> Result<fake::ModelledConfig, Failure> {
        let usual = fake::ModelledConfig::default();
        let set: Vec<String> =
            self.matches.get_many::<String>("set").unwrap_or_default().cloned().collect();
        let settings = engine(self.text("engine"), &set, &read)?;
        let profile = self.text("metrics-profile").map(|name| {
            let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name()).collect();
            let rule = format!("{name:?} is not one of {}", names.join(", "));
            Profile::find(name).ok_or_else(|| wrong("metrics-profile", rule))
        });
        Ok(fake::ModelledConfig {
            settings,
            model: self.text("model").map(str::to_owned),
            tokenizer: self.tokenizer()?,
            seed: self.number("seed")?.unwrap_or(usual.seed),
            profile: profile.transpose()?.unwrap_or(usual.profile),
            per_request_metrics: self.matches.get_flag("enable-per-request-metrics"),
            ..usual
        })
    }
}
