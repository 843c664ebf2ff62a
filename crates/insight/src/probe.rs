//! Experiments that a client can make at a server without its metrics: which
//! small loads in which order, what they come to, and what follows.
//!
//! [`Probe`] says what to do next and takes what came of it; it reads no clock
//! and sends nothing. Whoever holds it makes the loads, at a server or at the
//! engine model.

mod course;
mod figures;
mod verdict;

use measure::course::Course;
use measure::definition::GOODPUT;
use measure::metric::Text;
use measure::request::{Settings, Timed};
use measure::said::Said;
use measure::{Outcome, Record};

pub use course::Probe;
pub use figures::{
    Baseline, Canaries, Figures, Ladder, Lengths, Level, Line, OutputRow, Outputs, Prefill, Prefix,
    Queueing, Rate, Row, Scale, Transport,
};
pub use verdict::{Conclusions, Context};

/// One kind of experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Experiment {
    /// Connections and cheap requests.
    Transport,
    /// One request at a time.
    Baseline,
    /// Prompts of several lengths, one token each.
    Lengths,
    /// More and more users.
    Ladder,
    /// The same with prompts of four times the length.
    Contexts,
    /// The same prompts twice.
    Prefix,
    /// Answers of several lengths.
    Outputs,
    /// Short prompts beside a load.
    Canary,
    /// An open loop at three rates.
    Rates,
}

/// What is said of an experiment.
#[derive(Debug)]
pub struct Entry {
    /// Which.
    pub experiment: Experiment,
    /// Its name in flags and JSON.
    pub name: &'static str,
    /// What is done.
    pub does: Text,
    /// What it decides.
    pub decides: Text,
}

const fn entry(experiment: Experiment, name: &'static str, does: Text, decides: Text) -> Entry {
    Entry { experiment, name, does, decides }
}

const fn text(en: &'static str, zh: &'static str) -> Text {
    Text { en, zh }
}

/// Every experiment in the order in which they are made: the most telling ones
/// first, each behind those that it builds on.
pub const EXPERIMENTS: &[Entry] = &[
    entry(
        Experiment::Transport,
        "transport",
        text(
            "opens connections and asks for the list of models, 10 times, and again beside the ladder",
            "建立连接并请求模型列表 10 次，并在并发阶梯期间再测",
        ),
        text(
            "the round trip, and whether the front end is slow under load",
            "往返时延，以及负载下前端是否变慢",
        ),
    ),
    entry(
        Experiment::Baseline,
        "baseline",
        text("one request at a time, 3 to 20", "逐个发送 3 至 20 个请求"),
        text(
            "TTFT, TPOT and E2EL without any load, against which every excess is taken",
            "无负载时的 TTFT、TPOT 与 E2EL，作为一切超额的基准",
        ),
    ),
    entry(
        Experiment::Lengths,
        "lengths",
        text(
            "prompts of up to eight lengths, answers of one token, 5 of each",
            "最多八种输入长度，输出 1 个 token，各 5 次",
        ),
        text(
            "TTFT = a + bS + cS²: fixed part, prefill rate, share of attention",
            "TTFT = a + bS + cS²：固定部分、预填充速率、注意力占比",
        ),
    ),
    entry(
        Experiment::Ladder,
        "ladder",
        text(
            "a closed loop with more and more users, up to --max-concurrency",
            "闭环并发逐级增加，直至 --max-concurrency",
        ),
        text(
            "throughput and TPOT over the batch, and the number of requests that are served at a time",
            "吞吐与 TPOT 随批量的变化，以及同时处理的请求数",
        ),
    ),
    entry(
        Experiment::Contexts,
        "contexts",
        text("the ladder with prompts of four times the length", "输入长度为四倍的并发阶梯"),
        text(
            "seats or KV cache; whether TPOT grows with the context",
            "受限于席位还是 KV 缓存；TPOT 是否随上下文增长",
        ),
    ),
    entry(
        Experiment::Prefix,
        "prefix",
        text("five long prompts, and the same again", "五个长输入，随后重复发送"),
        text("the share of a known prompt that is not computed again", "重复输入中无需重算的比例"),
    ),
    entry(
        Experiment::Outputs,
        "outputs",
        text("answers of 1, 2, 16, 64 and 256 tokens", "输出 1、2、16、64、256 个 token"),
        text(
            "time of a token by E2EL, which holds behind proxies that collect tokens",
            "由 E2EL 得出的单 token 时间，在攒批代理之后仍成立",
        ),
    ),
    entry(
        Experiment::Canary,
        "canary",
        text(
            "short and long prompts with answers of one token, dealt into a load",
            "在负载中混入输出 1 个 token 的短输入与长输入",
        ),
        text(
            "how much of TTFT under load is waiting, and how much prefill",
            "负载下 TTFT 中排队与预填充各占多少",
        ),
    ),
    entry(
        Experiment::Rates,
        "rates",
        text(
            "an open loop at 0.8 of the highest throughput, at half and at a quarter of that",
            "开环，速率为最高吞吐的 0.8 倍，再减半两次",
        ),
        text("whether the excess of TTFT is that of a queue", "TTFT 超额是否符合排队规律"),
    ),
];

impl Experiment {
    /// What is said of it.
    pub fn entry(self) -> &'static Entry {
        let found = EXPERIMENTS.iter().find(|entry| entry.experiment == self);
        found.expect("every experiment has its entry; a test holds it")
    }

    /// Its name in flags and JSON.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The experiment of this name.
    pub fn find(name: &str) -> Option<Self> {
        EXPERIMENTS.iter().find(|entry| entry.name == name).map(|entry| entry.experiment)
    }
}

/// How far experiments may go.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Time for all of them, seconds.
    pub budget_s: f64,
    /// Most requests in flight.
    pub most_users: u32,
    /// The experiments to make.
    pub only: Vec<Experiment>,
    /// Length of the workload's prompts, tokens.
    pub input: u32,
    /// Length of its answers.
    pub output: u32,
    /// Tokens of a prompt and its answer together at most, where it is known.
    pub context: Option<u32>,
}

/// How requests of a trial come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Press {
    /// So many users, each of whom asks again when answered.
    Users(u32),
    /// So many a second at random instants, at most `users` of them in flight.
    Rate {
        /// Requests a second.
        req_s: f64,
        /// The most in flight.
        users: u32,
    },
}

impl Press {
    /// The most requests in flight.
    pub const fn users(self) -> u32 {
        match self {
            Self::Users(users) | Self::Rate { users, .. } => users,
        }
    }
}

/// What is done beside a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// Cheap requests, a few a second.
    RoundTrips,
    /// Requests of one token among those of the load: short prompts labelled
    /// [`SHORT`], and prompts of the load's length labelled [`LONG`].
    Canaries,
}

/// Label of a short canary.
pub const SHORT: &str = "short";

/// Label of a canary whose prompt has the load's length.
pub const LONG: &str = "long";

/// Label of what canaries are among.
pub const LOAD: &str = "load";

/// Tokens of a short canary's prompt, and of the shortest prompt of the lengths.
pub const LEAST_INPUT: u32 = 16;

/// A small load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// What it is part of.
    pub experiment: Experiment,
    /// Tokens of each prompt.
    pub input: u32,
    /// Tokens of each answer, at most. Where there are several users, of the mean
    /// answer: were all of one length, they would all end and begin together.
    pub output: u32,
    /// How requests come.
    pub press: Press,
    /// How many.
    pub requests: u32,
    /// Which prompts: two trials of one number send the same ones, and no other
    /// does.
    pub series: u32,
    /// What is done beside it.
    pub beside: Beside,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Open connections and make cheap requests over them, so many.
    RoundTrips(u32),
    /// Make a load, and stop it when the budget is over.
    Trial(Trial),
    /// Send nothing for so many seconds: the server asked for it.
    Wait(f64),
}

/// One cheap request on a connection of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundTrip {
    /// From the resolved name to the connection, ms.
    pub connect_ms: f64,
    /// From there to the end of the TLS handshake, ms, where there is one.
    pub secure_ms: Option<f64>,
    /// From the request to the end of its answer, ms; none where nobody answers
    /// such requests.
    pub answer_ms: Option<f64>,
}

/// A request that ended well.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its label, where requests have one.
    pub label: Option<String>,
    /// Tokens of its prompt, by the server where it says them.
    pub input: f64,
    /// Tokens of its answer.
    pub output: f64,
    /// Of its prompt found in a cache, where the server says so.
    pub cached: Option<f64>,
    /// From the send to the first token, ms.
    pub ttft_ms: f64,
    /// From the intent to the send, ms.
    pub wait_ms: f64,
    /// From the send to the last token, ms.
    pub e2e_ms: f64,
    /// Time per output token, ms, where there are several.
    pub tpot_ms: Option<f64>,
}

/// What came of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Requests that ended well, in the order of their sends.
    pub samples: Vec<Sample>,
    /// Requests that were planned.
    pub planned: usize,
    /// Those that failed.
    pub failed: usize,
    /// What the server said of a failure.
    pub message: Option<String>,
    /// Those that were refused because there are too many: 429 and 503.
    pub refused: usize,
    /// The longest wait that a refusal asked for, seconds.
    pub retry_after_s: Option<f64>,
    /// Cheap requests that were made beside it.
    pub beside: Vec<RoundTrip>,
    /// True where it was stopped before its end.
    pub is_cut: bool,
}

/// Statuses that say: not now.
const NOT_NOW: [u16; 2] = [429, 503];

impl Observed {
    /// What the records of a trial come to.
    pub fn of(records: &[Record]) -> Self {
        let timed: Vec<Timed<'_>> = records
            .iter()
            .map(|record| Timed::new(record, &GOODPUT, Settings::default()))
            .collect();
        let courses: Vec<Course> = timed.iter().map(Timed::course).collect();
        let mut samples: Vec<(f64, Sample)> =
            timed.iter().zip(&courses).filter_map(|(one, course)| sample(one, course)).collect();
        samples.sort_by(|a, b| a.0.total_cmp(&b.0));
        let failed = records.iter().filter(|record| is_failure(record));
        let refused = |record: &&Record| {
            is_failure(record)
                && record.answer.http_status.is_some_and(|status| NOT_NOW.contains(&status))
        };
        let asked = records.iter().filter_map(|record| record.answer.retry_after);
        Self {
            samples: samples.into_iter().map(|(_, sample)| sample).collect(),
            planned: records.len(),
            failed: failed.clone().count(),
            message: failed.clone().find_map(message),
            refused: records.iter().filter(refused).count(),
            retry_after_s: asked.map(|span| span.s()).reduce(f64::max),
            beside: Vec::new(),
            is_cut: records.iter().any(|record| record.outcome == Outcome::Cancelled),
        }
    }
}

fn is_failure(record: &Record) -> bool {
    !matches!(record.outcome, Outcome::Ok | Outcome::Cancelled)
}

/// Why a request failed, as the server put it or by its kind.
fn message(record: &Record) -> Option<String> {
    let kind = match record.outcome {
        Outcome::Failed(kind) => kind.name(),
        Outcome::Empty => "empty",
        Outcome::NotSent(kind) => kind.name(),
        Outcome::Ok | Outcome::Cancelled => return None,
    };
    let answer = &record.answer;
    let status = answer.http_status.map_or(String::new(), |status| format!(" {status}"));
    let said = answer.message.as_deref().map_or(String::new(), |said| format!(": {said}"));
    Some(format!("{kind}{status}{said}"))
}

/// When it was sent, and what it was; none of one that did not end well.
fn sample(timed: &Timed<'_>, course: &Course) -> Option<(f64, Sample)> {
    let record = timed.record;
    if record.outcome != Outcome::Ok {
        return None;
    }
    let (sent_s, first_s) = (course.sent_s?, course.first_token_s?);
    let counts = &record.answer.counts;
    let input = counts.prompt.or(record.planned.input_tokens)?;
    let sample = Sample {
        label: record.planned.label(workload::mix::WORKLOAD).map(str::to_owned),
        input: f64::from(input.get()),
        output: f64::from(timed.output_tokens().ok()?),
        cached: counts.cached.map(|tokens| f64::from(tokens.get())),
        ttft_ms: (first_s - sent_s) * 1e3,
        wait_ms: (sent_s - course.intended_s) * 1e3,
        e2e_ms: (course.last_token_s.unwrap_or(first_s) - sent_s) * 1e3,
        tpot_ms: timed.tpot_streamed().ok(),
    };
    Some((sent_s, sample))
}

/// A trial that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// What was done.
    pub trial: Trial,
    /// What came of it.
    pub observed: Observed,
}

/// An experiment of which something was not made.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Which.
    pub experiment: Experiment,
    /// Why.
    pub why: Said,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_its_entry_under_a_name_of_its_own() {
        for (place, entry) in EXPERIMENTS.iter().enumerate() {
            assert_eq!(Experiment::find(entry.name), Some(entry.experiment));
            assert_eq!(entry.experiment as usize, place, "the order is that of the table");
            assert!(!entry.does.zh.is_empty() && !entry.decides.zh.is_empty());
        }
        assert_eq!(Experiment::find("x"), None);
    }
}
