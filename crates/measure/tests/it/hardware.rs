//! The catalogue and the roofline, held against worked examples that were
//! computed by hand and against what makers state of their models.

use measure::hardware::{
    Accelerator, Limit, ModelShape, Precision, Work, accelerator, accelerators, model, models,
    roofline,
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
fn the_ridge_is_the_rate_over_twice_the_bandwidth() {
    let ridge = |id: &str| {
        let tokens = roofline::ridge_tokens(chip(id), Precision::Bf16);
        tokens.expect("it has a peak for bf16").round()
    };
    assert_eq!(ridge("l4"), 403.0);
    assert_eq!(ridge("a100"), 153.0);
    assert_eq!(ridge("h100-sxm"), 295.0);
    assert_eq!(ridge("h200"), 206.0);
}
