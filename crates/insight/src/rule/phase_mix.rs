//! E4: engines for prompts and engines for answers are not in the ratio that this
//! work needs.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::{Role, Signal};
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::{View, mean};

pub(super) static RULE: Rule = Rule {
    id: "phase_mix",
    code: "E4",
    class: Class::Misconfiguration,
    title: text("prefill and decode engines are out of proportion", "预填充与解码引擎配比不当"),
    symptom: text(
        "TTFT is over its limit while TPOT has room, or the other way round, at the same load",
        "同样负载下 TTFT 超标而 TPOT 有余量，或相反",
    ),
    required: text(
        "one kind of engine has a queue or a full KV cache while the other has none",
        "一类引擎排队或 KV 已满，另一类空闲",
    ),
    check: text(
        "with longer answers instead of longer prompts the other kind is short",
        "改变输入与输出长度之比后，瓶颈换到另一类引擎",
    ),
    command: "goodput bench {target} --isl 64 --osl 256",
    advice: &[Advice {
        text: text(
            "engines in the ratio of their work: uncached prompt tokens over prompt speed, to answer tokens over decode speed",
            "按工作量配比：未命中输入 token ÷ 预填充速率 与 输出 token ÷ 解码速率 之比",
        ),
        flags: &[("vllm", "--kv-transfer-config"), ("sglang", "--disaggregation-mode")],
    }],
    improves: &["attainment", "goodput_req_s"],
    seen_live: false,
    judge,
};

/// What engines of one kind are like.
struct Kind {
    waiting: f64,
    kv: f64,
}

fn kind(view: &View<'_>, of: Role) -> Option<Kind> {
    let each = |signal| {
        let engines = view.instances(|role| role == of);
        mean(engines.filter_map(|one| one.readings.get(&signal)?.value()))
    };
    Some(Kind { waiting: each(Signal::QueueDepth)?, kv: each(Signal::KvUsage).unwrap_or(0.0) })
}

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let (prefill, decode) = (kind(view, Role::Prefill)?, kind(view, Role::Decode)?);
    let wrong = &view.wrong;
    let lacks_prefill = wrong.ttft > 1.0
        && wrong.tpot < 0.6
        && prefill.waiting >= 1.0
        && decode.waiting < 0.5
        && decode.kv < 0.6;
    let lacks_decode = wrong.tpot > 1.0
        && wrong.ttft < 0.6
        && prefill.waiting < 0.5
        && (decode.waiting >= 1.0 || decode.kv >= 0.8);
    let (short_en, short_zh) = match (lacks_prefill, lacks_decode) {
        (true, _) => ("prompts", "预填充"),
        (_, true) => ("answers", "解码"),
        _ => return None,
    };
    let evidence = vec![
        client(said!("P90 of TTFT over its limit", "TTFT 的 P90 与目标之比"), wrong.ttft, ""),
        client(said!("P90 of TPOT over its limit", "TPOT 的 P90 与目标之比"), wrong.tpot, ""),
        server(said!("waiting at a prefill engine", "每个预填充引擎的等待数"), prefill.waiting, ""),
        server(said!("waiting at a decode engine", "每个解码引擎的等待数"), decode.waiting, ""),
        server(said!("KV usage of decode engines", "解码引擎的 KV 占用"), decode.kv, ""),
    ];
    let says = measure::said::Said {
        en: format!(
            "there are too few engines for {short_en}: P90 of TTFT is {:.1} and of TPOT {:.1} times its limit, \
             with {:.1} and {:.1} requests waiting at a prefill and a decode engine",
            wrong.ttft, wrong.tpot, prefill.waiting, decode.waiting,
        ),
        zh: format!(
            "{short_zh}引擎不足：TTFT 与 TPOT 的 P90 分别为目标的 {:.1} 与 {:.1} 倍，每个预填充与解码引擎各有 {:.1} 与 {:.1} 个请求等待",
            wrong.ttft, wrong.tpot, prefill.waiting, decode.waiting,
        ),
    };
    let missing = said!(
        "the speed of each kind by itself: prompts with one output token, and short prompts with long answers",
        "每类引擎的单独速率：只输出一个 token 的压测，与短输入长输出的压测"
    );
    let confidence = if wrong.is_given { Confidence::Likely } else { Confidence::Possible };
    let share = signs::explains(view, 0.8, 0.8, 0.1);
    Some(Case::new(confidence, share, says, evidence).missing([missing]))
}
