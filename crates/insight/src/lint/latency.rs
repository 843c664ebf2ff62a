//! Lints about latencies.

use measure::metric::Text;
use measure::said;
use measure::said::Said;
use measure::signal::Signal;
use measure::slices::Part;

use super::{Entry, Judge};
use crate::view::View;

/// How many times the mean a P99 has to be for the mean to mislead.
const TAIL_OVER_MEAN: f64 = 3.0;

pub(super) const MEAN_ONLY: Entry = Entry {
    id: "mean_only",
    code: "L1",
    concerns: "ttft_ms",
    title: Text { en: "the mean hides the tail", zh: "平均值掩盖尾延迟" },
    instead: Text {
        en: "read P50, P95, P99 and attainment beside the mean",
        zh: "平均值要与 P50、P95、P99 和达标率一起看",
    },
    judge: Judge::Run(mean_only),
};

fn mean_only(view: &View<'_>) -> Option<Said> {
    let ttft = view.metric("ttft_ms")?;
    let (mean, p99) = (ttft.mean?, ttft.figure("p99")?);
    (ttft.n >= 20 && p99 > TAIL_OVER_MEAN * mean).then(|| {
        said!(
            "The mean TTFT of {mean:.0} ms is not what the slowest wait: P99 is {p99:.0} ms, \
             {times:.1} times as long.",
            "平均 TTFT 为 {mean:.0} ms，但最慢的请求并非如此：P99 为 {p99:.0} ms，是平均值的 \
             {times:.1} 倍。",
            mean = mean,
            p99 = p99,
            times = p99 / mean,
        )
    })
}

pub(super) const TTFT_IS_PREFILL: Entry = Entry {
    id: "ttft_is_prefill",
    code: "L2",
    concerns: "ttft_ms",
    title: Text { en: "TTFT taken for prefill", zh: "把 TTFT 当作预填充时间" },
    instead: Text {
        en: "TTFT is waiting, prefill, the first sample and the way back; split it first",
        zh: "TTFT 包含排队、预填充、首 token 采样和传输；先拆分再下结论",
    },
    judge: Judge::Run(ttft_is_prefill),
};

/// Share of TTFT outside prefill from which on one is no measure of the other.
const OUTSIDE_PREFILL: f64 = 0.3;
/// What vLLM calls the time from a request's first schedule to its first token.
const PREFILL_BY_ANOTHER_NAME: &str = "time_to_first_token_ms";

fn ttft_is_prefill(view: &View<'_>) -> Option<Said> {
    let ttft_ms = view.figure("ttft_ms", "mean").filter(|ms| *ms > 0.0)?;
    let told: Vec<f64> = view
        .ok()
        .filter_map(|request| {
            let timings = &request.record.answer.server_timings;
            timings.iter().find(|(name, _)| name == PREFILL_BY_ANOTHER_NAME).map(|(_, ms)| *ms)
        })
        .collect();
    let by_requests = (!told.is_empty()).then(|| told.iter().sum::<f64>() / told.len() as f64);
    let prefill_ms = view.server_ms(Signal::PrefillTime).or(by_requests)?;
    let outside = 1.0 - prefill_ms / ttft_ms;
    (outside > OUTSIDE_PREFILL).then(|| {
        said!(
            "Of {ttft:.0} ms TTFT only {prefill:.0} ms are prefill; {outside:.0} % lie before it \
             or around it. A faster prefill would not help those.",
            "{ttft:.0} ms 的 TTFT 中只有 {prefill:.0} ms 是预填充；{outside:.0} % 在它之前或之外，\
             加速预填充对这部分没有帮助。",
            ttft = ttft_ms,
            prefill = prefill_ms,
            outside = 100.0 * outside,
        )
    })
}

pub(super) const TPOT_ONLY: Entry = Entry {
    id: "tpot_only",
    code: "L3",
    concerns: "tpot_ms",
    title: Text { en: "TPOT hides stalls", zh: "TPOT 掩盖卡顿" },
    instead: Text {
        en: "TPOT is a mean of gaps; read ICL P95, P99 and the longest beside it",
        zh: "TPOT 是间隔的平均；要与 ICL 的 P95、P99 和最大值一起看",
    },
    judge: Judge::Run(tpot_only),
};

/// How many times the usual gap a gap is that a reader sees.
const STALL_OVER_USUAL: f64 = 3.0;

fn tpot_only(view: &View<'_>) -> Option<Said> {
    let (gaps, tpot) = (view.metric("icl_ms")?, view.figure("tpot_ms", "p50")?);
    let (p50, p99, max) = (gaps.figure("p50")?, gaps.figure("p99")?, gaps.max?);
    (gaps.n >= 200 && p50 > 0.0 && p99 > STALL_OVER_USUAL * p50.max(tpot)).then(|| {
        said!(
            "TPOT is {tpot:.0} ms, yet one gap in a hundred is longer than {p99:.0} ms and the \
             longest is {max:.0} ms: readers see stalls that the mean does not show.",
            "TPOT 为 {tpot:.0} ms，但每百个间隔就有一个超过 {p99:.0} ms，最长 {max:.0} ms：读者会\
             感到卡顿，而平均值看不出来。",
            tpot = tpot,
            p99 = p99,
            max = max,
        )
    })
}

pub(super) const OTHER_DEFINITIONS: Entry = Entry {
    id: "other_definitions",
    code: "L7",
    concerns: "tpot_ms",
    title: Text { en: "another tool's definitions", zh: "口径来自其他工具" },
    instead: Text {
        en: "compare only figures of one definition; the card says which",
        zh: "只比较同一口径的数字；口径见定义卡",
    },
    judge: Judge::Run(other_definitions),
};

fn other_definitions(view: &View<'_>) -> Option<Said> {
    let definition = view.summary.definition;
    (definition != measure::definition::GOODPUT).then(|| {
        let name = definition.card().name;
        said!(
            "These figures follow the definitions of {name}: TPOT, ITL and throughput of other \
             tools mean other things by the same names.",
            "这些数字采用 {name} 的口径：其他工具的 TPOT、ITL 和吞吐虽同名而含义不同。",
            name = name,
        )
    })
}

pub(super) const TWO_MEANS: Entry = Entry {
    id: "two_means",
    code: "L8",
    concerns: "itl_ms",
    title: Text { en: "mean ITL taken for mean TPOT", zh: "把平均 ITL 当作平均 TPOT" },
    instead: Text {
        en: "mean TPOT counts requests alike, mean ITL counts tokens alike",
        zh: "平均 TPOT 按请求加权，平均 ITL 按 token 加权",
    },
    judge: Judge::Run(two_means),
};

/// How far apart the two means are before mixing them up matters.
const MEANS_APART: f64 = 0.10;

fn two_means(view: &View<'_>) -> Option<Said> {
    let (tpot, itl) = (view.figure("tpot_ms", "mean")?, view.figure("itl_ms", "mean")?);
    (tpot > 0.0 && (itl / tpot - 1.0).abs() > MEANS_APART).then(|| {
        said!(
            "The mean ITL is {itl:.1} ms and the mean TPOT {tpot:.1} ms: long answers count more \
             in the former, every request alike in the latter.",
            "平均 ITL 为 {itl:.1} ms，平均 TPOT 为 {tpot:.1} ms：前者中长回答权重更大，后者每个请求\
             等权。",
            itl = itl,
            tpot = tpot,
        )
    })
}

pub(super) const CACHE_STATE: Entry = Entry {
    id: "cache_state",
    code: "L11",
    concerns: "ttft_ms",
    title: Text { en: "cold or warm cache unstated", zh: "未说明缓存冷热" },
    instead: Text {
        en: "state the cache regime and the share of the prompt that was found",
        zh: "说明缓存状态以及命中的输入比例",
    },
    judge: Judge::Run(cache_state),
};

/// Share of prompt tokens found from which on TTFT depends on the cache.
const FOUND_MATTERS: f64 = 0.05;

fn cache_state(view: &View<'_>) -> Option<Said> {
    if view.summary.facts.workload.cache_regime != "as-is" {
        return None;
    }
    let signals = view.signals();
    let rate = signals.and_then(|signals| {
        let queried = signals.increase(Signal::PrefixQueries).filter(|queried| *queried > 0.0)?;
        Some(signals.increase(Signal::PrefixHits)? / queried)
    });
    let share = rate.or(view.summary.tokens.cached_share)?;
    (share > FOUND_MATTERS).then(|| {
        said!(
            "{share:.0} % of the prompt tokens were found in a cache whose state nobody set: a \
             second run, or a restarted server, gives another TTFT.",
            "{share:.0} % 的输入 token 命中了缓存，而缓存的初始状态未受控制：再跑一次或重启服务，\
             TTFT 会不同。",
            share = 100.0 * share,
        )
    })
}

pub(super) const FEW_SAMPLES: Entry = Entry {
    id: "few_samples",
    code: "L12",
    concerns: "ttft_ms",
    title: Text {
        en: "a percentile that the sample does not hold", zh: "样本不足以支撑该分位数"
    },
    instead: Text {
        en: "a percentile p needs 10/(1 − p) requests: 200 for P95, 1 000 for P99",
        zh: "分位数 p 需要 10/(1 − p) 个请求：P95 需 200 个，P99 需 1 000 个",
    },
    judge: Judge::Run(few_samples),
};

/// Below so many samples a P99 is the largest value or next to it.
const P99_IS_MAX: u64 = 100;

fn few_samples(view: &View<'_>) -> Option<Said> {
    let ttft = view.metric("ttft_ms")?;
    let (p99, max) = (ttft.figure("p99")?, ttft.max?);
    (ttft.n < P99_IS_MAX && ttft.n > 1).then(|| {
        said!(
            "P99 of {n} requests is {p99:.0} ms because one took {max:.0} ms: it is their slowest \
             and not a percentile.",
            "{n} 个请求的 P99 为 {p99:.0} ms，只因其中一个用了 {max:.0} ms：这是最慢值，而不是分位数。",
            n = ttft.n,
            p99 = p99,
            max = max,
        )
    })
}

pub(super) const WARM_UP_INCLUDED: Entry = Entry {
    id: "warm_up_included",
    code: "L14",
    concerns: "ttft_ms",
    title: Text { en: "warm-up is in the figures", zh: "数字中包含预热" },
    instead: Text {
        en: "warm up first (--num-warmups), or read the steady window",
        zh: "先预热（--num-warmups），或看稳态窗口",
    },
    judge: Judge::Run(warm_up_included),
};

/// How many times the later ones' median the first requests take, when the
/// server was not warm.
const COLD_OVER_WARM: f64 = 3.0;

fn warm_up_included(view: &View<'_>) -> Option<Said> {
    let mut of: Vec<(u32, f64)> = view
        .ok()
        .filter_map(|request| Some((request.record.index, request.ttft().ok()?)))
        .collect();
    of.sort_by_key(|(index, _)| *index);
    let first = (of.len() / 20).clamp(3, 10);
    if of.len() < 10 * first {
        return None;
    }
    let middle = |of: &[(u32, f64)]| {
        let mut sorted: Vec<f64> = of.iter().map(|(_, ms)| *ms).collect();
        sorted.sort_by(f64::total_cmp);
        measure::quantile::linear(&sorted, 0.5)
    };
    let (cold, warm) = (middle(&of[..first])?, middle(&of[first..])?);
    let later = middle(&of[first..2 * first])?;
    // A queue that builds up makes later ones slow, not the first.
    (warm > 0.0 && cold > COLD_OVER_WARM * warm && cold > COLD_OVER_WARM * later).then(|| {
        said!(
            "The first {first} requests waited {cold:.0} ms for their first token and the others \
             {warm:.0} ms: the server was not warm, and its start is in these figures.",
            "前 {first} 个请求的 TTFT 中位数为 {cold:.0} ms，其余为 {warm:.0} ms：服务端尚未预热，\
             启动阶段计入了这些数字。",
            first = first,
            cold = cold,
            warm = warm,
        )
    })
}

pub(super) const AVERAGED_PERCENTILES: Entry = Entry {
    id: "averaged_percentiles",
    code: "L18",
    concerns: "ttft_ms",
    title: Text { en: "percentiles of parts are averaged", zh: "对分位数取平均" },
    instead: Text {
        en: "a percentile of the whole comes from all samples together",
        zh: "整体的分位数要由全部样本合并计算",
    },
    judge: Judge::Run(averaged_percentiles),
};

/// How far the mean of the parts' P99 lies from the P99 of all.
const PARTS_APART: f64 = 0.15;

fn averaged_percentiles(view: &View<'_>) -> Option<Said> {
    let whole = view.figure("ttft_ms", "p99").filter(|ms| *ms > 0.0)?;
    let of_urls: Vec<f64> = view
        .summary
        .slices
        .by_label
        .iter()
        .filter(
            |slice| matches!(&slice.of, Part::Label { name, .. } if name == measure::record::URL),
        )
        .filter_map(|slice| slice.ttft.figure("p99"))
        .collect();
    if of_urls.len() < 2 {
        return None;
    }
    let mean = of_urls.iter().sum::<f64>() / of_urls.len() as f64;
    ((mean / whole - 1.0).abs() > PARTS_APART).then(|| {
        said!(
            "The P99 of all {n} addresses together is {whole:.0} ms; the mean of their own P99 \
             would be {mean:.0} ms and is the P99 of nothing.",
            "{n} 个地址合并后的 P99 为 {whole:.0} ms；若对各自的 P99 取平均则为 {mean:.0} ms，\
             它不是任何总体的 P99。",
            n = of_urls.len(),
            whole = whole,
            mean = mean,
        )
    })
}

pub(super) const CHUNK_IS_TOKEN: Entry = Entry {
    id: "chunk_is_token",
    code: "L20",
    concerns: "icl_ms",
    title: Text { en: "a chunk taken for a token", zh: "把 chunk 当作 token" },
    instead: Text {
        en: "a gap between chunks covers all tokens of the chunk; read TPOT for time per token",
        zh: "chunk 间隔覆盖该 chunk 的全部 token；每 token 时间看 TPOT",
    },
    judge: Judge::Run(chunk_is_token),
};

/// Tokens of a chunk from which on the two differ.
const MORE_THAN_ONE: f64 = 1.1;

fn chunk_is_token(view: &View<'_>) -> Option<Said> {
    let tokens = view.figure("tokens_per_chunk", "mean")?;
    let gap = view.figure("icl_ms", "p50")?;
    (tokens > MORE_THAN_ONE).then(|| {
        said!(
            "A chunk carries {tokens:.1} tokens on average (speculation, a stream interval, or \
             something that collects them): {gap:.0} ms is the time of a chunk and not of a token.",
            "每个 chunk 平均携带 {tokens:.1} 个 token（推测解码、流式间隔或中间缓冲）：{gap:.0} ms \
             是 chunk 的间隔，不是每个 token 的时间。",
            tokens = tokens,
            gap = gap,
        )
    })
}
