//! The page that a web server gives: its common data is in it, its scripts and
//! runs are fetched from the same server.

use super::{SCRIPTS, WebPage, data, language};
use crate::lang::Lang;

/// Where the server has the scripts and the style sheet.
pub const ASSETS: &str = "/assets/";

/// The page and what a policy must allow in it.
#[derive(Clone, Debug)]
pub struct Shell {
    /// The markup.
    pub html: String,
    /// The only script that stands in the markup itself: the import map, which
    /// browsers take from nowhere else. A policy names it by its hash.
    pub import_map: String,
}

/// The page without a run.
pub fn shell(page: &WebPage<'_>, lang: Lang) -> Shell {
    let imports: serde_json::Map<String, serde_json::Value> = SCRIPTS
        .iter()
        .map(|script| (script.name.to_owned(), format!("{ASSETS}{}", script.file).into()))
        .collect();
    let import_map = data::embedded(&serde_json::json!({ "imports": imports }));
    let html = format!(
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>goodput</title>\n\
         <link rel=\"stylesheet\" href=\"{ASSETS}page.css\">\n\
         <script type=\"importmap\">{import_map}</script>\n</head>\n<body>\n\
         <div id=\"app\"><p>{}</p></div>\n\
         <script type=\"application/json\" id=\"page\">{}</script>\n\
         <script type=\"module\" src=\"{ASSETS}web.js\"></script>\n</body>\n</html>\n",
        language(lang),
        data::escaped(NEEDS_SCRIPT),
        data::embedded(&page.json(lang)),
    );
    Shell { html, import_map }
}

const NEEDS_SCRIPT: &str = "This page draws itself by scripts, which are switched off here. \
                            `goodput runs ls` and `goodput report` show the same in a terminal.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::{Page, file};

    const VERSION: &str = "</script><b>";

    #[test]
    fn the_shell_holds_one_script_and_no_markup_of_a_text() {
        let shell = shell(&WebPage { version: VERSION }, Lang::Zh);
        assert!(shell.html.contains(&shell.import_map));
        assert!(!shell.html.contains("</script><b>") && !shell.html.contains("</b>"));
        assert_eq!(shell.html.matches("<script").count(), 3);
        for place in ["src=\"http", "href=\"http", "src=\"//", "href=\"//"] {
            assert!(!shell.html.contains(place), "it loads nothing from elsewhere");
        }
        assert!(shell.html.contains("lang=\"zh-CN\""));
    }

    #[test]
    fn a_report_carries_nothing_that_only_the_web_page_needs() {
        let report = file(&Page { runs: &[], version: VERSION }, Lang::En);
        let web: Vec<_> = SCRIPTS.iter().filter(|script| script.web_only).collect();
        assert!(!web.is_empty());
        for script in web {
            assert!(!report.contains(&format!("\"{}\"", script.name)), "{}", script.name);
        }
    }
}
