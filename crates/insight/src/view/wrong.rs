//! How far the latencies of a run are from what is asked of them. Causes are
//! ordered by how much of that they explain.

use measure::signal::Signal;
use measure::slo::{Quantity, Slo};

use super::View;

/// Each latency over what is asked of it, 1 at the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wrong {
    /// P90 of TTFT over its limit; the server's mean where it is watched.
    pub ttft: f64,
    /// P90 of TPOT over its limit; the server's mean ITL where it is watched.
    pub tpot: f64,
    /// P99 of the gaps between tokens over ten times the undisturbed gap, or
    /// over four times the limit of TPOT where that is more.
    pub gaps: f64,
    /// Limit of TTFT, ms.
    pub ttft_limit_ms: f64,
    /// Limit of TPOT, ms.
    pub tpot_limit_ms: f64,
    /// True where the limits are the user's own and not those of a chat.
    pub is_given: bool,
}

/// What a chat asks for where the user asks for nothing, ms.
pub(super) const CHAT_MS: (f64, f64) = (500.0, 50.0);

impl Wrong {
    /// Those of a run.
    pub(super) fn of(view: &View<'_>) -> Self {
        let slo = view.summary.facts.slo.as_ref();
        let given = (limit(slo, Quantity::Ttft), limit(slo, Quantity::Tpot));
        let (ttft_ms, tpot_ms) = (given.0.unwrap_or(CHAT_MS.0), given.1.unwrap_or(CHAT_MS.1));
        let over = |value: Option<f64>, limit: f64| value.map_or(0.0, |value| value / limit);
        let (ttft, tpot) = if view.is_watched {
            // Buckets of servers are too wide for a P90.
            (view.server_ms(Signal::ServerTtft), view.server_ms(Signal::ServerItl))
        } else {
            (view.figure("ttft_ms", "p90"), view.figure("tpot_ms", "p90"))
        };
        let base = view.mixture.map_or(0.0, |mixture| mixture.base_ms);
        let gap_ms = (10.0 * base).max(4.0 * tpot_ms.min(CHAT_MS.1));
        Self {
            ttft: over(ttft, ttft_ms),
            tpot: over(tpot, tpot_ms),
            gaps: over(view.figure("icl_ms", "p99"), gap_ms),
            ttft_limit_ms: ttft_ms,
            tpot_limit_ms: tpot_ms,
            is_given: given.0.is_some() || given.1.is_some(),
        }
    }

    /// Weights of the three, which sum to 1: what is far below its limit counts
    /// little, and nothing counts more than eight times its limit.
    pub fn weights(&self) -> [f64; 3] {
        let each = [self.ttft, self.tpot, self.gaps].map(|over| over.min(8.0).powi(2) + 1e-6);
        let all: f64 = each.iter().sum();
        each.map(|weight| weight / all)
    }

    /// True where some latency is over its limit.
    pub fn is_anything(&self) -> bool {
        self.ttft > 1.0 || self.tpot > 1.0 || self.gaps > 1.0
    }
}

/// The smallest limit that the objective of a run puts on a quantity.
fn limit(slo: Option<&Slo>, quantity: Quantity) -> Option<f64> {
    let terms = slo?.all_terms().filter(|term| term.quantity == quantity);
    terms.map(|term| term.limit_ms).reduce(f64::min)
}
