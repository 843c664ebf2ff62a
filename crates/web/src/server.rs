//! The server: one thread that answers, a few that read disks.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::IF_NONE_MATCH;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use report::html::{WebPage, shell};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::Settings;
use crate::answer::{self, Answer, Fault, Files};
use crate::gate::{Gate, Pass};
use crate::route::{Route, route};
use crate::shelf::Shelf;

/// The most bytes of a body: notes at their limits, with every character
/// escaped.
const BODY_BYTES: usize = 64 << 10;

/// Where reading ends at last.
const DROPPED_BYTES: usize = 1 << 20;

/// The most connections at once; a browser has six.
const CONNECTIONS: usize = 64;

/// How long a head or a body may take to come, and a connection be idle.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long answers under way may take when the server is told to stop.
const FAREWELL: Duration = Duration::from_secs(2);

/// Threads for disks. A run is read by one of them at a time, because a large
/// one fills the memory alone.
const READERS: usize = 4;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Others could reach it, and nothing would keep them out.
    #[error(
        "{0} can be reached by other machines, and everyone there could read and remove runs: \
         give --token TOKEN, or leave --host at 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The system gives no socket.
    #[error("cannot listen on {address}: {source}; another --port may be free, and 0 takes any")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// A server that runs until it is stopped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// What every request sees.
#[derive(Debug)]
struct Desk {
    gate: Gate,
    files: Files,
    shelf: Arc<Shelf>,
    one_reader: Arc<Semaphore>,
}

impl Server {
    /// Listens and answers on a thread of its own.
    ///
    /// # Errors
    ///
    /// [`StartError::Open`] off loopback without a token, [`StartError::Listen`]
    /// when the address cannot be had.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let asked = settings.bind;
        if !asked.ip().is_loopback() && settings.token.is_none() {
            return Err(StartError::Open(asked));
        }
        let listen = |source| StartError::Listen { address: asked, source };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(READERS)
            .thread_name("web")
            .build()
            .map_err(listen)?;
        let listener = runtime.block_on(TcpListener::bind(asked)).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (stop, stopped) = oneshot::channel();
        let desk = Arc::new(Desk::new(settings, address));
        let serve = move || {
            runtime.block_on(serve(&listener, &desk, stopped));
            // A large run that is being read has no reader any more. Notes are
            // whole or not there, whenever the program ends.
            runtime.shutdown_timeout(FAREWELL);
        };
        let thread = std::thread::Builder::new().name("web".to_owned()).spawn(serve);
        Ok(Self { address, stop, thread: thread.map_err(listen)? })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address to open on this machine.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{address}/")
    }

    /// Takes no more requests, lets those under way end, and returns.
    pub fn stop(self) {
        // A thread that ended before has stopped already.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

impl Desk {
    fn new(settings: Settings, address: SocketAddr) -> Self {
        let page = shell(&WebPage { version: settings.version }, settings.lang);
        Self {
            gate: Gate::new(address.ip(), address.port(), settings.token),
            files: Files::new(page),
            shelf: Arc::new(Shelf::new(settings.runs_dir, settings.now_ms)),
            one_reader: Arc::new(Semaphore::new(1)),
        }
    }

    /// The answer to a request, whatever it is.
    async fn answer(&self, request: Request<Incoming>) -> Result<Answer, Infallible> {
        let for_scripts = request.uri().path().starts_with("/api/");
        let answer = self.try_answer(request).await;
        Ok(answer.unwrap_or_else(|fault| answer::fault(&fault, for_scripts)))
    }

    async fn try_answer(&self, request: Request<Incoming>) -> Result<Answer, Fault> {
        let (head, body) = request.into_parts();
        if let Pass::Remember(cookie) = self.gate.check(&head)? {
            return Ok(answer::remember(&cookie));
        }
        match route(&head.method, head.uri.path())? {
            Route::Page => Ok(self.files.page()),
            Route::Asset(name) => self.files.asset(&name, head.headers.get(IF_NONE_MATCH)),
            Route::Runs => off(&self.shelf, Shelf::list).await,
            Route::Run(id) => self.read(move |shelf| shelf.run(&id)).await,
            Route::Notes(id) => {
                let bytes = whole(body).await?;
                off(&self.shelf, move |shelf| shelf.write_notes(&id, &bytes)).await
            }
            Route::Trash(id) => off(&self.shelf, move |shelf| shelf.trash(&id)).await,
        }
    }

    /// Reads a run, one request after the other. The turn goes with the reading:
    /// a browser that went away does not let the next one in early.
    async fn read(
        &self,
        reading: impl FnOnce(&Shelf) -> Result<String, Fault> + Send + 'static,
    ) -> Result<Answer, Fault> {
        let turn = Arc::clone(&self.one_reader).acquire_owned().await;
        off(&self.shelf, move |shelf| {
            let _turn = turn;
            reading(shelf)
        })
        .await
    }
}

/// Does what waits for a disk on a thread that may wait.
async fn off(
    shelf: &Arc<Shelf>,
    work: impl FnOnce(&Shelf) -> Result<String, Fault> + Send + 'static,
) -> Result<Answer, Fault> {
    let shelf = Arc::clone(shelf);
    let done = tokio::task::spawn_blocking(move || work(&shelf)).await;
    done.unwrap_or_else(|_| {
        let error = "this run made the program fail; its output on the terminal says where";
        let hint = "please report it with the run's directory";
        Err(Fault::new(StatusCode::INTERNAL_SERVER_ERROR, error, hint))
    })
    .map(answer::data)
}

/// A body under its limits of size and time.
async fn whole(body: Incoming) -> Result<Bytes, Fault> {
    timeout(PATIENCE, limited(body)).await.unwrap_or_else(|_| {
        let error = "the body did not come in time";
        Err(Fault::new(StatusCode::REQUEST_TIMEOUT, error, "send it again"))
    })
}

/// What is too long is read a little further and dropped: a client that is cut
/// off while it writes may never read why.
async fn limited(mut body: Incoming) -> Result<Bytes, Fault> {
    let (mut kept, mut came) = (BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let error = format!("the body ended early: {error}");
            Fault::new(StatusCode::BAD_REQUEST, error, "send it again")
        })?;
        let Some(bytes) = frame.data_ref() else { continue };
        came += bytes.len();
        if came <= BODY_BYTES {
            kept.extend_from_slice(bytes);
        } else if came > DROPPED_BYTES {
            break;
        }
    }
    if came <= BODY_BYTES {
        return Ok(kept.freeze());
    }
    let error = format!("the body is larger than {BODY_BYTES} bytes");
    Err(Fault::new(StatusCode::PAYLOAD_TOO_LARGE, error, "shorten the note"))
}

/// Accepts connections until it is told to stop.
async fn serve(listener: &TcpListener, desk: &Arc<Desk>, mut stopped: oneshot::Receiver<()>) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let seat = async {
            let seat = Arc::clone(&seats).acquire_owned().await;
            (listener.accept().await, seat)
        };
        let (accepted, seat) = tokio::select! {
            next = seat => next,
            // A server that was dropped stops as well.
            _ = &mut stopped => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, mostly: some come back when others end.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let desk = Arc::clone(desk);
        let service = service_fn(move |request| {
            let desk = Arc::clone(&desk);
            async move { desk.answer(request).await }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(64 << 10)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A connection that broke has no one left to tell.
            let _ = connection.await;
            drop(seat);
        });
    }
    let _ = timeout(FAREWELL, graceful.shutdown()).await;
}
