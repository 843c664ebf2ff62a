//! The command line: subcommands, their arguments, and who runs them.

mod serve;
mod watch;

use clap::{Arg, ArgAction, ArgMatches, Command};

use insight::probe::EXPERIMENTS;
use measure::deployment::Deployment;
use report::lang::Lang;

use crate::command::{
    bench, diagnose, engine_settings, explain, export, fit, import, planning, probe,
    report as report_command, runs, selftest, simulate, ui, what_if,
};
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::flags::{self, CSV, DEPLOYMENT, ISOLATED, MARKDOWN, SLO, Settings, UsageError};
use crate::{output, plan};

const BENCH_EXAMPLES: &str = "\
Examples:
  goodput bench                                   the embedded engine, no server needed
  goodput bench http://127.0.0.1:8000             8 users, 100 requests, first model listed
  goodput bench --url URL --model M -n 500 --request-rate 8 --goodput ttft:300 tpot:60
  goodput bench serve --model M --dataset-name sharegpt --dataset-path F --request-rate 8
  goodput bench URL -c 32 --duration 2m --fail-if 'ttft.p99 > 500ms' --json result.json

Without an address the embedded engine is measured, unlike vllm bench, which then goes to
127.0.0.1:8000. Durations: a bare number is seconds, or with ms, s, m, h.";

const DIAGNOSE_EXAMPLES: &str = "\
Examples:
  goodput diagnose latest                         findings, the one that explains most first
  goodput diagnose latest --json -                the same as one JSON object
  goodput explain rules                           what is looked for

A finding is confirmed (the client's symptom and the server's evidence agree), likely (two kinds of
evidence) or possible (the client's side alone). What could not be told is said, with what would tell.";

fn command() -> Command {
    Command::new("goodput")
        .version(env!("CARGO_PKG_VERSION"))
        .about("How good is my LLM serving, where does the time go, what should I change, did it help?")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(exit::HELP)
        .subcommand(bench_command())
        .subcommand(diagnose_command())
        .subcommand(flags::add_group(
            Command::new("report")
                .about("Show a run again, recomputed from its directory, under any definition")
                .arg(run_argument().num_args(1..).help("Path, id prefix, or latest; several are shown side by side, with what differs between them"))
                .arg(runs_dir())
                .arg(Arg::new("json").long("json").value_name("FILE|-").help("Write the summary as one JSON object"))
                .arg(definitions())
                .arg(Arg::new("goodput").long("goodput").value_name("NAME:MS").num_args(1..).action(ArgAction::Append).help("Judge by these limits instead of the run's own: ttft:300 tpot:60"))
                .arg(Arg::new("isolated").long("isolated").value_name("RUN").action(ArgAction::Append).help(ISOLATED))
                .arg(Arg::new("slo").long("slo").value_name("SLO").action(ArgAction::Append).help(SLO))
                .arg(Arg::new("fail-if").long("fail-if").value_name("RULE").action(ArgAction::Append).help("Exit 99 when true: 'ttft.p99 > 500ms'"))
                .arg(Arg::new("ground-truth").long("ground-truth").value_name("FILE").help("Truth log of a server with a known clock, as sim serve writes at its end: print the client's errors against it"))
                .arg(Arg::new("html").long("html").value_name("FILE").help("Write the report as one page with charts and the playground; several runs are drawn over each other"))
                .arg(Arg::new("markdown").long("markdown").value_name("FILE").help(MARKDOWN))
                .arg(Arg::new("csv").long("csv").value_name("FILE").help(CSV))
                .arg(lang_argument()),
            DEPLOYMENT,
        ))
        .subcommand(
            Command::new("export")
                .about("Write a run's requests as JSON lines or as a table")
                .arg(run_argument())
                .arg(runs_dir())
                .arg(Arg::new("to").long("to").value_name("FILE").required(true).help("The file; its ending chooses the form: .jsonl or .csv"))
                .arg(definitions()),
        )
        .subcommand(
            Command::new("import")
                .about("Take another tool's result file: vllm bench serve --save-result")
                .arg(Arg::new("file").value_name("FILE").required(true))
                .arg(Arg::new("out").long("out").value_name("DIR").help("Run directory [RUNS-DIR/<id>]"))
                .arg(runs_dir()),
        )
        .subcommand(
            Command::new("explain")
                .about("Explain a metric, a failure kind, a warning, a rule or a signal; rules and signals list theirs")
                .arg(Arg::new("word").value_name("WORD").num_args(0..))
                .arg(lang_argument()),
        )
        .subcommand(
            Command::new("runs")
                .about("List runs, or move one to the trash")
                .subcommand_required(true)
                .subcommand(Command::new("ls").about("List runs, newest first").arg(runs_dir()))
                .subcommand(Command::new("rm").about("Move a run to RUNS-DIR/.trash").arg(run_argument()).arg(runs_dir())),
        )
        .subcommand(plan_command())
        .subcommand(probe_command())
        .subcommand(ui_command())
        .subcommand(watch::command())
        .subcommand(
            Command::new("selftest")
                .about("Find what the instrument itself errs by on this machine, and store it")
                .arg(
                    Arg::new("quick")
                        .long("quick")
                        .action(ArgAction::SetTrue)
                        .help("Under 5 seconds, with fewer samples"),
                )
                .arg(runs_dir())
                .arg(
                    Arg::new("json")
                        .long("json")
                        .value_name("FILE|-")
                        .help("Write the floor as one JSON object"),
                ),
        )
        .subcommand(
            Command::new("sim")
                .about("The embedded engine")
                .subcommand_required(true)
                .subcommand(serve::command())
                .subcommand(simulate_command())
                .subcommand(fit_command())
                .subcommand(
                    Command::new("settings")
                        .about("List what can be set of the engine model, with models and accelerators")
                        .arg(Arg::new("json").long("json").value_name("FILE|-").help("Write the list as one JSON object")),
                ),
        )
        .mut_subcommands(with_exit_codes)
}

/// Scripts rely on the exit codes of every command, so every help has them.
fn with_exit_codes(command: Command) -> Command {
    let help = match command.get_after_help() {
        Some(examples) => format!("{examples}\n\n{}", exit::HELP),
        None => exit::HELP.to_owned(),
    };
    command.after_help(help).mut_subcommands(with_exit_codes)
}

fn bench_command() -> Command {
    let command = Command::new("bench")
        .about("Make load at an endpoint and measure it")
        .after_help(BENCH_EXAMPLES)
        .arg(Arg::new("address").value_name("URL").num_args(0..=2).help(
            "Address to measure, as --url; the word serve before it is taken for vLLM's sake",
        ));
    flags::add_to(command)
}

fn simulate_command() -> Command {
    let command = Command::new("run")
        .about("Run a load against the engine model in virtual time, with the flags of bench")
        .arg(Arg::new("like").long("like").value_name("RUN").help("Play the requests of RUN again under the engine that made it, or that is fitted to it, and under the same with --set: what would change"));
    flags::add_to(command)
}

fn fit_command() -> Command {
    Command::new("fit")
        .about("Fit the engine model's settings to runs that were measured, and to what their servers said of themselves")
        .arg(
            run_argument()
                .num_args(1..)
                .help("Path, id prefix, or latest; several loads say more than one"),
        )
        .arg(runs_dir())
        .arg(
            Arg::new("set")
                .long("set")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("What is known of the engine: model, accelerator, limits; several times"),
        )
        .arg(
            Arg::new("engine")
                .long("engine")
                .value_name("FILE")
                .help("Start from the settings of this file"),
        )
        .arg(
            Arg::new("only")
                .long("only")
                .value_name("NAMES")
                .value_delimiter(',')
                .help(format!("Settings to fit, by commas [{}]", ::sim::fit::USUAL.join(","))),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("FILE")
                .help("Write the engine to this file, for --engine"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .value_name("FILE|-")
                .help("Write the fit as one JSON object"),
        )
}

fn diagnose_command() -> Command {
    let limits = "Judge by these limits instead of the run's own: ttft:300 tpot:60";
    Command::new("diagnose")
        .about("Say what limits a run, by which evidence, and what to change")
        .after_help(DIAGNOSE_EXAMPLES)
        .arg(run_argument())
        .arg(runs_dir())
        .arg(
            Arg::new("json")
                .long("json")
                .value_name("FILE|-")
                .help("Write findings, stages, lints and what is missing as one JSON object"),
        )
        .arg(
            Arg::new("goodput")
                .long("goodput")
                .value_name("NAME:MS")
                .num_args(1..)
                .action(ArgAction::Append)
                .help(limits),
        )
        .arg(Arg::new("slo").long("slo").value_name("SLO").action(ArgAction::Append).help(SLO))
        .arg(lang_argument())
}

const PLAN_EXAMPLES: &str = "\
Examples:
  goodput plan --model-shape llama-3.1-70b --accelerator h100 --isl 1024 --osl 256 --goodput ttft:500 tpot:50
  goodput plan --model-shape DIR --accelerator mi300x --weights fp8 --tensor-parallel 2,4 --request-rate 40
  goodput plan --gpu-price-per-hour 2.5 --api-price in=0.15,out=0.60 --run latest";

fn plan_command() -> Command {
    let command = Command::new("plan")
        .about("What a model on some accelerators can do at best, what the engine model makes of it, and from which load on it is cheaper than a hosted API")
        .after_help(PLAN_EXAMPLES)
        .arg(Arg::new("tensor-parallel").long("tensor-parallel").value_name("N,…").help("Degrees of tensor parallelism to compare [1,2,4,8]"))
        .arg(Arg::new("attainment").long("attainment").value_name("SHARE").help("Share of the requests that must meet the objective [0.99]"))
        .arg(Arg::new("api-price").long("api-price").value_name("in=P,out=P").help("Prices of a hosted API for a million tokens, in=…,out=…,cached=…: the load from which on the deployment is cheaper"))
        .arg(Arg::new("run").long("run").value_name("RUN").help("Hold the API against the goodput of this run and not of the engine model"));
    flags::add_named(command, planning::FLAGS)
}

fn plan(matches: &ArgMatches) -> Result<Exit, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let flags = planning::FLAGS.iter().filter_map(|name| flags::named(name));
    let settings = Settings::typed_of(matches, flags).with_use_case(planning::USE_CASE)?;
    planning::run(&planning::Arguments {
        settings: &settings,
        tensor_parallel: text("tensor-parallel"),
        attainment: text("attainment"),
        api_price: text("api-price"),
        run: text("run"),
    })
}

const PROBE_EXAMPLES: &str = "\
Examples:
  goodput probe http://127.0.0.1:8000             all experiments, at most 8 requests in flight, 2 minutes
  goodput probe URL --max-concurrency 64 --budget 5m --isl 1024 --osl 256
  goodput probe URL --only baseline,lengths --json probe.json
  goodput probe --set max_num_seqs=4              the same on the engine model, in virtual time

It sends a few hundred requests at most, the most telling experiments first, stops on errors and at the
second refusal (429, 503), waits as Retry-After asks, and keeps no run directory: --json has every figure.";

fn probe_command() -> Command {
    let experiments: Vec<&str> = EXPERIMENTS.iter().map(|entry| entry.name).collect();
    let command = Command::new("probe")
        .about("Short experiments that tell queue, prefill, decode, cache and network apart, from the client alone")
        .after_help(PROBE_EXAMPLES)
        .arg(Arg::new("address").value_name("URL").help("Address to probe, as --url; without one the engine model is probed in virtual time"))
        .arg(Arg::new("budget").long("budget").value_name("D").help("Time for all experiments; what does not fit is left out and said [120s]"))
        .arg(Arg::new("only").long("only").value_name("NAMES").help(format!("Experiments by commas [{}]", experiments.join(","))));
    flags::add_named(command, probe::FLAGS)
}

fn probe(matches: &ArgMatches) -> Result<Exit, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let flags = || probe::FLAGS.iter().filter_map(|name| flags::named(name));
    let settings = Settings::typed_of(matches, flags());
    let mut settings = settings.with_environment(flags(), |name| std::env::var(name).ok());
    if let Some(address) = text("address") {
        settings.set("url", address.to_owned());
    }
    let (budget, only) = (text("budget"), text("only"));
    probe::run(&probe::Arguments { settings: &settings, budget, only })
}

fn ui_command() -> Command {
    Command::new("ui")
        .about("Show runs, overlays, the playground and the glossary in a browser, from this machine")
        .arg(Arg::new("port").long("port").value_name("N").default_value("8321").help("Port, 0 for a free one"))
        .arg(Arg::new("host").long("host").value_name("IP").default_value("127.0.0.1").help("Address to listen on; any but loopback needs --token"))
        .arg(runs_dir())
        .arg(Arg::new("token").long("token").value_name("TOKEN").help("What a browser must show; GOODPUT_UI_TOKEN says it without a trace in the list of processes"))
        .arg(lang_argument())
}

fn lang_argument() -> Arg {
    Arg::new("lang").long("lang").value_name("en|zh").help("Language [by the locale]")
}

fn run_argument() -> Arg {
    Arg::new("run").value_name("RUN").required(true).help("Path, id prefix, or latest")
}

fn runs_dir() -> Arg {
    Arg::new("runs-dir")
        .long("runs-dir")
        .value_name("DIR")
        .help("Where run directories are kept [runs]")
}

fn definitions() -> Arg {
    Arg::new("definitions")
        .long("definitions")
        .value_name("PRESET")
        .default_value("goodput")
        .help("goodput, vllm-0.27, vllm")
}

/// Parses the arguments and runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<Exit, Failure> {
    // A refused flag gets its own reason instead of "unknown argument".
    let word = |place: usize| arguments.get(place).map(String::as_str);
    if word(1) == Some("bench") || (word(1), word(2)) == (Some("sim"), Some("run")) {
        let refused: Vec<UsageError> = arguments
            .iter()
            .take_while(|argument| *argument != "--")
            .filter_map(|argument| flags::refusal(argument))
            .collect();
        if !refused.is_empty() {
            return Err(Failure::usage(refused));
        }
    }
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => {
            let text = error.to_string();
            return Err(Failure::new(Exit::Usage, text.trim().trim_start_matches("error: ")));
        }
        Err(help) => {
            crate::print(help.to_string().trim_end());
            return Ok(Exit::Ok);
        }
    };
    dispatch(&matches)
}

fn dispatch(matches: &ArgMatches) -> Result<Exit, Failure> {
    let text = |matches: &ArgMatches, name: &str| matches.get_one::<String>(name).cloned();
    match matches.subcommand() {
        Some(("bench", matches)) => bench::run(&settings(matches)?),
        Some(("report", matches)) => {
            let many = |name: &str| -> Vec<&str> {
                matches.get_many::<String>(name).unwrap_or_default().map(String::as_str).collect()
            };
            report_command::run(&report_command::Arguments {
                runs: many("run"),
                runs_dir: text(matches, "runs-dir").as_deref(),
                json: text(matches, "json").as_deref(),
                definitions: &text(matches, "definitions").unwrap_or_default(),
                goodput: many("goodput"),
                slo: many("slo"),
                isolated: many("isolated").into_iter().map(str::to_owned).collect(),
                fail_if: many("fail-if"),
                ground_truth: text(matches, "ground-truth").as_deref(),
                deployment: deployment_again(matches)?,
                asked: output::Asked {
                    html: text(matches, "html").as_deref(),
                    markdown: text(matches, "markdown").as_deref(),
                    csv: text(matches, "csv").as_deref(),
                },
                lang: lang(text(matches, "lang").as_deref())?,
            })
        }
        Some(("diagnose", matches)) => {
            let many = |name: &str| -> Vec<&str> {
                matches.get_many::<String>(name).unwrap_or_default().map(String::as_str).collect()
            };
            diagnose::run(&diagnose::Arguments {
                run: &text(matches, "run").unwrap_or_default(),
                runs_dir: text(matches, "runs-dir").as_deref(),
                json: text(matches, "json").as_deref(),
                goodput: many("goodput"),
                slo: many("slo"),
                lang: lang(text(matches, "lang").as_deref())?,
            })
        }
        Some(("export", matches)) => export::run(
            &text(matches, "run").unwrap_or_default(),
            text(matches, "runs-dir").as_deref(),
            &text(matches, "to").unwrap_or_default(),
            &text(matches, "definitions").unwrap_or_default(),
        ),
        Some(("import", matches)) => import::run(
            &text(matches, "file").unwrap_or_default(),
            text(matches, "out").as_deref(),
            text(matches, "runs-dir").as_deref(),
        ),
        Some(("explain", matches)) => {
            let words: Vec<&str> = matches
                .get_many::<String>("word")
                .unwrap_or_default()
                .map(String::as_str)
                .collect();
            let word = (!words.is_empty()).then(|| words.join(" "));
            explain::run(word.as_deref(), lang(text(matches, "lang").as_deref())?)
        }
        Some(("runs", matches)) => match matches.subcommand() {
            Some(("ls", matches)) => runs::list(text(matches, "runs-dir").as_deref()),
            Some(("rm", matches)) => runs::remove(
                &text(matches, "run").unwrap_or_default(),
                text(matches, "runs-dir").as_deref(),
            ),
            _ => unreachable!("clap asks for a subcommand"),
        },
        Some(("plan", matches)) => plan(matches),
        Some(("probe", matches)) => probe(matches),
        Some(("ui", matches)) => ui::run(&ui::Arguments {
            host: &text(matches, "host").unwrap_or_default(),
            port: &text(matches, "port").unwrap_or_default(),
            runs_dir: text(matches, "runs-dir").as_deref(),
            token: text(matches, "token").or_else(|| std::env::var("GOODPUT_UI_TOKEN").ok()),
            lang: lang(text(matches, "lang").as_deref())?,
        }),
        Some(("watch", matches)) => watch::run(matches),
        Some(("selftest", matches)) => selftest::run(
            matches.get_flag("quick"),
            text(matches, "runs-dir").as_deref(),
            text(matches, "json").as_deref(),
        ),
        Some(("sim", matches)) => match matches.subcommand() {
            Some(("serve", matches)) => serve::run(matches),
            Some(("run", matches)) => simulate(matches),
            Some(("fit", matches)) => fit_to_runs(matches),
            Some(("settings", matches)) => engine_settings::run(text(matches, "json").as_deref()),
            _ => unreachable!("clap asks for a subcommand"),
        },
        _ => unreachable!("clap asks for a subcommand"),
    }
}

fn simulate(matches: &ArgMatches) -> Result<Exit, Failure> {
    let settings = collected(matches)?;
    match matches.get_one::<String>("like") {
        Some(like) => what_if::run(&what_if::Arguments { like, settings: &settings }),
        None => simulate::run(&settings),
    }
}

fn fit_to_runs(matches: &ArgMatches) -> Result<Exit, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let many = |name: &str| -> Vec<&str> {
        matches.get_many::<String>(name).unwrap_or_default().map(String::as_str).collect()
    };
    fit::run(&fit::Arguments {
        runs: many("run"),
        runs_dir: text("runs-dir"),
        engine: text("engine"),
        set: many("set").into_iter().map(str::to_owned).collect(),
        only: many("only"),
        to: text("to"),
        json: text("json"),
    })
}

/// The flags of a command line that made a run, as it was stored; none where
/// this version does not take it.
pub(crate) fn settings_of(argv: &[String]) -> Option<Settings> {
    let matches = command().try_get_matches_from(argv).ok()?;
    let nothing = |_: &str| None;
    // What the file said is in the run's settings.
    let no_config = |_: &str| Ok(String::new());
    let of = |matches: &ArgMatches| Settings::collect(matches, nothing, no_config).ok();
    match matches.subcommand()? {
        ("bench", matches) => of(matches),
        ("sim", matches) => match matches.subcommand()? {
            ("run", matches) => of(matches),
            _ => None,
        },
        _ => None,
    }
}

/// What is given again of the machines of a stored run.
fn deployment_again(matches: &ArgMatches) -> Result<Deployment, Failure> {
    let settings = Settings::typed_of(matches, flags::of_group(DEPLOYMENT));
    plan::deployment::given_again(&settings).map_err(Failure::usage)
}

/// The settings of `bench`, with the positional address.
fn settings(matches: &ArgMatches) -> Result<Settings, Failure> {
    let mut settings = collected(matches)?;

    let words: Vec<&String> = matches.get_many::<String>("address").unwrap_or_default().collect();
    let address = match words.as_slice() {
        [] => None,
        [word] if word.as_str() == "serve" => None,
        [serve, address] if serve.as_str() == "serve" => Some(*address),
        [address] => Some(*address),
        [other, _] | [other, ..] => {
            let rule = "is not serve; give one address";
            return Err(UsageError::new(format!("{other:?}"), rule).into());
        }
    };
    if let Some(address) = address {
        let other = ["latency", "throughput", "startup", "sweep", "mm-processor"];
        if other.contains(&address.as_str()) {
            let rule = "is not part of this version; bench serve is";
            return Err(UsageError::new(format!("bench {address}"), rule).into());
        }
        settings.set("url", address.clone());
    }
    Ok(settings)
}

/// The flags of the table, wherever they were given.
fn collected(matches: &ArgMatches) -> Result<Settings, Failure> {
    let settings = Settings::collect(
        matches,
        |name| std::env::var(name).ok(),
        |path| {
            let bytes = store::read_file(path.as_ref(), 1 << 20)
                .map_err(|error| UsageError::new("--config", error))?;
            String::from_utf8(bytes)
                .map_err(|_| UsageError::new("--config", format!("{path} is not UTF-8")))
        },
    )?;
    Ok(settings)
}

/// The language that was asked for, else that of the locale.
pub(crate) fn lang(given: Option<&str>) -> Result<Lang, Failure> {
    match given {
        Some(name) => name
            .parse()
            .map_err(|error: report::lang::UnknownLang| Failure::new(Exit::Usage, error)),
        None => {
            let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
                .iter()
                .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
            Ok(Lang::from_locale(locale.as_deref().unwrap_or_default()))
        }
    }
}
