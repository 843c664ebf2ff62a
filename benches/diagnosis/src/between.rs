//! What lies between a client and the engines, and what the client itself does
//! wrong: none of it is the engine model's business.

use measure::record::Carries;
use measure::{At, FailureKind, Outcome, Record, Span};
use sim::Cluster;
use workload::{After, Load, Replay, Schedule, Stream};

use crate::world::{Played, World};

/// What holds answers up on their way to the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Proxy {
    /// It passes on what has come, so often.
    Coalesces {
        /// The time between.
        every: Span,
    },
    /// It passes on so many events at a time, and the rest at the end.
    Fills {
        /// Events in one piece.
        events: u32,
    },
    /// It keeps the whole answer until its end.
    Buffers,
}

/// A client that cannot send in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Late {
    /// What a send takes of the only thread that sends.
    pub each: Span,
    /// How often everything stops.
    pub pause_every: Span,
    /// And for how long.
    pub pause: Span,
}

/// When a request of the schedule was to be sent, and when it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sending {
    /// Its place in the schedule.
    pub index: u32,
    /// When its user asked.
    pub intended_at: At,
    /// When it was sent.
    pub sent_at: At,
    /// Whether something in front of the server refused it.
    pub is_refused: bool,
}

/// When an open loop's requests are sent, where that is not when they were
/// intended, or where some do not reach the server.
pub(crate) fn sendings(world: &World, schedule: &Schedule) -> Option<Vec<Sending>> {
    if world.late.is_none() && world.refused == 0.0 {
        return None;
    }
    let mut free_at = At::ZERO;
    let mut refusals = Stream::new(world.seed, "refused");
    let mut all = Vec::new();
    for unit in 0..schedule.units()? {
        let request = schedule.unit(unit)?.into_iter().next()?;
        let After::Instant(intended_at) = request.after else { return None };
        let sent_at = match &world.late {
            Some(late) => late.sent_at(intended_at.max(free_at)),
            None => intended_at,
        };
        free_at = sent_at + world.late.map_or(Span::ZERO, |late| late.each);
        let is_refused = refusals.chance(world.refused);
        all.push(Sending { index: request.index, intended_at, sent_at, is_refused });
    }
    Some(all)
}

impl Late {
    /// When what could be sent at this instant is.
    fn sent_at(&self, at: At) -> At {
        if self.pause == Span::ZERO {
            return at;
        }
        let into_us = at.us() % self.pause_every.us().max(1);
        At::from_us(at.us() + (self.pause.us() - into_us).max(0))
    }
}

/// The world whose requests come when they are sent, without those that do not
/// reach the server. It begins with the first of them.
pub(crate) fn replay(world: &World, sendings: &[Sending]) -> World {
    let reaching = sendings.iter().filter(|sending| !sending.is_refused);
    let times: Vec<Span> = reaching.map(|sending| sending.sent_at - At::ZERO).collect();
    let requests = times.len() as u32;
    let replay = Replay::new(&times, 1.0, None).expect("instants in their order");
    World { load: Load::Replay { replay, users: None }, requests, ..world.clone() }
}

/// Gives records their place in the schedule, their intent and the run's own time
/// back, and adds those that were refused.
pub(crate) fn restore(world: &World, played: &mut Played, sendings: &[Sending]) {
    let reached: Vec<&Sending> = sendings.iter().filter(|one| !one.is_refused).collect();
    let begins = reached.first().map_or(Span::ZERO, |first| first.sent_at - At::ZERO);
    played.scrapes.iter_mut().for_each(|(at, _)| *at = *at + begins);
    for record in &mut played.records {
        let sending = reached[record.index as usize];
        record.index = sending.index;
        record.planned.session = sending.index;
        let stamps = &mut record.stamps;
        for stamp in [
            &mut stamps.released_at,
            &mut stamps.sent_at,
            &mut stamps.written_at,
            &mut stamps.first_byte_at,
            &mut stamps.headers_at,
            &mut stamps.ended_at,
        ] {
            *stamp = stamp.map(|at| at + begins);
        }
        stamps.intended_at = sending.intended_at;
    }
    let planned = played.records.first().map(|record| record.planned.clone()).unwrap_or_default();
    for sending in sendings.iter().filter(|one| one.is_refused) {
        let mut planned = planned.clone();
        planned.session = sending.index;
        let mut record = Record::planned(sending.index, sending.intended_at, planned);
        let at = sending.sent_at;
        let answered_at = at + world.one_way + world.one_way + Span::from_ms(1);
        let stamps = &mut record.stamps;
        (stamps.released_at, stamps.sent_at, stamps.written_at) = (Some(at), Some(at), Some(at));
        (stamps.first_byte_at, stamps.headers_at) = (Some(answered_at), Some(answered_at));
        stamps.ended_at = Some(answered_at);
        record.answer.http_status = Some(503);
        record.outcome = Outcome::Failed(FailureKind::HttpStatus);
        played.records.push(record);
    }
}

/// How long an idle connection is kept.
const IDLE: Span = Span::from_ms(4_000);

/// What a client sees of connections and heads, and what a proxy makes of answers.
/// Records are in the order of the schedule.
pub(crate) fn on_the_way(world: &World, cluster: &Cluster, records: &mut [Record]) {
    let round_trip = world.one_way + world.one_way + Span::from_us(60);
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|place| records[*place].stamps.sent_at);
    // When each connection was last in use.
    let mut connections: Vec<At> = Vec::new();
    for place in order {
        let record = &mut records[place];
        let Some(sent_at) = record.stamps.sent_at else { continue };
        if let (Some(head_at), Some(200)) = (record.stamps.first_byte_at, record.answer.http_status)
        {
            // The head is there as soon as the request was read.
            let tokens = record.answer.counts.prompt.map_or(0, measure::Tokens::get);
            let reads = Span::from_us((cluster.frontend_ns(tokens) / 1_000) as i64);
            let head_at = head_at.min(sent_at + round_trip + reads);
            (record.stamps.first_byte_at, record.stamps.headers_at) =
                (Some(head_at), Some(head_at));
        }
        if let Some(proxy) = world.proxy {
            proxy.holds_up(record);
        }
        let ended_at = record.stamps.ended_at.unwrap_or(sent_at);
        connections.retain(|used_at| *used_at + IDLE > sent_at);
        match connections.iter().position(|used_at| *used_at <= sent_at) {
            Some(free) => connections[free] = ended_at,
            None => {
                connections.push(ended_at);
                record.stamps.resolved_at = Some(sent_at - round_trip);
                record.stamps.connected_at = Some(sent_at);
            }
        }
    }
}

impl Proxy {
    /// Moves the events of an answer to when they are passed on.
    fn holds_up(self, record: &mut Record) {
        let Some(sent_at) = record.stamps.sent_at else { return };
        let last_us = record.events.at_us.last().copied().unwrap_or(0);
        let shift = |at_us: u32, place: usize, all: &[u32]| match self {
            Self::Coalesces { every } => {
                let every = every.us().max(1) as u32;
                // Each answer has its own beat.
                let phase = record.index.wrapping_mul(7_919) % every;
                (at_us + every - phase).div_ceil(every) * every + phase - every
            }
            Self::Fills { events } => {
                let last_of_piece =
                    (place / events.max(1) as usize + 1) * events.max(1) as usize - 1;
                all.get(last_of_piece).copied().unwrap_or(last_us)
            }
            Self::Buffers => last_us,
        };
        let before = record.events.at_us.clone();
        let after: Vec<u32> =
            before.iter().enumerate().map(|(place, at_us)| shift(*at_us, place, &before)).collect();
        for place in 1..after.len() {
            if after[place] == after[place - 1] {
                let carries = &mut record.events.carries[place];
                *carries = carries.with(Carries::SHARED_READ);
            }
        }
        let since = |us: u32| sent_at + Span::from_us(i64::from(us));
        if let Some(first) = after.first() {
            let stamps = &mut record.stamps;
            stamps.first_byte_at = stamps
                .first_byte_at
                .max(Some(since(*first)).filter(|_| !matches!(self, Self::Coalesces { .. })));
            stamps.headers_at = stamps.first_byte_at;
        }
        if let Some(last) = after.last() {
            record.stamps.ended_at = record.stamps.ended_at.max(Some(since(*last)));
        }
        record.events.at_us = after;
    }
}

#[cfg(test)]
mod tests {
    use measure::record::Event;
    use measure::{Planned, Span};

    use super::*;

    /// Ten tokens, 10 ms apart, the first after 25 ms.
    fn answered(index: u32) -> Record {
        let mut record = Record::planned(index, At::ZERO, Planned::default());
        record.stamps.sent_at = Some(At::ZERO);
        for number in 0..10 {
            let at_us = 25_000 + 10_000 * number;
            record.events.push(Event { at_us, carries: Carries::TEXT, ..Event::default() });
        }
        record.stamps.ended_at = Some(At::from_us(115_000));
        record
    }

    #[test]
    fn a_proxy_delays_and_never_hurries_or_loses() {
        for proxy in [
            Proxy::Coalesces { every: Span::from_ms(40) },
            Proxy::Fills { events: 4 },
            Proxy::Buffers,
        ] {
            for index in 0..50 {
                let (before, mut after) = (answered(index), answered(index));
                proxy.holds_up(&mut after);
                assert_eq!(after.events.len(), 10);
                assert!(after.events.at_us.is_sorted(), "{proxy:?}");
                let pairs = before.events.at_us.iter().zip(&after.events.at_us);
                assert!(pairs.clone().all(|(before, after)| after >= before), "{proxy:?}");
                assert!(pairs.clone().any(|(before, after)| after > before), "{proxy:?}");
                let shared = |one: &&Carries| one.any(Carries::SHARED_READ);
                assert!(after.events.carries.iter().filter(shared).count() >= 4, "{proxy:?}");
                let last = after.events.at_us.last().map(|us| At::from_us(i64::from(*us)));
                assert!(after.stamps.ended_at >= last);
            }
        }
    }

    #[test]
    fn a_proxy_that_fills_passes_so_many_on_at_a_time() {
        let mut record = answered(0);
        Proxy::Fills { events: 4 }.holds_up(&mut record);
        let expected = [55, 55, 55, 55, 95, 95, 95, 95, 115, 115].map(|ms| ms * 1_000);
        assert_eq!(record.events.at_us, expected);
    }

    #[test]
    fn a_pause_holds_back_what_falls_into_it() {
        let pauses =
            Late { each: Span::ZERO, pause_every: Span::from_ms(1_000), pause: Span::from_ms(300) };
        let sent = |ms: i64| pauses.sent_at(At::from_us(ms * 1_000)).us() / 1_000;
        assert_eq!(
            [sent(0), sent(299), sent(300), sent(999), sent(1_001)],
            [300, 300, 300, 999, 1_300]
        );
    }
}
