//! P7: pictures are prepared and encoded before a prompt can be computed.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "image_encoding",
    code: "P7",
    class: Class::Prefill,
    title: text("pictures take long to prepare", "图像预处理与编码耗时"),
    symptom: text(
        "TTFT of prompts with pictures is far above that of text with as many tokens",
        "带图像的请求 TTFT 远高于同样 token 数的纯文本",
    ),
    required: text(
        "most pictures not found in the cache of prepared inputs, little queue time",
        "多模态缓存命中率低，排队时间短",
    ),
    check: text(
        "the same pictures again are quick: preparing or encoding them is what took long",
        "同样的图像第二次很快，则耗时在预处理或编码",
    ),
    command: "for i in 1 2; do goodput bench {target} --dataset-name random-mm -c 1 -n 10 --seed 5; done",
    advice: &[
        Advice {
            text: text("give prepared pictures a larger cache", "增大多模态预处理缓存"),
            flags: &[("vllm", "--mm-processor-cache-gb")],
        },
        Advice {
            text: text(
                "divide the encoder by pictures instead of by layers",
                "编码器按数据并行而不是张量并行",
            ),
            flags: &[("vllm", "--mm-encoder-tp-mode")],
        },
        Advice {
            text: text(
                "encode on other accelerators; send smaller pictures",
                "编码分离到其他加速器；缩小图像",
            ),
            flags: &[("vllm", "--ec-transfer-config")],
        },
    ],
    improves: &["ttft_ms"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let asked = signals.increase(Signal::ImageQueries).filter(|asked| *asked >= 10.0)?;
    let missed = 1.0 - signals.increase(Signal::ImageHits)? / asked;
    let share_of = |id| signs::stage(stages, id).map_or(0.0, |stage| stage.share.max(0.0));
    let (before, prefill, queue) = (share_of("front_end"), share_of("prefill"), share_of("queue"));
    if missed < 0.5 || before + prefill < 0.5 || queue > 0.3 {
        return None;
    }
    let mut evidence = vec![
        server(said!("share of pictures that were not found", "图像未命中比例"), missed, ""),
        server(said!("front end's share of TTFT", "前端占 TTFT 比例"), before, ""),
        server(said!("prefill's share of TTFT", "预填充占 TTFT 比例"), prefill, ""),
    ];
    evidence.extend(told(view, Signal::ImageQueries));
    evidence.extend(view.ttft_ms().map(|ms| client(said!("TTFT, mean", "平均 TTFT"), ms, "ms")));
    // The server's processor prepares pictures in the front end.
    let confidence = if before >= 0.25 { Confidence::Likely } else { Confidence::Possible };
    let says = said!(
        "{missed:.0} % of {asked:.0} pictures had to be prepared, and {share:.0} % of TTFT passes \
         before and in the prefill",
        "{asked:.0} 张图像中 {missed:.0} % 需要重新处理，TTFT 的 {share:.0} % 花在前端与预填充",
        missed = 100.0 * missed,
        asked = asked,
        share = 100.0 * (before + prefill),
    );
    let missing = said!(
        "text prompts of as many tokens: how much of it the pictures take",
        "同样 token 数的纯文本对照：图像究竟占多少"
    );
    let share = signs::explains(view, missed * (before + 0.5 * prefill), 0.0, 0.0);
    Some(Case::new(confidence, share, says, evidence).missing([missing]))
}
