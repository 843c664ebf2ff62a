//! The schedule: every request of a run, decided before the first byte is sent.

use measure::{At, Planned, Span, Tokens};

use crate::arrival::Arrivals;
use crate::batch::{Batch, BatchError};
use crate::conversation::{Conversations, Script, Starts};
use crate::digest::Digest;
use crate::length::Lengths;
use crate::load::{HORIZON, Load, LoadError, Stop};
use crate::media::{Pictures, PicturesError};
use crate::mix::Mixed;
use crate::piece::Piece;
use crate::prefix::{self, Prefixes};
use crate::prompt::{
    self, Blocks, CacheRegime, Content, NONCE_TOKENS, Order, Prompt, PromptRef, PromptSource,
    RunNonce,
};
use crate::replay::Replay;
use crate::routing::{Route, Routing};
use crate::shape::Phase;
use crate::stream::Stream;
use crate::text::{self, Nonce};
use crate::think::Think;

mod check;
mod graph;
mod identity;
mod note;
mod prime;
mod session;

pub use check::{Beyond, Counts, WrongLength};
pub use graph::GraphError;
pub use note::Note;

/// The most requests with an instant of their own that one schedule may hold:
/// more than two days at 100 requests a second, in 160 MB.
pub const MAX_TIMED: u32 = 20_000_000;

/// The longest chain of parents in a conversation or graph.
pub const MAX_DEPTH: u32 = 1024;

/// How many requests of an endless schedule enter its hash besides the
/// parameters that they are drawn from.
const HASHED_OF_ENDLESS: u32 = 1024;

/// The version of what [`Schedule::hash`] covers. Raise it when the same
/// parameters give other requests, so that old hashes match no new schedule.
const HASH_VERSION: u64 = 1;

/// Everything that a schedule is drawn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The seed of every stream.
    pub seed: u64,
    /// The load model.
    pub load: Load,
    /// When to stop.
    pub stop: Stop,
    /// Where prompts come from.
    pub prompts: PromptSource,
    /// Pictures that go with every prompt.
    pub pictures: Option<Pictures>,
    /// What written prompts begin with; prompts from a list are as they are.
    pub prefixes: Prefixes,
    /// What a request carries of written texts.
    pub batch: Batch,
    /// How long answers may be.
    pub output: OutputLength,
    /// True when the server is told to write the whole length (`ignore_eos`).
    pub output_forced: bool,
    /// What the prefix cache may know.
    pub cache: CacheRegime,
    /// Whether nonces go into prompts from a list too. Synthetic prompts take
    /// them always; a user's own text is changed only on request.
    pub nonce_in_own_prompts: bool,
    /// Labels of every request.
    pub labels: Vec<(String, String)>,
    /// What requests are dealt to.
    pub routing: Routing,
    /// What makes conversations of the requests. The load and the stop are then
    /// about conversations: arrivals, users and counts are theirs.
    pub conversations: Option<Conversations>,
}

/// Where the limit of an answer's length comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputLength {
    /// No limit is sent: the model stops when it is done.
    Unlimited,
    /// Drawn for each request, whatever its prompt says.
    Drawn(Lengths),
    /// The prompt's own, where its source gives one.
    OfPrompt {
        /// For prompts without one; `None` sends no limit then.
        otherwise: Option<Lengths>,
    },
}

/// One request of the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Position in the schedule, from 0.
    pub index: u32,
    /// What it waits for.
    pub after: After,
    /// The conversation that it belongs to, from 0 in the order of their
    /// arrivals; equal to `index` where requests are no turns of any.
    pub session: u32,
    /// Turns before it in its conversation: of several chains that end in it,
    /// the longest.
    pub turn: u16,
    /// Name and value, sorted by name.
    pub labels: Vec<(String, String)>,
    /// Which prompt it carries.
    pub prompt: PromptRef,
    /// About how long the prompt is.
    pub input_tokens: Option<Tokens>,
    /// The answer's limit, sent with the request.
    pub max_output_tokens: Option<Tokens>,
    /// True when the answer's length is forced.
    pub output_forced: bool,
    /// Where it goes and as what. Of requests given whole the schedule sets it.
    pub route: Route,
}

/// What a request waits for: this fixes its intended instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// An instant from the start of the run.
    Instant(At),
    /// A user whose slot is free. All slots are free at the start.
    Slot {
        /// Time from the slot becoming free to the intended instant.
        think: Span,
    },
    /// The end of the last of these requests.
    Parents {
        /// Indices, each smaller than this request's.
        of: Vec<u32>,
        /// Time from that end to the intended instant.
        think: Span,
    },
}

/// A plan of requests, the same for any number of workers.
///
/// Requests are made from their index when asked for, not stored: a closed loop
/// that runs for a time has no last request, and a million prompts need no
/// memory. Only what cannot be had from an index alone is kept: arrival
/// instants, the order of a list, and lists of requests given whole.
#[derive(Clone, Debug)]
pub struct Schedule {
    spec: Spec,
    plan: Plan,
    /// Places in the list of prompts, in the order of use; empty for prompts
    /// that are written.
    order: Vec<u32>,
    /// For each request of a list, the number of sessions that began before its
    /// own; empty for other plans, whose requests are sessions of their own.
    sessions: Vec<u32>,
    /// The parts, where the prompts are those of a mix.
    mixed: Option<Mixed>,
    /// Groups of prompts that begin alike, in the order of requests, from the
    /// beginning again when it ends; empty where all are of one group.
    groups: Vec<u32>,
    /// True where the requests of a list have their routes already.
    routes_given: bool,
    /// Which requests are turns of which conversation, where there are any.
    turns: Option<Starts>,
}

/// When units begin: requests, or conversations where there are any.
#[derive(Clone, Debug)]
enum Plan {
    Timed(Vec<At>),
    Burst(u32),
    Slots(Option<u32>),
    /// Requests given whole, and their places by conversation.
    Listed(Vec<Request>, Vec<Vec<u32>>),
}

/// Why no schedule was drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// A rule of the load model was broken.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A rule about batches was broken.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A rule about pictures was broken.
    #[error(transparent)]
    Pictures(#[from] PicturesError),
    /// The list of prompts is empty.
    #[error("there is no prompt to send: the data set has no usable row")]
    NoPrompts,
    /// More prompts than indices.
    #[error("{0} prompts are more than a schedule can number")]
    TooManyPrompts(usize),
    /// More arrivals than [`MAX_TIMED`].
    #[error(
        "the plan has more than {MAX_TIMED} arrivals; lower the rate, --duration or -n, or cut a trace with --trace-window"
    )]
    TooManyArrivals,
    /// More turns than indices.
    #[error("the conversations have more turns than a schedule can number; lower -n or --turns")]
    TooManyTurns,
    /// The duration ends before the first arrival.
    #[error(
        "no arrival falls into the {0} of the plan with this seed; raise the duration or the rate"
    )]
    NoArrival(Span),
    /// A rule about a list of requests was broken.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl Schedule {
    /// Draws the schedule, and says what a reader must know of it.
    pub fn draw(spec: Spec) -> Result<(Self, Vec<Note>), SpecError> {
        spec.load.check()?;
        spec.stop.check()?;
        let count = spec.stop.count();
        let plan = match &spec.load {
            Load::Open { .. } | Load::Capped { .. } => Plan::Timed(arrivals(&spec)?),
            Load::Replay { replay, .. } => Plan::Timed(replayed(replay, spec.stop)?),
            Load::Closed { .. } => Plan::Slots(count),
            Load::Burst => Plan::Burst(count.ok_or(LoadError::BurstNeedsCount)?),
        };
        Self::over(spec, plan)
    }

    /// A schedule of requests given whole, whatever they wait for. The `stop` of
    /// the specification is not applied to them.
    pub fn of_requests(spec: Spec, requests: Vec<Request>) -> Result<(Self, Vec<Note>), SpecError> {
        spec.load.check()?;
        graph::check(&spec, &requests)?;
        let units = graph::units(&requests);
        Self::over(spec, Plan::Listed(requests, units))
    }

    fn over(mut spec: Spec, plan: Plan) -> Result<(Self, Vec<Note>), SpecError> {
        spec.pictures.as_ref().map_or(Ok(()), Pictures::check)?;
        spec.batch.check(spec.prompts.is_written())?;
        spec.labels.sort();
        if let Some(conversations) = &spec.conversations {
            conversations.check()?;
        }
        let listed = match &spec.conversations {
            Some(Conversations { script: Script::Listed(all), .. }) => Some(all.len()),
            _ => None,
        };
        let order = match spec.prompts.list() {
            Some((rows, order)) => {
                let rows = listed.unwrap_or(rows);
                let count = u32::try_from(rows).map_err(|_| SpecError::TooManyPrompts(rows))?;
                if count == 0 {
                    return Err(SpecError::NoPrompts);
                }
                let mut places: Vec<u32> = (0..count).collect();
                if order == Order::Shuffled {
                    Stream::new(spec.seed, "order").shuffle(&mut places);
                }
                places
            }
            None => Vec::new(),
        };
        let sessions = match &plan {
            Plan::Listed(_, units) => graph::session_numbers(units),
            Plan::Timed(_) | Plan::Burst(_) | Plan::Slots(_) => Vec::new(),
        };
        if !spec.prompts.is_written() {
            spec.prefixes = Prefixes::NONE;
        }
        let mut schedule = Self {
            spec,
            plan,
            order,
            sessions,
            mixed: None,
            groups: Vec::new(),
            routes_given: false,
            turns: None,
        };
        schedule.turns = schedule.dealt_turns()?;
        schedule.groups = schedule.spec.prefixes.order(schedule.units(), schedule.spec.seed);
        let mut notes = Vec::new();
        if let PromptSource::Mix(mix) = &schedule.spec.prompts {
            let (mixed, of_parts) = Mixed::draw(mix, &schedule.spec, schedule.count())?;
            schedule.mixed = Some(mixed);
            notes = of_parts;
        }
        notes.extend(schedule.notes());
        Ok((schedule, notes))
    }

    fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        let prompts = match &self.turns {
            Some(turns) => turns.round(),
            None => self.order.len() as u32,
        };
        match (&self.spec.prompts, self.count()) {
            (PromptSource::Synthetic { .. } | PromptSource::Lengths { lexicon: None, .. }, _) => {
                notes.push(Note::EstimatedLengths)
            }
            (
                PromptSource::Exact { .. } | PromptSource::Mix(_) | PromptSource::Lengths { .. },
                _,
            ) => {}
            (PromptSource::List { .. }, None) => notes.push(Note::MayRepeat { prompts }),
            (PromptSource::List { .. }, Some(requests)) if requests > prompts => {
                notes.push(Note::Oversampled { requests, prompts });
            }
            (PromptSource::List { .. }, Some(_)) => {}
        }
        if let (Some(users), Some(units)) = (self.spec.load.users(), self.units())
            && units < users
        {
            notes.push(match self.turns {
                Some(_) => Note::IdleConversationUsers { users, conversations: units },
                None => Note::IdleUsers { users, requests: units },
            });
        }
        if self.turns.is_some() {
            let (conversations, requests) = (self.units(), self.count());
            notes.push(Note::Conversations { conversations, requests });
        }
        let least = self.spec.prompts.least();
        if self.spec.prompts.shortest().is_some_and(|shortest| shortest < least) {
            notes.push(Note::Raised { least });
        }
        let of_all = self.mixed.is_none() || self.spec.cache == CacheRegime::Warm;
        if of_all && self.cache() != self.spec.cache {
            notes.push(match self.spec.cache {
                CacheRegime::Warm => Note::NotPrimed,
                regime => Note::NonceLeftOut { regime },
            });
        }
        let alone = self.turns.is_none() && !matches!(self.plan, Plan::Listed(..));
        if self.spec.prefixes.session_tokens > 0 && alone {
            notes.push(Note::LoneSessions);
        }
        if let (true, Some(requests)) = (self.spec.prefixes.groups > 1, self.units()) {
            let groups = self.spec.prefixes.groups;
            if requests < groups {
                notes.push(Note::UnusedPrefixes { requests, groups });
            } else if groups > prefix::MAX_LABELLED_GROUPS {
                notes.push(Note::NoPrefixLabels { groups });
            }
        }
        notes
    }

    /// What it was drawn from.
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The load model.
    pub const fn load(&self) -> &Load {
        &self.spec.load
    }

    /// Number of requests; `None` for a closed loop that runs for a time and so
    /// has no last one.
    pub fn count(&self) -> Option<u32> {
        match (&self.turns, &self.plan) {
            // The number was found to be one when the turns were dealt.
            (Some(turns), _) => self.units().and_then(|units| turns.requests(units).ok()),
            (None, Plan::Listed(requests, _)) => Some(requests.len() as u32),
            (None, _) => self.units(),
        }
    }

    /// Number of conversations, a request by itself being one; `None` for a
    /// closed loop that runs for a time and so has no last one.
    pub fn units(&self) -> Option<u32> {
        match &self.plan {
            Plan::Timed(arrivals) => Some(arrivals.len() as u32),
            Plan::Burst(count) => Some(*count),
            Plan::Slots(count) => *count,
            Plan::Listed(_, units) => Some(units.len() as u32),
        }
    }

    /// The planned length of the arrival window: the duration, where arrivals
    /// come by the clock and it was the duration that ended them. A plan ended
    /// by its count has no planned length.
    pub fn planned_duration(&self) -> Option<Span> {
        let Plan::Timed(arrivals) = &self.plan else { return None };
        let full = self.spec.stop.count() == Some(arrivals.len() as u32);
        self.spec.stop.duration().filter(|_| !full)
    }

    /// The plan in the parts that its shape has, each with the arrivals that it
    /// lets expect and those that were drawn; empty where none come by the
    /// clock.
    pub fn phases(&self) -> Vec<Phase> {
        let (Plan::Timed(arrivals), Some(pace)) = (&self.plan, self.spec.load.pace()) else {
            return Vec::new();
        };
        let last = arrivals.last().map_or(Span::ZERO, |at| *at - At::ZERO);
        // The last arrival is in the plan, and ends are not in their phase.
        let end = self.planned_duration().unwrap_or(last + Span::from_us(1));
        let mut phases = pace.shape.phases(end);
        for phase in &mut phases {
            let before = |end: Span| arrivals.partition_point(|at| *at < At::ZERO + end);
            phase.drawn = (before(phase.until) - before(phase.from)) as u32;
        }
        phases
    }

    /// The instant from which a closed loop intends no further request.
    pub fn closes_at(&self) -> Option<At> {
        let Plan::Slots(_) = self.plan else { return None };
        self.spec.stop.duration().map(|duration| At::ZERO + duration)
    }

    /// The regime that the prompts really have: nonces that were asked for and
    /// could not be put in leave the cache as it is, and so do prompts without
    /// end that nobody can send beforehand. Of a mix, that of its parts where
    /// they agree, else the one asked for, with a note of the parts that have
    /// another.
    pub fn cache(&self) -> CacheRegime {
        let primed = self.primes_groups() || self.different_prompts().is_some();
        if self.spec.cache == CacheRegime::Warm && !primed {
            return CacheRegime::AsIs;
        }
        if let Some(mixed) = &self.mixed {
            let mut regimes = mixed.parts().iter().map(|(_, part)| part.cache());
            let first = regimes.next().unwrap_or(self.spec.cache);
            return if regimes.all(|other| other == first) { first } else { self.spec.cache };
        }
        let written = self.spec.prompts.is_written();
        if self.spec.cache.has_nonce() && !written && !self.spec.nonce_in_own_prompts {
            return CacheRegime::AsIs;
        }
        self.spec.cache
    }

    /// Tokens that a prompt has in common with others by design; `None` where
    /// nobody knows: prompts from a list, and turns of a conversation.
    pub fn prefix_tokens(&self) -> Option<u32> {
        let alone =
            self.mixed.is_none() && self.turns.is_none() && !matches!(self.plan, Plan::Listed(..));
        let blocks = match &self.spec.prompts {
            PromptSource::Lengths { rows, .. } => rows.iter().any(|row| row.blocks.is_some()),
            _ => false,
        };
        let known = self.spec.prompts.is_written() && alone && !blocks;
        known.then_some(self.spec.prefixes.common_tokens())
    }

    /// The number of leading requests, or conversations, whose prompts are all
    /// the different ones: what regime `warm` sends before the run. `None` when
    /// they have no end. Adapters, models and targets each have a cache of their
    /// own, so where requests are dealt to several, a prompt that comes again is
    /// different.
    pub fn different_prompts(&self) -> Option<u32> {
        match (&self.spec.prompts, self.units()) {
            (PromptSource::List { .. }, Some(count)) if self.spec.routing.has_caches() => {
                Some(count)
            }
            (PromptSource::List { .. }, count) => {
                let prompts = self.order.len() as u32;
                Some(count.map_or(prompts, |count| count.min(prompts)))
            }
            (
                PromptSource::Synthetic { .. }
                | PromptSource::Exact { .. }
                | PromptSource::Mix(_)
                | PromptSource::Lengths { .. },
                count,
            ) => count,
        }
    }

    /// When request `index` is intended, where the plan alone says so.
    pub fn intended_at(&self, index: u32) -> Option<At> {
        let unit = match &self.turns {
            Some(turns) => {
                let (session, place) = turns.locate(index);
                if !self.begins(session, place) {
                    return None;
                }
                session
            }
            None => index,
        };
        match &self.plan {
            Plan::Timed(arrivals) => arrivals.get(unit as usize).copied(),
            Plan::Burst(count) => (unit < *count).then_some(At::ZERO),
            Plan::Slots(_) => None,
            Plan::Listed(requests, _) => match requests.get(index as usize)?.after {
                After::Instant(at) => Some(at),
                After::Slot { .. } | After::Parents { .. } => None,
            },
        }
    }

    /// The intended instants that the plan fixes, in order of index.
    pub fn arrivals(&self) -> impl Iterator<Item = At> + '_ {
        let count = if let Plan::Slots(_) = self.plan { 0 } else { self.count().unwrap_or(0) };
        (0..count).filter_map(|index| self.intended_at(index))
    }

    /// Request `index`, made from the seed; `None` past the end.
    pub fn request(&self, index: u32) -> Option<Request> {
        if let Some(turns) = &self.turns {
            return self.turn(turns, index).map(|request| self.routed(request));
        }
        if let Plan::Listed(requests, _) = &self.plan {
            return requests.get(index as usize).cloned().map(|request| self.routed(request));
        }
        let after = self.beginning(index)?;
        if let Some(mixed) = &self.mixed {
            let of_part = mixed.request(index)?;
            return Some(self.routed(Request { index, after, session: index, ..of_part }));
        }
        let (prompt, input_tokens, own_limit) = self.prompt_of(index);
        let max_output_tokens = self.limit_of(index, own_limit);
        Some(self.routed(Request {
            index,
            after,
            session: index,
            turn: 0,
            labels: self.labels_of(index),
            prompt,
            input_tokens,
            max_output_tokens,
            output_forced: self.spec.output_forced && max_output_tokens.is_some(),
            route: Route::default(),
        }))
    }

    /// Deals a request to what the routing has, and labels it with that.
    fn routed(&self, mut request: Request) -> Request {
        if self.routes_given {
            return request;
        }
        let session = self.sessions.get(request.index as usize).copied();
        let session = session.unwrap_or(request.session);
        if let (PromptSource::List { prompts, .. }, PromptRef::Listed(place)) =
            (&self.spec.prompts, request.prompt)
        {
            request.route.priority = prompts[place as usize].priority;
        }
        self.spec.routing.route(self.spec.seed, session, &mut request);
        request
    }

    /// What unit `unit` waits for; `None` past the end.
    fn beginning(&self, unit: u32) -> Option<After> {
        match &self.plan {
            Plan::Slots(count) => {
                if count.is_some_and(|count| unit >= count) {
                    return None;
                }
                let Load::Closed { think, .. } = self.spec.load else { return None };
                // A fixed pause, none say, needs no stream.
                let draw = |think: Think| {
                    think.draw(&mut Stream::numbered(self.spec.seed, "think", u64::from(unit)))
                };
                let think = if let Think::Fixed(span) = think { span } else { draw(think) };
                Some(After::Slot { think })
            }
            Plan::Timed(arrivals) => arrivals.get(unit as usize).copied().map(After::Instant),
            Plan::Burst(count) => (unit < *count).then_some(After::Instant(At::ZERO)),
            Plan::Listed(..) => None,
        }
    }

    /// The limit of the answer to request `index`, whose prompt may bring one
    /// along.
    fn limit_of(&self, index: u32, own_limit: Option<Tokens>) -> Option<Tokens> {
        match &self.spec.output {
            OutputLength::Unlimited => None,
            OutputLength::Drawn(lengths) => Some(self.output_draw(index, lengths)),
            OutputLength::OfPrompt { otherwise } => own_limit
                .or_else(|| otherwise.as_ref().map(|lengths| self.output_draw(index, lengths))),
        }
    }

    /// The run's labels and those of the row that request `index` carries, which
    /// win: a row knows its tenant better than the command line.
    fn labels_of(&self, index: u32) -> Vec<(String, String)> {
        let of_row = match &self.spec.prompts {
            PromptSource::List { prompts, .. } => &prompts[self.place(index)].labels,
            PromptSource::Lengths { rows, .. } => &rows[self.place(index)].labels,
            PromptSource::Synthetic { .. } | PromptSource::Exact { .. } | PromptSource::Mix(_) => {
                &Vec::new()
            }
        };
        self.with_labels(of_row, index)
    }

    fn with_labels(&self, of_row: &[(String, String)], session: u32) -> Vec<(String, String)> {
        let of_group = self.group_label(session);
        let own = || of_row.iter().chain(&of_group);
        let named = |name: &String| own().any(|(other, _)| other == name);
        let of_run = self.spec.labels.iter().filter(|(name, _)| !named(name));
        let mut labels: Vec<_> = of_run.chain(own()).cloned().collect();
        labels.sort();
        labels
    }

    /// The place in the list of what request `index` carries.
    fn place(&self, index: u32) -> usize {
        self.order[index as usize % self.order.len()] as usize
    }

    /// The group of a session, from 0; `None` where all are of one. A lone
    /// request is a session of its own.
    fn group(&self, session: u32) -> Option<u32> {
        let place = (session as usize).checked_rem(self.groups.len())?;
        Some(self.groups[place])
    }

    fn group_label(&self, session: u32) -> Option<(String, String)> {
        let group = self.group(session)?;
        let few = self.spec.prefixes.groups <= prefix::MAX_LABELLED_GROUPS;
        few.then(|| (prefix::LABEL.to_owned(), group.to_string()))
    }

    fn output_draw(&self, index: u32, lengths: &Lengths) -> Tokens {
        lengths.numbered(self.spec.seed, "output lengths", u64::from(index))
    }

    /// Which prompt request `index` carries, about how long it is, and the
    /// limit that it brings along.
    fn prompt_of(&self, index: u32) -> (PromptRef, Option<Tokens>, Option<Tokens>) {
        match &self.spec.prompts {
            PromptSource::Synthetic { input } | PromptSource::Exact { input, .. } => {
                let own = input.numbered(self.spec.seed, "input lengths", u64::from(index));
                let own = own.max(self.spec.prompts.least());
                let lengths = self.batch_lengths(index, own);
                let tokens = self.spec.prefixes.and_own(lengths[0]);
                let read = match self.spec.batch {
                    Batch::One => tokens,
                    _ => self.spec.batch.read(&lengths),
                };
                (PromptRef::Written(tokens), Some(read), None)
            }
            PromptSource::List { prompts, .. } => {
                let place = self.place(index);
                let prompt = &prompts[place];
                let tokens = self.with_nonce_tokens(prompt.input_tokens);
                (PromptRef::Listed(place as u32), tokens, prompt.max_output_tokens)
            }
            PromptSource::Mix(_) => unreachable!("the parts of a mix make their own requests"),
            PromptSource::Lengths { rows, .. } => {
                let row = &rows[self.place(index)];
                let own = row.input.max(self.spec.prompts.least());
                let tokens = self.spec.prefixes.and_own(own);
                (PromptRef::Written(tokens), Some(tokens), Some(row.output))
            }
        }
    }

    /// The length of a prompt of a list with the nonce that it gets.
    fn with_nonce_tokens(&self, tokens: Option<Tokens>) -> Option<Tokens> {
        let nonce = if self.cache().has_nonce() { NONCE_TOKENS } else { 0 };
        tokens.map(|n| Tokens::new(n.get().saturating_add(nonce)))
    }

    /// The pieces that a request's written prompt has: those that it shares
    /// with others, then its own. What the server adds is no part of them.
    fn pieces(&self, request: &Request, tokens: Tokens) -> Vec<Piece> {
        let leading = self.leading(request);
        let special = self.spec.prompts.lexicon().special();
        Piece::of_prompt(&leading, request.index, tokens.get().saturating_sub(special))
    }

    /// What a request's written prompt shares with others.
    fn leading(&self, request: &Request) -> Vec<Piece> {
        let group = self.group(request.session).unwrap_or(0);
        let mut leading = self.spec.prefixes.pieces(group, request.session).to_vec();
        if let PromptSource::Lengths { rows, .. } = &self.spec.prompts {
            let blocks = rows[self.place(request.index)].blocks.iter();
            leading.extend(blocks.flat_map(Blocks::pieces));
        }
        leading
    }

    /// The lengths of the texts of request `index`, of which the first would be
    /// `first` alone.
    fn batch_lengths(&self, index: u32, first: Tokens) -> Vec<Tokens> {
        // The usual case, for which nothing is drawn again.
        if self.spec.batch == Batch::One {
            return vec![first];
        }
        let (PromptSource::Synthetic { input } | PromptSource::Exact { input, .. }) =
            &self.spec.prompts
        else {
            return vec![first];
        };
        let stream = Stream::numbered(self.spec.seed, "input lengths", u64::from(index));
        let mut lengths = self.spec.batch.lengths(first, input, stream);
        let least = self.spec.prompts.least();
        lengths.iter_mut().for_each(|tokens| *tokens = (*tokens).max(least));
        lengths
    }

    /// The texts of a batch, and how long each is to be.
    fn batch_of(&self, request: &Request, nonce: RunNonce) -> Vec<(Tokens, String)> {
        let PromptRef::Written(first) = request.prompt else { return Vec::new() };
        let (seed, lexicon) = (self.spec.seed, self.spec.prompts.lexicon());
        let lengths = self.batch_lengths(request.index, first);
        let text = |(place, tokens): (usize, Tokens)| {
            let own = tokens.get().saturating_sub(lexicon.special());
            let piece = Batch::piece(request.index, place, own);
            let nonce = self
                .spec
                .batch
                .has_nonce(place)
                .then(|| self.nonce_of(request, request.index, nonce));
            (tokens, text::write(&[piece], seed, lexicon, nonce.flatten()))
        };
        lengths.into_iter().enumerate().map(text).collect()
    }

    /// Every request in order; without end for an endless plan.
    pub fn requests(&self) -> impl Iterator<Item = Request> + '_ {
        (0..self.count().unwrap_or(u32::MAX)).filter_map(|index| self.request(index))
    }

    /// The prompt of a request of this schedule, with the run's nonce where the
    /// regime has one. Of a later turn of a conversation it is what the turn
    /// adds; [`Self::prompt_after`] gives the whole.
    ///
    /// # Panics
    /// When the request names a prompt that this schedule does not have, and so
    /// is another schedule's.
    pub fn prompt(&self, request: &Request, nonce: RunNonce) -> Prompt {
        if let Some(mixed) = &self.mixed {
            let (part, index, nonce) = mixed.of(request.index, nonce);
            return part.prompt(&Request { index, session: index, ..request.clone() }, nonce);
        }
        self.prompt_for(request, request.index, nonce)
    }

    /// The same, with the nonce of request `carrier`, whose prompt begins with
    /// this one.
    fn prompt_for(&self, request: &Request, carrier: u32, nonce: RunNonce) -> Prompt {
        let prompt = self.text_of(request, carrier, nonce);
        let Some(pictures) = &self.spec.pictures else { return prompt };
        let pixels = nonce.pixels(self.spec.cache, self.spec.seed);
        prompt.with_pictures(pictures.of_request(self.spec.seed, pixels, request.index))
    }

    /// The same without the pictures that go with every prompt.
    fn text_of(&self, request: &Request, carrier: u32, nonce: RunNonce) -> Prompt {
        let adds = self.adds(request);
        let source = &self.spec.prompts;
        if self.spec.batch != Batch::One {
            let texts = self.batch_of(request, nonce).into_iter().map(|(_, text)| text).collect();
            return Prompt {
                content: Content::Texts(texts),
                input_tokens: request.input_tokens,
                ..Prompt::text("")
            };
        }
        let nonce = self.nonce_of(request, carrier, nonce);
        let prompt = match (request.prompt, source) {
            // What a turn adds stands behind the nonce of the first one.
            (PromptRef::Listed(place), PromptSource::List { prompts, .. }) if adds => {
                prompts[place as usize].clone()
            }
            (PromptRef::Written(tokens), _) if adds => {
                let piece = [Piece::own(request.index, tokens.get())];
                prompt::written(self.spec.seed, &piece, source.lexicon(), None)
            }
            (PromptRef::Listed(place), PromptSource::List { prompts, .. }) => {
                prompt::listed(&prompts[place as usize], nonce)
            }
            (PromptRef::Written(tokens), _) => {
                let pieces = self.pieces(request, tokens);
                prompt::written(self.spec.seed, &pieces, source.lexicon(), nonce)
            }
            (PromptRef::Listed(_), _) => {
                panic!("a request of another schedule: this one has no list of prompts")
            }
        };
        Prompt { max_output_tokens: request.max_output_tokens, ..prompt }
    }

    fn nonce_of(&self, request: &Request, carrier: u32, nonce: RunNonce) -> Option<Nonce> {
        let group = self.group(request.session).unwrap_or(0);
        let number = self.spec.prefixes.nonce_of(group);
        nonce.of(self.cache(), carrier, number)
    }

    /// True for a turn whose prompt is behind those of other turns, so that it
    /// has no nonce and no prefix of its own.
    fn adds(&self, request: &Request) -> bool {
        self.turns.is_some() && matches!(request.after, After::Parents { .. })
    }

    /// The worker, of so many, that owns a request. Units are dealt in turn, a
    /// unit being a session (a lone request is its own). Where there are users,
    /// units go to users in turn and users to workers in turn, so that a worker
    /// without users gets no work and each gets work by its share of users;
    /// with as many users on each worker that is the same.
    ///
    /// # Panics
    /// When there are no workers.
    pub fn owner(&self, request: &Request, workers: u32) -> u32 {
        self.owner_of_unit(request.session, workers)
    }

    /// The worker of request `index`, without drawing the request; `None` past
    /// the end.
    ///
    /// # Panics
    /// When there are no workers.
    pub fn owner_at(&self, index: u32, workers: u32) -> Option<u32> {
        if self.count().is_some_and(|count| index >= count) {
            return None;
        }
        let unit = match (&self.turns, &self.plan) {
            (Some(turns), _) => turns.locate(index).0,
            (None, Plan::Listed(requests, _)) => requests[index as usize].session,
            (None, _) => index,
        };
        Some(self.owner_of_unit(unit, workers))
    }

    fn owner_of_unit(&self, unit: u32, workers: u32) -> u32 {
        assert!(workers > 0, "no worker to deal to");
        self.spec.load.users().map_or(unit, |users| unit % users) % workers
    }

    /// The users, or the share of the cap, of one worker; `None` where the load
    /// has none. Users are dealt in turn: user k to worker k mod `workers`.
    ///
    /// # Panics
    /// When `worker` is not below `workers`.
    pub fn users_of(&self, worker: u32, workers: u32) -> Option<u32> {
        assert!(worker < workers, "worker {worker} of {workers}");
        let users = self.spec.load.users()?;
        Some(users / workers + u32::from(worker < users % workers))
    }

    /// The requests of one worker, in order. Over all workers they are the
    /// whole schedule, each request once.
    ///
    /// # Panics
    /// When `worker` is not below `workers`.
    pub fn deal(&self, worker: u32, workers: u32) -> impl Iterator<Item = Request> + '_ {
        assert!(worker < workers, "worker {worker} of {workers}");
        (0..self.count().unwrap_or(u32::MAX))
            .filter(move |&index| self.owner_at(index, workers) == Some(worker))
            .filter_map(|index| self.request(index))
    }

    /// A digest of everything that decides what is sent and when: parameters,
    /// seed, list of prompts, and the drawn requests (of an endless plan the
    /// first 1024). Not in it: the number of workers, and the run's nonce,
    /// which differs from run to run by design.
    pub fn hash(&self) -> String {
        let spec = &self.spec;
        let mut digest = Digest::new();
        if let Some(conversations) = &spec.conversations {
            conversations.digest(&mut digest);
        }
        digest.number(HASH_VERSION).number(spec.seed);
        spec.load.digest(&mut digest);
        spec.stop.digest(&mut digest);
        spec.prompts.digest(&mut digest);
        spec.prefixes.digest(&mut digest);
        // Only where there are any, so that schedules without keep their hash.
        if let Some(pictures) = &spec.pictures {
            pictures.digest(&mut digest);
        }
        spec.batch.digest(&mut digest);
        digest.text(self.cache().name());
        digest.maybe(self.count().map(u64::from));
        for index in 0..self.count().unwrap_or(HASHED_OF_ENDLESS) {
            if let Some(request) = self.request(index) {
                request.digest(&mut digest);
            }
        }
        digest.hex()
    }
}

impl Request {
    /// The part of it that goes into the record.
    pub fn planned(&self) -> Planned {
        Planned {
            labels: self.labels.clone(),
            session: self.session,
            turn: self.turn,
            input_tokens: self.input_tokens,
            max_output_tokens: self.max_output_tokens,
            output_forced: self.output_forced,
        }
    }

    fn digest(&self, digest: &mut Digest) {
        let tokens = |tokens: Option<Tokens>| tokens.map(|n| u64::from(n.get()));
        match &self.after {
            After::Instant(at) => {
                digest.raw(b"i").signed(at.us());
            }
            After::Slot { think } => {
                digest.raw(b"s").signed(think.us());
            }
            After::Parents { of, think } => {
                digest.raw(b"p").signed(think.us()).number(of.len() as u64);
                for &parent in of {
                    digest.number(u64::from(parent));
                }
            }
        }
        digest.number(u64::from(self.index)).number(u64::from(self.session));
        digest.number(u64::from(self.turn)).number(self.labels.len() as u64);
        for (name, value) in &self.labels {
            digest.text(name).text(value);
        }
        match self.prompt {
            PromptRef::Listed(place) => digest.raw(b"l").number(u64::from(place)),
            PromptRef::Written(tokens) => digest.raw(b"w").number(u64::from(tokens.get())),
        };
        digest.maybe(tokens(self.input_tokens)).maybe(tokens(self.max_output_tokens));
        digest.raw(&[u8::from(self.output_forced)]);
        self.route.digest(digest);
    }
}

/// Draws the instants of an open loop, up to the stop.
fn arrivals(spec: &Spec) -> Result<Vec<At>, SpecError> {
    let Some(pace) = spec.load.pace() else { return Ok(Vec::new()) };
    let count = spec.stop.count();
    if count.is_some_and(|count| count > MAX_TIMED) {
        return Err(SpecError::TooManyArrivals);
    }
    let end = spec.stop.duration().map(|duration| At::ZERO + duration);
    let mut drawn = Vec::new();
    for at in Arrivals::new(pace.clone(), Stream::new(spec.seed, "arrivals")) {
        if end.is_some_and(|end| at >= end) {
            break;
        }
        if at > At::ZERO + HORIZON {
            return Err(LoadError::Horizon.into());
        }
        if drawn.len() == MAX_TIMED as usize {
            return Err(SpecError::TooManyArrivals);
        }
        drawn.push(at);
        if count == Some(drawn.len() as u32) {
            break;
        }
    }
    if drawn.is_empty() {
        let length = spec.stop.duration().or_else(|| pace.shape.lasts());
        return Err(SpecError::NoArrival(length.unwrap_or_default()));
    }
    Ok(drawn)
}

/// The instants of a trace, up to the stop.
fn replayed(replay: &Replay, stop: Stop) -> Result<Vec<At>, SpecError> {
    let count = stop.count().map_or(usize::MAX, |count| count as usize);
    let end = stop.duration().map(|duration| At::ZERO + duration);
    let all = (0..count).map_while(|index| replay.instant(index));
    let mut instants = Vec::with_capacity(count.min(replay.rows()));
    for at in all.take_while(|at| end.is_none_or(|end| *at < end)) {
        if instants.len() == MAX_TIMED as usize {
            return Err(SpecError::TooManyArrivals);
        }
        if at > At::ZERO + HORIZON {
            return Err(LoadError::Horizon.into());
        }
        instants.push(at);
    }
    Ok(instants)
}

#[cfg(test)]
mod tests;
