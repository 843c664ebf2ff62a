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

/// Every model.
pub static MODELS: &[ModelShape] = &[
    row(
        ("llama-3.1-8b", "Llama 3.1 8B"),
        &[
            "meta-llama/Llama-3.1-8B",
            "meta-llama/Llama-3.1-8B-Instruct",
            "meta-llama/Meta-Llama-3.1-8B",
            "meta-llama/Meta-Llama-3.1-8B-Instruct",
        ],
        Sizes { layers: 32, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, vocab: 128_256 },
        FULL,
        dense(14_336),
        Facts {
            context: 131_072,
            tied: false,
            billion: 8.03,
            source: "config.json of meta-llama/Llama-3.1-8B",
        },
    ),
    row(
        ("llama-3.1-70b", "Llama 3.1 70B"),
        &[
            "meta-llama/Llama-3.1-70B",
            "meta-llama/Llama-3.1-70B-Instruct",
            "meta-llama/Meta-Llama-3.1-70B",
            "meta-llama/Meta-Llama-3.1-70B-Instruct",
        ],
        Sizes { layers: 80, hidden: 8192, heads: 64, kv_heads: 8, head_dim: 128, vocab: 128_256 },
        FULL,
        dense(28_672),
        Facts {
            context: 131_072,
            tied: false,
            billion: 70.6,
            source: "config.json of meta-llama/Llama-3.1-70B",
        },
    ),
    row(
        ("qwen3-30b-a3b", "Qwen3 30B-A3B"),
        &["Qwen/Qwen3-30B-A3B"],
        Sizes { layers: 48, hidden: 2048, heads: 32, kv_heads: 4, head_dim: 128, vocab: 151_936 },
        FULL,
        mixture(128, 8, 768),
        Facts {
            context: 40_960,
            tied: false,
            billion: 30.5,
            source: "config.json of Qwen/Qwen3-30B-A3B",
        },
    ),
    row(
        ("gpt-oss-20b", "gpt-oss-20b"),
        &["openai/gpt-oss-20b"],
        Sizes { layers: 24, hidden: 2880, heads: 64, kv_heads: 8, head_dim: 64, vocab: 201_088 },
        windowed(128, 12),
        mixture(32, 4, 2880),
        Facts {
            context: 131_072,
            tied: false,
            billion: 20.9,
            source: "config.json of openai/gpt-oss-20b",
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
        Facts {
            context: 163_840,
            tied: false,
            billion: 671.0,
            source: "config.json of deepseek-ai/DeepSeek-V3",
        },
    ),
];
