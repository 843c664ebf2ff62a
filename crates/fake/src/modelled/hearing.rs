//! What the model tells as time goes on: tokens that are due, and the counters.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use sim::{Audience, Begun, Choice, Ended, Finish, SettingsError, StepReport};
use wire::exposition::Http;

use super::ModelledConfig;
use super::detour::{Detour, Part};
use crate::faults::Cut;
use crate::openai::{Answer, Passage, Timings, Usage};
use crate::request::Request;
use crate::script::{Break, Piece};
use crate::telemetry::{Arrival, Telemetry};

/// A request whose answer is not over. Instants are in model time.
#[derive(Debug)]
pub(super) struct UnderWay {
    answer: Answer,
    connection: u64,
    /// When it came, on the monotonic clock.
    arrival_ns: u64,
    path: &'static str,
    body_bytes: u64,
    /// When it came, and when it reaches the scheduler.
    arrived_ns: u64,
    queued_ns: u64,
    /// Most tokens that the request allows.
    most: u32,
    /// What was told of a stream and not written: when it is due, what it is.
    told: VecDeque<(u64, Part)>,
    /// The way out, where a fault changes it.
    detour: Option<Detour>,
    has_role: bool,
    /// False for vectors and scores.
    has_tokens: bool,
    /// The answers that were asked for.
    lines: Vec<Line>,
    /// Whether one has begun, and which did first.
    has_begun: bool,
    first: u8,
    /// The last one of those that ended, and when it did.
    last: Option<(u8, u64)>,
}

/// One answer to a request.
#[derive(Clone, Debug, Default)]
struct Line {
    written: u32,
    /// What became of it.
    ended: Option<Ended>,
}

impl UnderWay {
    pub(super) fn new(
        answer: Answer,
        request: &Request,
        path: &'static str,
        (arrived_ns, queued_ns): (u64, u64),
        most: u32,
        detour: Option<Detour>,
    ) -> Self {
        Self {
            has_role: !answer.ask.chat,
            has_tokens: answer.ask.results.is_none(),
            lines: vec![Line::default(); answer.ask.choices.into()],
            answer,
            connection: request.connection,
            arrival_ns: request.arrival_ns,
            path,
            body_bytes: request.body.len() as u64,
            arrived_ns,
            queued_ns,
            most,
            told: VecDeque::new(),
            detour,
            has_begun: false,
            first: 0,
            last: None,
        }
    }

    fn arrival(&self) -> Arrival {
        Arrival {
            arrived_ns: self.arrived_ns,
            queued_ns: self.queued_ns,
            most: self.most,
            streams: self.answer.ask.stream,
            has_tokens: self.has_tokens,
            choices: self.answer.ask.choices,
        }
    }

    /// What became of its answers, of those that ended.
    fn ends(&self) -> impl Iterator<Item = &Ended> {
        self.lines.iter().filter_map(|line| line.ended.as_ref())
    }

    /// When its last answer ended; none before.
    fn over_ns(&self) -> Option<u64> {
        let (_, at_ns) = self.last?;
        (self.ends().count() == self.lines.len()).then_some(at_ns)
    }

    /// Usage of all its answers. As in vLLM what was cached is that of the answer
    /// whose first event came first, and in one piece that of the last to end.
    fn usage(&self) -> Usage {
        let streams = self.answer.ask.stream;
        let told = if streams { self.first } else { self.last.map_or(0, |(choice, _)| choice) };
        let ended = self.lines[usize::from(told)].ended;
        self.answer.counted(self.ends(), ended.map_or(0, |ended| ended.cached_tokens))
    }

    /// The server's own timings; of several answers vLLM tells none, because none
    /// of theirs would be the request's.
    fn timings(&self) -> Option<Timings> {
        match self.lines.as_slice() {
            [Line { ended: Some(ended), .. }] => Some(timings(ended, self.queued_ns)),
            _ => None,
        }
    }

    /// Writes what is due as events, or the whole answer when it is over; false
    /// when nothing is due.
    fn pour(
        &mut self,
        now_ns: u64,
        begins_ns: u64,
        tells_timings: bool,
        piece: &mut Piece,
    ) -> bool {
        piece.connection = self.connection;
        if self.answer.ask.stream {
            self.pour_parts(now_ns, begins_ns, tells_timings, piece);
            return !piece.bytes.is_empty() || piece.last;
        }
        let Some(at_ns) = self.over_ns().filter(|at_ns| *at_ns <= now_ns) else {
            return false;
        };
        let usage = self.usage();
        let timings = self.timings().filter(|_| tells_timings);
        let ends: Vec<(u32, &str)> =
            self.lines.iter().filter_map(|line| line.ended.as_ref()).map(of_end).collect();
        let bytes = self.answer.whole(&ends, usage, timings.as_ref());
        piece.bytes.extend_from_slice(&bytes);
        if self.has_tokens {
            piece.tokens.push((begins_ns + at_ns, usage.completion));
        }
        piece.last = true;
        true
    }

    /// One event for each step that gave tokens, however many are overdue: a late
    /// server sends several in one write.
    fn pour_parts(&mut self, now_ns: u64, begins_ns: u64, tells_timings: bool, piece: &mut Piece) {
        while let Some((at_ns, part)) = self.told.front().copied().filter(|told| told.0 <= now_ns) {
            self.told.pop_front();
            match part {
                Part::Role => self.pour_role(piece),
                Part::Tokens { choice, tokens } => {
                    self.pour_role(piece);
                    let is_last = self.told.front().is_some_and(|next| next.1 == Part::End(choice));
                    let line = &mut self.lines[usize::from(choice)];
                    let passage = Passage { choice, from: line.written, count: tokens };
                    line.written += tokens;
                    let ended = line.ended.as_ref().filter(|_| is_last);
                    let finish_reason = ended.map(|ended| ended.finish.name());
                    self.answer.tokens_event(passage, finish_reason, &mut piece.bytes);
                    piece.tokens.push((begins_ns + at_ns, tokens));
                }
                Part::End(_) => {}
                Part::Tail => {
                    let usage = self.usage();
                    let timings = self.timings().filter(|_| tells_timings);
                    self.answer.last_events(usage, timings.as_ref(), &mut piece.bytes);
                    piece.last = true;
                }
                Part::Cut { choice, cut } => self.pour_cut(choice, cut, piece),
            }
        }
    }

    fn pour_role(&mut self, piece: &mut Piece) {
        if !std::mem::replace(&mut self.has_role, true) {
            self.answer.role_events(&mut piece.bytes);
        }
    }

    /// What stands in place of the next token.
    fn pour_cut(&mut self, choice: u8, cut: Cut, piece: &mut Piece) {
        match cut {
            Cut::Truncate => Answer::end_of_body(&mut piece.bytes),
            Cut::Error => Answer::error_events(&mut piece.bytes),
            Cut::Disconnect => {
                let from = piece.bytes.len();
                let written = self.lines[usize::from(choice)].written;
                let passage = Passage { choice, from: written, count: 1 };
                self.answer.tokens_event(passage, None, &mut piece.bytes);
                piece.bytes.truncate(from.midpoint(piece.bytes.len()));
                piece.breaks = Some(Break::Close);
            }
            Cut::Reset => piece.breaks = Some(Break::Reset),
        }
        piece.last = true;
    }

    /// Writes the comments that are due, and says when the next one is.
    fn pour_comments(&mut self, now_ns: u64, piece: &mut Piece) -> Option<u64> {
        let detour = self.detour.as_mut()?;
        let count = detour.take_comments(now_ns);
        (0..count).for_each(|_| Answer::comment(&mut piece.bytes));
        detour.comment_ns().filter(|_| count > 0)
    }

    /// Takes over what the detour let go.
    fn let_go(&mut self, id: u64, held: &mut Held) {
        let Some(detour) = &mut self.detour else { return };
        for (at_ns, part) in detour.planned.drain(..) {
            held.due.push(Reverse((at_ns, id)));
            if let Part::Cut { .. } = part {
                held.cuts.push(Reverse((at_ns, id)));
            }
            self.told.push_back((at_ns, part));
        }
    }
}

/// Tokens of an answer, and why it ended.
fn of_end(ended: &Ended) -> (u32, &'static str) {
    (ended.output_tokens, ended.finish.name())
}

/// vLLM's timings of a request: its first token is timed from its first step.
fn timings(ended: &Ended, queued_ns: u64) -> Timings {
    let ms = |from_ns: u64, until_ns: u64| until_ns.saturating_sub(from_ns) as f64 / 1e6;
    let generation_time_ms = ms(ended.first_token_ns, ended.ended_ns);
    let inference_ms = ms(ended.scheduled_ns, ended.ended_ns);
    let tokens = f64::from(ended.output_tokens);
    Timings {
        time_to_first_token_ms: ms(ended.scheduled_ns, ended.first_token_ns),
        generation_time_ms,
        queue_time_ms: ms(queued_ns, ended.scheduled_ns),
        mean_itl_ms: (ended.output_tokens > 1).then(|| generation_time_ms / (tokens - 1.0)),
        tokens_per_second: (inference_ms > 0.0).then(|| tokens / inference_ms * 1e3),
    }
}

/// What leaves by a detour, and so not in the order in which it was told.
#[derive(Debug, Default)]
struct Held {
    due: BinaryHeap<Reverse<(u64, u64)>>,
    /// Answers that are cut short, and when.
    cuts: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Held {
    /// Forgets what is held of answers that are over, once it is most of it.
    fn forget(&mut self, under_way: &HashMap<u64, UnderWay>) {
        if self.due.len() + self.cuts.len() > FEWEST_HELD + 64 * under_way.len() {
            self.due.retain(|Reverse((_, id))| under_way.contains_key(id));
            self.cuts.retain(|Reverse((_, id))| under_way.contains_key(id));
        }
    }
}

/// Held parts below which none is looked at for being of an answer that is over.
const FEWEST_HELD: usize = 4096;

/// What was heard of the model.
#[derive(Debug)]
pub(super) struct Hearing {
    under_way: HashMap<u64, UnderWay>,
    /// Requests in the order in which something of them is due.
    due: VecDeque<(u64, u64)>,
    held: Held,
    pub(super) telemetry: Telemetry,
    pub(super) http: Http,
    tells_timings: bool,
}

impl Hearing {
    /// # Errors
    /// Settings that cannot be together, with the arithmetic.
    pub(super) fn new(config: &ModelledConfig) -> Result<Self, SettingsError> {
        Ok(Self {
            under_way: HashMap::new(),
            due: VecDeque::new(),
            held: Held::default(),
            telemetry: Telemetry::new(&config.settings, config.profile)?,
            http: Http::default(),
            tells_timings: config.per_request_metrics,
        })
    }

    pub(super) fn begins(&mut self, id: u64, mut request: UnderWay) {
        self.telemetry.arrives(id, request.arrival());
        request.let_go(id, &mut self.held);
        let comment_ns = request.detour.as_ref().and_then(Detour::comment_ns);
        self.held.due.extend(comment_ns.map(|at_ns| Reverse((at_ns, id))));
        self.under_way.insert(id, request);
    }

    /// When something is due next.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.next_due().map(|(at_ns, _)| at_ns)
    }

    fn next_due(&self) -> Option<(u64, u64)> {
        let held = self.held.due.peek().map(|Reverse(held)| *held);
        self.due.front().copied().into_iter().chain(held).min()
    }

    /// When an answer is cut short next.
    pub(super) fn cut_ns(&self) -> Option<u64> {
        self.held.cuts.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// An answer that is cut short by this instant.
    pub(super) fn take_cut(&mut self, now_ns: u64) -> Option<u64> {
        self.cut_ns().filter(|at_ns| *at_ns <= now_ns)?;
        self.held.cuts.pop().map(|Reverse((_, id))| id)
    }

    /// Fills `piece` with what is due next; false when nothing is. Model time
    /// began at `begins_ns` of the monotonic clock.
    pub(super) fn pour(&mut self, now_ns: u64, begins_ns: u64, piece: &mut Piece) -> bool {
        while let Some(next) = self.next_due().filter(|(at_ns, _)| *at_ns <= now_ns) {
            if self.due.front() == Some(&next) {
                self.due.pop_front();
            } else {
                self.held.due.pop();
            }
            let (_, id) = next;
            // Its client may have left, or it was written when it was overdue.
            let Some(request) = self.under_way.get_mut(&id) else { continue };
            if let Some(at_ns) = request.pour_comments(now_ns, piece) {
                self.held.due.push(Reverse((at_ns, id)));
            }
            if !request.pour(now_ns, begins_ns, self.tells_timings, piece) {
                continue;
            }
            if piece.last {
                self.over(id, now_ns + begins_ns, piece);
            }
            return true;
        }
        false
    }

    fn over(&mut self, id: u64, now_ns: u64, piece: &Piece) {
        let Some(request) = self.under_way.remove(&id) else { return };
        // A stream's head gives no length; a whole answer's head is no body.
        let body = (!request.answer.ask.stream).then(|| {
            let head = piece.bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n");
            (piece.bytes.len() - head.map_or(0, |head| head + 4)) as u64
        });
        let duration_s = now_ns.saturating_sub(request.arrival_ns) as f64 / 1e9;
        self.http.answered((request.path, "POST"), 200, request.body_bytes, body, duration_s);
    }

    /// A request's client left. What it was told of and was not written is
    /// forgotten.
    pub(super) fn leaves(&mut self, id: u64, answers: u32) {
        self.telemetry.leaves(id, answers);
        self.under_way.remove(&id);
        self.held.forget(&self.under_way);
    }
}

impl Audience for Hearing {
    fn begun(&mut self, replica: usize, choice: Choice, begun: &Begun) {
        self.telemetry.begun(replica, choice, begun);
    }

    fn tokens(&mut self, choice: Choice, at_ns: u64, tokens: u32) {
        self.telemetry.tokens(choice, at_ns, tokens);
        let Choice { request: id, index } = choice;
        let Some(request) = self.under_way.get_mut(&id) else { return };
        if !request.has_tokens {
            return;
        }
        if !std::mem::replace(&mut request.has_begun, true) {
            request.first = index;
        }
        if let Some(detour) = &mut request.detour {
            detour.tokens(at_ns, index, tokens);
            request.let_go(id, &mut self.held);
        } else if request.answer.ask.stream {
            request.told.push_back((at_ns, Part::Tokens { choice: index, tokens }));
            self.due.push_back((at_ns, id));
        }
    }

    fn ended(&mut self, replica: usize, choice: Choice, ended: &Ended, at_ns: u64) {
        self.telemetry.ended(replica, choice, ended, at_ns);
        let Choice { request: id, index } = choice;
        let Some(request) = self.under_way.get_mut(&id) else { return };
        if ended.finish == Finish::Abort {
            return;
        }
        request.lines[usize::from(index)].ended = Some(*ended);
        request.last = Some((index, at_ns));
        let is_last = request.over_ns().is_some();
        if let Some(detour) = &mut request.detour {
            detour.end(at_ns, index, is_last);
            request.let_go(id, &mut self.held);
        } else if request.answer.ask.stream {
            // Its last tokens are due then, and carry its end.
            request.told.push_back((at_ns, Part::End(index)));
            request.told.extend(is_last.then_some((at_ns, Part::Tail)));
        } else if is_last {
            self.due.push_back((at_ns, id));
        }
    }

    fn step(&mut self, replica: usize, report: &StepReport) {
        self.telemetry.step(replica, report);
    }
}
