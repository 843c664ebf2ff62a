//! Pictures and sounds of the prompts: what the flags say of them, what the
//! API takes, and what must be said of the run.

use serde_json::Value;
use wire::api::{APIS, Api};
use workload::media::{Bucket, Media, MediaKind, Picture, PictureFormat, Pictures, Size};
use workload::prompt::PromptSource;

use crate::flags::Reader;

/// The name of the data set that draws pictures.
pub(super) const RANDOM: &str = "random-mm";

/// Sizes and their shares when none are given: vLLM's.
const USUAL: &[(u32, u32, f64)] = &[(256, 256, 0.5), (1280, 720, 0.5)];

/// How a bucket is written.
const FORM: &str = "must be sizes (height, width, 1) with their shares, as in \
                    '{(256, 256, 1): 0.5, (720, 1280, 1): 0.5}'";

/// The pictures that go with every prompt, where `--dataset-name` asks for any.
pub(super) fn pictures(reader: &mut Reader<'_>) -> Option<Pictures> {
    let name = reader.settings.text("dataset-name").unwrap_or_default();
    if name.replace('_', "-") != RANDOM {
        for flag in [
            "random-mm-base-items-per-request",
            "random-mm-num-mm-items-range-ratio",
            "random-mm-limit-mm-per-prompt",
            "random-mm-bucket-config",
            "random-mm-image-format",
        ] {
            if reader.settings.has(flag) {
                reader.wrong(flag, format!("concerns --dataset-name {RANDOM} only"));
            }
        }
        return None;
    }
    let base =
        reader.value("random-mm-base-items-per-request", "a whole number from 0").unwrap_or(1);
    let ratio = super::share(reader, "random-mm-num-mm-items-range-ratio").unwrap_or(0.0);
    let limit = limit(reader);
    let buckets = match reader.settings.text("random-mm-bucket-config") {
        Some(text) => match buckets(text) {
            Ok(buckets) => buckets,
            Err(rule) => {
                reader.wrong("random-mm-bucket-config", rule);
                return None;
            }
        },
        None => USUAL
            .iter()
            .map(|&(width, height, weight)| Bucket { size: Size { width, height }, weight })
            .collect(),
    };
    let formats: Vec<_> = PictureFormat::ALL.iter().map(|kind| (kind.name(), *kind)).collect();
    let pictures = Pictures {
        count: Pictures::vllm_count(base, ratio, limit),
        buckets,
        format: reader.choice("random-mm-image-format", &formats).unwrap_or_default(),
    };
    match pictures.check() {
        Ok(()) => Some(pictures),
        Err(rule) => {
            reader.wrong("random-mm-bucket-config", rule);
            None
        }
    }
}

/// The most pictures of one request.
fn limit(reader: &mut Reader<'_>) -> u32 {
    let most = workload::media::MAX_PICTURES;
    let name = "random-mm-limit-mm-per-prompt";
    let Some(text) = reader.settings.text(name) else { return most };
    let limits: Option<Value> = serde_json::from_str(text).ok().filter(Value::is_object);
    match limits.as_ref().map(|limits| limits.get("image").map(Value::as_u64)) {
        Some(Some(Some(limit))) => u32::try_from(limit).unwrap_or(most).min(most),
        // vLLM draws no picture either where a kind is not named.
        Some(None) => 0,
        _ => {
            reader.wrong(name, "must be an object of numbers, as in '{\"image\": 3}'");
            most
        }
    }
}

/// Reads the sizes as vLLM writes them, a dictionary of Python's with tuples
/// for keys, or the same as JSON with the tuples in quotes.
fn buckets(text: &str) -> Result<Vec<Bucket>, String> {
    let form = || FORM.to_owned();
    let inner = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let mut rest = inner.ok_or_else(form)?.trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (key, behind) = rest.split_once(')').ok_or_else(form)?;
        let key = key.trim_start_matches([' ', '"', '\'', '(']);
        let sides: Option<Vec<u32>> = key.split(',').map(|side| side.trim().parse().ok()).collect();
        let [height, width, frames] = sides.ok_or_else(form)?.try_into().map_err(|_| form())?;
        let behind = behind.trim_start_matches(['"', '\'']).trim_start();
        let behind = behind.strip_prefix(':').ok_or_else(form)?;
        let (weight, behind) = behind.split_once(',').unwrap_or((behind, ""));
        let weight: f64 = weight.trim().parse().map_err(|_| form())?;
        if frames == 1 {
            found.push(Bucket { size: Size { width, height }, weight });
        } else if weight != 0.0 {
            return Err(format!(
                "({height}, {width}, {frames}) is a video: videos are not made here, because an \
                 encoder of films is no part of a load generator; give their share 0, and files \
                 of your own as video_url parts with --dataset-name custom"
            ));
        }
        rest = behind.trim();
    }
    Ok(found)
}

/// Refuses what the API has no place for.
pub(super) fn check(
    reader: &mut Reader<'_>,
    api: Api,
    prompts: &PromptSource,
    pictures: Option<&Pictures>,
) {
    let of_rows = match prompts {
        PromptSource::List { prompts, .. } => prompts.as_slice(),
        _ => &[],
    };
    let drawn = pictures.map(|_| MediaKind::Image);
    let kinds = of_rows.iter().flat_map(|prompt| prompt.media().map(Media::kind)).chain(drawn);
    let takes = api.entry().media;
    let Some(missing) = kinds.into_iter().find(|kind| !takes.contains(kind)) else { return };
    let able: Vec<_> = APIS
        .iter()
        .filter(|entry| entry.media.contains(&missing))
        .filter_map(|entry| entry.names.first().copied())
        .collect();
    let (what, name) = (missing.name(), api.name());
    reader.wrong(
        "backend",
        format!(
            "{name} takes no {what}, and the prompts hold some; give --backend {}",
            able.join(" or ")
        ),
    );
}

/// What must be said of the media: bytes on the line are a load of their own.
pub(super) fn said(prompts: &PromptSource, pictures: Option<&Pictures>) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(pictures) = pictures {
        said.push(drawn(pictures));
    }
    if let PromptSource::List { prompts, .. } = prompts {
        let bytes = |media: &Media| match media {
            Media::Part { json, .. } => json.len(),
            Media::Picture(_) => 0,
        };
        let sizes: Vec<usize> = prompts
            .iter()
            .map(|prompt| prompt.media().map(bytes).sum())
            .filter(|bytes| *bytes > 0)
            .collect();
        if let Some(most) = sizes.iter().max() {
            let mean = sizes.iter().sum::<usize>() / sizes.len();
            said.push(format!(
                "{} rows hold pictures, sounds or films: {} of request body each on average, {} at \
                 most; their tokens are not in the lengths here, the server's count has them",
                sizes.len(),
                size(mean),
                size(*most)
            ));
        }
    }
    said
}

fn drawn(pictures: &Pictures) -> String {
    let (low, high) = pictures.count;
    let count = if low == high { low.to_string() } else { format!("{low} to {high}") };
    let used = pictures.buckets.iter().filter(|bucket| bucket.weight > 0.0);
    let sizes: Vec<String> = used
        .map(|bucket| {
            let sample = Picture { size: bucket.size, format: pictures.format, seed: 0, number: 0 };
            // Base64 makes four bytes of three.
            let bytes = wire::media::encode(&sample).len().div_ceil(3) * 4;
            format!("{}x{} ({})", bucket.size.width, bucket.size.height, size(bytes))
        })
        .collect();
    format!(
        "every request carries {count} pictures of noise as {}, width x height and bytes in the \
         body each: {}; their tokens are not in the lengths here, the server's count has them",
        pictures.format.name(),
        sizes.join(", ")
    )
}

/// Bytes in a unit that is read easily.
fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", (bytes + 500) / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_read_as_vllm_writes_them() {
        let python = "{(256, 256, 1): 0.5, (720, 1280, 1): 0.5, (720, 1280, 16): 0.0}";
        let json = r#"{"(256,256,1)": 0.5, "(720,1280,1)": 0.5}"#;
        for text in [python, json] {
            let found = buckets(text).unwrap();
            let plain: Vec<_> = found
                .iter()
                .map(|bucket| (bucket.size.width, bucket.size.height, bucket.weight))
                .collect();
            assert_eq!(plain, USUAL, "{text}");
        }
        let film = buckets("{(720, 1280, 16): 0.5}").unwrap_err();
        assert!(film.contains("is a video"), "{film}");
        for text in ["", "{", "{}x", "{(1,2): 1}", "{(1,2,3,4): 1}", "{(1,2,1) 1}", "{(a,2,1): 1}"]
        {
            assert_eq!(buckets(text), Err(FORM.to_owned()), "{text}");
        }
        assert_eq!(buckets("{}"), Ok(Vec::new()));
    }

    #[test]
    fn sizes_have_a_unit() {
        let told = [999, 1_499, 47_600, 1_250_000].map(size);
        assert_eq!(told, ["999 B", "1 kB", "48 kB", "1.2 MB"]);
    }
}
