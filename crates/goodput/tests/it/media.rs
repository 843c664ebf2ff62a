//! Pictures and sounds in prompts: what is sent, what is refused, what is said.

use std::collections::BTreeSet;

use fake::Server;
use serde_json::{Value, json};

use crate::program::{Told, Workplace};
use crate::servers::engine;

/// A PNG of one pixel, by its first bytes and end.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

fn bench(workplace: &Workplace, server: &Server, more: &[&str]) -> Told {
    let url = server.url();
    let start = ["bench", "--url", &url, "--model", "m", "--out", "run", "--allow-invalid"];
    workplace.run(&[&start[..], more].concat())
}

/// The content of the user's message of every request, in the order of the
/// schedule.
fn contents(server: &Server) -> Vec<Value> {
    let mut sent: Vec<(u64, Value)> = server
        .requests()
        .into_iter()
        .map(|request| {
            let id = request.header("x-request-id").unwrap().to_owned();
            let index = id.rsplit('-').next().unwrap().parse().unwrap();
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            (index, body["messages"][0]["content"].clone())
        })
        .collect();
    sent.sort_by_key(|(index, _)| *index);
    sent.into_iter().map(|(_, content)| content).collect()
}

fn images(content: &Value) -> Vec<String> {
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(|part| part["image_url"]["url"].as_str()).map(str::to_owned).collect()
}

const SMALL: &[&str] = &[
    "--dataset-name",
    "random-mm",
    "--random-mm-bucket-config",
    "{(16, 24, 1): 0.5, (32, 8, 1): 0.5, (720, 1280, 16): 0.0}",
    "--random-mm-base-items-per-request",
    "2",
    "--random-mm-num-mm-items-range-ratio",
    "0.5",
    "--isl",
    "20",
    "--osl",
    "2",
    "-n",
    "12",
];

#[test]
fn random_pictures_go_with_every_prompt_and_are_told() {
    let (workplace, server) = (Workplace::new(), engine());
    bench(&workplace, &server, SMALL).exits(0);
    let contents = contents(&server);
    let counts: Vec<usize> = contents.iter().map(|content| images(content).len()).collect();
    assert!(counts.iter().all(|count| (1..=3).contains(count)), "{counts:?}");
    assert!(counts.iter().collect::<BTreeSet<_>>().len() > 1, "{counts:?}");
    let all: Vec<String> = contents.iter().flat_map(images).collect();
    assert!(all.iter().all(|url| url.starts_with("data:image/jpeg;base64,/9j/")));
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "no picture comes twice");
    // The engine counts a picture as 256 tokens.
    for (row, count) in workplace.export("run").iter().zip(&counts) {
        assert_eq!(row["input_tokens"], json!(20 + 256 * count), "{row}");
    }
    let summary: Value = serde_json::from_str(&workplace.read("run/summary.json")).unwrap();
    assert_eq!(summary["workload"]["source"], "synthetic text and pictures (random-mm)");
    let notes = summary["workload"]["notes"].to_string();
    assert!(notes.contains("1 to 3 pictures of noise as jpeg"), "{notes}");
    assert!(notes.contains("24x16 (") && notes.contains("8x32 ("), "{notes}");
}

#[test]
fn one_seed_is_one_set_of_pictures_whatever_the_threads() {
    let sent = |more: &[&str]| {
        let (workplace, server) = (Workplace::new(), engine());
        let png = ["--random-mm-image-format", "png", "--seed", "5"];
        bench(&workplace, &server, &[SMALL, &png, more].concat()).exits(0);
        contents(&server)
    };
    let as_is = ["--prefix-cache", "as-is"];
    let one = sent(&as_is);
    assert!(images(&one[0])[0].starts_with("data:image/png;base64,iVBORw0KGgo"));
    assert_eq!(one, sent(&[&as_is[..], &["--threads", "3"]].concat()));
    // A cold run's pictures are in no cache, so they are another run's.
    let cold = sent(&[]);
    assert_eq!(one.len(), cold.len());
    assert!(one.iter().zip(&cold).all(|(a, b)| images(a).len() == images(b).len()));
    assert_ne!(images(&one[0]), images(&cold[0]));
}

#[test]
fn pictures_of_files_are_sent_and_bad_rows_are_told() {
    let (workplace, server) = (Workplace::new(), engine());
    std::fs::create_dir(workplace.at("set")).unwrap();
    workplace.file("set/a.png", PNG);
    workplace.file("set/b.txt", "text");
    let rows = workplace.file(
        "set/rows.jsonl",
        concat!(
            "{\"prompt\": \"What is it?\", \"image_files\": [\"a.png\"]}\n",
            "{\"prompt\": \"And it?\", \"image_files\": [\"gone.png\"]}\n",
            "{\"prompt\": \"And it?\", \"image_files\": \"b.txt\"}\n",
            "{\"content\": [{\"type\": \"image\", \"image\": \"https://h/x.png\"}, {\"type\": \"text\", \"text\": \"Whose?\"}]}\n",
        ),
    );
    let set = ["--dataset-name", "custom_image", "--dataset-path", rows, "--disable-shuffle"];
    bench(&workplace, &server, &[&set[..], &["-n", "2", "--osl", "2"]].concat()).exits(0);
    let image = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    assert_eq!(
        contents(&server),
        [
            json!([
                {"type": "text", "text": "What is it?"},
                image("data:image/png;base64,iVBORw0KGgo="),
            ]),
            json!([image("https://h/x.png"), {"type": "text", "text": "Whose?"}]),
        ]
    );
    let notes = workplace.read("run/summary.json");
    for said in ["2 rows were skipped", "line 2: ", "gone.png", "line 3: b.txt is no PNG"] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    // Nothing is fetched, so an address cannot become data.
    let strict = [&set[..], &["--custom-ensure-client-side-data", "--dry-run", "--json", "-"]];
    let told = workplace.run(&[&["bench"], strict[0], strict[1]].concat()).exits(0);
    assert!(told.out.contains("line 4: an image at an address is not fetched here"));
}

#[test]
fn sounds_and_parts_of_custom_rows_are_sent_as_they_are() {
    let (workplace, server) = (Workplace::new(), engine());
    workplace.file("a.wav", "RIFF");
    let row = "{\"prompt\": \"What is said?\", \"audio\": \"a.wav\"}\n";
    let rows = workplace.file("sounds.jsonl", row);
    let set = ["--dataset-name", "custom_audio", "--dataset-path", rows];
    bench(&workplace, &server, &[&set[..], &["-n", "1", "--osl", "2"]].concat()).exits(0);
    let sound =
        json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}});
    assert_eq!(contents(&server)[0], json!([{"type": "text", "text": "What is said?"}, sound]));

    let server = engine();
    let part = json!({"type": "image_url", "image_url": {"url": "https://h/x", "detail": "low"}});
    let messages = json!([{"role": "user", "content": [part, {"type": "text", "text": "Hm?"}]}]);
    let rows = workplace.file("rows.jsonl", json!({"messages": messages}).to_string());
    let set = ["--dataset-name", "custom", "--dataset-path", rows, "--out", "other"];
    bench(&workplace, &server, &[&set[..], &["-n", "1", "--osl", "2"]].concat()).exits(0);
    assert_eq!(contents(&server)[0], messages[0]["content"]);
}

#[test]
fn an_api_without_a_place_for_media_is_refused_before_the_run() {
    let workplace = Workplace::new();
    let refused = |more: &[&str]| {
        let start = ["bench", "--dry-run", "--url", "http://h", "--model", "m"];
        workplace.run(&[&start[..], more].concat()).exits(2)
    };
    for backend in ["openai", "tgi", "sglang", "triton"] {
        let told = refused(&["--dataset-name", "random-mm", "--backend", backend]);
        told.says(&["--backend", "takes no images", "openai-chat", "anthropic"]);
    }
    workplace.file("a.mp3", "x");
    let rows = workplace.file("rows.jsonl", "{\"prompt\": \"x\", \"audio\": \"a.mp3\"}");
    let set = ["--dataset-name", "custom_audio", "--dataset-path", rows];
    let told = refused(&[&set[..], &["--backend", "anthropic"]].concat());
    told.says(&["anthropic takes no audio", "give --backend openai-chat"]);
    let film = "{(720, 1280, 16): 1.0}";
    let set = ["--dataset-name", "random-mm", "--random-mm-bucket-config", film];
    refused(&set).says(&["--random-mm-bucket-config", "is a video"]);
    let set = ["--dataset-name", "random-mm", "--random-mm-limit-mm-per-prompt", "3"];
    refused(&set).says(&["--random-mm-limit-mm-per-prompt", "image"]);
    refused(&["--random-mm-base-items-per-request", "3"]).says(&["random-mm only"]);
}
