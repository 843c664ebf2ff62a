//! What a rule of the diagnosis looks for, and the lists of all words of one
//! kind.

use insight::rule::{self, Advice, RULES, Rule};
use measure::metric::{Text, find};

use super::{COLUMNS, Entry, heading};
use crate::catalogue::report as words;
use crate::columns::{columns, wrap};
use crate::lang::Lang;

/// Labels of a rule's fields.
mod of_rule {
    use measure::metric::Text;

    pub(super) const CLASS: Text = Text { en: "Class", zh: "类别" };
    pub(super) const NEEDS: Text = Text { en: "The server shows", zh: "服务端表现" };
    pub(super) const TELLS: Text = Text { en: "To tell it apart", zh: "如何区分" };
    pub(super) const COMMAND: Text = Text { en: "By", zh: "命令" };
    pub(super) const CHANGE: Text = Text { en: "Change", zh: "调整方向" };
    pub(super) const IMPROVES: Text = Text { en: "Must improve", zh: "应改善" };
    pub(super) const TESTED: Text = Text { en: "Tested", zh: "验证情况" };
}

/// The meaning of a rule's id or code.
pub(super) fn rule(word: &str, lang: Lang) -> Option<Entry> {
    rule::find(word).map(|rule| of_rule(rule, lang))
}

/// Ids and codes of all rules.
pub(super) fn rule_words() -> impl Iterator<Item = &'static str> {
    RULES.iter().flat_map(|rule| [rule.id, rule.code])
}

fn of_rule(rule: &Rule, lang: Lang) -> Entry {
    let (class, name) = (lang.pick(rule.class.text()), rule.class.name());
    let class = if class == name { name.to_owned() } else { format!("{class} ({name})") };
    let mut fields = vec![
        (lang.pick(of_rule::CLASS), class),
        (lang.pick(of_rule::NEEDS), lang.pick(rule.required).to_owned()),
        (lang.pick(of_rule::TELLS), lang.pick(rule.check).to_owned()),
    ];
    if !rule.command.is_empty() {
        let command = rule.command.replace("{target}", "URL").replace("{run}", "RUN");
        fields.push((lang.pick(of_rule::COMMAND), command));
    }
    let advice: Vec<String> = rule.advice.iter().map(|advice| advised(advice, lang)).collect();
    if !advice.is_empty() {
        fields.push((lang.pick(of_rule::CHANGE), advice.join(lang.pick(words::SEMICOLON))));
    }
    let symbols: Vec<&str> =
        rule.improves.iter().map(|key| find(key).map_or(*key, |metric| metric.symbol)).collect();
    fields.push((lang.pick(of_rule::IMPROVES), symbols.join(lang.pick(words::BETWEEN_NAMES))));
    let tested = if rule.seen_live { SEEN_LIVE } else { MADE_DATA };
    fields.push((lang.pick(of_rule::TESTED), lang.pick(tested).to_owned()));
    Entry {
        heading: heading(&format!("{} ({})", rule.id, rule.code), lang.pick(rule.title)),
        opening: lang.pick(rule.symptom).to_owned(),
        fields,
    }
}

/// Something to change, and how each engine names it.
fn advised(advice: &Advice, lang: Lang) -> String {
    let text = lang.pick(advice.text);
    if advice.flags.is_empty() {
        return text.to_owned();
    }
    let flags: Vec<String> =
        advice.flags.iter().map(|(engine, flag)| format!("{engine} {flag}")).collect();
    let flag = flags.join(lang.pick(words::COMMA));
    lang.fill(words::DIRECTION, &[("text", &text), ("flag", &flag)])
}

const SEEN_LIVE: Text = Text {
    en: "on the engine model or a real engine",
    zh: "在引擎模型或真实引擎上验证过",
};
const MADE_DATA: Text = Text {
    en: "on made data only: not seen live",
    zh: "只在构造数据上验证过，未在真实环境中出现",
};

/// The words that list others.
pub(super) const LISTS: &[&str] = &["rules"];

/// All words of one kind with what they mean in a few words.
pub(super) fn list(word: &str, lang: Lang) -> Option<String> {
    let (title, rows) = match word {
        "rules" => {
            let row = |rule: &&Rule| [rule.code, rule.id, lang.pick(rule.title)];
            (ALL_RULES, RULES.iter().map(row).collect::<Vec<_>>())
        }
        _ => return None,
    };
    Some(format!("{}\n\n{}", lang.pick(title), aligned(&rows)))
}

const ALL_RULES: Text = Text {
    en: "Causes that goodput diagnose looks for; goodput explain ID tells one whole.",
    zh: "goodput diagnose 会检查的原因；用 goodput explain ID 查看详情。",
};

/// Rows of words under each other.
fn aligned(rows: &[[&str; 3]]) -> String {
    let width = |place: usize| rows.iter().map(|row| columns(row[place])).max().unwrap_or(0);
    let [code, id] = [width(0), width(1)];
    let start = 2 + code + 2 + id + 2;
    let mut lines = Vec::new();
    for [first, second, words] in rows {
        let (after_code, after_id) = (code - columns(first) + 2, id - columns(second) + 2);
        let mut lead = format!("  {first}{:after_code$}{second}{:after_id$}", "", "");
        for line in wrap(words, COLUMNS.saturating_sub(start)) {
            lines.push(format!("{lead}{line}"));
            lead = " ".repeat(start);
        }
    }
    lines.join("\n")
}
