//! Prompts with pictures or a sound, whose files lie beside the data set: one
//! JSON object a line.
//!
//! ```text
//! {"prompt": "What is this?", "image_files": ["pony.jpg", "https://h/x.png"]}
//! {"content": [{"type": "text", "text": "Compare "}, {"type": "image", "image": "a.png"}]}
//! {"prompt": "What is said?", "audio": "question.wav"}
//! ```
//!
//! Other keys are those of `custom`. A file is sent as it is, inside the
//! request; an image that is a URL stays one. A row whose file is missing or is
//! no picture is skipped with the reason.

use std::collections::HashMap;

use serde_json::{Map, Value};
use workload::{Content, Media, Message, Prompt};

use super::custom::{attach, rows, text_part, with_content};
use super::{DatasetNotes, Reason, Refusal};
use crate::media::{audio_format, audio_part, data_url, image_part, image_type};

/// Opens a file that a row names; the error is a sentence.
pub type Open<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// The most bytes of all files together, in base64: they are in memory.
const MOST_BYTES: usize = 2 << 30;

/// Reads a file of prompts with pictures. Where pictures have to be in the
/// requests (`inside`), an address is refused: nothing is fetched.
pub fn images(
    bytes: &[u8],
    open: Open<'_>,
    inside: bool,
    count: &dyn Fn(&str) -> u32,
) -> (Vec<Prompt>, DatasetNotes) {
    let mut files = Files::new(open);
    let read = rows(bytes, |object| {
        let present = |key: &str| object.get(key).filter(|value| !value.is_null());
        let mut message = Message::new("user", "");
        match (present("prompt"), present("content")) {
            (Some(_), Some(_)) => return Err(Reason::TwoPrompts),
            (Some(Value::String(text)), None) => {
                message.content.push_str(text);
                let images = present("image_files").ok_or(Reason::NoImage)?;
                for image in one_or_many(images).ok_or(Reason::NoImage)? {
                    attach(&mut message, files.image(image, inside)?);
                }
            }
            (None, Some(Value::Array(parts))) => {
                for part in parts {
                    match text_part(part) {
                        Some(text) => message.content.push_str(text),
                        None => {
                            for image in named_in(part).ok_or(Reason::BadParts)? {
                                attach(&mut message, files.image(image, inside)?);
                            }
                        }
                    }
                }
            }
            (Some(_), None) => return Err(Reason::PromptNotText),
            (None, Some(_)) => return Err(Reason::BadParts),
            (None, None) => return Err(Reason::NoPrompt),
        }
        with_content(object, Content::Messages(vec![message]), count)
    });
    files.within(read)
}

/// Reads a file of prompts with one sound each.
pub fn sounds(
    bytes: &[u8],
    open: Open<'_>,
    count: &dyn Fn(&str) -> u32,
) -> (Vec<Prompt>, DatasetNotes) {
    let mut files = Files::new(open);
    let read = rows(bytes, |object: &Map<String, Value>| {
        let text = match object.get("prompt").filter(|value| !value.is_null()) {
            Some(Value::String(text)) => text.as_str(),
            Some(_) => return Err(Reason::PromptNotText),
            None => "",
        };
        let path = object.get("audio").and_then(Value::as_str).ok_or(Reason::NoAudio)?;
        let mut message = Message::new("user", text);
        attach(&mut message, files.sound(path)?);
        with_content(object, Content::Messages(vec![message]), count)
    });
    files.within(read)
}

fn one_or_many(value: &Value) -> Option<Vec<&str>> {
    let found = match value {
        Value::Array(all) => all.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?,
        one => vec![one.as_str()?],
    };
    (!found.is_empty()).then_some(found)
}

/// The images that a part names: `{"type": "image", "image": …}` with a text or
/// a list, or the chat API's own form.
fn named_in(part: &Value) -> Option<Vec<&str>> {
    match part.get("type")?.as_str()? {
        "image" => one_or_many(part.get("image")?),
        "image_url" => {
            let image = part.get("image_url")?;
            one_or_many(image.get("url").unwrap_or(image))
        }
        _ => None,
    }
}

/// Files that were read; each is kept once, however many rows name it.
struct Files<'a> {
    open: Open<'a>,
    known: HashMap<String, Result<Media, Reason>>,
    bytes: usize,
}

impl<'a> Files<'a> {
    fn new(open: Open<'a>) -> Self {
        Self { open, known: HashMap::new(), bytes: 0 }
    }

    fn image(&mut self, named: &str, inside: bool) -> Result<Media, Reason> {
        if named.starts_with("data:image/") {
            return Ok(image_part(named));
        }
        if named.starts_with("http://") || named.starts_with("https://") {
            return if inside { Err(Reason::NotFetched) } else { Ok(image_part(named)) };
        }
        self.read(named, |path, bytes| match image_type(bytes) {
            Some(media_type) => Ok(image_part(&data_url(media_type, bytes))),
            None => Err(Reason::NotAnImage(path.to_owned())),
        })
    }

    fn sound(&mut self, named: &str) -> Result<Media, Reason> {
        self.read(named, |path, bytes| match audio_format(path) {
            Some(format) => Ok(audio_part(format, bytes)),
            None => Err(Reason::NotASound(path.to_owned())),
        })
    }

    fn read(
        &mut self,
        named: &str,
        part: impl Fn(&str, &[u8]) -> Result<Media, Reason>,
    ) -> Result<Media, Reason> {
        if let Some(known) = self.known.get(named) {
            return known.clone();
        }
        if self.bytes > MOST_BYTES {
            return Err(Reason::TooMuchMedia);
        }
        let path = named.strip_prefix("file://").unwrap_or(named);
        let read = (self.open)(path).map_err(Reason::File).and_then(|bytes| part(path, &bytes));
        if let Ok(Media::Part { json, .. }) = &read {
            self.bytes += json.len();
        }
        self.known.insert(named.to_owned(), read.clone());
        read
    }

    /// The rows, unless their files are more than memory should hold: half a
    /// data set would be another one.
    fn within(self, read: (Vec<Prompt>, DatasetNotes)) -> (Vec<Prompt>, DatasetNotes) {
        if self.bytes > MOST_BYTES {
            return (Vec::new(), DatasetNotes::refused(Refusal::TooMuchMedia));
        }
        read
    }
}

#[cfg(test)]
mod tests;
