//! Every text that people read and that stands in no other table, once in
//! English and once in Chinese. Metrics, kinds of failure, warnings and reasons
//! carry their words with them; everything else is here.

mod page;
pub mod report;
mod web;

use measure::metric::Text;

pub use page::PAGE;
pub use web::WEB;

/// The gaps of a text: the names in its braces, sorted.
pub fn gaps(text: &str) -> Vec<&str> {
    let mut gaps: Vec<&str> = text
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(gap, _)| gap))
        .collect();
    gaps.sort_unstable();
    gaps.dedup();
    gaps
}

/// What is wrong with a pair of texts: nothing missing on either side, the
/// same gaps in both, and Chinese where Chinese is promised.
pub fn faults(key: &str, text: Text) -> Vec<String> {
    let mut faults = Vec::new();
    if text.en.trim().is_empty() || text.zh.trim().is_empty() {
        faults.push(format!("{key}: one language is missing"));
    }
    if gaps(text.en) != gaps(text.zh) {
        faults.push(format!("{key}: the gaps differ: {:?} {:?}", gaps(text.en), gaps(text.zh)));
    }
    let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    if text.en.chars().any(is_han) {
        faults.push(format!("{key}: the English text holds Chinese"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words in quotes in the page's own scripts, and what stands before
    /// each; those of the web page only when asked for.
    fn quoted(web: bool) -> Vec<(&'static str, &'static str)> {
        let own = crate::html::SCRIPTS
            .iter()
            .filter(|one| one.name.starts_with("goodput/") && (web || !one.web_only));
        let word = |text: &str| {
            text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
        };
        own.flat_map(|script| {
            let parts: Vec<&str> = script.text.split('\'').collect();
            parts.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
        })
        .filter(|(_, text)| !text.is_empty() && word(text))
        .collect()
    }

    #[test]
    fn texts_of_the_report_are_in_both_languages() {
        // Full-width marks are Chinese too: some texts are a mark alone.
        let is_chinese = |c: char| matches!(c, '\u{3001}'..='\u{9fff}' | '\u{ff01}'..='\u{ff5e}');
        let mut faults: Vec<String> =
            report::ALL.iter().flat_map(|(name, text)| faults(name, *text)).collect();
        let english = report::ALL.iter().filter(|(_, text)| !text.zh.contains(is_chinese));
        faults.extend(english.map(|(name, text)| format!("{name}: {:?} is not Chinese", text.zh)));
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// What is wrong with the keys of a kind of page.
    fn faults_of(keys: &[&(&str, Text)], quoted: &[(&str, &str)]) -> Vec<String> {
        let mut faults: Vec<String> =
            keys.iter().flat_map(|(key, text)| faults(key, *text)).collect();
        for (place, (key, _)) in keys.iter().enumerate() {
            if keys[..place].iter().any(|(other, _)| other == key) {
                faults.push(format!("{key}: twice"));
            }
            if !quoted.iter().any(|(_, word)| word == key) {
                faults.push(format!("{key}: no script says it"));
            }
        }
        let said = quoted.iter().filter(|(before, word)| {
            before.ends_with("say(") || word.starts_with("fault_") || word.starts_with("preset_")
        });
        for (_, word) in said {
            if keys.iter().all(|(key, _)| key != word) {
                faults.push(format!("{word}: a script says it, the catalogue lacks it"));
            }
        }
        faults
    }

    #[test]
    fn no_key_of_the_pages_is_missing_unused_or_in_one_language() {
        let report: Vec<_> = PAGE.iter().collect();
        let web: Vec<_> = PAGE.iter().chain(WEB).collect();
        let mut faults = faults_of(&report, &quoted(false));
        faults.extend(faults_of(&web, &quoted(true)));
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
