//! One worker thread: its share of the schedule, its own connections, no
//! state shared with others while running.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use measure::{At, Outcome, Record, Span};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use wire::api::RequestSpec;
use wire::dialect::Forms;
use workload::{After, Load, Request, Schedule};

use crate::clock::{Clock, duration};
use crate::connection::{Connection, OpenError, OpenStamps, resolve};
use crate::exchange::Attempt;
use crate::job::{Job, Reuse};
use crate::run::Outlet;
use crate::tap::Tap;
use crate::timer::{MODEST, PUNCTUAL, Timer};

/// What a worker's tasks share. Only its own thread sees it.
pub(crate) struct Worker {
    pub(crate) job: Arc<Job>,
    pub(crate) clock: Clock,
    pub(crate) tap: Tap,
    /// What is known of the form of the target's events.
    pub(crate) forms: Forms,
    stop: watch::Receiver<bool>,
    id: u32,
    /// Those of each target, as far as they are known.
    addresses: RefCell<Vec<Option<Vec<SocketAddr>>>>,
    out: Outlet,
    ended: RefCell<HashMap<u32, At>>,
    any_ended: Notify,
}

/// A request ready to be written, and its record so far.
pub(crate) struct Prepared {
    pub(crate) record: Record,
    pub(crate) target: u32,
    pub(crate) bytes: Rc<[u8]>,
    /// Vectors or scores that it asks for.
    pub(crate) results: u32,
}

impl Worker {
    pub(crate) fn new(
        job: Arc<Job>,
        id: u32,
        clock: Clock,
        out: Outlet,
        stop: watch::Receiver<bool>,
        tap: Tap,
    ) -> Self {
        let targets = job.targets.len();
        Self {
            forms: Forms::new(job.api),
            job,
            clock,
            tap,
            stop,
            id,
            addresses: RefCell::new(vec![None; targets]),
            out,
            ended: RefCell::new(HashMap::new()),
            any_ended: Notify::new(),
        }
    }

    /// Runs the worker's share of the schedule to the end of its tail. Gives the
    /// time that its thread was awake with nothing to do.
    pub(crate) async fn run(self: Rc<Self>) -> std::io::Result<Span> {
        let timer = Timer::new(self.clock, PUNCTUAL)?;
        let load = async {
            match self.job.schedule.load() {
                Load::Closed { .. } => self.closed_loop(&timer).await,
                Load::Open { .. } | Load::Capped { .. } | Load::Burst | Load::Replay { .. } => {
                    self.open_loop(&timer).await;
                }
            }
        };
        let mut reading = JoinSet::new();
        let (pump, sweep) = (Rc::clone(&self), Rc::clone(&self));
        reading.spawn_local(async move { pump.tap.pump().await });
        reading.spawn_local(async move { sweep.tap.sweep().await });
        tokio::select! {
            biased;
            () = load => Ok(timer.idled()),
            // Without its reader a worker would wait for ever.
            joined = reading.join_next() => {
                joined.into_iter().for_each(pass_on);
                Err(std::io::Error::other("the worker cannot read any more"))
            }
        }
    }

    /// Lets requests go at their instants, whatever the server does.
    async fn open_loop(self: &Rc<Self>, timer: &Timer) {
        let schedule = Arc::clone(&self.job.schedule);
        let workers = self.job.threads;
        // Where an answer frees a slot for the next request, it must be seen at
        // once.
        self.tap.may_gather(schedule.load().users().is_none());
        if matches!(schedule.load(), Load::Burst) {
            self.tap.expect_burst();
        }
        let cap = schedule.users_of(self.id, workers);
        // The semaphore is first come, first served, so that arrivals keep
        // their order behind the cap.
        let cap = cap.map(|users| Rc::new(Semaphore::new(users as usize)));
        let mut tasks = JoinSet::new();
        let mut stop = self.stop.clone();
        for request in schedule.deal(self.id, workers) {
            // Encoding before the instant keeps it out of the latency.
            let prepared = self.prepare(&request);
            if matches!(request.after, After::Parents { .. }) {
                self.tap.may_gather(false);
            }
            if let After::Instant(at) = request.after {
                self.tap.note_due(Some(at));
                let stopped = async { stop.wait_for(|stop| *stop).await.is_ok() };
                tokio::select! {
                    biased;
                    _ = stopped => break,
                    () = timer.until(at) => {}
                }
            }
            let worker = Rc::clone(self);
            let cap = cap.clone();
            tasks.spawn_local(async move { worker.arrive(request, prepared, cap).await });
            // Let answers be read between the sends of a burst.
            while let Some(joined) = tasks.try_join_next() {
                pass_on(joined);
            }
            tokio::task::yield_now().await;
        }
        self.tap.note_due(None);
        while let Some(joined) = tasks.join_next().await {
            pass_on(joined);
        }
    }

    /// One arrival: waits for parents and for a slot under the cap, then sends.
    async fn arrive(
        self: Rc<Self>,
        request: Request,
        prepared: Prepared,
        cap: Option<Rc<Semaphore>>,
    ) {
        let mut stop = self.stop.clone();
        let ready = async {
            let intended_at = match &request.after {
                After::Instant(at) => *at,
                After::Slot { think } => self.clock.now() + *think,
                After::Parents { of, think } => self.last_end(of).await + *think,
            };
            let pause = intended_at - self.clock.now();
            if pause > Span::ZERO {
                tokio::time::sleep(duration(pause)).await;
            }
            let permit = match cap {
                Some(cap) => cap.acquire_owned_rc().await,
                None => None,
            };
            (intended_at, permit)
        };
        // A stop comes first: it ends parents and frees slots, and nothing more
        // may be sent because of that.
        let went = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            went = ready => went,
        };
        let (intended_at, _permit) = went;
        // A stop reaches the tasks one after the other, its value all at once:
        // one that has ended for it must not let the next one go.
        if *self.stop.borrow() {
            return;
        }
        self.perform(prepared, intended_at).await;
    }

    /// The end of the last of these requests.
    async fn last_end(&self, parents: &[u32]) -> At {
        loop {
            let known = self.any_ended.notified();
            let ends: Option<Vec<At>> = {
                let ended = self.ended.borrow();
                parents.iter().map(|parent| ended.get(parent).copied()).collect()
            };
            if let Some(ends) = ends {
                return ends.into_iter().max().unwrap_or(At::ZERO);
            }
            known.await;
        }
    }

    /// Users who each wait for their answer before they ask again.
    async fn closed_loop(self: &Rc<Self>, timer: &Timer) {
        let schedule = Arc::clone(&self.job.schedule);
        let users = schedule.users_of(self.id, self.job.threads).unwrap_or(0);
        let next = Rc::new(Cell::new(0u32));
        timer.until(At::ZERO).await;
        let mut tasks = JoinSet::new();
        for _ in 0..users {
            let worker = Rc::clone(self);
            let next = Rc::clone(&next);
            tasks.spawn_local(async move { worker.user(&next).await });
        }
        while let Some(joined) = tasks.join_next().await {
            pass_on(joined);
        }
    }

    async fn user(self: Rc<Self>, next: &Cell<u32>) {
        let schedule = Arc::clone(&self.job.schedule);
        let mut free_at = At::ZERO;
        let mut stop = self.stop.clone();
        // Made at the first pause: users who do not think need no timer.
        let mut timer = None;
        while !*self.stop.borrow() {
            let Some(request) = self.take_next(&schedule, next) else { return };
            let After::Slot { think } = request.after else { return };
            let intended_at = free_at + think;
            if schedule.closes_at().is_some_and(|closes| intended_at >= closes) {
                return;
            }
            let prepared = self.prepare(&request);
            if intended_at > self.clock.now() {
                if timer.is_none() {
                    timer = Timer::new(self.clock, MODEST).ok();
                }
                tokio::select! {
                    biased;
                    _ = stop.wait_for(|stop| *stop) => return,
                    () = self.pause(timer.as_ref(), intended_at) => {}
                }
                if *self.stop.borrow() {
                    return;
                }
            }
            free_at = self.perform(prepared, intended_at).await;
        }
    }

    /// The next request of this worker's share, whichever of its users asks.
    fn take_next(&self, schedule: &Schedule, next: &Cell<u32>) -> Option<Request> {
        loop {
            let index = next.get();
            let owner = schedule.owner_at(index, self.job.threads)?;
            next.set(index.checked_add(1)?);
            if owner == self.id {
                return schedule.request(index);
            }
        }
    }

    /// Waits for an instant, by a timer of its own where there was a
    /// descriptor left for one.
    async fn pause(&self, timer: Option<&Timer>, at: At) {
        if let Some(timer) = timer {
            return timer.until(at).await;
        }
        tokio::time::sleep(duration(at - self.clock.now())).await;
    }

    /// Encodes a request of the schedule.
    fn prepare(&self, request: &Request) -> Prepared {
        let job = &self.job;
        let prompt = job.schedule.prompt(request, job.nonce);
        let mut spec = RequestSpec {
            extra_body: job.extra_body(&prompt.body),
            prompt: job.wire_prompt(prompt.content),
            max_output_tokens: request.max_output_tokens.map(measure::Tokens::get),
            ignore_eos: request.output_forced && job.api.entry().can_ignore_eos,
            priority: request.route.priority.filter(|_| job.api.entry().takes_priority),
            ..job.template.clone()
        };
        if let Some(model) = &request.route.model {
            spec.model.clone_from(model);
        }
        let target = request.route.target;
        let results = job.api.results_of(&spec);
        let bytes = job.encode(request.index, target, &job.api.body(&spec));
        let intended_at = match request.after {
            After::Instant(at) => at,
            After::Slot { .. } | After::Parents { .. } => At::ZERO,
        };
        let mut record = Record::planned(request.index, intended_at, job.planned(request));
        record.worker = self.id;
        Prepared { record, target, bytes: bytes.into(), results }
    }

    /// Sends one request, follows it to its end, hands over its record, and
    /// says when it ended.
    async fn perform(self: &Rc<Self>, prepared: Prepared, intended_at: At) -> At {
        let Prepared { mut record, target, bytes, results } = prepared;
        record.stamps.intended_at = intended_at;
        record.stamps.released_at = Some(self.clock.now().max(intended_at));
        let mut attempt = Attempt::new(record, target, results);
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            () = attempt.exchange(self, &bytes) => {}
            _ = stop.wait_for(|stop| *stop) => attempt.cancel(self),
        }
        let mut record = attempt.into_record();
        let ended_at = record.stamps.ended_at.unwrap_or_else(|| self.clock.now());
        self.job.redact(&mut record);
        self.ended.borrow_mut().insert(record.index, ended_at);
        self.any_ended.notify_waiters();
        self.out.put(record);
        ended_at
    }

    /// A connection: an idle one that is fit, else a fresh one.
    /// `stamps` gets the steps of opening one as they are taken.
    pub(crate) async fn checkout(
        &self,
        target: u32,
        session: u32,
        fresh: bool,
        stamps: &mut OpenStamps,
    ) -> Result<Connection, OpenError> {
        let own = (self.job.reuse == Reuse::PerSession).then_some(session);
        if !fresh
            && self.job.reuse != Reuse::Never
            && let Some(idle) = self.tap.idle(target, own)
        {
            return Ok(idle);
        }
        let addresses = self.addresses(target).await?;
        let to = self.job.target(target);
        let mut connection = Connection::open(to, &addresses, self.clock, stamps).await?;
        connection.target = target;
        connection.session = own;
        Ok(connection)
    }

    async fn addresses(&self, target: u32) -> Result<Vec<SocketAddr>, OpenError> {
        let place = target as usize;
        if let Some(known) = &self.addresses.borrow()[place] {
            return Ok(known.clone());
        }
        let found = resolve(&self.job.target(target).url).await?;
        self.addresses.borrow_mut()[place] = Some(found.clone());
        Ok(found)
    }
}

/// Lets a panic in a task take its worker with it: the requests of a worker
/// that is lost are told from those that were stopped.
fn pass_on(joined: Result<(), JoinError>) {
    if let Err(error) = joined
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// Acquiring from a semaphore that lives in an `Rc`: tokio's own owned permits
/// need an `Arc`, and nothing here leaves the thread.
trait AcquireRc {
    async fn acquire_owned_rc(self) -> Option<Permit>;
}

struct Permit(Rc<Semaphore>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

impl AcquireRc for Rc<Semaphore> {
    async fn acquire_owned_rc(self) -> Option<Permit> {
        self.acquire().await.ok()?.forget();
        Some(Permit(self))
    }
}

/// Opens connections ahead of the run, as many to each target as `counts` and
/// the peer allow. A failure is not reported here: the first request meets it
/// again and records it.
pub(crate) async fn open_ahead(job: &Job, counts: &[u32], clock: Clock) -> Vec<Connection> {
    let mut tasks = JoinSet::new();
    for (place, count) in (0u32..).zip(counts).filter(|(_, count)| **count > 0) {
        let target = job.target(place);
        let Ok(addresses) = resolve(&target.url).await else { continue };
        for _ in 0..*count {
            let (target, addresses) = (target.clone(), addresses.clone());
            tasks.spawn_local(async move {
                let mut stamps = OpenStamps::default();
                let opened = Connection::open(&target, &addresses, clock, &mut stamps).await;
                opened.map(|mut connection| {
                    connection.target = place;
                    connection
                })
            });
        }
    }
    let mut open = Vec::new();
    while let Some(opened) = tasks.join_next().await {
        if let Ok(Ok(connection)) = opened {
            open.push(connection);
        }
    }
    open
}

/// The outcome of a request that was planned and never let go.
pub(crate) const UNRELEASED: Outcome = Outcome::Cancelled;
