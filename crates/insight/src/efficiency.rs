//! What the work cost: shares of the hardware's peaks, memory, energy, money.
//!
//! Each figure comes from the client's records, a server's signals, what the
//! user said of the machines, and the arithmetic of [`measure::hardware`]; it
//! names which, or what would expose it. Nothing is filled in by a guess but the
//! precision of weights and cache, which is called assumed wherever it enters.

mod energy;
mod money;
mod panel;
mod state;
mod step;
mod work;

use measure::deployment::Deployment;
use measure::efficiency::{Efficiency, Figure};
use measure::finding::{From, Lint};
use measure::hardware::{Accelerator, ModelShape, Precision};
use measure::metric::{self, Text};
use measure::said::{Said, said};
use measure::signal::Signal;

use crate::view::View;

/// A value with where its inputs came from, or why there is none.
type Known<T> = Result<T, Said>;

/// A figure under way: a value and its inputs.
#[derive(Clone, Debug)]
struct Found {
    value: f64,
    inputs: Vec<Said>,
}

/// The figures of a run.
pub fn figures(view: &View<'_>) -> Efficiency {
    let step = step::step(view);
    let energy = energy::steady(view);
    let figures = vec![
        figure("mfu", work::mfu(view)),
        figure("hfu", work::hfu(view)),
        figure("mbu", step.clone().and_then(|step| step.mbu())),
        figure("step_over_bound", step.clone().and_then(|step| step.over_bound())),
        figure("gpu_utilisation", state::gauge(view, Signal::GpuBusy)),
        figure("gpu_memory", state::memory(view)),
        figure("kv_cache_usage", state::gauge(view, Signal::KvUsage)),
        figure("prefix_hit_rate", state::prefix_hit_rate(view)),
        figure("preemptions_per_request", state::preemptions(view)),
        figure("power_w", energy.clone().map(|energy| energy.power())),
        figure("energy_per_token_j", energy.clone().and_then(|energy| energy.per_token(view))),
        figure(
            "energy_per_good_token_j",
            energy.clone().and_then(|energy| energy.per_good_token(view)),
        ),
        figure("cost_per_million_tokens", money::per_million_tokens(view)),
        figure("cost_per_million_good_tokens", money::per_million_good_tokens(view)),
        figure("tps_per_megawatt", energy.and_then(|energy| energy.tps_per_megawatt(view))),
        figure("per_gpu_output_tok_s", money::per_accelerator(view)),
    ];
    let panel = panel::panel(view, &figures, step.as_ref());
    Efficiency { figures, panel }
}

/// Shares of a peak that are more than the whole: an input of them is wrong.
pub fn lints(efficiency: &Efficiency) -> Vec<Lint> {
    let above_1 = |key: &'static str| {
        let value = efficiency.value(key).filter(|value| *value > 1.0)?;
        let symbol = metric::find(key).map_or(key, |metric| metric.symbol);
        Some(Lint {
            id: "share_above_one",
            concerns: key,
            says: said!(
                "{symbol} is {value:.2}, and no share of a peak is above 1: the accelerator, the \
                 precision of weights and cache, the number of accelerators or the tokens of a step \
                 is not what was given",
                "{symbol} 为 {value:.2}，而占峰值的比例不可能超过 1：给出的加速器型号、权重或 KV \
                 精度、加速器数量或每步 token 数有误",
                symbol = symbol,
                value = value,
            ),
        })
    };
    let below_bound = || {
        let value = efficiency.value("step_over_bound").filter(|value| *value < 1.0)?;
        Some(Lint {
            id: "share_above_one",
            concerns: "step_over_bound",
            says: said!(
                "a step takes {value:.2} of its lower bound, which no step can: the accelerator, the \
                 precision or the number of accelerators is not what was given",
                "每步时间只有下界的 {value:.2} 倍，这不可能：给出的加速器型号、精度或数量有误",
                value = value,
            ),
        })
    };
    let mut lints: Vec<Lint> = ["mfu", "hfu", "mbu"].into_iter().filter_map(above_1).collect();
    // A step that is bound by memory says the same by its MBU.
    if lints.iter().all(|lint| lint.concerns != "mbu") {
        lints.extend(below_bound());
    }
    lints
}

fn figure(key: &'static str, found: Known<Found>) -> Figure {
    let unit = metric::find(key).map_or("", |metric| metric.unit.symbol());
    let (value, inputs) = match found {
        Ok(Found { value, inputs }) if value.is_finite() => (Ok(value), inputs),
        Ok(Found { inputs, .. }) => (
            Err(said!("an input is 0, so there is no ratio", "有一项输入为 0，无法求比值")),
            inputs,
        ),
        Err(reason) => (Err(reason), Vec::new()),
    };
    Figure { key, value, unit, inputs }
}

/// An input with where it is from.
fn input(what: Said, from: From) -> Said {
    let word = match from {
        From::Client => Text { en: "client", zh: "客户端" },
        From::Server => Text { en: "server", zh: "服务端" },
        From::Probe => Text { en: "probe", zh: "探测" },
        From::Given => Text { en: "given", zh: "用户给出" },
        From::Bound => Text { en: "bound", zh: "理论界" },
    };
    Said { en: format!("{} ({})", what.en, word.en), zh: format!("{}（{}）", what.zh, word.zh) }
}

/// An input that is a signal: its id and a value.
fn of_signal(signal: Signal, value: f64) -> Said {
    let entry = signal.entry();
    let (id, unit) = (entry.id, entry.unit);
    let shown = format!("{id} {} {unit}", short(value));
    input(Said { en: shown.clone(), zh: shown }, From::Server)
}

/// A number to be read beside others: four digits.
fn short(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e6).contains(&size) {
        format!("{value:.3e}")
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}

fn given<'a>(view: &View<'a>) -> &'a Deployment {
    view.deployment
}

fn model<'a>(view: &View<'a>) -> Known<&'a ModelShape> {
    view.deployment.model.as_ref().ok_or_else(|| {
        said!(
            "the shape of the model is not given: --model-shape",
            "未给出模型结构：请用 --model-shape 指定"
        )
    })
}

fn accelerator<'a>(view: &View<'a>) -> Known<&'a Accelerator> {
    view.deployment.accelerator.as_ref().ok_or_else(|| {
        said!(
            "the accelerator is not given: --accelerator",
            "未给出加速器：请用 --accelerator 指定"
        )
    })
}

/// All accelerators of the deployment, busy or not.
fn accelerators(view: &View<'_>) -> Known<u32> {
    given(view).accelerators().ok_or_else(|| {
        said!(
            "the number of accelerators is not given: --topology",
            "未给出加速器数量：请用 --topology 指定"
        )
    })
}

/// Accelerators of one engine.
fn accelerators_of_engine(view: &View<'_>) -> Known<u32> {
    let deployment = given(view);
    let stages = deployment.pipeline_parallel.unwrap_or(1);
    match (deployment.tensor_parallel, deployment.accelerators()) {
        (Some(parallel), _) => Ok(parallel.saturating_mul(stages)),
        (None, Some(1)) => Ok(1),
        (None, Some(all)) => Err(said!(
            "{all} accelerators may be one engine or several: --tensor-parallel",
            "{all} 张加速器可能是一个引擎，也可能是多个：请用 --tensor-parallel 指定",
            all = all,
        )),
        (None, None) => accelerators(view),
    }
}

/// Precision of the weights, and whether somebody said so.
fn weights(view: &View<'_>) -> (Precision, bool) {
    given(view).weights.map_or((Precision::Bf16, false), |weights| (weights, true))
}

/// Precision of keys and values: given, told by the engine, or assumed.
fn kv_cache(view: &View<'_>) -> (Precision, Option<From>) {
    if let Some(precision) = given(view).kv_cache {
        return (precision, Some(From::Given));
    }
    let settings = view.signals().map_or(&[][..], |signals| &signals.settings);
    let told = settings.iter().find(|(name, _)| name == "cache_dtype");
    match told.and_then(|(_, value)| Precision::parse(value).ok()) {
        Some(precision) => (precision, Some(From::Server)),
        None => (Precision::Bf16, None),
    }
}

fn said_of_weights(view: &View<'_>) -> Said {
    match weights(view) {
        (precision, true) => input(
            said!("weights {precision}", "权重 {precision}", precision = precision),
            From::Given,
        ),
        (precision, false) => said!(
            "weights {precision} (assumed; --weights)",
            "权重 {precision}（假定；可用 --weights 指定）",
            precision = precision,
        ),
    }
}

fn said_of_kv(view: &View<'_>) -> Said {
    match kv_cache(view) {
        (precision, Some(from)) => {
            input(said!("KV cache {precision}", "KV 缓存 {precision}", precision = precision), from)
        }
        (precision, None) => said!(
            "KV cache {precision} (assumed; --kv-cache-dtype)",
            "KV 缓存 {precision}（假定；可用 --kv-cache-dtype 指定）",
            precision = precision,
        ),
    }
}

fn said_of_model(model: &ModelShape) -> Said {
    let name = &model.name;
    input(said!("model {name}", "模型 {name}", name = name), From::Given)
}

fn said_of_accelerator(accelerator: &Accelerator, count: u32) -> Said {
    let name = accelerator.name;
    input(said!("{count} × {name}", "{count} × {name}", count = count, name = name), From::Given)
}

/// The dense peak of one accelerator for the weights' products, operations a
/// second, with its words.
fn peak(view: &View<'_>) -> Known<(f64, Said)> {
    let accelerator = accelerator(view)?;
    let precision = accelerator.compute_precision(weights(view).0);
    let (name, of) = (accelerator.name, precision.name());
    let rate = accelerator.flops_per_s(precision).ok_or_else(|| {
        said!(
            "no dense peak of {name} for {of} is known",
            "不知道 {name} 的 {of} 稠密峰值算力",
            name = name,
            of = of
        )
    })?;
    let tera = short(rate / 1e12);
    let words = said!(
        "dense peak {tera} TFLOP/s for {of}",
        "{of} 稠密峰值 {tera} TFLOP/s",
        tera = tera,
        of = of,
    );
    Ok((rate, input(words, From::Given)))
}

/// Why a signal is absent: what its reader says, or that nobody read.
fn no_signal(view: &View<'_>, signal: Signal) -> Said {
    let entry = signal.entry();
    let Some(signals) = view.signals() else {
        return said!(
            "the server's metrics were not read, and {id} is one of them",
            "没有读取服务端指标，而 {id} 是其中之一",
            id = entry.id,
        );
    };
    signals.absent.get(&signal).cloned().unwrap_or_else(|| {
        let (id, name) = (entry.id, entry.name);
        Said {
            en: format!("{id} is not exposed ({})", name.en),
            zh: format!("没有暴露 {id}（{}）", name.zh),
        }
    })
}
