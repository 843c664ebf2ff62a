//! Lints about rates and counts.

use measure::facts::LoadKind;
use measure::metric::Text;
use measure::said;
use measure::said::Said;

use super::{Entry, Judge};
use crate::view::View;

pub(super) const RATE_WITHOUT_LENGTHS: Entry = Entry {
    id: "rate_without_lengths",
    code: "L5",
    concerns: "req_s",
    title: Text { en: "requests a second alone", zh: "只看每秒请求数" },
    instead: Text {
        en: "give prompt and answer lengths, concurrency and both token rates beside it",
        zh: "同时给出输入/输出长度、并发数和两种 token 吞吐",
    },
    judge: Judge::Run(rate_without_lengths),
};

/// How many times as much work the long requests are before a count of
/// requests says little.
const WORK_SPREAD: f64 = 4.0;

fn rate_without_lengths(view: &View<'_>) -> Option<Said> {
    let rate = view.summary.throughput.req_s?;
    let spread = |key: &str| {
        let low = view.figure(key, "min").filter(|tokens| *tokens > 0.0)?;
        let (high, n) = (view.figure(key, "p90")?, view.metric(key)?.n);
        (n >= 20).then_some((low, high))
    };
    let of_inputs = spread("input_tokens").map(|range| ("prompts", "输入", range));
    let of_outputs = spread("output_tokens").map(|range| ("answers", "输出", range));
    let (what, zh, (low, high)) = [of_inputs, of_outputs]
        .into_iter()
        .flatten()
        .filter(|(_, _, (low, high))| *high > WORK_SPREAD * *low)
        .max_by(|a, b| (a.2.1 / a.2.0).total_cmp(&(b.2.1 / b.2.0)))?;
    Some(Said {
        en: format!(
            "{rate:.2} requests a second are of this mix only: its {what} have {low:.0} to \
             {high:.0} tokens (shortest to P90), and another mix is other work."
        ),
        zh: format!(
            "每秒 {rate:.2} 个请求只对这一组负载成立：{zh}长度从 {low:.0} 到 {high:.0} token（最短至 \
             P90），换一组负载就是另一种工作量。"
        ),
    })
}

pub(super) const TOTAL_TOKENS: Entry = Entry {
    id: "total_tokens",
    code: "L9",
    concerns: "total_tok_s",
    title: Text {
        en: "tokens a second without saying which", zh: "未说明是哪种 token 吞吐"
    },
    instead: Text {
        en: "say whether input, output or both, computed or cached, of a user or of the system",
        zh: "说明是输入、输出还是合计，计算还是命中，单用户还是全系统",
    },
    judge: Judge::Run(total_tokens),
};

/// Share of found tokens from which on a total is no measure of work.
const FOUND_IN_TOTAL: f64 = 0.10;

fn total_tokens(view: &View<'_>) -> Option<Said> {
    let throughput = &view.summary.throughput;
    let (total, cached) = (throughput.total_tok_s?, throughput.input_cached_tok_s?);
    (total > 0.0 && cached > FOUND_IN_TOTAL * total).then(|| {
        said!(
            "Of {total:.0} tokens a second {cached:.0} were found in a cache and never computed: \
             the total is no measure of work here.",
            "每秒 {total:.0} 个 token 中有 {cached:.0} 个来自缓存，并未计算：此处合计值不能衡量工作量。",
            total = total,
            cached = cached,
        )
    })
}

pub(super) const SUCCESSES_ONLY: Entry = Entry {
    id: "successes_only",
    code: "L10",
    concerns: "attainment",
    title: Text { en: "failures left out", zh: "漏算失败请求" },
    instead: Text {
        en: "a failed request met no objective; goodput counts it as bad",
        zh: "失败的请求没有达标；goodput 将其计为不达标",
    },
    judge: Judge::Run(successes_only),
};

/// Difference of the two shares from which on leaving failures out flatters.
const FLATTERS: f64 = 0.01;

fn successes_only(view: &View<'_>) -> Option<Said> {
    let goodput = view.summary.goodput.as_ref()?;
    let ok = view.summary.outcomes.ok;
    let attained = goodput.attainment?;
    let flattering = goodput.good as f64 / ok.max(1) as f64;
    (ok > 0 && goodput.good <= ok && flattering - attained > FLATTERS).then(|| {
        said!(
            "{attained:.1} % met the objective; of those that ended well alone it would be \
             {flattering:.1} %, because failures are no part of them.",
            "达标率为 {attained:.1} %；若只算成功的请求则为 {flattering:.1} %，因为其中没有失败者。",
            attained = 100.0 * attained,
            flattering = 100.0 * flattering,
        )
    })
}

pub(super) const USERS_ARE_NO_RATE: Entry = Entry {
    id: "users_are_no_rate",
    code: "L13",
    concerns: "attainment",
    title: Text {
        en: "a closed loop taken for a rate", zh: "把闭环结果当作某速率下的结果"
    },
    instead: Text {
        en: "users of a closed loop wait when the server is slow; give a rate to judge a rate",
        zh: "闭环用户会随服务端变慢而等待；要评判某速率，就按速率施压",
    },
    judge: Judge::Run(users_are_no_rate),
};

fn users_are_no_rate(view: &View<'_>) -> Option<Said> {
    let facts = &view.summary.facts;
    let users = facts.load.users.filter(|_| facts.load.kind == LoadKind::Closed)?;
    facts.slo.as_ref()?;
    let rate = view.summary.throughput.req_s?;
    Some(said!(
        "The objective was judged with {users} users who wait for their answers ({rate:.2} \
         requests a second came of it): it does not say what happens when as many arrive unasked. \
         Try --request-rate {rate:.2}.",
        "达标率来自 {users} 个会等待回答的用户（折合每秒 {rate:.2} 个请求）：不代表同样速率的请求\
         自行到达时的情形。可用 --request-rate {rate:.2} 验证。",
        users = users,
        rate = rate,
    ))
}

pub(super) const SATURATED_POINT: Entry = Entry {
    id: "saturated_point",
    code: "L19",
    concerns: "ttft_ms",
    title: Text { en: "a point past saturation", zh: "过饱和的测点" },
    instead: Text {
        en: "past saturation latencies depend on how long the run was; lower the rate",
        zh: "过饱和时延迟取决于压测时长；请降低速率",
    },
    judge: Judge::Run(saturated_point),
};

/// How many times the first quarter's median the last quarter's is.
const GROWN: f64 = 2.0;
/// Share of the offered requests that came back in the arrival window's time.
const KEPT_UP: f64 = 0.95;

fn saturated_point(view: &View<'_>) -> Option<Said> {
    let load = &view.summary.load;
    let (offered, completed) = (load.offered_rps?, load.completed_rps?);
    // In an open loop the order of the schedule is that of time.
    let mut of: Vec<(u32, f64)> = view
        .ok()
        .filter_map(|request| Some((request.record.index, request.ttft().ok()?)))
        .collect();
    of.sort_by_key(|(index, _)| *index);
    let quarter = of.len() / 4;
    if quarter < 10 || completed > KEPT_UP * offered {
        return None;
    }
    let middle = |of: &[(u32, f64)]| {
        let mut sorted: Vec<f64> = of.iter().map(|(_, ms)| *ms).collect();
        sorted.sort_by(f64::total_cmp);
        measure::quantile::linear(&sorted, 0.5)
    };
    let (first, last) = (middle(&of[..quarter])?, middle(&of[of.len() - quarter..])?);
    (first > 0.0 && last > GROWN * first).then(|| {
        said!(
            "{offered:.2} requests a second were offered and {completed:.2} came back; TTFT grew \
             from {first:.0} ms in the first quarter to {last:.0} ms in the last. A longer run \
             would give a larger one: no figure of it is of the server alone.",
            "每秒到达 {offered:.2} 个请求、完成 {completed:.2} 个；TTFT 从前四分之一的 {first:.0} ms \
             升到后四分之一的 {last:.0} ms。压测越久数字越大：它们不只由服务端决定。",
            offered = offered,
            completed = completed,
            first = first,
            last = last,
        )
    })
}

pub(super) const OUTPUT_OF_INPUT_WORK: Entry = Entry {
    id: "output_of_input_work",
    code: "L24",
    concerns: "output_tok_s",
    title: Text {
        en: "output tokens headline work on prompts",
        zh: "以输出吞吐概括以输入为主的负载",
    },
    instead: Text {
        en: "where prompts are most of the work, read the computed input tokens a second",
        zh: "以输入为主的负载应看每秒计算的输入 token",
    },
    judge: Judge::Run(output_of_input_work),
};

/// Computed prompt tokens for each output token from which on prompts are most
/// of the work: an output token costs a step, which a batch shares.
const INPUT_OVER_OUTPUT: f64 = 16.0;

fn output_of_input_work(view: &View<'_>) -> Option<Said> {
    let throughput = &view.summary.throughput;
    let output = throughput.output_tok_s.filter(|rate| *rate > 0.0)?;
    let input = throughput.input_computed_tok_s.or(throughput.input_tok_s)?;
    (input > INPUT_OVER_OUTPUT * output).then(|| {
        said!(
            "{output:.0} output tokens a second look like little because the work is the prompts: \
             {input:.0} prompt tokens a second, {times:.0} for each output token.",
            "每秒 {output:.0} 个输出 token 看似不多，因为工作量在输入：每秒 {input:.0} 个输入 token，\
             是输出的 {times:.0} 倍。",
            output = output,
            input = input,
            times = input / output,
        )
    })
}
