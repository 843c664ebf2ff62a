//! The machines of a run, as its manifest has them. Shapes and peaks are written
//! down as numbers, so that figures stay what they were when a catalogue is
//! mended.

use std::borrow::Cow;

use measure::deployment::Deployment;
use measure::hardware::{
    self, Accelerator, Attention, FeedForward, FlopsPerSecond, ModelShape, Precision, Window,
};
use serde::{Deserialize, Serialize};

use super::ManifestError;

#[derive(Serialize, Deserialize)]
pub(super) struct DeploymentForm {
    model: Option<ModelForm>,
    accelerator: Option<AcceleratorForm>,
    #[serde(default)]
    topology: Vec<(String, u32)>,
    tensor_parallel: Option<u32>,
    pipeline_parallel: Option<u32>,
    weights: Option<String>,
    kv_cache: Option<String>,
    price_per_hour: Option<f64>,
    seats: Option<u32>,
    token_budget: Option<u32>,
}

#[derive(Serialize, Deserialize)]
struct ModelForm {
    id: String,
    name: String,
    layers: u32,
    hidden: u32,
    heads: u32,
    kv_heads: u32,
    head_dim: u32,
    vocab: u32,
    tied_embeddings: bool,
    attention: AttentionForm,
    feed_forward: FeedForwardForm,
    context: u32,
    stated_parameters_billion: Option<f64>,
    source: String,
    verified: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum AttentionForm {
    Grouped { window: Option<WindowForm> },
    Latent { q_rank: Option<u32>, kv_rank: u32, nope_dim: u32, rope_dim: u32, value_dim: u32 },
}

#[derive(Serialize, Deserialize)]
struct WindowForm {
    tokens: u32,
    layers: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum FeedForwardForm {
    Dense {
        intermediate: u32,
        gated: bool,
    },
    Mixture {
        experts: u32,
        experts_per_token: u32,
        shared_experts: u32,
        intermediate: u32,
        dense_layers: u32,
        dense_intermediate: u32,
    },
}

#[derive(Serialize, Deserialize)]
struct AcceleratorForm {
    id: String,
    memory_bytes: f64,
    bandwidth_bytes_per_s: f64,
    fp32_flops_per_s: Option<f64>,
    bf16_flops_per_s: Option<f64>,
    fp8_flops_per_s: Option<f64>,
    int8_flops_per_s: Option<f64>,
    fp4_flops_per_s: Option<f64>,
    watts: Option<f64>,
    link_bytes_per_s: f64,
}

/// The form; `None` where nothing was said, so that such manifests stay as they
/// were.
pub(super) fn form(deployment: &Deployment) -> Option<DeploymentForm> {
    let precision = |one: &Option<Precision>| one.map(|one| one.name().to_owned());
    (*deployment != Deployment::default()).then(|| DeploymentForm {
        model: deployment.model.as_ref().map(model_form),
        accelerator: deployment.accelerator.as_ref().map(accelerator_form),
        topology: deployment.topology.clone(),
        tensor_parallel: deployment.tensor_parallel,
        pipeline_parallel: deployment.pipeline_parallel,
        weights: precision(&deployment.weights),
        kv_cache: precision(&deployment.kv_cache),
        price_per_hour: deployment.price_per_hour,
        seats: deployment.seats,
        token_budget: deployment.token_budget,
    })
}

/// The machines of a form.
///
/// # Errors
/// An accelerator that no catalogue had, a precision that is none.
pub(super) fn deployment(form: DeploymentForm) -> Result<Deployment, ManifestError> {
    let precision = |field: &'static str, name: Option<String>| {
        let read = |name: String| {
            Precision::parse(&name).map_err(|_| ManifestError::Value { field, value: name })
        };
        name.map(read).transpose()
    };
    Ok(Deployment {
        model: form.model.map(model),
        accelerator: form.accelerator.map(accelerator).transpose()?,
        topology: form.topology,
        tensor_parallel: form.tensor_parallel,
        pipeline_parallel: form.pipeline_parallel,
        weights: precision("deployment.weights", form.weights)?,
        kv_cache: precision("deployment.kv_cache", form.kv_cache)?,
        price_per_hour: form.price_per_hour,
        seats: form.seats,
        token_budget: form.token_budget,
    })
}

fn model_form(shape: &ModelShape) -> ModelForm {
    ModelForm {
        id: shape.id.to_string(),
        name: shape.name.to_string(),
        layers: shape.layers,
        hidden: shape.hidden,
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        vocab: shape.vocab,
        tied_embeddings: shape.tied_embeddings,
        attention: match shape.attention {
            Attention::Grouped { window } => AttentionForm::Grouped {
                window: window.map(|Window { tokens, layers }| WindowForm { tokens, layers }),
            },
            Attention::Latent { q_rank, kv_rank, nope_dim, rope_dim, value_dim } => {
                AttentionForm::Latent { q_rank, kv_rank, nope_dim, rope_dim, value_dim }
            }
        },
        feed_forward: match shape.feed_forward {
            FeedForward::Dense { intermediate, gated } => {
                FeedForwardForm::Dense { intermediate, gated }
            }
            FeedForward::Mixture {
                experts,
                experts_per_token,
                shared_experts,
                intermediate,
                dense_layers,
                dense_intermediate,
            } => FeedForwardForm::Mixture {
                experts,
                experts_per_token,
                shared_experts,
                intermediate,
                dense_layers,
                dense_intermediate,
            },
        },
        context: shape.context,
        stated_parameters_billion: shape.stated_parameters_billion,
        source: shape.source.to_string(),
        verified: shape.verified,
    }
}

fn model(form: ModelForm) -> ModelShape {
    // Names of repositories enter no figure; a row of the catalogue has them.
    let row = hardware::models().iter().find(|row| *row.id == *form.id);
    ModelShape {
        id: Cow::Owned(form.id),
        name: Cow::Owned(form.name),
        repositories: row.map_or(&[], |row| row.repositories),
        layers: form.layers,
        hidden: form.hidden,
        heads: form.heads,
        kv_heads: form.kv_heads,
        head_dim: form.head_dim,
        vocab: form.vocab,
        tied_embeddings: form.tied_embeddings,
        attention: match form.attention {
            AttentionForm::Grouped { window } => Attention::Grouped {
                window: window.map(|WindowForm { tokens, layers }| Window { tokens, layers }),
            },
            AttentionForm::Latent { q_rank, kv_rank, nope_dim, rope_dim, value_dim } => {
                Attention::Latent { q_rank, kv_rank, nope_dim, rope_dim, value_dim }
            }
        },
        feed_forward: match form.feed_forward {
            FeedForwardForm::Dense { intermediate, gated } => {
                FeedForward::Dense { intermediate, gated }
            }
            FeedForwardForm::Mixture {
                experts,
                experts_per_token,
                shared_experts,
                intermediate,
                dense_layers,
                dense_intermediate,
            } => FeedForward::Mixture {
                experts,
                experts_per_token,
                shared_experts,
                intermediate,
                dense_layers,
                dense_intermediate,
            },
        },
        context: form.context,
        stated_parameters_billion: form.stated_parameters_billion,
        source: Cow::Owned(form.source),
        verified: form.verified,
    }
}

fn accelerator_form(one: &Accelerator) -> AcceleratorForm {
    AcceleratorForm {
        id: one.id.to_owned(),
        memory_bytes: one.memory_bytes,
        bandwidth_bytes_per_s: one.bandwidth_bytes_per_s,
        fp32_flops_per_s: one.flops.fp32,
        bf16_flops_per_s: one.flops.bf16,
        fp8_flops_per_s: one.flops.fp8,
        int8_flops_per_s: one.flops.int8,
        fp4_flops_per_s: one.flops.fp4,
        watts: one.watts,
        link_bytes_per_s: one.link_bytes_per_s,
    }
}

fn accelerator(form: AcceleratorForm) -> Result<Accelerator, ManifestError> {
    let row = hardware::accelerators().iter().find(|row| row.id == form.id);
    let row = row.ok_or_else(|| ManifestError::Value {
        field: "deployment.accelerator",
        value: form.id.clone(),
    })?;
    Ok(Accelerator {
        memory_bytes: form.memory_bytes,
        bandwidth_bytes_per_s: form.bandwidth_bytes_per_s,
        flops: FlopsPerSecond {
            fp32: form.fp32_flops_per_s,
            bf16: form.bf16_flops_per_s,
            fp8: form.fp8_flops_per_s,
            int8: form.int8_flops_per_s,
            fp4: form.fp4_flops_per_s,
        },
        watts: form.watts,
        link_bytes_per_s: form.link_bytes_per_s,
        ..*row
    })
}
