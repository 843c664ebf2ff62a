//! When things happened to a request: instants as seconds of the run's clock,
//! and the parts that only the client's own stamps know.

use crate::request::Timed;
use crate::unit::{At, Span};

/// The course of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Course {
    /// When it was intended, seconds since the run began.
    pub intended_s: f64,
    /// When it was sent.
    pub sent_s: Option<f64>,
    /// When its first token arrived, whatever became of it.
    pub first_token_s: Option<f64>,
    /// When its last token arrived, or its finish event.
    pub last_token_s: Option<f64>,
    /// When it was over.
    pub ended_s: Option<f64>,
    /// From the resolved name to the connection, ms: one round trip. Only where
    /// a connection was opened for it.
    pub handshake_ms: Option<f64>,
    /// From its first byte to its last one, ms.
    pub write_ms: Option<f64>,
    /// From its send to the first byte of the answer, ms.
    pub first_byte_ms: Option<f64>,
}

impl Timed<'_> {
    /// When things happened to it.
    pub fn course(&self) -> Course {
        let stamps = &self.record.stamps;
        let seconds = |at: At| (at - At::ZERO).s();
        let between = |from: Option<At>, until: Option<At>| Some((until? - from?).ms());
        let since_sent = |us: u32| stamps.sent_at.map(|sent| sent + Span::from_us(i64::from(us)));
        let mut arrivals = self
            .record
            .events
            .at_us
            .iter()
            .zip(&self.record.events.carries)
            .filter(|(_, carries)| carries.is_arrival())
            .map(|(at_us, _)| *at_us);
        let first = arrivals.next();
        let last = arrivals.next_back().or(first);
        Course {
            intended_s: seconds(stamps.intended_at),
            sent_s: stamps.sent_at.map(seconds),
            first_token_s: first.and_then(since_sent).map(seconds),
            last_token_s: last.and_then(since_sent).map(seconds),
            ended_s: stamps.ended_at.map(seconds),
            handshake_ms: between(stamps.resolved_at, stamps.connected_at),
            write_ms: between(stamps.sent_at, stamps.written_at),
            first_byte_ms: between(stamps.sent_at, stamps.first_byte_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::GOODPUT;
    use crate::record::{Carries, Event, Planned, Record};
    use crate::request::Settings;

    #[test]
    fn instants_are_the_runs_and_parts_are_the_stamps() {
        let at = |ms: i64| At::from_us(ms * 1_000);
        let mut record = Record::planned(3, at(1_000), Planned::default());
        record.stamps.resolved_at = Some(at(1_001));
        record.stamps.connected_at = Some(at(1_031));
        record.stamps.sent_at = Some(at(1_040));
        record.stamps.written_at = Some(at(1_042));
        record.stamps.first_byte_at = Some(at(1_090));
        record.stamps.ended_at = Some(at(1_300));
        for (at_us, carries) in
            [(50_000, Carries::ROLE), (100_000, Carries::TEXT), (200_000, Carries::TEXT)]
        {
            record.events.push(Event { at_us, carries, tokens: 0, choice: 0 });
        }
        let course = Timed::new(&record, &GOODPUT, Settings::default()).course();
        assert_eq!(course.intended_s, 1.0);
        assert_eq!(course.sent_s, Some(1.04));
        assert_eq!(course.first_token_s, Some(1.14));
        assert_eq!(course.last_token_s, Some(1.24));
        assert_eq!(course.ended_s, Some(1.3));
        assert_eq!(course.handshake_ms, Some(30.0));
        assert_eq!(course.write_ms, Some(2.0));
        assert_eq!(course.first_byte_ms, Some(50.0));
    }
}
