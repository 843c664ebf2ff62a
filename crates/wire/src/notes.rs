//! `notes.json`: what people write about a run. Nothing of it enters a figure,
//! so it may change when the run no longer does. Versioned, and readable
//! forever.

use serde::{Deserialize, Serialize};

/// Version of the form. Raise it when a reader of the old form would be
/// misled, and keep reading the old one.
pub const VERSION: u32 = 1;

/// The most tags of a run: more are a text, and that is what the note is for.
pub const MOST_TAGS: usize = 20;

/// The most characters of a tag.
pub const TAG_CHARACTERS: usize = 40;

/// The most characters of a note.
pub const NOTE_CHARACTERS: usize = 4_000;

/// Tags and a note that keep the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    tags: Vec<String>,
    note: String,
}

/// Why notes cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum NotesError {
    /// Not JSON of this form.
    #[error("notes are {{\"tags\": [text, …], \"note\": text}}, and this is not: {0}")]
    Form(#[from] serde_json::Error),
    /// Written by a later version.
    #[error(
        "notes.json has format version {found}; this goodput reads up to {VERSION}: take a newer one"
    )]
    Newer {
        /// The version found.
        found: u32,
    },
    /// A version that was never written.
    #[error("notes.json has format version 0, which no version of goodput writes")]
    Zero,
    /// More tags than a run may have.
    #[error(
        "a run has at most {MOST_TAGS} tags, and these are {found}; write the rest into the note"
    )]
    TooManyTags {
        /// Their number.
        found: usize,
    },
    /// A tag that is empty, long, or would not come back from a list.
    #[error(
        "the tag {tag:?} must have 1 to {TAG_CHARACTERS} characters without commas and line ends"
    )]
    Tag {
        /// Its first characters.
        tag: String,
    },
    /// A long note.
    #[error("a note has at most {NOTE_CHARACTERS} characters, and this has {found}; shorten it")]
    LongNote {
        /// Its characters.
        found: usize,
    },
    /// A character that no one typed.
    #[error("a note is text with line ends and tabs, and this holds the control character {0:?}")]
    Control(char),
}

/// What a request says, and the file beside its version.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    tags: Vec<String>,
    note: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Form {
    format_version: u32,
    tags: Vec<String>,
    note: String,
}

impl Notes {
    /// Takes tags and a note: blanks around them go, and so does a tag that
    /// stands there already.
    ///
    /// # Errors
    ///
    /// All of [`NotesError`] but the versions and the form.
    pub fn new(given: &[String], note: &str) -> Result<Self, NotesError> {
        let mut tags: Vec<String> = Vec::new();
        for tag in given.iter().map(|tag| tag.trim()) {
            let length = tag.chars().count();
            let odd = |c: char| c.is_control() || c == ',';
            if length == 0 || length > TAG_CHARACTERS || tag.contains(odd) {
                return Err(NotesError::Tag { tag: tag.chars().take(TAG_CHARACTERS).collect() });
            }
            if !tags.iter().any(|known| known == tag) {
                tags.push(tag.to_owned());
            }
        }
        if tags.len() > MOST_TAGS {
            return Err(NotesError::TooManyTags { found: tags.len() });
        }
        // A text field of a browser ends its lines as the network does.
        let note = note.trim().replace("\r\n", "\n");
        let found = note.chars().count();
        if found > NOTE_CHARACTERS {
            return Err(NotesError::LongNote { found });
        }
        let control = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
        match note.chars().find(control) {
            Some(found) => Err(NotesError::Control(found)),
            None => Ok(Self { tags, note }),
        }
    }

    /// The tags, each once, in the order in which they were given.
    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// The note; empty where there is none.
    pub fn note(&self) -> &str {
        &self.note
    }
}

/// The notes as JSON text.
pub fn encode(notes: &Notes) -> Vec<u8> {
    let Notes { tags, note } = notes.clone();
    let form = Form { format_version: VERSION, tags, note };
    serde_json::to_vec_pretty(&form).expect("a form of plain values is always JSON")
}

/// Reads notes of this or an earlier version.
///
/// # Errors
///
/// [`NotesError`] for what this version does not read.
pub fn decode(bytes: &[u8]) -> Result<Notes, NotesError> {
    #[derive(Deserialize)]
    struct Version {
        format_version: u32,
    }
    match serde_json::from_slice(bytes)? {
        Version { format_version: 0 } => return Err(NotesError::Zero),
        Version { format_version: found } if found > VERSION => {
            return Err(NotesError::Newer { found });
        }
        Version { .. } => {}
    }
    let form: Form = serde_json::from_slice(bytes)?;
    Notes::new(&form.tags, &form.note)
}

/// Reads what a person asks to be written: an object of `tags` and `note`,
/// both of them, because it takes the place of what was there.
///
/// # Errors
///
/// [`NotesError`] for another form and for what breaks a limit.
pub fn asked(bytes: &[u8]) -> Result<Notes, NotesError> {
    let asked: Asked = serde_json::from_slice(bytes)?;
    Notes::new(&asked.tags, &asked.note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the first version wrote; never edited.
    const VERSION_1: &str = "{\n  \"format_version\": 1,\n  \"tags\": [\n    \"baseline\",\n    \
                             \"prefix cache 开\"\n  ],\n  \"note\": \"two lines\\nwith <b>\"\n}";

    fn notes(tags: &[&str], note: &str) -> Result<Notes, NotesError> {
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        Notes::new(&tags, note)
    }

    #[test]
    fn the_notes_of_version_1_are_read_and_written_as_they_were() {
        let expected = notes(&["baseline", "prefix cache 开"], "two lines\nwith <b>").unwrap();
        assert_eq!(decode(VERSION_1.as_bytes()).unwrap(), expected);
        assert_eq!(encode(&expected), VERSION_1.as_bytes());
    }

    #[test]
    fn blanks_and_repeats_go_and_limits_are_told() {
        let tidy = notes(&[" a ", "b", "a"], " x\r\ny ").unwrap();
        assert_eq!((tidy.tags(), tidy.note()), (&["a".to_owned(), "b".to_owned()][..], "x\ny"));
        assert!(notes(&[&"字".repeat(TAG_CHARACTERS)], "").is_ok());
        for wrong in ["", "  ", "a,b", "a\nb", &"x".repeat(TAG_CHARACTERS + 1)] {
            assert!(matches!(notes(&[wrong], ""), Err(NotesError::Tag { .. })), "{wrong:?}");
        }
        let many: Vec<String> = (0..=MOST_TAGS).map(|n| n.to_string()).collect();
        assert!(matches!(Notes::new(&many, ""), Err(NotesError::TooManyTags { found: 21 })));
        assert!(notes(&[], &"字".repeat(NOTE_CHARACTERS)).is_ok());
        let long = "x".repeat(NOTE_CHARACTERS + 1);
        assert!(matches!(notes(&[], &long), Err(NotesError::LongNote { found: 4_001 })));
        assert!(matches!(notes(&[], "a\u{1b}[2J"), Err(NotesError::Control('\u{1b}'))));
    }

    #[test]
    fn other_versions_and_forms_are_refused() {
        let of = |version: &str| decode(VERSION_1.replace(": 1,", version).as_bytes());
        assert!(matches!(of(": 2,"), Err(NotesError::Newer { found: 2 })));
        assert!(matches!(of(": 0,"), Err(NotesError::Zero)));
        assert!(matches!(decode(b"{}"), Err(NotesError::Form(_))));
        assert!(asked(br#"{"tags":["a"],"note":"n"}"#).is_ok());
        for wrong in ["", "[]", r#"{"tags":[]}"#, r#"{"tags":[],"note":"","id":1}"#] {
            assert!(matches!(asked(wrong.as_bytes()), Err(NotesError::Form(_))), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn notes_come_back(tags in prop::collection::vec("[^,\\pC]{0,50}", 0..25), note in "\\PC*") {
            if let Ok(notes) = Notes::new(&tags, &note) {
                prop_assert_eq!(decode(&encode(&notes)).unwrap(), notes);
            }
        }

        #[test]
        fn arbitrary_bytes_are_notes_or_an_error(bytes: Vec<u8>) {
            let _ = (decode(&bytes), asked(&bytes));
        }
    }
}
