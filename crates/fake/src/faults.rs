//! Faults on request: what can go wrong with an answer on its way out of a served
//! engine. One table holds every fault; `--fault`, the header, the help and the
//! documents are made of it.
//!
//! The engine knows nothing of them: it takes its time, and what it tells of
//! itself stays true. Slow, hot and cold engines are settings of the model.

use measure::{FailureKind, Outcome, Warnings};
use thiserror::Error;

use crate::draw::mix;

/// The header that forces a fault on its request, where the server allows it.
pub const HEADER: &str = "x-goodput-fault";

/// The value of what has no end, and of what is left out.
const NONE: u64 = u64::MAX;

/// The shortest time that a key takes: the server has one thread.
const LEAST_NS: u64 = 1_000_000;

/// The longest, in seconds: longer than any test.
const MOST_S: f64 = 1e6;

/// Separates the draws of faults from others of the same request.
const DRAWS: u64 = 4;

/// One kind of fault: all that is said of it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// As `--fault` names it.
    pub name: &'static str,
    /// What can be said of it besides.
    pub parameters: &'static [Parameter],
    /// What it does, one sentence.
    pub does: &'static str,
    /// How a client should say that such a request ended, under the usual values.
    pub outcome: Outcome,
    /// What a client should warn of, under the usual values.
    pub warnings: Warnings,
    /// What else a client should tell, one clause; may be empty.
    pub shows: &'static str,
    /// Requests that it can hit.
    pub hits: Hits,
    /// What cannot hit the same request.
    pub excludes: Excludes,
    make: fn(&[u64]) -> Effect,
}

/// One key of a fault.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The key.
    pub name: &'static str,
    /// The value without the key.
    pub usual: &'static str,
    takes: Takes,
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
enum Takes {
    /// A whole number from this one on.
    Count(u32),
    /// A time.
    Span,
    /// A time, or `ever`.
    SpanOrEver,
    /// A status of a refusal.
    Status,
    /// Whole seconds, or `none`.
    SecondsOrNone,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// Which requests a fault can hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hits {
    /// All that the engine answers.
    All,
    /// Those with streamed answers.
    Streams,
    /// Chat requests with streamed answers.
    Chats,
}

/// What a fault cannot be together with, besides another of its own kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excludes {
    /// Nothing else.
    Itself,
    /// Others that end an answer early.
    Ends,
    /// Any other fault.
    All,
}

/// How an answer ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Truncate,
    Disconnect,
    Reset,
    Error,
}

/// What a fault does, with its values. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    SlowFirstToken { for_ns: u64 },
    Stall { after: u32, for_ns: Option<u64> },
    Cut { after: u32, cut: Cut },
    Refuse { status: u16, retry_after_s: Option<u64> },
    Comments { every_ns: u64 },
    Chunks { tokens: u32 },
    RoleOnly,
    NoUsage,
    LateUsage { for_ns: u64 },
    Reasoning { tokens: u32, field: &'static str },
    Coalesce { every_ns: u64 },
}

const AFTER: Parameter = Parameter { name: "after", usual: "8", takes: Takes::Count(0) };

const fn span(name: &'static str, usual: &'static str) -> Parameter {
    Parameter { name, usual, takes: Takes::Span }
}

const REASONING_FIELDS: &[&str] = &["reasoning_content", "reasoning"];

/// Counts fit: they were read as 32 bits.
const fn count(value: u64) -> u32 {
    value as u32
}

const fn unless_none(value: u64) -> Option<u64> {
    if value == NONE { None } else { Some(value) }
}

/// A fault that changes how an answer comes, and not that it comes whole.
const WHOLE: Kind = Kind {
    name: "",
    parameters: &[],
    does: "",
    outcome: Outcome::Ok,
    warnings: Warnings::NONE,
    shows: "",
    hits: Hits::Streams,
    excludes: Excludes::Itself,
    make: |_| Effect::RoleOnly,
};

/// A fault that ends an answer before its end.
const CUT: Kind = Kind { parameters: &[AFTER], excludes: Excludes::Ends, ..WHOLE };

/// Every fault.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "slow-first-token",
        parameters: &[span("for", "500ms")],
        does: "The first token is held back for so long; what comes meanwhile leaves with it.",
        shows: "TTFT is longer by `for`, and gaps that were held are 0",
        make: |values| Effect::SlowFirstToken { for_ns: values[0] },
        ..WHOLE
    },
    Kind {
        name: "stall",
        parameters: &[AFTER, Parameter { name: "for", usual: "ever", takes: Takes::SpanOrEver }],
        does: "After so many tokens nothing leaves for so long; `ever` never goes on.",
        outcome: Outcome::Failed(FailureKind::IdleTimeout),
        shows: "with `for=D` the answer is whole and has one gap of that length; \
                with `after=0` nothing came before, so that `total_timeout` it is",
        make: |values| Effect::Stall { after: count(values[0]), for_ns: unless_none(values[1]) },
        ..WHOLE
    },
    Kind {
        name: "truncate",
        does: "In place of the token after so many, the body ends in good order, without finish \
               reason and `[DONE]`.",
        outcome: Outcome::Failed(FailureKind::Truncated),
        make: |values| Effect::Cut { after: count(values[0]), cut: Cut::Truncate },
        ..CUT
    },
    Kind {
        name: "disconnect",
        does: "The connection is closed (FIN) in the middle of the event after so many tokens.",
        outcome: Outcome::Failed(FailureKind::Disconnected),
        make: |values| Effect::Cut { after: count(values[0]), cut: Cut::Disconnect },
        ..CUT
    },
    Kind {
        name: "reset",
        does: "The connection is reset (RST) in place of the token after so many.",
        outcome: Outcome::Failed(FailureKind::Disconnected),
        make: |values| Effect::Cut { after: count(values[0]), cut: Cut::Reset },
        ..CUT
    },
    Kind {
        name: "error-event",
        does: "In place of the token after so many, an error object, `[DONE]` and the end of the \
               body, as vLLM does it.",
        outcome: Outcome::Failed(FailureKind::InBand),
        shows: "the message and code 500",
        make: |values| Effect::Cut { after: count(values[0]), cut: Cut::Error },
        ..CUT
    },
    Kind {
        name: "refuse",
        parameters: &[
            Parameter { name: "status", usual: "429", takes: Takes::Status },
            Parameter { name: "retry-after", usual: "1", takes: Takes::SecondsOrNone },
        ],
        does: "The request is refused at once; `retry-after` is in seconds, or `none`.",
        outcome: Outcome::Failed(FailureKind::HttpStatus),
        shows: "the status, Retry-After, and a caveat for 429",
        hits: Hits::All,
        excludes: Excludes::All,
        make: |values| Effect::Refuse {
            status: count(values[0]) as u16,
            retry_after_s: unless_none(values[1]),
        },
        ..WHOLE
    },
    Kind {
        name: "comments",
        parameters: &[span("every", "100ms")],
        does: "Comments keep the connection alive, from the acceptance to the end of the answer.",
        shows: "they are counted, and no latency ends at one",
        make: |values| Effect::Comments { every_ns: values[0] },
        ..WHOLE
    },
    Kind {
        name: "chunks",
        parameters: &[Parameter { name: "tokens", usual: "4", takes: Takes::Count(1) }],
        does: "So many tokens leave in one event, when the last of them is there.",
        shows: "ICL grows and the mean of ITL does not; `first_chunk_bundled` where each event has its usage",
        make: |values| Effect::Chunks { tokens: count(values[0]) },
        ..WHOLE
    },
    Kind {
        name: "role-only",
        does: "The event with the role leaves when the request is accepted, long before a token.",
        shows: "TTFT does not end at it",
        hits: Hits::Chats,
        make: |_| Effect::RoleOnly,
        ..WHOLE
    },
    Kind {
        name: "no-usage",
        does: "Usage is left out although it was asked for.",
        warnings: Warnings::NO_USAGE,
        shows: "tokens are counted by a tokenizer or by chunks",
        make: |_| Effect::NoUsage,
        ..WHOLE
    },
    Kind {
        name: "late-usage",
        parameters: &[span("for", "500ms")],
        does: "Usage and `[DONE]` come so long after the finish reason.",
        shows: "E2EL ends at the finish reason",
        make: |values| Effect::LateUsage { for_ns: values[0] },
        ..WHOLE
    },
    Kind {
        name: "reasoning",
        parameters: &[
            Parameter { name: "tokens", usual: "8", takes: Takes::Count(1) },
            Parameter {
                name: "field",
                usual: REASONING_FIELDS[0],
                takes: Takes::Word(REASONING_FIELDS),
            },
        ],
        does: "The first tokens are reasoning, under `reasoning_content` or `reasoning`, and \
               usage counts them.",
        shows: "TTFT ends at reasoning, TTFC at the text after it",
        hits: Hits::Chats,
        make: |values| Effect::Reasoning {
            tokens: count(values[0]),
            field: REASONING_FIELDS[values[1] as usize],
        },
        ..WHOLE
    },
    Kind {
        name: "coalesce",
        parameters: &[span("every", "200ms")],
        does: "A proxy passes on what came only so often, counted from the acceptance, in one \
               write.",
        warnings: Warnings::BURSTY_DELIVERY,
        shows: "most gaps are 0; `not_streamed` where one write holds the whole answer",
        make: |values| Effect::Coalesce { every_ns: values[0] },
        ..WHOLE
    },
];

/// A fault that is no fault of the table, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultError {
    /// No fault has this name.
    #[error("there is no fault {name:?}; there are {}", names())]
    Name {
        /// What was asked for.
        name: String,
    },
    /// The fault has no such key.
    #[error("{fault} has no key {key:?}; its keys are {keys}")]
    Key {
        /// The fault.
        fault: &'static str,
        /// What was given.
        key: String,
        /// What may be given.
        keys: String,
    },
    /// A key without a value.
    #[error("{fault}: {text:?} is no key with a value; write NAME,key=value, with the keys {keys}")]
    Shape {
        /// The fault.
        fault: &'static str,
        /// What was given.
        text: String,
        /// What may be given.
        keys: String,
    },
    /// A value that the key does not take.
    #[error("{fault}: {key}={value} {rule}")]
    Value {
        /// The fault.
        fault: &'static str,
        /// The key.
        key: &'static str,
        /// What was given.
        value: String,
        /// What it must be.
        rule: String,
    },
    /// A request that the fault cannot hit.
    #[error("{fault} hits {} only", hits.words())]
    Hits {
        /// The fault.
        fault: &'static str,
        /// What it hits.
        hits: Hits,
    },
}

/// A fault with its values.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    kind: &'static Kind,
    pub(crate) effect: Effect,
}

/// A fault, and which share of the requests it hits.
#[derive(Clone, Copy, Debug)]
pub struct FaultShare {
    /// The fault.
    pub fault: Fault,
    /// 0 to 1.
    pub share: f64,
}

/// A request as a fault sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) streams: bool,
    pub(crate) chat: bool,
}

impl Kind {
    /// The fault as it is written, with its keys and usual values.
    pub fn usage(&self) -> String {
        let keys = self.parameters.iter().map(|one| format!(",{}={}", one.name, one.usual));
        [self.name.to_owned()].into_iter().chain(keys).collect()
    }

    /// The keys that may be given, in words.
    fn keys(&self, with_share: bool) -> String {
        let own = self.parameters.iter().map(|parameter| parameter.name);
        let keys: Vec<&str> = own.chain(with_share.then_some("share")).collect();
        if keys.is_empty() { "none".to_owned() } else { keys.join(", ") }
    }
}

impl Hits {
    const fn words(self) -> &'static str {
        match self {
            Self::All => "any request",
            Self::Streams => "streamed answers",
            Self::Chats => "streamed answers of chat requests",
        }
    }

    const fn fits(self, target: Target) -> bool {
        match self {
            Self::All => true,
            Self::Streams => target.streams,
            Self::Chats => target.streams && target.chat,
        }
    }
}

impl Fault {
    /// Reads `NAME[,key=value…]`.
    ///
    /// # Errors
    /// What is no fault, with the names or keys that there are.
    pub fn read(text: &str) -> Result<Self, FaultError> {
        read(text, None)
    }

    /// Its entry in the table.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// The fault, where it can hit this request.
    pub(crate) fn on(self, target: Target) -> Result<Self, FaultError> {
        let Kind { name: fault, hits, .. } = *self.kind;
        if hits.fits(target) { Ok(self) } else { Err(FaultError::Hits { fault, hits }) }
    }

    fn goes_with(self, other: &Self) -> bool {
        let (one, other) = (self.kind, other.kind);
        let ends = one.excludes == Excludes::Ends && other.excludes == Excludes::Ends;
        let alone = one.excludes == Excludes::All || other.excludes == Excludes::All;
        one.name != other.name && !ends && !alone
    }
}

impl FaultShare {
    /// Reads `NAME[,key=value…][,share=0..1]`; without a share all are hit.
    ///
    /// # Errors
    /// What is no fault, with the names or keys that there are.
    pub fn read(text: &str) -> Result<Self, FaultError> {
        let mut share = 1.0;
        let fault = read(text, Some(&mut share))?;
        Ok(Self { fault, share })
    }
}

/// The faults that hit a request, by its number: each is drawn by itself, and of
/// those that cannot be together the first one stays.
pub(crate) fn drawn(faults: &[FaultShare], seed: u64, number: u64, target: Target) -> Vec<Fault> {
    let mut hit: Vec<Fault> = Vec::new();
    for (place, one) in faults.iter().enumerate() {
        let draw = mix(mix(seed, number, DRAWS), place as u64, 0);
        // The upper 53 bits are a number from 0 to below 1, exactly.
        let at = (draw >> 11) as f64 / (1_u64 << 53) as f64;
        let hits = at < one.share && one.fault.kind.hits.fits(target);
        if hits && hit.iter().all(|other| one.fault.goes_with(other)) {
            hit.push(one.fault);
        }
    }
    hit
}

fn names() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.join(", ")
}

fn read(text: &str, mut share: Option<&mut f64>) -> Result<Fault, FaultError> {
    let mut parts = text.split(',').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let kind = KINDS.iter().find(|kind| kind.name == name);
    let kind = kind.ok_or_else(|| FaultError::Name { name: name.to_owned() })?;
    let (fault, keys) = (kind.name, kind.keys(share.is_some()));
    let mut values: Vec<u64> = kind.parameters.iter().map(Parameter::usual_value).collect();
    for part in parts {
        let Some((key, value)) = part.split_once('=') else {
            return Err(FaultError::Shape { fault, text: part.to_owned(), keys });
        };
        let wrong = |key, rule| FaultError::Value { fault, key, value: value.to_owned(), rule };
        if let Some(share) = share.as_deref_mut().filter(|_| key == "share") {
            let read = value.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
            *share = read.ok_or_else(|| wrong("share", "is not a share from 0 to 1".to_owned()))?;
            continue;
        }
        let place = kind.parameters.iter().position(|parameter| parameter.name == key);
        let Some(place) = place else {
            return Err(FaultError::Key { fault, key: key.to_owned(), keys });
        };
        let parameter = &kind.parameters[place];
        values[place] = parameter.takes.read(value).map_err(|rule| wrong(parameter.name, rule))?;
    }
    Ok(Fault { kind, effect: (kind.make)(&values) })
}

impl Parameter {
    fn usual_value(&self) -> u64 {
        self.takes.read(self.usual).expect("a test reads every usual value")
    }
}

impl Takes {
    fn read(self, text: &str) -> Result<u64, String> {
        let (read, rule) = match self {
            Self::Count(least) => {
                let read = text.parse::<u32>().ok().filter(|count| *count >= least);
                (read.map(u64::from), format!("is not a whole number from {least} on"))
            }
            Self::Span => (nanoseconds(text), SPAN.to_owned()),
            Self::SpanOrEver if text == "ever" => (Some(NONE), String::new()),
            Self::SpanOrEver => (nanoseconds(text), format!("{SPAN}, nor ever")),
            Self::Status => {
                let read = text.parse::<u16>().ok().filter(|status| (400..600).contains(status));
                (read.map(u64::from), "is not a status from 400 to 599".to_owned())
            }
            Self::SecondsOrNone if text == "none" => (Some(NONE), String::new()),
            Self::SecondsOrNone => {
                let read = text.parse::<u32>().ok().map(u64::from);
                (read, "is not a whole number of seconds, nor none".to_owned())
            }
            Self::Word(words) => {
                let read = words.iter().position(|word| *word == text);
                (read.map(|place| place as u64), format!("is not one of {}", words.join(", ")))
            }
        };
        read.ok_or(rule)
    }
}

const SPAN: &str = "is not a time from 1ms on; write 250ms, 2s or 1m";

/// A time as flags have it: a bare number is seconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let seconds = match &text[end..] {
        "ms" => number / 1e3,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    let in_range = (0.0..=MOST_S).contains(&seconds);
    let ns = in_range.then(|| (seconds * 1e9).round() as u64)?;
    (ns >= LEAST_NS).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: Target = Target { streams: true, chat: true };

    #[test]
    fn every_fault_is_read_with_its_usual_values_and_named_once() {
        for (place, kind) in KINDS.iter().enumerate() {
            let fault = Fault::read(kind.name).unwrap();
            assert_eq!(fault.effect, Fault::read(&kind.usage()).unwrap().effect, "{}", kind.name);
            assert!(KINDS[..place].iter().all(|other| other.name != kind.name), "{}", kind.name);
            assert!(kind.does.ends_with('.') && !kind.shows.ends_with('.'), "{}", kind.name);
        }
    }

    #[test]
    fn values_are_those_that_were_given() {
        let effect = |text| Fault::read(text).unwrap().effect;
        let second = 1_000_000_000;
        assert_eq!(effect("stall,for=2s"), Effect::Stall { after: 8, for_ns: Some(2 * second) });
        assert_eq!(effect("stall,after=3"), Effect::Stall { after: 3, for_ns: None });
        assert_eq!(effect("comments,every=0.5"), Effect::Comments { every_ns: second / 2 });
        assert_eq!(
            effect("refuse,status=503,retry-after=none"),
            Effect::Refuse { status: 503, retry_after_s: None }
        );
        assert_eq!(
            effect("reasoning,field=reasoning, tokens=2"),
            Effect::Reasoning { tokens: 2, field: "reasoning" }
        );
        let shared = FaultShare::read("reset,share=0.25,after=1").unwrap();
        assert_eq!(shared.fault.effect, Effect::Cut { after: 1, cut: Cut::Reset });
        assert_eq!(shared.share.to_bits(), 0.25_f64.to_bits());
    }

    #[test]
    fn what_is_no_fault_is_told_with_what_there_is() {
        for (text, words) in [
            ("", &["there is no fault \"\"", "slow-first-token, stall, truncate"][..]),
            ("stal", &["\"stal\"", "coalesce"]),
            ("truncate,afer=1", &["truncate has no key \"afer\"", "after, share"]),
            ("role-only,after=1", &["its keys are share"]),
            ("truncate,after", &["\"after\" is no key with a value", "key=value"]),
            ("truncate,after=-1", &["after=-1 is not a whole number from 0 on"]),
            ("chunks,tokens=0", &["from 1 on"]),
            ("comments,every=0", &["every=0 is not a time from 1ms on"]),
            ("comments,every=3d", &["is not a time"]),
            ("stall,for=never", &["nor ever"]),
            ("refuse,status=200", &["from 400 to 599"]),
            ("refuse,retry-after=1s", &["whole number of seconds, nor none"]),
            ("reasoning,field=thinking", &["one of reasoning_content, reasoning"]),
            ("reset,share=2", &["share=2 is not a share from 0 to 1"]),
        ] {
            let told = FaultShare::read(text).unwrap_err().to_string();
            words.iter().for_each(|word| assert!(told.contains(word), "{text}: {told}"));
        }
        let told = Fault::read("reset,share=1").unwrap_err().to_string();
        assert!(told.ends_with("its keys are after"), "{told}");
    }

    fn hit(faults: &[&str], target: Target) -> Vec<&'static str> {
        let faults: Vec<_> = faults.iter().map(|text| FaultShare::read(text).unwrap()).collect();
        drawn(&faults, 0, 1, target).iter().map(|fault| fault.kind.name).collect()
    }

    #[test]
    fn the_first_of_those_that_cannot_be_together_wins() {
        assert_eq!(
            hit(&["stall", "reset", "truncate", "chunks"], CHAT),
            ["stall", "reset", "chunks"]
        );
        assert_eq!(hit(&["stall,after=2", "stall,after=1"], CHAT).len(), 1);
        assert_eq!(hit(&["refuse", "reset"], CHAT), ["refuse"]);
        assert_eq!(hit(&["reset", "refuse"], CHAT), ["reset"]);
        assert_eq!(hit(&["refuse,share=0", "reset"], CHAT), ["reset"], "one that hits not");
        let whole = Target { streams: false, chat: true };
        assert_eq!(hit(&["reset", "refuse"], whole), ["refuse"], "one that cannot hit");
        assert!(hit(&["reasoning"], Target { streams: true, chat: false }).is_empty());
    }

    #[test]
    fn a_share_of_the_requests_is_hit_and_the_same_every_time() {
        let faults =
            ["stall,share=0.3", "chunks,share=0.3"].map(FaultShare::read).map(Result::unwrap);
        let numbers = |name: &str, seed: u64| -> Vec<u64> {
            let hits = |number: &u64| {
                let hit = drawn(&faults, seed, *number, CHAT);
                hit.iter().any(|fault| fault.kind.name == name)
            };
            (1..=10_000).filter(hits).collect()
        };
        let (stalled, chunked) = (numbers("stall", 7), numbers("chunks", 7));
        // Four standard deviations of 10 000 draws at 0.3 are 183.
        assert!(stalled.len().abs_diff(3_000) < 183, "{}", stalled.len());
        let both = stalled.iter().filter(|number| chunked.contains(number)).count();
        assert!(both.abs_diff(900) < 115, "they are drawn apart: {both}");
        assert_eq!(stalled, numbers("stall", 7));
        assert_ne!(stalled, numbers("stall", 8));
    }
}
