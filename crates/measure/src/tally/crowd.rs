//! How many requests are in flight, followed in time: the most at once, and
//! means over windows that are known only later.

use crate::unit::At;
use crate::window::Window;

/// Places along the run at which the sum so far is kept.
const MOST_EDGES: usize = 8_192;

/// The number in flight, told change by change in the order of time.
#[derive(Clone, Debug)]
pub(super) struct Crowd {
    now: At,
    in_flight: u32,
    most: u32,
    /// In flight × µs so far.
    area: u128,
    /// The area at each whole multiple of `step_us`, from the first.
    edges: Vec<u128>,
    step_us: i64,
}

impl Default for Crowd {
    fn default() -> Self {
        Self { now: At::ZERO, in_flight: 0, most: 0, area: 0, edges: Vec::new(), step_us: 1_000 }
    }
}

impl Crowd {
    /// Comes to an instant.
    fn come_to(&mut self, at: At) {
        if at <= self.now {
            return;
        }
        // Ends at an instant come before sends, so that what is left of both is
        // the most of the instant.
        self.most = self.most.max(self.in_flight);
        loop {
            let edge = At::from_us(self.step_us * (self.edges.len() as i64 + 1));
            if edge > at {
                break;
            }
            self.fill_until(edge);
            self.edges.push(self.area);
            if self.edges.len() == MOST_EDGES {
                // Each second one is an edge of twice the step.
                let mut place = 0;
                self.edges.retain(|_| {
                    place += 1;
                    place % 2 == 0
                });
                self.step_us *= 2;
            }
        }
        self.fill_until(at);
    }

    fn fill_until(&mut self, at: At) {
        let us = (at - self.now).us().max(0) as u128;
        self.area += us * u128::from(self.in_flight);
        self.now = at;
    }

    pub(super) fn sent(&mut self, at: At) {
        self.come_to(at);
        self.in_flight += 1;
    }

    pub(super) fn ended(&mut self, at: At) {
        self.come_to(at);
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The most in flight at once.
    pub(super) fn most(&self) -> u32 {
        self.most.max(self.in_flight)
    }

    /// In flight × µs up to now.
    pub(super) const fn area(&self) -> u128 {
        self.area
    }

    /// In flight × µs up to an instant of the past, evenly filled between two
    /// edges.
    fn area_at(&self, at: At) -> f64 {
        let us = at.us().clamp(0, self.now.us().max(0));
        let before = (us / self.step_us) as usize;
        let edge = |count: usize| match count {
            0 => (0, 0.0),
            _ => match self.edges.get(count - 1) {
                Some(area) => (count as i64 * self.step_us, *area as f64),
                None => (self.now.us(), self.area as f64),
            },
        };
        let ((from_us, from), (until_us, until)) = (edge(before), edge(before + 1));
        let length = (until_us - from_us).max(1) as f64;
        from + (until - from) * (us - from_us) as f64 / length
    }

    /// The mean in flight over a window, off by what happens within a step at
    /// its ends.
    pub(super) fn mean(&self, window: Window) -> f64 {
        let length = window.length().us().max(1) as f64;
        (self.area_at(window.until) - self.area_at(window.from)) / length
    }

    /// Places that memory is held for.
    pub(super) fn held(&self) -> usize {
        self.edges.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Planned, Record};
    use crate::window::{max_in_flight, mean_in_flight};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_followed_is_what_the_requests_say(
            spans in prop::collection::vec((0i64..30_000_000, 1i64..4_000_000), 1..200),
            ends in (0i64..30_000_000, 100_000i64..20_000_000),
        ) {
            let mut changes: Vec<(At, bool)> = Vec::new();
            let records: Vec<Record> = spans
                .iter()
                .map(|(sent, took)| {
                    let (sent, ended) = (At::from_us(*sent), At::from_us(sent + took));
                    changes.extend([(sent, true), (ended, false)]);
                    let mut record = Record::planned(0, sent, Planned::default());
                    (record.stamps.sent_at, record.stamps.ended_at) = (Some(sent), Some(ended));
                    record
                })
                .collect();
            changes.sort_unstable();
            let mut crowd = Crowd::default();
            for (at, sent) in changes {
                if sent { crowd.sent(at) } else { crowd.ended(at) }
            }
            prop_assert_eq!(crowd.most(), max_in_flight(&records));
            let from = At::from_us(ends.0);
            let window = Window { from, until: At::from_us(ends.0 + ends.1) };
            let (found, exact) = (crowd.mean(window), mean_in_flight(&records, window));
            // A step is at most a 2048th of the run, and it has two ends.
            let slack = 2.0 * f64::from(crowd.most()) * 34e6 / 2_048.0 / ends.1 as f64;
            prop_assert!((found - exact).abs() <= slack + 1e-9, "{} and {}", found, exact);
            prop_assert!(crowd.held() < MOST_EDGES);
        }
    }
}
