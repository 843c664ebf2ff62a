//! `explain`: what a word of the report means.

use report::explain::{closest, explain, words};
use report::lang::Lang;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::UsageError;

pub(crate) fn run(word: Option<&str>, lang: Lang) -> Result<Exit, Failure> {
    let Some(word) = word else {
        crate::print(&format!("Words that can be explained:\n{}", words().join(", ")));
        return Ok(Exit::Ok);
    };
    match explain(word, lang) {
        Some(text) => {
            crate::print(text.trim_end());
            Ok(Exit::Ok)
        }
        None => {
            let near = closest(word).map_or(String::new(), |near| format!(" did you mean {near}?"));
            let rule = format!("no such word;{near} goodput explain lists all");
            Err(UsageError::new(format!("{word:?}"), rule).into())
        }
    }
}
