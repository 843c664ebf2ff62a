//! Errors of the client against a server's own log, below a report.

use measure::accuracy::Accuracy;
use measure::statistics::Distribution;

use crate::catalogue::report as words;
use crate::columns::columns;
use crate::lang::Lang;
use crate::number::short;

/// Columns of a label.
const LABEL: usize = 10;

/// The errors as text, after an empty line.
pub fn text(errors: &Accuracy, lang: Lang) -> String {
    let title = lang
        .fill(words::TRUTH_TITLE, &[("joined", &errors.joined), ("unmatched", &errors.unmatched)]);
    let rows = [
        ("TTFT", &errors.ttft_us),
        (lang.pick(words::GAPS), &errors.gap_us),
        (lang.pick(words::TRUTH_ABSOLUTE), &errors.absolute_us),
    ];
    let rows = rows.map(|(label, errors)| {
        let pad = LABEL.saturating_sub(columns(label));
        format!("  {label}{:pad$} {}\n", "", figures(errors, lang))
    });
    format!("\n{title}\n{}", rows.concat())
}

fn figures(errors: &Distribution, lang: Lang) -> String {
    let figure = |name| errors.figure(name).map_or("n/a".to_owned(), short);
    let [p50, p99, max] = ["p50", "p99", "max"].map(figure);
    let figures = lang.fill(words::P50_P99_MAX, &[("p50", &p50), ("p99", &p99), ("max", &max)]);
    lang.fill(
        words::TRUTH_FIGURES,
        &[("n", &errors.n), ("mean", &figure("mean")), ("figures", &figures)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_align_in_both_languages() {
        let errors = Accuracy {
            joined: 0,
            unmatched: 0,
            ttft_us: Distribution::default(),
            gap_us: Distribution::default(),
            absolute_us: Distribution::default(),
        };
        assert_eq!(
            text(&errors, Lang::En),
            "\nError of the client against ground truth (µs), 0 requests joined, 0 not\n  \
             TTFT       n 0, mean n/a, P50 n/a, P99 n/a, max n/a\n  \
             gaps       n 0, mean n/a, P50 n/a, P99 n/a, max n/a\n  \
             absolute   n 0, mean n/a, P50 n/a, P99 n/a, max n/a\n"
        );
        assert_eq!(
            text(&errors, Lang::Zh),
            "\n压测端相对真值（ground truth）的误差（µs）：匹配 0 个请求，未匹配 0 个\n  \
             TTFT       n 0，均值 n/a，P50 n/a，P99 n/a，最大 n/a\n  \
             间隔       n 0，均值 n/a，P50 n/a，P99 n/a，最大 n/a\n  \
             绝对时刻   n 0，均值 n/a，P50 n/a，P99 n/a，最大 n/a\n"
        );
    }
}
