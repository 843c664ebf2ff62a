//! A report as content: sections of labelled values, sentences and tables. It
//! is written once; a terminal, a page and a Markdown file each show it in
//! their own form.

use measure::metric::Text;
use measure::validity::Verdict;

use crate::lang::Lang;

/// A report in one language.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Its language.
    pub lang: Lang,
    /// What it is, and whether an engine model answered.
    pub title: String,
    /// Whether the run can be trusted.
    pub verdict: Option<Verdict>,
    /// The run on one line; it begins with the verdict.
    pub headline: String,
    /// What the figures of the headline hold for: lengths, arrivals, state of
    /// the cache. A headline without them can be compared with nothing.
    pub conditions: String,
    /// What was measured.
    pub lines: Vec<String>,
    /// The sections in the order of analysis. Every one is in every report, so
    /// that a number always means the same section.
    pub sections: Vec<Section>,
    pub(crate) legends: Vec<Text>,
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// What links and charts call it.
    pub id: &'static str,
    /// Its heading, without its number.
    pub title: String,
    /// What stands in it.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A label and its value.
    Pair(Pair),
    /// Labels that are the user's own, aligned with each other.
    Pairs(Vec<Pair>),
    /// A sentence, so many columns in.
    Sentence(usize, String),
    /// A line that is not broken: an address, a row.
    Line(String),
    /// A command to paste.
    Command(String),
    /// A table of figures.
    Table(Table),
}

/// A label and its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    /// What it is.
    pub label: String,
    /// Its value in words.
    pub value: String,
    /// The metric behind it, by key.
    pub about: Option<&'static str>,
    /// The verdict that its first word is.
    pub mark: Option<Verdict>,
}

/// A table: names to the left, figures to the right.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Headings.
    pub columns: Vec<String>,
    /// Rows, as wide as the headings.
    pub rows: Vec<Row>,
    /// Columns of words and bars, which begin at the left as names do.
    pub left: Vec<usize>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The metric that it is of, by key.
    pub about: Option<&'static str>,
    /// Its cells.
    pub cells: Vec<String>,
}

/// A label that is the field's word in every language.
pub(crate) const fn symbol(word: &'static str) -> Text {
    Text { en: word, zh: word }
}

impl Document {
    /// Opens the next section.
    pub(crate) fn section(&mut self, id: &'static str, title: &str) {
        self.sections.push(Section { id, title: title.to_owned(), blocks: Vec::new() });
    }

    fn push(&mut self, block: Block) {
        if let Some(section) = self.sections.last_mut() {
            section.blocks.push(block);
        }
    }

    /// A label and its value.
    pub(crate) fn pair(&mut self, label: Text, value: &str) {
        let (label, value) = (self.lang.pick(label).to_owned(), value.to_owned());
        self.push(Block::Pair(Pair { label, value, ..Pair::default() }));
    }

    /// A label that is made, and its value.
    pub(crate) fn labelled(&mut self, label: &str, value: &str) {
        let (label, value) = (label.to_owned(), value.to_owned());
        self.push(Block::Pair(Pair { label, value, ..Pair::default() }));
    }

    /// More of the pair above.
    pub(crate) fn more(&mut self, value: &str) {
        self.push(Block::Pair(Pair { value: value.to_owned(), ..Pair::default() }));
    }

    /// The same of a metric.
    pub(crate) fn figure(&mut self, about: &'static str, label: Text, value: &str) {
        let (label, value) = (self.lang.pick(label).to_owned(), value.to_owned());
        self.push(Block::Pair(Pair { label, value, about: Some(about), mark: None }));
    }

    /// A label and a verdict.
    pub(crate) fn verdict(&mut self, label: Text, verdict: Verdict) {
        let (label, value) = (self.lang.pick(label).to_owned(), verdict.name().to_owned());
        self.push(Block::Pair(Pair { label, value, about: None, mark: Some(verdict) }));
    }

    /// Labels that are the user's own, and their values.
    pub(crate) fn pairs(&mut self, pairs: Vec<(String, String)>) {
        let pair = |(label, value)| Pair { label, value, ..Pair::default() };
        self.push(Block::Pairs(pairs.into_iter().map(pair).collect()));
    }

    /// A sentence, `indent` columns in.
    pub(crate) fn sentence(&mut self, indent: usize, sentence: &str) {
        self.push(Block::Sentence(indent, sentence.to_owned()));
    }

    /// A line that is not broken.
    pub(crate) fn line(&mut self, line: &str) {
        self.push(Block::Line(line.to_owned()));
    }

    /// What a mark means, said where it first stands.
    pub(crate) fn legend(&mut self, legend: Text) {
        if !self.legends.contains(&legend) {
            self.legends.push(legend);
            self.sentence(2, self.lang.pick(legend));
        }
    }

    /// A table of figures; one without rows is left out.
    pub(crate) fn table(&mut self, columns: Vec<String>, rows: Vec<Row>) {
        if !rows.is_empty() {
            self.push(Block::Table(Table { columns, rows, left: Vec::new() }));
        }
    }

    /// The same with columns of words or bars among the figures.
    pub(crate) fn table_of_words(&mut self, columns: Vec<String>, rows: Vec<Row>, left: &[usize]) {
        if !rows.is_empty() {
            self.push(Block::Table(Table { columns, rows, left: left.to_vec() }));
        }
    }

    /// A command to paste.
    pub(crate) fn command(&mut self, command: &str) {
        self.push(Block::Command(command.to_owned()));
    }
}
