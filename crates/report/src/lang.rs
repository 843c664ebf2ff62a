//! The two languages in which people are spoken to.

use std::fmt;
use std::str::FromStr;

use measure::metric::Text;
use measure::said::Said;

/// A language of the product's texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

/// A language name that is not one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLang {
    /// The name as given.
    pub given: String,
}

impl Lang {
    /// Both languages.
    pub const ALL: &[Self] = &[Self::En, Self::Zh];

    /// The language of a locale such as `zh_CN.UTF-8`, as LC_ALL and LANG give
    /// it. Everything that is not Chinese reads English: an unknown locale is
    /// no reason to stop.
    pub fn from_locale(locale: &str) -> Self {
        let language = locale.split(['_', '-', '.', '@', ':']).next().unwrap_or_default();
        if language.eq_ignore_ascii_case("zh") { Self::Zh } else { Self::En }
    }

    /// The name that `--lang` takes.
    pub const fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
        }
    }

    /// The words of this language.
    pub const fn pick(self, text: Text) -> &'static str {
        match self {
            Self::En => text.en,
            Self::Zh => text.zh,
        }
    }

    /// The sentence of this language.
    pub fn sentence(self, said: &Said) -> &str {
        match self {
            Self::En => &said.en,
            Self::Zh => &said.zh,
        }
    }

    /// The words of this language with their gaps filled. Values are not read
    /// for gaps again: some are a server's.
    pub fn fill(self, text: Text, values: &[(&str, &dyn fmt::Display)]) -> String {
        let mut pieces = self.pick(text).split('{');
        let mut filled = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (gap, rest) = piece.split_once('}').unwrap_or((piece, ""));
            match values.iter().find(|(name, _)| *name == gap) {
                Some((_, value)) => filled.push_str(&value.to_string()),
                None => debug_assert!(false, "{gap} has no value in {:?}", text.en),
            }
            filled.push_str(rest);
        }
        filled
    }
}

impl FromStr for Lang {
    type Err = UnknownLang;

    fn from_str(given: &str) -> Result<Self, UnknownLang> {
        Self::ALL
            .iter()
            .copied()
            .find(|lang| lang.code().eq_ignore_ascii_case(given))
            .ok_or_else(|| UnknownLang { given: given.to_owned() })
    }
}

impl fmt::Display for UnknownLang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--lang {:?}: not a language of this program; give en or zh", self.given)
    }
}

impl std::error::Error for UnknownLang {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chinese_locale_reads_chinese_and_any_other_english() {
        for locale in ["zh", "zh_CN.UTF-8", "zh-Hans-CN", "ZH_TW", "zh:en"] {
            assert_eq!(Lang::from_locale(locale), Lang::Zh, "{locale}");
        }
        for locale in ["", "C", "C.UTF-8", "POSIX", "en_GB.UTF-8", "de_DE@euro", "zhx"] {
            assert_eq!(Lang::from_locale(locale), Lang::En, "{locale}");
        }
    }

    #[test]
    fn gaps_are_filled_once_in_any_order() {
        let text = Text { en: "{n} of {of}", zh: "{of} 个中的 {n} 个" };
        let values: [(&str, &dyn fmt::Display); 2] = [("n", &"{of}"), ("of", &3)];
        assert_eq!(Lang::En.fill(text, &values), "{of} of 3");
        assert_eq!(Lang::Zh.fill(text, &values), "3 个中的 {of} 个");
    }

    #[test]
    fn the_flag_takes_two_names_and_names_them_when_refused() {
        assert_eq!("en".parse(), Ok(Lang::En));
        assert_eq!("ZH".parse(), Ok(Lang::Zh));
        let refused = "fr".parse::<Lang>().expect_err("not offered").to_string();
        for part in ["--lang", "fr", "en", "zh"] {
            assert!(refused.contains(part), "{refused}");
        }
    }
}
