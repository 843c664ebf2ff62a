//! A report in a terminal.

mod layout;

use measure::validity::Verdict;

use crate::document::Document;

pub(crate) use layout::harmless;

use layout::Page;

/// How the text may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Bold headings and coloured verdicts by ANSI codes.
    pub color: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The report as text.
pub fn render(document: &Document, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(&document.title);
    let code = document.verdict.map_or("", verdict_code);
    if !document.headline.is_empty() {
        page.painted_sentence(code, &document.headline);
    }
    page.conditions(&document.conditions);
    for line in &document.lines {
        page.line(line);
    }
    for (place, section) in document.sections.iter().enumerate() {
        page.section(place + 1, section);
    }
    page.into_text()
}

/// Text as a paragraph of lines that fit, for below a report.
pub fn paragraph(text: &str) -> String {
    let mut page = Page::new(Style::default());
    page.painted_sentence("", text);
    page.into_text()
}

const fn verdict_code(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Valid => "1;32",
        Verdict::Degraded => "1;33",
        Verdict::Invalid => "1;31",
    }
}
