//! The words of a report as plain markup: what a browser paints before the
//! scripts have run, and all that there is where they do not run.

use std::fmt::Write as _;

use super::data::escaped;
use crate::document::{Block, Document, Pair, Table};

/// The documents under each other, with the classes of the style sheet.
pub(super) fn markup(documents: &[Document]) -> String {
    let mut text = String::from("<main id=\"main\"><article class=\"report\">");
    for document in documents {
        head(&mut text, document);
        for (place, section) in document.sections.iter().enumerate() {
            let title = escaped(&section.title);
            let _ = write!(
                text,
                "<section class=\"part\"><h2><span class=\"place\">{}</span> {title}</h2>",
                place + 1
            );
            section.blocks.iter().for_each(|one| block(&mut text, one));
            text.push_str("</section>");
        }
    }
    text.push_str("</article></main>");
    text
}

fn head(text: &mut String, document: &Document) {
    let _ = write!(
        text,
        "<header class=\"head\"><h1>{}</h1><p class=\"headline verdict {}\">{}</p>",
        escaped(&document.title),
        document.verdict.map_or("", |verdict| verdict.name()),
        escaped(&document.headline)
    );
    if !document.conditions.is_empty() {
        let _ = write!(text, "<p>{}</p>", escaped(&document.conditions));
    }
    for line in &document.lines {
        let _ = write!(text, "<p class=\"soft\">{}</p>", escaped(line));
    }
    text.push_str("</header>");
}

fn block(text: &mut String, block: &Block) {
    match block {
        Block::Pair(one) => pairs(text, std::slice::from_ref(one)),
        Block::Pairs(many) => pairs(text, many),
        Block::Sentence(_, words) | Block::Line(words) => {
            let _ = write!(text, "<p>{}</p>", escaped(words));
        }
        Block::Command(command) => {
            let _ = write!(text, "<pre><code>{}</code></pre>", escaped(command));
        }
        Block::Table(one) => table(text, one),
    }
}

fn pairs(text: &mut String, pairs: &[Pair]) {
    text.push_str("<dl class=\"pairs\">");
    for pair in pairs {
        let (label, value) = (escaped(&pair.label), escaped(&pair.value));
        let _ = write!(text, "<div><dt>{label}</dt><dd>{value}</dd></div>");
    }
    text.push_str("</dl>");
}

fn table(text: &mut String, table: &Table) {
    text.push_str("<div class=\"scroll\"><table><thead><tr>");
    for (place, title) in table.columns.iter().enumerate() {
        let side = if table.left.contains(&place) { " class=\"left\"" } else { "" };
        let _ = write!(text, "<th scope=\"col\"{side}>{}</th>", escaped(title));
    }
    text.push_str("</tr></thead><tbody>");
    for row in &table.rows {
        text.push_str("<tr>");
        for (place, cell) in row.cells.iter().enumerate() {
            let side = if table.left.contains(&place) { " class=\"left\"" } else { "" };
            let _ = write!(text, "<td{side}>{}</td>", escaped(cell));
        }
        text.push_str("</tr>");
    }
    text.push_str("</tbody></table></div>");
}
