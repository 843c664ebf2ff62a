//! C5: keys and values travel from the engine that computes prompts to the one
//! that writes answers.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::{Role, Signal};
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "kv_handover",
    code: "C5",
    class: Class::Communication,
    title: text("the handover between prefill and decode takes long", "预填充到解码的 KV 传输耗时"),
    symptom: text(
        "TTFT is prefill plus a part that grows with the prompt, or the first gap is long",
        "TTFT 等于预填充加上随输入增长的一段，或首个间隔很长",
    ),
    required: text(
        "a transfer a fifth of TTFT or more; failed or expired transfers; requests that wait for theirs",
        "传输占 TTFT 五分之一以上；有失败或超时的传输；有请求在等待传输",
    ),
    check: text("the same request on an engine that does both", "同样的请求发到不分离的引擎"),
    command: "for s in 128 512 2048; do goodput bench {target} -c 1 -n 10 --isl $s --osl 8 --prefix-cache none; done",
    advice: &[
        Advice {
            text: text(
                "RDMA instead of TCP, more network cards, transfer layer by layer",
                "用 RDMA 而不是 TCP，增加网卡，逐层传输",
            ),
            flags: &[
                ("vllm", "--kv-transfer-config"),
                ("sglang", "--disaggregation-transfer-backend, --disaggregation-ib-device"),
            ],
        },
        Advice {
            text: text("larger blocks, so that fewer pieces travel", "增大块，减少传输片数"),
            flags: &[("vllm", "--block-size"), ("sglang", "--page-size")],
        },
        Advice {
            text: text("another ratio of prefill to decode engines", "调整预填充与解码引擎的比例"),
            flags: &[],
        },
    ],
    improves: &["ttft_ms"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let ttft_ms = view.ttft_ms().filter(|ms| *ms > 0.0)?;
    let transfer_ms = view.server_ms(Signal::KvTransferTime).unwrap_or(0.0);
    let of_ttft = transfer_ms / ttft_ms;
    let count = |signal| signals.increase(signal).unwrap_or(0.0);
    let lost = count(Signal::KvTransferFailures) + count(Signal::KvExpired);
    let waiting = view.signal(Signal::TransferQueue).unwrap_or(0.0);
    let is_long = of_ttft >= 0.2 && transfer_ms >= 10.0;
    let loses = lost >= 1.0 && lost >= 0.01 * view.seen.len() as f64;
    let signs_of_it = [is_long, loses, waiting >= 0.5].into_iter().filter(|is| *is).count();
    let roles = view.instances(|role| matches!(role, Role::Prefill | Role::Decode)).count();
    let confidence = match (signs_of_it, roles) {
        (0, _) => return None,
        (1, 0) => Confidence::Possible,
        (1, _) => Confidence::Likely,
        _ => Confidence::Confirmed,
    };
    let mut evidence = vec![
        server(said!("a transfer, mean", "平均传输时间"), transfer_ms, "ms"),
        client(said!("TTFT, mean", "平均 TTFT"), ttft_ms, "ms"),
        server(said!("failed and expired transfers", "失败与超时的传输"), lost, ""),
    ];
    let seconds = signals.taken(Signal::KvTransferTime).map(|taken| taken.sum);
    let speed = signals.increase(Signal::KvTransferBytes).zip(seconds.filter(|s| *s > 0.0));
    evidence.extend(speed.map(|(bytes, s)| {
        server(said!("speed of a transfer", "传输速度"), bytes / s / 1e9, "GB/s")
    }));
    evidence.extend(told(view, Signal::TransferQueue));
    let missing = (roles == 0).then(|| {
        said!(
            "which engines compute prompts and which write answers: each one's metrics as a --metrics-url",
            "哪些引擎做预填充、哪些做解码：为每个引擎给出 --metrics-url"
        )
    });
    let says = said!(
        "a transfer of keys and values takes {ms:.0} ms, {share:.0} % of TTFT; {lost:.0} failed or \
         expired, and {waiting:.1} requests wait for one",
        "一次 KV 传输需 {ms:.0} ms，占 TTFT 的 {share:.0} %；{lost:.0} 次失败或超时，平均有 {waiting:.1} 个请求在等待传输",
        ms = transfer_ms,
        share = 100.0 * of_ttft,
        lost = lost,
        waiting = waiting,
    );
    let share = signs::explains(view, of_ttft.max(0.2), 0.0, 0.2);
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}
