use super::*;
use proptest::prelude::*;
use std::io::Write as _;

/// Heads and body of the reads, or the error.
fn decode(reads: &[&[u8]]) -> (Vec<Head>, Vec<u8>, Decoder, Result<(), Error>) {
    let mut decoder = Decoder::new(1024);
    let (mut heads, mut body) = (Vec::new(), Vec::new());
    let mut result = Ok(());
    for read in reads {
        result = decoder.feed(read, |part| match part {
            Part::Head(head) => heads.push(head.clone()),
            Part::Body(bytes) => body.extend_from_slice(bytes),
        });
    }
    (heads, body, decoder, result)
}

/// Decodes whole and byte by byte and insists on the same.
fn check(response: &str) -> (Head, String, Decoder) {
    let bytes: Vec<&[u8]> = response.as_bytes().chunks(1).collect();
    let (heads, body, decoder, result) = decode(&bytes);
    let (whole_heads, whole_body, ..) = decode(&[response.as_bytes()]);
    assert_eq!((&heads, &body), (&whole_heads, &whole_body));
    result.unwrap();
    assert_eq!(heads.len(), 1);
    (heads[0].clone(), String::from_utf8(body).unwrap(), decoder)
}

fn error(response: &str) -> Error {
    let (_, _, _, result) = decode(&[response.as_bytes()]);
    result.unwrap_err()
}

#[test]
fn chunked_with_extensions_and_trailers() {
    let (head, body, decoder) = check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nX-Served-By: node7\r\n\r\n\
         3;a=b\r\nabc\r\n0A \r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n",
    );
    assert_eq!((head.status, head.served_by.as_deref()), (200, Some("node7")));
    assert_eq!(body, "abc0123456789");
    assert!(decoder.is_done() && decoder.is_reusable());
}

#[test]
fn counted_body_and_bytes_behind_it() {
    let (_, body, decoder) = check("HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabcX");
    assert_eq!(body, "abc");
    assert!(decoder.is_done() && !decoder.is_reusable());
}

#[test]
fn h15_length_zero_is_done_at_the_head() {
    assert!(check("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").2.is_reusable());
}

#[test]
fn a_body_without_length_ends_at_close() {
    let (_, body, decoder) = check("HTTP/1.1 200 OK\n\nabc");
    assert_eq!(body, "abc");
    assert!(decoder.ends_at_close() && !decoder.is_done() && !decoder.is_reusable());
}

#[test]
fn interim_heads_and_empty_lines_are_skipped() {
    let (head, body, _) = check(
        "\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
         HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx",
    );
    assert_eq!((head.status, body.as_str()), (200, "x"));
}

#[test]
fn statuses_without_body() {
    assert!(check("HTTP/1.1 204 No Content\r\n\r\n").2.is_reusable());
}

#[test]
fn connection_option_and_version_decide_about_reuse() {
    for (head, reusable) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: x, Close\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n", true),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            false,
        ),
    ] {
        assert_eq!(check(head).2.is_reusable(), reusable, "{head}");
    }
}

#[test]
fn headers_of_interest_are_kept() {
    let (head, ..) = check(
        "HTTP/1.1 429 X\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\nRetry-After: 2\r\n\
         Location: /x\r\nContent-Encoding: gzip\r\ncontent-length: 0\r\nx-worker-id: w\r\n\
         x-backend: b\r\n\r\n",
    );
    assert_eq!(head.media_type(), "text/event-stream");
    assert_eq!(head.retry_after.as_deref(), Some("2"));
    assert_eq!(head.location.as_deref(), Some("/x"));
    assert_eq!(head.content_encoding.as_deref(), Some("gzip"));
    assert_eq!(head.served_by.as_deref(), Some("b"), "the better known header wins");
}

#[test]
fn broken_framing_is_an_error() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for body in ["x\r\n", "\r\n", "1\r\nabc", "12345678123456781\r\n", "1g\r\n"] {
        let error = error(&format!("{chunked}{body}"));
        assert!(matches!(error, Error::Chunk(_)), "{body:?}: {error}");
    }
    let head = "HTTP/1.1 200 OK\r\n";
    for length in ["x", "-1", "+1", "", "1, 2", "99999999999999999999"] {
        let error = error(&format!("{head}content-length: {length}\r\n\r\n"));
        assert_eq!(error, Error::ContentLength, "{length:?}");
    }
    let twice = error(&format!("{head}content-length: 1\r\ncontent-length: 2\r\n\r\n"));
    assert_eq!(twice, Error::ContentLength);
    let coding = error(&format!("{head}transfer-encoding: gzip, chunked\r\n\r\n"));
    assert!(matches!(coding, Error::TransferCoding(_)));
    for other in ["SSH-2.0-OpenSSH\r\n\r\n", "\x15\x03\x01\n\n", "HTTP/1.1 101 Up\r\n\r\n"] {
        assert!(matches!(error(other), Error::Head(_)), "{other:?}");
    }
}

#[test]
fn heads_chunk_lines_and_trailers_are_bounded() {
    let long = "x".repeat(8192);
    let head = format!("HTTP/1.1 200 OK\r\nx: {long}");
    assert_eq!(error(&head), Error::HeadTooLarge(1024));
    let bytes: Vec<&[u8]> = head.as_bytes().chunks(1).collect();
    assert_eq!(decode(&bytes).3, Err(Error::HeadTooLarge(1024)));
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    assert!(matches!(error(&format!("{chunked}1;{long}\r\n")), Error::Chunk(_)));
    assert_eq!(error(&format!("{chunked}0\r\n{long}\r\n")), Error::HeadTooLarge(1024));
    assert_eq!(error(&"\r\n".repeat(4096)), Error::HeadTooLarge(1024));
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000);
    assert_eq!(error(&interim), Error::HeadTooLarge(1024));
}

fn inflate(coding: &str, pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, Error> {
    let mut decompressor = Decompressor::new(coding)?;
    pieces
        .iter()
        .map(|piece| {
            let mut out = Vec::new();
            decompressor.feed(piece, |bytes| out.extend_from_slice(bytes))?;
            Ok(out)
        })
        .collect()
}

#[test]
fn h08_every_flush_comes_out_at_once() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut pieces = Vec::new();
    for text in ["one", "two", "three"] {
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.flush().unwrap();
        pieces.push(std::mem::take(encoder.get_mut()));
    }
    pieces.push(encoder.finish().unwrap());
    let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    assert_eq!(inflate("gzip", &pieces).unwrap(), [&b"one"[..], b"two", b"three", b""]);
}

#[test]
fn deflate_is_read_with_and_without_its_zlib_header() {
    let text = b"abcabcabc".repeat(5000);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    let mut bare = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(&text).unwrap();
    bare.write_all(&text).unwrap();
    for packed in [zlib.finish().unwrap(), bare.finish().unwrap()] {
        assert_eq!(inflate("Deflate", &[&packed]).unwrap().concat(), text);
        let bytes: Vec<&[u8]> = packed.chunks(1).collect();
        assert_eq!(inflate("deflate", &bytes).unwrap().concat(), text);
    }
}

#[test]
fn gzip_with_every_optional_field_and_a_second_member() {
    let packed = flate2::GzBuilder::new()
        .extra(vec![1, 2, 3])
        .filename("name")
        .comment("comment")
        .write(Vec::new(), flate2::Compression::default());
    let mut packed = packed;
    packed.write_all(b"first").unwrap();
    let mut packed = packed.finish().unwrap();
    let mut second = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    second.write_all(b"second").unwrap();
    packed.extend(second.finish().unwrap());
    let bytes: Vec<&[u8]> = packed.chunks(1).collect();
    assert_eq!(inflate("x-gzip", &bytes).unwrap().concat(), b"firstsecond");
    assert_eq!(inflate("gzip", &[&packed]).unwrap().concat(), b"firstsecond");
}

#[test]
fn unknown_codings_and_broken_data_are_errors() {
    assert_eq!(inflate("br", &[]), Err(Error::UnknownCoding("br".to_owned())));
    assert_eq!(inflate("gzip", &[b"plain text"]), Err(Error::Compressed));
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(inflate("gzip", &[&head, &[0xff; 64]]), Err(Error::Compressed));
    assert_eq!(inflate("deflate", &[&[0x78, 0x9c], &[0xff; 64]]), Err(Error::Compressed));
}

#[test]
fn a_chunk_size_cut_by_a_read_is_one_size() {
    let body = format!("12\r\n{}\r\n5\r\nabcde\r\n0\r\n\r\n", "x".repeat(0x12));
    let response = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}");
    let (_, want, ..) = decode(&[response.as_bytes()]);
    assert_eq!(want.len(), 0x12 + 5);
    for cut in 0..response.len() {
        let (one, two) = response.as_bytes().split_at(cut);
        assert_eq!(decode(&[one, two]).1, want, "cut at {cut}");
    }
}

#[test]
fn an_open_answer_keeps_no_room_for_its_head() {
    for cut in [10, 1000] {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".as_bytes();
        let (one, two) = head.split_at(cut.min(head.len()));
        let (heads, body, decoder, _) = decode(&[one, two]);
        assert_eq!((heads.len(), body.len(), decoder.head.capacity()), (1, 3, 0));
    }
}

/// Pieces of a chunked body, right ones mostly.
fn chunk_piece() -> impl Strategy<Value = String> {
    let sized = |size: usize, style: usize| {
        let data = "data: {}\n\n".chars().cycle().take(size).collect::<String>();
        match style {
            0 => format!("{size:X}\r\n{data}\r\n"),
            1 => format!("{size:x};x=y\r\n{data}\r\n"),
            2 => format!("{size:07x} \n{data}\n"),
            3 => format!("{size:09x}\r\n{data}\r\n"),
            _ => format!("{size:x}\r\n{data}\r\n"),
        }
    };
    let broken = prop::sample::select(vec![
        "0\r\n\r\n",
        "0\r\nx: y\r\n\r\n",
        "\r\n",
        "\n",
        "x",
        "1",
        "2\r\n",
        "1\r\nab\r\n",
        "5;\r\nabc",
        "00000000\r\n",
        "fffffff\r\n",
        "ffffffffffffffff\r\n",
        "1\r\na\n",
        "1\r\na\r\r\n",
    ]);
    prop_oneof![
        6 => (1usize..300, 0usize..9).prop_map(move |(size, style)| sized(size, style)),
        1 => broken.prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_chunked_body_is_the_same_however_it_is_cut(
        pieces in prop::collection::vec(chunk_piece(), 0..8), size in 1usize..400,
    ) {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let bytes = [head, &pieces.concat()].concat().into_bytes();
        let facts = |reads: &[&[u8]]| {
            let (heads, body, decoder, result) = decode(reads);
            (heads, body, result, decoder.is_done(), decoder.is_reusable(), decoder.state)
        };
        let want = facts(&bytes.chunks(1).collect::<Vec<_>>());
        prop_assert_eq!(facts(&[&bytes]), want.clone());
        prop_assert_eq!(facts(&bytes.chunks(size).collect::<Vec<_>>()), want);
    }
}
