//! A report as GitHub-flavoured Markdown, for a pull request, a wiki or the
//! page of a CI job. What a reader judges by stands open, in the order in which
//! it is asked for; the other sections are folded away.

use crate::catalogue::report::SECTIONS_CUT;
use crate::document::{Block, Document, Pair, Section, Table};
use crate::html;
use crate::terminal::harmless;

/// Sections that stand open, in this order. The numbers before their headings
/// are those of every other form, because texts refer to them.
const OPEN: &[&str] = &["phases", "goodput", "offered", "workload", "failures", "caveats"];

/// A picture of the run.
#[derive(Clone, Copy, Debug)]
pub enum Chart<'a> {
    /// A file in the same folder, by its name.
    Image {
        /// The name of the file.
        name: &'a str,
        /// What it shows, for who does not see it.
        description: &'a str,
    },
    /// Lines of characters, where no file can be shown: the page of a CI job
    /// takes neither files nor markup of pictures.
    Lines(&'a str),
}

/// The whole report.
pub fn render(document: &Document, chart: Option<Chart<'_>>) -> String {
    let mut page = head(document, chart);
    let numbered = || document.sections.iter().enumerate();
    for id in OPEN {
        for (place, section) in numbered().filter(|(_, section)| section.id == *id) {
            page.paragraph(&format!("### {} {}", place + 1, escaped(&section.title)));
            page.blocks(section);
        }
    }
    for (place, section) in numbered().filter(|(_, section)| !OPEN.contains(&section.id)) {
        let title = html::escaped(&harmless(&section.title));
        page.paragraph(&format!("<details>\n<summary>{} {title}</summary>", place + 1));
        page.blocks(section);
        page.paragraph("</details>");
    }
    page.text
}

/// The report in at most so many bytes: whole, else its head with a sentence
/// that says so, else nothing.
pub fn render_within(
    document: &Document,
    chart: Option<Chart<'_>>,
    most_bytes: u64,
) -> Option<String> {
    let fits = |text: &String| text.len() as u64 <= most_bytes;
    let cut = || {
        let mut page = head(document, chart);
        page.paragraph(document.lang.pick(SECTIONS_CUT));
        page.text
    };
    let whole = Some(render(document, chart)).filter(fits);
    whole.or_else(|| Some(cut()).filter(fits))
}

fn head(document: &Document, chart: Option<Chart<'_>>) -> Page {
    let mut page = Page { text: format!("## {}\n", escaped(&document.title)), in_list: false };
    let verdict = document.verdict.map_or("", |verdict| verdict.name());
    page.paragraph(&match document.headline.strip_prefix(verdict) {
        Some(rest) if !verdict.is_empty() => format!("**{verdict}**{}", escaped_inside(rest)),
        _ => escaped(&document.headline),
    });
    if !document.conditions.is_empty() {
        page.paragraph(&escaped(&document.conditions));
    }
    for line in &document.lines {
        page.item(0, &code(line));
    }
    match chart {
        Some(Chart::Image { name, description }) => {
            page.paragraph(&format!("![{}]({})", escaped(description), address(name)));
        }
        Some(Chart::Lines(lines)) => {
            // A line of the text that could end the block is moved aside.
            let lines: Vec<String> = lines.lines().map(harmless).collect();
            page.paragraph(&format!("```text\n{}\n```", lines.join("\n").replace("```", "'''")));
        }
        None => {}
    }
    page
}

/// A page under construction.
struct Page {
    text: String,
    in_list: bool,
}

impl Page {
    fn paragraph(&mut self, markup: &str) {
        self.text.push_str(&format!("\n{markup}\n"));
        self.in_list = false;
    }

    /// A point of a list, so many steps in.
    fn item(&mut self, depth: usize, markup: &str) {
        if !self.in_list {
            self.text.push('\n');
        }
        // A list cannot begin a step in.
        let indent = if self.in_list { 2 * depth } else { 0 };
        self.text.push_str(&format!("{:indent$}- {markup}\n", ""));
        self.in_list = true;
    }

    fn pair(&mut self, depth: usize, pair: &Pair) {
        let (label, value) = (escaped(&pair.label), escaped(&pair.value));
        let value = if pair.mark.is_some() { format!("**{value}**") } else { value };
        self.item(depth, &if label.is_empty() { value } else { format!("{label}: {value}") });
    }

    fn blocks(&mut self, section: &Section) {
        for block in &section.blocks {
            match block {
                Block::Pair(pair) => self.pair(0, pair),
                Block::Pairs(pairs) => pairs.iter().for_each(|pair| self.pair(1, pair)),
                Block::Sentence(indent, text) => {
                    self.item(usize::from(*indent > 2), &escaped(text))
                }
                Block::Line(text) => self.paragraph(&escaped(text)),
                Block::Command(command) => self.item(0, &code(command)),
                Block::Table(table) => self.table(table),
            }
        }
    }

    /// A table: names to the left, figures to the right.
    fn table(&mut self, table: &Table) {
        let row = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
            format!("| {} |", cells.join(" | "))
        };
        let sides = table.columns.iter().enumerate();
        let sides: Vec<&str> = sides
            .map(|(place, _)| if place == 0 || table.left.contains(&place) { ":--" } else { "--:" })
            .collect();
        let mut lines = vec![row(&table.columns), format!("| {} |", sides.join(" | "))];
        lines.extend(table.rows.iter().map(|line| row(&line.cells)));
        self.paragraph(&lines.join("\n"));
    }
}

/// What keeps two characters from being read together, and takes no room.
const APART: &str = "&#8203;";

/// Text that is nothing but text, at the beginning of a block.
fn escaped(text: &str) -> String {
    let text = escaped_inside(harmless(text).trim());
    // Marks that only a beginning gives a meaning: lists, rules, underlines.
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text.as_bytes().get(digits) {
        Some(b'.' | b')') if digits > 0 && !text[digits + 1..].starts_with(|c| c != ' ') => {
            format!("{}\\{}", &text[..digits], &text[digits..])
        }
        Some(b'-' | b'+' | b'=' | b':') if digits == 0 => format!("\\{text}"),
        _ => text,
    }
}

/// Text that is nothing but text, where something stands before it. A server
/// may have written it: it becomes no markup, no cell, no link and calls
/// nobody.
fn escaped_inside(text: &str) -> String {
    let chars: Vec<char> = harmless(text).chars().collect();
    let mut out = String::new();
    for (place, c) in chars.iter().enumerate() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Rows are cut before escapes are read, and formulas are found in
            // the source; neither looks into entities.
            '|' => out.push_str("&#124;"),
            '$' => out.push_str("&#36;"),
            '\\' | '`' | '*' | '[' | ']' | '~' | '#' => out.extend(['\\', *c]),
            '_' if !is_inside_a_word(&chars, place) => out.push_str("\\_"),
            _ => out.push(*c),
        }
        if is_read_together(&chars, place) {
            out.push_str(APART);
        }
    }
    out
}

/// An underline between letters is never emphasis.
fn is_inside_a_word(chars: &[char], place: usize) -> bool {
    let letter = |place: Option<usize>| {
        place.and_then(|place| chars.get(place)).is_some_and(|c| c.is_alphanumeric())
    };
    letter(place.checked_sub(1)) && letter(Some(place + 1))
}

/// True where this character and the next begin something that is made a link
/// after all escapes are read: an address, a name, an issue, a small picture.
fn is_read_together(chars: &[char], place: usize) -> bool {
    let (before, after) = (&chars[..place], &chars[place + 1..]);
    let ends = |word: &str| {
        let word: Vec<char> = word.chars().collect();
        let tail = &before[before.len().saturating_sub(word.len())..];
        tail.len() == word.len() && tail.iter().zip(&word).all(|(a, b)| a.eq_ignore_ascii_case(b))
    };
    let next = after.first().copied().unwrap_or(' ');
    match chars[place] {
        '@' => !next.is_whitespace(),
        '#' => next.is_ascii_digit(),
        '-' => next.is_ascii_digit() && ends("gh"),
        // Before the dot: behind it, the entity would be taken for the host.
        'w' | 'W' => next == '.' && ends("ww"),
        ':' => next == '/' || names_a_picture(after),
        _ => false,
    }
}

/// True of `+1:` and the like.
fn names_a_picture(after: &[char]) -> bool {
    let name = |c: &&char| c.is_ascii_alphanumeric() || "+-_".contains(**c);
    let length = after.iter().take_while(name).count();
    length > 0 && after.get(length) == Some(&':')
}

/// Text to copy, such as an address: in it nothing has a meaning but its own
/// end, which is made longer than any run of the same mark inside.
fn code(text: &str) -> String {
    let text = harmless(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let mark = "`".repeat(longest + 1);
    let gap = if longest > 0 { " " } else { "" };
    match text.trim() {
        "" => String::new(),
        text => format!("{mark}{gap}{text}{gap}{mark}"),
    }
}

/// A file's name as a relative address.
fn address(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use measure::validity::Verdict;

    use super::*;
    use crate::document::Row;

    /// What servers and users could write to take a page over.
    const HOSTILE: &[&str] = &[
        "a | b",
        "`rm -rf`",
        "```\n# out",
        "<script>alert(1)</script>",
        "<!-- -->",
        "&lt;b&gt;",
        "[click](http://evil.example)",
        "![x](http://evil.example/x.png)",
        "*bold* _soft_ __x__ ~~gone~~",
        "# heading",
        "- item",
        "+ item",
        "1. item",
        "12) item",
        "===",
        "---",
        "> quote",
        "line\n\n# heading\r\n| a | b |\n|---|---|",
        "@octocat and a@b.example",
        "https://evil.example www.evil.example ftp://x",
        "#1 owner/repo#12 GH-7",
        ":+1: :smile:",
        "$x$ $`y`$",
        "\\| \\` \\<",
        "[^1] [a]: http://x",
        "    indented",
        "</details>",
        "\u{202e}gnp.exe",
    ];

    /// The markup of a text without its escapes: what a parser could still
    /// take for more than text.
    fn bare(markup: &str) -> String {
        let mut out = String::new();
        let mut rest = markup.chars();
        while let Some(c) = rest.next() {
            match c {
                '\\' => {
                    rest.next();
                    out.push('\u{fffd}');
                }
                '&' => {
                    let entity: String = rest.by_ref().take_while(|c| *c != ';').collect();
                    assert!(!entity.is_empty() && entity.len() < 6, "{markup}");
                    out.push('\u{fffd}');
                }
                c => out.push(c),
            }
        }
        out
    }

    #[test]
    fn nothing_that_a_server_says_becomes_markup() {
        for text in HOSTILE {
            let markup = escaped(text);
            let bare = bare(&markup);
            assert!(!bare.contains(['`', '*', '[', ']', '<', '>', '|', '#', '~', '$']), "{markup}");
            assert!(!bare.contains('\n') && !bare.contains('\r'), "{markup}");
            for link in ["://", "www.", "@o", "@b", "GH-7", ":+1:", ":smile:"] {
                assert!(!bare.contains(link), "{markup}");
            }
            for start in ["- ", "+ ", "1. ", "12) ", "===", "---", " "] {
                assert!(!bare.starts_with(start), "{markup}");
            }
            assert!(!bare.contains(" _") && !bare.contains("_ "), "{markup}");
        }
    }

    #[test]
    fn what_is_no_markup_reads_as_it_was_written() {
        for text in ["http_status: an error status", "TTFT P99 400 ms (n=1) · 97.5 %", "≥ 3, 4-5"]
        {
            assert_eq!(escaped(text), text);
        }
        assert_eq!(escaped("400*"), "400\\*");
        assert_eq!(escaped("a | b"), "a &#124; b");
        assert_eq!(escaped("1.5 s"), "1.5 s");
        assert_eq!(escaped("1. step"), "1\\. step");
        assert_eq!(escaped("1)"), "1\\)");
    }

    #[test]
    fn a_line_to_copy_ends_where_it_ends() {
        assert_eq!(code("http://a/v1"), "`http://a/v1`");
        assert_eq!(code("a `` b"), "``` a `` b ```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("a\n\nb"), "`a  b`");
        assert_eq!(address("my run(1).svg"), "my%20run%281%29.svg");
        assert_eq!(address("上.svg"), "%E4%B8%8A.svg");
    }

    /// A document in which every text is this one.
    fn filled(text: &str) -> Document {
        let own = || text.to_owned();
        let pair = Pair { label: own(), value: own(), about: None, mark: Some(Verdict::Invalid) };
        let row = Row { about: None, cells: vec![own(), own()] };
        let blocks = vec![
            Block::Pair(pair.clone()),
            Block::Pairs(vec![pair]),
            Block::Sentence(2, own()),
            Block::Sentence(4, own()),
            Block::Line(own()),
            Block::Command(own()),
            Block::Table(Table { columns: vec![own(), own()], rows: vec![row], left: vec![1] }),
        ];
        let section = |id| Section { id, title: own(), blocks: blocks.clone() };
        Document {
            lang: crate::lang::Lang::En,
            title: own(),
            verdict: Some(Verdict::Invalid),
            headline: format!("INVALID · {text}"),
            conditions: own(),
            lines: vec![own()],
            sections: vec![section("definitions"), section("phases")],
            legends: Vec::new(),
        }
    }

    #[test]
    fn a_page_has_the_same_lines_whatever_the_texts_say() {
        let chart = Chart::Lines("a ``` b");
        // The marks that a line begins with, and the bars between cells.
        let frame = |text: &str| -> Vec<(String, usize)> {
            let marks = |line: &str| line.chars().take_while(|c| "|-#<>* `".contains(*c)).collect();
            let page = render(&filled(text), Some(chart));
            page.lines()
                .filter(|line| !line.starts_with("- `"))
                .map(|line| {
                    let cells = if line.starts_with('|') { line.matches('|').count() } else { 0 };
                    (marks(line), cells)
                })
                .collect()
        };
        let plain = frame("x");
        assert_eq!(plain.iter().filter(|(marks, _)| marks.starts_with('|')).count(), 6);
        for text in HOSTILE {
            assert_eq!(frame(text), plain, "{text:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_cut_to_the_head_and_then_left_out() {
        let document = filled("x");
        let whole = render(&document, None);
        let bytes = whole.len() as u64;
        let within = |bytes| render_within(&document, None, bytes);
        assert_eq!(within(bytes), Some(whole));
        let head = within(bytes - 1).expect("the head fits");
        assert!(head.contains("**INVALID**") && !head.contains("<details>"), "{head}");
        assert!(head.ends_with("this page takes no more.\n"), "{head}");
        assert_eq!(within(10), None);
    }
}
