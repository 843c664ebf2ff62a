//! Q3: prompts wait for tokens of a step: the budget is too small for them, or
//! they come faster than they can be computed.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::stage::Stages;

use super::signs::{self, Limit};
use super::{Advice, Case, Rule, client, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "prefill_backlog",
    code: "Q3",
    class: Class::Queueing,
    title: text("prompts wait for tokens of a step", "输入在等待单步 token 预算"),
    symptom: text(
        "TTFT grows with the prompt tokens that are ahead; input tok/s stay flat",
        "TTFT 随前方积压的输入 token 增长，输入 tok/s 持平",
    ),
    required: text(
        "free seats, room in the KV cache, requests waiting or prefills of many steps at the budget",
        "席位与 KV 有余，有请求等待，或预填充跨很多步且每步达到预算",
    ),
    check: text(
        "with answers of one token the same input tok/s is reached: the prompts are the limit",
        "把输出设为 1 个 token 时输入 tok/s 不变：瓶颈在预填充",
    ),
    command: "goodput bench {target} --osl 1",
    advice: &[
        Advice {
            text: text(
                "raise the token budget of a step until input tok/s stop growing; gaps between tokens grow with it",
                "提高单步 token 预算直到输入 tok/s 不再增长；token 间隔会随之变大",
            ),
            flags: &[
                ("vllm", "--max-num-batched-tokens"),
                ("sglang", "--chunked-prefill-size"),
                ("llama_cpp", "--ubatch-size"),
            ],
        },
        Advice {
            text: text(
                "give prompts engines of their own, or more of them",
                "用独立或更多的实例处理预填充",
            ),
            flags: &[("vllm", "--kv-transfer-config"), ("sglang", "--disaggregation-mode")],
        },
    ],
    improves: &["ttft_ms", "goodput_req_s"],
    seen_live: true,
    judge,
};

/// Steps of a prompt from which on its budget is what it waits for.
const MANY_STEPS: f64 = 3.0;

/// Share of the limit of TTFT below which prompts may take as many steps as they
/// do.
const NOBODY_MINDS: f64 = 0.5;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let prefill_ms = view.prefill_ms()?;
    let ttft_ms = view.ttft_ms().filter(|ms| *ms > 0.0)?;
    let queue = signs::queue(view);
    let limit = signs::limit(view);
    let of_queue = match (queue, limit) {
        (Some(queue), Some(Limit::Tokens) | None) => queue.of_ttft,
        _ => 0.0,
    };
    let of_ttft = of_queue + prefill_ms / ttft_ms;
    let elsewhere = matches!(limit, Some(Limit::Seats | Limit::Kv));
    if of_ttft < 0.5 && !(elsewhere && prefill_ms >= 0.3 * ttft_ms) {
        return None;
    }
    let step_ms = view.mixture?.delivery_ms;
    let uncached = view.mean(crate::view::Seen::uncached)?;
    let steps = prefill_ms / step_ms;
    // How much longer a step with prompt tokens is than one without.
    let room = step_ms / view.mixture?.floor_ms.max(1e-6);
    let budget = view.token_budget();
    let needed =
        budget.map(|budget| uncached / (budget - view.running_batch().unwrap_or(0.0)).max(1.0));
    // One long step beside many short ones is not many steps.
    let is_one = signs::gap_tail(view).is_some_and(|tail| tail > 5.0);
    let is_small = steps >= MANY_STEPS
        && !is_one
        && room < 2.5
        && needed.map_or(uncached / steps < 700.0, |needed| needed >= MANY_STEPS)
        && budget.is_none_or(|budget| budget <= 1_024.0);
    let backlog = limit == Some(Limit::Tokens)
        && of_queue >= 0.4
        && !signs::grows(view)
        && signs::prompt_time(view).is_some_and(|share| share > 0.6);
    if !is_small && !backlog || view.wrong.ttft < NOBODY_MINDS {
        return None;
    }
    // Prompts in many steps are as they should be where nobody minds.
    let is_wrong = view.wrong.ttft > 1.0;
    let confidence = match (is_small, budget) {
        (true, Some(_)) if is_wrong => Confidence::Confirmed,
        (true, _) if is_wrong => Confidence::Likely,
        _ => Confidence::Possible,
    };
    let mut evidence = vec![
        server(said!("prefill time", "预填充时间"), prefill_ms, "ms"),
        client(said!("mean step", "平均步长"), step_ms, "ms"),
        client(said!("steps of a prompt", "每个输入的步数"), steps, ""),
        client(said!("prompt tokens to compute", "需计算的输入 token"), uncached, "tokens"),
        client(said!("mean step over the quickest", "平均步长与最快步长之比"), room, ""),
    ];
    evidence.extend(queue.map(|queue| server(said!("queue time", "排队时间"), queue.ms, "ms")));
    evidence.extend(signs::long_prompts(view));
    let says = said!(
        "a prompt of {tokens:.0} tokens takes about {steps:.0} steps, which are {room:.1} times as long \
         as the quickest; prefill and the wait for it are {share:.0} % of TTFT",
        "{tokens:.0} token 的输入约需 {steps:.0} 步，步长为最快步的 {room:.1} 倍；预填充及其等待占 TTFT 的 {share:.0} %",
        tokens = uncached,
        steps = steps,
        room = room,
        share = 100.0 * of_ttft.min(1.0),
    );
    let missing = budget.is_none().then(|| {
        said!(
            "the token budget, which the engine does not tell: give --max-num-batched-tokens",
            "token 预算（引擎未给出）：请用 --max-num-batched-tokens 指定"
        )
    });
    let share = signs::explains(view, of_ttft, 0.0, 0.0);
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}
