//! What follows from the figures: causes under the names of the rules, and what
//! could not be told.

use measure::finding::{Confidence, Evidence, Finding, From};
use measure::said;
use measure::said::Said;

use super::figures::{Figures, Ladder, Level};
use super::{Experiment, LeftOut, Probe, Taken};
use crate::rule::{self, Case};

/// What is known of the target of the experiments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// The address, as it may be shown.
    pub target: String,
    /// The model asked for.
    pub model: String,
    /// What serves, where it is known.
    pub engine: Option<String>,
    /// True where the engine model answered.
    pub simulated: bool,
}

/// What the experiments come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusions {
    /// The figures.
    pub figures: Figures,
    /// The trials, in their order.
    pub taken: Vec<Taken>,
    /// Causes, the one that explains most first.
    pub findings: Vec<Finding>,
    /// What could not be told, and why.
    pub missing: Vec<Said>,
    /// Experiments of which something was not made.
    pub left_out: Vec<LeftOut>,
    /// Why it ended before its end, where it did.
    pub halted: Option<Said>,
    /// Requests that ended well, and that failed.
    pub ok: usize,
    /// Those that failed.
    pub failed: usize,
}

impl Probe {
    /// What follows from what was found so far.
    pub fn conclude(&self, context: &Context) -> Conclusions {
        let figures = Figures::of(self);
        let mut missing = Vec::new();
        let mut cases: Vec<(&'static str, Case)> = Vec::new();
        cases.extend(round_trip(&figures).map(|case| ("distance", case)));
        cases.extend(front_end(&figures).map(|case| ("front_end", case)));
        cases.extend(what_holds(&figures, &mut missing));
        cases.extend(slowed(&figures).map(|case| ("prefill_slowed", case)));
        cases.extend(by_context(&figures).map(|case| ("kv_bandwidth", case)));
        cases.extend(not_found_again(&figures).map(|case| ("prefix_not_hit", case)));
        cases.extend(buffered(&figures).map(|case| ("proxy_buffering", case)));
        refused(&figures, &mut missing);
        missing.extend(self.ended_early(&figures));
        let command = self.command(context);
        let mut findings: Vec<Finding> = cases
            .into_iter()
            .filter_map(|(id, case)| {
                let rule = rule::find(id)?;
                let finding = rule::found(rule, case, context.engine.as_deref());
                Some(Finding { experiment: confirm(), command: command.clone(), ..finding })
            })
            .collect();
        findings.sort_by(|a, b| b.confidence.cmp(&a.confidence).then(b.share.total_cmp(&a.share)));
        missing.push(said!(
            "hidden replicas and routing, communication against bandwidth, throttling against neighbours: \
             no load of a client tells them apart",
            "隐藏的副本与路由、通信与带宽、降频与邻居干扰：客户端负载无法区分"
        ));
        Conclusions {
            findings,
            missing,
            left_out: self.left_out.clone(),
            halted: self.halted.clone(),
            ok: self.taken.iter().map(|taken| taken.observed.samples.len()).sum(),
            failed: self.taken.iter().map(|taken| taken.observed.failed).sum(),
            taken: self.taken.clone(),
            figures,
        }
    }

    /// Says so where answers were shorter than what was asked for.
    fn ended_early(&self, figures: &Figures) -> Option<Said> {
        let (output, asked) = (figures.baseline?.output, f64::from(self.limits().output));
        (output < SHORT_ANSWERS * asked).then(|| {
            said!(
                "what answers of {asked:.0} tokens take: they ended after {output:.0} on average; give \
                 --ignore-eos where the engine takes it",
                "{asked:.0} token 回答的耗时：平均只输出 {output:.0} token；引擎支持时请加 --ignore-eos",
                asked = asked,
                output = output,
            )
        })
    }

    /// A load under which the server's own metrics decide.
    fn command(&self, context: &Context) -> Option<String> {
        let limits = self.limits();
        let reached =
            self.taken.iter().filter(|taken| taken.trial.experiment == Experiment::Ladder);
        let users = reached.map(|taken| taken.trial.press.users()).max().unwrap_or(1);
        let command = format!(
            "goodput bench {{target}} -c {users} -n {} --isl {} --osl {}",
            20 * users,
            limits.input,
            limits.output
        );
        rule::command(&command, &context.target, "")
    }
}

/// Share of the length asked for below which answers ended early.
const SHORT_ANSWERS: f64 = 0.9;

fn confirm() -> Said {
    said!(
        "the server's own metrics under such a load say whether it is so",
        "在同样负载下对照服务端自身指标即可证实或推翻"
    )
}

fn probed(what: Said, value: f64, unit: &'static str) -> Evidence {
    Evidence { what, value, unit, from: From::Probe }
}

/// Share of TTFT from which on the way is what takes it.
const FAR: f64 = 0.3;

/// N1: what a prompt of the workload takes alone is mostly the way.
fn round_trip(figures: &Figures) -> Option<Case> {
    let (transport, baseline) = (figures.transport.as_ref()?, figures.baseline?);
    let share = transport.connect_ms / baseline.ttft_ms;
    if share < FAR || transport.connect_ms < 1.0 {
        return None;
    }
    let says = said!(
        "a round trip takes {trip:.1} ms, {share:.0} % of the TTFT of a request alone ({ttft:.0} ms)",
        "一次往返 {trip:.1} ms，占单请求 TTFT（{ttft:.0} ms）的 {share:.0} %",
        trip = transport.connect_ms,
        share = 100.0 * share,
        ttft = baseline.ttft_ms,
    );
    let mut evidence = vec![
        probed(said!("quickest handshake", "最快握手"), transport.connect_ms, "ms"),
        probed(said!("TTFT alone", "单请求 TTFT"), baseline.ttft_ms, "ms"),
    ];
    evidence.extend(
        figures
            .lengths
            .as_ref()
            .and_then(|lengths| lengths.fit.ok())
            .map(|fit| probed(said!("fixed part of TTFT", "TTFT 固定部分"), fit.curve.a, "ms")),
    );
    Some(Case::new(Confidence::Likely, share, says, evidence))
}

/// How many times longer cheap requests take beside a load, and at least, ms.
const SLOW_TIMES: f64 = 3.0;
const SLOW_MS: f64 = 20.0;

/// P8: what needs no accelerator is slow under load too.
fn front_end(figures: &Figures) -> Option<Case> {
    let transport = figures.transport.as_ref()?;
    let ([_, idle], [_, loaded]) = (transport.answer_ms?, transport.loaded_ms?);
    if loaded < SLOW_TIMES * idle || loaded - idle < SLOW_MS {
        return None;
    }
    let users = transport.loaded_users?;
    let level = figures.ladders.first()?.levels.iter().find(|level| level.users == users)?;
    let share = (loaded - idle) / level.ttft_ms.max(1e-6);
    let says = said!(
        "GET /v1/models takes {loaded:.0} ms beside {users} users and {idle:.0} ms alone (P95): what needs \
         no accelerator waits too",
        "GET /v1/models 在 {users} 并发下为 {loaded:.0} ms，空闲时 {idle:.0} ms（P95）：不需要加速卡的请求也在等",
        loaded = loaded,
        users = users,
        idle = idle,
    );
    let evidence = vec![
        probed(said!("P95 of a cheap request, alone", "廉价请求 P95（空闲）"), idle, "ms"),
        probed(said!("P95 of a cheap request under load", "廉价请求 P95（负载下）"), loaded, "ms"),
    ];
    let confidence = if share > 0.25 { Confidence::Likely } else { Confidence::Possible };
    Some(Case::new(confidence, share, says, evidence))
}

/// How far in the direction of what it would be by tokens a limit may move, as
/// a power of that, and still be seats; and from which on it is tokens.
const SEATS: f64 = 0.3;
const TOKENS: f64 = 0.6;

/// Q1, K1 or Q3: what holds the number of answers that come at a time.
fn what_holds(figures: &Figures, missing: &mut Vec<Said>) -> Option<(&'static str, Case)> {
    let short = figures.ladders.first()?;
    let top = short.top()?;
    let long = figures.ladders.get(1);
    if top.waits && top.is_of_prompts() {
        return Some(("prefill_backlog", backlog(top)));
    }
    let of_long = long.and_then(|long| Some((long, long.top()?)));
    let (Some(limit), Some((long, long_top))) = (short.limit(), of_long) else {
        return one_ladder(short, top, of_long, missing);
    };
    if long_top.waits && long_top.is_of_prompts() {
        missing.push(said!(
            "seats or KV cache: with the longer prompts, prefill takes most of the time",
            "席位还是 KV：输入加长后预填充占据了大部分时间"
        ));
        return Some(("seat_limit", either(short, limit)));
    }
    // Without a limit there, the same number at least is held.
    let longer = long.limit().unwrap_or(f64::from(long_top.users));
    Some(told_apart((limit, top), (longer, long_top)))
}

/// Tokens that a request holds on average.
fn holds(level: &Level) -> f64 {
    level.input + level.output / 2.0
}

fn told_apart(
    (limit, top): (f64, &Level),
    (longer, long_top): (f64, &Level),
) -> (&'static str, Case) {
    let moved = (limit / longer.max(1e-6)).ln() / (holds(long_top) / holds(top)).ln();
    let evidence = vec![
        probed(
            said!("served at a time, prompts of the workload", "同时处理数（原长度）"),
            limit,
            "",
        ),
        probed(said!("served at a time, longer prompts", "同时处理数（更长输入）"), longer, ""),
        probed(
            said!("tokens held, prompts of the workload", "占用 token（原长度）"),
            limit * holds(top),
            "tokens",
        ),
        probed(
            said!("tokens held, longer prompts", "占用 token（更长输入）"),
            longer * holds(long_top),
            "tokens",
        ),
        probed(said!("TTFT at the highest level", "最高并发下的 TTFT"), top.ttft_ms, "ms"),
    ];
    let share = waiting_share(top);
    if moved <= SEATS {
        let says = said!(
            "about {limit:.0} requests are served at a time however many wait, and {longer:.0} with prompts of {input:.0} \
             tokens: the number is that of seats",
            "无论多少请求等待，同时处理的请求约 {limit:.0} 个；输入增至 {input:.0} token 仍为 {longer:.0} 个：受席位限制",
            limit = limit,
            longer = longer,
            input = long_top.input,
        );
        return ("seat_limit", Case::new(Confidence::Likely, share, says, evidence));
    }
    if moved >= TOKENS {
        let says = said!(
            "{limit:.1} requests are served at a time, and {longer:.1} with prompts of {input:.0} tokens: together \
             they hold about {tokens:.0} tokens both times, so it is the KV cache that is full",
            "同时处理的请求为 {limit:.1} 个，输入增至 {input:.0} token 时为 {longer:.1} 个：两次共占约 {tokens:.0} token，\
             说明 KV 缓存已满",
            limit = limit,
            longer = longer,
            input = long_top.input,
            tokens = longer * holds(long_top),
        );
        return ("kv_capacity", Case::new(Confidence::Likely, share, says, evidence));
    }
    let says = said!(
        "{limit:.1} requests are served at a time, and {longer:.1} with longer prompts: fewer than by seats, more \
         than by the KV cache",
        "同时处理的请求为 {limit:.1} 个，输入加长后为 {longer:.1} 个：介于席位与 KV 两种限制之间",
        limit = limit,
        longer = longer,
    );
    ("seat_limit", Case::new(Confidence::Possible, share, says, evidence))
}

/// Where one of the ladders has no limit, or was not made.
fn one_ladder(
    short: &Ladder,
    top: &Level,
    of_long: Option<(&Ladder, &Level)>,
    missing: &mut Vec<Said>,
) -> Option<(&'static str, Case)> {
    let longer = of_long.and_then(|(long, long_top)| Some((long.limit()?, long_top)));
    if let Some((longer, long_top)) = longer {
        // So many run at least with the shorter prompts.
        let (id, case) = told_apart((f64::from(top.users), top), (longer, long_top));
        return (id == "kv_capacity").then_some((id, case));
    }
    if let Some(limit) = short.limit() {
        missing.push(said!(
            "seats or KV cache: the ladder with longer prompts was not made, or not far enough (contexts)",
            "席位还是 KV：更长输入的并发阶梯（contexts）未进行或未完成"
        ));
        return Some(("seat_limit", either(short, limit)));
    }
    missing.push(said!(
        "seats or KV cache: up to {users} users nobody waited for either; raise --max-concurrency",
        "席位还是 KV：并发到 {users} 仍无人等待；可提高 --max-concurrency",
        users = top.users,
    ));
    None
}

fn either(short: &Ladder, limit: f64) -> Case {
    let says = said!(
        "about {limit:.0} requests are served at a time however many wait: seats or KV blocks hold them",
        "无论多少请求等待，同时处理的请求约 {limit:.0} 个：受席位或 KV 块限制",
        limit = limit,
    );
    let evidence = vec![probed(said!("served at a time", "同时处理的请求数"), limit, "")];
    let share = short.top().map_or(0.5, waiting_share);
    Case::new(Confidence::Possible, share, says, evidence)
}

/// Share of the TTFT of a level that is not the prompt's own.
fn waiting_share(level: &Level) -> f64 {
    let own_ms = level.prefill_share.map_or(0.0, |share| 1e3 * share / level.req_s.max(1e-9));
    (1.0 - own_ms / level.ttft_ms.max(1e-6)).clamp(0.0, 1.0)
}

fn backlog(top: &Level) -> Case {
    let prompts = top.prefill_share.unwrap_or(1.0);
    let says = said!(
        "with {users} users prompts take {share:.0} % of the time: {rate:.0} prompt tokens a second, and TTFT is \
         {ttft:.0} ms",
        "{users} 并发下预填充占 {share:.0} % 的时间：每秒 {rate:.0} 个输入 token，TTFT 为 {ttft:.0} ms",
        users = top.users,
        share = 100.0 * prompts,
        rate = top.req_s * top.input,
        ttft = top.ttft_ms,
    );
    let evidence = vec![
        probed(
            said!("share of the time that prompts take", "预填充占时间的比例"),
            prompts,
            "share",
        ),
        probed(said!("TTFT at the highest level", "最高并发下的 TTFT"), top.ttft_ms, "ms"),
    ];
    Case::new(Confidence::Likely, waiting_share(top).max(prompts), says, evidence)
}

/// How many times its own length a prefill takes beside others.
const SLOWED: f64 = 2.0;

/// P4: nobody waits, and prompts take longer.
fn slowed(figures: &Figures) -> Option<Case> {
    let canaries = figures.canaries?;
    let (loaded, alone) = (canaries.prefill_ms(), canaries.prefill_alone_ms());
    let waits = figures.ladders.first().and_then(Ladder::top).is_some_and(|top| top.waits);
    if waits
        || alone < 1.0
        || !canaries.is_telling()
        || loaded < SLOWED * alone
        || canaries.waiting_ms() > loaded
    {
        return None;
    }
    let says = said!(
        "a prompt takes {loaded:.0} ms beside {users} users and {alone:.0} ms alone, while a short one waits \
         {wait:.0} ms",
        "{users} 并发下一个输入的预填充需 {loaded:.0} ms，独占时 {alone:.0} ms，而短输入只等 {wait:.0} ms",
        loaded = loaded,
        users = canaries.users,
        alone = alone,
        wait = canaries.waiting_ms(),
    );
    let evidence = vec![
        probed(said!("prefill under load", "负载下的预填充"), loaded, "ms"),
        probed(said!("prefill alone", "独占时的预填充"), alone, "ms"),
        probed(
            said!("TTFT of a short prompt above its own", "短输入 TTFT 的超额"),
            canaries.waiting_ms(),
            "ms",
        ),
    ];
    let share = (loaded - alone) / canaries.ttft_ms[1].max(1e-6);
    Some(Case::new(Confidence::Likely, share, says, evidence))
}

/// Growth of TPOT over the batch from which on it matters, and the part of the
/// contexts' ratio that its slopes must have.
const GROWS: f64 = 1.3;
const IN_PROPORTION: f64 = 0.6;

/// D2: TPOT grows with the batch, the faster the longer the contexts.
fn by_context(figures: &Figures) -> Option<Case> {
    let (short, long) = (figures.ladders.first()?, figures.ladders.get(1)?);
    let (one, other) = (short.batch.ok()?.curve, long.batch.ok()?.curve);
    let (top, long_top) = (short.top()?, long.top()?);
    let grows = long.batch.ok()?.curve.at(long_top.answered) / other.a.max(1e-9);
    let (slopes, contexts) = (other.b / one.b.max(1e-9), holds(long_top) / holds(top));
    if grows < GROWS || one.b <= 0.0 || slopes < IN_PROPORTION * contexts {
        return None;
    }
    let says = said!(
        "each answer more in the batch adds {one:.2} ms to a token, and {other:.2} ms with contexts of {times:.1} times \
         the length: keys and values are read at each step",
        "批中每多一个回答，单 token 增加 {one:.2} ms；上下文为 {times:.1} 倍时增加 {other:.2} ms：每步都要读取 KV",
        one = one.b,
        other = other.b,
        times = contexts,
    );
    let evidence = vec![
        probed(said!("slope of TPOT over the batch", "TPOT 对批量的斜率"), one.b, "ms"),
        probed(said!("the same with longer contexts", "上下文更长时的斜率"), other.b, "ms"),
        probed(said!("ratio of the contexts", "上下文长度之比"), contexts, "ratio"),
    ];
    Some(Case::new(Confidence::Possible, 1.0 - 1.0 / grows, says, evidence))
}

/// Share below which a prompt that was sent before counts as computed again.
const NOT_FOUND: f64 = 0.2;

/// P5: the same prompt takes as long again.
fn not_found_again(figures: &Figures) -> Option<Case> {
    let prefix = figures.prefix.as_ref()?;
    let share = *prefix.share.as_ref().ok()?;
    if share >= NOT_FOUND {
        return None;
    }
    let says = said!(
        "a prompt of {input:.0} tokens that was sent before takes {warm:.0} ms and took {cold:.0} ms the first \
         time",
        "{input:.0} token 的输入首次 {cold:.0} ms，重复发送仍需 {warm:.0} ms",
        input = prefix.input,
        warm = prefix.warm_ms,
        cold = prefix.cold_ms,
    );
    let mut evidence = vec![
        probed(said!("share that was not computed again", "无需重算的比例"), share, "share"),
        probed(said!("TTFT the first time", "首次 TTFT"), prefix.cold_ms, "ms"),
        probed(said!("TTFT of the same again", "重复时 TTFT"), prefix.warm_ms, "ms"),
    ];
    evidence.extend(prefix.told.map(|told| Evidence {
        from: From::Server,
        ..probed(
            said!("share that the server says it found", "服务端报告的命中比例"),
            told,
            "share",
        )
    }));
    let missing = said!(
        "whether the cache is off, or a router sent the prompt elsewhere",
        "是缓存未启用，还是路由把请求发往了别处"
    );
    let case = Case::new(Confidence::Likely, 1.0 - share, says, evidence);
    Some(case.missing([missing]))
}

/// Share of E2EL in the TTFT of a long answer from which on nothing streams.
const AT_THE_END: f64 = 0.8;

/// N2: the first token of a long answer comes with its last one.
fn buffered(figures: &Figures) -> Option<Case> {
    let outputs = figures.outputs.as_ref()?;
    let fit = outputs.fit.ok()?;
    let longest = outputs.rows.iter().max_by(|a, b| a.output.total_cmp(&b.output))?;
    let share = longest.ttft_ms / longest.e2e_ms.max(1e-6);
    let expected = fit.curve.a / longest.e2e_ms.max(1e-6);
    if longest.output < 16.0 || share < AT_THE_END || expected > 0.5 {
        return None;
    }
    let says = said!(
        "the first token of an answer of {output:.0} comes after {share:.0} % of its time; by the lengths of \
         answers it is there after {first:.0} ms, and a token takes {token:.1} ms",
        "{output:.0} token 的回答在 {share:.0} % 的时间之后才见首 token；按输出长度推算首 token 应在 {first:.0} ms，\
         每 token {token:.1} ms",
        output = longest.output,
        share = 100.0 * share,
        first = fit.curve.a,
        token = fit.curve.b,
    );
    let evidence = vec![
        probed(
            said!("share of E2EL before the first token", "首 token 前占 E2EL 的比例"),
            share,
            "share",
        ),
        probed(said!("the same by lengths of answers", "按输出长度推算"), expected, "share"),
    ];
    Some(Case::new(Confidence::Likely, share - expected, says, evidence))
}

/// Fits that were refused are no knowledge.
fn refused(figures: &Figures, missing: &mut Vec<Said>) {
    let mut say = |what: Said, why: Said| {
        missing.push(Said {
            en: format!("{}: {}", what.en, why.en),
            zh: format!("{}：{}", what.zh, why.zh),
        });
    };
    if let Some(Err(why)) = figures.lengths.as_ref().map(|lengths| lengths.fit) {
        say(said!("the prefill rate", "预填充速率"), why.says());
    }
    if let Some(Err(why)) = figures.outputs.as_ref().map(|outputs| outputs.fit) {
        say(said!("the time of a token by E2EL", "由 E2EL 得出的单 token 时间"), why.says());
    }
    for ladder in figures.ladders.iter().take(1) {
        if let Err(why) = ladder.scaling {
            say(said!("how throughput scales (USL)", "吞吐扩展规律（USL）"), why.says());
        }
    }
    if let Some(canaries) = figures.canaries.filter(|canaries| !canaries.is_telling()) {
        let why = said!(
            "short prompts wait {wait:.0} ms, and that scatters by more than a prefill",
            "短输入等待 {wait:.0} ms，其波动已超过一次预填充",
            wait = canaries.waiting_ms(),
        );
        say(said!("prefill under load", "负载下的预填充"), why);
    }
    if let Some(Err(why)) = figures.prefix.as_ref().map(|prefix| &prefix.share) {
        say(said!("the share of a known prompt that is found", "重复输入的命中比例"), why.clone());
    }
}
