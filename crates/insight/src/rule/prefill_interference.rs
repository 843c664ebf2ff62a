//! D6: steps with a long prompt in them hold up those that decode.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "prefill_interference",
    code: "D6",
    class: Class::Decode,
    title: text("prompts hold up answers that are being written", "预填充干扰解码"),
    symptom: text(
        "P99 of the gaps is many times the median while TPOT is moderate",
        "间隔 P99 数倍于中位数，而 TPOT 均值尚可",
    ),
    required: text(
        "slow gaps when prompts of others are computed, no preemptions",
        "慢间隔发生在他人输入被计算之时，且无抢占",
    ),
    check: text(
        "stalls get shorter with the token budget, and go without new prompts",
        "停顿随 token 预算缩短，没有新输入时消失",
    ),
    command: "goodput bench {target} --isl 64 --osl 256",
    advice: &[
        Advice {
            text: text(
                "lower the token budget of a step; long prompts then take more steps",
                "降低单步 token 预算；长输入需要更多步",
            ),
            flags: &[
                ("vllm", "--max-num-batched-tokens"),
                ("sglang", "--chunked-prefill-size"),
                ("llama_cpp", "--ubatch-size"),
            ],
        },
        Advice {
            text: text("limit what one long prompt takes of a step", "限制单个长输入在每步的占用"),
            flags: &[("vllm", "--long-prefill-token-threshold")],
        },
        Advice {
            text: text("compute prompts on engines of their own", "预填充与解码分离部署"),
            flags: &[("vllm", "--kv-transfer-config"), ("sglang", "--disaggregation-mode")],
        },
    ],
    improves: &["icl_ms", "itl_ms", "attainment"],
    seen_live: true,
    judge,
};

/// Tokens of a prompt in one step to which a smaller budget would cut it.
const SMALL_STEP: f64 = 512.0;

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let mixture = view.mixture?;
    let tail_ms = view.figure("icl_ms", "p99")?;
    let tail = signs::gap_tail(view)?;
    let (slow, base) = (mixture.slow_with_newcomer?, mixture.base_with_newcomer.unwrap_or(0.0));
    if mixture.together > 0.2 || tail < 3.0 || slow < 0.6 || slow < 1.3 * base {
        return None;
    }
    // Where prompts begin alike and nobody tells what was found, it is not known
    // which of their tokens were computed.
    if signs::shared(view).is_some_and(|shared| shared >= 0.5) && view.hit_rate().is_none() {
        return None;
    }
    let longest = view.at_share(0.95, crate::view::Seen::uncached)?;
    let in_a_step = view.token_budget().map_or(longest, |budget| budget.min(longest));
    // With smaller steps the longest gaps would shrink in proportion.
    let cut = (SMALL_STEP / in_a_step).min(1.0);
    let gain = tail_ms / (mixture.base_ms + (tail_ms - mixture.base_ms) * cut);
    if gain < 2.0 {
        return None;
    }
    let preemptions = view.preemptions_per_request();
    let stalls_alone = mixture.alone.unwrap_or(0.0);
    if preemptions > Some(0.05) && stalls_alone > 0.3 {
        return None;
    }
    let told = view.signals().and_then(|signals| signals.taken(Signal::ServerItl));
    // The server's own gaps have the tail too: it is no matter of the network.
    let server_tail = told.map(|taken| above(&taken.buckets, 0.4 * tail_ms / 1e3, taken.count));
    let mut evidence = vec![
        client(said!("P99 of the gaps", "间隔 P99"), tail_ms, "ms"),
        client(said!("undisturbed gap", "正常间隔"), mixture.base_ms, "ms"),
        client(
            said!("of slow gaps, with another's prompt in them", "慢间隔中含他人预填充的比例"),
            slow,
            "",
        ),
        client(said!("of other gaps", "其他间隔中的比例"), base, ""),
        client(said!("longest prompts, P95", "长输入 P95"), longest, "tokens"),
        client(
            said!("share of decode time that is lost", "解码时间损失比例"),
            mixture.excess(),
            "",
        ),
    ];
    evidence.extend(
        preemptions
            .map(|count| server(said!("preemptions a request", "每请求抢占次数"), count, "")),
    );
    evidence.extend(server_tail.map(|share| {
        server(
            said!("share of the server's gaps that are as long", "服务端同样长的间隔占比"),
            share,
            "",
        )
    }));
    let confidence = match (server_tail, preemptions) {
        (Some(share), Some(preemptions))
            if share >= 0.005 && preemptions <= 0.01 && gain >= 2.5 =>
        {
            Confidence::Confirmed
        }
        (Some(_), _) => Confidence::Likely,
        (None, _) => Confidence::Possible,
    };
    let says = said!(
        "P99 of the gaps is {tail:.0} ms, {times:.1} times an undisturbed one, and {share:.0} % of the \
         time lost lies in gaps in which another's prompt was computed",
        "间隔 P99 为 {tail:.0} ms，是正常间隔的 {times:.1} 倍；损失的时间有 {share:.0} % 落在他人输入被计算的间隔里",
        tail = tail_ms,
        times = tail,
        share = 100.0 * slow,
    );
    let part = slow * (1.0 - 1.0 / gain);
    let share = signs::explains(view, 0.0, slow * mixture.excess(), part).max(0.4 * part);
    Some(Case::new(confidence, share, says, evidence))
}

/// Share of observations above a value, by the first bound at or above it.
fn above(buckets: &[(f64, f64)], value: f64, count: f64) -> f64 {
    let below = buckets.iter().find(|(bound, _)| *bound >= value).map_or(count, |(_, n)| *n);
    if count > 0.0 { 1.0 - below / count } else { 0.0 }
}
