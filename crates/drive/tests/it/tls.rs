//! TLS with a certificate of our own making.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use drive::tls::{Trust, client_config};
use measure::{FailureKind, Outcome, Record, Span};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::build::{Bench, DONE, closed, finish, text};

/// A TLS server that answers every request with a stream of two tokens. Its
/// threads end with their connections.
pub(crate) struct Secure {
    address: SocketAddr,
    certificate: Vec<u8>,
}

impl Secure {
    /// With a certificate for this name, which also signed it.
    pub(crate) fn start(name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let config = Arc::new(config);
        std::thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                std::thread::spawn(move || serve(&config, tcp));
            }
        });
        Self { address, certificate: made.cert.pem().into_bytes() }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub(crate) fn ask(&self, trust: Trust) -> Bench {
        let mut bench = Bench::at(&format!("https://{}", self.address)).load(closed(1), 2);
        bench.tls = client_config(&trust).unwrap();
        bench
    }
}

/// Answers until the peer goes; a peer that goes in the handshake is what the
/// tests are about.
fn serve(config: &Arc<ServerConfig>, tcp: TcpStream) -> Option<()> {
    // Nagle would join the tokens.
    tcp.set_nodelay(true).ok()?;
    let connection = ServerConnection::new(Arc::clone(config)).ok()?;
    let mut stream = BufReader::new(StreamOwned::new(connection, tcp));
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        stream.read_exact(&mut vec![0; length]).ok()?;
        let end = format!("{}{DONE}", finish("stop"));
        let out = stream.get_mut();
        let body = [text("one"), text("two"), end];
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        out.write_all(head.as_bytes()).ok()?;
        for piece in body {
            out.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).ok()?;
            out.flush().ok()?;
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        out.write_all(b"0\r\n\r\n").ok()?;
        out.flush().ok()?;
    }
}

#[track_caller]
fn refused(records: &[Record], reason: &str) {
    for record in records {
        assert_eq!(record.outcome, Outcome::Failed(FailureKind::Tls));
        let said = record.answer.message.as_deref().unwrap_or_default();
        assert!(said.contains(reason), "{said:?} does not say {reason:?}");
        assert!(record.stamps.secured_at.is_none() && record.stamps.sent_at.is_none());
    }
}

#[test]
fn h21_a_self_signed_certificate_fails_with_its_reason() {
    let server = Secure::start("127.0.0.1");
    refused(&server.ask(Trust::System).run().records, "UnknownIssuer");
}

#[test]
fn h21_the_certificate_can_be_trusted_by_name() {
    let server = Secure::start("127.0.0.1");
    let mut bench = server.ask(Trust::Also(server.certificate.clone()));
    bench.idle_limit = Span::ZERO;
    let ran = bench.run();
    ran.all_ok();
    for record in &ran.records {
        assert_eq!(record.output_chunks(), 2);
        let stamps = &record.stamps;
        let opening = [stamps.resolved_at, stamps.connected_at, stamps.secured_at, stamps.sent_at];
        assert!(opening.is_sorted() && opening.iter().all(Option::is_some), "{opening:?}");
        let gap = record.events.at_us[1] - record.events.at_us[0];
        assert!(gap >= 5_000, "the tokens came together: {gap} µs");
    }
}

#[test]
fn h21_a_certificate_for_another_name_fails_although_trusted() {
    let server = Secure::start("other.invalid");
    let ran = server.ask(Trust::Also(server.certificate.clone())).run();
    refused(&ran.records, "certificate not valid for name");
}

#[test]
fn h21_in_a_laboratory_anybody_is_trusted() {
    let server = Secure::start("other.invalid");
    let ran = server.ask(Trust::Anybody).run();
    ran.all_ok();
    assert!(ran.records.iter().all(|record| record.output_chunks() == 2));
}

#[test]
fn a_peer_that_never_answers_the_handshake_is_a_tls_failure() {
    let silent = fake::Routes::new().greet(fake::Script::new().stall(0));
    let server = fake::Server::start_scripted(silent).unwrap();
    let mut bench = Bench::at(&server.url().replace("http:", "https:"));
    bench.request_timeout = Span::from_ms(200);
    let record = bench.run().one();
    assert_eq!(record.outcome, Outcome::Failed(FailureKind::Tls), "{:?}", record.answer.message);
}
