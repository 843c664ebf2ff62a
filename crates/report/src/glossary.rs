//! The tree of the metrics as seed text 000 draws it: four branches, and under
//! each the words that people ask for. Seed 003's token generation time is the
//! eighteenth leaf. The definitions themselves are the registry's.

use measure::metric::{Branch, Text};

/// A word of the tree.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// The word.
    pub symbol: &'static str,
    /// What it is, in a few words.
    pub name: Text,
    /// The metrics behind it, the main one first; none for a statistic.
    pub keys: &'static [&'static str],
    /// What a statistic says, which is no metric of its own.
    pub text: Option<Text>,
}

const fn leaf(
    symbol: &'static str,
    en: &'static str,
    zh: &'static str,
    keys: &'static [&'static str],
) -> Leaf {
    Leaf { symbol, name: Text { en, zh }, keys, text: None }
}

const fn statistic(symbol: &'static str, name: Text, text: Text) -> Leaf {
    Leaf { symbol, name, keys: &[], text: Some(text) }
}

/// The branches with their leaves.
pub const TREE: &[(Branch, &[Leaf])] = &[
    (
        Branch::Latency,
        &[
            leaf("TTFT", "time to first token", "首 token 延迟", &["ttft_ms", "ttfc_ms"]),
            leaf("TPOT", "time per output token", "每输出 token 时间", &["tpot_ms"]),
            leaf("ITL", "inter-token latency", "token 间延迟", &["itl_ms", "icl_ms", "stall_ms"]),
            leaf("E2E latency", "whole answer", "端到端延迟", &["e2el_ms"]),
            leaf(
                "Token generation time",
                "from the first token to the last",
                "Token 生成时间",
                &["generation_ms"],
            ),
            leaf(
                "Queueing time",
                "waiting in the server",
                "排队时间",
                &["queueing_ms", "prefill_ms"],
            ),
        ],
    ),
    (
        Branch::Throughput,
        &[
            leaf("Output tokens/s", "tokens produced", "输出吞吐", &["output_tok_s"]),
            leaf(
                "Total tokens/s",
                "tokens read and produced",
                "总吞吐",
                &["total_tok_s", "input_tok_s", "input_computed_tok_s", "input_cached_tok_s"],
            ),
            leaf("Requests/s", "requests completed", "每秒请求数", &["req_s"]),
            leaf("Goodput", "within the SLO", "有效吞吐", &["goodput_req_s", "goodput_tok_s"]),
        ],
    ),
    (
        Branch::Efficiency,
        &[
            leaf("MFU", "use of computing power", "算力利用率", &["mfu", "hfu", "mbu"]),
            leaf("GPU utilisation", "busy or idle", "GPU 利用率", &["gpu_utilisation"]),
            leaf(
                "Memory use",
                "of the accelerator and its KV cache",
                "显存利用率",
                &["gpu_memory", "kv_cache_usage", "prefix_hit_rate", "preemptions_per_request"],
            ),
            leaf(
                "Cost per token",
                "money and energy",
                "单 token 成本",
                &["cost_per_million_tokens", "energy_per_token_j", "tps_per_megawatt"],
            ),
        ],
    ),
    (
        Branch::Quality,
        &[
            statistic(
                "P50",
                Text { en: "the median", zh: "中位数" },
                Text {
                    en: "Half of the requests are faster. It tells what most users see and hardly \
                         moves with an outlier; it says nothing of the slow ones.",
                    zh: "一半请求比它快。反映大多数用户的体验，几乎不受离群值影响，但看不到慢的那部分。",
                },
            ),
            statistic(
                "P95",
                Text { en: "one in twenty is slower", zh: "95 分位数" },
                Text {
                    en: "95 % of the requests are at most this slow. It needs at least 200 samples; \
                         percentiles of several runs or replicas must not be averaged.",
                    zh: "95% 的请求不慢于它。至少需要 200 个样本；多次测试或多个副本的分位数不能取平均。",
                },
            ),
            statistic(
                "P99",
                Text { en: "one in a hundred is slower", zh: "99 分位数" },
                Text {
                    en: "99 % of the requests are at most this slow. It needs at least 1 000 samples: \
                         with fewer, a single request moves it.",
                    zh: "99% 的请求不慢于它。至少需要 1000 个样本：样本不足时，一个请求就能改变它。",
                },
            ),
            leaf("SLO attainment", "share of good requests", "SLO 达标率", &["attainment"]),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use measure::metric::find;

    use super::*;

    #[test]
    fn the_tree_has_four_branches_and_eighteen_leaves_of_the_registry() {
        assert_eq!(TREE.len(), 4);
        assert_eq!(TREE.iter().map(|(_, leaves)| leaves.len()).sum::<usize>(), 18);
        for leaf in TREE.iter().flat_map(|(_, leaves)| *leaves) {
            assert_ne!(leaf.keys.is_empty(), leaf.text.is_none(), "{}", leaf.symbol);
            for key in leaf.keys {
                assert!(find(key).is_some_and(|metric| metric.key == *key), "{key}");
            }
        }
    }
}
