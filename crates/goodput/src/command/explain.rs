//! `explain`: what a word of the report means, and what engines call a signal.

use report::explain::{closest_of, explain, words};
use report::lang::Lang;
use report::signals;
use wire::signals::tellers;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::UsageError;

pub(crate) fn run(word: Option<&str>, lang: Lang) -> Result<Exit, Failure> {
    let tellers = tellers();
    let mut words = words();
    words.extend(signals::words(&tellers));
    let Some(word) = word else {
        crate::print(&format!("Words that can be explained:\n{}", words.join(", ")));
        return Ok(Exit::Ok);
    };
    let explained = explain(word, lang).into_iter().chain(signals::explain(word, lang, &tellers));
    let explained: Vec<String> = explained.collect();
    if !explained.is_empty() {
        crate::print(explained.join("\n").trim_end());
        return Ok(Exit::Ok);
    }
    let near = closest_of(word, words);
    let near = near.map_or(String::new(), |near| format!(" did you mean {near}?"));
    let rule = format!("no such word;{near} goodput explain lists all");
    Err(UsageError::new(format!("{word:?}"), rule).into())
}
