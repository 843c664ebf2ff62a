//! D3: a step takes far longer than the accelerator needs: the host launches it.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "host_bound",
    code: "D3",
    class: Class::Host,
    title: text("steps wait for the host", "步进受主机侧开销限制"),
    symptom: text(
        "TPOT is more than three times its bound, and hardly depends on model, batch and context",
        "TPOT 超过下界三倍，且几乎不随模型、批与上下文变化",
    ),
    required: text(
        "the accelerator idles between steps, one processor is fully used",
        "步间加速器空闲，某个 CPU 核满载",
    ),
    check: text(
        "with recorded graphs TPOT falls; a smaller model has the same TPOT",
        "启用 CUDA graph 后 TPOT 下降；换更小的模型 TPOT 不变",
    ),
    command: "for o in 1 16 64 256; do goodput bench {target} -c 1 -n 10 --osl $o; done",
    advice: &[
        Advice {
            text: text(
                "record graphs: do not enforce eager mode",
                "启用 CUDA graph，不要强制 eager",
            ),
            flags: &[
                ("vllm", "--enforce-eager (remove it)"),
                ("sglang", "--disable-cuda-graph (remove it)"),
            ],
        },
        Advice {
            text: text("plan the next step while one runs", "启用异步调度"),
            flags: &[
                ("vllm", "--async-scheduling"),
                ("sglang", "--disable-overlap-schedule (remove it)"),
            ],
        },
        Advice {
            text: text(
                "send several tokens in one event; take a faster processor",
                "合并输出事件；使用更快的 CPU",
            ),
            flags: &[("vllm", "--stream-interval"), ("sglang", "--stream-interval")],
        },
    ],
    improves: &["tpot_ms"],
    seen_live: true,
    judge,
};

/// Times its bound from which on a step is the host's.
const FAR: f64 = 3.0;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let (bounds, mixture) = (view.bounds?, view.mixture?);
    let drafts = view.signal(Signal::Drafts).is_some_and(|drafts| drafts > 0.0);
    let times = mixture.floor_ms / bounds.step_ms;
    if times < FAR || drafts || mixture.together > 0.2 {
        return None;
    }
    let told = view.server_ms(Signal::ServerItl).or_else(|| view.server_ms(Signal::ServerTpot));
    let busy = view.signal(Signal::GpuBusy).or_else(|| view.signal(Signal::SmActive));
    // A server whose own gaps are short is held up outside.
    if told.is_some_and(|ms| ms < 2.0 * bounds.step_ms) {
        return None;
    }
    let mut evidence = vec![
        client(said!("quickest step", "最快步长"), mixture.floor_ms, "ms"),
        bound(said!("its bound", "其下界"), bounds.step_ms, "ms"),
        client(said!("step over bound", "步长与下界之比"), times, ""),
    ];
    evidence.extend(
        told.map(|ms| {
            server(said!("gap between outputs at the server", "服务端输出间隔"), ms, "ms")
        }),
    );
    evidence
        .extend(busy.map(|share| server(said!("accelerator busy", "加速器忙碌比例"), share, "")));
    let against = busy
        .filter(|share| *share > 0.9)
        .map(|share| server(said!("accelerator busy", "加速器忙碌比例"), share, ""));
    let confidence = match (told, busy) {
        (Some(_), Some(busy)) if busy < 0.6 => Confidence::Confirmed,
        (Some(_), _) => Confidence::Likely,
        (None, _) => Confidence::Possible,
    };
    let missing = busy.is_none().then(|| {
        said!(
            "how busy the accelerator is: kernels that are slow look alike from here",
            "加速器忙碌程度：内核本身慢时表现相同"
        )
    });
    let says = said!(
        "the quickest step takes {floor:.1} ms and the hardware needs {ideal:.1} ms for it",
        "最快的步需 {floor:.1} ms，而硬件只需 {ideal:.1} ms",
        floor = mixture.floor_ms,
        ideal = bounds.step_ms,
    );
    let tpot_ms = view.mean(|seen| seen.tpot_ms)?;
    let part = (mixture.floor_ms - 1.5 * bounds.step_ms) / tpot_ms.max(1e-6);
    // A step is as much too long for prompts as for answers.
    let share = signs::explains(view, 0.3 * part, part, 0.3).max(0.5 * part.min(1.0));
    Some(Case::new(confidence, share, says, evidence).against(against).missing(missing))
}
