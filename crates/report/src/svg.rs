//! A run as one small picture: how many requests had begun to be answered, and
//! had ended, within which time. A cumulative curve shows the median, the tail
//! and the share within an SLO at once, and needs no choice of bins.
//!
//! The curves are of all requests that were owed an answer: failures never
//! arrive, so that a server which drops its slowest requests does not reach the
//! top. The file holds no script, loads nothing and is readable on a light and
//! on a dark page.

use measure::metric::find;
use measure::picture::{Picture, Shape};
use measure::slo::Quantity;
use measure::summary::Summary;
use measure::validity::Verdict;

use crate::catalogue::report::{
    CURVES_ENDED, CURVES_SIMULATED, CURVES_TITLE, NO_CURVE_NO_REQUESTS, NO_CURVE_NONE_WELL,
    NO_CURVE_ONE, NO_CURVE_UNMEASURED,
};
use crate::html::escaped;
use crate::lang::Lang;
use crate::number::{count, duration_ms, percent, round_ms};

/// Size of the picture and of the margins around its plot.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 24.0;

/// Latencies that are drawn.
const CURVES: &[(&str, Quantity)] = &[("ttft_ms", Quantity::Ttft), ("e2el_ms", Quantity::E2el)];

/// Limits further away than this factor from every value are not drawn: the
/// curves would be a line at the edge.
const FARTHEST_LIMIT: f64 = 1e3;

/// A latency as it is drawn.
struct Curve<'a> {
    /// What it is called, and the class that colours it.
    symbol: &'static str,
    class: &'static str,
    shape: &'a Shape,
    /// The part of the requests that have a value.
    reached: f64,
    /// Its median and its tail in words.
    figures: String,
    limit_ms: Option<f64>,
}

impl Curve<'_> {
    /// Its legend; the limit stands here and not at its line, where it would
    /// lie on a curve.
    fn words(&self) -> String {
        let limit = |ms| format!(" · SLO ≤ {}", duration_ms(ms));
        format!("{} {}{}", self.symbol, self.figures, self.limit_ms.map_or(String::new(), limit))
    }
}

/// The picture as a file.
pub fn render(picture: &Picture, summary: &Summary, lang: Lang) -> String {
    let verdict = summary.validity.verdict;
    let class = match verdict {
        Verdict::Valid => "",
        Verdict::Degraded => "degraded",
        Verdict::Invalid => "invalid",
    };
    let simulated = if summary.facts.simulated {
        format!("{} · ", lang.pick(CURVES_SIMULATED))
    } else {
        String::new()
    };
    let body = match (without_curve(picture, summary, lang), curves(picture, summary)) {
        (Some(sentence), _) => text(WIDTH / 2.0, HEIGHT / 2.0, "middle", "", &sentence),
        (None, curves) => drawn(&curves),
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"title description\">\n\
         <title id=\"title\">{}</title>\n<desc id=\"description\">{}</desc>\n\
         <style>{STYLE}</style>\n{}{}{body}</svg>\n",
        escaped(lang.pick(CURVES_TITLE)),
        escaped(&describe(picture, summary, lang)),
        text(4.0, 15.0, "start", "", lang.pick(CURVES_TITLE)),
        text(WIDTH - 4.0, 15.0, "end", class, &format!("{simulated}{}", verdict.name())),
    )
}

/// Tones between light and dark, which both kinds of page carry: the reader's
/// system and the page that shows the file may disagree.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#59636e}\
path,line{fill:none;stroke:#59636e}\
.grid{stroke-opacity:.25}\
.curve{stroke-width:2;stroke-linejoin:round}\
.limit{stroke-width:1.5;stroke-dasharray:5 4}\
.ttft{stroke:#0969da}.e2el{stroke:#bc4c00}\
.degraded{fill:#9a6700}.invalid{fill:#d1242f}\
@media (prefers-color-scheme:dark){\
text{fill:#9198a1}path,line{stroke:#9198a1}\
.ttft{stroke:#4493f8}.e2el{stroke:#e0752d}\
.degraded{fill:#bb8009}.invalid{fill:#f0524b}}";

/// The picture in words, for who does not see it.
pub fn describe(picture: &Picture, summary: &Summary, lang: Lang) -> String {
    if let Some(sentence) = without_curve(picture, summary, lang) {
        return sentence;
    }
    let outcomes = &summary.outcomes;
    let mut words: Vec<String> = curves(picture, summary).iter().map(Curve::words).collect();
    words.push(
        lang.pick(CURVES_ENDED)
            .replace("{ok}", &count(outcomes.ok))
            .replace("{of}", &count(outcomes.total())),
    );
    words.join("; ")
}

/// Why there is nothing to draw: a sentence, and not an empty plot.
pub(crate) fn without_curve(picture: &Picture, summary: &Summary, lang: Lang) -> Option<String> {
    let outcomes = &summary.outcomes;
    let most = shapes(picture).map(|(shape, _)| shape.n).max().unwrap_or(0);
    if most > 1 {
        return None;
    }
    let sentence = match (outcomes.total(), outcomes.ok, most) {
        (0, ..) => NO_CURVE_NO_REQUESTS,
        (_, 0, _) => NO_CURVE_NONE_WELL,
        (_, _, 0) => NO_CURVE_UNMEASURED,
        _ => NO_CURVE_ONE,
    };
    let figures: Vec<String> = shapes(picture)
        .filter_map(|(shape, _)| {
            let value = f64::from(*shape.values.last()?);
            Some(format!("{} {}", find(shape.key)?.symbol, duration_ms(value)))
        })
        .collect();
    let sentence = lang.pick(sentence).replace("{figures}", &figures.join(", "));
    Some(sentence.replace("{of}", &count(outcomes.total())))
}

/// The shapes that are drawn, where they have a sample.
fn shapes(picture: &Picture) -> impl Iterator<Item = (&Shape, Quantity)> {
    CURVES.iter().filter_map(|(key, quantity)| {
        let shape = picture.shapes.iter().find(|shape| shape.key == *key)?;
        (!shape.values.is_empty()).then_some((shape, *quantity))
    })
}

fn curves<'a>(picture: &'a Picture, summary: &Summary) -> Vec<Curve<'a>> {
    let never = summary.outcomes.failed + summary.outcomes.empty;
    let terms = summary.goodput.as_ref().map_or(&[][..], |goodput| &goodput.slo.terms);
    let curve = |(shape, quantity): (&'a Shape, Quantity)| {
        let (_, figures) = summary.metrics.iter().find(|(key, _)| *key == shape.key)?;
        let figure = |name| figures.figure(name).map_or("n/a".to_owned(), duration_ms);
        let limit = terms.iter().find(|term| term.quantity == quantity);
        Some(Curve {
            symbol: find(shape.key)?.symbol,
            class: quantity.word(),
            shape,
            reached: shape.n as f64 / (shape.n + never) as f64,
            figures: format!("P50 {} · P99 {}", figure("p50"), figure("p99")),
            limit_ms: limit.map(|term| term.limit_ms),
        })
    };
    shapes(picture).filter_map(curve).collect()
}

/// A logarithmic axis of milliseconds.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Over all curves, and the limits that are not too far away.
    fn over(curves: &[Curve<'_>]) -> Self {
        let positive = |ms: &&f32| ms.is_finite() && **ms > 0.0;
        let values = curves.iter().flat_map(|curve| curve.shape.values.iter().filter(positive));
        let (mut low, mut high) = values
            .map(|ms| f64::from(*ms))
            .fold((f64::INFINITY, 0.0_f64), |(low, high), ms| (low.min(ms), high.max(ms)));
        if low > high {
            (low, high) = (1.0, 1.0);
        }
        let near = low / FARTHEST_LIMIT..=high * FARTHEST_LIMIT;
        for limit in curves.iter().filter_map(|curve| curve.limit_ms) {
            if near.contains(&limit) {
                (low, high) = (low.min(limit), high.max(limit));
            }
        }
        // A step of room on both sides, which also parts two equal ends.
        Self { low: low / 1.15, high: high * 1.15 }
    }

    fn x(&self, ms: f64) -> f64 {
        let share = (ms.clamp(self.low, self.high) / self.low).ln() / (self.high / self.low).ln();
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    /// Round values: 1, 2 and 5 of each decade, fewer where these are many.
    fn ticks(&self) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let ticks = |steps: &[f64]| -> Vec<f64> {
            let all = decades.clone().flat_map(|decade| {
                steps.iter().map(move |step| step * 10f64.powi(decade)).collect::<Vec<_>>()
            });
            all.filter(|ms| (self.low..=self.high).contains(ms)).collect()
        };
        let fine = ticks(&[1.0, 2.0, 5.0]);
        match fine.len() {
            // The values lie between two of them: their ends say where.
            0 | 1 => vec![self.low * 1.15, self.high / 1.15],
            2..=10 => fine,
            _ => ticks(&[1.0]),
        }
    }
}

fn y(share: f64) -> f64 {
    TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)
}

fn drawn(curves: &[Curve<'_>]) -> String {
    let axis = Axis::over(curves);
    let (left, right, bottom) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM);
    let mut body = String::new();
    for share in [0.0, 0.5, 0.9, 1.0] {
        let at = y(share);
        body.push_str(&line("grid", [left, at, right, at]));
        body.push_str(&text(left - 6.0, at + 4.0, "end", "", &percent(share)));
    }
    let ticks = axis.ticks();
    let plain = ticks.iter().all(|ms| is_round(*ms));
    for ms in ticks {
        let at = axis.x(ms);
        body.push_str(&line("grid", [at, y(1.0), at, bottom]));
        let words = if plain { round_ms(ms) } else { duration_ms(ms) };
        body.push_str(&text(at, bottom + 16.0, "middle", "", &words));
    }
    for (place, curve) in curves.iter().enumerate() {
        body.push_str(&path(curve, &axis));
        // Half the width carries the longest legend in a wide font.
        let at = 4.0 + place as f64 * (WIDTH - 4.0) / 2.0;
        body.push_str(&line(&format!("curve {}", curve.class), [at, 31.0, at + 14.0, 31.0]));
        body.push_str(&text(at + 18.0, 35.0, "start", "", &curve.words()));
        let limit = curve.limit_ms.filter(|ms| (axis.low..=axis.high).contains(ms));
        if let Some(at) = limit.map(|ms| axis.x(ms)) {
            body.push_str(&line(&format!("limit {}", curve.class), [at, y(1.0), at, bottom]));
        }
    }
    body
}

/// True of values that [`round_ms`] shows whole.
fn is_round(ms: f64) -> bool {
    let us = ms * 1e3;
    (us - us.round()).abs() < 1e-6 * us && us >= 1.0
}

/// The curve as a path, without points that nobody could tell apart.
fn path(curve: &Curve<'_>, axis: &Axis) -> String {
    let points = curve.shape.values.iter().zip(&curve.shape.shares).filter_map(|(ms, share)| {
        let share = f64::from(*share) * curve.reached;
        (ms.is_finite() && share.is_finite()).then(|| (axis.x(f64::from(*ms)), y(share)))
    });
    let mut data = String::new();
    let mut last = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    let mut left_out = None;
    for point in points {
        let far = (point.0 - last.0).abs() + (point.1 - last.1).abs() >= 0.5;
        if far {
            let command = if data.is_empty() { 'M' } else { 'L' };
            data.push_str(&format!("{command}{:.1} {:.1}", point.0, point.1));
            last = point;
        }
        left_out = (!far).then_some(point);
    }
    if let Some((x, y)) = left_out {
        data.push_str(&format!("L{x:.1} {y:.1}"));
    }
    format!("<path class=\"curve {}\" d=\"{data}\"/>\n", curve.class)
}

fn line(class: &str, [x1, y1, x2, y2]: [f64; 4]) -> String {
    format!(
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n"
    )
}

fn text(x: f64, y: f64, anchor: &str, class: &str, words: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{class}>{}</text>\n",
        escaped(words)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_a_few_round_values_or_its_ends() {
        let ticks = |low, high| Axis { low, high }.ticks();
        assert_eq!(ticks(90.0, 1_100.0), [100.0, 200.0, 500.0, 1_000.0]);
        assert_eq!(ticks(0.9, 110_000.0).len(), 6, "one of each decade");
        let ends = ticks(110.0, 150.0);
        assert!((ends[0] - 126.5).abs() < 1e-9 && (ends[1] - 130.4).abs() < 0.1, "{ends:?}");
    }
}
