//! docs/hardware.md: the shapes of models and the peaks of accelerators that
//! bounds are computed from, as a page. It is made from the tables themselves,
//! so that no figure stands in two places.

use measure::hardware::{
    Accelerator, Attention, FeedForward, ModelShape, Precision, accelerators, models, roofline,
};

use crate::number;

const HEAD: &str = "\
<!-- Made from the catalogues; do not edit. UPDATE=1 cargo test -p report --test hardware_page -->

# Models and accelerators

What the arithmetic of bounds starts from: the shape of a model says how many operations and bytes \
a token costs, the peaks of an accelerator how many of each pass in a second. A bound is a time that \
no engine goes below, not one that an engine reaches.

## Formulas

Symbols: L layers, d hidden width, h query heads, k KV heads, w head width, V rows of the \
vocabulary, b bytes of a value, E experts of a layer, e of them for each token, B tokens in a step, \
n accelerators.

| Quantity | Formula | Source |
|---|---|---|
| operations of a token in its layers | 2 · active parameters of the layers | arXiv 2001.08361 |
| operations of a token's logits | 2 · d · V, of tokens whose logits are wanted | the same |
| operations of attention, N new tokens after C cached | 4 · L · h · w · (N · C + N · (N + 1) ÷ 2); KV heads do not matter; a layer with a window looks no further than it | pairs, counted |
| the same under latent attention | the cheaper of 2 · L · h · (nope + rope + value) a pair, with keys and values of cached tokens made again, and 2 · L · h · (2 · rank + rope) a pair, absorbed | arXiv 2405.04434 |
| KV cache of a token | 2 · L · k · w · b; latent L · (rank + rope) · b | arXiv 2305.13245, 2405.04434 |
| KV cache of a token on each of n | divided by the smaller of n and k; latent not divided | |
| weights that a step reads | layers and LM head · b; of experts the share 1 − (1 − e ÷ E)^B, which assumes that all are taken equally often | |
| least time of a step | the longer of operations ÷ (n · peak) and bytes ÷ (n · bandwidth) | the roofline model, Williams et al. 2009 |
| ridge, tokens | peak · b ÷ (2 · bandwidth): below it a step takes as long as reading its weights | the same |
| bytes sent in a step, tensor parallel | 2 · L · B · d · b · 2 · (n − 1) ÷ n for each accelerator, by a ring | |

Norms, biases, towers for pictures and sounds, and layers that only predict further tokens are \
left out. The embedding table counts among all parameters and not among the active ones: a token \
reads one row of it. Weights of 4-bit integers are multiplied in bf16.
";

const MODELS: &str = "
## Models

Parameters are computed from the shape, 10⁹; *stated* is the size that the maker gives the model, in \
its name or on its card, and a test holds the two within 3 % of each other. *Active* is per token, with the LM head. KV is of one token in bf16 while no window \
is full; *full* is the number of layers without one. A name is found whatever its case, blanks, \
dashes and underscores, by id, name or Hugging Face repository.

| Id | Parameters | Stated | Active | Layers | Hidden | Heads | KV heads | Attention | Feed-forward | Context | KV, bytes | Source |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
";

const ACCELERATORS: &str = "
## Accelerators

Dense peaks in 10¹² operations a second; figures that vendors give with sparsity are halved, and an \
empty cell is a precision without units or without a stated figure. bf16 stands for fp16 too, with \
sums in fp32. GB and TB are decimal, as vendors write them. Links are in one direction, which is \
half of what vendors state for both. A † marks rows of which some figure was not read in a source, \
or of which sources differ. Measured peaks are lower; these are what bounds are held against.

| Id | Name | Memory, GB | Bandwidth, TB/s | fp32 | bf16 | fp8 | int8 | fp4 | Power, W | Link, GB/s | Link | Ridge in bf16 | Source |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
";

const TAIL: &str = "
There are no prices here: they differ by a factor of five for one accelerator, so whoever wants a \
cost says what an hour costs.

## Other models

Any `config.json` of a Hugging Face repository is read as a shape (`wire::hugging_face_config`): \
Llama, Mistral, Mixtral, Qwen 2 and 3, Gemma to 3, Phi-3, DeepSeek V2 and V3, gpt-oss, GLM-4.5, \
Llama 4, MiniMax-M2, Kimi K2, and other types of Llama's make with a note. Models whose layers differ \
in width, or have no attention or a linear one, are refused with the reason: the formulas above do \
not hold for them. Attention to chosen tokens is counted as attention to all, with a note.
";

/// docs/hardware.md, whole.
pub fn page() -> String {
    let mut page = format!("{HEAD}{MODELS}");
    for model in models() {
        page.push_str(&model_row(model));
    }
    page.push_str(ACCELERATORS);
    for accelerator in accelerators() {
        page.push_str(&accelerator_row(accelerator));
    }
    page + TAIL
}

fn model_row(model: &ModelShape) -> String {
    let cells = [
        format!("`{}`", model.id),
        number::short(model.total_parameters() / 1e9),
        model.stated_parameters_billion.map(number::stated).unwrap_or_default(),
        number::short(model.active_parameters() / 1e9),
        model.layers.to_string(),
        model.hidden.to_string(),
        model.heads.to_string(),
        kv_heads(model),
        attention(model),
        feed_forward(model),
        model.context.to_string(),
        number::stated(model.kv_bytes_per_token(Precision::Bf16)),
        model.source.to_string(),
    ];
    line(&cells)
}

fn kv_heads(model: &ModelShape) -> String {
    match model.attention {
        Attention::Latent { .. } => "latent".into(),
        Attention::Grouped { .. } => format!("{} of {}", model.kv_heads, model.head_dim),
    }
}

fn attention(model: &ModelShape) -> String {
    match model.attention {
        Attention::Grouped { window: None } => "full".into(),
        Attention::Grouped { window: Some(window) } => {
            let full = model.layers.saturating_sub(window.layers);
            format!("window of {}, {full} full", window.tokens)
        }
        Attention::Latent { kv_rank, rope_dim, .. } => format!("rank {kv_rank} + {rope_dim}"),
    }
}

fn feed_forward(model: &ModelShape) -> String {
    match model.feed_forward {
        FeedForward::Dense { intermediate, .. } => format!("dense, {intermediate}"),
        FeedForward::Mixture {
            experts,
            experts_per_token,
            shared_experts,
            intermediate,
            dense_layers,
            ..
        } => {
            let mut text = format!("{experts_per_token} of {experts} experts, {intermediate}");
            if shared_experts > 0 {
                text.push_str(&format!("; {shared_experts} shared"));
            }
            if dense_layers > 0 {
                text.push_str(&format!("; dense layers: {dense_layers}"));
            }
            text
        }
    }
}

fn accelerator_row(one: &Accelerator) -> String {
    let tera = |rate: Option<f64>| rate.map(|rate| number::stated(rate / 1e12)).unwrap_or_default();
    let ridge = roofline::ridge_tokens(one, Precision::Bf16);
    let mark = if one.verified { "" } else { " †" };
    let cells = [
        format!("`{}`{mark}", one.id),
        one.name.to_owned(),
        number::stated(one.memory_bytes / 1e9),
        number::stated(one.bandwidth_bytes_per_s / 1e12),
        tera(one.flops.fp32),
        tera(one.flops.bf16),
        tera(one.flops.fp8),
        tera(one.flops.int8),
        tera(one.flops.fp4),
        one.watts.map(number::stated).unwrap_or_default(),
        number::stated(one.link_bytes_per_s / 1e9),
        one.link.to_owned(),
        ridge.map(number::short).unwrap_or_default(),
        one.source.to_owned(),
    ];
    line(&cells)
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}
