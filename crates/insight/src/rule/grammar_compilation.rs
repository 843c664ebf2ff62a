//! P9: a grammar or tool schema is compiled before an answer can begin.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "grammar_compilation",
    code: "P9",
    class: Class::Host,
    title: text("grammars are compiled while requests wait", "编译语法占用首 token 时间"),
    symptom: text(
        "requests with a schema have a higher TTFT, or TPOT, than the same without",
        "带 schema 的请求 TTFT 或 TPOT 高于不带的",
    ),
    required: text(
        "time of compiling grammars a tenth of TTFT or more. vLLM does not tell it; SGLang does",
        "语法编译时间占 TTFT 一成以上。vLLM 不给出，SGLang 给出",
    ),
    check: text("the same prompts without a schema", "同样的输入不带 schema"),
    command: "goodput bench {target} -c 1 -n 20",
    advice: &[
        Advice {
            text: text(
                "send fewer different schemas, and simpler ones, so that compiled ones are found again",
                "减少并简化 schema，使已编译的语法可复用",
            ),
            flags: &[],
        },
        Advice {
            text: text("take another grammar backend", "更换语法后端"),
            flags: &[("vllm", "--structured-outputs-config"), ("sglang", "--grammar-backend")],
        },
    ],
    improves: &["ttft_ms"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let taken = view.signals()?.taken(Signal::GrammarTime)?;
    let mean_ms = 1e3 * taken.mean()?;
    let ttft_ms = view.ttft_ms().filter(|ms| *ms > 0.0)?;
    let each_ms = 1e3 * taken.sum / view.seen.len().max(1) as f64;
    let of_ttft = each_ms / ttft_ms;
    if mean_ms < 20.0 || of_ttft < 0.1 {
        return None;
    }
    let mut evidence = vec![
        server(said!("compiling a grammar, mean", "平均编译时间"), mean_ms, "ms"),
        server(said!("grammars compiled", "编译次数"), taken.count, ""),
        server(said!("time of it for each request", "平摊到每个请求"), each_ms, "ms"),
        client(said!("TTFT, mean", "平均 TTFT"), ttft_ms, "ms"),
    ];
    evidence.extend(told(view, Signal::GrammarQueue));
    let confidence = if of_ttft >= 0.25 { Confidence::Confirmed } else { Confidence::Likely };
    let says = said!(
        "{count:.0} grammars were compiled in {mean:.0} ms each: {share:.0} % of TTFT",
        "编译了 {count:.0} 个语法，平均 {mean:.0} ms：占 TTFT 的 {share:.0} %",
        count = taken.count,
        mean = mean_ms,
        share = 100.0 * of_ttft,
    );
    let share = signs::explains(view, of_ttft, 0.0, 0.1);
    Some(Case::new(confidence, share, says, evidence))
}
