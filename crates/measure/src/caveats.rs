//! The caveats of a run: one function a caveat, all called from one list.

mod cache;
mod evidence;

pub(crate) use evidence::Evidence;

use crate::caveat::Caveat;
use crate::facts::LoadKind;
use crate::record::{TokensSource, Warnings};
use crate::said::{Said, said};
use crate::slices::Part;
use crate::slo::Quantity;
use crate::summary::Summary;

type Rule = fn(&Summary, &Evidence) -> Option<Caveat>;

/// Every caveat, in the order of the report.
const RULES: &[Rule] = &[
    interrupted,
    simulated,
    cap_limited,
    not_streamed,
    throttled_by_server,
    cut_off_tail,
    counted_by_chunks,
    uncounted,
    cache::cached_share,
    cache::regime_contradicted,
    cache::warm_prefix_cache,
    oversampled,
    silent_url,
    random_text_speculation,
    random_text_moe,
    ignore_eos_speculation,
    tail_owner,
    latency_not_in_file,
    slo_not_measurable,
    judged_by_text,
    token_counts_disagree,
    short_output,
    reconnected,
    user_stamps,
    client_bottleneck,
    clock_step,
    counted_in_bins,
];

/// The caveats that apply.
pub(crate) fn of(summary: &Summary, evidence: &Evidence) -> Vec<Caveat> {
    RULES.iter().filter_map(|rule| rule(summary, evidence)).collect()
}

/// Those that follow from what was seen inside the server, which is known later
/// than the figures; none that the figures told already.
pub fn of_signals(summary: &Summary) -> Vec<Caveat> {
    let told = |id: &str| summary.caveats.iter().any(|caveat| caveat.id == id);
    let found = cache::warm_by_signals(summary).into_iter();
    found.filter(|caveat| !told(caveat.id)).collect()
}

fn interrupted(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    summary.facts.interrupted.then(|| {
        Caveat::new(
            "interrupted",
            said!(
                "The run was stopped before its end: figures cover what had been sent by then.",
                "压测提前中止：数字只覆盖中止前已发出的请求。"
            ),
        )
    })
}

fn simulated(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    summary.facts.simulated.then(|| {
        Caveat::new(
            "simulated",
            said!(
                "A model of an engine answered, not an engine: figures describe a simulation.",
                "应答的是引擎模型，不是真实引擎：这些数字描述的是模拟。"
            ),
        )
    })
}

fn cap_limited(summary: &Summary, evidence: &Evidence) -> Option<Caveat> {
    if summary.facts.load.kind != LoadKind::Capped {
        return None;
    }
    let longest = evidence.longest_wait_s;
    (longest > 0.001).then(|| {
        Caveat::new(
            "cap_limited",
            said!(
                "The concurrency cap held requests back for up to {longest:.3} s; that wait is in \
                 the latencies, because the users had asked by then.",
                "并发上限让请求最多等了 {longest:.3} s；这段等待计入延迟，因为用户那时已经提问。",
                longest = longest,
            ),
        )
    })
}

fn not_streamed(summary: &Summary, evidence: &Evidence) -> Option<Caveat> {
    let count = evidence.warned(Warnings::NOT_STREAMED);
    (count > 0).then(|| {
        Caveat::new(
            "not_streamed",
            said!(
                "{count} of {total} answers came at one instant: something buffers, or the server \
                 does not stream. They stay out of TPOT, ITL and ICL.",
                "{total} 个回答中有 {count} 个一次性到达：中间有缓冲，或服务端没有流式输出。它们不\
                 计入 TPOT、ITL 和 ICL。",
                count = count,
                total = summary.outcomes.total(),
            ),
        )
    })
}

fn throttled_by_server(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    let count = *summary.outcomes.by_status.get(&429)?;
    Some(Caveat::new(
        "throttled",
        said!(
            "{count} requests were refused with 429; they are failures, nothing was retried.",
            "{count} 个请求被 429 拒绝；它们按失败计算，没有重试。",
            count = count,
        ),
    ))
}

fn cut_off_tail(summary: &Summary, evidence: &Evidence) -> Option<Caveat> {
    let share = evidence.timed_out as f64 / evidence.n.max(1) as f64;
    let limit = summary.facts.request_timeout?;
    (share > 0.01).then(|| {
        Caveat::new(
            "censored_tail",
            said!(
                "{percent:.1} % of requests ended exactly at the time limit of {limit}: the tail \
                 of the successes is too good. See the percentiles over all requests.",
                "{percent:.1} % 的请求恰好在时限 {limit} 处被截断：成功请求的尾延迟因此显得\
                 偏低。请看全部请求的分位数。",
                percent = share * 100.0,
                limit = limit,
            ),
        )
    })
}

fn counted_by_chunks(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    let by = |wanted| summary.tokens.sources.iter().find(|(source, _)| *source == wanted);
    let (_, count) = by(TokensSource::Chunks)?;
    Some(Caveat::new(
        "tokens_from_chunks",
        said!(
            "The server sent no token counts for {count} answers; output chunks were counted \
             instead, which is a lower bound.",
            "服务端没有给出 {count} 个回答的 token 数；改用输出 chunk 数代替，只是下限。",
            count = count,
        ),
    ))
}

fn uncounted(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    let (prompts, outputs) = summary.tokens.uncounted;
    let partly_prompts = prompts > 0 && summary.tokens.input.is_some();
    let partly_outputs = outputs > 0 && summary.tokens.output.is_some();
    (partly_prompts || partly_outputs).then(|| {
        Caveat::new(
            "tokens_partly_unknown",
            said!(
                "{prompts} successes have no prompt count and {outputs} no output count; token \
                 rates leave them out.",
                "成功请求中有 {prompts} 个没有输入 token 数，{outputs} 个没有输出 token 数；token \
                 吞吐不计它们。",
                prompts = prompts,
                outputs = outputs,
            ),
        )
    })
}

fn oversampled(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    let factor = summary.facts.workload.oversampled.filter(|factor| *factor > 1.0)?;
    Some(Caveat::new(
        "oversampled",
        said!(
            "The data set was oversampled {factor:.2}x; repeated prompts hit prefix caches.",
            "数据集被重复采样 {factor:.2} 倍；重复的 prompt 会命中前缀缓存。",
            factor = factor,
        ),
    ))
}

/// A target that gave nothing while others did: latencies of successes cannot
/// show it.
fn silent_url(_: &Summary, evidence: &Evidence) -> Option<Caveat> {
    let urls = &evidence.urls;
    let answering = urls.values().any(|(_, ok)| *ok > 0);
    let silent = urls.iter().filter(|(_, (n, ok))| answering && *n > 0 && *ok == 0);
    let silent: Vec<(&String, u64)> = silent.map(|(url, (n, _))| (url, *n)).collect();
    let named = silent.iter().map(|(url, n)| format!("{url} ({n})")).collect::<Vec<_>>();
    (!named.is_empty()).then(|| {
        Caveat::new(
            "silent_url",
            said!(
                "No request succeeded at {urls}, in brackets how many failed there: latencies are \
                 those of the other addresses alone.",
                "发往 {urls} 的请求全部失败（括号内为失败数）：延迟只反映其余地址。",
                urls = named.join(", "),
            ),
        )
    })
}

/// Whether the user says so of the engine: a model's name is no evidence.
fn engine_has(summary: &Summary, fact: &str) -> bool {
    summary.facts.workload.engine_facts.iter().any(|known| known == fact)
}

fn random_text_speculation(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    (summary.facts.workload.random_text && engine_has(summary, "speculation")).then(|| {
        Caveat::new(
            "random_text_speculation",
            said!(
                "Prompts are words in random order and the engine speculates: how many drafted \
                 tokens are accepted is not what real text gives, and TPOT follows it.",
                "输入是随机词序的文本，而引擎使用投机解码：草稿 token 的接受率与真实文本不同，TPOT 随之\
                 失真。"
            ),
        )
    })
}

fn random_text_moe(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    (summary.facts.workload.random_text && engine_has(summary, "moe")).then(|| {
        Caveat::new(
            "random_text_moe",
            said!(
                "Prompts are words in random order and the model has experts: which of them are \
                 busy is not what real text gives, so throughput may be better or worse.",
                "输入是随机词序的文本，而模型是 MoE：专家的负载分布与真实文本不同，吞吐可能偏高或\
                 偏低。"
            ),
        )
    })
}

fn ignore_eos_speculation(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    (summary.facts.workload.output_forced && engine_has(summary, "speculation")).then(|| {
        Caveat::new(
            "ignore_eos_speculation",
            said!(
                "Answers were forced past their end (ignore_eos) and the engine speculates: what \
                 a model writes past its end repeats itself and is easy to draft, so TPOT looks \
                 too good.",
                "回答被强制写满长度（ignore_eos），而引擎使用投机解码：模型在结束之后写的内容重复、\
                 容易猜中，TPOT 因此显得偏好。"
            ),
        )
    })
}

/// Who the slowest are: a P99 without it names nobody.
fn tail_owner(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    let owner = summary.slices.tail_owner.as_ref()?;
    let Part::Input { from, until } = owner.of else { return None };
    Some(Caveat::new(
        "tail_owner",
        said!(
            "Prompts of {from}–{last} tokens are {slowest:.1} % of the slowest 1 % by TTFT and \
             {all:.1} % of the requests: the tail is theirs.",
            "TTFT 最慢的 1 % 中，{slowest:.1} % 是 {from}–{last} token 的输入，而它们只占请求的 \
             {all:.1} %：尾延迟来自它们。",
            from = from,
            last = until - 1,
            slowest = owner.of_slowest * 100.0,
            all = owner.of_all * 100.0,
        ),
    ))
}

fn latency_not_in_file(summary: &Summary, evidence: &Evidence) -> Option<Caveat> {
    (evidence.lacks_latency && !summary.facts.as_reported.is_empty()).then(|| {
        Caveat::new(
            "latency_not_in_file",
            said!(
                "The file does not hold the latency of each request: TPOT and E2EL are as the \
                 tool reported them and cannot be recomputed.",
                "文件中没有每个请求的延迟：TPOT 和 E2EL 沿用原工具的报告，无法重算。"
            ),
        )
    })
}

fn slo_not_measurable(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    let unknown = summary.goodput.as_ref()?.unmeasurable;
    (unknown > 0).then(|| {
        Caveat::new(
            "slo_not_measurable",
            said!(
                "{unknown} successes could not be judged on the SLO, because a value that it \
                 bounds was not measurable on them.",
                "{unknown} 个成功请求无法判定是否满足 SLO，因为 SLO 约束的某个值在它们上测不出来。",
                unknown = unknown,
            ),
        )
    })
}

fn judged_by_text(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    let asked = summary.facts.slo.as_ref()?;
    let judged = summary.goodput.as_ref()?.slo.all_terms();
    let swapped = asked
        .all_terms()
        .zip(judged)
        .any(|(asked, by)| asked.quantity == Quantity::Start && by.quantity == Quantity::Ttfc);
    swapped.then(|| {
        Caveat::new(
            "judged_by_ttfc",
            said!(
                "Answers reasoned before they answered: where an answer starts is judged by TTFC, \
                 not by TTFT.",
                "模型先思考再作答：开始回答的时间按 TTFC 判定，而不是 TTFT。"
            ),
        )
    })
}

fn token_counts_disagree(_: &Summary, evidence: &Evidence) -> Option<Caveat> {
    let (server, other) = evidence.counted_twice;
    let ratio = if other > 0.0 { server / other } else { return None };
    ((ratio - 1.0).abs() > 0.10).then(|| {
        Caveat::new(
            "token_counts_disagree",
            said!(
                "The server counts {ratio:.3} times the tokens that the other source counts.",
                "服务端统计的 token 数是另一来源的 {ratio:.3} 倍。",
                ratio = ratio,
            ),
        )
    })
}

/// Answers that ended although their length was forced.
fn short_output(_: &Summary, evidence: &Evidence) -> Option<Caveat> {
    let (of, tokens) = evidence.forced;
    let (count, first) = evidence.short;
    let first = first?;
    Some(Caveat::new(
        "short_output",
        said!(
            "{count} of {of} answers ({percent:.0} %) ended before the length that was forced, the \
             first in request {first}: the server does not heed ignore_eos. Answers had {mean:.2} \
             tokens on average.",
            "{of} 个回答中有 {count} 个（{percent:.0} %）在强制长度之前结束，第一个是请求 {first}：\
             服务端没有遵守 ignore_eos。回答平均 {mean:.2} 个 token。",
            count = count,
            of = of,
            percent = 100.0 * count as f64 / of as f64,
            first = first,
            mean = tokens as f64 / of as f64,
        ),
    ))
}

fn reconnected(_: &Summary, evidence: &Evidence) -> Option<Caveat> {
    let count = evidence.reconnects;
    (count > 0).then(|| {
        Caveat::new(
            "reconnects",
            said!(
                "{count} times the server had closed an idle connection just as it was used; the \
                 request went out again on a fresh one, timed from the first try.",
                "有 {count} 次请求刚要使用空闲连接，服务端恰好将它关闭；请求换新连接重发，从首次尝\
                 试起计时。",
                count = count,
            ),
        )
    })
}

fn user_stamps(summary: &Summary, evidence: &Evidence) -> Option<Caveat> {
    (evidence.ours > 0 && summary.facts.instrument.stamp_source == "user").then(|| {
        Caveat::new(
            "user_stamps",
            said!(
                "Arrivals were stamped in user space: the client's own delay is inside them and \
                 is not bounded.",
                "到达时间戳取自用户态：其中包含压测端自身的延迟，且没有上界。"
            ),
        )
    })
}

/// A client that was behind while the server was not: user space saw answers
/// long after the kernel had them, or handing over the requests took a good
/// part of the time to first token.
fn client_bottleneck(summary: &Summary, evidence: &Evidence) -> Option<Caveat> {
    // As for lateness, less than a millisecond is the machine's own noise.
    const LAG_LIMIT_US: f64 = 5_000.0;
    let lag = summary.validity.client_lag_us.map(|[_, p99, _]| p99);
    let behind = lag.filter(|p99| *p99 > LAG_LIMIT_US).map(|p99| {
        said!(
            "answers waited up to {ms:.1} ms at P99 for the client to read them",
            "回答等压测端读取的时间 P99 达 {ms:.1} ms",
            ms = p99 / 1e3,
        )
    });
    let (slow, all) = evidence.slow_writes;
    let uploading = (slow * 100 > all).then(|| {
        said!(
            "for {slow} of {all} requests, writing them took more than 10 % of the TTFT",
            "{all} 个请求中有 {slow} 个，写出请求用时超过其 TTFT 的 10 %",
            slow = slow,
            all = all,
        )
    });
    let (en, zh): (Vec<String>, Vec<String>) =
        [behind, uploading].into_iter().flatten().map(|said| (said.en, said.zh)).unzip();
    (!en.is_empty()).then(|| {
        Caveat::new(
            "client_bottleneck",
            Said {
                en: format!(
                    "The client or its network may be what is slow, not the server: {}.",
                    en.join("; ")
                ),
                zh: format!("慢的可能是压测端或它的网络，而不是服务端：{}。", zh.join("；")),
            },
        )
    })
}

fn clock_step(summary: &Summary, evidence: &Evidence) -> Option<Caveat> {
    let steps = summary.facts.instrument.clock_steps;
    let spanned = evidence.warned(Warnings::CLOCK_STEP);
    (steps > 0).then(|| {
        Caveat::new(
            "clock_step",
            said!(
                "The wall clock was stepped {steps} times during the run; {spanned} requests that \
                 were under way are marked clock_step, their times may be off by the step.",
                "压测期间系统墙上时钟跳变 {steps} 次；当时进行中的 {spanned} 个请求已标为 \
                 clock_step，其时间可能偏差一次跳变的幅度。",
                steps = steps,
                spanned = spanned,
            ),
        )
    })
}

fn counted_in_bins(summary: &Summary, _: &Evidence) -> Option<Caveat> {
    (!summary.facts.rows_kept).then(|| {
        Caveat::new(
            "counted_in_bins",
            said!(
                "No request of this run was kept (--no-events): percentiles were counted in bins \
                 and are off by up to 0.05 %; figures that need single requests are absent.",
                "本次运行没有保留单个请求（--no-events）：分位数由分箱计数得出，误差不超过 0.05 %；\
                 需要逐个请求数据的数字缺失。"
            ),
        )
    })
}
