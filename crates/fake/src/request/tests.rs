use super::*;

const LIMITS: Limits = Limits { head_bytes: 1024, body_bytes: 64 };

/// All that a reader makes of bytes that come in pieces of `step`.
fn read(bytes: &[u8], step: usize) -> Result<Vec<Request>, Refusal> {
    let mut reader = RequestReader::new(LIMITS);
    let mut requests = Vec::new();
    for piece in bytes.chunks(step) {
        reader.push(piece);
        while let Progress::Whole(request) = reader.advance()? {
            requests.push(request);
        }
    }
    Ok(requests)
}

fn one(bytes: &[u8]) -> Request {
    let whole = read(bytes, usize::MAX).unwrap();
    assert_eq!(whole.len(), 1);
    for step in 1..8 {
        assert_eq!(read(bytes, step).unwrap(), whole, "in pieces of {step}");
    }
    whole.into_iter().next().unwrap()
}

fn status(bytes: &[u8]) -> u16 {
    let refused = read(bytes, usize::MAX).unwrap_err();
    assert_eq!(read(bytes, 1).unwrap_err().status, refused.status);
    refused.status
}

#[test]
fn reads_head_and_sized_body_in_any_cut() {
    let request = one(
        b"\r\nPOST /v1/completions?a=b HTTP/1.1\r\nHost: x\r\nX-Request-Id: r-1\r\nContent-Length: 5\r\n\r\nhello",
    );
    assert_eq!((request.method.as_str(), request.path()), ("POST", "/v1/completions"));
    assert_eq!(request.target, "/v1/completions?a=b");
    assert_eq!(request.header("x-request-id"), Some("r-1"));
    assert_eq!(request.body, b"hello");
    assert!(request.keep_alive && !request.http_1_0);
}

#[test]
fn reads_chunked_body_with_extensions_and_trailers() {
    let request = one(
        b"POST / HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n2;x=y\r\nhe\r\n0003\r\nllo\r\n0\r\nt: 1\r\n\r\n",
    );
    assert_eq!(request.body, b"hello");
}

#[test]
fn reads_two_requests_from_one_read() {
    let bytes = b"GET /a HTTP/1.1\n\nGET /b HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n";
    let requests = read(bytes, usize::MAX).unwrap();
    assert_eq!(requests, read(bytes, 1).unwrap());
    let targets: Vec<_> = requests.iter().map(|request| request.target.as_str()).collect();
    assert_eq!(targets, ["/a", "/b"]);
    assert!(requests[1].http_1_0 && requests[1].keep_alive);
}

#[test]
fn connection_close_is_heard_in_a_list() {
    assert!(!one(b"GET / HTTP/1.1\r\nConnection: te, Close\r\n\r\n").keep_alive);
    assert!(!one(b"GET / HTTP/1.0\r\n\r\n").keep_alive);
}

#[test]
fn continue_is_owed_once_and_only_while_the_body_is_missing() {
    let head = b"POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n";
    let mut reader = RequestReader::new(LIMITS);
    reader.push(head);
    assert_eq!(reader.advance(), Ok(Progress::Continue));
    reader.push(b"a");
    assert_eq!(reader.advance(), Ok(Progress::More));
    reader.push(b"b");
    assert!(matches!(reader.advance(), Ok(Progress::Whole(_))));
    reader.push(head);
    reader.push(b"ab");
    assert!(matches!(reader.advance(), Ok(Progress::Whole(_))));
}

#[test]
fn hostile_requests_are_refused_with_a_status() {
    let long_value = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(2000));
    let many_fields = format!("GET / HTTP/1.1\r\n{}\r\n", "a:b\r\n".repeat(150));
    let long_size =
        format!("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{}", "0".repeat(2000));
    let long_trailer = format!(
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n{}",
        "a: b\r\n".repeat(500)
    );
    let with = |lines: &str, body: &str| format!("POST / HTTP/1.1\r\n{lines}\r\n\r\n{body}");
    let table = [
        (400, "\0\x01\x02 nonsense\r\n\r\n".to_owned()),
        (400, "GET  HTTP/1.1\r\n\r\n".to_owned()),
        (400, "GET / HTTP/1.1\r\nno colon\r\n\r\n".to_owned()),
        (400, "\x16\x03\x01 tls hello\n\n".to_owned()),
        (505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
        (431, long_value),
        (431, many_fields),
        (431, "x".repeat(2000)),
        (400, with("content-length: -1", "")),
        (400, with("content-length: 1\r\ncontent-length: 2", "a")),
        (400, with("content-length: 0x1", "")),
        (400, with("content-length:", "")),
        (413, with("content-length: 65", "")),
        (413, with("content-length: 99999999999999999999999999", "")),
        (400, with("content-length: 1\r\ntransfer-encoding: chunked", "")),
        (501, with("transfer-encoding: gzip", "")),
        (501, with("transfer-encoding: gzip, chunked", "")),
        (400, with("transfer-encoding: chunked", "x\r\n")),
        (400, with("transfer-encoding: chunked", "\r\n")),
        (400, with("transfer-encoding: chunked", "-1\r\n")),
        (400, with("transfer-encoding: chunked", "2\r\nhello")),
        (413, with("transfer-encoding: chunked", "41\r\n")),
        (413, with("transfer-encoding: chunked", "fffffffffffffff\r\n")),
        (400, with("transfer-encoding: chunked", "fffffffffffffffff\r\n")),
        (400, long_size),
        (431, long_trailer),
        (400, "POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n".to_owned()),
    ];
    for (expected, bytes) in table {
        assert_eq!(status(bytes.as_bytes()), expected, "{bytes:?}");
    }
}

#[test]
fn any_bytes_give_requests_or_a_refusal() {
    // A fixed walk over byte soup that is rich in what the grammar cares for.
    const SOUP: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\n",
        b"POST /x HTTP/1.0\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"content-length: 3",
        b"transfer-encoding: chunked",
        b"3\r\nabc\r\n",
        b"0\r\n\r\n",
        b":",
        b"\0",
        b"\xff",
        b"abc",
    ];
    let mut state = 1u64;
    for _ in 0..3000 {
        let mut bytes = Vec::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.extend_from_slice(SOUP[(state >> 33) as usize % SOUP.len()]);
        }
        let whole = read(&bytes, usize::MAX);
        let cut = read(&bytes, 1);
        assert_eq!(whole.is_ok(), cut.is_ok(), "{bytes:?}");
        if let (Ok(whole), Ok(cut)) = (whole, cut) {
            assert_eq!(whole, cut, "{bytes:?}");
        }
    }
}
