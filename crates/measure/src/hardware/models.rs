//! The catalogue of models: one row each.

use std::borrow::Cow;

use super::{Attention, FeedForward, ModelShape, Window};

/// The widths and counts of a row.
struct Sizes {
    layers: u32,
    hidden: u32,
    heads: u32,
    kv_heads: u32,
    head_dim: u32,
    vocab: u32,
}

/// What else a row says.
struct Facts {
    context: u32,
    tied: bool,
    billion: f64,
    source: &'static str,
}

const fn row(
    (id, name): (&'static str, &'static str),
    repositories: &'static [&'static str],
    sizes: Sizes,
    attention: Attention,
    feed_forward: FeedForward,
    facts: Facts,
) -> ModelShape {
    ModelShape {
        id: Cow::Borrowed(id),
        name: Cow::Borrowed(name),
        repositories,
        layers: sizes.layers,
        hidden: sizes.hidden,
        heads: sizes.heads,
        kv_heads: sizes.kv_heads,
        head_dim: sizes.head_dim,
        vocab: sizes.vocab,
        tied_embeddings: facts.tied,
        attention,
        feed_forward,
        context: facts.context,
        stated_parameters_billion: Some(facts.billion),
        source: Cow::Borrowed(facts.source),
        verified: true,
    }
}

/// Attention of every layer to all tokens.
const FULL: Attention = Attention::Grouped { window: None };

/// DeepSeek's latent attention, whose widths others took over.
const LATENT: Attention = Attention::Latent {
    q_rank: Some(1536),
    kv_rank: 512,
    nope_dim: 128,
    rope_dim: 64,
    value_dim: 128,
};

const fn windowed(tokens: u32, layers: u32) -> Attention {
    Attention::Grouped { window: Some(Window { tokens, layers }) }
}

const fn dense(intermediate: u32) -> FeedForward {
    FeedForward::Dense { intermediate, gated: true }
}

/// Every layer has experts, and none of them is shared.
const fn mixture(experts: u32, experts_per_token: u32, intermediate: u32) -> FeedForward {
    FeedForward::Mixture {
        experts,
        experts_per_token,
        shared_experts: 0,
        intermediate,
        dense_layers: 0,
        dense_intermediate: 0,
    }
}

/// Where most rows were read: the configurations that NVIDIA's AIConfigurator
/// ships as they stand in the repositories.
const AIC: &str = "config.json in aiconfigurator-core 0.12; parameters: model card";

/// Where the others were: the table that LitGPT loads checkpoints by.
const LITGPT: &str = "config.py of litgpt 0.5.13; parameters: model card";

/// Every model.
pub static MODELS: &[ModelShape] = &[
    // Meta.
    row(
        ("llama-3.1-8b", "Llama 3.1 8B"),
        &[
            "meta-llama/Llama-3.1-8B",
            "meta-llama/Llama-3.1-8B-Instruct",
            "meta-llama/Meta-Llama-3.1-8B",
            "meta-llama/Meta-Llama-3.1-8B-Instruct",
            "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
        ],
        Sizes { layers: 32, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, vocab: 128_256 },
        FULL,
        dense(14_336),
        Facts { context: 131_072, tied: false, billion: 8.03, source: AIC },
    ),
    row(
        ("llama-3.1-70b", "Llama 3.1 70B"),
        &[
            "meta-llama/Llama-3.1-70B",
            "meta-llama/Llama-3.1-70B-Instruct",
            "meta-llama/Meta-Llama-3.1-70B",
            "meta-llama/Meta-Llama-3.1-70B-Instruct",
            "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
        ],
        Sizes { layers: 80, hidden: 8192, heads: 64, kv_heads: 8, head_dim: 128, vocab: 128_256 },
        FULL,
        dense(28_672),
        Facts { context: 131_072, tied: false, billion: 70.6, source: AIC },
    ),
    row(
        ("llama-3.1-405b", "Llama 3.1 405B"),
        &[
            "meta-llama/Llama-3.1-405B",
            "meta-llama/Llama-3.1-405B-Instruct",
            "meta-llama/Meta-Llama-3.1-405B",
            "meta-llama/Meta-Llama-3.1-405B-Instruct",
        ],
        Sizes {
            layers: 126,
            hidden: 16_384,
            heads: 128,
            kv_heads: 8,
            head_dim: 128,
            vocab: 128_256,
        },
        FULL,
        dense(53_248),
        Facts { context: 131_072, tied: false, billion: 405.0, source: AIC },
    ),
    row(
        ("llama-3.2-1b", "Llama 3.2 1B"),
        &["meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-1B-Instruct"],
        Sizes { layers: 16, hidden: 2048, heads: 32, kv_heads: 8, head_dim: 64, vocab: 128_256 },
        FULL,
        dense(8192),
        Facts { context: 131_072, tied: true, billion: 1.23, source: LITGPT },
    ),
    row(
        ("llama-3.2-3b", "Llama 3.2 3B"),
        &["meta-llama/Llama-3.2-3B", "meta-llama/Llama-3.2-3B-Instruct"],
        Sizes { layers: 28, hidden: 3072, heads: 24, kv_heads: 8, head_dim: 128, vocab: 128_256 },
        FULL,
        dense(8192),
        Facts { context: 131_072, tied: true, billion: 3.21, source: LITGPT },
    ),
    row(
        ("llama-3.3-70b", "Llama 3.3 70B"),
        &["meta-llama/Llama-3.3-70B-Instruct"],
        Sizes { layers: 80, hidden: 8192, heads: 64, kv_heads: 8, head_dim: 128, vocab: 128_256 },
        FULL,
        dense(28_672),
        Facts { context: 131_072, tied: false, billion: 70.6, source: LITGPT },
    ),
    row(
        ("llama-4-scout", "Llama 4 Scout"),
        &["meta-llama/Llama-4-Scout-17B-16E", "meta-llama/Llama-4-Scout-17B-16E-Instruct"],
        Sizes { layers: 48, hidden: 5120, heads: 40, kv_heads: 8, head_dim: 128, vocab: 202_048 },
        windowed(8192, 36),
        FeedForward::Mixture {
            experts: 16,
            experts_per_token: 1,
            shared_experts: 1,
            intermediate: 8192,
            dense_layers: 0,
            dense_intermediate: 0,
        },
        Facts { context: 10_485_760, tied: false, billion: 109.0, source: AIC },
    ),
    row(
        ("llama-4-maverick", "Llama 4 Maverick"),
        &["meta-llama/Llama-4-Maverick-17B-128E", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"],
        Sizes { layers: 48, hidden: 5120, heads: 40, kv_heads: 8, head_dim: 128, vocab: 202_048 },
        windowed(8192, 36),
        FeedForward::Mixture {
            experts: 128,
            experts_per_token: 1,
            shared_experts: 1,
            intermediate: 8192,
            dense_layers: 24,
            dense_intermediate: 16_384,
        },
        Facts { context: 1_048_576, tied: false, billion: 400.0, source: AIC },
    ),
    // Alibaba.
    row(
        ("qwen2.5-0.5b", "Qwen2.5 0.5B"),
        &["Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B-Instruct"],
        Sizes { layers: 24, hidden: 896, heads: 14, kv_heads: 2, head_dim: 64, vocab: 151_936 },
        FULL,
        dense(4864),
        Facts { context: 32_768, tied: true, billion: 0.49, source: LITGPT },
    ),
    row(
        ("qwen2.5-1.5b", "Qwen2.5 1.5B"),
        &["Qwen/Qwen2.5-1.5B", "Qwen/Qwen2.5-1.5B-Instruct"],
        Sizes { layers: 28, hidden: 1536, heads: 12, kv_heads: 2, head_dim: 128, vocab: 151_936 },
        FULL,
        dense(8960),
        Facts { context: 131_072, tied: true, billion: 1.54, source: LITGPT },
    ),
    row(
        ("qwen2.5-3b", "Qwen2.5 3B"),
        &["Qwen/Qwen2.5-3B", "Qwen/Qwen2.5-3B-Instruct"],
        Sizes { layers: 36, hidden: 2048, heads: 16, kv_heads: 2, head_dim: 128, vocab: 151_936 },
        FULL,
        dense(11_008),
        Facts { context: 32_768, tied: true, billion: 3.09, source: LITGPT },
    ),
    row(
        ("qwen2.5-7b", "Qwen2.5 7B"),
        &["Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-7B-Instruct"],
        Sizes { layers: 28, hidden: 3584, heads: 28, kv_heads: 4, head_dim: 128, vocab: 152_064 },
        FULL,
        dense(18_944),
        Facts { context: 131_072, tied: false, billion: 7.61, source: LITGPT },
    ),
    row(
        ("qwen2.5-14b", "Qwen2.5 14B"),
        &["Qwen/Qwen2.5-14B", "Qwen/Qwen2.5-14B-Instruct"],
        Sizes { layers: 48, hidden: 5120, heads: 40, kv_heads: 8, head_dim: 128, vocab: 152_064 },
        FULL,
        dense(13_824),
        Facts { context: 131_072, tied: false, billion: 14.7, source: LITGPT },
    ),
    row(
        ("qwen2.5-32b", "Qwen2.5 32B"),
        &[
            "Qwen/Qwen2.5-32B",
            "Qwen/Qwen2.5-32B-Instruct",
            "Qwen/QwQ-32B",
            "Qwen/Qwen2.5-Coder-32B-Instruct",
            "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
        ],
        Sizes { layers: 64, hidden: 5120, heads: 40, kv_heads: 8, head_dim: 128, vocab: 152_064 },
        FULL,
        dense(27_648),
        Facts { context: 131_072, tied: false, billion: 32.5, source: LITGPT },
    ),
    row(
        ("qwen2.5-72b", "Qwen2.5 72B"),
        &["Qwen/Qwen2.5-72B", "Qwen/Qwen2.5-72B-Instruct"],
        Sizes { layers: 80, hidden: 8192, heads: 64, kv_heads: 8, head_dim: 128, vocab: 152_064 },
        FULL,
        dense(29_568),
        Facts { context: 131_072, tied: false, billion: 72.7, source: LITGPT },
    ),
    row(
        ("qwen3-0.6b", "Qwen3 0.6B"),
        &["Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B-Base"],
        Sizes { layers: 28, hidden: 1024, heads: 16, kv_heads: 8, head_dim: 128, vocab: 151_936 },
        FULL,
        dense(3072),
        Facts { context: 40_960, tied: true, billion: 0.6, source: AIC },
    ),
    row(
        ("qwen3-1.7b", "Qwen3 1.7B"),
        &["Qwen/Qwen3-1.7B", "Qwen/Qwen3-1.7B-Base"],
        Sizes { layers: 28, hidden: 2048, heads: 16, kv_heads: 8, head_dim: 128, vocab: 151_936 },
        FULL,
        dense(6144),
        Facts { context: 40_960, tied: true, billion: 1.7, source: AIC },
    ),
    row(
        ("qwen3-4b", "Qwen3 4B"),
        &[
            "Qwen/Qwen3-4B",
            "Qwen/Qwen3-4B-Base",
            "Qwen/Qwen3-4B-Instruct-2507",
            "Qwen/Qwen3-4B-Thinking-2507",
        ],
        Sizes { layers: 36, hidden: 2560, heads: 32, kv_heads: 8, head_dim: 128, vocab: 151_936 },
        FULL,
        dense(9728),
        Facts { context: 40_960, tied: true, billion: 4.0, source: LITGPT },
    ),
    row(
        ("qwen3-8b", "Qwen3 8B"),
        &["Qwen/Qwen3-8B", "Qwen/Qwen3-8B-Base", "Qwen/Qwen3-8B-FP8"],
        Sizes { layers: 36, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, vocab: 151_936 },
        FULL,
        dense(12_288),
        Facts { context: 40_960, tied: false, billion: 8.2, source: AIC },
    ),
    row(
        ("qwen3-14b", "Qwen3 14B"),
        &["Qwen/Qwen3-14B", "Qwen/Qwen3-14B-Base", "Qwen/Qwen3-14B-FP8"],
        Sizes { layers: 40, hidden: 5120, heads: 40, kv_heads: 8, head_dim: 128, vocab: 151_936 },
        FULL,
        dense(17_408),
        Facts { context: 40_960, tied: false, billion: 14.8, source: LITGPT },
    ),
    row(
        ("qwen3-32b", "Qwen3 32B"),
        &["Qwen/Qwen3-32B", "Qwen/Qwen3-32B-FP8"],
        Sizes { layers: 64, hidden: 5120, heads: 64, kv_heads: 8, head_dim: 128, vocab: 151_936 },
        FULL,
        dense(25_600),
        Facts { context: 40_960, tied: false, billion: 32.8, source: AIC },
    ),
    row(
        ("qwen3-30b-a3b", "Qwen3 30B-A3B"),
        &[
            "Qwen/Qwen3-30B-A3B",
            "Qwen/Qwen3-30B-A3B-FP8",
            "Qwen/Qwen3-30B-A3B-Instruct-2507",
            "Qwen/Qwen3-30B-A3B-Thinking-2507",
            "Qwen/Qwen3-Coder-30B-A3B-Instruct",
        ],
        Sizes { layers: 48, hidden: 2048, heads: 32, kv_heads: 4, head_dim: 128, vocab: 151_936 },
        FULL,
        mixture(128, 8, 768),
        Facts { context: 40_960, tied: false, billion: 30.5, source: AIC },
    ),
    row(
        ("qwen3-235b-a22b", "Qwen3 235B-A22B"),
        &[
            "Qwen/Qwen3-235B-A22B",
            "Qwen/Qwen3-235B-A22B-FP8",
            "Qwen/Qwen3-235B-A22B-Instruct-2507",
            "Qwen/Qwen3-235B-A22B-Thinking-2507",
        ],
        Sizes { layers: 94, hidden: 4096, heads: 64, kv_heads: 4, head_dim: 128, vocab: 151_936 },
        FULL,
        mixture(128, 8, 1536),
        Facts { context: 40_960, tied: false, billion: 235.0, source: AIC },
    ),
    row(
        ("qwen3-coder-480b-a35b", "Qwen3 Coder 480B-A35B"),
        &["Qwen/Qwen3-Coder-480B-A35B-Instruct"],
        Sizes { layers: 62, hidden: 6144, heads: 96, kv_heads: 8, head_dim: 128, vocab: 151_936 },
        FULL,
        mixture(160, 8, 2560),
        Facts { context: 262_144, tied: false, billion: 480.0, source: AIC },
    ),
    // Mistral.
    row(
        ("mistral-7b", "Mistral 7B v0.3"),
        &[
            "mistralai/Mistral-7B-v0.3",
            "mistralai/Mistral-7B-Instruct-v0.3",
            "mistralai/Mistral-7B-Instruct-v0.2",
        ],
        Sizes { layers: 32, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, vocab: 32_768 },
        FULL,
        dense(14_336),
        Facts { context: 32_768, tied: false, billion: 7.3, source: LITGPT },
    ),
    row(
        ("mistral-small-24b", "Mistral Small 3"),
        &[
            "mistralai/Mistral-Small-24B-Instruct-2501",
            "mistralai/Mistral-Small-3.1-24B-Instruct-2503",
            "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
        ],
        Sizes { layers: 40, hidden: 5120, heads: 32, kv_heads: 8, head_dim: 128, vocab: 131_072 },
        FULL,
        dense(32_768),
        Facts {
            context: 131_072,
            tied: false,
            billion: 24.0,
            source: "text_config of Mistral3ForConditionalGeneration as quoted in public loaders of Mistral Small 3",
        },
    ),
    row(
        ("mistral-large-2", "Mistral Large 2"),
        &["mistralai/Mistral-Large-Instruct-2407", "mistralai/Mistral-Large-Instruct-2411"],
        Sizes { layers: 88, hidden: 12_288, heads: 96, kv_heads: 8, head_dim: 128, vocab: 32_768 },
        FULL,
        dense(28_672),
        Facts { context: 32_768, tied: false, billion: 123.0, source: LITGPT },
    ),
    row(
        ("mixtral-8x7b", "Mixtral 8x7B"),
        &["mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x7B-Instruct-v0.1"],
        Sizes { layers: 32, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, vocab: 32_000 },
        FULL,
        mixture(8, 2, 14_336),
        Facts { context: 32_768, tied: false, billion: 46.7, source: AIC },
    ),
    row(
        ("mixtral-8x22b", "Mixtral 8x22B"),
        &["mistralai/Mixtral-8x22B-v0.1", "mistralai/Mixtral-8x22B-Instruct-v0.1"],
        Sizes { layers: 56, hidden: 6144, heads: 48, kv_heads: 8, head_dim: 128, vocab: 32_000 },
        FULL,
        mixture(8, 2, 16_384),
        Facts { context: 65_536, tied: false, billion: 141.0, source: AIC },
    ),
    // Google.
    row(
        ("gemma-2-2b", "Gemma 2 2B"),
        &["google/gemma-2-2b", "google/gemma-2-2b-it"],
        Sizes { layers: 26, hidden: 2304, heads: 8, kv_heads: 4, head_dim: 256, vocab: 256_000 },
        windowed(4096, 13),
        dense(9216),
        Facts { context: 8192, tied: true, billion: 2.6, source: LITGPT },
    ),
    row(
        ("gemma-2-9b", "Gemma 2 9B"),
        &["google/gemma-2-9b", "google/gemma-2-9b-it"],
        Sizes { layers: 42, hidden: 3584, heads: 16, kv_heads: 8, head_dim: 256, vocab: 256_000 },
        windowed(4096, 21),
        dense(14_336),
        Facts { context: 8192, tied: true, billion: 9.24, source: LITGPT },
    ),
    row(
        ("gemma-2-27b", "Gemma 2 27B"),
        &["google/gemma-2-27b", "google/gemma-2-27b-it"],
        Sizes { layers: 46, hidden: 4608, heads: 32, kv_heads: 16, head_dim: 128, vocab: 256_000 },
        windowed(4096, 23),
        dense(36_864),
        Facts { context: 8192, tied: true, billion: 27.2, source: LITGPT },
    ),
    row(
        ("gemma-3-1b", "Gemma 3 1B"),
        &["google/gemma-3-1b-it", "google/gemma-3-1b-pt"],
        Sizes { layers: 26, hidden: 1152, heads: 4, kv_heads: 1, head_dim: 256, vocab: 262_144 },
        windowed(512, 22),
        dense(6912),
        Facts {
            context: 32_768,
            tied: true,
            billion: 1.0,
            source: "config.py of litgpt 0.5.13; parameters and context: arXiv 2503.19786",
        },
    ),
    row(
        ("gemma-3-4b", "Gemma 3 4B"),
        &["google/gemma-3-4b-it", "google/gemma-3-4b-pt"],
        Sizes { layers: 34, hidden: 2560, heads: 8, kv_heads: 4, head_dim: 256, vocab: 262_208 },
        windowed(1024, 29),
        dense(10_240),
        Facts { context: 131_072, tied: true, billion: 3.88, source: LITGPT },
    ),
    row(
        ("gemma-3-12b", "Gemma 3 12B"),
        &["google/gemma-3-12b-it", "google/gemma-3-12b-pt"],
        Sizes { layers: 48, hidden: 3840, heads: 16, kv_heads: 8, head_dim: 256, vocab: 262_208 },
        windowed(1024, 40),
        dense(15_360),
        Facts { context: 131_072, tied: true, billion: 11.8, source: LITGPT },
    ),
    row(
        ("gemma-3-27b", "Gemma 3 27B"),
        &["google/gemma-3-27b-it", "google/gemma-3-27b-pt"],
        Sizes { layers: 62, hidden: 5376, heads: 32, kv_heads: 16, head_dim: 128, vocab: 262_208 },
        windowed(1024, 52),
        dense(21_504),
        Facts { context: 131_072, tied: true, billion: 27.0, source: LITGPT },
    ),
    // Microsoft.
    row(
        ("phi-3-mini", "Phi-3 mini"),
        &["microsoft/Phi-3-mini-128k-instruct", "microsoft/Phi-3.5-mini-instruct"],
        Sizes { layers: 32, hidden: 3072, heads: 32, kv_heads: 32, head_dim: 96, vocab: 32_064 },
        FULL,
        dense(8192),
        Facts { context: 131_072, tied: false, billion: 3.8, source: LITGPT },
    ),
    row(
        ("phi-4", "Phi-4"),
        &["microsoft/phi-4", "microsoft/Phi-4-reasoning", "microsoft/Phi-4-reasoning-plus"],
        Sizes { layers: 40, hidden: 5120, heads: 40, kv_heads: 10, head_dim: 128, vocab: 100_352 },
        FULL,
        dense(17_920),
        Facts { context: 16_384, tied: false, billion: 14.7, source: LITGPT },
    ),
    row(
        ("phi-4-mini", "Phi-4 mini"),
        &["microsoft/Phi-4-mini-instruct", "microsoft/Phi-4-mini-reasoning"],
        Sizes { layers: 32, hidden: 3072, heads: 24, kv_heads: 8, head_dim: 128, vocab: 200_064 },
        FULL,
        dense(8192),
        Facts { context: 131_072, tied: true, billion: 3.8, source: LITGPT },
    ),
    // DeepSeek.
    row(
        ("deepseek-v2-lite", "DeepSeek-V2-Lite"),
        &[
            "deepseek-ai/DeepSeek-V2-Lite",
            "deepseek-ai/DeepSeek-V2-Lite-Chat",
            "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct",
        ],
        Sizes { layers: 27, hidden: 2048, heads: 16, kv_heads: 16, head_dim: 192, vocab: 102_400 },
        Attention::Latent {
            q_rank: None,
            kv_rank: 512,
            nope_dim: 128,
            rope_dim: 64,
            value_dim: 128,
        },
        FeedForward::Mixture {
            experts: 64,
            experts_per_token: 6,
            shared_experts: 2,
            intermediate: 1408,
            dense_layers: 1,
            dense_intermediate: 10_944,
        },
        Facts {
            context: 163_840,
            tied: false,
            billion: 15.7,
            source: "Megatron configurations of DeepSeek-V2 and V2-Lite; parameters: arXiv 2405.04434",
        },
    ),
    row(
        ("deepseek-v2", "DeepSeek-V2"),
        &["deepseek-ai/DeepSeek-V2", "deepseek-ai/DeepSeek-V2-Chat", "deepseek-ai/DeepSeek-V2.5"],
        Sizes {
            layers: 60,
            hidden: 5120,
            heads: 128,
            kv_heads: 128,
            head_dim: 192,
            vocab: 102_400,
        },
        LATENT,
        FeedForward::Mixture {
            experts: 160,
            experts_per_token: 6,
            shared_experts: 2,
            intermediate: 1536,
            dense_layers: 1,
            dense_intermediate: 12_288,
        },
        Facts {
            context: 163_840,
            tied: false,
            billion: 236.0,
            source: "Megatron configurations of DeepSeek-V2 and V2-Lite; parameters: arXiv 2405.04434",
        },
    ),
    row(
        ("deepseek-v3", "DeepSeek-V3"),
        &["deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-V3.1"],
        Sizes {
            layers: 61,
            hidden: 7168,
            heads: 128,
            kv_heads: 128,
            head_dim: 192,
            vocab: 129_280,
        },
        LATENT,
        FeedForward::Mixture {
            experts: 256,
            experts_per_token: 8,
            shared_experts: 1,
            intermediate: 2048,
            dense_layers: 3,
            dense_intermediate: 18_432,
        },
        Facts { context: 163_840, tied: false, billion: 671.0, source: AIC },
    ),
    row(
        ("deepseek-r1", "DeepSeek-R1"),
        &["deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1-0528"],
        Sizes {
            layers: 61,
            hidden: 7168,
            heads: 128,
            kv_heads: 128,
            head_dim: 192,
            vocab: 129_280,
        },
        LATENT,
        FeedForward::Mixture {
            experts: 256,
            experts_per_token: 8,
            shared_experts: 1,
            intermediate: 2048,
            dense_layers: 3,
            dense_intermediate: 18_432,
        },
        Facts { context: 163_840, tied: false, billion: 671.0, source: AIC },
    ),
    // Others.
    row(
        ("gpt-oss-20b", "gpt-oss 20B"),
        &["openai/gpt-oss-20b"],
        Sizes { layers: 24, hidden: 2880, heads: 64, kv_heads: 8, head_dim: 64, vocab: 201_088 },
        windowed(128, 12),
        mixture(32, 4, 2880),
        Facts { context: 131_072, tied: false, billion: 20.9, source: AIC },
    ),
    row(
        ("gpt-oss-120b", "gpt-oss 120B"),
        &["openai/gpt-oss-120b"],
        Sizes { layers: 36, hidden: 2880, heads: 64, kv_heads: 8, head_dim: 64, vocab: 201_088 },
        windowed(128, 18),
        mixture(128, 4, 2880),
        Facts { context: 131_072, tied: false, billion: 116.8, source: AIC },
    ),
    row(
        ("glm-4.5", "GLM-4.5"),
        &["zai-org/GLM-4.5", "zai-org/GLM-4.5-FP8"],
        Sizes { layers: 92, hidden: 5120, heads: 96, kv_heads: 8, head_dim: 128, vocab: 151_552 },
        FULL,
        FeedForward::Mixture {
            experts: 160,
            experts_per_token: 8,
            shared_experts: 1,
            intermediate: 1536,
            dense_layers: 3,
            dense_intermediate: 12_288,
        },
        Facts {
            context: 131_072,
            tied: false,
            billion: 355.0,
            source: "Megatron Bridge, docs/models/llm/glm45.md; parameters: arXiv 2508.06471",
        },
    ),
    row(
        ("glm-4.5-air", "GLM-4.5-Air"),
        &["zai-org/GLM-4.5-Air", "zai-org/GLM-4.5-Air-FP8"],
        Sizes { layers: 46, hidden: 4096, heads: 96, kv_heads: 8, head_dim: 128, vocab: 151_552 },
        FULL,
        FeedForward::Mixture {
            experts: 128,
            experts_per_token: 8,
            shared_experts: 1,
            intermediate: 1408,
            dense_layers: 1,
            dense_intermediate: 10_944,
        },
        Facts {
            context: 131_072,
            tied: false,
            billion: 106.0,
            source: "Megatron Bridge, docs/models/llm/glm45.md; parameters: arXiv 2508.06471",
        },
    ),
    row(
        ("kimi-k2", "Kimi K2"),
        &[
            "moonshotai/Kimi-K2-Instruct",
            "moonshotai/Kimi-K2-Instruct-0905",
            "moonshotai/Kimi-K2.5",
        ],
        Sizes { layers: 61, hidden: 7168, heads: 64, kv_heads: 64, head_dim: 192, vocab: 163_840 },
        LATENT,
        FeedForward::Mixture {
            experts: 384,
            experts_per_token: 8,
            shared_experts: 1,
            intermediate: 2048,
            dense_layers: 1,
            dense_intermediate: 18_432,
        },
        Facts { context: 131_072, tied: false, billion: 1040.0, source: AIC },
    ),
    row(
        ("minimax-m2", "MiniMax-M2"),
        &[
            "MiniMaxAI/MiniMax-M2",
            "MiniMaxAI/MiniMax-M2.1",
            "MiniMaxAI/MiniMax-M2.5",
            "MiniMaxAI/MiniMax-M2.7",
        ],
        Sizes { layers: 62, hidden: 3072, heads: 48, kv_heads: 8, head_dim: 128, vocab: 200_064 },
        FULL,
        mixture(256, 8, 1536),
        Facts { context: 196_608, tied: false, billion: 230.0, source: AIC },
    ),
    row(
        ("smollm2-1.7b", "SmolLM2 1.7B"),
        &["HuggingFaceTB/SmolLM2-1.7B", "HuggingFaceTB/SmolLM2-1.7B-Instruct"],
        Sizes { layers: 24, hidden: 2048, heads: 32, kv_heads: 32, head_dim: 64, vocab: 49_152 },
        FULL,
        dense(8192),
        Facts { context: 8192, tied: true, billion: 1.7, source: LITGPT },
    ),
    row(
        ("olmo-2-7b", "OLMo 2 7B"),
        &["allenai/OLMo-2-1124-7B", "allenai/OLMo-2-1124-7B-Instruct"],
        Sizes { layers: 32, hidden: 4096, heads: 32, kv_heads: 32, head_dim: 128, vocab: 100_352 },
        FULL,
        dense(11_008),
        Facts { context: 4096, tied: false, billion: 7.3, source: LITGPT },
    ),
    row(
        ("olmo-2-13b", "OLMo 2 13B"),
        &["allenai/OLMo-2-1124-13B", "allenai/OLMo-2-1124-13B-Instruct"],
        Sizes { layers: 40, hidden: 5120, heads: 40, kv_heads: 40, head_dim: 128, vocab: 100_352 },
        FULL,
        dense(13_824),
        Facts { context: 4096, tied: false, billion: 13.7, source: LITGPT },
    ),
];
