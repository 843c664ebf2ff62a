//! A load and an engine in virtual time: the same schedule as a real run's, the
//! same records.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use measure::record::{Carries, Event};
use measure::{At, FailureKind, NotSentKind, Outcome, Planned, Record, Span, Tokens, Warnings};
use workload::prompt::RunNonce;
use workload::schedule::Schedule;
use workload::stretch::Stretch;
use workload::{After, Load, ModelKind, Request};

use crate::choice::Choice;
use crate::cluster::{Ask, Audience, Cluster};
use crate::content::Content;
use crate::replica::StepReport;
use crate::scheduler::{Begun, Ended, Finish};

/// The length of an answer whose request has no limit, tokens.
pub const DEFAULT_OUTPUT: u32 = 128;

/// What lies around the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// From the client to the server, and back, each.
    pub one_way: Span,
    /// A request is given up when it has taken so long.
    pub request_timeout: Span,
    /// And when nothing has come for so long since its first event.
    pub idle_timeout: Span,
    /// Whether answers come as chat events, of which the first has a role.
    pub is_chat: bool,
    /// Whether events are kept; without them a record has the first and the last
    /// token's instant only, and nothing that no figure needs.
    pub keep_events: bool,
    /// Length of an answer whose request has no limit.
    pub default_output: u32,
    /// Answers that each request asks for (`n`), from 1 to
    /// [`MOST_CHOICES`](crate::MOST_CHOICES).
    pub choices: u8,
}

/// What a run hears.
pub trait Observer {
    /// A request is sent.
    fn sent(&mut self, _at: At) {}
    /// A request is over.
    fn ended(&mut self, record: Record);
    /// The same where events are not kept, with the gaps between its arrivals in
    /// microseconds, each with the tokens that ended it. The record is lent: its
    /// memory is another request's afterwards.
    fn counted(&mut self, record: &Record, _gaps: &[(u32, u32)]) {
        self.ended(record.clone());
    }
    /// A step has ended.
    fn step(&mut self, _replica: usize, _report: &StepReport) {}
    /// Who watches the engine itself, if anyone does.
    fn watcher(&mut self) -> Option<&mut dyn Watcher> {
        None
    }
}

/// Who watches an engine while a run goes on, as a server counts for itself: it
/// hears of tokens and ends from the engine, before they are on their way to a
/// client.
pub trait Watcher: Audience {
    /// A request came at the first instant and reaches its scheduler at the second,
    /// in nanoseconds; it asks for so many answers of `limit` tokens at most.
    fn submitted(&mut self, id: u64, came_and_queued_ns: (u64, u64), limit: u32, choices: u8);
    /// The server learns that the client of a request is gone, of which so many
    /// answers were under way.
    fn left(&mut self, id: u64, answers: u32);
    /// When it looks next; an instant before the run's first is taken as that.
    fn next_look_ns(&self) -> u64;
    /// It is `at_ns`: all that happens before has happened, and what happens then
    /// has not. The last look of a run is just after its last event.
    fn look(&mut self, at_ns: u64, cluster: &Cluster);
}

/// What is known of a request from a run that was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Tokens of its prompt that were cached; `None` leaves it to the model.
    pub cached: Option<u32>,
    /// Tokens after which the model ends each answer by itself; `None` goes to the
    /// limit.
    pub natural: Option<u32>,
    /// Tokens of its prompt, with what a chat template adds; `None` where the
    /// schedule's own count is the only one.
    pub prompt: Option<u32>,
}

/// Runs a schedule to its end, from the instant that the engine has come to.
/// Requests are told as they end, in the order of their ends. Gives the engine
/// back, idle.
pub fn run(
    schedule: &Schedule,
    nonce: RunNonce,
    cluster: Cluster,
    around: Surroundings,
    observer: &mut impl Observer,
) -> Cluster {
    run_given(schedule, nonce, cluster, around, &|_| Given::default(), observer)
}

/// The same with what is known of the requests, by index.
pub fn run_given(
    schedule: &Schedule,
    nonce: RunNonce,
    cluster: Cluster,
    around: Surroundings,
    given: &dyn Fn(u32) -> Given,
    observer: &mut impl Observer,
) -> Cluster {
    // What was warmed up with the same engine came before.
    let begins_ns = cluster.now_ns().next_multiple_of(1_000);
    let mut run = Run {
        given,
        schedule,
        nonce,
        around,
        cluster,
        events: BinaryHeap::new(),
        order: 0,
        most_events: FEWEST_EVENTS,
        talks: HashMap::default(),
        under_way: HashMap::default(),
        spare: Vec::new(),
        next_unit: 0,
        cap: None,
        heard: Heard::default(),
        incoming: VecDeque::new(),
        begins_ns,
        last_ns: begins_ns,
    };
    run.begin();
    run.go(observer);
    run.cluster
}

/// Events below which none is looked at for being outdated.
const FEWEST_EVENTS: usize = 4096;

/// What happens at an instant, besides the engine's own doings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// The next unit of an open loop begins.
    Arrival,
    /// A user asks for the next unit.
    UserFree,
    /// A request of a session is intended.
    Intended(u32, u32),
    /// A request has taken as long as it may.
    Overdue(u32),
    /// Nothing may have come of a request for as long as it may be silent.
    Silent(u32),
    /// The refusal of a request reaches its client.
    Refused(u32),
    /// The server learns that the client of a request is gone.
    Gone(u32),
}

/// A conversation under way, or a request by itself.
struct Talk {
    requests: Vec<Request>,
    turns: Vec<TurnState>,
    left: usize,
    /// True when its end frees a user.
    of_user: bool,
}

#[derive(Clone, Copy, Default)]
struct TurnState {
    ended: Option<(At, bool)>,
    output_tokens: u32,
    begun: bool,
}

/// A request that was sent.
struct UnderWay {
    record: Record,
    prompt_tokens: u32,
    last_us: i64,
    sent_us: i64,
    /// When it reaches a scheduler, on the engine's clock.
    queued_ns: u64,
    /// Tokens of all its answers.
    tokens: u32,
    /// Tokens of the first answer, which is the one that a later turn carries.
    of_first: u32,
    /// The answer that began first.
    first: u8,
    /// Answers that have not ended.
    left: u8,
    /// When something of each answer came last; none where nothing has.
    last_of: Vec<Option<i64>>,
    /// Where events are not kept.
    gaps: Vec<(u32, u32)>,
}

impl Default for UnderWay {
    fn default() -> Self {
        Self {
            record: Record::planned(0, At::ZERO, Planned::default()),
            prompt_tokens: 0,
            last_us: 0,
            sent_us: 0,
            queued_ns: 0,
            tokens: 0,
            of_first: 0,
            first: 0,
            left: 0,
            last_of: Vec::new(),
            gaps: Vec::new(),
        }
    }
}

impl UnderWay {
    /// Makes another request of it.
    fn begin(&mut self, index: u32, intended_at: At, planned: Planned) {
        let mut events = std::mem::take(&mut self.record.events);
        events.clear();
        self.gaps.clear();
        self.record = Record { events, ..Record::planned(index, intended_at, planned) };
    }

    /// An event that came at `at`, marked where it came with the one before it.
    fn push(&mut self, at: At, carries: Carries, choice: u8) {
        let at_us = u32::try_from(at.us() - self.sent_us).unwrap_or(u32::MAX);
        let events = &mut self.record.events;
        let with_last = events.at_us.last() == Some(&at_us);
        let shared = if with_last { Carries::SHARED_READ } else { Carries::default() };
        events.push(Event { at_us, carries: carries.with(shared), tokens: 0, choice });
    }
}

/// The most requests under way, where there is a cap, and those that wait.
struct Cap {
    free: u32,
    /// Session, index, and when it was intended.
    waiting: VecDeque<(u32, u32, At)>,
}

struct Run<'a> {
    schedule: &'a Schedule,
    given: &'a dyn Fn(u32) -> Given,
    nonce: RunNonce,
    around: Surroundings,
    cluster: Cluster,
    events: BinaryHeap<Reverse<(At, u64, Happening)>>,
    order: u64,
    /// How many events there may be before the outdated ones are forgotten.
    most_events: usize,
    /// By session.
    talks: HashMap<u32, Talk, BuildHasherDefault<Numbered>>,
    /// By index.
    under_way: HashMap<u32, Box<UnderWay>, BuildHasherDefault<Numbered>>,
    /// Requests of the past, for their memory.
    #[expect(clippy::vec_box, reason = "they go back to those under way as they are")]
    spare: Vec<Box<UnderWay>>,
    next_unit: u32,
    cap: Option<Cap>,
    heard: Heard,
    /// What is on its way to the client, in the order in which it comes.
    incoming: VecDeque<(At, Incoming)>,
    /// The engine's instant at which the run begins.
    begins_ns: u64,
    /// The same of the last thing that happened.
    last_ns: u64,
}

/// Hashes numbers that count up: a multiplication spreads them, and nobody
/// chooses them to collide.
#[derive(Default)]
struct Numbered(u64);

impl Hasher for Numbered {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// What comes back from the engine.
enum Incoming {
    Tokens(Choice, u32),
    Ended(Box<(usize, Choice, Ended)>),
}

/// What the engine said at one instant.
#[derive(Default)]
struct Heard {
    tokens: Vec<(Choice, u64, u32)>,
    ended: Vec<(usize, Choice, Ended, u64)>,
    steps: Vec<(usize, StepReport)>,
}

/// The client's ears, and a watcher's beside them.
struct Both<'a, O> {
    heard: &'a mut Heard,
    observer: &'a mut O,
}

impl<O: Observer> Audience for Both<'_, O> {
    fn begun(&mut self, replica: usize, choice: Choice, begun: &Begun) {
        if let Some(watcher) = self.observer.watcher() {
            watcher.begun(replica, choice, begun);
        }
    }

    fn tokens(&mut self, choice: Choice, at_ns: u64, tokens: u32) {
        self.heard.tokens(choice, at_ns, tokens);
        if let Some(watcher) = self.observer.watcher() {
            watcher.tokens(choice, at_ns, tokens);
        }
    }

    fn ended(&mut self, replica: usize, choice: Choice, ended: &Ended, at_ns: u64) {
        self.heard.ended(replica, choice, ended, at_ns);
        if let Some(watcher) = self.observer.watcher() {
            watcher.ended(replica, choice, ended, at_ns);
        }
    }

    fn step(&mut self, replica: usize, report: &StepReport) {
        self.heard.step(replica, report);
        if let Some(watcher) = self.observer.watcher() {
            watcher.step(replica, report);
        }
    }
}

impl Audience for Heard {
    fn tokens(&mut self, choice: Choice, at_ns: u64, tokens: u32) {
        self.tokens.push((choice, at_ns, tokens));
    }

    fn ended(&mut self, replica: usize, choice: Choice, ended: &Ended, at_ns: u64) {
        self.ended.push((replica, choice, *ended, at_ns));
    }

    fn step(&mut self, replica: usize, report: &StepReport) {
        self.steps.push((replica, *report));
    }
}

impl Run<'_> {
    /// An instant of the run as the engine has it.
    fn engine_ns(&self, at: At) -> u64 {
        let since = u64::try_from(at.us()).unwrap_or(0).saturating_mul(1_000);
        self.begins_ns.saturating_add(since)
    }

    /// An instant of the engine, in whole microseconds of the run.
    fn run_at(&self, ns: u64) -> At {
        At::from_us((ns.saturating_sub(self.begins_ns) / 1_000) as i64)
    }

    fn begin(&mut self) {
        match self.schedule.load() {
            Load::Closed { users, .. } => {
                for _ in 0..*users {
                    self.push(At::ZERO, Happening::UserFree);
                }
            }
            Load::Burst => {
                for _ in 0..self.schedule.units().unwrap_or(0) {
                    self.push(At::ZERO, Happening::Arrival);
                }
            }
            load @ (Load::Open { .. } | Load::Capped { .. } | Load::Replay { .. }) => {
                self.cap = load.users().map(|free| Cap { free, waiting: VecDeque::new() });
                self.push_next_arrival();
            }
        }
    }

    fn push(&mut self, at: At, happening: Happening) {
        let order = self.order;
        self.order += 1;
        self.events.push(Reverse((at, order, happening)));
        if self.events.len() > self.most_events {
            self.forget_timers();
        }
    }

    /// Forgets the timers of requests that have ended: they would lie here for as
    /// long as a request may take, and be as many as ended meanwhile.
    fn forget_timers(&mut self) {
        let under_way = &self.under_way;
        self.events.retain(|Reverse((_, _, happening))| match happening {
            Happening::Overdue(index) | Happening::Silent(index) => under_way.contains_key(index),
            _ => true,
        });
        self.most_events = (2 * self.events.len()).max(FEWEST_EVENTS);
    }

    /// Announces the next unit of an open loop, one at a time, so that a long
    /// plan takes no memory.
    fn push_next_arrival(&mut self) {
        let begins = |request: &Request| match request.after {
            After::Instant(at) => Some(at),
            After::Slot { .. } | After::Parents { .. } => None,
        };
        let unit = self.schedule.unit(self.next_unit);
        if let Some(at) = unit.and_then(|unit| unit.first().and_then(begins)) {
            self.push(at, Happening::Arrival);
        }
    }

    fn go(&mut self, observer: &mut impl Observer) {
        loop {
            let own = self.events.peek().map(|Reverse((at, _, _))| *at);
            let incoming = self.incoming.front().map(|(at, _)| *at);
            let client = [own, incoming].into_iter().flatten().min();
            let engine = self.cluster.next_ns();
            self.watch(client, engine, observer);
            match (client, engine) {
                (None, None) => return,
                // What a client does at an instant the engine sees then.
                (Some(at), engine) if engine.is_none_or(|ns| self.engine_ns(at) <= ns) => {
                    // What comes at an instant is heard before what is due then.
                    if incoming == Some(at) {
                        while self.incoming.front().is_some_and(|(next, _)| *next == at) {
                            let Some((_, incoming)) = self.incoming.pop_front() else { break };
                            self.hear(at, incoming, observer);
                        }
                    } else if let Some(Reverse((at, _, happening))) = self.events.pop() {
                        self.happen(at, happening, observer);
                    }
                }
                (_, Some(engine)) => {
                    let mut ears = Both { heard: &mut self.heard, observer };
                    self.cluster.advance(engine, &mut ears);
                    self.listen(observer);
                }
                (Some(_), None) => unreachable!("what is first is taken above"),
            }
        }
    }

    /// Lets a watcher look at all instants until the next thing happens, and once
    /// more when nothing does.
    fn watch(&mut self, client: Option<At>, engine: Option<u64>, observer: &mut impl Observer) {
        let Some(watcher) = observer.watcher() else { return };
        let client_ns = client.filter(|at| !self.is_outdated(*at)).map(|at| self.engine_ns(at));
        let Some(next_ns) = client_ns.into_iter().chain(engine).min() else {
            if client.is_none() {
                watcher.look(self.last_ns + 1_000, &self.cluster);
            }
            return;
        };
        while watcher.next_look_ns() <= next_ns {
            watcher.look(watcher.next_look_ns().max(self.begins_ns), &self.cluster);
        }
        self.last_ns = self.last_ns.max(next_ns);
    }

    /// Whether all that is due to a client at this instant is the timer of a request
    /// that has ended.
    fn is_outdated(&self, at: At) -> bool {
        if self.incoming.front().is_some_and(|(next, _)| *next == at) {
            return false;
        }
        self.events.peek().is_some_and(|Reverse((_, _, happening))| match happening {
            Happening::Overdue(index) | Happening::Silent(index) => {
                !self.under_way.contains_key(index)
            }
            _ => false,
        })
    }

    fn happen(&mut self, at: At, happening: Happening, observer: &mut impl Observer) {
        match happening {
            Happening::Arrival => {
                let unit = self.next_unit;
                self.next_unit += 1;
                if let Some(requests) = self.schedule.unit(unit) {
                    self.start(requests, at, false);
                }
                if !matches!(self.schedule.load(), Load::Burst) {
                    self.push_next_arrival();
                }
            }
            Happening::UserFree => self.next_of_user(at),
            Happening::Intended(session, index) => self.intend((session, index), at, observer),
            Happening::Overdue(index) => {
                self.give_up(index, at, FailureKind::TotalTimeout, observer);
            }
            Happening::Silent(index) => self.look_whether_silent(index, at, observer),
            Happening::Refused(index) => self.refused(index, at, observer),
            Happening::Gone(index) => {
                let gone_ns = self.engine_ns(at);
                let mut ears = Both { heard: &mut self.heard, observer };
                let answers = self.cluster.abort(u64::from(index), gone_ns, &mut ears);
                if let Some(watcher) = observer.watcher() {
                    watcher.left(u64::from(index), answers);
                }
                self.listen(observer);
            }
        }
    }

    fn next_of_user(&mut self, free_at: At) {
        let Some(requests) = self.schedule.unit(self.next_unit) else { return };
        let think = match requests.first().map(|first| &first.after) {
            Some(After::Slot { think }) => *think,
            _ => return,
        };
        if self.schedule.closes_at().is_some_and(|closes| free_at + think >= closes) {
            return;
        }
        self.next_unit += 1;
        self.start(requests, free_at, true);
    }

    /// Begins a unit: those of its requests that wait for no other are intended.
    fn start(&mut self, requests: Vec<Request>, at: At, of_user: bool) {
        let Some(session) = requests.first().map(|first| first.session) else { return };
        for request in &requests {
            match request.after {
                After::Instant(instant) => {
                    self.push(instant, Happening::Intended(session, request.index));
                }
                After::Slot { think } => {
                    self.push(at + think, Happening::Intended(session, request.index));
                }
                After::Parents { .. } => {}
            }
        }
        let turns = vec![TurnState::default(); requests.len()];
        let left = requests.len();
        self.talks.insert(session, Talk { requests, turns, left, of_user });
    }

    fn intend(&mut self, (session, index): (u32, u32), at: At, observer: &mut impl Observer) {
        if let Some(cap) = &mut self.cap {
            if cap.free == 0 {
                return cap.waiting.push_back((session, index, at));
            }
            cap.free -= 1;
        }
        self.send((session, index), at, at, observer);
    }

    fn send(
        &mut self,
        (session, index): (u32, u32),
        intended_at: At,
        now: At,
        observer: &mut impl Observer,
    ) {
        let Some(talk) = self.talks.get_mut(&session) else { return };
        let first = talk.requests[0].index;
        let place = (index - first) as usize;
        talk.turns[place].begun = true;
        let request = &talk.requests[place];
        let turns = &talk.turns;
        let answered = |index: u32| turns[(index - first) as usize].output_tokens;
        let given = (self.given)(index);
        let mut stretches = self.schedule.stretches(request, self.nonce, &answered);
        if let Some(tokens) = given.prompt {
            fit_to(&mut stretches, tokens);
        }
        let prompt = Content::Stretches(stretches.into());
        let prompt_tokens = prompt.len().max(1);
        let limit = request.max_output_tokens.map(Tokens::get).or(given.natural);
        let mut under_way = self.spare.pop().unwrap_or_default();
        under_way.begin(index, intended_at, request.planned());
        let record = &mut under_way.record;
        record.answer.counts.cached = given.cached.map(Tokens::new);
        let stamps = &mut record.stamps;
        (stamps.released_at, stamps.sent_at, stamps.written_at) = (Some(now), Some(now), Some(now));
        let ask = Ask {
            id: u64::from(index),
            prompt,
            answer: Stretch::answer_source(index),
            choices: self.around.choices,
            limit: limit.unwrap_or(self.around.default_output).max(1),
            natural: given.natural.filter(|natural| *natural > 0),
            priority: request.route.priority.unwrap_or(0),
            adapter: adapter_of(request).map(Stretch::name_source),
            session: u64::from(session),
            computed: given.cached.unwrap_or(0).min(prompt_tokens),
        };
        let sent_us = now.us();
        let refused = self.cluster.accepts(prompt_tokens, ask.limit).err();
        record.answer.message = refused.map(|refused| refused.to_string());
        (under_way.prompt_tokens, under_way.tokens) = (prompt_tokens, 0);
        (under_way.last_us, under_way.sent_us) = (sent_us, sent_us);
        under_way.queued_ns = 0;
        (under_way.of_first, under_way.first, under_way.left) = (0, 0, ask.choices);
        under_way.last_of.clear();
        under_way.last_of.resize(ask.choices.into(), None);
        self.under_way.insert(index, under_way);
        observer.sent(now);
        self.push(now + self.around.request_timeout, Happening::Overdue(index));
        if refused.is_some() {
            // A refusal takes as long as it takes to read the request.
            let reads_us = (self.cluster.frontend_ns(prompt_tokens) / 1_000).max(1) as i64;
            let back = now + self.around.one_way + self.around.one_way + Span::from_us(reads_us);
            return self.push(back, Happening::Refused(index));
        }
        let reaches_ns = self.engine_ns(now + self.around.one_way);
        let limit = ask.limit;
        let queued_ns = self.cluster.submit(reaches_ns, ask);
        if let Some(under_way) = self.under_way.get_mut(&index) {
            under_way.queued_ns = queued_ns;
        }
        if let Some(watcher) = observer.watcher() {
            let instants = (reaches_ns, queued_ns);
            watcher.submitted(u64::from(index), instants, limit, self.around.choices);
        }
    }

    fn refused(&mut self, index: u32, at: At, observer: &mut impl Observer) {
        let Some(mut under_way) = self.under_way.remove(&index) else { return };
        let record = &mut under_way.record;
        record.answer.http_status = Some(400);
        (record.stamps.first_byte_at, record.stamps.headers_at) = (Some(at), Some(at));
        record.outcome = Outcome::Failed(FailureKind::HttpStatus);
        self.end(under_way, at, observer);
    }

    /// Ends a request that its client gives up.
    fn give_up(&mut self, index: u32, at: At, kind: FailureKind, observer: &mut impl Observer) {
        let Some(mut under_way) = self.under_way.remove(&index) else { return };
        under_way.record.outcome = Outcome::Failed(kind);
        under_way.record.answer.counts.server = Some(Tokens::new(under_way.tokens));
        self.push(at + self.around.one_way, Happening::Gone(index));
        self.end(under_way, at, observer);
    }

    fn look_whether_silent(&mut self, index: u32, at: At, observer: &mut impl Observer) {
        let Some(under_way) = self.under_way.get(&index) else { return };
        let due = At::from_us(under_way.last_us) + self.around.idle_timeout;
        if due <= at {
            self.give_up(index, at, FailureKind::IdleTimeout, observer);
        } else {
            self.push(due, Happening::Silent(index));
        }
    }

    /// Takes in what the engine said: it is heard when it has come.
    fn listen(&mut self, observer: &mut impl Observer) {
        let mut heard = std::mem::take(&mut self.heard);
        let back = self.around.one_way;
        // All of it is of one instant, and an answer's last tokens come before
        // its end.
        for (choice, at_ns, tokens) in heard.tokens.drain(..) {
            let at = self.run_at(at_ns) + back;
            self.incoming.push_back((at, Incoming::Tokens(choice, tokens)));
        }
        for (replica, choice, ended, at_ns) in heard.ended.drain(..) {
            // Nobody waits for the end of what was given up.
            if ended.finish != Finish::Abort {
                let at = self.run_at(at_ns) + back;
                self.incoming.push_back((at, Incoming::Ended(Box::new((replica, choice, ended)))));
            }
        }
        for (replica, report) in heard.steps.drain(..) {
            observer.step(replica, &report);
        }
        self.heard = heard;
    }

    fn hear(&mut self, at: At, incoming: Incoming, observer: &mut impl Observer) {
        match incoming {
            Incoming::Tokens(choice, tokens) => self.hear_tokens(choice, at, tokens),
            Incoming::Ended(ended) => self.hear_end(ended.0, ended.1, &ended.2, at, observer),
        }
    }

    fn hear_tokens(&mut self, choice: Choice, at: At, tokens: u32) {
        let around = self.around;
        let index = choice.request as u32;
        let Some(under_way) = self.under_way.get_mut(&index) else { return };
        let is_first = under_way.tokens == 0;
        under_way.tokens += tokens;
        under_way.of_first += if choice.index == 0 { tokens } else { 0 };
        let before_us = under_way.last_of[usize::from(choice.index)].replace(at.us());
        if let Some(before_us) = before_us.filter(|_| !around.keep_events) {
            let gap = u32::try_from(at.us() - before_us).unwrap_or(u32::MAX);
            under_way.gaps.push((gap, tokens));
        }
        under_way.last_us = at.us();
        if is_first {
            let record = &mut under_way.record;
            (record.stamps.first_byte_at, record.stamps.headers_at) = (Some(at), Some(at));
            record.answer.http_status = Some(200);
            under_way.first = choice.index;
            // The roles of all answers come before the first token of any.
            let roles = if around.is_chat { around.choices } else { 0 };
            (0..roles).for_each(|of| under_way.push(at, Carries::ROLE.with(Carries::CHOICE), of));
        }
        if around.keep_events || is_first {
            under_way.push(at, Carries::TEXT.with(Carries::CHOICE), choice.index);
        }
        if is_first {
            self.push(at + around.idle_timeout, Happening::Silent(index));
        }
    }

    fn hear_end(
        &mut self,
        replica: usize,
        choice: Choice,
        ended: &Ended,
        at: At,
        observer: &mut impl Observer,
    ) {
        let index = choice.request as u32;
        let around = self.around;
        let Some(under_way) = self.under_way.get_mut(&index) else { return };
        under_way.left -= 1;
        let is_over = under_way.left == 0;
        let events = &mut under_way.record.events;
        let last = events.choice.iter().rposition(|of| *of == choice.index);
        let is_only = under_way.tokens == ended.output_tokens && ended.output_tokens <= 1;
        if !around.keep_events && !is_only {
            // The end of the last answer is the one event that is kept besides.
            if is_over {
                let finish = Carries::TEXT.with(Carries::CHOICE).with(Carries::FINISH);
                under_way.push(at, finish, choice.index);
            }
        } else if let Some(last) = last {
            events.carries[last] = events.carries[last].with(Carries::FINISH);
        }
        if choice.index == under_way.first {
            let cached = Tokens::new(ended.cached_tokens);
            under_way.record.answer.counts.cached.get_or_insert(cached);
        }
        if is_over && let Some(under_way) = self.under_way.remove(&index) {
            self.hear_last_end(replica, under_way, ended, at, observer);
        }
    }

    /// The last answer to a request has ended, and the usage of all comes.
    fn hear_last_end(
        &mut self,
        replica: usize,
        mut under_way: Box<UnderWay>,
        ended: &Ended,
        at: At,
        observer: &mut impl Observer,
    ) {
        under_way.push(at, Carries::USAGE, 0);
        under_way.push(at, Carries::DONE, 0);
        let answer = &mut under_way.record.answer;
        answer.http_status = Some(200);
        answer.counts.prompt = Some(Tokens::new(under_way.prompt_tokens));
        answer.counts.usage = Some(Tokens::new(under_way.tokens));
        answer.choices = self.around.choices;
        if answer.choices > 1 {
            answer.warnings.add(Warnings::N_GT_1);
        }
        if self.around.keep_events {
            answer.finish_reason = Some(ended.finish.name().to_owned());
            // Of several answers there is no one queue and no one first token.
            if answer.choices == 1 {
                answer.server_timings = server_timings(ended, under_way.queued_ns);
            }
            if self.cluster.replicas().len() > 1 {
                answer.served_by = Some(format!("replica-{replica}"));
            }
        }
        let record = &mut under_way.record;
        record.outcome = match ended.finish {
            Finish::Stop | Finish::Length => Outcome::Ok,
            Finish::Abort => Outcome::Cancelled,
        };
        self.end(under_way, at, observer);
    }

    /// A request is over for its client: its slot is free, its conversation
    /// goes on.
    fn end(&mut self, mut under_way: Box<UnderWay>, at: At, observer: &mut impl Observer) {
        let (record, tokens) = (&mut under_way.record, under_way.of_first);
        record.stamps.ended_at = Some(at);
        let (index, well) = (record.index, record.outcome == Outcome::Ok);
        let session = record.planned.session;
        if self.around.keep_events {
            observer.ended(std::mem::take(&mut under_way).record);
        } else {
            observer.counted(&under_way.record, &under_way.gaps);
            self.spare.push(under_way);
        }
        let next = self.cap.as_mut().and_then(|cap| {
            let next = cap.waiting.pop_front();
            cap.free += u32::from(next.is_none());
            next
        });
        if let Some((session, index, intended_at)) = next {
            self.send((session, index), intended_at, at.max(intended_at), observer);
        }
        self.turn_ended(session, index, at, well, tokens, observer);
    }

    fn turn_ended(
        &mut self,
        session: u32,
        index: u32,
        at: At,
        well: bool,
        tokens: u32,
        observer: &mut impl Observer,
    ) {
        let Some(talk) = self.talks.get_mut(&session) else { return };
        let first = talk.requests[0].index;
        let place = (index - first) as usize;
        talk.turns[place].ended = Some((at, well));
        talk.turns[place].output_tokens = tokens;
        talk.left -= 1;
        if talk.left == 0 {
            let over =
                talk.turns.iter().filter_map(|turn| turn.begun.then_some(turn.ended?.0)).max();
            let of_user = talk.of_user;
            self.talks.remove(&session);
            if of_user {
                self.push(over.unwrap_or(at), Happening::UserFree);
            }
            return;
        }
        let mut broken = Vec::new();
        let mut intended = Vec::new();
        for (turn, request) in talk.turns.iter().zip(&talk.requests) {
            let After::Parents { of, think } = &request.after else { continue };
            if turn.ended.is_some() || turn.begun || !of.contains(&index) {
                continue;
            }
            let ends: Vec<Option<(At, bool)>> =
                of.iter().map(|parent| talk.turns[(parent - first) as usize].ended).collect();
            // A parent that ended badly decides it, whatever the others do.
            if let Some((bad, _)) = ends.iter().flatten().find(|(_, well)| !well) {
                broken.push((*bad + *think, request.clone()));
            } else if let Some(ends) = ends.into_iter().collect::<Option<Vec<(At, bool)>>>() {
                let last = ends.iter().map(|(at, _)| *at).max().unwrap_or(at);
                intended.push((last + *think, request.index));
            }
        }
        for (at, index) in intended {
            self.push(at, Happening::Intended(session, index));
        }
        for (at, request) in broken {
            let mut record = Record::planned(request.index, at, request.planned());
            record.outcome = Outcome::NotSent(NotSentKind::ParentFailed);
            observer.ended(record);
            self.turn_ended(session, request.index, at, false, 0, observer);
        }
    }
}

/// Makes a prompt as long as its server counted it: what is more than we know of
/// stands at its end, as the end of a chat template does.
fn fit_to(stretches: &mut Vec<Stretch>, tokens: u32) {
    let known: u32 = stretches.iter().map(|stretch| stretch.tokens).sum();
    if tokens >= known {
        return stretches.push(Stretch::of_text("what the server adds", tokens - known));
    }
    let mut left = tokens;
    stretches.retain_mut(|stretch| {
        stretch.tokens = stretch.tokens.min(left);
        left -= stretch.tokens;
        stretch.tokens > 0
    });
}

/// The adapter that a request asks for: its name is sent as the model's.
fn adapter_of(request: &Request) -> Option<&str> {
    let label = ModelKind::Adapter.label();
    let is_one = request.labels.iter().any(|(name, _)| name == label);
    request.route.model.as_deref().filter(|_| is_one)
}

/// What vLLM says of a request at its end when it is asked to, milliseconds.
/// Its queue time counts from the end of the front end's work, and its time to
/// first token from the first step, not from the arrival.
fn server_timings(ended: &Ended, queued_ns: u64) -> Vec<(String, f64)> {
    let ms = |from: u64, until: u64| until.saturating_sub(from) as f64 / 1e6;
    let generation = ms(ended.first_token_ns, ended.ended_ns);
    let gaps = ended.output_tokens.saturating_sub(1);
    let mut timings = vec![
        ("queue_time_ms".to_owned(), ms(queued_ns, ended.scheduled_ns)),
        ("time_to_first_token_ms".to_owned(), ms(ended.scheduled_ns, ended.first_token_ns)),
        ("generation_time_ms".to_owned(), generation),
    ];
    if gaps > 0 {
        timings.push(("mean_itl_ms".to_owned(), generation / f64::from(gaps)));
    }
    timings
}
