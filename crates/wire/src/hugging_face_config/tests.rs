use measure::hardware::model;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn of(value: &Value) -> Result<Configuration, ConfigurationError> {
    read(value.to_string().as_bytes(), "")
}

/// The row of the catalogue under the names that a file gives.
fn row(id: &str, read: &ModelShape) -> ModelShape {
    ModelShape {
        id: read.id.clone(),
        name: read.name.clone(),
        repositories: &[],
        stated_parameters_billion: None,
        source: read.source.clone(),
        ..model(id).expect("it is in the catalogue").clone()
    }
}

/// Members that every file has.
fn sized(model_type: &str, sizes: [u32; 5], context: u32) -> Map<String, Value> {
    let [layers, hidden, heads, intermediate, vocab] = sizes;
    let value = json!({
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": intermediate,
        "vocab_size": vocab,
        "max_position_embeddings": context,
    });
    value.as_object().expect("it is an object").clone()
}

fn with(mut members: Map<String, Value>, more: &Value) -> Value {
    members.extend(more.as_object().expect("it is an object").clone());
    Value::Object(members)
}

fn dense_files() -> Vec<(&'static str, Value)> {
    let gemma2 = sized("gemma2", [42, 3584, 16, 14_336, 256_000], 8192);
    vec![
        (
            "llama-3.1-8b",
            with(
                sized("llama", [32, 4096, 32, 14_336, 128_256], 131_072),
                &json!({"num_key_value_heads": 8, "tie_word_embeddings": false}),
            ),
        ),
        (
            "llama-3.2-1b",
            with(
                sized("llama", [16, 2048, 32, 8192, 128_256], 131_072),
                &json!({"num_key_value_heads": 8, "head_dim": 64, "tie_word_embeddings": true}),
            ),
        ),
        (
            "mistral-7b",
            with(
                sized("mistral", [32, 4096, 32, 14_336, 32_768], 32_768),
                &json!({"num_key_value_heads": 8, "sliding_window": null}),
            ),
        ),
        (
            "qwen2.5-7b",
            with(
                sized("qwen2", [28, 3584, 28, 18_944, 152_064], 131_072),
                &json!({
                    "num_key_value_heads": 4,
                    "use_sliding_window": false,
                    "sliding_window": 4096,
                    "max_window_layers": 28,
                }),
            ),
        ),
        (
            "qwen3-32b",
            with(
                sized("qwen3", [64, 5120, 64, 25_600, 151_936], 40_960),
                &json!({"num_key_value_heads": 8, "head_dim": 128, "sliding_window": null}),
            ),
        ),
        ("gemma-2-9b", with(gemma2, &json!({"num_key_value_heads": 8, "sliding_window": 4096}))),
        (
            "phi-3-mini",
            with(
                sized("phi3", [32, 3072, 32, 8192, 32_064], 131_072),
                &json!({"num_key_value_heads": 32, "sliding_window": 262_144}),
            ),
        ),
        ("olmo-2-7b", with(sized("olmo2", [32, 4096, 32, 11_008, 100_352], 4096), &json!({}))),
        // What the file of Gemma 3 4B leaves out is most of it.
        (
            "gemma-3-4b",
            json!({
                "model_type": "gemma3",
                "vision_config": {"hidden_size": 1152},
                "text_config": {
                    "model_type": "gemma3_text",
                    "hidden_size": 2560,
                    "intermediate_size": 10_240,
                    "num_hidden_layers": 34,
                    "sliding_window": 1024,
                },
            }),
        ),
        (
            "mistral-small-24b",
            json!({
                "model_type": "mistral3",
                "text_config": with(
                    sized("mistral", [40, 5120, 32, 32_768, 131_072], 131_072),
                    &json!({"num_key_value_heads": 8, "head_dim": 128}),
                ),
            }),
        ),
    ]
}

fn latent(q_rank: &Value, routed: u32, per_token: u32, shared: u32, width: u32) -> Value {
    json!({
        "q_lora_rank": q_rank,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": routed,
        "num_experts_per_tok": per_token,
        "n_shared_experts": shared,
        "moe_intermediate_size": width,
        "moe_layer_freq": 1,
        "num_nextn_predict_layers": 1,
    })
}

fn mixture_files() -> Vec<(&'static str, Value)> {
    let deepseek = |members: Map<String, Value>, more: &Value, first: u32| {
        let value = with(members, more);
        let members = value.as_object().expect("it is an object").clone();
        with(members, &json!({"first_k_dense_replace": first}))
    };
    let kinds = ["sliding_attention", "full_attention"].repeat(12);
    vec![
        (
            "mixtral-8x7b",
            with(
                sized("mixtral", [32, 4096, 32, 14_336, 32_000], 32_768),
                &json!({
                    "num_key_value_heads": 8,
                    "num_local_experts": 8,
                    "num_experts_per_tok": 2,
                    "sliding_window": null,
                }),
            ),
        ),
        (
            "qwen3-30b-a3b",
            with(
                sized("qwen3_moe", [48, 2048, 32, 6144, 151_936], 40_960),
                &json!({
                    "num_key_value_heads": 4,
                    "head_dim": 128,
                    "num_experts": 128,
                    "num_experts_per_tok": 8,
                    "moe_intermediate_size": 768,
                    "decoder_sparse_step": 1,
                    "mlp_only_layers": [],
                }),
            ),
        ),
        (
            "gpt-oss-20b",
            with(
                sized("gpt_oss", [24, 2880, 64, 2880, 201_088], 131_072),
                &json!({
                    "num_key_value_heads": 8,
                    "head_dim": 64,
                    "num_local_experts": 32,
                    "num_experts_per_tok": 4,
                    "sliding_window": 128,
                    "layer_types": kinds,
                }),
            ),
        ),
        (
            "glm-4.5",
            with(
                sized("glm4_moe", [92, 5120, 96, 12_288, 151_552], 131_072),
                &json!({
                    "num_key_value_heads": 8,
                    "head_dim": 128,
                    "n_routed_experts": 160,
                    "num_experts_per_tok": 8,
                    "n_shared_experts": 1,
                    "moe_intermediate_size": 1536,
                    "first_k_dense_replace": 3,
                }),
            ),
        ),
        (
            "deepseek-v2-lite",
            deepseek(
                sized("deepseek_v2", [27, 2048, 16, 10_944, 102_400], 163_840),
                &latent(&Value::Null, 64, 6, 2, 1408),
                1,
            ),
        ),
        (
            "deepseek-v3",
            deepseek(
                sized("deepseek_v3", [61, 7168, 128, 18_432, 129_280], 163_840),
                &latent(&json!(1536), 256, 8, 1, 2048),
                3,
            ),
        ),
        (
            "llama-4-maverick",
            json!({
                "model_type": "llama4",
                "text_config": with(
                    sized("llama4_text", [48, 5120, 40, 8192, 202_048], 1_048_576),
                    &json!({
                        "num_key_value_heads": 8,
                        "head_dim": 128,
                        "num_local_experts": 128,
                        "num_experts_per_tok": 1,
                        "intermediate_size_mlp": 16_384,
                        "interleave_moe_layer_step": 2,
                        "attention_chunk_size": 8192,
                    }),
                ),
            }),
        ),
    ]
}

#[test]
fn files_of_every_family_give_the_rows_of_the_catalogue() {
    for (id, file) in dense_files().into_iter().chain(mixture_files()) {
        let read = of(&file).expect(id);
        assert_eq!(read.shape, row(id, &read.shape), "{id}");
        let nested = file.get("text_config").is_some();
        assert_eq!(read.notes.len(), usize::from(nested), "{id}: {:?}", read.notes);
    }
}

#[test]
fn an_unknown_type_is_read_as_llamas_with_a_note_and_names_are_kept() {
    let members = sized("new_thing", [2, 64, 4, 256, 1000], 2048);
    let file = with(members, &json!({"_name_or_path": "lab/new-thing", "head_dim": 0}));
    let read = of(&file).unwrap();
    assert_eq!((read.shape.head_dim, read.shape.kv_heads), (16, 4), "hidden ÷ heads, one each");
    assert_eq!(read.shape.feed_forward, FeedForward::Dense { intermediate: 256, gated: true });
    assert_eq!(read.shape.name, "lab/new-thing");
    assert!(read.notes[0].contains("\"new_thing\" is not known"), "{:?}", read.notes);
    let named = super::read(file.to_string().as_bytes(), "mine").unwrap();
    assert_eq!(named.shape.id, "mine");
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let whole = sized("llama", [2, 64, 4, 256, 1000], 2048);
    for member in whole.keys().filter(|member| *member != "model_type") {
        let mut members = whole.clone();
        members.remove(member);
        let error = of(&Value::Object(members)).unwrap_err().to_string();
        assert!(error.contains(member.as_str()) && error.contains("\"llama\""), "{error}");
        for wrong in [json!(-1), json!(1.5), json!("64"), json!(1_000_000_000), json!([1])] {
            let file = with(whole.clone(), &json!({ member: wrong }));
            let error = of(&file).unwrap_err().to_string();
            assert!(error.contains(member.as_str()) && error.contains("whole number"), "{error}");
        }
    }
    let many = json!({"num_local_experts": 4, "num_experts_per_tok": 5});
    let error = of(&with(whole.clone(), &many)).unwrap_err().to_string();
    assert!(error.contains("from 1 to 4"), "{error}");
    assert!(matches!(read(b"[]", ""), Err(ConfigurationError::NoObject)));
    assert!(matches!(read(b"{", ""), Err(ConfigurationError::Form(_))));
    let large = vec![b' '; MOST_BYTES + 1];
    assert!(matches!(read(&large, ""), Err(ConfigurationError::Large { .. })));
}

#[test]
fn models_of_unlike_layers_are_refused_with_the_reason() {
    let whole = sized("qwen3_next", [2, 64, 4, 256, 1000], 2048);
    for (file, word) in [
        (json!({"layer_types": ["linear_attention", "full_attention"]}), "linear_attention"),
        (json!({"linear_num_value_heads": 32}), "linear attention"),
        (json!({"hybrid_override_pattern": "M-M*"}), "without attention"),
        (json!({"block_configs": []}), "different widths"),
    ] {
        let error = of(&with(whole.clone(), &file)).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn layers_with_experts_and_with_windows_are_counted_however_they_are_told() {
    let whole = sized("qwen2_moe", [8, 64, 4, 256, 1000], 2048);
    let experts = json!({
        "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 128, "decoder_sparse_step": 2, "mlp_only_layers": [1],
        "use_sliding_window": true, "sliding_window": 128, "sliding_window_pattern": 4,
    });
    let read = of(&with(whole.clone(), &experts)).unwrap();
    let expected = FeedForward::Mixture {
        experts: 4,
        experts_per_token: 2,
        shared_experts: 4,
        intermediate: 32,
        dense_layers: 5,
        dense_intermediate: 256,
    };
    assert_eq!(read.shape.feed_forward, expected);
    let window = Some(Window { tokens: 128, layers: 6 });
    assert_eq!(read.shape.attention, Attention::Grouped { window });
    let behind = json!({
        "use_sliding_window": true, "sliding_window": 128, "max_window_layers": 5,
    });
    let behind = of(&with(whole.clone(), &behind)).unwrap();
    let window = Some(Window { tokens: 128, layers: 3 });
    assert_eq!(behind.shape.attention, Attention::Grouped { window });
    let marked = json!({
        "num_experts": 4, "num_experts_per_tok": 2, "moe_layer_freq": [0, 0, 1, 1, 1, 1, 1, 1],
        "shared_expert_intermediate_size": 100,
    });
    let read = of(&with(whole, &marked)).unwrap();
    let FeedForward::Mixture { dense_layers, shared_experts, .. } = read.shape.feed_forward else {
        panic!("it has experts");
    };
    assert_eq!((dense_layers, shared_experts), (2, 0));
    assert!(read.notes[0].contains("100 wide"), "{:?}", read.notes);
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_a_shape_or_an_error(bytes: Vec<u8>, name in "\\PC*") {
        let _ = read(&bytes, &name);
    }

    #[test]
    fn arbitrary_members_give_finite_figures_or_an_error(
        numbers in prop::collection::vec(prop_oneof![0..4_u64, 1..=200_000_000_u64], 24),
        kind in 0..6_usize,
    ) {
        let names = [
            "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads",
            "head_dim", "vocab_size", "max_position_embeddings", "intermediate_size",
            "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
            "num_experts", "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts",
            "shared_expert_intermediate_size", "first_k_dense_replace", "decoder_sparse_step",
            "sliding_window", "sliding_window_pattern", "attention_chunk_size",
            "intermediate_size_mlp",
        ];
        let types = ["llama", "gemma3_text", "gpt_oss", "llama4_text", "deepseek_v3", ""];
        let mut file = Map::new();
        file.insert("model_type".into(), types[kind].into());
        // A number of 3 leaves the member out, so that defaults are met too.
        let stated = names.iter().zip(&numbers).filter(|(_, number)| **number != 3);
        file.extend(stated.map(|(name, number)| ((*name).to_owned(), Value::from(*number))));
        if let Ok(Configuration { shape, .. }) = of(&Value::Object(file)) {
            let precision = measure::hardware::Precision::Bf16;
            for figure in [
                shape.total_parameters(),
                shape.active_parameters(),
                shape.attention_flops(100.0, 1000.0),
                shape.kv_bytes_of_context(precision, 1e6),
                shape.weight_bytes_read(precision, 64.0),
            ] {
                prop_assert!(figure.is_finite() && figure > 0.0, "{figure}: {shape:?}");
            }
        }
    }
}
