//! Tables of figures, as Markdown, and the medians in them.

use measure::quantile;

/// A table with its heading.
pub(crate) struct Table {
    /// What it shows.
    pub(crate) title: String,
    /// Columns.
    pub(crate) head: Vec<&'static str>,
    /// Rows, each as long as the head.
    pub(crate) rows: Vec<Vec<String>>,
    /// Sentences below it.
    pub(crate) notes: Vec<String>,
}

impl Table {
    pub(crate) fn new(title: impl Into<String>, head: &[&'static str]) -> Self {
        Self { title: title.into(), head: head.to_vec(), rows: Vec::new(), notes: Vec::new() }
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("### {}\n\n", self.title);
        text.push_str(&line(self.head.clone()));
        text.push_str(&format!("|{}\n", "---|".repeat(self.head.len())));
        for row in &self.rows {
            text.push_str(&line(row.iter().map(String::as_str).collect()));
        }
        for note in &self.notes {
            text.push_str(&format!("\n{note}\n"));
        }
        text
    }
}

/// Median of samples in any order.
pub(crate) fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|x| x.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    quantile::linear(&sorted, 0.5)
}

/// Three significant digits, or a dash.
pub(crate) fn short(value: Option<f64>) -> String {
    let Some(value) = value else { return "–".to_owned() };
    let digits = match value.abs() {
        x if x >= 100.0 => 0,
        x if x >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// Median with the extremes, of one figure over repetitions.
pub(crate) fn spread(samples: &[f64]) -> String {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|x| x.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    match (sorted.first(), sorted.last()) {
        (Some(low), Some(high)) if sorted.len() > 1 => {
            format!("{} ({}–{})", short(median(&sorted)), short(Some(*low)), short(Some(*high)))
        }
        _ => short(median(&sorted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_medians_are_medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(spread(&[1.0, 250.0, 2.5]), "2.50 (1.00–250)");
        assert_eq!(spread(&[]), "–");
        let mut table = Table::new("T", &["a", "b"]);
        table.rows.push(vec!["1".into(), "2".into()]);
        assert_eq!(table.markdown(), "### T\n\n| a | b |\n|---|---|\n| 1 | 2 |\n");
    }
}
