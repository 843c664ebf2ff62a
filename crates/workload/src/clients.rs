//! The clients of a service, each with rates, gaps and lengths of its own over
//! time.
//!
//! What is known of each is a list of times in which it sends at one rate. From
//! these and a seed come the instants, and what else is drawn of a request. All
//! of it depends on the seed, the number of the client, the beginning of the
//! time and the request's place in it, and on nothing else: another order of
//! clients, another part of the trace or more clients beside it move no
//! request.

use measure::{PerSecond, Span, Tokens};

use crate::length::Lengths;
use crate::stream::Stream;

/// The smallest shape of a gamma or Weibull distribution that is drawn from.
pub const MIN_SHAPE: f64 = 1e-3;

/// The largest one: gaps vary by less than a hundredth of a per cent there.
pub const MAX_SHAPE: f64 = 1e9;

/// How often the search for a horizon halves its interval: the width of any
/// trace becomes less than a microsecond.
const HALVINGS: u32 = 64;

/// How the gaps between requests of one client are distributed, apart from
/// their mean, which its rate says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gaps {
    /// Exponential: a Poisson process.
    Exponential,
    /// Gamma of this shape: the coefficient of variation is 1/√shape.
    Gamma {
        /// From [`MIN_SHAPE`] to [`MAX_SHAPE`].
        shape: f64,
    },
    /// Weibull of this shape: below 1 it has a longer tail than an exponential.
    Weibull {
        /// From [`MIN_SHAPE`] to [`MAX_SHAPE`].
        shape: f64,
    },
}

impl Gaps {
    /// A gap, with the mean 1. A Weibull draw of the scale 1 is E^(1/shape) of
    /// an exponential E, and its mean is Γ(1 + 1/shape), by which it is divided.
    ///
    /// # Panics
    /// When the shape is not greater than 0: whoever made it has checked it.
    pub fn draw(self, stream: &mut Stream) -> f64 {
        match self {
            Self::Exponential => stream.exponential(),
            Self::Gamma { shape } => stream.gamma(shape),
            Self::Weibull { shape } => weibull(shape, stream.exponential()),
        }
    }

    /// From an instant that has nothing to do with the process to its next
    /// request: a part, evenly drawn, of a gap that was found with a probability
    /// in proportion to its length. A client that begins so has on average
    /// exactly rate × time requests in any time, however its gaps vary (Cox,
    /// Renewal Theory, 1962, chapter 2); one that begins with a whole gap has
    /// up to (CV² − 1)/2 more.
    ///
    /// A gamma gap found so is gamma of the shape + 1 and the same scale; of a
    /// Weibull gap of the scale 1, its power gap^shape is gamma of the shape
    /// 1 + 1/shape.
    fn first(self, stream: &mut Stream) -> f64 {
        match self {
            // It has no memory.
            Self::Exponential => stream.exponential(),
            Self::Gamma { shape } => {
                let found = stream.gamma(shape + 1.0) * (shape + 1.0) / shape;
                found * stream.unit()
            }
            Self::Weibull { shape } => {
                let power = 1.0 + 1.0 / shape;
                let found = weibull(shape, stream.gamma(power) * power);
                found * stream.unit()
            }
        }
    }
}

/// The Weibull gap of the mean 1 whose power of the shape, at the scale 1, is
/// this. By logarithms, since Γ(1 + 1/shape) is soon over any float.
fn weibull(shape: f64, power: f64) -> f64 {
    (power.ln() / shape - ln_gamma(1.0 + 1.0 / shape)).exp()
}

/// ln Γ(x) for x from 1 on: Stirling's series (Abramowitz and Stegun, 6.1.41),
/// after x was raised to 10 by Γ(x + 1) = x·Γ(x). The first term left out is
/// below 10⁻¹² there.
fn ln_gamma(x: f64) -> f64 {
    let (mut raised, mut below) = (x, 1.0);
    while raised < 10.0 {
        below *= raised;
        raised += 1.0;
    }
    let inverse = 1.0 / raised;
    let square = inverse * inverse;
    let series = inverse
        * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0))));
    let half_ln_tau = 0.5 * std::f64::consts::TAU.ln();
    (raised - 0.5) * raised.ln() - raised + half_ln_tau + series - below.ln()
}

/// A time in which a client sends at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Active {
    /// Its beginning, in the time of the trace.
    pub from: Span,
    /// Its end, which is not in it.
    pub until: Span,
    /// Requests per second; above 0.
    pub rate: PerSecond,
    /// How they lie between each other.
    pub gaps: Gaps,
    /// Its line in the file that it comes from, from 1.
    pub source_row: u64,
}

impl Active {
    /// Requests expected of it in a part of the trace.
    fn expected(&self, (from, until): (Span, Span)) -> f64 {
        let lasts = self.until.min(until) - self.from.max(from);
        self.rate.get() * lasts.max(Span::ZERO).s()
    }
}

/// One client.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// Its number, which tells it from others.
    pub number: u32,
    /// When it sends; in order, none over another.
    pub active: Vec<Active>,
}

impl Client {
    /// Requests expected of it in a part of the trace, from its first end to
    /// before its second.
    pub fn expected(&self, part: (Span, Span)) -> f64 {
        self.active.iter().map(|active| active.expected(part)).sum()
    }
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The place of its client among [`Clients::all`].
    pub client: u32,
    /// Which of the client's times of sending.
    pub active: u32,
    /// Which request of that time, from 0.
    pub place: u32,
}

/// Lengths that a client's requests have from some instant on.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// The instant, in the time of the trace.
    pub from: Span,
    /// Of prompts.
    pub input: Lengths,
    /// Of answers.
    pub output: Lengths,
}

/// All clients of a service, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clients(Vec<Client>);

impl Clients {
    /// Takes clients in any order.
    pub fn new(mut clients: Vec<Client>) -> Self {
        clients.sort_by_key(|client| client.number);
        Self(clients)
    }

    /// Each of them.
    pub fn all(&self) -> &[Client] {
        &self.0
    }

    /// Requests expected of all of them in a part of the trace.
    pub fn expected(&self, part: (Span, Span)) -> f64 {
        self.0.iter().map(|client| client.expected(part)).sum()
    }

    /// The instant until which so many requests are expected from the beginning
    /// of the part on; the end of the part where fewer are.
    pub fn horizon(&self, part: (Span, Span), requests: f64) -> Span {
        let (mut low, mut high) = part;
        if self.expected(part) <= requests {
            return high;
        }
        for _ in 0..HALVINGS {
            if high - low <= Span::from_us(1) {
                break;
            }
            let middle = Span::from_us(low.us().midpoint(high.us()));
            if self.expected((part.0, middle)) < requests { low = middle } else { high = middle }
        }
        high
    }

    /// When requests come in a part of the trace, in order: all of them, or the
    /// first `wanted`. Equal instants are in the order of the clients' numbers.
    ///
    /// `None` when more than `most` had to be drawn for them: the expectation
    /// is no bound, and gaps of a small shape come in heaps.
    pub fn arrivals(
        &self,
        seed: u64,
        part: (Span, Span),
        wanted: Option<usize>,
        most: usize,
    ) -> Option<Vec<(Span, Origin)>> {
        let mut expected = wanted.map_or(f64::INFINITY, |wanted| wanted.max(1) as f64);
        loop {
            // A request depends on no other, so a longer part begins as the
            // shorter one did, and the first ones are the same.
            let until = self.horizon(part, expected);
            let mut drawn = self.between(seed, (part.0, until), most)?;
            if until == part.1 || wanted.is_some_and(|wanted| drawn.len() >= wanted) {
                drawn.sort_unstable();
                drawn.truncate(wanted.unwrap_or(usize::MAX));
                return Some(drawn);
            }
            expected *= 2.0;
        }
    }

    fn between(&self, seed: u64, part: (Span, Span), most: usize) -> Option<Vec<(Span, Origin)>> {
        let (mut drawn, mut count) = (Vec::new(), 0);
        for (client, of_client) in (0..).zip(&self.0) {
            let name = format!("arrivals of client {}", of_client.number);
            let active = (0..).zip(&of_client.active);
            for (active, at) in active.filter(|(_, at)| at.from < part.1 && at.until > part.0) {
                let mut stream = Stream::numbered(seed, &name, at.from.us() as u64);
                let (end, lasts_s) = (at.until.min(part.1), (at.until - at.from).s());
                let mut elapsed_s = at.gaps.first(&mut stream) / at.rate.get();
                for place in 0.. {
                    // A gap may be longer than any span.
                    if elapsed_s > lasts_s {
                        break;
                    }
                    // From the beginning of the time in any part, and rounded
                    // one by one.
                    let instant = at.from + Span::from_s(elapsed_s);
                    if instant >= end {
                        break;
                    }
                    count += 1;
                    if count > most {
                        return None;
                    }
                    if instant >= part.0 {
                        drawn.push((instant, Origin { client, active, place }));
                    }
                    elapsed_s += at.gaps.draw(&mut stream) / at.rate.get();
                }
            }
        }
        Some(drawn)
    }

    /// As many requests without an instant: each of a client and a time of it
    /// that are drawn in proportion to the requests expected there. Fewer only
    /// where none is expected at all.
    pub fn picked(&self, seed: u64, count: u32) -> Vec<Origin> {
        let (mut sum, mut sums, mut places) = (0.0, Vec::new(), Vec::new());
        for (client, of_client) in (0..).zip(&self.0) {
            for (active, at) in (0..).zip(&of_client.active) {
                sum += at.expected((at.from, at.until));
                sums.push(sum);
                places.push((client, active));
            }
        }
        if places.is_empty() {
            return Vec::new();
        }
        let origin = |place| {
            let at = Stream::numbered(seed, "requests of clients", u64::from(place)).unit() * sum;
            let drawn = sums.partition_point(|below| *below <= at).min(places.len() - 1);
            let (client, active) = places[drawn];
            Origin { client, active, place }
        };
        (0..count).map(origin).collect()
    }

    /// The lengths of a request's prompt and answer, drawn one independently of
    /// the other from what its client has from the beginning of its time on:
    /// the last of `sizes`, which are in order, that begins no later. `None`
    /// where there is none.
    pub fn lengths(&self, seed: u64, origin: Origin, sizes: &[Sizes]) -> Option<(Tokens, Tokens)> {
        let client = &self.0[origin.client as usize];
        let from = client.active[origin.active as usize].from;
        let after = sizes.partition_point(|sizes| sizes.from <= from);
        let sizes = &sizes[after.checked_sub(1)?];
        let name = format!("lengths of client {} from {}", client.number, from.us());
        let mut stream = Stream::numbered(seed, &name, u64::from(origin.place));
        Some((sizes.input.draw(&mut stream), sizes.output.draw(&mut stream)))
    }
}

#[cfg(test)]
mod tests;
