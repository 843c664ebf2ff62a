//! Waiting for absolute instants. The runtime's own timer is late by about a
//! millisecond; a timerfd armed early, polling from then on and a short spin
//! are not.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::time::Duration;

use measure::{At, Span};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::net::unix::pipe;

use crate::clock::Clock;

/// The least time before the instant at which the timer fires.
const EARLY: Span = Span::from_us(50);

/// The most, where punctuality is worth it: a wake-up from sleep takes some
/// 5 µs on bare metal, some 50 µs in a virtual machine and at times several
/// hundred, and which one this is shows only as it goes.
pub(crate) const PUNCTUAL: Span = Span::from_ms(1);

/// The most where a thousand timers share a thread, which would else be awake
/// for one of them all the time.
pub(crate) const MODEST: Span = EARLY;

/// The share of the time that may be spent awake with nothing to do, and how
/// much of it can be saved up: instants that follow each other closely need it
/// most.
const AWAKE_SHARE: i64 = 2;
const SAVED: Span = Span::from_ms(50);

/// Wake-ups after which one microsecond of a late one is forgotten.
const WAKES_TO_FORGET: u32 = 10;

/// The last stretch, in which nothing is read any more: a read and a turn of
/// the runtime are done in less.
const SPIN: Span = Span::from_us(20);

/// One timer; one task waits on it at a time.
pub(crate) struct Timer {
    timer: TimerFd,
    /// The same timer as something that the runtime can watch. A pipe's
    /// receiving end is tokio's only safe door for a foreign descriptor, and a
    /// timerfd is read like a pipe.
    expired: pipe::Receiver,
    clock: Clock,
    /// How long before the instant the timer fires: a little more than all but
    /// the latest of the wake-ups so far were late.
    early: Cell<Span>,
    wakes: Cell<u32>,
    most: Span,
    /// The instant that was waited for last.
    last: Cell<At>,
    /// Time spent awake with nothing to do, and how much more of it may be.
    idled: Cell<Span>,
    saved: Cell<Span>,
}

/// A turn of the runtime that takes less had nothing to do.
const EMPTY_TURN: Span = Span::from_us(5);

impl Timer {
    /// A timer on the run's clock, which fires at most `most` early. Needs a
    /// runtime; fails when no file descriptor is left.
    pub(crate) fn new(clock: Clock, most: Span) -> std::io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let watched = timer.as_fd().try_clone_to_owned()?;
        let expired = pipe::Receiver::from_owned_fd_unchecked(watched)?;
        let early = Cell::new(most);
        let (last, idled) = (Cell::new(At::ZERO), Cell::new(Span::ZERO));
        let (wakes, saved) = (Cell::new(0), Cell::new(SAVED));
        Ok(Self { timer, expired, clock, early, wakes, most, last, idled, saved })
    }

    /// Returns at `at`, never before, at once when it has passed.
    pub(crate) async fn until(&self, at: At) {
        let between = at - self.last.replace(at);
        let saved = (self.saved.get() + Span::from_us(between.us() / AWAKE_SHARE)).min(SAVED);
        self.saved.set(saved);
        loop {
            let armed = at - self.early.get().min(saved).max(EARLY);
            if self.clock.now() >= armed {
                break;
            }
            let ns = self.clock.monotonic_ns_of(armed).max(1) as u64;
            let when = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(ns)));
            if self.timer.set(when, TimerSetTimeFlags::TFD_TIMER_ABSTIME).is_err() {
                // A timer that cannot be armed leaves the polling, which is
                // correct and only costs processor time.
                break;
            }
            if self.expired.readable().await.is_ok() {
                // The read clears the readiness; the count is of no interest.
                let _ = self.expired.try_read(&mut [0; 8]);
            }
            self.note_lateness(self.clock.now() - armed);
        }
        let mut before = self.clock.now();
        while before + SPIN < at {
            tokio::task::yield_now().await;
            let now = self.clock.now();
            if now - before < EMPTY_TURN {
                self.note_idle(now - before);
            }
            before = now;
        }
        while self.clock.now() < at {
            std::hint::spin_loop();
        }
        self.note_idle((at - before).max(Span::ZERO));
    }

    fn note_idle(&self, span: Span) {
        self.idled.set(self.idled.get() + span);
        self.saved.set(self.saved.get() - span);
    }

    /// How long waiting kept the processor for no other reason than to be
    /// punctual.
    pub(crate) fn idled(&self) -> Span {
        self.idled.get()
    }

    /// Follows the lateness of wake-ups: up at once, down by a microsecond in so
    /// many wake-ups that some few in a thousand are later than expected.
    fn note_lateness(&self, late: Span) {
        let wakes = self.wakes.get().wrapping_add(1);
        self.wakes.set(wakes);
        let down = Span::from_us(i64::from(wakes.is_multiple_of(WAKES_TO_FORGET)));
        let wanted = (late + SPIN + SPIN).max(self.early.get() - down);
        self.early.set(wanted.clamp(EARLY, self.most));
    }
}
