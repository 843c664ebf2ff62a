//! The Markdown of a run: a file with its chart beside it, and the page of a CI
//! job.

use std::path::Path;

use report::document::Document;
use report::html::PageRun;
use report::lang::Lang;
use report::markdown::{Chart, render, render_within};
use store::{Appended, Output, StoreError};

use crate::failure::Failure;
use crate::flags::UsageError;

/// The variable in which GitHub names the file of a job's page.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// GitHub takes at most this of a step, and nothing at all of one that is
/// larger.
const STEP_SUMMARY_BYTES: u64 = 1 << 20;

/// A run as Markdown shows it.
pub(super) struct Shown<'a> {
    run: &'a PageRun,
    document: Document,
    lang: Lang,
}

impl<'a> Shown<'a> {
    pub(super) fn of(run: &'a PageRun, rows: Option<&[&'static str]>, lang: Lang) -> Self {
        let document = report::content::document(&run.summary, rows, lang);
        Self { run, document, lang }
    }

    /// The chart where no file can stand beside the text.
    fn lines(&self) -> String {
        report::bars::render(&self.run.picture, &self.run.summary, self.lang)
    }
}

/// What `--markdown` writes.
pub(super) struct Files {
    text: Output,
    /// The chart and its name, where a file can lie beside the text.
    chart: Option<(Output, String)>,
}

impl Files {
    pub(super) fn open(path: &str) -> Result<Self, Failure> {
        let chart = Path::new(path).with_extension("svg");
        if chart == Path::new(path) {
            let rule = format!("{path:?} is where the chart goes; write a file that ends in .md");
            return Err(UsageError::new("--markdown", rule).into());
        }
        let text = Output::open(path.as_ref())?;
        let name = chart.file_name().map(|name| name.to_string_lossy().into_owned());
        let chart = match name.filter(|_| text.is_file()) {
            Some(name) => Some((Output::open(&chart)?, name)),
            None => None,
        };
        Ok(Self { text, chart })
    }

    /// The text alone.
    pub(super) fn without_chart(path: &str) -> Result<Self, Failure> {
        Ok(Self { text: Output::open(path.as_ref())?, chart: None })
    }

    /// Writes a document without a chart.
    pub(super) fn write_text(self, document: &Document) -> Result<(), Failure> {
        Ok(self.text.write(render(document, None).as_bytes())?)
    }

    pub(super) fn write(self, shown: &Shown<'_>) -> Result<(), Failure> {
        let Shown { run: PageRun { summary, picture, .. }, document, lang } = shown;
        let text = match self.chart {
            Some((output, name)) => {
                output.write(report::svg::render(picture, summary, *lang).as_bytes())?;
                let description = report::svg::describe(picture, summary, *lang);
                let chart = Chart::Image { name: &name, description: &description };
                render(document, Some(chart))
            }
            None => render(document, Some(Chart::Lines(&shown.lines()))),
        };
        Ok(self.text.write(text.as_bytes())?)
    }
}

/// The page of a CI job. It is a courtesy: what goes wrong with it is told and
/// changes nothing else.
pub(super) struct StepSummary(Appended);

impl StepSummary {
    /// Opens the file that the environment names, if it names one.
    pub(super) fn open() -> Option<Self> {
        let path = std::env::var_os(STEP_SUMMARY).filter(|path| !path.is_empty())?;
        match Appended::open(Path::new(&path)) {
            Ok(file) => Some(Self(file)),
            Err(error) => {
                told(&error);
                None
            }
        }
    }

    pub(super) fn write(self, shown: &Shown<'_>) {
        if let Err(error) = self.append(shown) {
            told(&error);
        }
    }

    fn append(self, shown: &Shown<'_>) -> Result<(), StoreError> {
        // An empty line parts it from what another step of the script wrote.
        let room = STEP_SUMMARY_BYTES.saturating_sub(self.0.bytes()? + 1);
        let lines = shown.lines();
        let chart = Some(Chart::Lines(&lines));
        match render_within(&shown.document, chart, room) {
            Some(text) => self.0.write(format!("\n{text}").as_bytes()),
            None => {
                crate::say(&format!(
                    "{STEP_SUMMARY} was not added to: it would hold more than \
                     {STEP_SUMMARY_BYTES} bytes, the most that is taken of one step"
                ));
                Ok(())
            }
        }
    }
}

fn told(error: &StoreError) {
    crate::say(&format!("{STEP_SUMMARY} was not added to: {error}"));
}
