//! Every kind of failure, each made by a peer or a lack of something.

use std::net::TcpListener;
use std::sync::Arc;

use drive::tls::Trust;
use fake::{Routes, Script, Server};
use measure::{FailureKind, NotSentKind, Outcome, Record, Span};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use workload::{After, PromptRef, Request};

use crate::build::{Bench, answer, closed, ending, even, finish, stream, text};
use crate::process::{argument, in_child};
use crate::tls::Secure;

/// What makes a request fail in a certain way.
enum Maker {
    /// A server that plays this.
    Server(Script),
    /// A server that plays this, asked by a client with short time-outs.
    Slow(Script),
    /// No server that could be reached: its address.
    Nowhere(fn() -> String),
    /// A plain server that is asked with TLS.
    PlainForTls,
}

/// The maker of a kind; `None` when nobody has written one.
fn maker(kind: FailureKind) -> Option<Maker> {
    use FailureKind as Kind;
    use Maker::{Nowhere, PlainForTls, Server, Slow};
    let sse = |body: &str| stream().chunk(0, body);
    Some(match kind {
        Kind::Dns => Nowhere(unresolvable),
        Kind::Connect => Nowhere(closed_port),
        Kind::Tls => PlainForTls,
        Kind::HttpStatus => Server(Script::whole(500, "text/plain", "no")),
        Kind::Redirect => Server(Script::new().send(
            0,
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n",
        )),
        Kind::BadContentType => Server(Script::whole(200, "text/html", "<html>sign in</html>")),
        Kind::UnsupportedEncoding => Server(Script::new().send(
            0,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: br\r\ncontent-length: 3\r\n\r\nabc",
        )),
        Kind::MalformedEvent => Server(ending(sse("data: {\"choices\": [\n\n"), 0)),
        Kind::MalformedHttp => Server(Script::new().send(0, "SSH-2.0-OpenSSH_9.6\r\n\r\n").close(0)),
        Kind::InBand => Server(
            sse(&text("one")).chunk(0, "data: {\"error\":{\"message\":\"boom\"}}\n\n").last_chunk(0),
        ),
        Kind::Aborted => Server(sse(&text("one")).chunk(0, finish("abort")).last_chunk(0)),
        Kind::Truncated => Server(sse(&text("one")).last_chunk(0)),
        Kind::Disconnected => Server(sse(&text("one")).reset(5)),
        Kind::IdleTimeout => Slow(sse(&text("one")).stall(0)),
        Kind::TotalTimeout => Slow(Script::new().stall(0)),
        Kind::TooLarge => Server(Script::new().send(
            0,
            format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n\r\n", "a".repeat(80 << 10)),
        )),
    })
}

/// A name with an empty label: no resolver can put it into a question, so none
/// is asked.
fn unresolvable() -> String {
    "http://no..host:1".to_owned()
}

/// A port that was free a moment ago.
fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn made(maker: Maker) -> Record {
    let (script, slow) = match maker {
        Maker::Nowhere(url) => return Bench::at(&url()).run().one(),
        Maker::PlainForTls => {
            let refusal = Script::new().send(0, "HTTP/1.1 400 Bad Request\r\n\r\n");
            let server = Server::start_scripted(Routes::new().greet(refusal)).unwrap();
            return Bench::at(&server.url().replace("http:", "https:")).run().one();
        }
        Maker::Server(script) => (script, false),
        Maker::Slow(script) => (script, true),
    };
    let server = Server::start_scripted(Routes::new().on("/", script)).unwrap();
    let mut bench = Bench::at(&server.url());
    if slow {
        (bench.idle_timeout, bench.request_timeout) = (Span::from_ms(60), Span::from_ms(300));
    }
    bench.run().one()
}

#[test]
fn every_failure_kind_happens() {
    for kind in FailureKind::ALL {
        let name = kind.name();
        let maker = maker(*kind).unwrap_or_else(|| panic!("{name} has no maker"));
        let record = made(maker);
        assert_eq!(record.outcome, Outcome::Failed(*kind), "{:?}", record.answer.message);
        assert!(record.stamps.ended_at.is_some(), "{name} has no end");
        let unsent = [FailureKind::Dns, FailureKind::Connect, FailureKind::Tls].contains(kind);
        assert_eq!(record.stamps.sent_at.is_none(), unsent, "{name}");
    }
}

#[test]
fn what_the_server_said_is_kept_with_its_refusal() {
    let refusal = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\ncontent-type: application/json\r\n\
                   content-length: 62\r\n\r\n{\"error\":{\"message\":\"slow down\",\"code\":\"rate_limit_exceeded\"}}";
    let record = made(Maker::Server(Script::new().send(0, refusal)));
    assert_eq!(record.outcome, Outcome::Failed(FailureKind::HttpStatus));
    assert_eq!(record.answer.http_status, Some(429));
    assert_eq!(record.answer.retry_after, Some(Span::from_ms(2_000)));
    assert_eq!(record.answer.message.as_deref(), Some("slow down"));
    assert_eq!(record.answer.error_code.as_deref(), Some("rate_limit_exceeded"));
}

/// Requests that are all intended at once, of which only one connection is
/// opened ahead.
fn crowd(count: u32) -> Vec<Request> {
    let request = |index| Request {
        index,
        after: After::Instant(measure::At::ZERO),
        session: index,
        turn: 0,
        labels: Vec::new(),
        prompt: PromptRef::Listed(0),
        input_tokens: None,
        max_output_tokens: None,
        output_forced: false,
        route: workload::Route::default(),
    };
    (0..count).map(request).collect()
}

/// Leaves this process `free` more file descriptors.
fn leave_descriptors(free: u64) {
    let used = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, used + free, hard).unwrap();
}

#[test]
fn h23_a_client_without_descriptors_blames_itself() {
    const NAME: &str = "failures::h23_a_client_without_descriptors_blames_itself";
    let Some(url) = argument() else {
        let server = Server::start_scripted(Routes::new().on("/", answer(300))).unwrap();
        return in_child(NAME, &server.url());
    };
    let mut bench = Bench::at(&url).load(even(1.0), 1);
    bench.requests = Some(crowd(80));
    leave_descriptors(30);
    let ran = bench.run();
    assert_eq!(ran.records.len(), 80);
    let short = ran.count(Outcome::NotSent(NotSentKind::ClientResource));
    assert!(short >= 50, "{short} of 80 met the limit");
    assert_eq!(ran.count(Outcome::Ok) + short, 80, "the server is blamed for our limit");
    for record in ran.records.iter().filter(|record| record.outcome != Outcome::Ok) {
        assert_eq!(record.stamps.sent_at, None);
        assert!(record.answer.message.as_deref().unwrap().contains("open files"));
    }
}

#[test]
fn h23_connections_opened_ahead_leave_room_for_the_rest_of_the_client() {
    const NAME: &str =
        "failures::h23_connections_opened_ahead_leave_room_for_the_rest_of_the_client";
    let Some(url) = argument() else {
        let server = Server::start_scripted(Routes::new().on("/", answer(20))).unwrap();
        return in_child(NAME, &server.url());
    };
    let bench = Bench::at(&url).load(closed(60), 120);
    leave_descriptors(30);
    let ran = bench.run();
    let short = ran.count(Outcome::NotSent(NotSentKind::ClientResource));
    assert_eq!(ran.end.lost_workers, 0, "a lack of descriptors is no lost worker");
    assert!(short >= 1 && ran.count(Outcome::Ok) >= 1);
    assert_eq!(ran.count(Outcome::Ok) + short, 120);
}

/// A check of certificates with a defect.
#[derive(Debug)]
struct Defect;

impl ServerCertVerifier for Defect {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        panic!("a defect of the client")
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        unreachable!("the certificate comes first")
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        unreachable!("the certificate comes first")
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

#[test]
fn requests_of_a_worker_that_is_lost_to_a_defect_say_so() {
    let server = Secure::start("127.0.0.1");
    for load in [closed(2), even(200.0)] {
        let mut bench = server.ask(Trust::Anybody).load(load.clone(), 6);
        bench.tls = Arc::new(
            ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Defect))
                .with_no_client_auth(),
        );
        let ran = bench.run();
        assert_eq!((ran.records.len(), ran.end.lost_workers), (6, 1), "{load:?}");
        assert_eq!(ran.count(Outcome::NotSent(NotSentKind::WorkerLost)), 6, "{load:?}");
    }
}
