//! A running server and its control.

use super::driver::{Driver, Order, Port, Wakes};
use super::front::{self, Stops};
use super::metrics::Shown;
use super::room::{Budget, Room};
use super::status::{Board, Status};
use super::stream::{self, Stream, StreamApplication};
use super::{Listen, Options, ServeError};
use crate::{Counters, End, Opened, Server, Tap, Tun};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Threads that read files, because reading may block. Most reads are served from memory, so a few are enough to keep a
/// disk busy without contention.
const READERS: usize = 8;

/// A running server, on threads of its own. Dropping it aborts all connections.
#[derive(Debug)]
pub struct Serving {
    stops: watch::Sender<u32>,
    board: Arc<Board>,
    metrics: Option<SocketAddr>,
    /// Ends with the thread.
    under_way: Receiver<()>,
    thread: Option<JoinHandle<Result<Counters, ServeError>>>,
}

impl Serving {
    /// Opens the devices, in the network namespace of the calling thread, and serves from now on.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(options: Options) -> Result<Self, ServeError> {
        options.check()?;
        let board = Arc::<Board>::default();
        let (driver, wakes, streams) = prepare(&options, board.clone())?;
        let metrics = options.metrics.map(listen).transpose()?;
        let address = metrics.as_ref().map(TcpListener::local_addr).transpose()?;
        let metrics = metrics.map(|listener| (listener, Arc::new(Shown::new(board.clone(), &options))));
        let (stops, given) = watch::channel(0);
        let (ends_with_thread, under_way) = std::sync::mpsc::channel();
        let work = move || {
            let result = serve(&options, driver, &wakes, streams, given, metrics);
            drop(ends_with_thread);
            result
        };
        let thread = std::thread::Builder::new().name("anabranch-serve".into()).spawn(work)?;
        Ok(Serving { stops, board, metrics: address, under_way, thread: Some(thread) })
    }

    /// Orders it to stop: the first time, new clients are refused and running responses are completed within the grace
    /// period; the second time, they are aborted.
    pub fn stop(&self) {
        self.stops.send_modify(|given| *given += 1);
    }

    /// The latest status, at most a second old.
    pub fn status(&self) -> Status {
        self.board.read()
    }

    /// The address of the metrics page, with the real port if 0 was configured; `None` without a page.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Waits until it has ended, at most for `timeout`; returns whether it has.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.under_way.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected)
    }

    /// Waits until it has ended, by [`Serving::stop`] or by an error; returns its counters.
    ///
    /// # Errors
    /// See [`ServeError`].
    ///
    /// # Panics
    /// If the server did.
    pub fn finish(mut self) -> Result<Counters, ServeError> {
        join(self.thread.take())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stops.send_modify(|given| *given += 2);
        if let Some(thread) = self.thread.take() {
            // The result is of no interest when it is dropped.
            let _ = thread.join();
        }
    }
}

fn join(thread: Option<JoinHandle<Result<Counters, ServeError>>>) -> Result<Counters, ServeError> {
    // Only `finish` and `drop` take the handle, and each owns the value.
    let Some(thread) = thread else { return Ok(Counters::default()) };
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

type Open = Box<dyn FnMut(Opened) -> StreamApplication + Send>;

/// Runs the loop on a thread of its own and the asynchronous side on this one, until both have ended.
fn serve(
    options: &Options,
    driver: Driver<Open>,
    wakes: &Arc<Wakes>,
    streams: mpsc::UnboundedReceiver<Stream>,
    stops: Stops,
    metrics: Option<(TcpListener, Arc<Shown>)>,
) -> Result<Counters, ServeError> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().thread_name("anabranch-files").max_blocking_threads(READERS).build()?;
    let thread = {
        let wakes = wakes.clone();
        std::thread::Builder::new().name("anabranch-loop".into()).spawn(move || driver.run(&wakes))?
    };
    let served = runtime.block_on(front::run(options, streams, wakes, stops, metrics));
    // Whatever the result, the loop must end before its devices are dropped.
    wakes.order(if served.is_ok() { Order::Finish } else { Order::Abort });
    let counters = match thread.join() {
        Ok(result) => result?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    served?;
    Ok(counters)
}

type Prepared = (Driver<Open>, Arc<Wakes>, mpsc::UnboundedReceiver<Stream>);

/// Opens the devices, and connects the loop with the asynchronous side.
fn prepare(options: &Options, board: Arc<Board>) -> Result<Prepared, ServeError> {
    let wakes = Arc::new(Wakes::new()?);
    // Its length is bounded by the number of connections.
    let (sender, streams) = mpsc::unbounded_channel();
    let most = usize::try_from(options.limits.memory / 2).unwrap_or(usize::MAX);
    let budget = Budget::new(options.send_memory);
    let for_streams = wakes.clone();
    let open = move |opened| {
        let room = Room::new(most, budget.clone());
        let (application, stream) = stream::pair(opened, room, for_streams.clone());
        // Without a receiver the stream is dropped, which aborts the connection.
        let _ = sender.send(stream);
        application
    };
    let server = Server::new(options.config(), options.limits, Box::new(open) as Open)?;
    let ports = options.listen.iter().map(open_port).collect::<Result<_, _>>()?;
    let tap = match &options.capture {
        Some(path) => Tap::file(path, End::Far).map_err(|source| ServeError::Capture { path: path.clone(), source })?,
        None => Tap::none(),
    };
    Ok((Driver { ports, server, tap, board }, wakes, streams))
}

fn open_port(listen: &Listen) -> Result<Port, ServeError> {
    let name = &listen.device;
    let device = Tun::open(name).map_err(|source| ServeError::Device { name: name.clone(), source })?;
    Ok(Port::new(device, listen.clone()))
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|source| ServeError::Metrics { address, source })
}
