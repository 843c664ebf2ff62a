use super::*;

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

/// An answer as it goes into the messages of a request.
fn sent(text: &str, calls: &[ToolCall]) -> Value {
    let message = answer(text, calls);
    let mut object = json!({"role": message.role, "content": message.content});
    if let Some(members) = message.members {
        let members: serde_json::Map<String, Value> = serde_json::from_str(&members).unwrap();
        object.as_object_mut().unwrap().extend(members);
    }
    object
}

fn result_of(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

#[test]
fn an_answer_of_calls_alone_has_no_text() {
    assert_eq!(sent("Hello.", &[]), json!({"role": "assistant", "content": "Hello."}));
    let want = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
        {"id": "call_1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]});
    assert_eq!(sent("", &[call("x", "f", "{\"a\":1}"), call("", "g", "")]), want);
}

#[test]
fn results_take_the_ids_of_the_calls_in_this_run() {
    let calls = sent("", &[call("x", "f", "{}"), call("y", "g", "{}")]);
    let user = json!({"role": "user", "content": "go"});
    let scripted = [result_of("call_1", "1"), result_of("call_2", "2")];
    let mut messages = vec![user.clone(), calls.clone()];
    messages.extend(scripted.clone());
    assert!(!fit_results(&mut messages));
    assert_eq!(messages, [user.clone(), calls.clone(), result_of("x", "1"), result_of("y", "2")]);
    // Fewer results than calls.
    let mut messages = vec![calls.clone(), scripted[0].clone(), user.clone()];
    assert!(fit_results(&mut messages));
    assert_eq!(messages, [calls.clone(), result_of("x", "1"), result_of("y", ""), user.clone()]);
    // The model answered with a text.
    let mut messages = vec![sent("No.", &[]), scripted[0].clone()];
    assert!(fit_results(&mut messages));
    assert_eq!(messages[1], json!({"role": "user", "content": "1"}));
    let mut messages = vec![user.clone(), calls];
    assert!(fit_results(&mut messages));
    assert_eq!(messages.len(), 4);
}

#[test]
fn calls_and_results_are_in_the_form_of_each_api() {
    let calls = sent("Let me see.", &[call("x", "f", "{\"a\":1}"), call("y", "g", "oops")]);
    let messages = vec![calls, result_of("x", "1"), result_of("y", "2")];
    assert_eq!(
        json!(for_anthropic(messages.clone())),
        json!([
            {"role": "assistant", "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "x", "name": "f", "input": {"a": 1}},
                {"type": "tool_use", "id": "y", "name": "g", "input": {"arguments": "oops"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "x", "content": "1"},
                {"type": "tool_result", "tool_use_id": "y", "content": "2"},
            ]},
        ])
    );
    assert_eq!(
        json!(for_responses(messages.clone())),
        json!([
            {"role": "assistant", "content": "Let me see."},
            {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{\"a\":1}"},
            {"type": "function_call", "call_id": "y", "name": "g", "arguments": "oops"},
            {"type": "function_call_output", "call_id": "x", "output": "1"},
            {"type": "function_call_output", "call_id": "y", "output": "2"},
        ])
    );
    let ollama = for_ollama(messages);
    assert_eq!(ollama[0]["tool_calls"][0]["function"]["arguments"], json!({"a": 1}));
}
