//! What model types mean by the members that they leave out, after the
//! defaults of transformers 5.24 (`configuration_*.py`).

/// The habits of one or several model types.
#[derive(Debug)]
pub(super) struct Family {
    /// Model types, as `model_type` states them.
    types: &'static [&'static str],
    /// True where the LM head is the embedding table unless the file says
    /// otherwise.
    pub(super) tied: bool,
    /// True with a gate in dense networks.
    pub(super) gated: bool,
    /// Each n-th layer looks at all tokens and the others have the window;
    /// `None` where a window is every layer's.
    pub(super) full_every: Option<u32>,
    /// Experts that every token takes, where no member says so.
    pub(super) shared_experts: u32,
    /// Numbers that files of this family leave out.
    usual: &'static [(&'static str, u32)],
}

impl Family {
    /// What the family means by leaving out this member.
    pub(super) fn usual(&self, member: &str) -> Option<u32> {
        self.usual.iter().find(|(name, _)| *name == member).map(|(_, number)| *number)
    }
}

/// The family of a model type.
pub(super) fn find(model_type: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.types.contains(&model_type))
}

/// Most are of Llama's make: untied, gated, all members stated.
const PLAIN: Family = Family {
    types: &[],
    tied: false,
    gated: true,
    full_every: None,
    shared_experts: 0,
    usual: &[],
};

/// Every family.
const FAMILIES: &[Family] = &[
    Family {
        types: &[
            "llama",
            "mistral",
            "ministral3",
            "mixtral",
            "qwen2",
            "qwen2_moe",
            "qwen3",
            "qwen3_moe",
            "qwen3_vl_text",
            "qwen3_vl_moe_text",
            "phi3",
            "olmo2",
            "olmo3",
            "granite",
            "deepseek_v2",
            "deepseek_v3",
            "deepseek_v32",
            "glm_moe_dsa",
            "kimi_k2",
            "glm4_moe",
            "minimax_m2",
        ],
        ..PLAIN
    },
    Family { types: &["smollm3"], tied: true, ..PLAIN },
    Family { types: &["gpt_oss"], full_every: Some(2), ..PLAIN },
    Family {
        types: &["llama4_text"],
        full_every: Some(4),
        shared_experts: 1,
        usual: &[("attention_chunk_size", 8192), ("interleave_moe_layer_step", 1)],
        ..PLAIN
    },
    Family { types: &["gemma"], tied: true, usual: &[("head_dim", 256)], ..PLAIN },
    Family {
        types: &["gemma2"],
        tied: true,
        full_every: Some(2),
        usual: &[("head_dim", 256), ("sliding_window", 4096)],
        ..PLAIN
    },
    Family {
        types: &["gemma3", "gemma3_text"],
        tied: true,
        full_every: Some(6),
        usual: &[
            ("head_dim", 256),
            ("sliding_window", 4096),
            ("num_attention_heads", 8),
            ("num_key_value_heads", 4),
            ("vocab_size", 262_208),
            ("max_position_embeddings", 131_072),
        ],
        ..PLAIN
    },
    Family { types: &["phi", "starcoder2", "nemotron", "gpt_neox"], gated: false, ..PLAIN },
];

/// Members of models that are no stack of like layers with attention.
pub(super) const UNCOVERED: &[(&str, &str)] = &[
    ("block_configs", "layers of different widths"),
    ("global_head_dim", "heads of two widths"),
    ("swa_head_dim", "heads of two widths"),
    ("hybrid_override_pattern", "layers without attention"),
    ("layers_block_type", "layers without attention"),
    ("linear_attn_config", "layers with linear attention"),
    ("linear_num_value_heads", "layers with linear attention"),
    ("altup_num_inputs", "several residual streams"),
    ("compress_ratios", "caches of compressed tokens"),
];

/// Kinds of layers that are counted: all with attention, the last one with a
/// choice of tokens, which is counted as all of them.
pub(super) const LAYER_TYPES: &[&str] =
    &["full_attention", "sliding_attention", "chunked_attention", "deepseek_sparse_attention"];
