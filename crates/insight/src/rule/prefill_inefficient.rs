//! P2: computing a prompt takes far longer than the accelerator needs.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "prefill_inefficient",
    code: "P2",
    class: Class::Prefill,
    title: text("prompts take far longer than arithmetic needs", "预填充效率低"),
    symptom: text(
        "TTFT by itself is more than three times what the peak of arithmetic gives",
        "独占时的 TTFT 超过算力峰值对应值的三倍",
    ),
    required: text("matrix units little used, many short steps", "张量单元利用低，步短而多"),
    check: text(
        "TTFT falls when the token budget of a step rises from 512 to 16 384",
        "把单步 token 预算从 512 提到 16384 后 TTFT 下降",
    ),
    command: "for s in 128 512 2048; do goodput bench {target} -c 1 -n 10 --isl $s --osl 1 --prefix-cache none; done",
    advice: &[
        Advice {
            text: text("raise the token budget of a step", "提高单步 token 预算"),
            flags: &[
                ("vllm", "--max-num-batched-tokens"),
                ("sglang", "--chunked-prefill-size"),
                ("llama_cpp", "--ubatch-size"),
            ],
        },
        Advice {
            text: text(
                "try another attention backend; record graphs",
                "更换注意力后端；启用 CUDA graph",
            ),
            flags: &[("vllm", "--attention-backend"), ("sglang", "--attention-backend")],
        },
    ],
    improves: &["ttft_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, stages: &Stages) -> Option<Case> {
    // From outside a slow front end or a queue looks alike.
    let told_ms = view.prefill_ms()?;
    let own_ms = signs::own_prefill_ms(view, stages).filter(|ms| *ms > 50.0)?;
    let ttft_ms = view.ttft_ms()?;
    let bounds = view.bounds?;
    let step_ms = view.mixture?.floor_ms;
    // What a step takes whatever is in it is no matter of the prompt.
    let reached = bounds.prefill_ms / (own_ms - step_ms).max(1.0);
    if reached > 0.3 || own_ms < 0.4 * ttft_ms || view.wrong.ttft < 0.5 || own_ms < 3.0 * step_ms {
        return None;
    }
    let evidence = vec![
        client(said!("a prompt by itself", "单个输入独占时"), own_ms, "ms"),
        bound(
            said!("the same at the peaks of the hardware", "以硬件峰值计算"),
            bounds.prefill_ms,
            "ms",
        ),
        client(said!("the quickest step", "最快的步"), step_ms, "ms"),
        server(said!("prefill time", "预填充时间"), told_ms, "ms"),
    ];
    let says = said!(
        "a prompt by itself takes {own:.0} ms where the peaks of the hardware give {ideal:.0} ms",
        "单个输入的预填充需 {own:.0} ms，而硬件峰值只需 {ideal:.0} ms",
        own = own_ms,
        ideal = bounds.prefill_ms,
    );
    let part = (own_ms - 2.0 * bounds.prefill_ms).max(0.0) / ttft_ms;
    // Steps with prompts are the longest gaps of those who decode beside them.
    Some(Case::new(Confidence::Likely, signs::explains(view, part, 0.0, part), says, evidence))
}
