//! Where results go: standard output, files, and the words of reports.

mod markdown;

use std::path::PathBuf;

use measure::Record;
use measure::accuracy::{self, Truth};
use measure::summary::Summary;
use measure::threshold::Threshold;
use report::document::Document;
use report::html::{Page, PageRun};
use report::lang::Lang;
use report::terminal::Style;
use serde_json::Value;
use store::Output;

use crate::exit::Exit;
use crate::failure::Failure;

/// Where the JSON object goes, opened ahead.
pub(crate) enum Json {
    Nowhere,
    Stdout,
    File(Output),
}

impl Json {
    pub(crate) fn open(path: Option<&str>) -> Result<Self, Failure> {
        Ok(match path {
            None => Self::Nowhere,
            Some("-") => Self::Stdout,
            Some(path) => Self::File(Output::open(path.as_ref())?),
        })
    }

    /// True when standard output belongs to the JSON object alone.
    pub(crate) const fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Shows text for people, where it does not mix with the object.
    pub(crate) fn show(&self, text: &str) {
        if self.is_stdout() {
            crate::say(text);
        } else {
            crate::print(text);
        }
    }

    pub(crate) fn write(self, object: &Value) -> Result<(), Failure> {
        let text = format!("{object:#}");
        match self {
            Self::Nowhere => {}
            Self::Stdout => crate::print(&text),
            Self::File(output) => output.write(format!("{text}\n").as_bytes())?,
        }
        Ok(())
    }
}

/// The files of a run that were asked for, by flag.
#[derive(Clone, Copy, Default)]
pub(crate) struct Asked<'a> {
    pub(crate) html: Option<&'a str>,
    pub(crate) markdown: Option<&'a str>,
    pub(crate) csv: Option<&'a str>,
}

/// Files for people, opened ahead: a folder that cannot be written to must not
/// cost a run.
pub(crate) struct Pages {
    html: Option<Output>,
    markdown: Option<markdown::Files>,
    csv: Option<Output>,
    step: Option<markdown::StepSummary>,
    lang: Lang,
}

impl Pages {
    pub(crate) fn open(asked: Asked<'_>, lang: Lang) -> Result<Self, Failure> {
        let open = |path: Option<&str>| path.map(|path| Output::open(path.as_ref())).transpose();
        Ok(Self {
            html: open(asked.html)?,
            markdown: asked.markdown.map(markdown::Files::open).transpose()?,
            csv: open(asked.csv)?,
            step: markdown::StepSummary::open(),
            lang,
        })
    }

    /// Writes what was asked for of one run; `notes` are what must be said of
    /// its files, `rows` those of its latency table.
    pub(crate) fn write_one(
        mut self,
        records: &[Record],
        summary: &Summary,
        notes: &[String],
        rows: Option<&[&'static str]>,
    ) -> Result<(), Failure> {
        if let Some(output) = self.csv.take() {
            let settings = summary.facts.settings;
            output.write(&wire::export::csv::file(records, &summary.definition, settings))?;
        }
        let (markdown, step) = (self.markdown.take(), self.step.take());
        if markdown.is_none() && step.is_none() && !self.are_wanted() {
            return Ok(());
        }
        // Its pictures are drawn once, whatever shows them.
        let run = PageRun::of(records, summary, notes);
        let shown = markdown::Shown::of(&run, rows, self.lang);
        if let Some(step) = step {
            step.write(&shown);
        }
        if let Some(files) = markdown {
            files.write(&shown)?;
        }
        self.write(&[run])
    }

    /// The files of several runs: a text of theirs has no chart beside it.
    pub(crate) fn open_beside(asked: Asked<'_>, lang: Lang) -> Result<Self, Failure> {
        let markdown = asked.markdown.map(markdown::Files::without_chart).transpose()?;
        let pages = Self::open(Asked { markdown: None, ..asked }, lang)?;
        Ok(Self { markdown, ..pages })
    }

    /// Writes what was asked for of several runs; `page` is what they say side by
    /// side.
    pub(crate) fn write_beside(mut self, runs: &[PageRun], page: &Document) -> Result<(), Failure> {
        if let Some(files) = self.markdown.take() {
            files.write_text(page)?;
        }
        self.write(runs)
    }

    /// Writes what can be of several runs.
    pub(crate) fn write(self, runs: &[PageRun]) -> Result<(), Failure> {
        if let Some(output) = self.html {
            let page = Page { runs, version: env!("CARGO_PKG_VERSION") };
            output.write(report::html::file(&page, self.lang).as_bytes())?;
        }
        Ok(())
    }

    /// Whether a page was asked for.
    pub(crate) const fn are_wanted(&self) -> bool {
        self.html.is_some()
    }
}

/// The folder of run directories.
pub(crate) fn runs_dir(given: Option<&str>) -> PathBuf {
    PathBuf::from(given.unwrap_or("runs"))
}

/// The report as text; colours only where a terminal reads it.
pub(crate) fn report(
    summary: &Summary,
    rows: Option<&[&'static str]>,
    lang: Lang,
    on_stderr: bool,
) -> String {
    text(&report::content::document(summary, rows, lang), on_stderr)
}

/// A document as text; colours only where a terminal reads it.
pub(crate) fn text(document: &Document, on_stderr: bool) -> String {
    use std::io::IsTerminal;
    let terminal =
        if on_stderr { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
    let color = terminal && std::env::var_os("NO_COLOR").is_none();
    report::terminal::render(document, Style { color })
}

/// Errors of the client against a truth log.
pub(crate) fn errors_against_truth(
    path: &str,
    records: &[Record],
    anchor_ns: i64,
    lang: Lang,
) -> Result<String, Failure> {
    let bytes = store::read_file(path.as_ref(), 4 << 30)?;
    let file = wire::truth::decode(&bytes)
        .map_err(|error| Failure::new(Exit::Usage, format!("--ground-truth {path}: {error}")))?;
    let truths = by_index(&file.truths);
    Ok(report::accuracy::text(&accuracy::accuracy(records, &truths, anchor_ns), lang))
}

/// Lines of truth by the index that a request's id ends with. Ids of other
/// clients are no matter.
pub(crate) fn by_index(truths: &[wire::truth::Truth]) -> Vec<Truth<'_>> {
    truths
        .iter()
        .filter_map(|truth| {
            let index = truth.id.rsplit_once('-')?.1.parse().ok()?;
            Some(Truth { index, arrival_ns: truth.arrival_ns, token_ns: &truth.token_ns })
        })
        .collect()
}

/// Applies `--fail-if` rules and says which were missed.
pub(crate) fn thresholds(rules: &[Threshold], summary: &Summary, lang: Lang) -> Exit {
    let mut exit = Exit::Ok;
    for rule in rules {
        if let Some(words) = report::threshold::missed(rule, rule.judge(summary), lang) {
            crate::say(&words);
            exit = Exit::Threshold;
        }
    }
    exit
}
