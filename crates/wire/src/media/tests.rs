use proptest::prelude::*;
use workload::media::Size;
use zune_jpeg::JpegDecoder;
use zune_png::PngDecoder;
use zune_png::zune_core::bytestream::ZCursor;

use super::*;

fn picture(format: PictureFormat, width: u32, height: u32, number: u64) -> Picture {
    Picture { size: Size { width, height }, format, seed: 7, number }
}

fn noise(picture: &Picture) -> Vec<u8> {
    let mut pixels = vec![0; (picture.size.width * picture.size.height * 3) as usize];
    Stream::numbered(picture.seed, "picture", picture.number).fill(&mut pixels);
    pixels
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Decoded by zune, which shares no code with the encoders.
    #[test]
    fn png_comes_back_pixel_by_pixel(width in 1u32..40, height in 1u32..40, number: u64) {
        let picture = picture(PictureFormat::Png, width, height, number);
        let bytes = encode(&picture);
        prop_assert_eq!(&bytes, &encode(&picture));
        prop_assert_eq!(image_type(&bytes), Some("image/png"));
        let mut decoder = PngDecoder::new(ZCursor::new(&bytes));
        let pixels = decoder.decode_raw().unwrap();
        prop_assert_eq!(decoder.dimensions(), Some((width as usize, height as usize)));
        prop_assert_eq!(pixels, noise(&picture));
    }

    #[test]
    fn jpeg_is_a_picture_of_its_size(width in 1u32..80, height in 1u32..80, number: u64) {
        let picture = picture(PictureFormat::Jpeg, width, height, number);
        let bytes = encode(&picture);
        prop_assert_eq!(&bytes, &encode(&picture));
        prop_assert_eq!(image_type(&bytes), Some("image/jpeg"));
        let mut decoder = JpegDecoder::new(ZCursor::new(&bytes));
        let pixels = decoder.decode().unwrap();
        prop_assert_eq!(decoder.dimensions(), Some((width as usize, height as usize)));
        prop_assert_eq!(pixels.len(), (width * height * 3) as usize);
    }

    #[test]
    fn a_message_keeps_its_text_and_the_places(
        pieces in prop::collection::vec("[a-zé]{0,4}", 1..5),
    ) {
        let mut message = Message::new("user", pieces.concat());
        let mut before = 0;
        for piece in &pieces {
            before += piece.len();
            message.media.push(Attachment { before, media: image_part("https://h/x.png") });
        }
        let content = content(&message);
        let parts = content.as_array().unwrap();
        let mut texts = String::new();
        let mut seen = Vec::new();
        for part in parts {
            match part["text"].as_str() {
                Some(text) => texts.push_str(text),
                None => seen.push(std::mem::take(&mut texts)),
            }
        }
        prop_assert_eq!(seen, pieces);
    }

    #[test]
    fn any_bytes_have_a_type_or_none(bytes: Vec<u8>) {
        image_type(&bytes);
    }
}

#[test]
fn noise_of_another_number_is_another_picture() {
    let one = encode(&picture(PictureFormat::Jpeg, 16, 16, 1));
    let two = encode(&picture(PictureFormat::Jpeg, 16, 16, 2));
    assert_ne!(one, two);
}

/// RFC 4648 §10 and RFC 2397.
#[test]
fn data_urls_are_base64_with_padding() {
    assert_eq!(data_url("image/png", b"foob"), "data:image/png;base64,Zm9vYg==");
}

#[test]
fn formats_of_sound_are_suffixes() {
    assert_eq!(audio_format("a/b.WAV"), Some("wav"));
    assert_eq!(audio_format("b.mp3"), Some("mp3"));
    assert_eq!(audio_format("b.txt"), None);
    assert_eq!(audio_format("wav"), None);
}

#[test]
fn parts_of_rows_are_kept_or_refused() {
    for (part, kind) in [
        (
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}),
            "images",
        ),
        (
            json!({"type": "image_url", "image_url": {"url": "https://h/x", "detail": "low"}}),
            "addresses of images",
        ),
        (json!({"type": "image_url", "image_url": "http://h/x"}), "addresses of images"),
        (json!({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}), "audio"),
        (json!({"type": "video_url", "video_url": {"url": "https://h/x.mp4"}}), "video"),
    ] {
        let media = part_of(&part).unwrap_or_else(|| panic!("{part}"));
        assert_eq!(media.kind().name(), kind);
        let Media::Part { json, .. } = &media else { panic!("{media:?}") };
        assert_eq!(serde_json::from_str::<Value>(json).unwrap(), part);
    }
    for part in [
        json!({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}),
        json!({"type": "image_url"}),
        json!({"type": "input_audio", "input_audio": {"data": "AA=="}}),
        json!({"type": "refusal", "refusal": "no"}),
        json!(3),
    ] {
        assert_eq!(part_of(&part), None, "{part}");
    }
}
