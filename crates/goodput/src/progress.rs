//! Progress while a run goes on: a moving line on a terminal, plain lines
//! otherwise, always on standard error.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use measure::{At, Outcome, Record, Span};

/// Time between plain lines.
const PLAIN_EVERY: Span = Span::from_ms(5_000);

/// Requests between two messages of a model's run, and between two plain lines:
/// about a tenth of a second, and five.
const MESSAGE_EVERY: u64 = 10_000;
const LINE_EVERY: u64 = 500_000;

/// Shows how a run goes.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    planned: Option<u32>,
    ok: u64,
    failed: u64,
    ended: u64,
    last_line_at: At,
}

impl Progress {
    pub(crate) fn new(planned: Option<u32>, quiet: bool) -> Self {
        let live = !quiet && std::io::stderr().is_terminal();
        let bar = live.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, quiet, planned, ok: 0, failed: 0, ended: 0, last_line_at: At::ZERO }
    }

    pub(crate) fn ended(&mut self, record: &Record) {
        self.ended += 1;
        match record.outcome {
            Outcome::Ok => self.ok += 1,
            Outcome::Failed(_) | Outcome::Empty | Outcome::NotSent(_) => self.failed += 1,
            Outcome::Cancelled => {}
        }
        if let Some(bar) = &self.bar {
            bar.set_message(self.words());
        }
    }

    /// The same of a model that ends thousands in the time that it takes to
    /// write a line.
    pub(crate) fn counted(&mut self, record: &Record) {
        let bar = self.bar.take();
        self.ended(record);
        self.bar = bar;
        match &self.bar {
            Some(bar) if self.ended.is_multiple_of(MESSAGE_EVERY) => {
                bar.set_message(self.words());
            }
            None if !self.quiet && self.ended.is_multiple_of(LINE_EVERY) => {
                crate::say(&self.words());
            }
            _ => {}
        }
    }

    pub(crate) fn tick(&mut self, now: At) {
        if self.bar.is_none() && !self.quiet && now - self.last_line_at >= PLAIN_EVERY {
            self.last_line_at = now;
            crate::say(&format!("{:.0} s: {}", (now - At::ZERO).s(), self.words()));
        }
    }

    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn words(&self) -> String {
        let of = self.planned.map_or(String::new(), |planned| format!(" of {planned}"));
        let failed =
            if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        format!("{} ended{of}, {} ok{failed}", self.ended, self.ok)
    }
}
