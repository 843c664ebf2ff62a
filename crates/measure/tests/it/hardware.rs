//! The catalogue and the roofline, held against worked examples that were
//! computed by hand and against what makers state of their models.

use measure::hardware::{
    Accelerator, Attention, Limit, ModelShape, Precision, Work, accelerator, accelerators, model,
    models, roofline,
};

fn shape(id: &str) -> &'static ModelShape {
    model(id).expect("it is in the catalogue")
}

fn chip(id: &str) -> &'static Accelerator {
    accelerator(id).expect("it is in the catalogue")
}

/// Within a part of the value, as 0.01.
fn close(found: f64, expected: f64, part: f64) -> bool {
    (found - expected).abs() <= part * expected.abs()
}

#[test]
fn kv_bytes_of_a_token_are_those_of_the_formulas() {
    let of = |id: &str| shape(id).kv_bytes_per_token(Precision::Bf16);
    assert_eq!(of("llama-3.1-8b"), 131_072.0);
    assert_eq!(of("llama-3.1-70b"), 327_680.0);
    assert_eq!(of("deepseek-v3"), 70_272.0);
    let eight = shape("llama-3.1-8b");
    assert_eq!(eight.kv_bytes_per_token(Precision::Fp8), 65_536.0);
    assert_eq!(eight.kv_bytes_per_token_of_one(Precision::Bf16, 4), 32_768.0);
    let copied = eight.kv_bytes_per_token_of_one(Precision::Bf16, 16);
    assert_eq!(copied, 16_384.0, "8 key heads cannot be divided by 16");
    assert_eq!(shape("deepseek-v3").kv_bytes_per_token_of_one(Precision::Bf16, 8), 70_272.0);
}

#[test]
fn a_step_of_8b_on_an_h100_takes_what_reading_all_weights_takes() {
    let (model, h100) = (shape("llama-3.1-8b"), chip("h100-sxm"));
    for (sequences, context, ms) in
        [(1.0, 2048.0, 4.87), (64.0, 2048.0, 9.9), (256.0, 2048.0, 25.3), (64.0, 8192.0, 25.3)]
    {
        let step = Work::decode(model, Precision::Bf16, Precision::Bf16, sequences, context);
        // The example counts the embedding table as read, which it is not: a
        // step looks up one row for each token.
        let table = model.weight_bytes(Precision::Bf16)
            - model.weight_bytes_read(Precision::Bf16, sequences);
        assert_eq!(table, 2.0 * 4096.0 * 128_256.0);
        let example = Work { bytes: step.bytes + table, ..step };
        let bound = example.bound(h100, Precision::Bf16, 1).expect("it has a peak for bf16");
        assert!(close(1e3 * bound.memory_s, ms, 0.006), "{}: {bound:?}", ms);
        assert_eq!(bound.limit(), Limit::Memory);
        assert!(1e3 * bound.compute_s <= 4.6, "{bound:?}");
        let tight = step.bound(h100, Precision::Bf16, 1).expect("as above");
        assert!(tight.seconds() < bound.seconds());
    }
}

#[test]
fn names_are_found_however_they_are_written_and_near_ones_are_told() {
    for name in ["Llama_3.1 8b", "meta-llama/Llama-3.1-8B-Instruct", "other/llama-3.1-8b"] {
        assert_eq!(shape(name).id, "llama-3.1-8b", "{name}");
    }
    assert_eq!(chip("NVIDIA H100 80GB HBM3").id, "h100-sxm");
    assert_eq!(chip("h100_SXM").id, "h100-sxm");
    let error = model("llama-3.1-9b").unwrap_err();
    assert_eq!(error.near[0], "llama-3.1-8b");
    assert!(error.to_string().contains("no model \"llama-3.1-9b\""), "{error}");
    assert_eq!(accelerator("h1oo-sxm").unwrap_err().near[0], "h100-sxm");
}

#[test]
fn every_row_has_a_source_and_names_of_its_own() {
    let mut seen = std::collections::BTreeMap::new();
    for model in models() {
        assert!(!model.source.is_empty(), "{}", model.id);
        let mut names = vec![model.id.to_string(), model.name.to_string()];
        names.extend(model.repositories.iter().map(|name| (*name).to_owned()));
        for name in names {
            let found = shape(&name);
            assert_eq!(found.id, model.id, "{name}");
        }
        assert!(seen.insert(model.id.to_string(), "model").is_none(), "{}", model.id);
    }
    for one in accelerators() {
        assert!(!one.source.is_empty(), "{}", one.id);
        for name in [one.id, one.name].iter().chain(one.aliases) {
            assert_eq!(chip(name).id, one.id, "{name}");
        }
        assert!(seen.insert(one.id.to_owned(), "accelerator").is_none(), "{}", one.id);
    }
}

#[test]
fn parameters_are_what_makers_state() {
    for model in models() {
        let stated = model.stated_parameters_billion.expect("every row of the catalogue has it");
        let found = model.total_parameters() / 1e9;
        assert!(close(found, stated, 0.03), "{}: {found:.3} of {stated}", model.id);
        assert!(model.active_parameters() <= model.total_parameters(), "{}", model.id);
    }
}

#[test]
fn a_prompt_of_8192_tokens_takes_8b_on_an_h100_what_the_rule_of_two_says() {
    let seconds = |id: &str, count: u32| {
        let model = shape(id);
        // The rule counts 2 operations for every parameter and token; the
        // embedding table is never multiplied, and logits are wanted of the
        // last token only, so that the bound itself is lower.
        let rule = Work {
            flops: 2.0 * model.total_parameters() * 8192.0 + model.attention_flops(8192.0, 0.0),
            bytes: 0.0,
        };
        let step = Work::prefill(model, Precision::Bf16, Precision::Bf16, 8192.0, 0.0);
        let saved = 2.0 * (2.0 * 8192.0 - 1.0) * f64::from(model.hidden) * f64::from(model.vocab);
        assert!(close(step.flops + saved, rule.flops, 1e-12), "{id}");
        let bound = rule.bound(chip("h100-sxm"), Precision::Bf16, count);
        bound.expect("it has a peak for bf16").compute_s
    };
    assert!(close(seconds("llama-3.1-8b", 1), 0.151, 0.005));
    assert!(close(seconds("llama-3.1-8b", 1) / 0.6, 0.251, 0.005));
    assert!(close(seconds("llama-3.1-70b", 8), 0.157, 0.005));
}

#[test]
fn active_parameters_are_what_makers_state_with_or_without_tables() {
    let stated = [
        ("mixtral-8x7b", 12.9),
        ("mixtral-8x22b", 39.0),
        ("qwen3-30b-a3b", 3.3),
        ("qwen3-235b-a22b", 22.0),
        ("qwen3-coder-480b-a35b", 35.0),
        ("gpt-oss-20b", 3.6),
        ("gpt-oss-120b", 5.1),
        ("deepseek-v2-lite", 2.4),
        ("deepseek-v2", 21.0),
        ("deepseek-v3", 37.0),
        ("glm-4.5", 32.0),
        ("glm-4.5-air", 12.0),
        ("kimi-k2", 32.0),
        ("minimax-m2", 10.0),
        ("llama-4-scout", 17.0),
        ("llama-4-maverick", 17.0),
    ];
    for (id, billion) in stated {
        let model = shape(id);
        // Some count neither the embedding table nor the LM head, some both.
        let without = model.linear_flops_per_token() / 2e9;
        let with = without + model.logits_flops() / 1e9;
        let fits = without <= 1.05 * billion && 0.95 * billion <= with;
        assert!(fits, "{id}: {without:.2} to {with:.2}, stated {billion}");
    }
}

#[test]
fn experts_are_read_by_the_share_that_a_batch_touches() {
    let model = shape("mixtral-8x7b");
    let expert = 3.0 * 4096.0 * 14_336.0 * 32.0 * 2.0;
    let read = |tokens: f64| model.weight_bytes_read(Precision::Bf16, tokens);
    // 8 experts, 2 for a token: 2, then 8 · (1 − 0.75²) = 3.5 on average.
    assert!(close(read(2.0) - read(1.0), 1.5 * expert, 1e-9));
    let table = 2.0 * 4096.0 * 32_000.0;
    assert!(close(read(1e6), model.weight_bytes(Precision::Bf16) - table, 1e-9));
    assert!(close(read(1.0), 2.0 * model.active_parameters(), 1e-9));
    let dense = shape("llama-3.1-8b");
    let bytes = |tokens| dense.weight_bytes_read(Precision::Int4, tokens);
    assert_eq!(bytes(1.0), bytes(512.0));
}

#[test]
fn a_window_bounds_what_is_kept_and_looked_at() {
    // 12 of 24 layers keep 128 tokens; 2 · 8 · 64 values a token and layer.
    let model = shape("gpt-oss-20b");
    let layer = 2.0 * 8.0 * 64.0 * 2.0;
    let kept = |tokens| model.kv_bytes_of_context(Precision::Bf16, tokens);
    assert_eq!(kept(100.0), 24.0 * 100.0 * layer);
    assert_eq!(kept(1000.0), 12.0 * (1000.0 + 128.0) * layer);
    assert_eq!(model.kv_bytes_per_token(Precision::Bf16), 24.0 * layer);
    let pair = 4.0 * 64.0 * 64.0;
    assert_eq!(model.attention_flops(1.0, 999.0), 12.0 * pair * (1000.0 + 128.0));
    let short = model.attention_flops(1.0, 100.0) - model.attention_flops(1.0, 99.0);
    assert_eq!(model.attention_flops_per_pair(), short);
}

#[test]
fn latent_attention_multiplies_in_the_cheaper_order() {
    let model = shape("deepseek-v3");
    let layers_and_heads = 61.0 * 128.0;
    // A prompt without a cache: 128 + 64 + 128 wide, un-absorbed.
    let prompt = model.attention_flops(1000.0, 0.0);
    assert!(close(prompt, 2.0 * layers_and_heads * 320.0 * 500_500.0, 1e-12));
    // One token after 1000: 2 · 512 + 64 wide, absorbed.
    let decode = model.attention_flops(1.0, 1000.0);
    assert!(close(decode, 2.0 * layers_and_heads * 1088.0 * 1001.0, 1e-12));
    let pair = model.attention_flops(1.0, 1001.0) - decode;
    assert!(close(model.attention_flops_per_pair(), pair, 1e-9));
}

#[test]
fn the_ridge_is_the_rate_over_twice_the_bandwidth_of_two_bytes() {
    let stated = [
        ("a10", 208.0),
        ("l4", 403.0),
        ("l40s", 419.0),
        ("a100-40gb-sxm", 201.0),
        ("a100", 153.0),
        ("h100-pcie", 378.0),
        ("h100-sxm", 295.0),
        ("h200", 206.0),
        ("h20", 37.0),
        ("b200", 281.0),
        ("gb200", 313.0),
        ("b300", 281.0),
        ("mi300x", 247.0),
        ("mi325x", 218.0),
        ("mi355x", 313.0),
        ("tpu-v5e", 240.0),
        ("tpu-v6e", 560.0),
        ("rtx-4090", 164.0),
        ("rtx-5090", 117.0),
    ];
    let ridge = |id: &str, weights: Precision| {
        roofline::ridge_tokens(chip(id), weights).expect("it has such units")
    };
    for (id, tokens) in stated {
        let found = ridge(id, Precision::Bf16);
        assert!((found - tokens).abs() < 1.0, "{id}: {found}");
    }
    // Twice the rate on half the bytes moves nothing, int4 on bf16 does.
    assert!(close(ridge("h100", Precision::Fp8), ridge("h100", Precision::Bf16), 0.001));
    assert_eq!(4.0 * ridge("h100", Precision::Int4), ridge("h100", Precision::Bf16));
    assert_eq!(roofline::ridge_tokens(chip("a100"), Precision::Fp8), None);
}

#[test]
fn weights_are_multiplied_in_a_precision_that_the_accelerator_has() {
    let of = |id: &str, weights| chip(id).compute_precision(weights);
    assert_eq!(of("h100", Precision::Fp8), Precision::Fp8);
    assert_eq!(of("a100", Precision::Fp8), Precision::Bf16);
    assert_eq!(of("h100", Precision::Fp4), Precision::Bf16);
    assert_eq!(of("b200", Precision::Fp4), Precision::Fp4);
    for one in accelerators() {
        for weights in Precision::ALL.iter().filter(|one| **one != Precision::Fp32) {
            let compute = one.compute_precision(*weights);
            assert!(one.flops_per_s(compute).is_some(), "{}: {weights}", one.id);
        }
    }
}

#[test]
fn peaks_grow_as_bytes_shrink_and_lie_where_hardware_does() {
    for one in accelerators() {
        let rate = |precision| one.flops_per_s(precision);
        let bf16 = rate(Precision::Bf16).expect("every row has it");
        for narrow in [Precision::Fp8, Precision::Int8, Precision::Fp4] {
            assert!(rate(narrow).is_none_or(|rate| rate >= bf16), "{}: {narrow}", one.id);
        }
        assert!(rate(Precision::Fp32).is_none_or(|rate| rate < bf16), "{}", one.id);
        assert!((16e9..=288e9).contains(&one.memory_bytes), "{}", one.id);
        assert!((3e11..=8e12).contains(&one.bandwidth_bytes_per_s), "{}", one.id);
        assert!((1e10..=1e12).contains(&one.link_bytes_per_s), "{}", one.id);
        assert!(one.watts.is_none_or(|watts| (70.0..=1400.0).contains(&watts)), "{}", one.id);
    }
    assert_eq!(chip("h100-sxm").link_bytes_per_s, 450e9, "half of 900 GB/s in both directions");
}

#[test]
fn an_all_reduce_sends_what_a_ring_sends() {
    // 32 layers, two each, 4096 wide, 2 bytes, 7/8 of it twice.
    let bytes = roofline::all_reduce_bytes(shape("llama-3.1-8b"), Precision::Bf16, 10.0, 8);
    assert_eq!(bytes, 2.0 * 32.0 * 10.0 * 4096.0 * 2.0 * 2.0 * 7.0 / 8.0);
    assert_eq!(roofline::all_reduce_bytes(shape("llama-3.1-8b"), Precision::Bf16, 10.0, 1), 0.0);
}

#[test]
fn the_catalogue_holds_what_people_serve() {
    assert!(models().len() >= 25, "{}", models().len());
    assert!(accelerators().len() >= 20, "{}", accelerators().len());
    assert!(models().iter().any(|model| matches!(model.attention, Attention::Latent { .. })));
    assert!(models().iter().all(|model| model.verified));
}
