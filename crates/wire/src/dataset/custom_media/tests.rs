use workload::estimate_tokens;

use super::*;
use crate::media::content;

/// The smallest heads that tell the types apart, and a sound.
fn open(path: &str) -> Result<Vec<u8>, String> {
    match path {
        "a.png" => Ok(b"\x89PNG\r\n\x1a\n".to_vec()),
        "b.jpg" => Ok(b"\xff\xd8\xff\xe0".to_vec()),
        "c.txt" | "c.wav" => Ok(b"RIFF".to_vec()),
        _ => Err(format!("{path} does not exist")),
    }
}

fn images_of(text: &str, inside: bool) -> (Vec<Prompt>, DatasetNotes) {
    images(text.as_bytes(), &open, inside, &estimate_tokens)
}

fn parts(prompt: &Prompt) -> Value {
    let Content::Messages(messages) = &prompt.content else { panic!("messages") };
    content(&messages[0])
}

/// The two forms of vLLM's page on benchmarks ("Custom multimodal dataset").
#[test]
fn images_stand_behind_the_prompt_or_where_the_parts_say() {
    let file = concat!(
        r#"{"prompt": "What is it?", "image_files": ["a.png", "https://h/x.png"]}"#,
        "\n",
        r#"{"content": [{"type": "text", "text": "Compare "}, {"type": "image", "image": "a.png"}, {"type": "text", "text": " with "}, {"type": "image_url", "image_url": {"url": "file://b.jpg"}}], "output_tokens": 9}"#,
        "\n",
    );
    let (prompts, notes) = images_of(file, false);
    assert_eq!(notes.skipped, Vec::new());
    let (png, jpeg) = ("data:image/png;base64,iVBORw0KGgo=", "data:image/jpeg;base64,/9j/4A==");
    let image = |url: &str| serde_json::json!({"type": "image_url", "image_url": {"url": url}});
    let text = |text: &str| serde_json::json!({"type": "text", "text": text});
    assert_eq!(
        parts(&prompts[0]),
        Value::from(vec![text("What is it?"), image(png), image("https://h/x.png")])
    );
    assert_eq!(
        parts(&prompts[1]),
        Value::from(vec![text("Compare "), image(png), text(" with "), image(jpeg)])
    );
    assert_eq!(prompts[1].max_output_tokens.map(measure::Tokens::get), Some(9));
    assert_eq!(prompts[1].source_row, Some(2));
}

#[test]
fn rows_with_a_bad_file_are_skipped_by_line_and_reason() {
    for (row, reason) in [
        (r#"{"prompt": "x", "image_files": ["no.png"]}"#, "line 1: no.png does not exist"),
        (r#"{"prompt": "x", "image_files": "c.txt"}"#, "line 1: c.txt is no PNG"),
        (r#"{"prompt": "x"}"#, "line 1: no image_files"),
        (r#"{"prompt": "x", "image_files": []}"#, "line 1: no image_files"),
        (r#"{"prompt": "x", "image_files": [3]}"#, "line 1: no image_files"),
        (r#"{"prompt": 3, "image_files": "a.png"}"#, "line 1: prompt is not a string"),
        (r#"{"content": "x"}"#, "line 1: content is not a list"),
        (r#"{"content": [{"type": "film", "film": "a"}]}"#, "line 1: content is not a list"),
        (r#"{"content": []}"#, "line 1: empty prompt"),
        (r#"{"image_files": "a.png"}"#, "line 1: no prompt"),
    ] {
        let (prompts, notes) = images_of(row, false);
        assert!(prompts.is_empty(), "{row}");
        let told = notes.skipped[0].to_string();
        assert!(told.starts_with(reason), "{told}");
    }
    let address = r#"{"prompt": "x", "image_files": "https://h/x.png"}"#;
    assert_eq!(images_of(address, false).0.len(), 1);
    assert_eq!(images_of(address, true).1.skipped[0].reason, Reason::NotFetched);
}

#[test]
fn a_file_named_twice_is_read_once() {
    let read = std::cell::Cell::new(0);
    let open = |path: &str| {
        read.set(read.get() + 1);
        open(path)
    };
    let row = "{\"prompt\": \"x\", \"image_files\": [\"a.png\", \"a.png\"]}\n";
    let (prompts, _) = images(row.repeat(3).as_bytes(), &open, false, &estimate_tokens);
    assert_eq!((prompts.len(), read.get()), (3, 1));
    let shared = |index: usize| match prompts[index].media().next() {
        Some(Media::Part { json, .. }) => std::sync::Arc::as_ptr(json).cast::<u8>(),
        _ => panic!("a part"),
    };
    assert_eq!(shared(0), shared(2));
}

#[test]
fn a_sound_is_a_part_with_its_format() {
    let row = r#"{"prompt": "What is said?", "audio": "c.wav"}"#;
    let (prompts, _) = sounds(row.as_bytes(), &open, &estimate_tokens);
    assert_eq!(
        parts(&prompts[0])[1],
        serde_json::json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}})
    );
    for (row, reason) in [
        (r#"{"prompt": "x"}"#, Reason::NoAudio),
        (r#"{"prompt": "x", "audio": "c.txt"}"#, Reason::NotASound("c.txt".to_owned())),
        (r#"{"prompt": "x", "audio": "d.wav"}"#, Reason::File("d.wav does not exist".to_owned())),
    ] {
        let (_, notes) = sounds(row.as_bytes(), &open, &estimate_tokens);
        assert_eq!(notes.skipped[0].reason, reason, "{row}");
    }
}
