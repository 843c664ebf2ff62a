//! What a server counts of its requests and tells at `/metrics`, from what the
//! engine model says, whichever clock it lives by.

use std::collections::HashMap;

use measure::{At, Record, Span};
use sim::client::{Observer, Watcher};
use sim::{
    Audience, Begun, Choice, Cluster, Ended, Finish, Replica, Settings, SettingsError, StepReport,
};
use wire::exposition::{EngineState, Facts, Http, Profile, Snapshot};

/// A request as it reaches a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it came.
    pub arrived_ns: u64,
    /// When it reaches the scheduler.
    pub queued_ns: u64,
    /// The most tokens that it allows.
    pub most: u32,
    /// Whether its answer is streamed.
    pub streams: bool,
    /// False for vectors and scores.
    pub has_tokens: bool,
    /// The answers that it asks for.
    pub choices: u8,
}

/// A request that has not ended. As in vLLM each answer counts as a request of its
/// own, but for what was asked for with it.
#[derive(Clone, Debug)]
struct Counted {
    arrival: Arrival,
    /// Where its answers are written.
    replica: usize,
    /// When tokens of each answer were told last.
    told_at_ns: Vec<Option<u64>>,
    /// Answers that have not ended.
    left: u8,
    /// Tokens of the longest answer that has.
    longest: u32,
}

/// Tokens of a step that is being told.
#[derive(Clone, Copy, Debug, Default)]
struct StepTokens {
    prompt: u64,
    generation: u64,
}

/// The counters of a server on the engine model. Instants are in model time.
#[derive(Debug)]
pub struct Telemetry {
    facts: Facts,
    profile: Profile,
    under_way: HashMap<u64, Counted>,
    engines: Vec<EngineState>,
    steps: Vec<StepTokens>,
    /// Accelerators that share a replica's work.
    accelerators: f64,
    /// Bytes that one computed token writes, on all of them.
    written_per_token: f64,
    drafted: u32,
}

impl Telemetry {
    /// The counters of a server that has done nothing.
    ///
    /// # Errors
    /// Settings that cannot be together, with the arithmetic.
    pub fn new(settings: &Settings, profile: Profile) -> Result<Self, SettingsError> {
        let replicas = (settings.prefill_replicas + settings.replicas) as usize;
        let mut idle = profile.idle_engine(settings.context());
        idle.accepted = vec![0; settings.num_speculative_tokens as usize];
        Ok(Self {
            facts: facts(settings)?,
            profile,
            under_way: HashMap::new(),
            engines: vec![idle; replicas],
            steps: vec![StepTokens::default(); replicas],
            accelerators: f64::from(settings.accelerators_per_replica()),
            written_per_token: settings.cost().kv_bytes_per_token,
            drafted: settings.num_speculative_tokens,
        })
    }

    /// What does not change while the server runs.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// A request has come.
    pub fn arrives(&mut self, id: u64, arrival: Arrival) {
        let told_at_ns = vec![None; arrival.choices.into()];
        let left = arrival.choices;
        let counted = Counted { arrival, replica: 0, told_at_ns, left, longest: 0 };
        self.under_way.insert(id, counted);
    }

    /// The engine was told that nobody waits for a request any more, of which so
    /// many answers were under way.
    pub fn leaves(&mut self, id: u64, answers: u32) {
        if let Some(counted) = self.under_way.remove(&id) {
            self.engines[counted.replica].finished.abort += u64::from(answers);
        }
    }

    /// Takes in what replicas count themselves.
    pub fn look_at(&mut self, replicas: &[Replica]) {
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

    /// What `/metrics` says. `model` is the name under which the model is served,
    /// counting began `created_s` after 1970.
    pub fn text(&self, model: &str, created_s: f64, http: &Http) -> String {
        let facts = &self.facts;
        self.profile.write(&Snapshot { model, created_s, facts, engines: &self.engines, http })
    }
}

impl Audience for Telemetry {
    fn begun(&mut self, replica: usize, _choice: Choice, begun: &Begun) {
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

    fn tokens(&mut self, choice: Choice, at_ns: u64, tokens: u32) {
        let request =
            self.under_way.get_mut(&choice.request).filter(|request| request.arrival.has_tokens);
        let Some(request) = request else { return };
        let engine = &mut self.engines[request.replica];
        engine.generation_tokens += u64::from(tokens);
        self.steps[request.replica].generation += u64::from(tokens);
        let told_at_ns = &mut request.told_at_ns[usize::from(choice.index)];
        let Some(before_ns) = told_at_ns.replace(at_ns) else {
            let ttft_ns = at_ns.saturating_sub(request.arrival.arrived_ns);
            return engine.answers(request.arrival.streams).ttft_s.observe(ttft_ns as f64 / 1e9);
        };
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

    fn ended(&mut self, replica: usize, _choice: Choice, ended: &Ended, at_ns: u64) {
        if ended.finish == Finish::Abort {
            return;
        }
        let Some(counted) = self.under_way.get_mut(&ended.id) else { return };
        counted.left -= 1;
        counted.longest = counted.longest.max(ended.output_tokens);
        let (arrival, longest, is_last) = (counted.arrival, counted.longest, counted.left == 0);
        let engine = &mut self.engines[replica];
        if is_last {
            self.under_way.remove(&ended.id);
            engine.request_choices.observe(f64::from(arrival.choices));
            if arrival.has_tokens {
                engine.request_longest_tokens.observe(f64::from(longest));
            }
        }
        match ended.finish {
            Finish::Length if arrival.has_tokens => engine.finished.length += 1,
            _ => engine.finished.stop += 1,
        }
        let seconds = |from_ns: u64, until_ns: u64| until_ns.saturating_sub(from_ns) as f64 / 1e9;
        engine.queue_s.observe(seconds(arrival.queued_ns, ended.scheduled_ns));
        engine.prefill_s.observe(seconds(ended.scheduled_ns, ended.first_token_ns));
        let decode_s = seconds(ended.first_token_ns, ended.ended_ns);
        engine.decode_s.observe(decode_s);
        engine.inference_s.observe(seconds(ended.scheduled_ns, ended.ended_ns));
        let computed = ended.prompt_tokens - ended.cached_tokens;
        engine.request_prompt_tokens.observe(f64::from(ended.prompt_tokens));
        engine.request_computed_tokens.observe(f64::from(computed));
        if !arrival.has_tokens {
            return;
        }
        engine.request_generation_tokens.observe(f64::from(ended.output_tokens));
        engine.request_max_tokens.observe(f64::from(arrival.most));
        let answers = engine.answers(arrival.streams);
        answers.ended += 1;
        answers.prompt_tokens += u64::from(ended.prompt_tokens);
        answers.generation_tokens += u64::from(ended.output_tokens);
        answers.e2e_s.observe(seconds(arrival.arrived_ns, at_ns));
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

/// What does not change while a server with these settings runs.
fn facts(settings: &Settings) -> Result<Facts, SettingsError> {
    let memory = settings.memory();
    let blocks = settings.blocks()?;
    let dtype = settings.kv_cache_dtype;
    Ok(Facts {
        block_size: settings.block_size,
        blocks,
        blocks_set: settings.num_gpu_blocks_override,
        context: settings.context(),
        // vLLM's word for the precision that the model has anyhow.
        cache_dtype: match dtype.name() {
            "bf16" => "auto".to_owned(),
            other => other.to_owned(),
        },
        gpu_memory_utilization: settings.gpu_memory_utilization,
        enable_prefix_caching: settings.enable_prefix_caching,
        sliding_window: settings.limits(0)?.window,
        kv_cache_bytes: f64::from(blocks) * f64::from(settings.block_size) * memory.kv_per_token,
        weight_bytes: memory.weights,
        drafted: settings.num_speculative_tokens,
    })
}

/// Scrapes of a run in virtual time: what `/metrics` would say before the first
/// request, at regular instants, and when the last answer has come. There is no
/// HTTP server, so nothing is told of one.
pub struct Scraper<F> {
    telemetry: Telemetry,
    model: String,
    interval_ns: u64,
    /// The engine's instant at which the run begins, once it has.
    begins_ns: Option<u64>,
    next_ns: u64,
    /// Looks since the distance between them was changed.
    looks: u32,
    take: F,
}

/// Looks after which the distance between them doubles: a run may simulate a week,
/// and looking at it must not take longer than simulating it.
const LOOKS: u32 = 1_000;

impl<F: FnMut(At, String)> Scraper<F> {
    /// One that gives each text to `take`, with its instant on the run's clock.
    /// `model` is the name under which the model is served.
    ///
    /// # Errors
    /// Settings that cannot be together, with the arithmetic.
    pub fn new(
        settings: &Settings,
        profile: Profile,
        model: String,
        interval: Span,
        take: F,
    ) -> Result<Self, SettingsError> {
        Ok(Self {
            telemetry: Telemetry::new(settings, profile)?,
            model,
            interval_ns: u64::try_from(interval.us()).unwrap_or(0).max(1).saturating_mul(1_000),
            begins_ns: None,
            next_ns: 0,
            looks: 0,
            take,
        })
    }
}

impl<F: FnMut(At, String)> Audience for Scraper<F> {
    fn begun(&mut self, replica: usize, choice: Choice, begun: &Begun) {
        self.telemetry.begun(replica, choice, begun);
    }

    fn tokens(&mut self, choice: Choice, at_ns: u64, tokens: u32) {
        self.telemetry.tokens(choice, at_ns, tokens);
    }

    fn ended(&mut self, replica: usize, choice: Choice, ended: &Ended, at_ns: u64) {
        self.telemetry.ended(replica, choice, ended, at_ns);
    }

    fn step(&mut self, replica: usize, report: &StepReport) {
        self.telemetry.step(replica, report);
    }
}

impl<F: FnMut(At, String)> Watcher for Scraper<F> {
    fn submitted(&mut self, id: u64, (arrived_ns, queued_ns): (u64, u64), most: u32, choices: u8) {
        let (streams, has_tokens) = (true, true);
        let arrival = Arrival { arrived_ns, queued_ns, most, streams, has_tokens, choices };
        self.telemetry.arrives(id, arrival);
    }

    fn left(&mut self, id: u64, answers: u32) {
        self.telemetry.leaves(id, answers);
    }

    fn next_look_ns(&self) -> u64 {
        self.next_ns
    }

    fn look(&mut self, at_ns: u64, cluster: &Cluster) {
        let begins_ns = *self.begins_ns.get_or_insert(at_ns);
        self.looks += 1;
        if self.looks == LOOKS {
            (self.looks, self.interval_ns) = (0, self.interval_ns.saturating_mul(2));
        }
        self.next_ns = at_ns.saturating_add(self.interval_ns);
        self.telemetry.look_at(cluster.replicas());
        // A scrape is taken when what it tells has happened, not before.
        let at = At::from_us((at_ns - begins_ns).div_ceil(1_000) as i64);
        (self.take)(at, self.telemetry.text(&self.model, 0.0, &Http::default()));
    }
}

/// An observer, and a scraper beside it.
pub struct Scraped<'a, O, F> {
    /// Who hears of records.
    pub observer: &'a mut O,
    /// Who hears of the engine.
    pub scraper: Scraper<F>,
}

impl<O: Observer, F: FnMut(At, String)> Observer for Scraped<'_, O, F> {
    fn sent(&mut self, at: At) {
        self.observer.sent(at);
    }

    fn ended(&mut self, record: Record) {
        self.observer.ended(record);
    }

    fn step(&mut self, replica: usize, report: &StepReport) {
        self.observer.step(replica, report);
    }

    fn counted(&mut self, record: &Record, gaps: &[(u32, u32)]) {
        self.observer.counted(record, gaps);
    }

    fn watcher(&mut self) -> Option<&mut dyn Watcher> {
        Some(&mut self.scraper)
    }
}
