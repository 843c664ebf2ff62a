//! The result of the experiments as one JSON object.

use insight::fit::{Curve, Refused};
use insight::probe::{
    Beside, Conclusions, Context, EXPERIMENTS, Figures, Ladder, LeftOut, Level, Limits, Line,
    Observed, Prefill, Press, Scale, Taken,
};
use serde_json::{Value, json};

/// The version of the object. Raise it when a member changes its meaning.
const SCHEMA: &str = "goodput.probe/1";

/// All of it.
pub(super) fn object(
    found: &Conclusions,
    context: &Context,
    limits: &Limits,
    elapsed_s: f64,
) -> Value {
    let experiments: Vec<Value> = EXPERIMENTS
        .iter()
        .map(|entry| {
            let of_it = |taken: &&Taken| taken.trial.experiment == entry.experiment;
            let trials: Vec<Value> = found.taken.iter().filter(of_it).map(trial).collect();
            let left = found.left_out.iter().find(|left| left.experiment == entry.experiment);
            json!({
                "name": entry.name,
                "does": entry.does.en,
                "decides": entry.decides.en,
                "asked_for": limits.only.contains(&entry.experiment),
                "trials": trials,
                "left_out": left.map(|LeftOut { why, .. }| &why.en),
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "target": context.target,
        "model": context.model,
        "engine": context.engine,
        "simulated": context.simulated,
        "budget_s": limits.budget_s,
        "elapsed_s": elapsed_s,
        "max_concurrency": limits.most_users,
        "requests": {"ok": found.ok, "failed": found.failed},
        "ended_early": found.halted.as_ref().map(|why| &why.en),
        "experiments": experiments,
        "figures": figures(&found.figures),
        "findings": found.findings.iter().map(wire::summary::finding).collect::<Vec<_>>(),
        "missing": found.missing.iter().map(|what| &what.en).collect::<Vec<_>>(),
    })
}

fn trial(taken: &Taken) -> Value {
    let Taken { trial, observed } = taken;
    let Observed { samples, planned, failed, refused, is_cut, message, .. } = observed;
    let (users, req_s) = match trial.press {
        Press::Users(users) => (users, None),
        Press::Rate { req_s, users } => (users, Some(req_s)),
    };
    let rows: Vec<Value> = samples
        .iter()
        .map(|sample| {
            json!({
                "label": sample.label,
                "input_tokens": sample.input,
                "cached_tokens": sample.cached,
                "output_tokens": sample.output,
                "wait_ms": sample.wait_ms,
                "ttft_ms": sample.ttft_ms,
                "tpot_ms": sample.tpot_ms,
                "e2el_ms": sample.e2e_ms,
            })
        })
        .collect();
    json!({
        "input_tokens": trial.input,
        "output_tokens": trial.output,
        "users": users,
        "req_s": req_s,
        "canaries": trial.beside == Beside::Canaries,
        "planned": planned,
        "failed": failed,
        "refused": refused,
        "message": message,
        "cut": is_cut,
        "requests": rows,
    })
}

fn figures(figures: &Figures) -> Value {
    json!({
        "transport": figures.transport.as_ref().map(|found| json!({
            "connections": found.connections,
            "connect_ms": found.connect_ms,
            "tls_ms": found.secure_ms,
            "answer_ms": pair(found.answer_ms),
            "answer_under_load_ms": pair(found.loaded_ms),
            "users": found.loaded_users,
        })),
        "baseline": figures.baseline.map(|found| json!({
            "n": found.n,
            "input_tokens": found.input,
            "output_tokens": found.output,
            "ttft_ms": found.ttft_ms,
            "ttft_p95_over_p50": found.ttft_spread,
            "tpot_ms": found.tpot_ms,
            "e2el_ms": found.e2e_ms,
        })),
        "lengths": figures.lengths.as_ref().map(|found| json!({
            "rows": found.rows.iter().map(|row| json!({
                "input_tokens": row.input, "n": row.n, "ttft_ms": row.ttft_ms,
            })).collect::<Vec<_>>(),
            "fit": fitted(&found.fit, prefill),
        })),
        "ladders": figures.ladders.iter().map(ladder).collect::<Vec<_>>(),
        "prefix": figures.prefix.as_ref().map(|found| json!({
            "input_tokens": found.input,
            "cold_ttft_ms": found.cold_ms,
            "warm_ttft_ms": found.warm_ms,
            "least_ttft_ms": found.least_ms,
            "warm_share": found.share.as_ref().ok(),
            "interval": found.interval,
            "refused": found.share.as_ref().err().map(|why| &why.en),
            "share_told_by_server": found.told,
        })),
        "outputs": figures.outputs.as_ref().map(|found| json!({
            "rows": found.rows.iter().map(|row| json!({
                "output_tokens": row.output, "n": row.n, "ttft_ms": row.ttft_ms,
                "e2el_ms": row.e2e_ms,
            })).collect::<Vec<_>>(),
            "fit": fitted(&found.fit, |fit| line(fit, "a_ms", "ms_per_token")),
        })),
        "canaries": figures.canaries.map(|found| json!({
            "users": found.users,
            "short": {
                "n": found.n[0], "alone_ttft_ms": found.alone_ms[0], "ttft_ms": found.ttft_ms[0],
            },
            "long": {
                "n": found.n[1], "alone_ttft_ms": found.alone_ms[1], "ttft_ms": found.ttft_ms[1],
            },
            "waiting_ms": found.waiting_ms(),
            "prefill_ms": found.is_telling().then(|| found.prefill_ms()),
            "prefill_interval_ms": found.interval_ms,
            "prefill_alone_ms": found.prefill_alone_ms(),
        })),
        "rates": figures.rates.as_ref().map(|found| json!({
            "rows": found.rates.iter().map(|row| json!({
                "req_s": row.req_s, "load": row.load, "n": row.n, "ttft_ms": row.ttft_ms,
                "excess_ms": row.excess_ms,
            })).collect::<Vec<_>>(),
            "c_ms": found.predicted.map(|[c, _]| c),
            "predicted_excess_ms": found.predicted.map(|[_, predicted]| predicted),
            "consistent": found.is_consistent(),
        })),
    })
}

fn pair(ms: Option<[f64; 2]>) -> Value {
    ms.map_or(Value::Null, |[p50, p95]| json!({"p50": p50, "p95": p95}))
}

/// A fit, or why there is none.
fn fitted<T>(fit: &Result<T, Refused>, of: impl Fn(&T) -> Value) -> Value {
    match fit {
        Ok(fit) => of(fit),
        Err(why) => json!({"refused": why.says().en}),
    }
}

fn prefill(fit: &Prefill) -> Value {
    let Curve { a, b, c, r2, residual } = fit.curve;
    json!({
        "a_ms": a,
        "b_ms_per_token": b,
        "c_ms_per_token2": c,
        "r2": r2,
        "residual": residual,
        "from_tokens": fit.from,
        "tokens_per_s": fit.tokens_per_s(),
        "intervals": fit.intervals.map(|[a, b, c]| json!({
            "a_ms": a, "b_ms_per_token": b, "c_ms_per_token2": c,
        })),
    })
}

fn line(fit: &Line, intercept: &str, slope: &str) -> Value {
    let mut object = json!({"r2": fit.curve.r2, "residual": fit.curve.residual});
    object[intercept] = json!(fit.curve.a);
    object[slope] = json!(fit.curve.b);
    object["intervals"] = fit.intervals.map_or(Value::Null, |[a, b]| {
        let mut both = json!({});
        both[intercept] = json!(a);
        both[slope] = json!(b);
        both
    });
    object
}

fn ladder(ladder: &Ladder) -> Value {
    let level = |level: &Level| {
        json!({
            "users": level.users,
            "n": level.n,
            "input_tokens": level.input,
            "output_tokens": level.output,
            "req_s": level.req_s,
            "output_tok_s": level.output_tok_s(),
            "ttft_ms": level.ttft_ms,
            "tpot_ms": level.tpot_ms,
            "e2el_ms": level.e2e_ms,
            "answered": level.answered,
            "served": level.served,
            "prefill_share": level.prefill_share,
            "waits": level.waits,
        })
    };
    json!({
        "input_tokens": ladder.input,
        "levels": ladder.levels.iter().map(level).collect::<Vec<_>>(),
        "tpot_over_batch": fitted(&ladder.batch, |fit| line(fit, "t0_ms", "k_ms")),
        "scaling": fitted(&ladder.scaling, scaling),
        "limit": ladder.limit(),
    })
}

fn scaling(scale: &Scale) -> Value {
    let law = scale.law;
    json!({
        "intervals": scale.intervals.map(|[lambda, sigma, kappa]| json!({
            "lambda_tok_s": lambda, "sigma": sigma, "kappa": kappa,
        })),
        "lambda_tok_s": law.single,
        "sigma": law.contention,
        "kappa": law.coherency,
        "r2": law.r2,
        "peak_users": law.peak(),
        "asymptote_tok_s": law.asymptote(),
    })
}
