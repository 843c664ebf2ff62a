//! The tokenisation cases of `testdata/cases/tokens`.

use serde_json::Value;
use tokens::read;
use workload::Lexicon;

fn file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cases/");
    std::fs::read(format!("{folder}{name}")).expect("a case file")
}

#[test]
fn k01_a_text_may_have_other_tokens_than_it_was_made_of() {
    let cases: Value = serde_json::from_slice(&file("cases.json")).unwrap();
    let cases = cases["cases"].as_array().unwrap();
    let expect = &cases.iter().find(|case| case["id"] == "K01").unwrap()["expect"];
    let rows: Value = serde_json::from_slice(&file("tokens/K01_cases.json")).unwrap();
    let bytes = file("tokens/K01_tokenizer.json");
    let tokenizer = read("K01", "tokenizer.json", &bytes).unwrap();
    for (place, row) in rows.as_array().unwrap().iter().enumerate() {
        let ids: Vec<u32> = serde_json::from_value(row["ids"].clone()).unwrap();
        let text = tokenizer.decode(&ids);
        assert_eq!(row["text"], text);
        let again = tokenizer.encode(&text);
        assert_eq!(row["re"], serde_json::json!(again));
        assert_eq!(expect["re_len"][place], again.len());
        assert_eq!(expect["roundtrip_equal"][place], again == ids, "{ids:?}");
        assert_eq!(tokenizer.count(&text) as usize, again.len());
    }
    // No length can be written of these letters, and that is said.
    let said = Lexicon::proven(&*tokenizer).unwrap_err().to_string();
    assert!(said.contains("K01") && said.contains("lengths are estimates"), "{said}");
}
