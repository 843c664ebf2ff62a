//! Units as types: instants, spans, token counts and rates.
//!
//! Everything that is timed is kept in whole microseconds. Integers make the
//! identity TTFT + Σ ICL + finish lag = E2EL exact, and a microsecond is well
//! below what a client can observe of a server.

use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub};

/// A point on the run's one monotonic clock, in microseconds since the run's
/// clock anchor. Negative before the anchor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At(i64);

/// A length of time in microseconds. Negative spans exist: a difference of two
/// instants is a span whatever their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

/// A count of model tokens. Chunks, events and characters are not tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tokens(u32);

/// A rate per second: requests, tokens or joules per second, as its name says.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct PerSecond(f64);

impl At {
    /// The clock anchor itself.
    pub const ZERO: Self = Self(0);

    /// The instant `us` microseconds after the anchor.
    pub const fn from_us(us: i64) -> Self {
        Self(us)
    }

    /// Microseconds since the anchor.
    pub const fn us(self) -> i64 {
        self.0
    }

    /// Milliseconds since the anchor.
    pub fn ms(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of `us` microseconds.
    pub const fn from_us(us: i64) -> Self {
        Self(us)
    }

    /// A span of `ms` milliseconds.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms * 1_000)
    }

    /// A span of `s` seconds, rounded to the nearest microsecond.
    pub fn from_s(s: f64) -> Self {
        Self((s * 1e6).round() as i64)
    }

    /// Microseconds.
    pub const fn us(self) -> i64 {
        self.0
    }

    /// Milliseconds.
    pub fn ms(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Seconds.
    pub fn s(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Tokens {
    /// `n` tokens.
    pub const fn new(n: u32) -> Self {
        Self(n)
    }

    /// The count.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl PerSecond {
    /// `count` things in `over`; `None` when no time passed, because a rate
    /// over nothing is not a large rate but none.
    pub fn over(count: f64, over: Span) -> Option<Self> {
        (over > Span::ZERO).then(|| Self(count / over.s()))
    }

    /// A rate given as a number.
    pub const fn new(per_second: f64) -> Self {
        Self(per_second)
    }

    /// The number per second.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Add<Span> for At {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}

impl Sub<Span> for At {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0 - span.0)
    }
}

impl Sub for At {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span(self.0 - earlier.0)
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for Span {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.abs() {
            0..1_000 => write!(f, "{} µs", self.0),
            1_000..1_000_000 => write!(f, "{:.1} ms", self.ms()),
            _ => write!(f, "{:.2} s", self.s()),
        }
    }
}
