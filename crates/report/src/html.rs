//! A page for a browser: one file with everything in it, which opens from a
//! disk without a network, or the shell of the local web page, which fetches
//! its scripts and its runs. The scripts and the style sheets lie in `assets`;
//! the data is JSON with its columns in base64.

mod data;
mod shell;
mod still;

use crate::catalogue::report::NEEDS_SCRIPT;
use crate::lang::Lang;

pub(crate) use data::escaped;
pub use data::{Page, PageRun, WebPage};
pub use shell::{ASSETS, Shell, shell};

/// A script of the page, by the name under which others import it.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// The name in `import … from`.
    pub name: &'static str,
    /// The file in `assets`.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
    /// What makes a module of a vendored file that is none.
    pub behind: &'static str,
    /// Whether only the web page needs it, so that a report does without.
    pub web_only: bool,
}

macro_rules! scripts {
    (
        $($name:literal $file:literal $($behind:literal)?;)*
        web { $($web:literal $web_file:literal;)* }
    ) => {
        /// Every script, vendored ones first, those of the web page last.
        pub const SCRIPTS: &[Script] = &[$(Script {
            name: $name,
            file: $file,
            text: include_str!(concat!("../assets/", $file)),
            behind: concat!($($behind)?),
            web_only: false,
        },)* $(Script {
            name: $web,
            file: $web_file,
            text: include_str!(concat!("../assets/", $web_file)),
            behind: "",
            web_only: true,
        },)*];
    };
}

scripts! {
    "preact" "vendor/preact.mjs";
    "preact/hooks" "vendor/hooks.mjs";
    "htm" "vendor/htm.mjs";
    "uplot" "vendor/uPlot.iife.min.js" "\nexport default uPlot;\n";
    "goodput/html" "html.js";
    "goodput/format" "format.js";
    "goodput/arithmetic" "arithmetic.js";
    "goodput/presets" "presets.js";
    "goodput/columns" "columns.js";
    "goodput/settings" "settings.js";
    "goodput/glossary" "glossary.js";
    "goodput/charts" "charts.js";
    "goodput/playground" "playground.js";
    "goodput/report" "report.js";
    "goodput/frame" "frame.js";
    "goodput/app" "app.js";
    web {
        "goodput/server" "server.js";
        "goodput/notes" "notes.js";
        "goodput/runs" "runs.js";
        "goodput/web" "web.js";
    }
}

/// The style sheets, in the order in which they apply.
pub const STYLES: &[&str] =
    &[include_str!("../assets/vendor/uPlot.min.css"), include_str!("../assets/page.css")];

/// What the web page adds to them.
pub const WEB_STYLE: &str = include_str!("../assets/web.css");

/// The page as one file.
pub fn file(page: &Page<'_>, lang: Lang) -> String {
    let style: String = STYLES.concat();
    let imports: serde_json::Map<String, serde_json::Value> = SCRIPTS
        .iter()
        .filter(|script| !script.web_only)
        .map(|script| (script.name.to_owned(), data::inline(script).into()))
        .collect();
    let imports = data::embedded(&serde_json::json!({ "imports": imports }));
    let title = data::escaped(&page.title());
    let language = language(lang);
    let data = data::embedded(&page.json(lang));
    format!(
        "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>{style}</style>\n\
         <script type=\"importmap\">{imports}</script>\n</head>\n<body>\n<div id=\"app\"><noscript><p>{}</p></noscript>{}</div>\n\
         <script type=\"application/json\" id=\"page\">{data}</script>\n\
         <script type=\"module\">import 'goodput/app';</script>\n</body>\n</html>\n",
        data::escaped(lang.pick(NEEDS_SCRIPT)),
        still::markup(&page.documents(lang)),
    )
}

/// The language of a page as markup names it.
const fn language(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "en",
        Lang::Zh => "zh-CN",
    }
}

/// What a file may do: run what is in it, and load nothing.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' data:; \
                      style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
