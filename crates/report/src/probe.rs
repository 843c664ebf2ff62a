//! What `goodput probe` shows: the experiments with their numbers, the fits
//! that hold, what follows, and what could not be told.

use std::fmt::Display;

use insight::fit::Refused;
use insight::probe::{
    Canaries, Conclusions, Context, Experiment, Figures, Ladder, Lengths, Level, Limits, Line,
    Outputs, Prefix, Queueing, Scale, Transport,
};
use measure::metric::Text;

use crate::content::inside;
use crate::document::{Document, Row};
use crate::lang::Lang;
use crate::number::{percent, short};

const fn text(en: &'static str, zh: &'static str) -> Text {
    Text { en, zh }
}

const TITLE: Text = text("goodput probe", "goodput 探测");
const TITLE_SIMULATED: Text = text("goodput probe · SIMULATED", "goodput 探测 · 模拟");
const TARGET: Text = text("{model} at {target}", "{model}，{target}");
const SENT: Text = text(
    "{ok} requests ended well, {failed} failed; at most {users} in flight, budget {budget} s",
    "{ok} 个请求成功，{failed} 个失败；并发上限 {users}，预算 {budget} 秒",
);
const HALTED: Text = text("Ended early: {why}.", "提前结束：{why}。");

const HANDSHAKE: Text = text("quickest handshake", "最快握手");
const OF_CONNECTIONS: Text = text("{ms} ms of {n} connections", "{ms} ms（{n} 次连接）");
const SECURED: Text = text("TLS handshake, median", "TLS 握手，中位数");
const CHEAP: Text = text("GET /v1/models, median and P95", "GET /v1/models，中位数与 P95");
const CHEAP_LOADED: Text = text("the same beside {users} users", "同上，{users} 并发时");
const TWO: Text = text("{one} ms, {other} ms", "{one} ms，{other} ms");

const ALONE: Text =
    text("{input} → {output} tokens, {n} requests", "{input} → {output} token，{n} 个请求");
const TTFT: Text = text("TTFT, median", "TTFT，中位数");
const SPREAD: Text = text("{ms} ms, P95 {times} times that", "{ms} ms，P95 为其 {times} 倍");
const TPOT: Text = text("TPOT, median", "TPOT，中位数");
const E2EL: Text = text("E2EL, median", "E2EL，中位数");

const INPUT: Text = text("prompt tokens", "输入 token");
const OUTPUT: Text = text("answer tokens", "输出 token");
const REQUESTS: Text = text("requests", "请求数");
const USERS: Text = text("users", "并发");
const AT_A_TIME: Text = text("answers at a time", "同时返回");
const PROMPTS: Text = text("time of prompts", "预填充占时");
const WAITS: Text = text("waits", "等待");
const YES: Text = text("yes", "是");

const FIT: Text = text("fit", "拟合");
const REFUSED: Text = text("refused: {why}", "拒绝：{why}");
const PREFILL: Text = text(
    "TTFT = {a} ms + {b} µs·S + {c} ns·S² (R² {r2}) from {from} tokens on",
    "TTFT = {a} ms + {b} µs·S + {c} ns·S²（R² {r2}），自 {from} token 起",
);
const RATE: Text = text("prefill rate", "预填充速率");
const TOKENS_A_SECOND: Text = text("{rate} tok/s{interval}", "{rate} tok/s{interval}");
const BETWEEN: Text = text(", 95 % between {low} and {high}", "，95 % 区间 {low} 至 {high}");
const QUADRATIC: Text = text("share of S² at {input} tokens", "{input} token 处 S² 项占比");
const OF_OUTPUTS: Text =
    text("E2EL = {a} ms + {b} ms·(O − 1) (R² {r2})", "E2EL = {a} ms + {b} ms·(O − 1)（R² {r2}）");
const OF_BATCH: Text = text(
    "TPOT = {a} ms + {b} ms·B, prompts' time taken out (R² {r2})",
    "TPOT = {a} ms + {b} ms·B，已扣除预填充时间（R² {r2}）",
);
const BATCH: Text = text("TPOT over the batch", "TPOT 与批量");
const SCALING: Text = text("throughput over users (USL)", "吞吐与并发（USL）");
const LAW: Text = text(
    "λ {single} tok/s, σ {sigma}, κ {kappa} (R² {r2})",
    "λ {single} tok/s，σ {sigma}，κ {kappa}（R² {r2}）",
);
const LIMIT: Text = text("served at a time however many wait", "无论多少等待，同时处理");
const LENGTH: Text = text("prompts of {input} tokens", "输入 {input} token");

const COLD: Text = text("TTFT the first time", "首次 TTFT");
const WARM: Text = text("TTFT of the same again", "重复 TTFT");
const LEAST: Text = text("TTFT of a few tokens", "极短输入 TTFT");
const FOUND: Text = text("not computed again", "无需重算");
const TOLD: Text = text("found, by the server", "服务端报告命中");

const SHORT_ONES: Text = text("short prompts, alone and under load", "短输入，独占与负载下");
const LONG_ONES: Text =
    text("prompts of the load, alone and under load", "同长度输入，独占与负载下");
const QUEUED: Text = text("waiting", "等待");
const PREFILLED: Text = text("prefill, alone and under load", "预填充，独占与负载下");

const LOAD: Text = text("of the highest", "占最高吞吐");
const EXCESS: Text = text("TTFT above alone, ms", "TTFT 超额，ms");
const QUEUE_LAW: Text = text(
    "{excess} ms at the highest rate, where the lower ones and c·ρ ÷ (1 − ρ) predict {predicted} ms: {verdict}",
    "最高速率下超额 {excess} ms，由较低速率与 c·ρ ÷ (1 − ρ) 预测为 {predicted} ms：{verdict}",
);
const QUEUE: Text = text("that of a queue", "符合排队规律");
const NO_QUEUE: Text = text("no queue of that form", "不符合该排队规律");

const CAUSES: Text = text("What follows", "结论");
const NOTHING: Text =
    text("no cause was found by the experiments that were made", "已进行的实验未发现瓶颈");
const CONFIRMED_BY: Text = text(
    "Nothing here is confirmed: a client sees symptoms, the server's metrics decide.",
    "以上均未经证实：客户端只见症状，须由服务端指标确认。",
);
const UNTOLD: Text = text("What could not be told", "无法得出的结论");
const LEFT_OUT: Text = text("Left out", "未进行的实验");

/// The result as a document.
pub fn document(found: &Conclusions, context: &Context, limits: &Limits, lang: Lang) -> Document {
    let title = if context.simulated { TITLE_SIMULATED } else { TITLE };
    let mut page = Document { lang, title: lang.pick(title).to_owned(), ..Document::default() };
    page.headline = lang.fill(TARGET, &[("model", &context.model), ("target", &context.target)]);
    page.lines.push(lang.fill(
        SENT,
        &[
            ("ok", &found.ok),
            ("failed", &found.failed),
            ("users", &limits.most_users),
            ("budget", &short(limits.budget_s)),
        ],
    ));
    if let Some(why) = &found.halted {
        page.lines.push(lang.fill(HALTED, &[("why", &lang.sentence(why))]));
    }
    experiments(&mut page, &found.figures);
    causes(&mut page, found);
    page
}

fn experiments(page: &mut Document, figures: &Figures) {
    if let Some(found) = &figures.transport {
        transport(page, found);
    }
    if figures.baseline.is_some() {
        baseline(page, figures);
    }
    if let Some(found) = &figures.lengths {
        lengths(page, found);
    }
    for (place, ladder) in figures.ladders.iter().enumerate() {
        let experiment = if place == 0 { Experiment::Ladder } else { Experiment::Contexts };
        of_ladder(page, experiment, ladder);
    }
    if let Some(found) = &figures.prefix {
        prefix(page, found);
    }
    if let Some(found) = &figures.outputs {
        outputs(page, found);
    }
    if let Some(found) = &figures.canaries {
        canaries(page, found);
    }
    if let Some(found) = &figures.rates {
        rates(page, found);
    }
}

fn open(page: &mut Document, experiment: Experiment) {
    let entry = experiment.entry();
    let title = format!("{} · {}", entry.name, page.lang.pick(entry.decides));
    page.section(entry.name, &title);
}

fn transport(page: &mut Document, found: &Transport) {
    open(page, Experiment::Transport);
    let lang = page.lang;
    let two =
        |[one, other]: [f64; 2]| lang.fill(TWO, &[("one", &short(one)), ("other", &short(other))]);
    let connect = [("ms", &short(found.connect_ms) as &dyn Display), ("n", &found.connections)];
    page.pair(HANDSHAKE, &lang.fill(OF_CONNECTIONS, &connect));
    if let Some(ms) = found.secure_ms {
        page.pair(SECURED, &ms_of(ms));
    }
    if let Some(ms) = found.answer_ms {
        page.pair(CHEAP, &two(ms));
    }
    if let Some((ms, users)) = found.loaded_ms.zip(found.loaded_users) {
        page.labelled(&lang.fill(CHEAP_LOADED, &[("users", &users)]), &two(ms));
    }
}

fn ms_of(ms: f64) -> String {
    format!("{} ms", short(ms))
}

fn baseline(page: &mut Document, figures: &Figures) {
    let Some(found) = figures.baseline else { return };
    open(page, Experiment::Baseline);
    let lang = page.lang;
    page.line(&lang.fill(
        ALONE,
        &[("input", &short(found.input)), ("output", &short(found.output)), ("n", &found.n)],
    ));
    let spread =
        [("ms", &short(found.ttft_ms) as &dyn Display), ("times", &short(found.ttft_spread))];
    page.pair(TTFT, &lang.fill(SPREAD, &spread));
    if let Some(ms) = found.tpot_ms {
        page.pair(TPOT, &ms_of(ms));
    }
    page.pair(E2EL, &ms_of(found.e2e_ms));
}

fn columns(lang: Lang, titles: &[Text]) -> Vec<String> {
    titles.iter().map(|title| lang.pick(*title).to_owned()).collect()
}

fn row(cells: Vec<String>) -> Row {
    Row { about: None, cells }
}

const TTFT_MS: Text = text("TTFT, ms", "TTFT，ms");
const TPOT_MS: Text = text("TPOT, ms", "TPOT，ms");
const E2EL_MS: Text = text("E2EL, ms", "E2EL，ms");
const REQ_S: Text = text("req/s", "req/s");
const TOK_S: Text = text("output tok/s", "输出 tok/s");

fn lengths(page: &mut Document, found: &Lengths) {
    open(page, Experiment::Lengths);
    let lang = page.lang;
    let rows = found
        .rows
        .iter()
        .map(|one| row(vec![short(one.input), one.n.to_string(), short(one.ttft_ms)]));
    page.table(columns(lang, &[INPUT, REQUESTS, TTFT_MS]), rows.collect());
    let fit = match &found.fit {
        Ok(fit) => fit,
        Err(why) => return page.pair(FIT, &refused(why, lang)),
    };
    let curve = fit.curve;
    page.pair(
        FIT,
        &lang.fill(
            PREFILL,
            &[
                ("a", &short(curve.a)),
                ("b", &short(1e3 * curve.b)),
                ("c", &short(1e6 * curve.c)),
                ("r2", &short(curve.r2)),
                ("from", &short(fit.from)),
            ],
        ),
    );
    let interval = fit.intervals.map(|[_, [low, high], _]| {
        // The rate is the inverse of the slope.
        lang.fill(BETWEEN, &[("low", &short(1e3 / high)), ("high", &short(1e3 / low))])
    });
    let interval = interval.unwrap_or_default();
    let rate = [("rate", &short(fit.tokens_per_s()) as &dyn Display), ("interval", &interval)];
    page.pair(RATE, &lang.fill(TOKENS_A_SECOND, &rate));
    if let Some(longest) = found.rows.last() {
        let label = lang.fill(QUADRATIC, &[("input", &short(longest.input))]);
        page.labelled(&label, &percent(fit.quadratic(longest.input)));
    }
}

fn refused(why: &Refused, lang: Lang) -> String {
    lang.fill(REFUSED, &[("why", &lang.sentence(&why.says()))])
}

fn line(page: &mut Document, label: Text, form: Text, fit: &Result<Line, Refused>) {
    let lang = page.lang;
    let value = match fit {
        Ok(Line { curve, .. }) => lang.fill(
            form,
            &[("a", &short(curve.a)), ("b", &short(curve.b)), ("r2", &short(curve.r2))],
        ),
        Err(why) => refused(why, lang),
    };
    page.pair(label, &value);
}

fn of_ladder(page: &mut Document, experiment: Experiment, ladder: &Ladder) {
    open(page, experiment);
    let lang = page.lang;
    page.line(&lang.fill(LENGTH, &[("input", &ladder.input)]));
    let cells = |level: &Level| {
        vec![
            level.users.to_string(),
            level.n.to_string(),
            short(level.req_s),
            short(level.output_tok_s()),
            short(level.ttft_ms),
            level.tpot_ms.map_or_else(|| "n/a".to_owned(), short),
            short(level.answered),
            level.prefill_share.map_or_else(|| "n/a".to_owned(), percent),
            if level.waits { lang.pick(YES).to_owned() } else { String::new() },
        ]
    };
    let rows = ladder.levels.iter().map(|level| row(cells(level))).collect();
    let titles = [USERS, REQUESTS, REQ_S, TOK_S, TTFT_MS, TPOT_MS, AT_A_TIME, PROMPTS, WAITS];
    page.table(columns(lang, &titles), rows);
    line(page, BATCH, OF_BATCH, &ladder.batch);
    if experiment == Experiment::Ladder {
        let law = match &ladder.scaling {
            Ok(Scale { law, .. }) => lang.fill(
                LAW,
                &[
                    ("single", &short(law.single)),
                    ("sigma", &short(law.contention)),
                    ("kappa", &short(law.coherency)),
                    ("r2", &short(law.r2)),
                ],
            ),
            Err(why) => refused(why, lang),
        };
        page.pair(SCALING, &law);
    }
    if let Some(limit) = ladder.limit() {
        page.pair(LIMIT, &short(limit));
    }
}

fn prefix(page: &mut Document, found: &Prefix) {
    open(page, Experiment::Prefix);
    let lang = page.lang;
    page.line(&lang.fill(LENGTH, &[("input", &short(found.input))]));
    page.pair(COLD, &ms_of(found.cold_ms));
    page.pair(WARM, &ms_of(found.warm_ms));
    if let Some(ms) = found.least_ms {
        page.pair(LEAST, &ms_of(ms));
    }
    let interval = found
        .interval
        .map(|[low, high]| lang.fill(BETWEEN, &[("low", &percent(low)), ("high", &percent(high))]));
    let share = match &found.share {
        Ok(share) => format!("{}{}", percent(*share), interval.unwrap_or_default()),
        Err(why) => lang.fill(REFUSED, &[("why", &lang.sentence(why))]),
    };
    page.pair(FOUND, &share);
    if let Some(told) = found.told {
        page.pair(TOLD, &percent(told));
    }
}

fn outputs(page: &mut Document, found: &Outputs) {
    open(page, Experiment::Outputs);
    let lang = page.lang;
    let rows = found.rows.iter().map(|one| {
        row(vec![short(one.output), one.n.to_string(), short(one.ttft_ms), short(one.e2e_ms)])
    });
    page.table(columns(lang, &[OUTPUT, REQUESTS, TTFT_MS, E2EL_MS]), rows.collect());
    line(page, FIT, OF_OUTPUTS, &found.fit);
}

fn canaries(page: &mut Document, found: &Canaries) {
    open(page, Experiment::Canary);
    let lang = page.lang;
    let two =
        |one: f64, other: f64| lang.fill(TWO, &[("one", &short(one)), ("other", &short(other))]);
    page.pair(SHORT_ONES, &two(found.alone_ms[0], found.ttft_ms[0]));
    page.pair(LONG_ONES, &two(found.alone_ms[1], found.ttft_ms[1]));
    page.pair(QUEUED, &ms_of(found.waiting_ms()));
    if found.is_telling() {
        page.pair(PREFILLED, &two(found.prefill_alone_ms(), found.prefill_ms()));
    }
}

fn rates(page: &mut Document, found: &Queueing) {
    open(page, Experiment::Rates);
    let lang = page.lang;
    let rows = found.rates.iter().map(|one| {
        row(vec![
            short(one.req_s),
            percent(one.load),
            one.n.to_string(),
            short(one.ttft_ms),
            short(one.excess_ms),
        ])
    });
    page.table(columns(lang, &[REQ_S, LOAD, REQUESTS, TTFT_MS, EXCESS]), rows.collect());
    if let (Some([_, predicted]), Some(consistent), Some(first)) =
        (found.predicted, found.is_consistent(), found.rates.first())
    {
        let verdict = lang.pick(if consistent { QUEUE } else { NO_QUEUE });
        let values: [(&str, &dyn Display); 3] = [
            ("excess", &short(first.excess_ms)),
            ("predicted", &short(predicted)),
            ("verdict", &verdict),
        ];
        page.sentence(2, &lang.fill(QUEUE_LAW, &values));
    }
}

fn causes(page: &mut Document, found: &Conclusions) {
    let lang = page.lang;
    page.section("causes", lang.pick(CAUSES));
    for (place, one) in found.findings.iter().enumerate() {
        inside::finding(page, place + 1, one);
    }
    page.sentence(2, lang.pick(if found.findings.is_empty() { NOTHING } else { CONFIRMED_BY }));
    page.line(lang.pick(UNTOLD));
    for what in &found.missing {
        page.sentence(4, lang.sentence(what));
    }
    if !found.left_out.is_empty() {
        page.line(lang.pick(LEFT_OUT));
        let rows = found
            .left_out
            .iter()
            .map(|left| (left.experiment.name().to_owned(), lang.sentence(&left.why).to_owned()));
        page.pairs(rows.collect());
    }
}
