//! Untimed requests of the tool itself: the model list, readiness, tokens, an
//! emptied cache.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use measure::Span;
use wire::head;
use wire::http1::{Decoder, Part};

use crate::clock::{Clock, duration};
use crate::connection::{Connection, OpenError, OpenStamps, Target, resolve};

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
    /// A body over the limit. The rest was not read.
    #[error("the answer is longer than {} MiB", .0 >> 20)]
    TooLarge(usize),
}

/// GETs `path` of the target with the run's headers: status and body.
pub fn get(
    target: &Target,
    path: &str,
    headers: &[(String, String)],
    within: Span,
) -> Result<(u16, Vec<u8>), FetchError> {
    Line::new(target, headers, within).ask("GET", path, None)
}

/// POSTs an empty body to `path` of the target with the run's headers.
pub fn post(
    target: &Target,
    path: &str,
    headers: &[(String, String)],
    within: Span,
) -> Result<(u16, Vec<u8>), FetchError> {
    Line::new(target, headers, within).ask("POST", path, None)
}

/// Untimed requests one after the other over one connection, as long as the
/// server keeps it.
pub(crate) struct Line<'a> {
    pub(crate) target: &'a Target,
    pub(crate) headers: &'a [(String, String)],
    /// How long opening, and each answer, may take.
    pub(crate) within: Span,
    /// The most bytes of a body.
    pub(crate) limit: usize,
    /// Whether the connection is kept after a request without a body too.
    pub(crate) stays: bool,
    /// Headers of each request that are not the run's.
    pub(crate) own: &'a [(&'a str, &'a str)],
    pub(crate) connection: Option<Connection>,
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Where a redirect leads.
    pub(crate) location: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl<'a> Line<'a> {
    pub(crate) const fn new(
        target: &'a Target,
        headers: &'a [(String, String)],
        within: Span,
    ) -> Self {
        Self {
            target,
            headers,
            within,
            limit: BODY_LIMIT,
            stays: false,
            own: &[],
            connection: None,
        }
    }

    /// One request, with a JSON body where there is one: status and body of
    /// the answer. A connection that the server closed while it was idle is
    /// opened anew.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        json: Option<&[u8]>,
    ) -> Result<(u16, Vec<u8>), FetchError> {
        self.reply(method, path, json).map(|reply| (reply.status, reply.body))
    }

    /// As [`Self::ask`], with what else of the answer matters.
    pub(crate) fn reply(
        &mut self,
        method: &str,
        path: &str,
        json: Option<&[u8]>,
    ) -> Result<Reply, FetchError> {
        let mut extra = self.own.to_vec();
        // What has no body is asked once.
        if json.is_none() && !self.stays {
            extra.push(("Connection", "close"));
        }
        // Without a length, some servers wait for the body of a POST.
        if json.is_none() && method != "GET" {
            extra.push(("Content-Length", "0"));
        }
        let url = self.target.url.with_path(path);
        let request = head::encode(method, &url, self.headers, &extra, json.unwrap_or_default());
        if let Some(connection) = self.connection.take() {
            match self.exchange(connection, &request) {
                Err(FetchError::Broken) => {}
                ended => return ended,
            }
        }
        let connection = open(self.target, self.within)?;
        connection.socket.set_nonblocking(false).map_err(|_| FetchError::Broken)?;
        self.exchange(connection, &request)
    }

    fn exchange(
        &mut self,
        mut connection: Connection,
        request: &[u8],
    ) -> Result<Reply, FetchError> {
        let deadline = Instant::now() + duration(self.within);
        let broken = |_| FetchError::Broken;
        let mut written = 0;
        while written < request.len() {
            written += connection.write(&request[written..]).map_err(broken)?;
        }
        let mut answer = Answer {
            decoder: Decoder::new(64 * 1024),
            status: None,
            location: None,
            body: Vec::new(),
        };
        let (mut received, mut plain) = (vec![0; 64 * 1024], vec![0; 16 * 1024]);
        while !answer.decoder.is_done() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(FetchError::Late(self.within));
            }
            connection.socket.set_read_timeout(Some(left)).map_err(broken)?;
            let count = match (&connection.socket).read(&mut received) {
                Ok(0) if answer.decoder.ends_at_close() => break,
                Ok(0) => return Err(FetchError::Broken),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(_) => return Err(FetchError::Broken),
            };
            let mut sound = true;
            let open = connection
                .decipher(&received[..count], &mut plain, |bytes| sound &= answer.take(bytes))
                .map_err(broken)?;
            if !sound {
                return Err(FetchError::Broken);
            }
            if answer.body.len() > self.limit {
                return Err(FetchError::TooLarge(self.limit));
            }
            if !open && !answer.decoder.is_done() {
                break;
            }
        }
        let status = answer.status.ok_or(FetchError::Broken)?;
        if answer.decoder.is_reusable() {
            self.connection = Some(connection);
        }
        Ok(Reply { status, location: answer.location, body: answer.body })
    }
}

struct Answer {
    decoder: Decoder,
    status: Option<u16>,
    location: Option<String>,
    body: Vec<u8>,
}

impl Answer {
    fn take(&mut self, bytes: &[u8]) -> bool {
        let Self { decoder, status, location, body } = self;
        let fed = decoder.feed(bytes, |part| match part {
            Part::Head(head) => {
                *status = Some(head.status);
                location.clone_from(&head.location);
            }
            Part::Body(piece) => body.extend_from_slice(piece),
        });
        fed.is_ok()
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, FetchError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| FetchError::Unreachable(error.to_string()))
}

async fn connect(target: &Target) -> Result<Connection, OpenError> {
    let addresses = resolve(&target.url).await?;
    let clock = Clock::starting_in(Span::ZERO);
    Connection::open(target, &addresses, clock, &mut OpenStamps::default()).await
}

fn open(target: &Target, within: Span) -> Result<Connection, FetchError> {
    within_runtime(within, connect(target))
}

/// Waits for a connection to be opened, so long.
pub(crate) fn within_runtime(
    within: Span,
    opening: impl Future<Output = Result<Connection, OpenError>>,
) -> Result<Connection, FetchError> {
    runtime()?.block_on(async {
        match tokio::time::timeout(duration(within), opening).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(FetchError::Unreachable(error.message)),
            Err(_) => Err(FetchError::Late(within)),
        }
    })
}

/// Waits until the target takes connections, trying twice a second.
pub fn wait_until_listening(target: &Target, within: Span) -> Result<(), FetchError> {
    runtime()?.block_on(async {
        let clock = Clock::starting_in(Span::ZERO);
        loop {
            let Err(error) = connect(target).await else { return Ok(()) };
            if clock.now() - measure::At::ZERO >= within {
                return Err(FetchError::Unreachable(error.message));
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    })
}
