//! Untimed requests of the tool itself: the model list, readiness.

use std::cell::RefCell;
use std::time::Duration;

use measure::Span;
use wire::head;
use wire::http1::{Decoder, Part};

use crate::clock::Clock;
use crate::connection::{Connection, Target, resolve};

/// Largest body that is read here.
const BODY_LIMIT: usize = 4 * 1024 * 1024;

/// Why an untimed request gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No connection.
    #[error("{0}")]
    Unreachable(String),
    /// No answer in time.
    #[error("no answer within {0}")]
    Late(Span),
    /// An answer that cannot be read.
    #[error("the answer broke off or is not HTTP")]
    Broken,
}

/// GETs `path` of the target with the run's headers: status and body.
pub fn get(
    target: &Target,
    path: &str,
    headers: &[(String, String)],
    within: Span,
) -> Result<(u16, Vec<u8>), FetchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| FetchError::Unreachable(error.to_string()))?;
    runtime.block_on(async {
        let limit = Duration::from_micros(within.us().max(0) as u64);
        match tokio::time::timeout(limit, get_now(target, path, headers)).await {
            Ok(answer) => answer,
            Err(_) => Err(FetchError::Late(within)),
        }
    })
}

async fn get_now(
    target: &Target,
    path: &str,
    headers: &[(String, String)],
) -> Result<(u16, Vec<u8>), FetchError> {
    let clock = Clock::starting_in(Span::ZERO);
    let unreachable = |message: String| FetchError::Unreachable(message);
    let addresses = resolve(&target.url).await.map_err(|error| unreachable(error.message))?;
    let (mut connection, _) = Connection::open(target, &addresses, clock)
        .await
        .map_err(|error| unreachable(error.message))?;
    let extra = [("Connection", "close")];
    let bytes = head::encode("GET", &target.url.with_path(path), headers, &extra, b"");
    connection.write_all(&bytes).await.map_err(|_| FetchError::Broken)?;
    let buffer = RefCell::new(vec![0u8; 64 * 1024].into_boxed_slice());
    let mut decoder = Decoder::new(64 * 1024);
    let (mut status, mut body, mut broken) = (None, Vec::new(), false);
    while !decoder.is_done() && !broken {
        let mut take = |bytes: &[u8], _| {
            let fed = decoder.feed(bytes, |part| match part {
                Part::Head(head) => status = Some(head.status),
                Part::Body(piece) => body.extend_from_slice(piece),
            });
            broken = fed.is_err();
        };
        let open = connection.read(&buffer, clock, &mut take).await;
        if body.len() > BODY_LIMIT || open.is_err() {
            return Err(FetchError::Broken);
        }
        if matches!(open, Ok(false)) {
            if !decoder.ends_at_close() {
                return Err(FetchError::Broken);
            }
            break;
        }
    }
    match status {
        Some(status) if !broken => Ok((status, body)),
        _ => Err(FetchError::Broken),
    }
}

/// Waits until the target takes connections, trying twice a second.
pub fn wait_until_listening(target: &Target, within: Span) -> Result<(), FetchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| FetchError::Unreachable(error.to_string()))?;
    runtime.block_on(async {
        let clock = Clock::starting_in(Span::ZERO);
        loop {
            let tried = async {
                let addresses = resolve(&target.url).await?;
                Connection::open(target, &addresses, clock).await
            };
            let Err(error) = tried.await else { return Ok(()) };
            if clock.now() - measure::At::ZERO >= within {
                return Err(FetchError::Unreachable(error.message));
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    })
}
