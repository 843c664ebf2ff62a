//! What is seen of a server as one page of a terminal that is drawn again and
//! again.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;

use measure::metric;
use measure::signal::Signal;
use measure::watch::{Figure, Glance};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table, Wrap};
use ratatui::{DefaultTerminal, Frame};
use report::lang::Lang;
use report::watch::{Shown, groups, held, without};

use super::Told;

/// Events that are kept to be shown: more than a tall terminal has lines.
const MOST_EVENTS: usize = 100;

/// Columns of a value with its unit.
const VALUE_COLUMNS: u16 = 14;

/// Lines of a group of figures with its frame, and of a chart.
const GROUP_LINES: u16 = 7;
const CHART_LINES: u16 = 4;

/// Lines from which on there is room for charts.
const TALL: u16 = 34;

const HEAD: metric::Text = metric::Text {
    en: "{target} · {engine} · {time} · window {window} s · q ends",
    zh: "{target} · {engine} · {time} · 窗口 {window} 秒 · 按 q 结束",
};

const FINDINGS: metric::Text = metric::Text { en: "What is wrong", zh: "当前问题" };
const EVENTS: metric::Text =
    metric::Text { en: "What happened, newest first", zh: "事件（新的在前）" };
const NOTHING: metric::Text = metric::Text {
    en: "Nothing that the signals show by themselves.",
    zh: "仅凭服务端指标没有发现问题。",
};

/// A terminal in which a server is shown.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    page: Page,
}

/// What the page shows.
pub(super) struct Page {
    pub(super) target: String,
    pub(super) lang: Lang,
    /// False where the user wants no colours.
    pub(super) has_colors: bool,
    time: String,
    glance: Glance,
    /// What happened, newest first.
    events: VecDeque<String>,
}

impl Screen {
    /// Takes the terminal over; keys are told to the main thread.
    pub(super) fn open(page: Page, outlet: Sender<Told>) -> std::io::Result<Self> {
        let mut screen = Self { terminal: ratatui::try_init()?, page };
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || keys(&outlet))?;
        screen.draw()?;
        Ok(screen)
    }

    /// Shows a glance, read at this time of day, and what happened.
    pub(super) fn show(
        &mut self,
        glance: &Glance,
        time: &str,
        events: impl Iterator<Item = String>,
    ) -> std::io::Result<()> {
        self.page.take(glance, time, events);
        self.draw()
    }

    /// Draws the same again, for a terminal that has another size.
    pub(super) fn draw(&mut self) -> std::io::Result<()> {
        let Self { terminal, page } = self;
        terminal.draw(|frame| page.draw(frame))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Waits for keys until nobody wants to know any more.
fn keys(outlet: &Sender<Told>) {
    while let Ok(event) = event::read() {
        let told = match event {
            Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                KeyCode::Char('q') | KeyCode::Esc => Told::Stop,
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Told::Stop,
                _ => continue,
            },
            Event::Resize(..) => Told::Resized,
            _ => continue,
        };
        if outlet.send(told).is_err() {
            return;
        }
    }
}

impl Page {
    pub(super) fn new(target: String, lang: Lang, has_colors: bool) -> Self {
        Self {
            target,
            lang,
            has_colors,
            time: String::new(),
            glance: Glance::default(),
            events: VecDeque::new(),
        }
    }

    fn take(&mut self, glance: &Glance, time: &str, events: impl Iterator<Item = String>) {
        events.for_each(|event| self.events.push_front(event));
        self.events.truncate(MOST_EVENTS);
        self.glance.clone_from(glance);
        time.clone_into(&mut self.time);
    }

    fn style(&self, color: Color) -> Style {
        if self.has_colors { Style::new().fg(color) } else { Style::new().bold() }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let charts = if frame.area().height >= TALL { CHART_LINES } else { 0 };
        let [head, top, bottom, chart, findings, events] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(GROUP_LINES),
            Constraint::Length(GROUP_LINES),
            Constraint::Length(charts),
            Constraint::Fill(1),
            Constraint::Fill(1),
        ])
        .areas(frame.area());
        frame.render_widget(self.head(), head);
        if self.glance.signals.is_some() {
            self.figures(frame, [top, bottom]);
            self.charts(frame, chart);
        } else {
            let why = Paragraph::new(without(&self.glance, self.lang)).wrap(Wrap { trim: true });
            frame.render_widget(why.style(self.style(Color::Red)), top);
        }
        frame.render_widget(self.findings(), findings);
        let lines: Vec<Line<'_>> =
            self.events.iter().map(|event| Line::raw(event.as_str())).collect();
        let block = Block::bordered().title(self.words(EVENTS));
        frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }).block(block), events);
    }

    fn words(&self, text: metric::Text) -> &'static str {
        self.lang.pick(text)
    }

    fn head(&self) -> Line<'_> {
        let signals = self.glance.signals.as_ref();
        let window = signals.map_or(0.0, |signals| signals.length_s());
        let text = self.lang.fill(
            HEAD,
            &[
                ("target", &self.target),
                ("engine", &signals.and_then(|signals| signals.engine).unwrap_or("–")),
                ("time", &self.time),
                ("window", &format!("{window:.0}")),
            ],
        );
        Line::styled(text, Style::new().bold())
    }

    fn figures(&self, frame: &mut Frame<'_>, [top, bottom]: [Rect; 2]) {
        let halves = |area| Layout::horizontal([Constraint::Fill(1); 2]).areas::<2>(area);
        let areas = [halves(top), halves(bottom)].concat();
        for (group, area) in groups(&self.glance, self.lang).into_iter().zip(areas) {
            let Shown { title, rows, why } = group;
            let block = Block::bordered().title(title);
            if let Some(why) = why {
                let why = Paragraph::new(why).wrap(Wrap { trim: true }).block(block);
                frame.render_widget(why, area);
                continue;
            }
            let rows = rows
                .into_iter()
                .map(|(name, value)| Row::new([Text::raw(name), Text::raw(value).right_aligned()]));
            let widths = [Constraint::Fill(1), Constraint::Length(VALUE_COLUMNS)];
            frame.render_widget(Table::new(rows, widths).block(block), area);
        }
    }

    /// The window's course of what is made and of what waits.
    fn charts(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(signals) = &self.glance.signals else { return };
        let areas = Layout::horizontal([Constraint::Fill(1); 3]).areas::<3>(area);
        let charts = [
            (Signal::GeneratedTokens, "output_tok_s"),
            (Signal::QueueDepth, "waiting"),
            (Signal::KvUsage, "kv_usage"),
        ];
        for ((signal, id), area) in charts.into_iter().zip(areas) {
            let Some(figure) = Figure::find(id) else { continue };
            let series = signals.series.get(&signal).map_or(&[][..], Vec::as_slice);
            // Bars have whole numbers: a thousandth of a share is one.
            let bars: Vec<u64> = series.iter().map(|(_, v)| (v.max(0.0) * 1e3) as u64).collect();
            let skipped = bars.len().saturating_sub(usize::from(area.width.saturating_sub(2)));
            let block = Block::bordered().title(self.words(figure.name));
            let chart = Sparkline::default().data(&bars[skipped..]).block(block);
            frame.render_widget(chart.style(self.style(Color::Cyan)), area);
        }
    }

    fn findings(&self) -> Paragraph<'_> {
        let mut lines = Vec::new();
        for one in &self.glance.held {
            let title = self.lang.sentence(&one.finding.title);
            lines.push(Line::styled(title, self.style(Color::Yellow)));
            lines.push(Line::raw(held(one, &self.glance, self.lang)));
        }
        if lines.is_empty() {
            lines.push(Line::raw(self.words(NOTHING)));
        }
        let block = Block::bordered().title(self.words(FINDINGS));
        Paragraph::new(lines).wrap(Wrap { trim: true }).block(block)
    }
}

#[cfg(test)]
mod tests {
    use measure::signal::{Gauge, Reading, Signals};
    use measure::watch::Place;
    use measure::{At, Span};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    /// What a terminal of this size shows, line by line.
    fn drawn(page: &Page, columns: u16, lines: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
        terminal.draw(|frame| page.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
        cells.chunks(usize::from(columns)).map(|line| line.concat()).collect()
    }

    fn glance() -> Glance {
        let at = |second: i64| At::from_us(second * 1_000_000);
        let mut signals =
            Signals { engine: Some("vllm"), from: at(0), until: at(30), ..Signals::default() };
        let gauge = Gauge { last: 3.0, n: 30, ..Gauge::default() };
        signals.readings.insert(Signal::QueueDepth, Reading::Gauge(gauge));
        signals.series.insert(Signal::QueueDepth, (0..=30).map(|n| (at(n), 3.0)).collect());
        signals.readings.insert(Signal::GeneratedTokens, Reading::Counter(3_000.0));
        let place = Place { name: "http://h/metrics".to_owned(), taken: 30, ..Place::default() };
        Glance { at: at(30), signals: Some(signals), places: vec![place], ..Glance::default() }
    }

    fn page(lang: Lang, glance: &Glance) -> Page {
        let mut page = Page::new("http://h:8000".to_owned(), lang, true);
        let events = ["12:00:01  ! silent", "12:00:02  - back"].map(str::to_owned);
        page.take(glance, "12:00:30", events.into_iter());
        page
    }

    #[track_caller]
    fn has(lines: &[String], words: &[&str]) {
        let found = lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "{words:?} on no line of\n{}", lines.join("\n"));
    }

    #[test]
    fn figures_stand_beside_their_names_and_a_missing_one_is_a_dash() {
        let lines = drawn(&page(Lang::En, &glance()), 100, 40);
        has(&lines, &["http://h:8000", "vllm", "12:00:30", "window 30 s"]);
        has(&lines, &["output tokens", "100 tok/s"]);
        has(&lines, &["requests that wait", "3"]);
        has(&lines, &["KV cache in use", "–"]);
        has(&lines, &["Nothing that the signals show"]);
        let (back, silent) = (
            lines.iter().position(|line| line.contains("- back")),
            lines.iter().position(|line| line.contains("! silent")),
        );
        assert!(back.is_some() && back < silent, "the newest comes first");
        assert!(lines.iter().any(|line| line.contains('█')), "a chart of what waits");
    }

    #[test]
    fn a_small_terminal_and_a_silent_server_are_no_reason_to_fail() {
        for (columns, lines) in [(1, 1), (10, 3), (80, 24), (300, 100)] {
            drawn(&page(Lang::Zh, &glance()), columns, lines);
        }
        let trouble = Some("it answered HTML\u{1b}[2J".to_owned());
        let silent = Glance {
            at: At::ZERO + Span::from_ms(1),
            places: vec![Place { trouble, ..Place::default() }],
            ..Glance::default()
        };
        let lines = drawn(&page(Lang::En, &silent), 80, 24);
        has(&lines, &["no metrics: it answered HTML"]);
        assert!(!lines.concat().contains('\u{1b}'), "a server draws nothing");
    }
}
