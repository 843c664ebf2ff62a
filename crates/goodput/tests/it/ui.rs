//! `ui`: what it refuses, where it listens, how it ends. What it answers is
//! tested in `web`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::Workplace;

#[test]
fn every_mistake_of_ui_is_told_at_once() {
    let workplace = Workplace::new();
    let wrong = ["ui", "--host", "localhost", "--port", "x", "--token", "short"];
    let told = workplace.run(&wrong).exits(2);
    assert_eq!(told.errors().len(), 3, "{told:?}");
    told.says(&["--host", "127.0.0.1", "--port", "65535", "--token", "16"]);
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    let told = Workplace::new().run(&["ui", "--host", "0.0.0.0", "--port", "0"]).exits(2);
    told.says(&["0.0.0.0", "--token"]);
}

#[test]
fn ui_says_where_it_is_and_ends_with_the_signal() {
    let workplace = Workplace::new();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut command = workplace.command(&["ui", "--port", "0", "--lang", "zh"]);
        command.env("GOODPUT_UI_TOKEN", "a-token-that-is-never-printed");
        let mut ui = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut told = BufReader::new(ui.stderr.take().unwrap());
        told.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
        let mut stream = TcpStream::connect(address).unwrap();
        let bearer = "authorization: Bearer a-token-that-is-never-printed";
        let request = format!("GET / HTTP/1.1\r\nhost: {address}\r\n{bearer}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut start = [0; 15];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 200 OK");
        // The connection stays open: the server does not wait for it.
        kill(Pid::from_raw(ui.id().cast_signed()), signal).unwrap();
        assert_eq!(ui.wait().unwrap().code(), Some(0));
        told.read_to_string(&mut line).unwrap();
        assert!(!line.contains("never-printed") && !line.contains("panicked"), "{line}");
    }
}

/// The truth log is written at the end, so the signal must not be the end.
#[test]
fn the_engine_writes_its_log_when_a_signal_ends_it() {
    let workplace = Workplace::new();
    let mut command =
        workplace.command(&["sim", "serve", "--port", "0", "--ground-truth", "truth.jsonl"]);
    let mut sim = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(sim.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("listening on"), "{line}");
    kill(Pid::from_raw(sim.id().cast_signed()), Signal::SIGTERM).unwrap();
    sim.wait().unwrap();
    assert!(workplace.at("truth.jsonl").exists());
}
