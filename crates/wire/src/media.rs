//! Pictures and sounds as requests carry them: bytes of pictures, data URLs,
//! content parts.
//!
//! A part is made in the form of the OpenAI chat API; [`crate::api`] rewrites
//! it for the others.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use workload::media::{Attachment, Media, MediaKind, Picture, PictureFormat};
use workload::{Message, Stream};

/// Quality of JPEG: what common image libraries take unless told, as vLLM's
/// client does.
const JPEG_QUALITY: u8 = 75;

/// The bytes of a picture of our own: each channel of each pixel a random byte.
///
/// Noise, as vLLM's client sends it: no two pictures are alike anywhere, so no
/// cache of a server's helps, and the bytes on the line are the most that a
/// size can have. What an encoder model costs depends on the size alone.
///
/// # Panics
/// When a side is 0 or above [`workload::media::MAX_SIDE`]: a schedule has been
/// checked.
pub fn encode(picture: &Picture) -> Vec<u8> {
    let (width, height) = (picture.size.width, picture.size.height);
    let mut pixels = vec![0; width as usize * height as usize * 3];
    Stream::numbered(picture.seed, "picture", picture.number).fill(&mut pixels);
    let mut bytes = Vec::with_capacity(pixels.len() + pixels.len() / 8);
    match picture.format {
        PictureFormat::Jpeg => {
            let side = |pixels| u16::try_from(pixels).expect("checked: a side fits JPEG");
            let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, JPEG_QUALITY);
            encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::R_4_2_0);
            encoder
                .encode(&pixels, side(width), side(height), jpeg_encoder::ColorType::Rgb)
                .expect("checked sides, and memory takes every write");
        }
        PictureFormat::Png => {
            let mut encoder = png::Encoder::new(&mut bytes, width, height);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            encoder.set_compression(png::Compression::NoCompression);
            encoder.set_filter(png::Filter::NoFilter);
            encoder
                .write_header()
                .and_then(|mut writer| writer.write_image_data(&pixels))
                .expect("checked sides, and memory takes every write");
        }
    }
    bytes
}

/// The media type of a file of a picture, by its first bytes; `None` when it
/// is of no kind that chat APIs name.
pub fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Formats of sound, by the suffix of a file's name. OpenAI itself takes the
/// first two.
const SOUNDS: &[&str] = &["wav", "mp3", "flac", "ogg", "opus", "m4a", "aac", "webm"];

/// The format of a file of sound by its name's suffix.
pub fn audio_format(path: &str) -> Option<&'static str> {
    let (_, suffix) = path.rsplit_once('.')?;
    SOUNDS.iter().copied().find(|format| suffix.eq_ignore_ascii_case(format))
}

/// Bytes inside a URL.
pub fn data_url(media_type: &str, bytes: &[u8]) -> String {
    let mut url = format!("data:{media_type};base64,");
    STANDARD.encode_string(bytes, &mut url);
    url
}

/// The part of an image at an address, which may be a data URL.
pub fn image_part(url: &str) -> Media {
    Media::Part {
        kind: image_kind(url),
        json: json!({"type": "image_url", "image_url": {"url": url}}).to_string().into(),
    }
}

/// The part of a sound.
pub fn audio_part(format: &str, bytes: &[u8]) -> Media {
    let sound = json!({"data": STANDARD.encode(bytes), "format": format});
    Media::Part {
        kind: MediaKind::Audio,
        json: json!({"type": "input_audio", "input_audio": sound}).to_string().into(),
    }
}

fn image_kind(url: &str) -> MediaKind {
    if url.starts_with("data:") { MediaKind::Image } else { MediaKind::ImageAddress }
}

/// A content part of a row as it is sent: what it says, kept word for word.
/// `None` when it is no image, sound or film in the form of the chat API.
pub fn part_of(part: &Value) -> Option<Media> {
    let name = part.get("type")?.as_str()?;
    let body = part.get(name)?;
    // Some write the address in place of the object that holds it.
    let url = || body.get("url").unwrap_or(body).as_str();
    let kind = match name {
        "image_url" => {
            let url = url()?;
            let known = ["data:image/", "http://", "https://"];
            known.iter().any(|start| url.starts_with(start)).then(|| image_kind(url))?
        }
        "input_audio" => {
            let text = |key: &str| body.get(key).is_some_and(Value::is_string);
            (text("data") && text("format")).then_some(MediaKind::Audio)?
        }
        "video_url" => url().map(|_| MediaKind::Video)?,
        _ => return None,
    };
    Some(Media::Part { kind, json: part.to_string().into() })
}

/// The content of a message: its text, or a list of parts.
pub fn content(message: &Message) -> Value {
    if message.media.is_empty() {
        return Value::from(message.content.as_str());
    }
    let mut parts = Vec::new();
    let mut from = 0;
    let text = |parts: &mut Vec<Value>, text: &str| {
        if !text.is_empty() {
            parts.push(json!({"type": "text", "text": text}));
        }
    };
    for Attachment { before, media } in &message.media {
        // A place inside a character cannot come from a loader; the text then
        // stays whole.
        if let Some(piece) = message.content.get(from..*before) {
            text(&mut parts, piece);
            from = *before;
        }
        parts.push(part(media));
    }
    text(&mut parts, message.content.get(from..).unwrap_or_default());
    Value::Array(parts)
}

fn part(media: &Media) -> Value {
    match media {
        // Loaders make the text from JSON, so it is some.
        Media::Part { json, .. } => serde_json::from_str(json).unwrap_or_default(),
        Media::Picture(picture) => {
            let media_type = match picture.format {
                PictureFormat::Jpeg => "image/jpeg",
                PictureFormat::Png => "image/png",
            };
            let url = data_url(media_type, &encode(picture));
            json!({"type": "image_url", "image_url": {"url": url}})
        }
    }
}

#[cfg(test)]
mod tests;
