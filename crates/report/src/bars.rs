//! The distribution of TTFT as bars of characters, for places that show text
//! and no picture: the page of a CI job takes no file beside it and no drawing
//! inside it. Lines read the same there, in a terminal and in a mail; a diagram
//! in a language for diagrams has no logarithmic axis and is source text
//! wherever nobody draws it.

use measure::picture::{Picture, Shape};
use measure::slo::Quantity;
use measure::summary::Summary;

use crate::catalogue::report::{BARS_NEVER, BARS_TITLE, NO_BARS};
use crate::lang::Lang;
use crate::number::{count, duration_ms};
use crate::svg::without_curve;

/// Bars, at most.
const BARS: usize = 12;

/// Characters of the longest bar.
const LONGEST: u64 = 40;

/// A character filled from the left by so many eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// The bars, or the sentence that says why there are none.
pub fn render(picture: &Picture, summary: &Summary, lang: Lang) -> String {
    let shape = picture.shapes.iter().find(|shape| shape.key == "ttft_ms" && shape.n > 1);
    let Some(shape) = shape else {
        return without_curve(picture, summary, lang).unwrap_or(lang.pick(NO_BARS).to_owned());
    };
    let terms = summary.goodput.as_ref().map_or(&[][..], |goodput| &goodput.slo.terms);
    let limit = terms.iter().find(|term| term.quantity == Quantity::Ttft).map(|term| term.limit_ms);
    let mut title = lang.pick(BARS_TITLE).replace("{ok}", &count(shape.n));
    if let Some(ms) = limit {
        title.push_str(&format!(" · SLO ≤ {}", duration_ms(ms)));
    }
    let mut lines = vec![title];
    lines.extend(bars(shape, limit));
    let never = summary.outcomes.failed + summary.outcomes.empty;
    if never > 0 {
        lines.push(lang.pick(BARS_NEVER).replace("{never}", &count(never)));
    }
    lines.join("\n")
}

/// One line a bar: where it begins, its length, its samples, and a mark where
/// the limit lies in it.
fn bars(shape: &Shape, limit: Option<f64>) -> Vec<String> {
    let together = shape.counts.len().div_ceil(BARS).max(1);
    let samples: Vec<u64> = shape
        .counts
        .chunks(together)
        .map(|bins| bins.iter().map(|bin| u64::from(*bin)).sum())
        .collect();
    let from: Vec<f64> = shape.edges.iter().step_by(together).map(|ms| f64::from(*ms)).collect();
    let most = samples.iter().copied().max().unwrap_or(0).max(1);
    let widths = |texts: &[String]| texts.iter().map(|t| t.chars().count()).max().unwrap_or(0);
    let starts: Vec<String> = from.iter().map(|ms| duration_ms(*ms)).collect();
    let counts: Vec<String> = samples.iter().map(|n| count(*n)).collect();
    let (start_width, count_width) = (widths(&starts), widths(&counts));
    let line = |place: usize| {
        let inside = |ms: f64| match from.get(place + 1) {
            Some(until) => ms < *until,
            None => shape.values.last().is_some_and(|most| ms <= f64::from(*most)),
        };
        let here = limit.is_some_and(|ms| ms >= from[place] && inside(ms));
        let limit = if here { "  ← SLO" } else { "" };
        let bar = bar(samples[place], most);
        let pad = (LONGEST as usize).saturating_sub(bar.chars().count());
        format!(
            "{:>start_width$} ┤{bar}{:pad$} {:>count_width$}{limit}",
            starts[place], "", counts[place]
        )
    };
    (0..samples.len()).map(line).collect()
}

/// A bar of eighths of a character; what is not nothing shows.
fn bar(samples: u64, most: u64) -> String {
    let eighths = (samples * LONGEST * 8 + most / 2) / most;
    in_eighths(if samples > 0 { eighths.max(1) } else { 0 })
}

/// Characters of a whole in a table.
const WHOLE: f64 = 24.0;

/// The bar of a share of a whole; of less than nothing there is none.
pub(crate) fn bar_of(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * WHOLE * 8.0).round() as u64;
    in_eighths(if share > 0.0 { eighths.max(1) } else { 0 })
}

fn in_eighths(eighths: u64) -> String {
    format!("{}{}", "█".repeat((eighths / 8) as usize), EIGHTHS[(eighths % 8) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_is_full_and_one_sample_in_a_million_shows() {
        assert_eq!(bar(1_000_000, 1_000_000), "█".repeat(40));
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(0, 7), "");
        assert_eq!(bar(1, 80), "▌");
        assert_eq!(bar_of(1.5), "█".repeat(24));
        assert_eq!((bar_of(0.5), bar_of(1e-6)), ("█".repeat(12), "▏".to_owned()));
        assert_eq!((bar_of(0.0), bar_of(-0.1)), (String::new(), String::new()));
    }
}
