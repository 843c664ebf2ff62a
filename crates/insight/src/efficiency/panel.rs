//! Six signals that are read together instead of GPU utilisation: memory
//! bandwidth, kernel time, MFU, TPOT, communication time, useful tokens.

use measure::efficiency::Figure;
use measure::finding::From;
use measure::hardware::{Precision, roofline};
use measure::said::{Said, said};
use measure::signal::Signal;
use measure::undefined::Undefined;

use super::step::Step;
use super::{
    Found, Known, accelerator, accelerators_of_engine, figure, given, input, model, money,
    no_signal, short, state,
};
use crate::view::View;

/// The six, each a value or what would expose it.
pub(super) fn panel(
    view: &View<'_>,
    figures: &[Figure],
    step: Result<&Step, &Said>,
) -> Vec<Figure> {
    let of = |key: &str| figures.iter().find(|figure| figure.key == key).cloned();
    let share = |key, found| Figure { unit: "share", ..figure(key, found) };
    let mut panel = vec![
        share("memory_bandwidth", bandwidth(view, of("mbu"))),
        share("kernel_time", state::gauge(view, Signal::GpuBusy)),
    ];
    panel.extend(of("mfu"));
    panel.push(figure("tpot_ms", tpot(view)));
    panel.push(share("communication_time", communication(view, step)));
    panel.push(figure("goodput_tok_s", useful(view)));
    panel
}

/// What a device measured of its memory, else MBU.
fn bandwidth(view: &View<'_>, mbu: Option<Figure>) -> Known<Found> {
    let measured = state::gauge(view, Signal::DramActive);
    let why = match measured {
        Ok(found) => return Ok(found),
        Err(why) => why,
    };
    let Some(Figure { value, inputs, .. }) = mbu else { return Err(why) };
    match value {
        Ok(value) => {
            let by = said!("MBU: bytes that a step must move", "MBU：每步必须搬运的字节");
            let inputs = [vec![input(by, From::Bound)], inputs].concat();
            Ok(Found { value, inputs })
        }
        Err(other) => Err(Said {
            en: format!("{}; MBU: {}", why.en, other.en),
            zh: format!("{}；MBU：{}", why.zh, other.zh),
        }),
    }
}

fn tpot(view: &View<'_>) -> Known<Found> {
    let mean = view.figure("tpot_ms", "mean");
    let value = mean.ok_or_else(|| Said::from(Undefined::NoSamples.texts()))?;
    Ok(Found { value, inputs: vec![input(said!("mean", "均值"), From::Client)] })
}

/// The share of time in which accelerators send each other something: nothing on
/// one; what their links carried over what they can, where that was read; else
/// the least that a step's all-reduces take.
fn communication(view: &View<'_>, step: Result<&Step, &Said>) -> Known<Found> {
    let count = accelerators_of_engine(view)?;
    let alone =
        said!("{count} accelerators of an engine", "每个引擎 {count} 张加速器", count = count);
    let of_count = input(alone, From::Given);
    if count == 1 {
        return Ok(Found { value: 0.0, inputs: vec![of_count] });
    }
    let accelerator = accelerator(view)?;
    let gigabytes = short(accelerator.link_bytes_per_s / 1e9);
    let of_link = input(
        said!("link {gigabytes} GB/s each way", "互联单向 {gigabytes} GB/s", gigabytes = gigabytes,),
        From::Given,
    );
    if let Some(carried) = view.signals().and_then(|signals| signals.gauge(Signal::LinkBytes)) {
        let all = given(view).accelerators().unwrap_or(count);
        // What is sent is received as well, and both are counted.
        let value = carried.mean / (2.0 * f64::from(all) * accelerator.link_bytes_per_s);
        let inputs = vec![super::of_signal(Signal::LinkBytes, carried.mean), of_link, of_count];
        return Ok(Found { value, inputs });
    }
    let parallel = given(view).tensor_parallel.unwrap_or(count);
    let step = step.map_err(|why| {
        let absent = no_signal(view, Signal::LinkBytes);
        Said { en: format!("{}; {}", absent.en, why.en), zh: format!("{}；{}", absent.zh, why.zh) }
    })?;
    let bytes = roofline::all_reduce_bytes(model(view)?, Precision::Bf16, step.batch, parallel);
    let value = bytes / accelerator.link_bytes_per_s / step.seconds;
    let least = said!(
        "at least: bytes of a step's all-reduces, without their latency",
        "下界：每步 all-reduce 的字节数，不含其延迟"
    );
    Ok(Found { value, inputs: vec![input(least, From::Bound), of_link, of_count] })
}

/// Tokens of good requests; without an objective, of those that ended well.
fn useful(view: &View<'_>) -> Known<Found> {
    if view.summary.goodput.is_some() {
        let (value, said) = money::good_rate(view)?;
        return Ok(Found { value, inputs: vec![said] });
    }
    let rate = view.summary.throughput.output_tok_s;
    let value = rate.ok_or_else(|| Said::from(Undefined::NoTokenCount.texts()))?;
    let said =
        said!("of all requests that ended well: no SLO was given", "所有成功请求（未给出 SLO）");
    Ok(Found { value, inputs: vec![input(said, From::Client)] })
}
