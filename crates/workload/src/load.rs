//! How requests are let go: by the clock, by users who wait for their answers,
//! or all at once; and when to stop.

use measure::{PerSecond, Span};

use crate::arrival::Pace;
use crate::digest::Digest;
use crate::replay::Replay;
use crate::shape::ShapeError;
use crate::think::Think;

/// The load model.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Requests arrive by the clock, whatever the server does.
    Open {
        /// When they arrive.
        pace: Pace,
    },
    /// As `Open`, but at most `users` requests are in flight: an arrival that
    /// finds all of them busy waits, and its latency counts from its arrival.
    Capped {
        /// As in `Open`.
        pace: Pace,
        /// The cap.
        users: u32,
    },
    /// `users` people who each wait for an answer, think, and ask again.
    Closed {
        /// How many.
        users: u32,
        /// Time from a slot becoming free to its next request.
        think: Think,
    },
    /// Everything is intended at the start.
    Burst,
    /// As `Open`, or as `Capped` where there are users; requests arrive when
    /// those of a trace did.
    Replay {
        /// When they arrive.
        replay: Replay,
        /// The cap.
        users: Option<u32>,
    },
}

/// When no further request is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this many requests.
    Count(u32),
    /// No request is intended at or after this time from the start.
    Duration(Span),
    /// Whichever of the two comes first.
    Either {
        /// As in `Count`.
        count: u32,
        /// As in `Duration`.
        duration: Span,
    },
}

/// Which rule of the load model was broken. Messages name vLLM's flags, which
/// are also ours.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LoadError {
    /// The rate is not a number above 0.
    #[error(
        "--request-rate must be greater than 0, or inf; got {0}. Leave it out for a closed loop (-c) or a burst"
    )]
    Rate(f64),
    /// The rate is over what whole microseconds can express.
    #[error("--request-rate must not be over {MAX_RATE} per second; got {0}")]
    RateTooHigh(f64),
    /// The burstiness is not a number above 0.
    #[error("--burstiness must be greater than 0 (1 is Poisson, inf a constant gap); got {0}")]
    Burstiness(f64),
    /// No users.
    #[error(
        "--max-concurrency must be at least 1; got 0. Leave it out for no limit on requests in flight"
    )]
    NoUsers,
    /// Negative think time.
    #[error("think time must not be negative; got {0}")]
    Think(Span),
    /// The shortest think time is over the longest.
    #[error("the shortest think time must not be over the longest; got {from} and {to}")]
    ThinkOrder {
        /// The shortest.
        from: Span,
        /// The longest.
        to: Span,
    },
    /// A rule about the shape was broken.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Nothing to send.
    #[error("--num-prompts must be at least 1")]
    NoRequests,
    /// The duration is no time.
    #[error("--duration must be greater than 0; got {0}")]
    Duration(Span),
    /// The duration is over the horizon.
    #[error(
        "the plan reaches beyond {MAX_DAYS} days; raise --request-rate or lower -n or --duration"
    )]
    Horizon,
    /// All at once, without a number.
    #[error(
        "a burst (no --request-rate, no -c) needs a number of requests: give -n, or give -c for a closed loop"
    )]
    BurstNeedsCount,
}

/// The highest rate: at more than one arrival in a microsecond, instants would
/// fall together and the process would not be the one asked for.
pub const MAX_RATE: f64 = 1e6;

/// How far a plan may reach, in days. Instants stay far from overflow.
pub const MAX_DAYS: i64 = 366;

/// The same as a span.
pub const HORIZON: Span = Span::from_us(MAX_DAYS * 86_400 * 1_000_000);

impl Load {
    /// The load model that the flags mean: a pace is open loop, capped when
    /// users are given too; no pace is closed loop with users and a burst
    /// without. `think` matters to the closed loop only.
    pub fn new(pace: Option<Pace>, users: Option<u32>, think: Think) -> Result<Self, LoadError> {
        let load = match (pace, users) {
            (Some(pace), None) => Self::Open { pace },
            (Some(pace), Some(users)) => Self::Capped { pace, users },
            (None, Some(users)) => Self::Closed { users, think },
            (None, None) => Self::Burst,
        };
        load.check()?;
        Ok(load)
    }

    /// The load of a trace that is replayed, capped where there are users.
    pub fn replay_of(replay: Replay, users: Option<u32>) -> Result<Self, LoadError> {
        let load = Self::Replay { replay, users };
        load.check()?;
        Ok(load)
    }

    /// Checks every rule about a load by itself.
    pub fn check(&self) -> Result<(), LoadError> {
        if let Some(pace) = self.pace() {
            if let Some(rate) = pace.shape.flat().map(PerSecond::get) {
                if !(rate > 0.0 && rate.is_finite()) {
                    return Err(LoadError::Rate(rate));
                }
                if rate > MAX_RATE {
                    return Err(LoadError::RateTooHigh(rate));
                }
            }
            pace.shape.check()?;
            match pace.process.burstiness() {
                Some(burstiness) if burstiness.is_nan() || burstiness <= 0.0 => {
                    return Err(LoadError::Burstiness(burstiness));
                }
                _ => {}
            }
        }
        if self.users() == Some(0) {
            return Err(LoadError::NoUsers);
        }
        match self {
            Self::Closed { think, .. } => think.check(),
            _ => Ok(()),
        }
    }

    /// The name in JSON: `open`, `capped`, `closed` or `burst`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::Capped { .. } => "capped",
            Self::Closed { .. } => "closed",
            Self::Burst => "burst",
            Self::Replay { users: None, .. } => "open",
            Self::Replay { users: Some(_), .. } => "capped",
        }
    }

    /// When requests arrive, where that is drawn at a rate.
    pub const fn pace(&self) -> Option<&Pace> {
        match self {
            Self::Open { pace } | Self::Capped { pace, .. } => Some(pace),
            Self::Closed { .. } | Self::Burst | Self::Replay { .. } => None,
        }
    }

    /// The trace, where one says when requests arrive.
    pub const fn replay(&self) -> Option<&Replay> {
        match self {
            Self::Replay { replay, .. } => Some(replay),
            _ => None,
        }
    }

    /// The most arrivals a second that the plan has, where they come by the
    /// clock.
    pub fn peak_rps(&self) -> Option<f64> {
        let of_trace = self.replay().map(|replay| f64::from(replay.peak_per_second()));
        of_trace.or_else(|| Some(self.pace()?.shape.peak().get()))
    }

    /// The one rate of arrivals, where there is one.
    pub fn rate(&self) -> Option<PerSecond> {
        self.pace()?.shape.flat()
    }

    /// The burstiness, where arrivals are a gamma process by the clock.
    pub fn burstiness(&self) -> Option<f64> {
        self.pace()?.process.burstiness()
    }

    /// The number of users or the cap, where there is one.
    pub const fn users(&self) -> Option<u32> {
        match self {
            Self::Capped { users, .. } | Self::Closed { users, .. } => Some(*users),
            Self::Replay { users, .. } => *users,
            Self::Open { .. } | Self::Burst => None,
        }
    }

    /// What makes a request come, in words: `Poisson process`, …
    pub fn arrival_text(&self) -> String {
        match self {
            Self::Open { pace } | Self::Capped { pace, .. } => pace.describe(),
            Self::Closed { think: Think::NONE, .. } => "an answer frees a user".to_owned(),
            Self::Closed { think, .. } => {
                format!("an answer frees a user, who thinks {}", think.describe())
            }
            Self::Burst => "all at once".to_owned(),
            Self::Replay { replay, .. } => replay.to_string(),
        }
    }

    /// The whole model on one line, for people.
    pub fn describe(&self) -> String {
        let clock = |pace: &Pace| format!("{}, {}", pace.shape.describe(), pace.process.describe());
        let arrival = self.arrival_text();
        match self {
            Self::Open { pace } => format!("open loop, {}", clock(pace)),
            Self::Capped { pace, users } => {
                format!("open loop capped at {users} in flight, {}", clock(pace))
            }
            Self::Closed { users: 1, .. } => format!("closed loop, 1 user, {arrival}"),
            Self::Closed { users, .. } => format!("closed loop, {users} users, {arrival}"),
            Self::Burst => format!("burst, {arrival}"),
            Self::Replay { users: None, .. } => format!("open loop, {arrival}"),
            Self::Replay { users: Some(users), .. } => {
                format!("open loop capped at {users} in flight, {arrival}")
            }
        }
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.text(self.kind()).maybe(self.users().map(u64::from));
        if let Some(pace) = self.pace() {
            pace.digest(digest);
        }
        if let Some(replay) = self.replay() {
            replay.digest(digest);
        }
        if let Self::Closed { think, .. } = self {
            think.digest(digest);
        }
    }
}

impl Stop {
    /// The stop rule of these limits; `None` when neither is given.
    pub const fn new(count: Option<u32>, duration: Option<Span>) -> Option<Self> {
        match (count, duration) {
            (Some(count), Some(duration)) => Some(Self::Either { count, duration }),
            (Some(count), None) => Some(Self::Count(count)),
            (None, Some(duration)) => Some(Self::Duration(duration)),
            (None, None) => None,
        }
    }

    /// The largest number of requests, where limited.
    pub const fn count(self) -> Option<u32> {
        match self {
            Self::Count(count) | Self::Either { count, .. } => Some(count),
            Self::Duration(_) => None,
        }
    }

    /// The time in which requests may be intended, where limited.
    pub const fn duration(self) -> Option<Span> {
        match self {
            Self::Duration(duration) | Self::Either { duration, .. } => Some(duration),
            Self::Count(_) => None,
        }
    }

    /// Checks every rule about a stop by itself.
    pub fn check(self) -> Result<(), LoadError> {
        if self.count() == Some(0) {
            return Err(LoadError::NoRequests);
        }
        match self.duration() {
            Some(duration) if duration <= Span::ZERO => Err(LoadError::Duration(duration)),
            Some(duration) if duration > HORIZON => Err(LoadError::Horizon),
            _ => Ok(()),
        }
    }

    pub(crate) fn digest(self, digest: &mut Digest) {
        digest.maybe(self.count().map(u64::from));
        digest.maybe(self.duration().map(|duration| duration.us() as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rate: Option<f64>, users: Option<u32>) -> Result<Load, LoadError> {
        Load::new(rate.map(|rate| Pace::flat(PerSecond::new(rate), 1.0)), users, Think::NONE)
    }

    #[test]
    fn the_flags_choose_the_model() {
        let kind = |rate, users| load(rate, users).unwrap().kind();
        assert_eq!(kind(Some(4.0), None), "open");
        assert_eq!(kind(Some(4.0), Some(8)), "capped");
        assert_eq!(kind(None, Some(8)), "closed");
        assert_eq!(kind(None, None), "burst");
    }

    #[test]
    fn every_broken_rule_has_its_error() {
        for rate in [0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(load(Some(rate), None), Err(LoadError::Rate(rate)));
        }
        assert!(matches!(load(Some(f64::NAN), None), Err(LoadError::Rate(_))));
        assert_eq!(load(Some(2e6), None), Err(LoadError::RateTooHigh(2e6)));
        assert_eq!(load(None, Some(0)), Err(LoadError::NoUsers));
        assert_eq!(load(Some(1.0), Some(0)), Err(LoadError::NoUsers));
        let bursty = |burstiness| {
            Load::new(Some(Pace::flat(PerSecond::new(1.0), burstiness)), None, Think::NONE)
        };
        assert_eq!(bursty(0.0), Err(LoadError::Burstiness(0.0)));
        assert!(matches!(bursty(f64::NAN), Err(LoadError::Burstiness(_))));
        assert!(bursty(f64::INFINITY).is_ok());
        let think = Span::from_us(-1);
        assert_eq!(Load::new(None, Some(1), think.into()), Err(LoadError::Think(think)));
        assert_eq!(Stop::Count(0).check(), Err(LoadError::NoRequests));
        assert_eq!(Stop::Duration(Span::ZERO).check(), Err(LoadError::Duration(Span::ZERO)));
        assert_eq!(Stop::Duration(Span::from_us(i64::MAX)).check(), Err(LoadError::Horizon));
    }

    #[test]
    fn a_load_says_what_it_is() {
        let text = |load: Result<Load, LoadError>| load.unwrap().describe();
        assert_eq!(text(load(Some(4.0), None)), "open loop, 4 req/s, Poisson process");
        assert_eq!(
            text(load(Some(2.5), Some(8))),
            "open loop capped at 8 in flight, 2.5 req/s, Poisson process"
        );
        assert_eq!(text(load(None, Some(8))), "closed loop, 8 users, an answer frees a user");
        assert_eq!(text(load(None, None)), "burst, all at once");
        let bursty = |burstiness| {
            Load::Open { pace: Pace::flat(PerSecond::new(4.0), burstiness) }.arrival_text()
        };
        assert_eq!(bursty(0.5), "gamma process, burstiness 0.5");
        assert_eq!(bursty(f64::INFINITY), "constant gaps");
    }
}
