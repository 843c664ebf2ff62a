//! The lines of a report in a terminal: columns, wrapping and colour.
//! Everything on it may come from a server or a file, so that nothing on it may
//! be a command to the terminal.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::Style;
use crate::columns::{columns, wrap};
use crate::document::{self, Block, Pair, Section};

/// Columns that a line takes at most, where its words allow it.
const COLUMNS: usize = 110;

/// Columns of a label, so that all values of a page stand under each other.
const LABEL: usize = 22;

/// Widest label that others are still aligned to.
const WIDEST_LABEL: usize = 44;

/// A page under construction.
pub(super) struct Page {
    text: String,
    style: Style,
}

impl Page {
    pub(super) const fn new(style: Style) -> Self {
        Self { text: String::new(), style }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The title of the page.
    pub(super) fn title(&mut self, title: &str) {
        self.painted(BOLD, title);
    }

    /// A section with its number.
    pub(super) fn section(&mut self, number: usize, section: &Section) {
        self.text.push('\n');
        self.painted(BOLD, &format!("{number} {}", section.title));
        for block in &section.blocks {
            match block {
                Block::Pair(pair) => self.pair(LABEL, pair),
                Block::Pairs(pairs) => self.pairs(pairs),
                Block::Sentence(indent, sentence) => self.sentence(*indent, sentence),
                Block::Line(line) => self.line(line),
                Block::Command(command) => self.line(&format!("  {command}")),
                Block::Table(table) => self.table(table),
            }
        }
    }

    fn painted(&mut self, code: &str, text: &str) {
        let text = self.style.paint(code, &harmless(text));
        self.push(&text);
    }

    /// One line, two columns in, that is not broken.
    pub(super) fn line(&mut self, line: &str) {
        self.push(&format!("  {}", harmless(line)));
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A sentence, broken between words, all lines `indent` columns in.
    fn sentence(&mut self, indent: usize, sentence: &str) {
        for line in wrap(&harmless(sentence), COLUMNS - indent) {
            self.push(&format!("{:indent$}{line}", ""));
        }
    }

    /// Labels and values, a step in and aligned with each other where a label
    /// is longer than usual: label values are the user's.
    fn pairs(&mut self, pairs: &[Pair]) {
        let indented: Vec<Pair> = pairs
            .iter()
            .map(|pair| Pair { label: format!("  {}", pair.label), ..pair.clone() })
            .collect();
        let widest = indented.iter().map(|pair| columns(&pair.label)).max().unwrap_or(0);
        for pair in &indented {
            self.pair(widest.clamp(LABEL, WIDEST_LABEL), pair);
        }
    }

    fn pair(&mut self, width: usize, pair: &Pair) {
        let label = harmless(&pair.label);
        let code = pair.mark.map_or("", super::verdict_code);
        let pad = width.saturating_sub(columns(&label));
        let indent = 2 + width + 1;
        for (position, line) in
            wrap(&harmless(&pair.value), COLUMNS - indent).into_iter().enumerate()
        {
            let line = if position == 0 { self.painted_word(code, &line) } else { line };
            let start =
                if position == 0 { format!("  {label}{:pad$} ", "") } else { " ".repeat(indent) };
            self.push(&format!("{start}{line}"));
        }
    }

    /// The first word of a line, painted.
    fn painted_word(&self, code: &str, line: &str) -> String {
        if code.is_empty() {
            return line.to_owned();
        }
        let end = line.find(' ').unwrap_or(line.len());
        format!("{}{}", self.style.paint(code, &line[..end]), &line[end..])
    }

    /// A sentence whose first word is painted, two columns in.
    pub(super) fn painted_sentence(&mut self, code: &str, sentence: &str) {
        for (position, line) in wrap(&harmless(sentence), COLUMNS - 2).into_iter().enumerate() {
            let line = if position == 0 { self.painted_word(code, &line) } else { line };
            self.push(&format!("  {line}"));
        }
    }

    /// What the headline holds for.
    pub(super) fn conditions(&mut self, conditions: &str) {
        if !conditions.is_empty() {
            self.sentence(2, conditions);
        }
    }

    /// A table of figures: names to the left, numbers to the right.
    fn table(&mut self, shown: &document::Table) {
        let mut table = Table::new();
        table.load_style(NOTHING);
        table.set_header(&shown.columns);
        for row in &shown.rows {
            table.add_row(&row.cells);
        }
        for index in (1..shown.columns.len()).filter(|index| !shown.left.contains(index)) {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for line in table.to_string().lines() {
            let line = harmless(line);
            self.push(&format!(" {line}"));
        }
    }
}

/// The code of headings.
const BOLD: &str = "1";

/// The text without characters that steer a terminal: control characters, and
/// those that turn the direction of the text or break its line.
pub(crate) fn harmless(text: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_stays() {
        let text = "\u{1b}[2J\r\u{9b}31m\u{202e}x\u{2028}\t\u{7f}";
        assert_eq!(harmless(text).trim(), "[2J  31m x");
        assert_eq!(harmless("1\u{202f}234 \u{2066}"), "1\u{202f}234  ");
    }
}
