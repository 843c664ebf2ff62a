//! What tokens cost, and what each accelerator contributes.

use measure::finding::From;
use measure::said::{Said, said};
use measure::undefined::Undefined;

use super::{Found, Known, accelerators, given, input, short};
use crate::view::View;

/// Price of the deployment for a second, with its words.
fn price_per_second(view: &View<'_>) -> Known<(f64, Said)> {
    let price = given(view).price_per_hour.ok_or_else(|| {
        said!(
            "no price of an accelerator is given: --gpu-price-per-hour",
            "未给出加速器单价：请用 --gpu-price-per-hour 指定"
        )
    })?;
    let count = accelerators(view)?;
    let shown = short(price);
    let words = said!(
        "{count} accelerators at {shown} an hour each",
        "{count} 张加速器，每张每小时 {shown}",
        count = count,
        shown = shown,
    );
    Ok((f64::from(count) * price / 3_600.0, input(words, From::Given)))
}

fn output_rate(view: &View<'_>) -> Known<(f64, Said)> {
    let rate = view.summary.throughput.output_tok_s;
    let rate = rate.ok_or_else(|| Said::from(Undefined::NoTokenCount.texts()))?;
    let shown = short(rate);
    Ok((
        rate,
        input(said!("output {shown} tok/s", "输出 {shown} tok/s", shown = shown), From::Client),
    ))
}

fn per_million((cost, of): (f64, Said), (rate, at): (f64, Said)) -> Known<Found> {
    if rate <= 0.0 {
        return Err(said!("no token to charge it to", "没有可分摊的 token"));
    }
    Ok(Found { value: 1e6 * cost / rate, inputs: vec![of, at] })
}

/// 10⁶ × accelerators × price ÷ (3600 × output tok/s).
pub(super) fn per_million_tokens(view: &View<'_>) -> Known<Found> {
    per_million(price_per_second(view)?, output_rate(view)?)
}

/// The same over the tokens of requests that met every SLO.
pub(super) fn per_million_good_tokens(view: &View<'_>) -> Known<Found> {
    per_million(price_per_second(view)?, good_rate(view)?)
}

/// Output tokens a second of requests that met every SLO.
pub(super) fn good_rate(view: &View<'_>) -> Known<(f64, Said)> {
    let Some(goodput) = &view.summary.goodput else {
        return Err(Undefined::NoSlo.texts().into());
    };
    let rate = goodput.tok_s.ok_or_else(|| Said::from(Undefined::NoTime.texts()))?;
    let (shown, slo) = (short(rate), &goodput.slo);
    let words = said!(
        "goodput {shown} tok/s under {slo}",
        "goodput {shown} tok/s（{slo}）",
        shown = shown,
        slo = slo,
    );
    Ok((rate, input(words, From::Client)))
}

/// Output tok/s over all accelerators.
pub(super) fn per_accelerator(view: &View<'_>) -> Known<Found> {
    let (rate, of) = output_rate(view)?;
    let count = accelerators(view)?;
    let words = said!("{count} accelerators", "{count} 张加速器", count = count);
    Ok(Found { value: rate / f64::from(count), inputs: vec![of, input(words, From::Given)] })
}
