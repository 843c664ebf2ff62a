//! The timed read path of one worker: an epoll of its own, nested in the
//! runtime's.
//!
//! A task a request would be woken for every chunk, and a thousand streams in
//! step would queue behind each other between the kernel and their stamps. So
//! sockets under way are watched here: one call gives a batch of ready ones,
//! each is read once with the kernel's receive stamp and parsed on the spot,
//! and the request's task is woken only when its answer is over. Between
//! batches the runtime gets its turn, so that sends stay on time.
//!
//! The runtime watches this epoll as one file descriptor. Whatever can be read
//! behind [`Tap::begin`] could later come from io_uring; nothing outside this
//! file knows.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use hdrhistogram::Histogram;
use measure::{At, Span};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::time::TimeSpec;
use tokio::io::Interest;
use tokio::net::UnixStream;
use wire::http1;
use wire::reader::{Close, Progress, Reader};

use crate::clock::{Clock, WallOffset, monotonic_ns};
use crate::connection::Connection;
use crate::idle::Idle;
use crate::places::{Key, Places};
use crate::tcp;

/// Ready sockets taken at a time: a batch of this size is done in a fraction
/// of a millisecond, and then sends get their turn.
const BATCH: usize = 64;

/// Reads after which a send that is due gets its turn. Each takes some
/// microseconds.
const READS_BETWEEN_SENDS: usize = 8;

/// The same in a burst, where all sends are due from the start: all that were
/// ready, so that reading keeps up with the answers that have begun. What is
/// read too late is read together, and its stamps are then known less well.
const READS_BETWEEN_SENDS_OF_A_BURST: usize = BATCH;

/// Ends of answers after which a send that is due gets its turn.
const ENDS_BETWEEN_SENDS: usize = 4;

/// How long before a send is due reading begins to make way for it: the time
/// of a few reads and a turn of the runtime.
const MAKE_WAY: Span = Span::from_us(30);

/// When sockets become ready at less than this from each other, more of them
/// are waited for before they are read, this long.
const DENSE_NS: i64 = 15_000;
const GATHER: Duration = Duration::from_micros(30);

/// Time to the next send in which there is time for that, with the lateness of
/// waking up.
const CLEAR_NS: i64 = 1_000_000;

/// Idle connections closed at a time.
const RETIRED_AT_A_TIME: usize = 4;

/// Full reads of one socket before others get their turn.
const READS_AT_A_TIME: usize = 16;

/// The kernel is asked for a round trip at most once in this time.
const WAY_ASKED_EVERY_NS: i64 = 1_000_000;

/// Bytes that one read takes at most.
const READ_BUFFER: usize = 64 * 1024;

/// The largest piece of plain text that TLS hands out at a time.
const PLAIN_BUFFER: usize = 16 * 1024;

/// What is watched on a socket: readiness told once, when it comes. A read
/// that does not fill the buffer has emptied the socket, so nothing is missed,
/// and the kernel need not look at each socket again after it was read.
const READS: EpollFlags =
    EpollFlags::EPOLLIN.union(EpollFlags::EPOLLRDHUP).union(EpollFlags::EPOLLET);

/// What tells that a connection ends: the end itself has then come, perhaps
/// behind bytes, and no further readiness will be told.
const ENDS: EpollFlags =
    EpollFlags::EPOLLRDHUP.union(EpollFlags::EPOLLHUP).union(EpollFlags::EPOLLERR);

/// How often time limits are looked at. They are seconds, not milliseconds.
const SWEEP: Duration = Duration::from_millis(20);

/// Sweeps between two looks at the wall clock's offset.
const SWEEPS_PER_CLOCK_CHECK: u32 = 50;

/// How long an answered connection may take to end its framing before it is
/// closed instead of used again.
const TAIL_LIMIT: Span = Span::from_ms(1_000);

/// Largest lag that the histogram tells apart, in ns.
const LAG_LIMIT_NS: u64 = 60_000_000_000;

/// An exchange to be watched.
pub(crate) struct Exchange {
    pub(crate) connection: Connection,
    pub(crate) reader: Reader,
    /// First write of the first try: event times count from it.
    pub(crate) sent_at: At,
    /// When the request has failed, whatever came.
    pub(crate) total_at: At,
    /// Silence after which a begun answer has failed.
    pub(crate) idle_timeout: Span,
    /// The request, and how much of it is written.
    pub(crate) request: Rc<[u8]>,
    pub(crate) written: usize,
    /// When the last byte of the request was handed to the kernel.
    pub(crate) written_at: Option<At>,
    last_byte_at: At,
    /// How it ended, when it has.
    pub(crate) ended: Option<Ended>,
    stepped: bool,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) close: Close,
    pub(crate) at: At,
}

impl Exchange {
    pub(crate) fn new(
        connection: Connection,
        reader: Reader,
        request: Rc<[u8]>,
        sent_at: At,
        total_at: At,
        idle_timeout: Span,
    ) -> Self {
        Self {
            connection,
            reader,
            sent_at,
            total_at,
            idle_timeout,
            request,
            written: 0,
            written_at: None,
            last_byte_at: sent_at,
            ended: None,
            stepped: false,
        }
    }

    fn end(&mut self, close: Close, at: At) {
        self.ended.get_or_insert(Ended { close, at });
    }

    /// True when the wall clock was stepped while it ran: its kernel stamps
    /// cannot be trusted.
    pub(crate) fn saw_clock_step(&self) -> bool {
        self.stepped
    }

    /// Writes on; true while some is left.
    fn write(&mut self, clock: Clock) -> bool {
        while self.written < self.request.len() {
            match self.connection.write(&self.request[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A peer that refuses early may have answered before it
                // closed, so a failed write is no reason not to read.
                Err(_) => {
                    self.written = self.request.len();
                    return false;
                }
            }
        }
        match self.connection.flush_tls() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
            _ => {
                self.written_at.get_or_insert_with(|| clock.now());
                false
            }
        }
    }
}

/// What is watched.
#[expect(clippy::large_enum_variant, reason = "exchanges lie side by side, in no boxes")]
enum Watched {
    /// A request under way, and who waits for its end.
    Busy { exchange: Exchange, waker: Option<Waker>, writing: bool },
    /// An answered connection whose HTTP framing has not ended yet.
    Tail { connection: Connection, framing: http1::Decoder, until: At },
}

/// The read path of one worker.
pub(crate) struct Tap {
    epoll: Epoll,
    /// The epoll as something that the runtime can watch. A socket is tokio's
    /// safe door for a foreign descriptor; nothing is read or written here.
    door: UnixStream,
    clock: Clock,
    wall: WallOffset,
    watched: RefCell<Places<Watched>>,
    idle: RefCell<Idle>,
    idle_limit: Span,
    /// Who waits for exchanges that are over, and is not told yet.
    over: RefCell<VecDeque<Waker>>,
    /// When the next request is due, and the last reading of the clock; both
    /// CLOCK_MONOTONIC.
    due_ns: Cell<i64>,
    now_ns: Cell<i64>,
    /// No send waits for an answer, so reading may be put off a little.
    may_gather: Cell<bool>,
    reads_between_sends: Cell<usize>,
    scratch: RefCell<Scratch>,
    lag_ns: RefCell<Histogram<u64>>,
    /// How much earlier than its stamp an arrival may have been that was not the
    /// last event of its read, and the number of those that were.
    bound_ns: RefCell<Histogram<u64>>,
    exact: Cell<u64>,
    /// Nothing that is read now came before this reading of CLOCK_MONOTONIC.
    /// After a rest it is not known before the first read.
    earliest_ns: Cell<Option<i64>>,
    /// A socket was left before it was empty.
    left: Cell<bool>,
    unstamped: Cell<u64>,
    /// The shortest round trip that the kernel told, and when it was last asked.
    round_trip: Cell<Option<Span>>,
    way_asked_ns: Cell<i64>,
}

struct Scratch {
    received: Box<[u8]>,
    plain: Box<[u8]>,
    control: Vec<u8>,
}

/// What a read gave.
enum Got {
    Bytes {
        count: usize,
        /// The stamp, on CLOCK_MONOTONIC.
        at_ns: i64,
    },
    Nothing,
    Eof,
    Broken,
}

impl Tap {
    /// A read path on the run's clock, which keeps idle connections until they
    /// have the age `idle_limit`. Needs a runtime; fails when no file descriptor
    /// is left.
    pub(crate) fn new(clock: Clock, idle_limit: Span) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let door = std::os::unix::net::UnixStream::from(epoll.0.try_clone()?);
        door.set_nonblocking(true)?;
        Ok(Self {
            epoll,
            door: UnixStream::from_std(door)?,
            clock,
            wall: WallOffset::new(),
            watched: RefCell::new(Places::new()),
            idle: RefCell::default(),
            idle_limit,
            over: RefCell::default(),
            due_ns: Cell::new(i64::MAX),
            now_ns: Cell::new(0),
            may_gather: Cell::new(false),
            reads_between_sends: Cell::new(READS_BETWEEN_SENDS),
            scratch: RefCell::new(Scratch {
                received: vec![0; READ_BUFFER].into_boxed_slice(),
                plain: vec![0; PLAIN_BUFFER].into_boxed_slice(),
                control: nix::cmsg_space!(TimeSpec),
            }),
            lag_ns: RefCell::new(histogram()?),
            bound_ns: RefCell::new(histogram()?),
            exact: Cell::new(0),
            earliest_ns: Cell::new(None),
            left: Cell::new(false),
            unstamped: Cell::new(0),
            round_trip: Cell::new(None),
            way_asked_ns: Cell::new(i64::MIN),
        })
    }

    /// Writes the request and watches the connection for its answer.
    pub(crate) fn begin(&self, mut exchange: Exchange) -> io::Result<Key> {
        let writing = exchange.write(self.clock);
        let wanted = if writing { READS | EpollFlags::EPOLLOUT } else { READS };
        self.watch(Watched::Busy { exchange, waker: None, writing }, wanted)
    }

    fn watch(&self, what: Watched, wanted: EpollFlags) -> io::Result<Key> {
        let mut watched = self.watched.borrow_mut();
        let key = watched.put(what);
        let Some(
            Watched::Busy { exchange: Exchange { connection, .. }, .. }
            | Watched::Tail { connection, .. },
        ) = watched.get(key)
        else {
            return Ok(key);
        };
        let added = self.epoll.add(&connection.socket, EpollEvent::new(wanted, key.number()));
        if let Err(error) = added {
            watched.take(key);
            return Err(error.into());
        }
        Ok(key)
    }

    /// Waits until the exchange is over; it stays in its place.
    pub(crate) async fn over(&self, key: Key) {
        poll_fn(|context| match self.watched.borrow_mut().get(key) {
            Some(Watched::Busy { exchange, waker, .. }) if exchange.ended.is_none() => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        })
        .await;
    }

    /// Takes an exchange out, over or not.
    pub(crate) fn take(&self, key: Key) -> Option<Exchange> {
        let Watched::Busy { exchange, .. } = self.watched.borrow_mut().take(key)? else {
            return None;
        };
        // One that has ended is not watched any more.
        if exchange.ended.is_none() {
            let _ = self.epoll.delete(&exchange.connection.socket);
        }
        self.note_round_trip(&exchange.connection);
        Some(exchange)
    }

    /// Asks the kernel for the round trip of a connection that was used, now and
    /// then: the shortest is wanted, and each question is a call of the kernel.
    fn note_round_trip(&self, connection: &Connection) {
        let now_ns = self.now_ns.get();
        if now_ns.saturating_sub(self.way_asked_ns.get()) < WAY_ASKED_EVERY_NS {
            return;
        }
        self.way_asked_ns.set(now_ns);
        let known = [self.round_trip.get(), tcp::round_trip(&connection.socket)];
        self.round_trip.set(known.into_iter().flatten().min());
    }

    /// Keeps an answered connection for another request, after reading the end
    /// of its framing where that has not come yet. Nobody waits for this.
    pub(crate) fn keep(&self, connection: Connection, framing: http1::Decoder) {
        if framing.is_done() {
            if framing.is_reusable() {
                self.give_back(connection);
            }
            return;
        }
        if framing.ends_at_close() {
            return;
        }
        let until = self.clock.now() + TAIL_LIMIT;
        // One that cannot be watched is closed.
        let _ = self.watch(Watched::Tail { connection, framing, until }, READS);
    }

    /// Takes back a connection that can carry another request.
    pub(crate) fn give_back(&self, connection: Connection) {
        self.idle.borrow_mut().put(connection, self.clock.now());
    }

    /// An idle connection to a target that is fit for a request; of `session`,
    /// where connections are kept apart.
    pub(crate) fn idle(&self, target: u32, session: Option<u32>) -> Option<Connection> {
        self.idle.borrow_mut().take(self.clock.now(), self.idle_limit, target, session)
    }

    /// Says when the next request is due, if one is: reading makes way for it.
    pub(crate) fn note_due(&self, at: Option<At>) {
        let due_ns = at.map(|at| self.clock.monotonic_ns_of(at - MAKE_WAY));
        self.due_ns.set(due_ns.unwrap_or(i64::MAX));
    }

    /// Says whether reading may be put off for a moment: not where the end of
    /// an answer lets another request go.
    pub(crate) fn may_gather(&self, may: bool) {
        self.may_gather.set(may);
    }

    /// Says that all requests are due at once.
    pub(crate) fn expect_burst(&self) {
        self.reads_between_sends.set(READS_BETWEEN_SENDS_OF_A_BURST);
    }

    /// Sleeps for a moment when the sockets become ready so densely that each
    /// would else cost a wake-up of its own. The kernel stamps what comes
    /// meanwhile, so nothing is measured less well.
    fn gather(&self, count: usize, since_last_ns: i64, now_ns: i64) {
        let dense = count > 0 && since_last_ns < DENSE_NS * count as i64;
        let clear = self.due_ns.get().saturating_sub(now_ns) > CLEAR_NS;
        if dense && clear && self.may_gather.get() && self.unstamped.get() == 0 {
            std::thread::sleep(GATHER);
        }
    }

    /// Reads whatever becomes ready, for ever; to be dropped at the end.
    pub(crate) async fn pump(&self) {
        let mut events = [EpollEvent::empty(); BATCH];
        let (mut more, mut last_asked_ns) = (false, 0);
        loop {
            if !more {
                match self.readable().await {
                    Ok(rested) if rested => self.earliest_ns.set(None),
                    Ok(_) => {}
                    Err(_) => return,
                }
            }
            // The readiness is cleared before the question: what comes after
            // the answer is told anew when the runtime asks.
            let nothing: io::Result<()> =
                self.door.try_io(Interest::READABLE, || Err(io::ErrorKind::WouldBlock.into()));
            drop(nothing);
            let asked_ns = monotonic_ns();
            let count = match self.epoll.wait(&mut events, EpollTimeout::ZERO) {
                Ok(count) => count,
                Err(Errno::EINTR) => {
                    more = true;
                    continue;
                }
                Err(_) => return,
            };
            self.read_batch(&events[..count]).await;
            // All that was ready is read: what is ready next came since.
            if !self.left.take() && count < BATCH {
                self.earliest_ns.set(Some(asked_ns));
                self.gather(count, asked_ns - last_asked_ns, asked_ns);
            }
            last_asked_ns = asked_ns;
            self.tell_some();
            more = count == BATCH || !self.over.borrow().is_empty();
            if more {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Waits until something can be read; true when that took a rest.
    async fn readable(&self) -> io::Result<bool> {
        let mut rested = false;
        poll_fn(|context| {
            let ready = self.door.poll_read_ready(context);
            rested |= ready.is_pending();
            ready
        })
        .await?;
        Ok(rested)
    }

    async fn read_batch(&self, events: &[EpollEvent]) {
        self.fetch(events);
        for few in events.chunks(self.reads_between_sends.get()) {
            for event in few {
                self.ready(Key::of(event.data()), event.events());
            }
            if self.now_ns.get() >= self.due_ns.get() {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Tells some of those who wait that their exchange is over. Answers in
    /// step end together, and closing the books of a thousand at once would
    /// hold up sends.
    fn tell_some(&self) {
        let mut over = self.over.borrow_mut();
        let some = over.len().min(ENDS_BETWEEN_SENDS);
        over.drain(..some).for_each(Waker::wake);
    }

    /// Looks once at the state of each ready stream before the first is read:
    /// what is not in the cache is then fetched for many at a time, where
    /// reading would wait for each in turn. Worth 5 % of a read.
    fn fetch(&self, events: &[EpollEvent]) {
        let mut watched = self.watched.borrow_mut();
        let mut sum = 0;
        for event in events {
            if let Some(Watched::Busy { exchange, .. }) = watched.get(Key::of(event.data())) {
                sum ^= exchange.last_byte_at.us() as u64 ^ exchange.reader.glance();
            }
        }
        std::hint::black_box(sum);
    }

    fn ready(&self, key: Key, flags: EpollFlags) {
        let mut watched = self.watched.borrow_mut();
        match watched.get(key) {
            None => {}
            Some(Watched::Busy { exchange, waker, writing }) => {
                if *writing && flags.intersects(EpollFlags::EPOLLOUT | EpollFlags::EPOLLERR) {
                    *writing = exchange.write(self.clock);
                    if !*writing {
                        let mut event = EpollEvent::new(READS, key.number());
                        let _ = self.epoll.modify(&exchange.connection.socket, &mut event);
                    }
                }
                if flags.intersects(ENDS | EpollFlags::EPOLLIN) {
                    self.read_all(key, exchange, flags.intersects(ENDS));
                }
                if exchange.ended.is_some() {
                    self.leave(exchange, waker);
                }
            }
            Some(Watched::Tail { connection, framing, .. }) => {
                let open = self.read_tail(connection, framing);
                if open && !framing.is_done() {
                    return;
                }
                let reusable = open && framing.is_reusable();
                if let Some(Watched::Tail { connection, .. }) = watched.take(key) {
                    let _ = self.epoll.delete(&connection.socket);
                    if reusable {
                        self.give_back(connection);
                    }
                }
            }
        }
    }

    /// Looks no more at an exchange that has ended: its connection may soon be
    /// watched for another. Who waits for it will be told.
    fn leave(&self, exchange: &Exchange, waker: &mut Option<Waker>) {
        let _ = self.epoll.delete(&exchange.connection.socket);
        self.over.borrow_mut().extend(waker.take());
    }

    /// Empties a socket: one read, unless that fills the buffer or the peer
    /// has ended the connection behind what it sent.
    fn read_all(&self, key: Key, exchange: &mut Exchange, to_the_end: bool) {
        for _ in 0..READS_AT_A_TIME {
            let more = self.read(exchange).is_some_and(|filled| filled || to_the_end);
            if exchange.ended.is_some() || !more {
                return;
            }
        }
        // Others come first now; asking again tells what is left.
        self.left.set(true);
        let mut event = EpollEvent::new(READS, key.number());
        let _ = self.epoll.modify(&exchange.connection.socket, &mut event);
    }

    /// One read of a busy connection, and what it means: whether it filled the
    /// buffer, or nothing when there was nothing or the end.
    fn read(&self, exchange: &mut Exchange) -> Option<bool> {
        let mut scratch = self.scratch.borrow_mut();
        let (count, at_ns) = match self.receive(&exchange.connection, &mut scratch) {
            Got::Bytes { count, at_ns } => (count, at_ns),
            Got::Nothing => return None,
            Got::Eof => {
                exchange.end(Close::Eof, self.clock.now());
                return None;
            }
            Got::Broken => {
                exchange.end(Close::Reset, self.clock.now());
                return None;
            }
        };
        // A stamp before the send would be an unasked byte on a reused
        // connection; time does not run backwards in a record.
        let at = self.clock.at(at_ns).max(exchange.sent_at);
        let last_byte_at = std::mem::replace(&mut exchange.last_byte_at, at);
        let us = since(exchange.sent_at, at);
        let Exchange { connection, reader, .. } = exchange;
        let Scratch { received, plain, .. } = &mut *scratch;
        let mut progress = Progress::More;
        let began_ns = connection.follow_records(&received[..count], at_ns);
        let before = reader.arrivals_seen();
        let open = connection.decipher(&received[..count], plain, |bytes| {
            progress = reader.read(bytes, us);
        });
        let arrivals = u64::from(reader.arrivals_seen() - before);
        // What a record of several reads held may have come with its first.
        let last = reader.ends_in_arrival() && began_ns.is_none();
        let asked_ns = self.earliest_ns.get().unwrap_or(at_ns);
        let earliest_ns = match began_ns {
            Some(began_ns) => began_ns.min(asked_ns),
            None => asked_ns.max(self.clock.monotonic_ns_of(last_byte_at)),
        };
        self.bound_stamps(arrivals, u64::from(last), at_ns - earliest_ns);
        match open {
            _ if progress != Progress::More => exchange.end(Close::Done, at),
            Ok(true) => {}
            Ok(false) => exchange.end(Close::Eof, at),
            Err(_) => exchange.end(Close::Reset, at),
        }
        Some(count == READ_BUFFER)
    }

    /// Notes how far off the stamps of a read's arrivals may be. The stamp is
    /// that of the last event in the read; all others may have come earlier, at
    /// most as early as anything that was still to be read: after the kernel was
    /// last asked what is ready, and after what was read before from here.
    fn bound_stamps(&self, arrivals: u64, last: u64, early_ns: i64) {
        let exact = arrivals.min(last);
        self.exact.set(self.exact.get() + exact);
        if arrivals > exact {
            let mut bounds = self.bound_ns.borrow_mut();
            bounds.saturating_record_n(early_ns.max(1) as u64, arrivals - exact);
        }
    }

    /// Reads on behind an answer; false when the connection is of no use any
    /// more, which one with megabytes behind its answer is not either.
    fn read_tail(&self, connection: &mut Connection, framing: &mut http1::Decoder) -> bool {
        let mut scratch = self.scratch.borrow_mut();
        for _ in 0..READS_AT_A_TIME {
            let count = match self.receive(connection, &mut scratch) {
                Got::Nothing => return true,
                Got::Bytes { count, .. } => count,
                Got::Eof | Got::Broken => return false,
            };
            let Scratch { received, plain, .. } = &mut *scratch;
            let mut sound = true;
            let open = connection.decipher(&received[..count], plain, |bytes| {
                sound &= framing.feed(bytes, |_| {}).is_ok();
            });
            if !sound || !matches!(open, Ok(true)) {
                return false;
            }
            if framing.is_done() {
                return true;
            }
        }
        false
    }

    /// Receives once, with the kernel's stamp where it gives one.
    fn receive(&self, connection: &Connection, scratch: &mut Scratch) -> Got {
        let mut into = [IoSliceMut::new(&mut scratch.received)];
        let control = Some(scratch.control.as_mut_slice());
        let descriptor = connection.socket.as_raw_fd();
        let (count, stamp) =
            match recvmsg::<()>(descriptor, &mut into, control, MsgFlags::MSG_DONTWAIT) {
                Ok(message) => {
                    let mut stamps = message.cmsgs().ok().into_iter().flatten();
                    let stamp = stamps.find_map(|control| match control {
                        ControlMessageOwned::ScmTimestampns(time) => {
                            Some(time.tv_sec() * 1_000_000_000 + time.tv_nsec())
                        }
                        _ => None,
                    });
                    (message.bytes, stamp)
                }
                Err(Errno::EAGAIN | Errno::EINTR) => return Got::Nothing,
                Err(_) => return Got::Broken,
            };
        let user_ns = monotonic_ns();
        self.now_ns.set(user_ns);
        if count == 0 {
            return Got::Eof;
        }
        let at_ns = match stamp {
            Some(realtime_ns) => {
                let kernel_ns = self.wall.to_monotonic(realtime_ns).min(user_ns);
                let lag = (user_ns - kernel_ns).max(1) as u64;
                self.lag_ns.borrow_mut().saturating_record(lag);
                kernel_ns
            }
            None => {
                self.unstamped.set(self.unstamped.get() + 1);
                user_ns
            }
        };
        if self.earliest_ns.get().is_none() {
            // The first byte after a rest woke us. How much earlier than the
            // last byte of its read it came is not known, but that one then
            // waited about as long for us as the first for it, or longer.
            self.earliest_ns.set(Some(at_ns - (user_ns - at_ns)));
        }
        Got::Bytes { count, at_ns }
    }

    /// Ends what has run out of time, for ever; to be dropped at the end.
    pub(crate) async fn sweep(&self) {
        let mut ticks = tokio::time::interval(SWEEP);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for round in 0u32.. {
            ticks.tick().await;
            let now = self.clock.now();
            let stepped = round % SWEEPS_PER_CLOCK_CHECK == 0 && self.wall.refresh();
            self.idle.borrow_mut().retire(now, self.idle_limit, RETIRED_AT_A_TIME);
            let mut watched = self.watched.borrow_mut();
            let mut late = Vec::new();
            for (key, what) in watched.iter_mut() {
                match what {
                    Watched::Busy { exchange, waker, .. } => {
                        exchange.stepped |= stepped;
                        if let Some(close) = overdue(exchange, now) {
                            exchange.end(close, now);
                            self.leave(exchange, waker);
                        }
                    }
                    Watched::Tail { until, .. } if *until < now => late.push(key),
                    Watched::Tail { .. } => {}
                }
            }
            // A closed descriptor leaves the epoll by itself.
            for key in late {
                watched.take(key);
            }
            // The pump may be at rest, and these are few.
            self.over.borrow_mut().drain(..).for_each(Waker::wake);
        }
    }

    /// What the instrument knows of itself at the end.
    pub(crate) fn readings(&self) -> Readings {
        let mut bound_ns = self.bound_ns.borrow().clone();
        bound_ns.saturating_record_n(1, self.exact.get());
        Readings {
            lag_ns: self.lag_ns.borrow().clone(),
            bound_ns,
            unstamped: self.unstamped.get(),
            clock_steps: self.wall.steps(),
            round_trip: self.round_trip.get(),
        }
    }
}

/// The read path's figures about itself.
#[derive(Clone, Debug)]
pub(crate) struct Readings {
    /// User stamp − kernel stamp of each read.
    pub(crate) lag_ns: Histogram<u64>,
    /// How much earlier than its stamp each arrival may have been.
    pub(crate) bound_ns: Histogram<u64>,
    /// Reads without a kernel stamp.
    pub(crate) unstamped: u64,
    /// Steps of the wall clock.
    pub(crate) clock_steps: u32,
    /// The shortest round trip of connections, by the kernel.
    pub(crate) round_trip: Option<Span>,
}

/// Two digits: with three, one histogram is 200 kB, and the counts that a read
/// touches are then seldom in the first cache.
fn histogram() -> io::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, LAG_LIMIT_NS, 2).map_err(io::Error::other)
}

/// How a request that has run out of time ends.
fn overdue(exchange: &Exchange, now: At) -> Option<Close> {
    if exchange.ended.is_some() {
        return None;
    }
    if now >= exchange.total_at {
        return Some(Close::TotalTimeout);
    }
    let idle = exchange.reader.body_begun() && now >= exchange.last_byte_at + exchange.idle_timeout;
    idle.then_some(Close::IdleTimeout)
}

/// Microseconds from the first send to `at`, as the event columns hold them.
pub(crate) fn since(sent_at: At, at: At) -> u32 {
    u32::try_from((at - sent_at).us().max(0)).unwrap_or(u32::MAX)
}
