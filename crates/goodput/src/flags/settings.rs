//! What the user typed, with where each value came from, and the reading of
//! values. Precedence: command line, environment, config file, default. A seed
//! that nobody gave is drawn.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use clap::{Arg, ArgAction, ArgMatches, Command};
use measure::Span;
use measure::use_case::{self, USE_CASES};

use super::{BENCH, Flag, REFUSED, Secrecy, Takes, UsageError, Vllm, named, of_group};

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    CommandLine,
    Environment,
    ConfigFile,
    UseCase,
    Drawn,
}

impl Origin {
    const fn name(self) -> &'static str {
        match self {
            Self::CommandLine => "command line",
            Self::Environment => "environment",
            Self::ConfigFile => "config file",
            Self::UseCase => "use case",
            Self::Drawn => "drawn",
        }
    }
}

/// The flags given, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    given: BTreeMap<&'static str, (Vec<String>, Origin)>,
}

/// Adds the table's flags to a command.
pub(crate) fn add_to(command: Command) -> Command {
    BENCH.iter().fold(command, |command, flag| command.arg(argument(flag)))
}

/// Adds those of one group to a command that has few of them.
pub(crate) fn add_group(command: Command, group: &'static str) -> Command {
    of_group(group).fold(command, |command, flag| command.arg(argument(flag)))
}

/// Adds those of these names.
pub(crate) fn add_named(command: Command, names: &[&str]) -> Command {
    let flags = BENCH.iter().filter(|flag| names.contains(&flag.name));
    flags.fold(command, |command, flag| command.arg(argument(flag)))
}

fn argument(flag: &Flag) -> Arg {
    let mut arg = Arg::new(flag.name).long(flag.name).help(flag.help).help_heading(flag.group);
    if let Some(short) = flag.short {
        arg = arg.short(short);
    }
    arg = arg.visible_aliases(flag.also.iter().copied());
    arg = match flag.takes {
        Takes::Nothing => arg.action(ArgAction::SetTrue).overrides_with(flag.name),
        Takes::One(value) => arg.action(ArgAction::Set).value_name(value).overrides_with(flag.name),
        Takes::Several(value) => {
            arg.action(ArgAction::Set).num_args(1..).value_name(value).overrides_with(flag.name)
        }
        Takes::Each(value) => arg.action(ArgAction::Append).value_name(value),
    };
    if flag.takes != Takes::Nothing {
        // Numbers such as -1 are values, not flags.
        arg = arg.allow_negative_numbers(true);
    }
    if let Vllm::Other(difference) = flag.vllm {
        arg = arg.long_help(format!("{}. vLLM's flag, but: {difference}", flag.help));
    }
    arg
}

/// Writes `--max_concurrency` as `--max-concurrency`, as vLLM's parser does.
pub(crate) fn with_dashes(argument: String) -> String {
    match argument.strip_prefix("--") {
        Some(rest) if !rest.is_empty() => {
            let end = rest.find('=').unwrap_or(rest.len());
            format!("--{}{}", rest[..end].replace('_', "-"), &rest[end..])
        }
        _ => argument,
    }
}

/// The reason for refusing a flag of vLLM's, if `argument` is one.
pub(crate) fn refusal(argument: &str) -> Option<UsageError> {
    let name = argument.strip_prefix("--")?.split('=').next()?;
    let (name, reason) = REFUSED.iter().find(|(refused, _)| *refused == name)?;
    Some(UsageError::new(format!("--{name}"), format!("is not supported: {reason}")))
}

impl Settings {
    /// Collects what was typed, then the environment, then the config file.
    pub(crate) fn collect(
        matches: &ArgMatches,
        environment: impl Fn(&str) -> Option<String>,
        read_config: impl Fn(&str) -> Result<String, UsageError>,
    ) -> Result<Self, UsageError> {
        let typed = Self::typed_of(matches, BENCH.iter());
        let mut settings = typed.with_environment(BENCH.iter(), environment);
        if let Some(path) = settings.text("config").map(str::to_owned) {
            settings.add_config(&path, &read_config(&path)?)?;
        }
        settings.add_use_case()?;
        Ok(settings)
    }

    /// The same with what the environment says of these flags.
    pub(crate) fn with_environment(
        mut self,
        flags: impl Iterator<Item = &'static Flag>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Self {
        for flag in flags {
            let variable = format!("GOODPUT_{}", flag.name.replace('-', "_").to_uppercase());
            if let Some(value) = environment(&variable) {
                self.add(flag, split(flag, &value), Origin::Environment);
            }
        }
        self
    }

    /// What was typed of these flags, which the command has.
    pub(crate) fn typed_of(
        matches: &ArgMatches,
        flags: impl Iterator<Item = &'static Flag>,
    ) -> Self {
        let mut settings = Self::default();
        for flag in flags {
            if matches.value_source(flag.name) != Some(clap::parser::ValueSource::CommandLine) {
                continue;
            }
            let values = match flag.takes {
                Takes::Nothing => vec!["true".to_owned()],
                _ => matches.get_many::<String>(flag.name).unwrap_or_default().cloned().collect(),
            };
            settings.given.insert(flag.name, (values, Origin::CommandLine));
        }
        settings
    }

    /// The same with a use case where none was typed, and what it sets.
    pub(crate) fn with_use_case(mut self, usual: &str) -> Result<Self, UsageError> {
        self.add_named("use-case", usual);
        self.add_use_case()?;
        Ok(self)
    }

    /// A lower origin never replaces a higher one.
    fn add(&mut self, flag: &Flag, values: Vec<String>, origin: Origin) {
        self.given.entry(flag.name).or_insert((values, origin));
    }

    fn add_config(&mut self, path: &str, text: &str) -> Result<(), UsageError> {
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| UsageError::new(path, error.message().to_owned()))?;
        for (key, value) in table {
            let name = key.replace('_', "-");
            let flag = named(&name).ok_or_else(|| {
                UsageError::new(path, format!("{key:?} is not a flag of bench; see --help"))
            })?;
            let values = values_of(&value).ok_or_else(|| {
                UsageError::new(
                    path,
                    format!("{key} must be a text, number, true, false or a list"),
                )
            })?;
            if values == ["false"] && flag.takes == Takes::Nothing {
                continue;
            }
            self.add(flag, values, Origin::ConfigFile);
        }
        Ok(())
    }

    /// What a use case sets, where nobody else did.
    fn add_use_case(&mut self) -> Result<(), UsageError> {
        let Some(name) = self.text("use-case") else { return Ok(()) };
        let use_case = use_case::find(name).ok_or_else(|| {
            let known: Vec<&str> = USE_CASES.iter().map(|use_case| use_case.name).collect();
            UsageError::new("--use-case", format!("{name:?} is not one of {}", known.join(", ")))
        })?;
        let own_slo = self.has("slo") || self.has("goodput");
        if use_case.needs_slo && !own_slo {
            let rule = "slo-bound counts what meets an objective; give one with --slo or --goodput";
            return Err(UsageError::new("--use-case", rule));
        }
        for setting in use_case.settings {
            if !setting.unless.iter().any(|flag| self.has(flag)) {
                self.add_named(setting.flag, setting.value);
            }
        }
        if !own_slo && !use_case.limits.is_empty() {
            self.add_named("slo", &use_case.slo());
        }
        Ok(())
    }

    fn add_named(&mut self, name: &str, value: &str) {
        let flag = BENCH.iter().find(|flag| flag.name == name);
        let flag = flag.expect("a use case names flags of the table; a test holds it to them");
        self.add(flag, vec![value.to_owned()], Origin::UseCase);
    }

    /// Adds what the manifest of a run says was given elsewhere than on the
    /// command line.
    pub(crate) fn add_stored(&mut self, stored: &[wire::run::Setting]) {
        for setting in stored {
            let origins = [Origin::Environment, Origin::ConfigFile, Origin::Drawn];
            let origin = origins.into_iter().find(|origin| origin.name() == setting.origin);
            if let (Some(origin), Some(flag)) = (origin, named(&setting.name)) {
                let values = match flag.takes {
                    Takes::Several(_) | Takes::Each(_) => {
                        setting.value.split_whitespace().map(str::to_owned).collect()
                    }
                    Takes::Nothing | Takes::One(_) => vec![setting.value.clone()],
                };
                self.add(flag, values, origin);
            }
        }
    }

    /// Flags that were typed.
    pub(crate) fn typed(&self) -> impl Iterator<Item = &'static str> + '_ {
        let typed = self.given.iter().filter(|(_, (_, origin))| *origin == Origin::CommandLine);
        typed.map(|(name, _)| *name)
    }

    /// The last value of a flag.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name)?.0.last().map(String::as_str)
    }

    /// All values of a flag.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.given.get(name).map_or(&[], |(values, _)| values)
    }

    /// True when a switch is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    /// True when the flag was given at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Sets a value as if it had been typed: for the positional URL.
    pub(crate) fn set(&mut self, name: &'static str, value: String) {
        self.given.insert(name, (vec![value], Origin::CommandLine));
    }

    /// Puts values in the place of those of a flag: for a part of a mix.
    pub(crate) fn replace(&mut self, name: &'static str, values: Vec<String>) {
        self.given.insert(name, (values, Origin::CommandLine));
    }

    /// Gives a flag that nobody gave a value from the system's randomness.
    pub(crate) fn set_drawn(&mut self, name: &'static str, value: String) {
        self.given.entry(name).or_insert((vec![value], Origin::Drawn));
    }

    /// Every setting as it may be stored: name, value, origin.
    pub(crate) fn stored(&self) -> Vec<wire::run::Setting> {
        self.given
            .iter()
            .map(|(name, (values, origin))| wire::run::Setting {
                name: (*name).to_owned(),
                value: values
                    .iter()
                    .map(|value| storable(name, value))
                    .collect::<Vec<_>>()
                    .join(" "),
                origin: origin.name().to_owned(),
            })
            .collect()
    }

    /// The command line as it may be stored, behind the words of its command.
    pub(crate) fn argv(&self, command: &[&str]) -> Vec<String> {
        let mut argv: Vec<String> =
            ["goodput"].iter().chain(command).map(|word| (*word).to_owned()).collect();
        for (name, (values, origin)) in &self.given {
            if *origin != Origin::CommandLine {
                continue;
            }
            let flag = BENCH.iter().find(|flag| flag.name == *name);
            match flag.map(|flag| flag.takes) {
                Some(Takes::Nothing) | None => argv.push(format!("--{name}")),
                Some(Takes::Each(_)) => {
                    for value in values {
                        argv.extend([format!("--{name}"), storable(name, value)]);
                    }
                }
                Some(Takes::One(_) | Takes::Several(_)) => {
                    argv.push(format!("--{name}"));
                    argv.extend(values.iter().map(|value| storable(name, value)));
                }
            }
        }
        argv
    }
}

/// The values that a TOML value gives a flag; `None` where it can be none.
pub(crate) fn values_of(value: &toml::Value) -> Option<Vec<String>> {
    let one = |value: &toml::Value| match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(n) => Some(n.to_string()),
        toml::Value::Float(x) => Some(x.to_string()),
        toml::Value::Boolean(b) => Some(b.to_string()),
        _ => None,
    };
    match value {
        toml::Value::Array(items) => items.iter().map(one).collect(),
        single => one(single).map(|value| vec![value]),
    }
}

/// An environment value of a flag that takes several is split at blanks.
fn split(flag: &Flag, value: &str) -> Vec<String> {
    match flag.takes {
        Takes::Several(_) => value.split_whitespace().map(str::to_owned).collect(),
        Takes::Each(_) => value.lines().map(str::to_owned).collect(),
        Takes::Nothing | Takes::One(_) => vec![value.to_owned()],
    }
}

fn storable(name: &str, value: &str) -> String {
    let secrecy = BENCH.iter().find(|flag| flag.name == name).map(|flag| flag.secrecy);
    match secrecy {
        Some(Secrecy::Header) => {
            let end = value.find(['=', ':']).unwrap_or(0);
            format!("{}: {}", &value[..end], drive::secret::REDACTED)
        }
        Some(Secrecy::Url) => storable_url(value),
        Some(Secrecy::Json) => match serde_json::from_str(value) {
            Ok(mut json) => {
                hide_members(&mut json);
                json.to_string()
            }
            Err(_) => drive::secret::REDACTED.to_owned(),
        },
        Some(Secrecy::Open) | None => value.to_owned(),
    }
}

/// An address without user, password and query values: hosted APIs take keys
/// in the query.
pub(crate) fn storable_url(url: &str) -> String {
    let (before, query) = url.split_once('?').map_or((url, None), |(a, b)| (a, Some(b)));
    let mut text = match before.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let host = rest[..end].rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{}", &rest[end..])
        }
        None => before.to_owned(),
    };
    if let Some(query) = query {
        let hidden = query.split('&').map(|pair| match pair.split_once('=') {
            Some(("api-version", _)) | None => pair.to_owned(),
            Some((name, _)) => format!("{name}={}", drive::secret::REDACTED),
        });
        text = format!("{text}?{}", hidden.collect::<Vec<_>>().join("&"));
    }
    text
}

fn hide_members(value: &mut serde_json::Value) {
    for_each_secret(value, &mut |secret| *secret = drive::secret::REDACTED.to_owned());
}

/// Visits the texts in a JSON value whose names tell that they are secret.
pub(crate) fn for_each_secret(value: &mut serde_json::Value, visit: &mut impl FnMut(&mut String)) {
    const TELLING: &[&str] = &["key", "token", "secret", "password", "authorization", "credential"];
    match value {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                let name = name.to_lowercase();
                match member {
                    serde_json::Value::String(text)
                        if TELLING.iter().any(|word| name.ends_with(word)) =>
                    {
                        visit(text);
                    }
                    other => for_each_secret(other, visit),
                }
            }
        }
        serde_json::Value::Array(items) => {
            items.iter_mut().for_each(|item| for_each_secret(item, visit));
        }
        _ => {}
    }
}

/// Reads values and collects what is wrong with them, so that a user sees all
/// mistakes at once.
pub(crate) struct Reader<'a> {
    /// What was typed.
    pub(crate) settings: &'a Settings,
    /// What is wrong so far.
    pub(crate) errors: Vec<UsageError>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(settings: &'a Settings) -> Self {
        Self { settings, errors: Vec::new() }
    }

    /// Notes a mistake in a flag.
    pub(crate) fn wrong(&mut self, name: &str, rule: impl Display) {
        self.errors.push(UsageError::new(format!("--{name}"), rule));
    }

    /// A value read by its type; `rule` says what the type allows.
    pub(crate) fn value<T: FromStr>(&mut self, name: &str, rule: &str) -> Option<T> {
        let text = self.settings.text(name)?;
        match text.trim().parse() {
            Ok(value) => Some(value),
            Err(_) => {
                self.wrong(name, format!("{text:?} is not {rule}"));
                None
            }
        }
    }

    /// A finite number.
    pub(crate) fn number(&mut self, name: &str) -> Option<f64> {
        let value: f64 = self.value(name, "a number")?;
        if value.is_finite() {
            return Some(value);
        }
        self.wrong(name, "must be a finite number");
        None
    }

    /// A duration: a bare number is seconds; ms, s, m, h.
    pub(crate) fn duration(&mut self, name: &str) -> Option<Span> {
        let text = self.settings.text(name)?;
        let span = parse_duration(text);
        if span.is_none() {
            self.wrong(name, format!("{text:?} is not a duration; write 30, 500ms, 30s, 5m or 1h"));
        }
        span
    }

    /// One of a list of words.
    pub(crate) fn choice<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.settings.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(name, format!("{text:?} is not one of {}", known.join(", ")));
        }
        found
    }
}

/// Reads a duration; `None` when it is none. Bare numbers are seconds.
pub(crate) fn parse_duration(text: &str) -> Option<Span> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..end].trim().parse().ok()?;
    let seconds = match &text[end..] {
        "ms" => number / 1e3,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    (seconds.is_finite() && (0.0..=1e9).contains(&seconds)).then(|| Span::from_s(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(arguments: &[&str], config: &str, environment: &[(&str, &str)]) -> Settings {
        let command = add_to(Command::new("bench").no_binary_name(true));
        let arguments = arguments.iter().map(|argument| with_dashes((*argument).to_owned()));
        let matches = command.try_get_matches_from(arguments).unwrap();
        let environment = |name: &str| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned())
        };
        Settings::collect(&matches, environment, |_| Ok(config.to_owned())).unwrap()
    }

    #[test]
    fn the_last_of_two_wins_and_underscores_are_dashes() {
        let given = settings(&["--max_concurrency", "3", "-c", "4", "--num_prompts=5"], "", &[]);
        assert_eq!(given.text("max-concurrency"), Some("4"));
        assert_eq!(given.text("num-prompts"), Some("5"));
    }

    #[test]
    fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
        let config = "seed = 1\nisl = 2\nosl = 3\nheader = [\"A: b\"]\ninsecure = true";
        let environment = [("GOODPUT_SEED", "4"), ("GOODPUT_ISL", "5")];
        let given = settings(&["--seed", "6", "--config", "f"], config, &environment);
        assert_eq!(given.text("seed"), Some("6"));
        assert_eq!(given.text("isl"), Some("5"));
        assert_eq!(given.text("osl"), Some("3"));
        assert!(given.is_on("insecure"));
        let origins: Vec<_> = given.stored().into_iter().map(|s| (s.name, s.origin)).collect();
        assert!(origins.contains(&("isl".to_owned(), "environment".to_owned())));
        assert!(origins.contains(&("osl".to_owned(), "config file".to_owned())));
    }

    #[test]
    fn a_use_case_yields_to_everybody_else_and_is_named_as_the_origin() {
        let config = "osl = 3";
        let given = settings(&["--use-case", "chat", "--isl", "9", "--config", "f"], config, &[]);
        assert_eq!((given.text("isl"), given.text("osl")), (Some("9"), Some("3")));
        let stored = given.stored();
        let slo = stored.iter().find(|setting| setting.name == "slo").unwrap();
        assert_eq!(
            (slo.value.as_str(), slo.origin.as_str()),
            ("start <= 500ms, tpot <= 50ms", "use case")
        );
        let given = settings(&["--goodput", "ttft:3"], "", &[("GOODPUT_USE_CASE", "chat")]);
        assert_eq!((given.text("slo"), given.text("isl")), (None, Some("512")));
        let given = settings(&["--use-case", "chat", "--dataset-name", "sonnet"], "", &[]);
        assert_eq!(given.text("isl"), None);
    }

    #[test]
    fn every_use_case_sets_flags_that_are_there() {
        for use_case in USE_CASES.iter().filter(|use_case| !use_case.needs_slo) {
            let given = settings(&["--use-case", use_case.name], "", &[]);
            for setting in use_case.settings {
                assert_eq!(given.text(setting.flag), Some(setting.value), "{}", use_case.name);
            }
        }
    }

    #[test]
    fn durations_have_units() {
        let us = |text| parse_duration(text).map(Span::us);
        assert_eq!(us("1.5"), Some(1_500_000));
        assert_eq!(us("250ms"), Some(250_000));
        assert_eq!(us("2m"), Some(120_000_000));
        assert_eq!(us("1h"), Some(3_600_000_000));
        for wrong in ["", "s", "-1", "5d", "nan", "1e99"] {
            assert_eq!(us(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_may_hold_a_key_is_not_stored() {
        let given = settings(
            &[
                "--header",
                "Authorization: Bearer sk-canary",
                "--header",
                "X-Key=sk-canary",
                "--url",
                "https://u:sk-canary@h/p?key=sk-canary&api-version=1",
                "--extra-body",
                r#"{"a":{"api_key":"sk-canary"},"n":1}"#,
            ],
            "",
            &[],
        );
        let stored = format!("{:?} {:?}", given.stored(), given.argv(&["bench"]));
        assert!(!stored.contains("canary"), "{stored}");
        assert!(stored.contains("Authorization: [redacted]"));
        assert!(stored.contains("api-version=1"));
    }

    #[test]
    fn a_refused_flag_gives_its_reason() {
        let error = refusal("--tokenizer-mode=x").unwrap().to_string();
        assert!(error.starts_with("--tokenizer-mode: is not supported"), "{error}");
        assert_eq!(refusal("--model"), None);
    }
}
