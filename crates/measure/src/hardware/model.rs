//! The shape of a decoder-only transformer, and what follows from it alone:
//! parameters, floating point operations and bytes.
//!
//! Norms and biases are left out of all counts: they are less than 0.1 % of
//! any model here. Towers for pictures and sounds are left out as well, and so
//! are layers that only predict further tokens.

use std::borrow::Cow;

use super::Precision;

/// Layers that look at the latest tokens only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The most tokens that such a layer looks at and keeps.
    pub tokens: u32,
    /// How many of the layers do.
    pub layers: u32,
}

/// How tokens look at each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// Query heads in groups that share a key and a value head: all of MHA,
    /// GQA and MQA, by the number of key and value heads.
    Grouped {
        /// Layers with a window; `None` where every layer looks at all tokens.
        window: Option<Window>,
    },
    /// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): keys and
    /// values of all heads are kept as one latent vector.
    Latent {
        /// Rank of the queries' projection; `None` where it is whole.
        q_rank: Option<u32>,
        /// Width of the latent vector.
        kv_rank: u32,
        /// Width of a head's part without positions.
        nope_dim: u32,
        /// Width of a head's part with positions; its key is shared by all
        /// heads and kept beside the latent vector.
        rope_dim: u32,
        /// Width of a head's value.
        value_dim: u32,
    },
}

/// What a layer does behind attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedForward {
    /// One network for all tokens.
    Dense {
        /// Its inner width.
        intermediate: u32,
        /// True with a gate, which is a third matrix (SwiGLU, GeGLU).
        gated: bool,
    },
    /// Experts, of which each token takes a few. All of them are gated.
    Mixture {
        /// Experts that a router chooses from, in one layer.
        experts: u32,
        /// How many of them a token takes.
        experts_per_token: u32,
        /// Experts that every token takes besides.
        shared_experts: u32,
        /// Inner width of one expert.
        intermediate: u32,
        /// Layers without experts.
        dense_layers: u32,
        /// Inner width of those.
        dense_intermediate: u32,
    },
}

/// One model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelShape {
    /// Its name in commands.
    pub id: Cow<'static, str>,
    /// Its name in texts.
    pub name: Cow<'static, str>,
    /// Repositories of Hugging Face that hold models of this shape, but perhaps
    /// for the context and the padding of the vocabulary.
    pub repositories: &'static [&'static str],
    /// Layers.
    pub layers: u32,
    /// Width of the residual stream.
    pub hidden: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads; under latent attention the number of heads.
    pub kv_heads: u32,
    /// Width of a head; under latent attention that of a query with both
    /// parts.
    pub head_dim: u32,
    /// Rows of the embedding table.
    pub vocab: u32,
    /// True where the LM head is the embedding table.
    pub tied_embeddings: bool,
    /// How tokens look at each other.
    pub attention: Attention,
    /// What a layer does behind attention.
    pub feed_forward: FeedForward,
    /// The most positions that its configuration allows, tokens.
    pub context: u32,
    /// Parameters as its maker states them, 10⁹.
    pub stated_parameters_billion: Option<f64>,
    /// Where the figures are from.
    pub source: Cow<'static, str>,
    /// True where the figures of the shape were read in that source.
    pub verified: bool,
}

impl ModelShape {
    /// Everything that it is called, its id first.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = vec![&self.id, &self.name];
        names.extend(self.repositories);
        names
    }

    /// All parameters, with the embedding table, and with the LM head where it
    /// is another table.
    pub fn total_parameters(&self) -> f64 {
        let tables = if self.tied_embeddings { 1.0 } else { 2.0 };
        self.unrouted_parameters() + self.routed_parameters() + tables * self.head_parameters()
    }

    /// Parameters that one token is multiplied with: those of its layers and
    /// experts and of the LM head, without the embedding table, of which it
    /// reads one row. Makers often count that table as well.
    pub fn active_parameters(&self) -> f64 {
        self.active_layer_parameters() + self.head_parameters()
    }

    /// Floating point operations of all layers for one token, attention to
    /// other tokens and the LM head aside: 2 for each active parameter, one
    /// product and one sum (arXiv 2001.08361).
    pub fn linear_flops_per_token(&self) -> f64 {
        2.0 * self.active_layer_parameters()
    }

    /// Floating point operations of the LM head for one token whose logits are
    /// wanted: 2 · hidden · vocab.
    pub fn logits_flops(&self) -> f64 {
        2.0 * self.head_parameters()
    }

    /// Floating point operations of attention, all layers, when `new` tokens
    /// come after `cached` ones: each looks at all before it and at itself,
    /// so that there are new · cached + new · (new + 1) ÷ 2 pairs, fewer under
    /// a window.
    ///
    /// Grouped: 4 · heads · head dim for a pair and layer, whatever the number
    /// of key heads. Latent: the cheaper of the two orders of multiplication.
    /// Un-absorbed, a pair costs 2 · heads · (nope + rope + value), and the
    /// keys and values of cached tokens are made again from the latent
    /// vectors; absorbed, a pair costs 2 · heads · (2 · rank + rope). Engines
    /// take the first for prompts and the second for decoding.
    pub fn attention_flops(&self, new: f64, cached: f64) -> f64 {
        let layers = f64::from(self.layers);
        let all = pairs(new, cached);
        match self.attention {
            Attention::Grouped { window } => {
                let per_layer = 4.0 * f64::from(self.heads) * f64::from(self.head_dim);
                let Some(Window { tokens, layers: narrow }) = window else {
                    return per_layer * layers * all;
                };
                let narrow = f64::from(narrow);
                let seen = pairs_in_window(new, cached, f64::from(tokens));
                per_layer * ((layers - narrow) * all + narrow * seen)
            }
            Attention::Latent { kv_rank, nope_dim, rope_dim, value_dim, .. } => {
                let doubled_heads = 2.0 * f64::from(self.heads);
                let rank = f64::from(kv_rank);
                let made_again = cached * rank * sum([nope_dim, value_dim]);
                let plain = all * sum([nope_dim, rope_dim, value_dim]) + made_again;
                let absorbed = all * (2.0 * rank + f64::from(rope_dim));
                doubled_heads * layers * plain.min(absorbed)
            }
        }
    }

    /// Floating point operations of one decoded token with one token before
    /// it, all layers, as long as no window has been left: what
    /// [`ModelShape::attention_flops`] of one new token grows by. Latent
    /// attention is counted absorbed.
    pub fn attention_flops_per_pair(&self) -> f64 {
        let per_layer = match self.attention {
            Attention::Grouped { .. } => 4.0 * f64::from(self.head_dim),
            Attention::Latent { kv_rank, rope_dim, .. } => {
                2.0 * (2.0 * f64::from(kv_rank) + f64::from(rope_dim))
            }
        };
        f64::from(self.layers) * f64::from(self.heads) * per_layer
    }

    /// Floating point operations of attention when `new` tokens are decoded one
    /// after the other behind `before` others: as many pairs as those of a
    /// prompt, and latent attention absorbed throughout.
    pub fn decode_attention_flops(&self, new: f64, before: f64) -> f64 {
        match self.attention {
            Attention::Grouped { .. } => self.attention_flops(new, before),
            Attention::Latent { .. } => self.attention_flops_per_pair() * pairs(new, before),
        }
    }

    /// Bytes that one token adds to the KV cache, all layers: 2 · layers · KV
    /// heads · head dim values, or layers · (rank + rope) under latent
    /// attention. Layers with a window stop growing at the window; see
    /// [`ModelShape::kv_bytes_of_context`].
    pub fn kv_bytes_per_token(&self, precision: Precision) -> f64 {
        f64::from(self.layers) * self.kv_bytes_per_token_and_layer(precision)
    }

    /// Bytes of the KV cache of one sequence of `tokens` tokens, where layers
    /// with a window keep no more than that.
    pub fn kv_bytes_of_context(&self, precision: Precision, tokens: f64) -> f64 {
        let mut kept = f64::from(self.layers) * tokens;
        if let Attention::Grouped { window: Some(Window { tokens: most, layers }) } = self.attention
        {
            kept -= f64::from(layers) * (tokens - f64::from(most)).max(0.0);
        }
        kept * self.kv_bytes_per_token_and_layer(precision)
    }

    /// Bytes that one token adds to the KV cache of each accelerator, where
    /// `tensor_parallel` of them share a model: key heads are divided until
    /// each has one and are copied beyond that, and a latent vector, which all
    /// heads need, is on each of them.
    pub fn kv_bytes_per_token_of_one(&self, precision: Precision, tensor_parallel: u32) -> f64 {
        let parts = match self.attention {
            Attention::Grouped { .. } => tensor_parallel.min(self.kv_heads).max(1),
            Attention::Latent { .. } => 1,
        };
        self.kv_bytes_per_token(precision) / f64::from(parts)
    }

    /// Bytes of all weights at one precision. Quantized checkpoints often keep
    /// tables and attention wider, and are then larger than this.
    pub fn weight_bytes(&self, precision: Precision) -> f64 {
        self.total_parameters() * precision.bytes_per_value()
    }

    /// Bytes of the weights that one step over `tokens` tokens reads: all
    /// layers and the LM head, and of a mixture those experts that some token
    /// takes. Of E experts with k per token they are
    /// E · (1 − (1 − k ÷ E)^tokens) on average, which assumes that a router
    /// takes all experts equally often; real ones take fewer.
    pub fn weight_bytes_read(&self, precision: Precision, tokens: f64) -> f64 {
        let routed = self.routed_parameters() * self.touched_share(tokens);
        let read = self.unrouted_parameters() + routed + self.head_parameters();
        read * precision.bytes_per_value()
    }

    /// The share of a layer's experts that a step over `tokens` tokens takes.
    fn touched_share(&self, tokens: f64) -> f64 {
        match self.feed_forward {
            FeedForward::Dense { .. } => 1.0,
            FeedForward::Mixture { experts, experts_per_token, .. } => {
                let share = f64::from(experts_per_token) / f64::from(experts.max(1));
                1.0 - (1.0 - share.min(1.0)).powf(tokens.max(0.0))
            }
        }
    }

    fn head_parameters(&self) -> f64 {
        f64::from(self.hidden) * f64::from(self.vocab)
    }

    fn active_layer_parameters(&self) -> f64 {
        self.unrouted_parameters() + self.routed_parameters() * self.touched_share(1.0)
    }

    /// Parameters of layers that every token takes: attention, dense networks,
    /// shared experts and routers.
    fn unrouted_parameters(&self) -> f64 {
        let (layers, hidden) = (f64::from(self.layers), f64::from(self.hidden));
        let behind = match self.feed_forward {
            FeedForward::Dense { intermediate, gated } => {
                let matrices = if gated { 3.0 } else { 2.0 };
                layers * matrices * hidden * f64::from(intermediate)
            }
            FeedForward::Mixture {
                experts,
                shared_experts,
                intermediate,
                dense_layers,
                dense_intermediate,
                ..
            } => {
                let dense = f64::from(dense_layers);
                let shared = 3.0 * f64::from(shared_experts) * f64::from(intermediate);
                let mixed = (layers - dense) * hidden * (f64::from(experts) + shared);
                mixed + dense * 3.0 * hidden * f64::from(dense_intermediate)
            }
        };
        layers * self.attention_parameters_per_layer() + behind
    }

    /// Parameters of all experts that a router chooses from.
    fn routed_parameters(&self) -> f64 {
        match self.feed_forward {
            FeedForward::Dense { .. } => 0.0,
            FeedForward::Mixture { experts, intermediate, dense_layers, .. } => {
                let mixed = f64::from(self.layers) - f64::from(dense_layers);
                let one = 3.0 * f64::from(self.hidden) * f64::from(intermediate);
                mixed * f64::from(experts) * one
            }
        }
    }

    fn attention_parameters_per_layer(&self) -> f64 {
        let (hidden, heads) = (f64::from(self.hidden), f64::from(self.heads));
        match self.attention {
            Attention::Grouped { .. } => {
                2.0 * hidden * f64::from(self.head_dim) * (heads + f64::from(self.kv_heads))
            }
            Attention::Latent { q_rank, kv_rank, nope_dim, rope_dim, value_dim } => {
                let query = heads * sum([nope_dim, rope_dim]);
                let queries = match q_rank {
                    Some(rank) => f64::from(rank) * (hidden + query),
                    None => hidden * query,
                };
                let down = hidden * sum([kv_rank, rope_dim]);
                let up = f64::from(kv_rank) * heads * sum([nope_dim, value_dim]);
                queries + down + up + heads * f64::from(value_dim) * hidden
            }
        }
    }

    fn kv_bytes_per_token_and_layer(&self, precision: Precision) -> f64 {
        let values = match self.attention {
            Attention::Grouped { .. } => 2.0 * f64::from(self.kv_heads) * f64::from(self.head_dim),
            Attention::Latent { kv_rank, rope_dim, .. } => sum([kv_rank, rope_dim]),
        };
        values * precision.bytes_per_value()
    }
}

/// Added as floating point: of widths from a file the sum may not fit 32 bits.
fn sum<const N: usize>(widths: [u32; N]) -> f64 {
    widths.into_iter().map(f64::from).sum()
}

/// Pairs of a new token with one that it looks at, itself among them.
fn pairs(new: f64, cached: f64) -> f64 {
    new * cached + new * (new + 1.0) / 2.0
}

/// The same where each token looks at the latest `window` only.
fn pairs_in_window(new: f64, cached: f64, window: f64) -> f64 {
    let growing = (window - cached).clamp(0.0, new);
    pairs(growing, cached.min(window)) + (new - growing) * window
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_what_counting_them_gives() {
        for (new, cached, window) in [(5, 0, 100), (5, 3, 4), (7, 10, 4), (9, 2, 6), (1, 5, 6)] {
            let seen = |one: u32| f64::from((cached + one).min(window));
            let counted: f64 = (1..=new).map(seen).sum();
            let found = pairs_in_window(f64::from(new), f64::from(cached), f64::from(window));
            assert_eq!(found, counted, "{new} after {cached}, window {window}");
        }
        assert_eq!(pairs(4.0, 10.0), 50.0);
    }
}
