//! A running server and its control.

use super::access::{AccessLog, Log};
use super::driver::{Driver, Order, Port, Wakes};
use super::front::{self, Shared, Stops};
use super::meter::Meter;
use super::metrics::Shown;
use super::room::{Budget, Room};
use super::state::{self, Writer};
use super::status::{Board, Status};
use super::stream::{self, Stream, StreamApplication};
use super::{Listen, Options, ServeError};
use crate::{Counters, End, Opened, Server, Tap, Tun};
use anabranch_units::Instant;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Threads that open and read files, because both may block. What is in memory is read without them, so a few would be
/// enough to keep a disk busy; the others are for threads that a dead network mount holds.
const READERS: usize = 64;

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
        let meter = Meter::default();
        let (driver, wakes, streams) = prepare(&options, board.clone(), &meter)?;
        let log = options.access_log.as_ref().map(open_log).transpose()?;
        let metrics = options.metrics.map(listen).transpose()?;
        let address = metrics.as_ref().map(TcpListener::local_addr).transpose()?;
        let metrics = metrics.map(|listener| (listener, Arc::new(Shown::new(board.clone(), &options))));
        let (stops, given) = watch::channel(0);
        let (ends_with_thread, under_way) = std::sync::mpsc::channel();
        let work = move || {
            let result = serve(&options, driver, &wakes, streams, given, metrics, &Shared { meter, log });
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
    shared: &Shared,
) -> Result<Counters, ServeError> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().thread_name("anabranch-files").max_blocking_threads(READERS).build()?;

    let thread = {
        let wakes = wakes.clone();
        std::thread::Builder::new().name("anabranch-loop".into()).spawn(move || driver.run(&wakes))?
    };
    let served = runtime.block_on(front::run(options, streams, wakes, stops, metrics, shared));
    // A thread whose file never answers must not keep the process from ending.
    runtime.shutdown_background();
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
fn prepare(options: &Options, board: Arc<Board>, meter: &Meter) -> Result<Prepared, ServeError> {
    let wakes = Arc::new(Wakes::new()?);
    // Its length is bounded by the number of connections.
    let (sender, streams) = mpsc::unbounded_channel();
    let most = usize::try_from(options.limits.memory / 2).unwrap_or(usize::MAX);
    let budget = Budget::new(options.send_memory);
    let for_rooms = meter.clone();
    let (ready, paths) = (wakes.ready.clone(), options.listen.len());
    let open = move |opened| {
        let room = Room::new(most, budget.clone(), for_rooms.clone());
        let (application, stream) = stream::pair(opened, room, paths, &ready);
        // Without a receiver the stream is dropped, which aborts the connection.
        let _ = sender.send(stream);
        application
    };
    let mut server = Server::new(options.config(), options.limits, Box::new(open) as Open)?;
    let ports = options.listen.iter().map(open_port).collect::<Result<_, _>>()?;
    // Behind the devices, so that no other server uses the file.
    let state = options.state.as_deref().map(|path| adopt(path, &mut server)).transpose()?;
    let tap = match &options.capture {
        Some(path) => Tap::file(path, End::Far).map_err(|source| ServeError::Capture { path: path.clone(), source })?,
        None => Tap::none(),
    };
    Ok((Driver { ports, server, tap, board, meter: meter.clone(), state, linger_until: None }, wakes, streams))
}

/// Resets what an earlier server left open, and begins a state file of this one's.
fn adopt(path: &Path, server: &mut Server<Open, StreamApplication>) -> Result<Writer, ServeError> {
    let adopted = state::read(path).and_then(|orphans| {
        server.reset_orphans(Instant::ZERO, &orphans);
        Writer::start(path.to_owned())
    });
    adopted.map_err(|source| ServeError::State { path: path.to_owned(), source })
}

/// How long a busy device is waited for, and how often it is tried. The kernel detaches the devices of a killed process a
/// moment after its end.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
const BUSY_RETRY: Duration = Duration::from_millis(20);

fn open_log(options: &AccessLog) -> Result<Log, ServeError> {
    Log::start(options).map_err(|source| ServeError::AccessLog { path: options.file.clone(), source })
}

fn open_port(listen: &Listen) -> Result<Port, ServeError> {
    let name = &listen.device;
    let began = std::time::Instant::now();
    loop {
        match Tun::open(name) {
            Ok(device) => return Ok(Port::new(device, listen.clone())),
            Err(error) if error.kind() == ErrorKind::ResourceBusy && began.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(BUSY_RETRY);
            }
            Err(source) => return Err(ServeError::Device { name: name.clone(), source }),
        }
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|source| ServeError::Metrics { address, source })
}
