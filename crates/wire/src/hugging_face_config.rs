//! `config.json` of a Hugging Face repository: the shape of its model.
//!
//! Families differ in the names of members, in what a missing one means, and
//! in which layers have windows or experts. What is read the same way for all
//! stands here, what differs in [`family`].

mod family;

use std::borrow::Cow;

use measure::hardware::{Attention, FeedForward, ModelShape, Window};
use serde_json::{Map, Value};

use self::family::Family;

/// The most bytes of a configuration: those of real models are some thousand,
/// and some hundred thousand with a rule for every quantized layer.
pub const MOST_BYTES: usize = 4 << 20;

/// The largest number that a member may have. Widths and counts of real models
/// are far below; contexts reach ten million.
const LARGEST: u64 = 100_000_000;

/// A shape and what has to be said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The shape; its source is the file, and nobody states its parameters.
    pub shape: ModelShape,
    /// Sentences about what was assumed.
    pub notes: Vec<String>,
}

/// Why a file gives no shape.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// More than anyone writes.
    #[error(
        "a config.json has at most {MOST_BYTES} bytes, and this has {found}; take the file of a model's repository"
    )]
    Large {
        /// Its bytes.
        found: usize,
    },
    /// Not JSON.
    #[error("config.json is not JSON: {0}")]
    Form(#[from] serde_json::Error),
    /// JSON, but not an object.
    #[error("config.json is not an object; take the file that lies beside a model's weights")]
    NoObject,
    /// Without a member that is needed.
    #[error(
        "config.json of model type {model_type:?} has no {member}, without which its shape is unknown"
    )]
    Missing {
        /// The model type that the file states.
        model_type: String,
        /// The name of the member.
        member: &'static str,
    },
    /// A member that is no such number.
    #[error("{member} in config.json is {found}; it must be a whole number from {least} to {most}")]
    Number {
        /// The member.
        member: &'static str,
        /// What it is, its first characters.
        found: String,
        /// The least that it may be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
    /// A model that the arithmetic of [`ModelShape`] does not fit.
    #[error(
        "config.json has {member}: {why}, which the arithmetic here does not cover; take a model whose layers are alike"
    )]
    Uncovered {
        /// What gives it away.
        member: String,
        /// What it means.
        why: &'static str,
    },
}

/// Reads the shape of a decoder-only transformer. The name is what it is
/// called in texts; empty takes the one that the file states, if any.
///
/// # Errors
///
/// [`ConfigurationError`] for what is no such file, for one without a needed
/// member, and for layers that the arithmetic does not cover.
pub fn read(bytes: &[u8], name: &str) -> Result<Configuration, ConfigurationError> {
    if bytes.len() > MOST_BYTES {
        return Err(ConfigurationError::Large { found: bytes.len() });
    }
    let (value, _) = crate::json::lenient(bytes)?;
    let Value::Object(outer) = value else { return Err(ConfigurationError::NoObject) };
    let mut notes = Vec::new();
    // Models that see pictures keep the language model's members one level down.
    let inner = outer.get("text_config").and_then(Value::as_object);
    if inner.is_some() {
        notes.push(
            "only the language model is counted, not its towers for pictures or sounds".into(),
        );
    }
    let members = Members::new(&outer, inner.unwrap_or(&outer));
    members.refuse_uncovered()?;
    let shape = shape(&members, name, &mut notes)?;
    Ok(Configuration { shape, notes })
}

fn shape(
    members: &Members,
    name: &str,
    notes: &mut Vec<String>,
) -> Result<ModelShape, ConfigurationError> {
    if members.family.is_none() {
        notes.push(format!(
            "the model type {:?} is not known; it is read as one of Llama's make",
            members.model_type
        ));
    }
    let layers = members.number("num_hidden_layers")?;
    let hidden = members.number("hidden_size")?;
    let heads = members.number("num_attention_heads")?;
    let vocab = members.number("vocab_size")?;
    let context = members.number("max_position_embeddings")?;
    let attention = attention(members, layers, context)?;
    let head_dim = match attention {
        Attention::Latent { nope_dim, rope_dim, .. } => nope_dim + rope_dim,
        Attention::Grouped { .. } => match members.optional("head_dim")? {
            Some(width) => width,
            None => (hidden / heads).max(1),
        },
    };
    let chosen = ["index_topk", "sparse_attention_config"];
    if chosen.iter().any(|member| members.value(member).is_some()) {
        notes.push("attention to chosen tokens only is counted as attention to all".into());
    }
    let stated = members.text("_name_or_path");
    let name = [name, stated, &members.model_type].into_iter().find(|name| !name.is_empty());
    let name: String = name.unwrap_or("a model").chars().take(200).collect();
    Ok(ModelShape {
        id: Cow::Owned(name.clone()),
        name: Cow::Owned(name),
        repositories: &[],
        layers,
        hidden,
        heads,
        kv_heads: members.optional("num_key_value_heads")?.unwrap_or(heads),
        head_dim,
        vocab,
        tied_embeddings: members.flag("tie_word_embeddings"),
        attention,
        feed_forward: feed_forward(members, layers, notes)?,
        context,
        stated_parameters_billion: None,
        source: Cow::Borrowed("config.json"),
        verified: true,
    })
}

fn attention(
    members: &Members,
    layers: u32,
    context: u32,
) -> Result<Attention, ConfigurationError> {
    if let Some(kv_rank) = members.optional("kv_lora_rank")? {
        return Ok(Attention::Latent {
            q_rank: members.optional("q_lora_rank")?,
            kv_rank,
            nope_dim: members.number("qk_nope_head_dim")?,
            rope_dim: members.number("qk_rope_head_dim")?,
            value_dim: members.number("v_head_dim")?,
        });
    }
    // Qwen writes a window that it does not use.
    let used = members.value("use_sliding_window").is_none_or(|used| used == &Value::Bool(true));
    let tokens = match members.optional("sliding_window")?.filter(|_| used) {
        Some(tokens) => Some(tokens),
        None => members.optional("attention_chunk_size")?,
    };
    // A window that no sequence leaves is none.
    let Some(tokens) = tokens.filter(|tokens| *tokens < context) else {
        return Ok(Attention::Grouped { window: None });
    };
    let narrow = members.narrow_layers(layers)?;
    Ok(Attention::Grouped { window: (narrow > 0).then_some(Window { tokens, layers: narrow }) })
}

fn feed_forward(
    members: &Members,
    layers: u32,
    notes: &mut Vec<String>,
) -> Result<FeedForward, ConfigurationError> {
    let names = ["n_routed_experts", "num_experts", "num_local_experts"];
    let mut experts = None;
    for name in names {
        // Some dense models state a single expert, or none.
        experts = experts.or(members.optional(name)?.filter(|experts| *experts > 1));
    }
    let Some(experts) = experts else {
        let gated = members.family.is_none_or(|family| family.gated);
        let intermediate = members.number("intermediate_size")?;
        return Ok(FeedForward::Dense { intermediate, gated });
    };
    let experts_per_token = members.number_up_to("num_experts_per_tok", u64::from(experts))?;
    let dense_layers = members.dense_layers(layers)?;
    let dense_intermediate = match members.optional("intermediate_size_mlp")? {
        Some(width) => Some(width),
        None => members.optional("intermediate_size")?,
    };
    let intermediate = match members.optional("moe_intermediate_size")? {
        Some(width) => width,
        None => members.number("intermediate_size")?,
    };
    Ok(FeedForward::Mixture {
        experts,
        experts_per_token,
        shared_experts: members.shared_experts(intermediate, notes)?,
        intermediate,
        dense_layers,
        dense_intermediate: match dense_intermediate {
            Some(width) if dense_layers > 0 => width,
            None if dense_layers > 0 => members.number("intermediate_size")?,
            _ => 0,
        },
    })
}

/// The members of the language model, and the family that it is of.
struct Members<'a> {
    outer: &'a Map<String, Value>,
    inner: &'a Map<String, Value>,
    model_type: String,
    family: Option<&'static Family>,
}

impl<'a> Members<'a> {
    fn new(outer: &'a Map<String, Value>, inner: &'a Map<String, Value>) -> Self {
        let stated = [inner, outer]
            .into_iter()
            .find_map(|members| members.get("model_type").and_then(Value::as_str));
        let model_type: String = stated.unwrap_or_default().chars().take(80).collect();
        let family = family::find(&model_type);
        Self { outer, inner, model_type, family }
    }

    /// The member, where it is there and not null.
    fn value(&self, member: &str) -> Option<&'a Value> {
        self.inner.get(member).filter(|value| !value.is_null())
    }

    fn text(&self, member: &str) -> &'a str {
        self.outer.get(member).and_then(Value::as_str).unwrap_or_default()
    }

    /// A switch: stated by the language model, else by the whole, else what
    /// the family means by leaving it out.
    fn flag(&self, member: &str) -> bool {
        let stated = self.value(member).or_else(|| self.outer.get(member)).and_then(Value::as_bool);
        stated.unwrap_or_else(|| self.family.is_some_and(|family| family.tied))
    }

    /// A number from 1, or what the family means by leaving it out.
    fn optional(&self, member: &'static str) -> Result<Option<u32>, ConfigurationError> {
        let usual = || self.family.and_then(|family| family.usual(member));
        match self.value(member) {
            None => Ok(usual()),
            // Zero is how some write that there is none.
            Some(value) if value.as_u64() == Some(0) => Ok(None),
            Some(value) => whole(member, value, 1, LARGEST).map(Some),
        }
    }

    fn number(&self, member: &'static str) -> Result<u32, ConfigurationError> {
        self.number_up_to(member, LARGEST)
    }

    fn number_up_to(&self, member: &'static str, most: u64) -> Result<u32, ConfigurationError> {
        match self.value(member) {
            Some(value) => whole(member, value, 1, most),
            None => self.optional(member)?.ok_or_else(|| ConfigurationError::Missing {
                model_type: self.model_type.clone(),
                member,
            }),
        }
    }

    /// The kinds of the layers, where the file lists them.
    fn layer_types(&self) -> impl Iterator<Item = &'a str> {
        let types = self.value("layer_types").and_then(Value::as_array);
        types.into_iter().flatten().filter_map(Value::as_str)
    }

    /// How many of the layers have the window: what the file lists, else those
    /// behind the first few (Qwen), else every layer but each n-th, else all.
    fn narrow_layers(&self, layers: u32) -> Result<u32, ConfigurationError> {
        let (mut listed, mut narrow) = (0, 0);
        for kind in self.layer_types() {
            listed += 1;
            narrow += u32::from(matches!(kind, "sliding_attention" | "chunked_attention"));
        }
        if listed > 0 {
            return Ok(narrow.min(layers));
        }
        if let Some(first) = self.value("max_window_layers") {
            return Ok(layers - whole("max_window_layers", first, 0, LARGEST)?.min(layers));
        }
        let every = match self.optional("sliding_window_pattern")? {
            Some(every) => Some(every),
            None => self.family.and_then(|family| family.full_every),
        };
        Ok(match every {
            Some(every) => layers - layers / every,
            None => layers,
        })
    }

    /// How many of the layers have no experts.
    fn dense_layers(&self, layers: u32) -> Result<u32, ConfigurationError> {
        let first = match self.value("first_k_dense_replace") {
            Some(value) => whole("first_k_dense_replace", value, 0, u64::from(layers))?,
            None => 0,
        };
        // Qwen's step and Llama 4's say that each n-th layer has experts.
        let step = match self.optional("decoder_sparse_step")? {
            Some(step) => Some(step),
            None => self.optional("interleave_moe_layer_step")?,
        };
        let stepped = step.map_or(0, |step| layers - layers / step);
        let list = |member: &str| self.value(member).and_then(Value::as_array);
        let named = list("mlp_only_layers").map_or(0, Vec::len);
        let flags = list("moe_layer_freq").into_iter().flatten();
        let marked = flags.filter(|flag| flag.as_u64() == Some(0)).count();
        let listed = u32::try_from(named.saturating_add(marked)).unwrap_or(layers);
        Ok(first.saturating_add(stepped).saturating_add(listed).min(layers))
    }

    /// Experts that every token takes, in units of the others: some files give
    /// their number, some their width together.
    fn shared_experts(
        &self,
        intermediate: u32,
        notes: &mut Vec<String>,
    ) -> Result<u32, ConfigurationError> {
        if let Some(width) = self.optional("shared_expert_intermediate_size")? {
            let experts = (width + intermediate / 2) / intermediate;
            if experts * intermediate != width {
                notes.push(format!(
                    "a shared expert {width} wide is counted as {experts} of {intermediate}"
                ));
            }
            return Ok(experts);
        }
        match self.optional("n_shared_experts")? {
            Some(experts) => Ok(experts),
            None => Ok(self.family.map_or(0, |family| family.shared_experts)),
        }
    }

    fn refuse_uncovered(&self) -> Result<(), ConfigurationError> {
        for (member, why) in family::UNCOVERED {
            if self.value(member).is_some() {
                return Err(ConfigurationError::Uncovered { member: (*member).into(), why });
            }
        }
        match self.layer_types().find(|kind| !family::LAYER_TYPES.contains(kind)) {
            None => Ok(()),
            Some(kind) => Err(ConfigurationError::Uncovered {
                member: format!("{:?} in layer_types", kind.chars().take(40).collect::<String>()),
                why: "layers of another kind",
            }),
        }
    }
}

fn whole(
    member: &'static str,
    value: &Value,
    least: u64,
    most: u64,
) -> Result<u32, ConfigurationError> {
    let fits = value.as_u64().filter(|number| (least..=most).contains(number));
    fits.and_then(|number| u32::try_from(number).ok()).ok_or_else(|| {
        let found = value.to_string().chars().take(40).collect();
        ConfigurationError::Number { member, found, least, most }
    })
}

#[cfg(test)]
mod tests;
