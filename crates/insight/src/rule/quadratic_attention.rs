//! P3: prompts are so long that attention between their tokens is what takes
//! the time.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, server, signs, text};
use crate::fit::{self, Point};
use crate::view::{Seen, View, at_share};

pub(super) static RULE: Rule = Rule {
    id: "quadratic_attention",
    code: "P3",
    class: Class::Prefill,
    title: text("attention makes long prompts slow", "长输入的注意力计算占主导"),
    symptom: text(
        "TTFT grows faster than the prompt: twice the length takes more than 2.3 times as long",
        "TTFT 增长快于输入长度：长度加倍，耗时超过 2.3 倍",
    ),
    required: text(
        "prefill times of single requests whose square term is 30 % or more of the linear one",
        "逐请求的预填充时间中，二次项达到一次项的 30 % 以上",
    ),
    check: text(
        "a prompt and one of twice its length, one at a time",
        "逐个发送某一长度及其两倍长度的输入",
    ),
    command: "for s in 4000 8000 16000; do goodput bench {target} -c 1 -n 10 --isl $s --osl 1 --prefix-cache none; done",
    advice: &[
        Advice {
            text: text(
                "divide long prompts over accelerators by their tokens",
                "按 token 把长输入分到多张卡（上下文并行）",
            ),
            flags: &[
                ("vllm", "--prefill-context-parallel-size"),
                ("sglang", "--enable-dynamic-chunking"),
            ],
        },
        Advice {
            text: text("share prefixes, shorten prompts", "共享前缀、缩短输入"),
            flags: &[("vllm", "--enable-prefix-caching")],
        },
        Advice {
            text: text(
                "take a model with sparse, windowed or linear attention",
                "使用稀疏、滑动窗口或线性注意力的模型",
            ),
            flags: &[],
        },
    ],
    improves: &["ttft_ms", "attainment"],
    seen_live: false,
    judge,
};

/// Tokens below which attention is little for any model that is served.
const LONG: f64 = 8_000.0;

/// Groups of lengths that the fit goes through.
const GROUPS: usize = 8;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let points = prefills(view)?;
    let curve = fit::curve(&points, true, fit::LADDER).ok()?;
    let tokens = view.at_share(0.9, Seen::uncached).filter(|tokens| *tokens >= LONG)?;
    let bend = curve.c * tokens / curve.b.max(1e-12);
    let by_model = view.deployment.model.as_ref().map(|model| {
        let attention = model.attention_flops(tokens, 0.0);
        attention / (attention + tokens * model.linear_flops_per_token())
    });
    // Where the shape says that attention is little, something else bends.
    if bend < 0.3 || by_model.is_some_and(|share| share < 0.15) {
        return None;
    }
    let square_ms = curve.c * tokens * tokens;
    let ttft_ms = view.at_share(0.9, |seen| seen.ttft_ms)?;
    let part = square_ms / ttft_ms.max(1e-6);
    if part < 0.2 {
        return None;
    }
    let mut evidence = vec![
        server(said!("square term over linear term", "二次项与一次项之比"), bend, ""),
        server(said!("variance of prefill times explained", "预填充时间拟合优度"), curve.r2, ""),
        server(said!("time of the square term", "二次项耗时"), square_ms, "ms"),
        client(
            said!("prompt that it is computed for, P90", "所取输入长度（P90）"),
            tokens,
            "tokens",
        ),
    ];
    evidence.extend(by_model.map(|share| {
        bound(said!("attention's share of its operations", "注意力占运算量比例"), share, "")
    }));
    let confidence = if by_model.is_some() { Confidence::Likely } else { Confidence::Possible };
    let missing = by_model.is_none().then(|| {
        said!(
            "the model's shape, which says what attention has to cost (--model-shape)",
            "模型结构，用于计算注意力应占多少（--model-shape）"
        )
    });
    let says = said!(
        "of a prompt of {tokens:.0} tokens {square:.0} ms grow with the square of its length, \
         {share:.0} % of its TTFT",
        "长度 {tokens:.0} 的输入中有 {square:.0} ms 随长度平方增长，占其 TTFT 的 {share:.0} %",
        tokens = tokens,
        square = square_ms,
        share = 100.0 * part,
    );
    let share = signs::explains(view, part, 0.0, 0.1);
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}

/// Prefill times over lengths, of single requests as the server tells them: the
/// median of each group of neighbouring lengths.
fn prefills(view: &View<'_>) -> Option<Vec<Point>> {
    let timed =
        view.seen.iter().filter_map(|seen| Some((seen.uncached()?, seen.timings.prefill_ms?)));
    let mut all: Vec<(f64, f64)> = timed.collect();
    if all.len() < 5 * GROUPS {
        return None;
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let groups = all.chunks(all.len().div_ceil(GROUPS)).filter_map(|group| {
        let x = at_share(group.iter().map(|(length, _)| *length).collect(), 0.5)?;
        let y = at_share(group.iter().map(|(_, ms)| *ms).collect(), 0.5)?;
        Some(Point { x, y, weight: group.len() as f64 })
    });
    Some(groups.collect())
}
