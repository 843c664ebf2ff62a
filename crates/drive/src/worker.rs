//! One worker thread: its share of the schedule, its own connections, no
//! state shared with others while running.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use measure::{At, NotSentKind, Outcome, Record, Span, Warnings};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use wire::api::RequestSpec;
use wire::dialect::Forms;
use wire::{api, history};
use workload::prompt::Prompt;
use workload::{After, Load, Request, Schedule};

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::connection::{Connection, OpenError, OpenStamps, resolve};
use crate::exchange::Attempt;
use crate::job::{Job, Reuse};
use crate::run::Outlet;
use crate::talk::{End, Talk};
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
    /// Pauses between the turns of conversations.
    alarm: Alarm,
}

/// A request ready to be written, and its record so far.
pub(crate) struct Prepared {
    pub(crate) record: Record,
    pub(crate) target: u32,
    pub(crate) bytes: Rc<[u8]>,
    /// Vectors or scores that it asks for.
    pub(crate) results: u32,
    /// True when a later prompt holds the answer.
    carried: bool,
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
            alarm: Alarm::new(clock),
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
        let (pump, sweep, alarm) = (Rc::clone(&self), Rc::clone(&self), Rc::clone(&self));
        reading.spawn_local(async move { pump.tap.pump().await });
        reading.spawn_local(async move { alarm.alarm.run().await });
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
        let mut talks = Talks::default();
        for request in schedule.deal(self.id, workers) {
            let talk = talks.of(&request, &schedule);
            let mut arrival = Arrival { request, prepared: None, talk, cap: cap.clone() };
            match arrival.request.after {
                After::Instant(at) => {
                    // Encoding before the instant keeps it out of the latency.
                    arrival.prepare_first(self);
                    self.tap.note_due(Some(at));
                    let stopped = async { stop.wait_for(|stop| *stop).await.is_ok() };
                    tokio::select! {
                        biased;
                        _ = stopped => break,
                        () = timer.until(at) => {}
                    }
                }
                After::Parents { .. } | After::Slot { .. } => self.tap.may_gather(false),
            }
            let worker = Rc::clone(self);
            tasks.spawn_local(async move { worker.arrive(arrival, At::ZERO).await });
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
    /// `slot_at` is when a user's slot became free.
    async fn arrive(self: Rc<Self>, mut arrival: Arrival, slot_at: At) {
        let mut stop = self.stop.clone();
        let ready = async {
            let intended_at = match &arrival.request.after {
                After::Instant(at) => *at,
                After::Slot { think } => slot_at + *think,
                After::Parents { of, think } => {
                    let end = arrival.talk.last_end(of).await;
                    if let End::Badly(at) = end {
                        return Err(at + *think);
                    }
                    end.at() + *think
                }
            };
            // Encoding in the pause keeps it out of the latency, where there is
            // one.
            let prepared = arrival.take_prepared(&self);
            self.alarm.until(intended_at).await;
            let permit = match arrival.cap.clone() {
                Some(cap) => cap.acquire_owned_rc().await,
                None => None,
            };
            Ok((prepared, intended_at, permit))
        };
        // A stop comes first: it ends parents and frees slots, and nothing more
        // may be sent because of that.
        let went = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => None,
            went = ready => Some(went),
        };
        // A stop reaches the tasks one after the other, its value all at once:
        // one that has ended for it must not let the next one go.
        if *self.stop.borrow() {
            return self.leave_out(&arrival);
        }
        match went {
            Some(Ok((prepared, intended_at, _permit))) => {
                self.perform(prepared, intended_at, Some(&arrival.talk)).await;
            }
            Some(Err(intended_at)) => self.give_up(&arrival, intended_at),
            None => self.leave_out(&arrival),
        }
    }

    /// Records a turn that is not sent because one that it waits for ended
    /// badly.
    fn give_up(&self, arrival: &Arrival, intended_at: At) {
        let request = &arrival.request;
        let mut record = Record::planned(request.index, intended_at, self.job.planned(request));
        record.worker = self.id;
        record.outcome = Outcome::NotSent(NotSentKind::ParentFailed);
        arrival.talk.has_prompt();
        arrival.talk.ended(request.index, End::Never(intended_at), None);
        self.out.put(record);
    }

    /// Accounts for a turn of a begun conversation that a stop left out, where
    /// the plan has no end and so nobody else knows of it.
    fn leave_out(&self, arrival: &Arrival) {
        let request = &arrival.request;
        if self.job.schedule.count().is_some() || !matches!(request.after, After::Parents { .. }) {
            return;
        }
        let mut record =
            Record::planned(request.index, self.clock.now(), self.job.planned(request));
        record.worker = self.id;
        record.outcome = UNRELEASED;
        self.out.put(record);
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
            let Some(unit) = self.take_next(&schedule, next) else { return };
            let Some(After::Slot { think }) = unit.first().map(|first| first.after.clone()) else {
                return;
            };
            let intended_at = free_at + think;
            if schedule.closes_at().is_some_and(|closes| intended_at >= closes) {
                return;
            }
            let mut begun = Begun::new(&self, unit);
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
            free_at = match begun.alone() {
                Some(prepared) => self.perform(prepared, intended_at, None).await,
                None => begun.run(&self, free_at).await.unwrap_or(free_at),
            };
        }
    }

    /// The next conversation of this worker's share, whichever of its users
    /// asks.
    fn take_next(&self, schedule: &Schedule, next: &Cell<u32>) -> Option<Vec<Request>> {
        loop {
            let unit = next.get();
            let owner = schedule.owner_at_unit(unit, self.job.threads)?;
            next.set(unit.checked_add(1)?);
            if owner == self.id {
                return schedule.unit(unit);
            }
        }
    }

    /// Waits for an instant, by a timer of its own where there was a
    /// descriptor left for one.
    async fn pause(&self, timer: Option<&Timer>, at: At) {
        match timer {
            Some(timer) => timer.until(at).await,
            None => self.alarm.until(at).await,
        }
    }

    /// Encodes a request of the schedule. A turn of a conversation gets what
    /// was said before it.
    fn prepare(&self, request: &Request, talk: Option<&Talk>) -> Prepared {
        let job = &self.job;
        let answer = |index| talk.map_or_else(Vec::new, |talk| talk.answer(index));
        let prompt = job.schedule.prompt_after(request, job.nonce, &answer);
        let intended_at = match request.after {
            After::Instant(at) => at,
            After::Slot { .. } | After::Parents { .. } => At::ZERO,
        };
        let mut record = Record::planned(request.index, intended_at, job.planned(request));
        record.worker = self.id;
        let Prompt { content, body, .. } = prompt;
        let mut prompt = job.wire_prompt(content);
        if let api::Prompt::Messages(messages) = &mut prompt
            && history::fit_results(messages)
        {
            record.answer.warnings.add(Warnings::TOOL_RESULTS_REFITTED);
        }
        let mut spec = RequestSpec {
            extra_body: job.extra_body(&body),
            prompt,
            max_output_tokens: request.max_output_tokens.map(measure::Tokens::get),
            ignore_eos: request.output_forced && job.api.entry().can_ignore_eos,
            priority: request.route.priority.filter(|_| job.api.entry().takes_priority),
            ..job.template.clone()
        };
        if let Some(model) = &request.route.model {
            spec.model.clone_from(model);
        }
        let results = job.api.results_of(&spec);
        let bytes = job.encode(request, &job.api.body(&spec));
        let carried = talk.is_some() && job.schedule.answer_is_carried(request);
        Prepared { record, target: request.route.target, bytes: bytes.into(), results, carried }
    }

    /// Sends one request, follows it to its end, hands over its record, and
    /// says when it ended.
    async fn perform(
        self: &Rc<Self>,
        prepared: Prepared,
        intended_at: At,
        talk: Option<&Talk>,
    ) -> At {
        let Prepared { mut record, target, bytes, results, carried } = prepared;
        record.stamps.intended_at = intended_at;
        record.stamps.released_at = Some(self.clock.now().max(intended_at));
        let mut attempt = Attempt::new(record, target, results, self.job.keep_text || carried);
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            () = attempt.exchange(self, &bytes) => {}
            _ = stop.wait_for(|stop| *stop) => attempt.cancel(self),
        }
        let (mut record, calls) = attempt.into_record();
        let ended_at = record.stamps.ended_at.unwrap_or_else(|| self.clock.now());
        if let Some(talk) = talk {
            let well = record.outcome == Outcome::Ok;
            let text = record.answer.text.as_deref().unwrap_or_default();
            let answer = (carried && well).then(|| history::answer(text, &calls));
            let end = if well { End::Well(ended_at) } else { End::Badly(ended_at) };
            talk.ended(record.index, end, answer);
        }
        if !self.job.keep_text {
            let answer = &mut record.answer;
            (answer.text, answer.reasoning, answer.tool_arguments) = (None, None, None);
        }
        self.job.redact(&mut record);
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

/// One arrival on its way to be sent.
struct Arrival {
    request: Request,
    prepared: Option<Prepared>,
    talk: Rc<Talk>,
    cap: Option<Rc<Semaphore>>,
}

impl Arrival {
    /// Encodes a request that waits for no other.
    fn prepare_first(&mut self, worker: &Worker) {
        if !matches!(self.request.after, After::Parents { .. }) {
            self.prepared = Some(self.encode(worker));
        }
    }

    fn take_prepared(&mut self, worker: &Worker) -> Prepared {
        self.prepared.take().unwrap_or_else(|| self.encode(worker))
    }

    fn encode(&self, worker: &Worker) -> Prepared {
        let prepared = worker.prepare(&self.request, Some(&self.talk));
        self.talk.has_prompt();
        prepared
    }
}

/// The conversations of an open loop of which turns are still to be dealt.
#[derive(Default)]
struct Talks(BTreeMap<u32, (Rc<Talk>, u32)>);

impl Talks {
    /// The conversation of a request, begun with its first one.
    fn of(&mut self, request: &Request, schedule: &Schedule) -> Rc<Talk> {
        let begin = || {
            let turns = schedule.turns_of(request);
            (Rc::new(Talk::of(turns)), turns)
        };
        let (talk, left) = self.0.entry(request.session).or_insert_with(begin);
        let talk = Rc::clone(talk);
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.0.remove(&request.session);
        }
        talk
    }
}

/// A conversation that a user begins, or a request by itself.
struct Begun {
    turns: Vec<Arrival>,
    talk: Rc<Talk>,
}

impl Begun {
    /// Encodes what waits for nothing.
    fn new(worker: &Worker, unit: Vec<Request>) -> Self {
        let talk = Rc::new(Talk::of(unit.len() as u32));
        let mut turns: Vec<Arrival> = unit
            .into_iter()
            .map(|request| Arrival { request, prepared: None, talk: Rc::clone(&talk), cap: None })
            .collect();
        turns.iter_mut().for_each(|turn| turn.prepare_first(worker));
        Self { turns, talk }
    }

    /// The only request, where there is one alone.
    fn alone(&mut self) -> Option<Prepared> {
        match self.turns.as_mut_slice() {
            [only] => only.prepared.take(),
            _ => None,
        }
    }

    /// Runs all turns; gives the end of the last one that was sent.
    async fn run(self, worker: &Rc<Worker>, slot_at: At) -> Option<At> {
        let mut tasks = JoinSet::new();
        for turn in self.turns {
            let worker = Rc::clone(worker);
            tasks.spawn_local(async move { worker.arrive(turn, slot_at).await });
        }
        while let Some(joined) = tasks.join_next().await {
            pass_on(joined);
        }
        self.talk.over_at()
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
/// the peer allow, and tells the shortest handshake. A failure is not reported
/// here: the first request meets it again and records it.
pub(crate) async fn open_ahead(
    job: &Job,
    counts: &[u32],
    clock: Clock,
) -> (Vec<Connection>, Option<Span>) {
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
                    (connection, stamps)
                })
            });
        }
    }
    let (mut open, mut shortest) = (Vec::new(), None);
    while let Some(opened) = tasks.join_next().await {
        if let Ok(Ok((connection, stamps))) = opened {
            open.push(connection);
            let trip = stamps.connected_at.zip(stamps.resolved_at).map(|(end, start)| end - start);
            shortest = [shortest, trip].into_iter().flatten().min();
        }
    }
    (open, shortest)
}

/// The outcome of a request that was planned and never let go.
pub(crate) const UNRELEASED: Outcome = Outcome::Cancelled;
