//! What was scraped as what is known of a server.

use measure::said::{Said, said};
use measure::signal::{Scraping, Seen, Signals};
use measure::window;
use measure::{Record, Span};

use super::{Collected, Source};
use crate::signals;

/// Failed readings of a source that are told one by one, by reason.
const MOST_TOLD: usize = 3;

impl Collected {
    /// What it says of the server in a run of these records. `model` is the one
    /// that was asked for.
    pub fn seen(&self, records: &[Record], model: Option<&str>) -> Seen {
        let silent = self.sources.iter().filter(|source| source.scrapes.is_empty());
        let missed = silent.filter(|source| source.is_of_interest());
        Seen { signals: self.signals(records, model), unread: missed.map(unread).collect() }
    }

    fn signals(&self, records: &[Record], model: Option<&str>) -> Option<Signals> {
        let window = window::served(records).filter(|_| !self.is_empty())?;
        let scrapes: Vec<signals::Scrape<'_>> = self
            .sources
            .iter()
            .flat_map(|source| {
                source.scrapes.iter().map(|scrape| signals::Scrape {
                    at: scrape.at,
                    source: &source.name,
                    exposition: &scrape.exposition,
                })
            })
            .collect();
        // Several models are shown by all of their names.
        let model = model.filter(|model| !model.contains(", "));
        let mut signals = signals::read(&scrapes, window.from, window.until, model);
        signals.scraping = self.scraping();
        signals.notes.extend(self.late(signals.scraping.latest));
        signals.notes.extend(self.sources.iter().flat_map(noticed));
        Some(signals)
    }

    /// What to say where readings began long after they were due.
    fn late(&self, latest: Span) -> Option<Said> {
        (latest.us() > self.interval.us() / 2).then(|| {
            said!(
                "Readings of metrics began up to {latest} late: this machine is too busy, or other \
                 readings took too long.",
                "读取指标最多晚了 {latest}：本机过忙，或其他读取耗时过长。",
                latest = latest,
            )
        })
    }

    fn scraping(&self) -> Scraping {
        let told = || self.sources.iter().filter(|source| !source.scrapes.is_empty());
        let scrapes = || told().flat_map(|source| &source.scrapes);
        let interesting = self.sources.iter().filter(|source| source.is_of_interest());
        let gaps = told().flat_map(|source| source.scrapes.windows(2));
        Scraping {
            sources: told().map(|source| source.name.clone()).collect(),
            taken: scrapes().count() as u32,
            failed: interesting.map(Source::failures).sum(),
            slowest: scrapes().map(|scrape| scrape.took).max().unwrap_or_default(),
            widest_gap: gaps.map(|pair| pair[1].at - pair[0].at).max().unwrap_or_default(),
            latest: scrapes().map(|scrape| scrape.late).max().unwrap_or_default(),
        }
    }
}

impl Source {
    /// The name of this machine's accelerators.
    pub const NVML: &'static str = "nvml";

    /// Nobody misses accelerators that a machine does not have.
    fn is_of_interest(&self) -> bool {
        !(self.is_found && self.name == Self::NVML && self.scrapes.is_empty())
    }

    fn failures(&self) -> u32 {
        self.failed.iter().map(|failed| failed.count).sum()
    }

    fn reasons(&self) -> String {
        let reasons = self.failed.iter().take(MOST_TOLD).map(|failed| failed.reason.as_str());
        reasons.collect::<Vec<_>>().join("; ")
    }
}

/// Why a source told nothing.
fn unread(source: &Source) -> Said {
    let (name, reasons) = (&source.name, source.reasons());
    said!("{name}: {reasons}", "{name}：{reasons}", name = name, reasons = reasons)
}

/// What to know of a source that told something.
fn noticed(source: &Source) -> Vec<Said> {
    let (name, told) = (&source.name, source.scrapes.len() as u32);
    let mut notes = Vec::new();
    if told > 0 && source.failures() > 0 {
        let (failed, reasons) = (source.failures(), source.reasons());
        notes.push(said!(
            "{failed} of {all} readings of {name} failed: {reasons}.",
            "对 {name} 的 {all} 次读取中有 {failed} 次失败：{reasons}。",
            failed = failed,
            all = failed + told + source.left_out,
            name = name,
            reasons = reasons,
        ));
    }
    if source.left_out > 0 {
        notes.push(said!(
            "{left_out} readings of {name} were left out evenly, to keep what is stored within its \
             bound: gauges are coarser.",
            "为控制存储量，均匀略去了 {name} 的 {left_out} 次读取：瞬时量的分辨率变粗。",
            left_out = source.left_out,
            name = name,
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use measure::{At, Planned};

    use super::*;
    use crate::prometheus;
    use crate::scrapes::Scrape;

    fn records() -> Vec<Record> {
        let mut record = Record::planned(0, At::ZERO, Planned::default());
        record.stamps.sent_at = Some(At::from_us(1_000_000));
        record.stamps.ended_at = Some(At::from_us(3_000_000));
        vec![record]
    }

    fn source(name: &str, tokens: &[u32]) -> Source {
        let scrape = |(at_s, tokens): (i64, &u32)| {
            Scrape {
            at: At::from_us(at_s * 1_000_000),
            took: Span::from_ms(at_s),
            late: Span::from_ms(200 * at_s),
            exposition: prometheus::read(
                format!("# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total{{model_name=\"m\",engine=\"0\"}} {tokens}\n")
                    .as_bytes(),
            )
            .unwrap(),
        }
        };
        let scrapes = (0..).zip(tokens).map(scrape).collect();
        Source { scrapes, ..Source::new(name) }
    }

    #[test]
    fn signals_are_of_the_window_and_failures_are_told_beside_them() {
        let mut engine = source("a", &[5, 10, 20, 30, 70]);
        engine.fail(At::ZERO, "no answer".to_owned());
        engine.left_out = 4;
        let mut absent = Source { is_found: true, ..Source::new("b") };
        absent.fail(At::ZERO, "answered 404".to_owned());
        let mut nvml = Source { is_found: true, ..Source::new(Source::NVML) };
        nvml.fail(At::ZERO, "no driver".to_owned());
        let collected = Collected {
            sources: vec![engine, absent, nvml.clone()],
            interval: Span::from_ms(1_000),
        };
        let seen = collected.seen(&records(), Some("m"));
        let signals = seen.signals.unwrap();
        assert_eq!(signals.increase(measure::signal::Signal::GeneratedTokens), Some(20.0));
        let unread: Vec<&str> = seen.unread.iter().map(|said| said.en.as_str()).collect();
        assert_eq!(unread, ["b: answered 404"]);
        let Scraping { taken, failed, slowest, widest_gap, latest, .. } = signals.scraping;
        assert_eq!((taken, failed), (5, 2));
        let ms = Span::from_ms;
        assert_eq!([slowest, widest_gap, latest], [ms(4), ms(1_000), ms(800)]);
        let notes = signals.notes.iter().map(|said| said.en.as_str()).collect::<String>();
        assert!(notes.contains("1 of 10 readings of a failed: no answer."), "{notes}");
        assert!(notes.contains("4 readings of a were left out"), "{notes}");
        assert!(notes.contains("began up to 800"), "{notes}");
        // Who asks for accelerators wants to know.
        nvml.is_found = false;
        let asked = Collected { sources: vec![nvml], ..Collected::default() };
        let seen = asked.seen(&records(), None);
        assert!(seen.signals.is_none());
        assert_eq!(seen.unread[0].en, "nvml: no driver");
    }

    #[test]
    fn a_run_that_sent_nothing_has_no_window() {
        let collected =
            Collected { sources: vec![source("a", &[1, 2])], interval: Span::from_ms(1_000) };
        assert!(collected.seen(&[], None).signals.is_none());
    }
}
