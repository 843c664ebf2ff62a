//! The right answers of the cases, for the tests of the loaders.

use serde_json::Value;

/// What a case expects.
pub(super) fn expect(id: &str) -> Value {
    let cases: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/cases/cases.json"
    )))
    .unwrap();
    let cases = cases["cases"].as_array().unwrap();
    cases.iter().find(|case| case["id"] == id).unwrap()["expect"].clone()
}
