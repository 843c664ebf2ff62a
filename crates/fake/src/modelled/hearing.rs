//! What the model tells as time goes on: tokens that are due, and the counters.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use sim::{Audience, Begun, Cluster, Ended, Finish, Replica, StepReport};
use wire::exposition::{EngineState, Http, Profile};

use super::ModelledConfig;
use super::detour::{Detour, Part};
use crate::faults::Cut;
use crate::openai::{Answer, Timings};
use crate::request::Request;
use crate::script::{Break, Piece};

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
    /// Where its answer is written.
    replica: usize,
    /// What was told of a stream and not written: when it is due, what it is.
    told: VecDeque<(u64, Part)>,
    /// The way out, where a fault changes it.
    detour: Option<Detour>,
    told_at_ns: Option<u64>,
    written: u32,
    has_role: bool,
    /// False for vectors and scores.
    has_tokens: bool,
    /// What became of it, and when it is over.
    ended: Option<(Ended, u64)>,
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
            answer,
            connection: request.connection,
            arrival_ns: request.arrival_ns,
            path,
            body_bytes: request.body.len() as u64,
            arrived_ns,
            queued_ns,
            most,
            replica: 0,
            told: VecDeque::new(),
            detour,
            told_at_ns: None,
            written: 0,
            ended: None,
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
        let Some((ended, at_ns)) = self.ended.filter(|(_, at_ns)| *at_ns <= now_ns) else {
            return false;
        };
        let usage = self.answer.counted(&ended);
        let timings = tells_timings.then(|| timings(&ended, self.queued_ns));
        let bytes = self.answer.whole(ended.finish.name(), usage, timings.as_ref());
        piece.bytes.extend_from_slice(&bytes);
        if self.has_tokens {
            piece.tokens.push((begins_ns + at_ns, ended.output_tokens));
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
                Part::Tokens(tokens) => {
                    self.pour_role(piece);
                    let is_last = matches!(self.told.front(), Some((_, Part::Tail)));
                    let ended = self.ended.as_ref().filter(|_| is_last);
                    let finish_reason = ended.map(|(ended, _)| ended.finish.name());
                    self.answer.tokens_event(self.written, tokens, finish_reason, &mut piece.bytes);
                    self.written += tokens;
                    piece.tokens.push((begins_ns + at_ns, tokens));
                }
                Part::Tail => {
                    let Some((ended, _)) = self.ended else { continue };
                    let usage = self.answer.counted(&ended);
                    let timings = tells_timings.then(|| timings(&ended, self.queued_ns));
                    self.answer.last_events(usage, timings.as_ref(), &mut piece.bytes);
                    piece.last = true;
                }
                Part::Cut(cut) => self.pour_cut(cut, piece),
            }
        }
    }

    fn pour_role(&mut self, piece: &mut Piece) {
        if !std::mem::replace(&mut self.has_role, true) {
            self.answer.role_event(&mut piece.bytes);
        }
    }

    /// What stands in place of the next token.
    fn pour_cut(&mut self, cut: Cut, piece: &mut Piece) {
        match cut {
            Cut::Truncate => Answer::end_of_body(&mut piece.bytes),
            Cut::Error => Answer::error_events(&mut piece.bytes),
            Cut::Disconnect => {
                let from = piece.bytes.len();
                self.answer.tokens_event(self.written, 1, None, &mut piece.bytes);
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
            if let Part::Cut(_) = part {
                held.cuts.push(Reverse((at_ns, id)));
            }
            self.told.push_back((at_ns, part));
        }
    }
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

/// Tokens of a step that is being told.
#[derive(Clone, Copy, Debug, Default)]
struct StepTokens {
    prompt: u64,
    generation: u64,
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
    /// The counters of each replica.
    pub(super) engines: Vec<EngineState>,
    pub(super) http: Http,
    steps: Vec<StepTokens>,
    profile: Profile,
    tells_timings: bool,
    /// Accelerators that share a replica's work.
    accelerators: f64,
    /// Bytes that one computed token writes, on all of them.
    written_per_token: f64,
    drafted: u32,
}

impl Hearing {
    pub(super) fn new(config: &ModelledConfig, cluster: &Cluster) -> Self {
        let settings = &config.settings;
        let replicas = cluster.replicas().len();
        let mut idle = config.profile.idle_engine(settings.context());
        idle.accepted = vec![0; settings.num_speculative_tokens as usize];
        Self {
            under_way: HashMap::new(),
            due: VecDeque::new(),
            held: Held::default(),
            engines: vec![idle; replicas],
            http: Http::default(),
            steps: vec![StepTokens::default(); replicas],
            profile: config.profile,
            tells_timings: config.per_request_metrics,
            accelerators: f64::from(settings.accelerators_per_replica()),
            written_per_token: settings.cost().kv_bytes_per_token,
            drafted: settings.num_speculative_tokens,
        }
    }

    pub(super) fn begins(&mut self, id: u64, mut request: UnderWay) {
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
    pub(super) fn leaves(&mut self, id: u64, was_under_way: bool) {
        self.aborted(id, was_under_way);
        self.under_way.remove(&id);
        self.held.forget(&self.under_way);
    }

    /// The engine was told that nobody waits for an answer any more.
    pub(super) fn aborted(&mut self, id: u64, was_under_way: bool) {
        if let Some(request) = self.under_way.get(&id).filter(|_| was_under_way) {
            self.engines[request.replica].finished.abort += 1;
        }
    }

    /// Takes in what replicas count themselves.
    pub(super) fn look_at(&mut self, replicas: &[Replica]) {
        for (engine, replica) in self.engines.iter_mut().zip(replicas) {
            let (gauges, prefix) = (replica.gauges(), replica.prefix());
            engine.running = gauges.running as u64;
            engine.waiting = gauges.waiting as u64;
            engine.deferred = gauges.deferred as u64;
            engine.kv_usage = gauges.kv_usage;
            (engine.prefix_queries, engine.prefix_hits) = (prefix.queries, prefix.hits);
            engine.preemptions = replica.totals().preemptions;
        }
    }
}

impl Audience for Hearing {
    fn begun(&mut self, replica: usize, begun: &Begun) {
        let Some(request) = self.under_way.get_mut(&begun.id) else { return };
        request.replica = replica;
        // The last token of a prompt is computed in any case.
        let most = begun.transferred.min(begun.prompt_tokens.saturating_sub(1));
        let transferred = most.saturating_sub(begun.cached_tokens);
        let computed = begun.prompt_tokens - begun.cached_tokens - transferred;
        let tokens = &mut self.engines[replica].prompt_tokens;
        tokens.computed += u64::from(computed);
        tokens.found += u64::from(begun.cached_tokens);
        tokens.transferred += u64::from(transferred);
        self.steps[replica].prompt += u64::from(begun.prompt_tokens);
    }

    fn tokens(&mut self, id: u64, at_ns: u64, tokens: u32) {
        let Some(request) = self.under_way.get_mut(&id) else { return };
        if !request.has_tokens {
            return;
        }
        let engine = &mut self.engines[request.replica];
        engine.generation_tokens += u64::from(tokens);
        self.steps[request.replica].generation += u64::from(tokens);
        match request.told_at_ns.replace(at_ns) {
            None => {
                let ttft_ns = at_ns.saturating_sub(request.arrived_ns);
                engine.answers(request.answer.ask.stream).ttft_s.observe(ttft_ns as f64 / 1e9);
            }
            Some(before_ns) => {
                let gap_s = (at_ns - before_ns) as f64 / 1e9;
                match self.profile {
                    Profile::Vllm => engine.itl_s.observe(gap_s),
                    // SGLang divides a gap among the tokens that end it.
                    Profile::Sglang => engine.itl_s.observe_shares(gap_s, tokens),
                }
                if self.drafted > 0 {
                    engine.drafts += 1;
                    let taken = engine.accepted.iter_mut().take(tokens.saturating_sub(1) as usize);
                    taken.for_each(|taken| *taken += 1);
                }
            }
        }
        if let Some(detour) = &mut request.detour {
            detour.tokens(at_ns, tokens);
            request.let_go(id, &mut self.held);
        } else if request.answer.ask.stream {
            request.told.push_back((at_ns, Part::Tokens(tokens)));
            self.due.push_back((at_ns, id));
        }
    }

    fn ended(&mut self, replica: usize, ended: &Ended, at_ns: u64) {
        let Some(request) = self.under_way.get_mut(&ended.id) else { return };
        if ended.finish == Finish::Abort {
            return;
        }
        request.ended = Some((*ended, at_ns));
        let streams = request.answer.ask.stream;
        if let Some(detour) = &mut request.detour {
            detour.end(at_ns);
            request.let_go(ended.id, &mut self.held);
        } else if streams {
            // Its last tokens are due then, and carry its end.
            request.told.push_back((at_ns, Part::Tail));
        } else {
            self.due.push_back((at_ns, ended.id));
        }
        let engine = &mut self.engines[replica];
        match ended.finish {
            Finish::Length if request.has_tokens => engine.finished.length += 1,
            _ => engine.finished.stop += 1,
        }
        let seconds = |from_ns: u64, until_ns: u64| until_ns.saturating_sub(from_ns) as f64 / 1e9;
        engine.queue_s.observe(seconds(request.queued_ns, ended.scheduled_ns));
        engine.prefill_s.observe(seconds(ended.scheduled_ns, ended.first_token_ns));
        let decode_s = seconds(ended.first_token_ns, ended.ended_ns);
        engine.decode_s.observe(decode_s);
        engine.inference_s.observe(seconds(ended.scheduled_ns, ended.ended_ns));
        let computed = ended.prompt_tokens - ended.cached_tokens;
        engine.request_prompt_tokens.observe(f64::from(ended.prompt_tokens));
        engine.request_computed_tokens.observe(f64::from(computed));
        engine.request_choices.observe(1.0);
        if !request.has_tokens {
            return;
        }
        engine.request_generation_tokens.observe(f64::from(ended.output_tokens));
        engine.request_max_tokens.observe(f64::from(request.most));
        let answers = engine.answers(streams);
        answers.ended += 1;
        answers.prompt_tokens += u64::from(ended.prompt_tokens);
        answers.generation_tokens += u64::from(ended.output_tokens);
        answers.e2e_s.observe(seconds(request.arrived_ns, at_ns));
        let after_first = ended.output_tokens.saturating_sub(1);
        let each_s = if after_first > 0 { decode_s / f64::from(after_first) } else { 0.0 };
        // vLLM counts an answer of one token as 0, SGLang leaves it out.
        if after_first > 0 || self.profile == Profile::Vllm {
            answers.tpot_s.observe(each_s);
        }
    }

    fn step(&mut self, replica: usize, report: &StepReport) {
        let engine = &mut self.engines[replica];
        let written = f64::from(report.work.tokens) * self.written_per_token;
        engine.flops += report.cost.flops / self.accelerators;
        engine.read_bytes += (report.cost.bytes - written).max(0.0) / self.accelerators;
        engine.written_bytes += written / self.accelerators;
        let StepTokens { prompt, generation } = std::mem::take(&mut self.steps[replica]);
        if generation > 0 {
            engine.iteration_tokens.observe((prompt + generation) as f64);
        }
    }
}
