//! A server that is watched, for people: a line each time, what happens, and
//! what it came to at the end.

use measure::metric::Text;
use measure::said::Said;
use measure::watch::{Course, Event, Figure, Found, Glance, Group, Held, Kind};

use crate::document::{Document, Row};
use crate::lang::Lang;
use crate::number::{count, duration_ms, percent, short};
use crate::terminal::harmless;

const NOTHING: &str = "–";
const NO_METRICS: Text = Text { en: "no metrics: {why}", zh: "没有指标：{why}" };
const NOT_YET: Text = Text { en: "nothing was read yet", zh: "尚未读到" };
const TITLE: Text = Text { en: "goodput watch", zh: "goodput watch" };
const WATCHED: Text = Text {
    en: "{target}: watched for {length}; readings {taken}, without metrics {failed}, restarts {restarts}",
    zh: "{target}：观察 {length}，读到 {taken} 次，{failed} 次没有指标，重启 {restarts} 次",
};
const FIGURES: Text = Text { en: "Figures over the whole time", zh: "全程数据" };
const MEAN: Text = Text { en: "mean", zh: "均值" };
const MOST: Text = Text { en: "most", zh: "最大" };
const FINDINGS: Text = Text { en: "What was wrong", zh: "发现的问题" };
const NONE_FOUND: Text = Text {
    en: "Nothing was found by the signals alone.",
    zh: "仅凭服务端指标没有发现问题。",
};
const FOUND: Text = Text {
    en: "{from} s to {until} s: {title} ({rule})",
    zh: "{from} 秒至 {until} 秒：{title}（{rule}）",
};
const LEFT_OUT: Text = Text {
    en: "{count} more were found and are not listed.",
    zh: "另有 {count} 项未列出。",
};
const NOTES: Text = Text { en: "What to know about the figures", zh: "数据说明" };
const ABSENT: Text = Text { en: "What was not told", zh: "缺失的指标" };
const SINCE: Text =
    Text { en: "for {length}, {sure}: {says}", zh: "已持续 {length}，{sure}：{says}" };

/// A value with its unit.
pub fn value(figure: &Figure, value: f64) -> String {
    match figure.unit {
        "ratio" => percent(value),
        "ms" => duration_ms(value),
        "requests" if value.fract() == 0.0 && value >= 0.0 => count(value as u64),
        "requests" => short(value),
        unit => format!("{} {unit}", short(value)),
    }
}

/// The figures of one glance on one line, behind the time of day in words.
pub fn line(glance: &Glance, time: &str, lang: Lang) -> String {
    if glance.signals.is_none() {
        return harmless(&format!("{time}  {}", without(glance, lang)));
    }
    let mut parts = vec![time.to_owned()];
    for group in Group::ALL {
        let of_group = || glance.figures().filter(|(figure, _)| figure.group == *group);
        // Most servers have no exporter of accelerators beside them.
        if *group == Group::Accelerators && of_group().all(|(_, value)| value.is_err()) {
            continue;
        }
        let told = of_group().filter(|(_, told)| *group != Group::Accelerators || told.is_ok());
        let told = told.map(|(figure, told)| {
            let told = told.map_or_else(|_| NOTHING.to_owned(), |told| value(figure, told));
            format!("{} {told}", lang.pick(figure.short))
        });
        parts.push(told.collect::<Vec<_>>().join("  "));
    }
    harmless(&parts.join("  "))
}

/// Figures that are shown together, in words: a heading, and names with values.
pub struct Shown {
    /// The heading.
    pub title: &'static str,
    /// Names and values; of a figure that is not there, a dash.
    pub rows: Vec<(&'static str, String)>,
    /// Why there is none, where there is none at all.
    pub why: Option<String>,
}

/// The figures of one glance by group.
pub fn groups(glance: &Glance, lang: Lang) -> Vec<Shown> {
    let group = |group: &Group| {
        let all = || glance.figures().filter(|(figure, _)| figure.group == *group);
        let rows = all().map(|(figure, told)| {
            let told = told.map_or_else(|_| NOTHING.to_owned(), |told| value(figure, told));
            (lang.pick(figure.name), told)
        });
        let is_empty = all().all(|(_, told)| told.is_err());
        let why = all().find_map(|(_, told)| told.err()).filter(|_| is_empty);
        let why = why.map(|why| harmless(lang.sentence(&why)));
        Shown { title: lang.pick(group.text()), rows: rows.collect(), why }
    };
    Group::ALL.iter().map(group).collect()
}

/// Why there are no figures at all.
pub fn without(glance: &Glance, lang: Lang) -> String {
    let trouble = glance.places.iter().find_map(|place| place.trouble.as_deref());
    let why = trouble.unwrap_or(lang.pick(NOT_YET));
    harmless(&lang.fill(NO_METRICS, &[("why", &why)]))
}

/// Something that happened, on a line of its own.
pub fn event(event: &Event, time: &str, lang: Lang) -> String {
    let mark = match event.kind {
        Kind::Found => "+",
        Kind::Gone | Kind::Read | Kind::Back => "-",
        Kind::Unread | Kind::Restarted | Kind::Reset | Kind::Missing => "!",
    };
    harmless(&format!("{time}  {mark} {}", lang.sentence(&event.says)))
}

/// A finding with how long it has been there, and how sure it is.
pub fn held(held: &Held, glance: &Glance, lang: Lang) -> String {
    let finding = &held.finding;
    let length = duration_ms((glance.at - held.since).ms());
    let sure = lang.pick(finding.confidence.text());
    let says = lang.sentence(&finding.says);
    harmless(&lang.fill(SINCE, &[("length", &length), ("sure", &sure), ("says", &says)]))
}

/// What it came to, for the end.
pub fn closing(course: &Course, target: &str, lang: Lang) -> Document {
    let mut page = Document { lang, title: lang.pick(TITLE).to_owned(), ..Document::default() };
    let sum = |of: fn(&measure::watch::Place) -> u64| course.places.iter().map(of).sum::<u64>();
    page.headline = lang.fill(
        WATCHED,
        &[
            ("target", &target),
            ("length", &duration_ms(course.length.ms())),
            ("taken", &count(sum(|place| place.taken))),
            ("failed", &count(sum(|place| place.failed))),
            ("restarts", &count(sum(|place| place.restarts))),
        ],
    );
    // Where nothing was read, that nothing was found would be no news.
    if course.saw_anything() {
        figures(&mut page, course);
        findings(&mut page, course);
    }
    if !course.notes.is_empty() {
        page.section("notes", lang.pick(NOTES));
        course.notes.iter().for_each(|note| page.sentence(2, lang.sentence(note)));
    }
    absent(&mut page, course);
    page
}

fn figures(page: &mut Document, course: &Course) {
    let lang = page.lang;
    page.section("figures", lang.pick(FIGURES));
    let rows = measure::watch::FIGURES.iter().filter_map(|figure| {
        let usual = course.usual.iter().find(|usual| usual.id == figure.id)?;
        let name = lang.pick(figure.name).to_owned();
        let cells = vec![name, value(figure, usual.mean), value(figure, usual.most)];
        Some(Row { about: None, cells })
    });
    let rows: Vec<Row> = rows.collect();
    if !rows.is_empty() {
        let heads = ["", lang.pick(MEAN), lang.pick(MOST)].map(str::to_owned);
        page.table(heads.to_vec(), rows);
    }
}

fn findings(page: &mut Document, course: &Course) {
    let lang = page.lang;
    page.section("findings", lang.pick(FINDINGS));
    if course.found.is_empty() {
        page.sentence(2, lang.pick(NONE_FOUND));
    }
    for Found { rule, title, since, until } in &course.found {
        let s = |at: &measure::At| format!("{:.0}", at.ms() / 1e3);
        let title = lang.sentence(title);
        let values: [(&str, &dyn std::fmt::Display); 4] =
            [("from", &s(since)), ("until", &s(until)), ("title", &title), ("rule", rule)];
        page.sentence(2, &lang.fill(FOUND, &values));
    }
    if course.left_out > 0 {
        page.sentence(2, &lang.fill(LEFT_OUT, &[("count", &count(course.left_out))]));
    }
}

/// Figures that never had a value, by reason.
fn absent(page: &mut Document, course: &Course) {
    let lang = page.lang;
    let mut reasons: Vec<(&Said, Vec<&str>)> = Vec::new();
    for (id, why) in &course.absent {
        let Some(figure) = Figure::find(id) else { continue };
        let name = lang.pick(figure.name);
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    page.section("absent", lang.pick(ABSENT));
    for (why, names) in reasons {
        let between = lang.pick(crate::catalogue::report::BETWEEN_NAMES);
        page.sentence(2, &format!("{}: {}", names.join(between), lang.sentence(why)));
    }
}
