//! Sentences with numbers in them, in English and Chinese. Files and JSON keep
//! the English one; a report shows that of its reader.

use crate::metric::Text;

/// One sentence in both languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// English.
    pub en: String,
    /// Chinese.
    pub zh: String,
}

impl From<Text> for Said {
    fn from(text: Text) -> Self {
        Self { en: text.en.to_owned(), zh: text.zh.to_owned() }
    }
}

/// The same values put into an English and a Chinese sentence. A value that is
/// named behind the sentences must stand in both, or this does not compile.
#[macro_export]
macro_rules! said {
    ($en:literal, $zh:literal $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::said::Said {
            en: format!($en $(, $name = $value)*),
            zh: format!($zh $(, $name = $value)*),
        }
    };
}

pub use crate::said;
