//! The forms of a report that are files: Markdown, and its chart as SVG and as
//! characters. `INSTA_UPDATE=always cargo test -p report --test files` accepts
//! new ones; read the difference.

#[allow(dead_code, reason = "one builder for the tests of two crates")]
mod runs;

use measure::picture::{Picture, picture};
use measure::slo::Slo;
use measure::summary::Summary;
use report::content::document;
use report::lang::Lang;
use report::markdown::{Chart, render};
use report::{bars, svg};

fn drawn(run: &runs::Run) -> (Picture, Summary) {
    let summary = run.summary();
    (picture(&run.records, &summary), summary)
}

fn markdown(run: &runs::Run) -> String {
    let (picture, summary) = drawn(run);
    let description = svg::describe(&picture, &summary, Lang::En);
    let chart = Chart::Image { name: "summary.svg", description: &description };
    render(&document(&summary, None, Lang::En), Some(chart))
}

#[test]
fn files_look_as_they_did() {
    for (name, run) in runs::all() {
        let (picture, summary) = drawn(&run);
        if ["healthy", "failing", "imported_chat", "single"].contains(&name) {
            let file = svg::render(&picture, &summary, Lang::En);
            insta::assert_snapshot!(format!("{name}_svg"), file);
        }
        insta::assert_snapshot!(format!("{name}_bars"), bars::render(&picture, &summary, Lang::En));
    }
    insta::assert_snapshot!("healthy_markdown", markdown(&runs::healthy()));
    insta::assert_snapshot!("failing_markdown", markdown(&runs::failing()));
}

#[test]
fn what_is_judged_by_stands_open_and_the_rest_is_folded_away() {
    for (name, run) in runs::all() {
        let page = markdown(&run);
        let headings: Vec<&str> = page.lines().filter(|line| line.starts_with('#')).collect();
        let numbers: Vec<&str> =
            headings.iter().skip(1).filter_map(|line| line.split(' ').nth(1)).collect();
        assert_eq!(numbers, ["5", "10", "2", "4", "3", "11"], "{name}: {headings:?}");
        let folded: Vec<&str> = page.lines().filter(|line| line.starts_with("<summary>")).collect();
        assert_eq!(folded.len(), 5, "{name}: {folded:?}");
        assert_eq!(page.matches("<details>").count(), page.matches("</details>").count());
        let verdict = run.summary().validity.verdict.name();
        assert!(page.contains(&format!("\n**{verdict}** · ")), "{name}: {page}");
    }
}

#[test]
fn tables_of_figures_are_whole_and_lean_to_the_right() {
    for (name, run) in runs::all() {
        let page = markdown(&run);
        let lines: Vec<&str> = page.lines().collect();
        let cells = |line: &str| line.matches('|').count();
        for (place, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("| :--"))
        {
            assert!(line.ends_with("--: |") && line.matches(":--").count() == 1, "{name}: {line}");
            let around = &lines[place - 1..];
            for row in around.iter().take_while(|row| row.starts_with('|')) {
                assert_eq!(cells(row), cells(line), "{name}: {row}");
            }
        }
    }
}

/// What is wrong with a text as XML; a reader that knows what a chart is made
/// of: elements, attributes in quotes, text, five entities.
fn fault(text: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text.trim();
    while let Some(start) = rest.find(['<', '&', '>']) {
        rest = &rest[start..];
        if let Some(entity) = rest.strip_prefix('&') {
            let known = ["amp;", "lt;", "gt;", "quot;", "apos;"];
            let Some(known) = known.iter().find(|known| entity.starts_with(**known)) else {
                return Some(format!("no entity: {:.20}", rest));
            };
            rest = &entity[known.len()..];
            continue;
        }
        let Some(end) = rest.find('>').filter(|_| rest.starts_with('<')) else {
            return Some(format!("a lone sign: {:.20}", rest));
        };
        let tag = &rest[1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Some(format!("{name} was not open"));
            }
        } else {
            let inside = tag.strip_suffix('/').unwrap_or(tag);
            let (name, attributes) = inside.split_once(' ').unwrap_or((inside, ""));
            let mut names = attributes.split('"').step_by(2).map(str::trim);
            let values = attributes.matches('"').count();
            if values % 2 == 1 || names.any(|name| !name.is_empty() && !name.ends_with('=')) {
                return Some(format!("attributes of {tag}"));
            }
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        if open.is_empty() && !rest.trim().is_empty() {
            return Some("more than one root".to_owned());
        }
    }
    (!open.is_empty()).then(|| format!("{open:?} stay open"))
}

#[test]
fn every_chart_is_whole_xml_and_every_number_in_it_is_one() {
    assert!(fault("<a b=\"1\"><c/>x &lt; y</a>").is_none());
    for broken in ["<a>", "<a></b>", "<a b=1></a>", "<a>&nbsp;</a>", "<a>1 > 0</a>", "<a/><b/>"] {
        assert!(fault(broken).is_some(), "{broken}");
    }
    for (name, run) in runs::all() {
        for slo in ["ttft:300 e2el:1000", "ttft:0 tpot:1", "ttft:1e300 e2el:1e-300", "ttft:0.001"] {
            let mut run = runs::Run { records: run.records.clone(), facts: run.facts.clone() };
            run.facts.slo = Some(Slo::parse_goodput([slo]).expect("an SLO"));
            let (picture, summary) = drawn(&run);
            for lang in [Lang::En, Lang::Zh] {
                let file = svg::render(&picture, &summary, lang);
                assert_eq!(fault(&file), None, "{name}: {file}");
                for word in ["NaN", "inf", "<script", "href", "url("] {
                    assert!(!file.contains(word), "{name} {slo}: {word} in {file}");
                }
                assert!(file.contains("<title") && file.contains("<desc"), "{name}");
                assert!(file.len() < 20_000, "{name}: {} bytes", file.len());
                assert!(inside(&file), "{name} {slo}: {file}");
            }
        }
    }
}

/// True where every point of every curve lies in the picture.
fn inside(file: &str) -> bool {
    let paths = file.split(" d=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let points = paths.flat_map(|path| path.split(['M', 'L']).filter(|point| !point.is_empty()));
    points.into_iter().all(|point| {
        let (x, y) = point.split_once(' ').expect("two numbers");
        let (x, y): (f64, f64) = (x.parse().expect("x"), y.parse().expect("y"));
        (0.0..=640.0).contains(&x) && (0.0..=200.0).contains(&y)
    })
}

#[test]
fn without_two_answers_there_is_a_sentence_and_no_curve() {
    for (run, says) in [
        (runs::nothing_sent(), "there are no requests"),
        (runs::unreachable(), "none of the 20 requests ended well"),
        (runs::single(), "The only one: TTFT 150 ms, E2EL 392 ms"),
    ] {
        let (picture, summary) = drawn(&run);
        let file = svg::render(&picture, &summary, Lang::En);
        assert!(file.contains(says) && !file.contains("<path"), "{file}");
        assert!(bars::render(&picture, &summary, Lang::En).contains(says));
    }
}

#[test]
fn a_curve_reaches_the_share_that_ended_well_and_a_limit_is_a_dashed_line() {
    let (picture, summary) = drawn(&runs::failing());
    let file = svg::render(&picture, &summary, Lang::En);
    let path = file.split("curve ttft\" d=\"").nth(1).expect("a curve");
    let last = path.split('"').next().and_then(|path| path.rsplit('L').next()).expect("points");
    let y: f64 = last.split(' ').nth(1).and_then(|y| y.parse().ok()).expect("a number");
    // 60 ended well, 32 failed and 3 were empty: 60 of 95, where 0 lies at 176
    // and all at 46.
    assert!((y - (176.0 - 130.0 * 60.0 / 95.0)).abs() < 0.1, "{y}");
    assert!(
        file.contains("class=\"limit ttft\"") && file.contains("SLO ≤ 300 ms</text>"),
        "{file}"
    );
    assert!(
        file.contains("class=\"limit e2el\"") && file.contains("SLO ≤ 1.00 s</text>"),
        "{file}"
    );
}

#[test]
fn bars_hold_every_sample_and_say_who_has_none() {
    let (picture, summary) = drawn(&runs::failing());
    let lines = bars::render(&picture, &summary, Lang::En);
    let counts = lines.lines().filter(|line| line.contains('┤')).map(|line| {
        let words: Vec<&str> = line.split("  ←").next().expect("a line").split(' ').collect();
        words.last().and_then(|n| n.parse::<u64>().ok()).expect("a count")
    });
    assert_eq!(counts.sum::<u64>(), 60);
    assert!(lines.contains("35 requests failed or were empty"), "{lines}");
    // The slowest took 259 ms: the limit lies beyond every bar.
    assert!(lines.contains("· SLO ≤ 300 ms\n") && !lines.contains('←'), "{lines}");
    let (picture, summary) = drawn(&runs::healthy());
    let lines = bars::render(&picture, &summary, Lang::En);
    assert!(lines.contains("294 ms ┤") && lines.matches("← SLO").count() == 1, "{lines}");
}
