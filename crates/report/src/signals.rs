//! What engines and exporters tell, and under which names: as text for a
//! terminal, and as docs/signals.md. Both are made from the tables themselves.

use measure::metric::Text;
use measure::signal::{Across, Kind, Signal, Teller, Telling};

use crate::explain::Entry;
use crate::lang::Lang;

/// The word under which all of it is explained.
pub const WORD: &str = "signals";

/// Every word that [`explain`] knows.
pub fn words(tellers: &[Teller]) -> Vec<&'static str> {
    let signals = Signal::ALL.iter().map(|signal| signal.entry().id);
    let mut words = vec![WORD];
    words.extend(signals.chain(tellers.iter().map(|teller| teller.key)));
    words
}

/// Explains a signal, what one engine tells, or, by [`WORD`], what all tell.
pub fn explain(word: &str, lang: Lang, tellers: &[Teller]) -> Option<String> {
    let word = word.trim().to_lowercase().replace([' ', '-'], "_");
    if word == WORD {
        let all: Vec<String> =
            tellers.iter().map(|teller| of_teller(teller, lang).render()).collect();
        return Some(all.join("\n"));
    }
    if let Some(signal) = Signal::find(&word) {
        return Some(of_signal(signal, lang, tellers).render());
    }
    let teller = tellers.iter().find(|teller| teller.key == word)?;
    Some(of_teller(teller, lang).render())
}

fn of_signal(signal: Signal, lang: Lang, tellers: &[Teller]) -> Entry {
    let entry = signal.entry();
    let what = lang.pick(Text { en: "signal", zh: "信号" });
    let mut fields = vec![
        (lang.pick(Text { en: "Unit", zh: "单位" }), entry.unit.to_owned()),
        (lang.pick(Text { en: "Kind", zh: "类型" }), lang.pick(kind(entry.kind)).to_owned()),
        (
            lang.pick(Text { en: "Engines", zh: "多引擎" }),
            lang.pick(across(entry.across)).to_owned(),
        ),
    ];
    for teller in tellers {
        let telling = teller.telling.iter().find(|telling| telling.signal == signal);
        fields.extend(telling.map(|telling| (teller.name, in_words(telling, lang))));
    }
    Entry {
        heading: format!("{} — {what}", entry.id),
        opening: lang.pick(entry.name).to_owned(),
        fields,
    }
}

fn of_teller(teller: &Teller, lang: Lang) -> Entry {
    let what = lang.pick(Text { en: "what it tells", zh: "可得的信号" });
    let opening = if teller.exposed_by.is_empty() {
        lang.pick(Text { en: "Told by itself.", zh: "默认开启。" }).to_owned()
    } else {
        let by = lang.pick(Text { en: "Exposed by", zh: "开启方式：" });
        format!("{by} {}", teller.exposed_by)
    };
    Entry {
        heading: format!("{} {} — {what}", teller.name, teller.version),
        opening,
        fields: teller
            .telling
            .iter()
            .map(|telling| (telling.signal.entry().id, in_words(telling, lang)))
            .collect(),
    }
}

/// How a signal is told, with the setting that exposes it and what misleads.
fn in_words(telling: &Telling, lang: Lang) -> String {
    let or = lang.pick(Text { en: "; else ", zh: "；否则 " });
    let mut text = telling.ways.join(or);
    if !telling.exposed_by.is_empty() {
        let by = lang.pick(Text { en: "exposed by", zh: "开启方式" });
        text.push_str(&format!(" ({by} {})", telling.exposed_by));
    }
    if let Some(trap) = telling.trap {
        text.push_str(&format!(". {}", lang.pick(trap)));
    }
    text
}

const fn kind(kind: Kind) -> Text {
    match kind {
        Kind::Gauge => Text {
            en: "a level, averaged by how long it stood",
            zh: "水位值，按持续时间加权平均",
        },
        Kind::Counter => Text { en: "a count; its increase", zh: "计数，取增量" },
        Kind::Histogram => Text {
            en: "a distribution; the mean of what was added",
            zh: "分布，取增量的均值",
        },
        Kind::Fact => Text { en: "does not change", zh: "不变的量" },
    }
}

const fn across(across: Across) -> Text {
    match across {
        Across::Sum => Text { en: "added", zh: "相加" },
        Across::Mean => Text {
            en: "averaged, with the extremes of each",
            zh: "取均值，并保留各自极值",
        },
        Across::Max => Text { en: "the largest", zh: "取最大" },
    }
}

const HEAD: &str = "\
<!-- Made from the tables of wire::signals; do not edit. UPDATE=1 cargo test -p report --test signals_page -->

# Signals

What can be seen inside a server, by one set of names, and what engines and exporters call it. \
`goodput explain signals` shows the same, `goodput explain queue_depth` one signal and \
`goodput explain vllm` one engine, in English and Chinese.

- **Counters and distributions** are what was added between the last scrape at or before the window \
and the first at or after it, by series. One that fell began anew: what it has counted since is \
added, and the result says so. A series that appears while others of its engine were there began \
at 0.
- **Gauges** are averaged by how long each level stood in the window.
- **Several engines, ranks and addresses** are each read alone, then added, averaged or the largest \
taken, as the table says. Tensor- and pipeline-parallel ranks tell the same and are not added.
- **Several names**: the first that is there is read, never two of them.
- **A counter of the engine's own estimates that never left 0** is switched off, not zero.
- **What is missing** has its reason, with the setting that would expose it.
- **Quantiles of buckets** are interpolated only where three or more buckets hold something, and never \
in the first one: the mean of Δsum ÷ Δcount is exact.
- **Another model's metrics**: where an address serves several models, series of the one asked for \
are read; where it serves one of another name, the result says so.

Lines end at LF or CRLF. Of a sample told twice one is kept: of counters the larger, else the last. \
`_created` and exemplars are left out. A body over 64 MiB, a page of HTML, JSON or an empty body is no \
exposition; the run goes on without, and says which it was.

## The list
";

/// docs/signals.md, whole.
pub fn page(tellers: &[Teller]) -> String {
    let mut page = format!("{HEAD}\n| Signal | Unit | Several engines | What it is | Told by |\n");
    page.push_str("|---|---|---|---|---|\n");
    for signal in Signal::ALL {
        let entry = signal.entry();
        let tells = |teller: &&Teller| teller.telling.iter().any(|one| one.signal == *signal);
        let by: Vec<&str> = tellers.iter().filter(tells).map(|teller| teller.key).collect();
        let across = across(entry.across).en;
        let row = [entry.id, entry.unit, across, entry.name.en, &by.join(", ")].join(" | ");
        page.push_str(&format!("| {row} |\n"));
    }
    for teller in tellers {
        page.push_str(&section(teller));
    }
    page
}

fn section(teller: &Teller) -> String {
    let mut section =
        format!("\n## {}\n\n`{}`, names of version {}.", teller.name, teller.key, teller.version);
    if !teller.exposed_by.is_empty() {
        section.push_str(&format!(" Exposed by `{}`.", teller.exposed_by));
    }
    section.push_str("\n\n| Signal | Told by | Exposed by | What misleads |\n|---|---|---|---|\n");
    for telling in &teller.telling {
        let ways: Vec<String> =
            telling.ways.iter().map(|way| format!("`{}`", way.replace('|', "\\|"))).collect();
        let cells = [
            telling.signal.entry().id.to_owned(),
            ways.join(", else "),
            telling.exposed_by.to_owned(),
            telling.trap.map_or(String::new(), |trap| trap.en.to_owned()),
        ];
        section.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    section
}
