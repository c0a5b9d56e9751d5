//! A running server and its control.

use super::access::{AccessLog, Log};
use super::channel::lock;
use super::devices;
use super::driver::{Driver, Order, Port, Wakes};
use super::front::{self, Orders, Version};
use super::meter::Meter;
use super::metrics::Shown;
use super::pacing::Pacing;
use super::room::{Budget, Room};
use super::state::{self, Place, Writer};
use super::status::{Board, Status};
use super::stream::{self, Asking, Stream, StreamApplication};
use super::{Content, Listen, Options, ResponsePacer, ServeError};
use anabranch_live::{Counters, End, Finish, Opened, Server, Tap};
use anabranch_units::Instant;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Threads that open and read files, because both may block. What is in memory is read without them, so a few would be
/// enough to keep a disk busy; the others are for threads that a dead network mount holds.
const READERS: usize = 64;

/// A running server, on threads of its own. Dropping it aborts all connections.
#[derive(Debug)]
pub struct Serving {
    options: Mutex<Options>,
    stops: watch::Sender<u32>,
    versions: watch::Sender<Version>,
    wakes: Arc<Wakes>,
    budget: Arc<Budget>,
    /// Whether new connections are for files, and not for an origin.
    files: Arc<AtomicBool>,
    /// The pacing of new connections.
    pacing: Arc<Mutex<Option<Arc<Pacing>>>>,
    shown: Option<Arc<Shown>>,
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
        let Prepared { driver, wakes, streams, budget, files, pacing } = prepare(&options, board.clone(), &meter)?;
        let listener = options.metrics.map(listen).transpose()?;
        let metrics = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let shown = listener.is_some().then(|| Arc::new(Shown::new(board.clone(), &options)));
        let log = options.access_log.as_ref().map(|log| open_log(log, None)).transpose()?;
        let (versions, latest) = watch::channel(Version { options: Arc::new(options.clone()), log });
        let (stops, given) = watch::channel(0);
        let (ends_with_thread, under_way) = std::sync::mpsc::channel();
        let (for_thread, page) = (wakes.clone(), listener.zip(shown.clone()));
        let work = move || {
            let result = serve(driver, &for_thread, streams, Orders { stops: given, versions: latest }, page, &meter);
            drop(ends_with_thread);
            result
        };
        let thread = std::thread::Builder::new().name("anabranch-serve".into()).spawn(work)?;
        let options = Mutex::new(options);
        let thread = Some(thread);
        Ok(Serving { options, stops, versions, wakes, budget, files, pacing, shown, board, metrics, under_way, thread })
    }

    /// Goes on with other options: new connections and requests use them, present ones end as they began. Opens the
    /// access log again, so that it may have been renamed.
    ///
    /// # Errors
    /// If an option is wrong, or is one that a running server cannot change: paths, port, MTU, metrics, state, offload,
    /// capture. Nothing has changed then.
    pub fn reload(&self, options: Options) -> Result<(), ServeError> {
        options.check()?;
        let mut current = lock(&self.options);
        if let Some(name) = current.fixed(&options) {
            return Err(ServeError::Fixed(name));
        }
        let present = self.versions.borrow().log.clone();
        let log = options.access_log.as_ref().map(|log| open_log(log, present.as_ref())).transpose()?;
        self.wakes.reconfigure(options.config(), options.limits);
        self.budget.resize(options.send_memory, most_room(&options));
        self.files.store(has_files(&options), Ordering::Relaxed);
        self.repace(&options);
        if let Some(shown) = &self.shown {
            shown.update(&options);
        }
        self.versions.send_replace(Version { options: Arc::new(options.clone()), log });
        *current = options;
        Ok(())
    }

    /// New connections get the pacing of these options. One of the same name goes on, with the viewers that it knows.
    fn repace(&self, options: &Options) {
        let mut pacing = lock(&self.pacing);
        let wanted = pacing_of(options).map(|wanted| wanted.name().to_owned());
        if pacing.as_ref().map(|present| present.name().to_owned()) != wanted {
            *pacing = pacing_of(options).map(|wanted| Pacing::new(wanted.clone(), self.wakes.ready.clone()));
        }
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
    driver: Driver<Open>,
    wakes: &Arc<Wakes>,
    streams: mpsc::UnboundedReceiver<Stream>,
    orders: Orders,
    metrics: Option<(TcpListener, Arc<Shown>)>,
    meter: &Meter,
) -> Result<Counters, ServeError> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().thread_name("anabranch-files").max_blocking_threads(READERS).build()?;

    let thread = {
        let wakes = wakes.clone();
        std::thread::Builder::new().name("anabranch-loop".into()).spawn(move || driver.run(&wakes))?
    };
    let served = runtime.block_on(front::run(streams, wakes, orders, metrics, meter));
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

/// The loop, ready to run, and what connects it with the asynchronous side.
struct Prepared {
    driver: Driver<Open>,
    wakes: Arc<Wakes>,
    streams: mpsc::UnboundedReceiver<Stream>,
    budget: Arc<Budget>,
    files: Arc<AtomicBool>,
    pacing: Arc<Mutex<Option<Arc<Pacing>>>>,
}

/// Bytes of an origin are passed on unread, and not paced.
fn pacing_of(options: &Options) -> Option<&Arc<dyn ResponsePacer>> {
    options.response_pacing.as_ref().filter(|_| has_files(options))
}

fn has_files(options: &Options) -> bool {
    matches!(options.content, Content::Root(_))
}

/// The most that one connection may hold written and not acknowledged.
fn most_room(options: &Options) -> usize {
    usize::try_from(options.limits.memory / 2).unwrap_or(usize::MAX)
}

/// Opens the devices, and connects the loop with the asynchronous side.
fn prepare(options: &Options, board: Arc<Board>, meter: &Meter) -> Result<Prepared, ServeError> {
    let wakes = Arc::new(Wakes::new()?);
    // Its length is bounded by the number of connections.
    let (sender, streams) = mpsc::unbounded_channel();
    let budget = Budget::new(options.send_memory, most_room(options));
    let (for_rooms, of_all) = (meter.clone(), budget.clone());
    let (ready, paths) = (wakes.ready.clone(), options.listen.len());
    let files = Arc::new(AtomicBool::new(has_files(options)));
    let pacing = pacing_of(options).map(|pacing| Pacing::new(pacing.clone(), ready.clone()));
    let pacing = Arc::new(Mutex::new(pacing));
    let (for_files, of_new) = (files.clone(), pacing.clone());
    let open = move |opened| {
        let room = Room::new(of_all.clone(), for_rooms.clone());
        let asking = if for_files.load(Ordering::Relaxed) { Asking::WithRequest } else { Asking::WithAnything };
        let pacing = lock(&of_new).clone();
        let (application, stream) = stream::pair(opened, asking, room, paths, &ready, pacing.as_ref());
        // Without a receiver the stream is dropped, which aborts the connection.
        let _ = sender.send(stream);
        application
    };
    let mut server = Server::new(options.config(), options.limits, Box::new(open) as Open)?;
    let ports = options.listen.iter().map(|listen| open_port(options, listen)).collect::<Result<_, _>>()?;
    // Behind the devices, so that no other server uses the file.
    let file = options.state.clone().map(Place::File);
    let memory = || options.devices.as_ref().map(|devices| Place::Memory(devices.subflows.clone()));
    let state = file.or_else(memory).map(|place| adopt(place, &mut server)).transpose()?;
    let tap = match &options.capture {
        Some(path) => Tap::file(path, End::Far).map_err(|source| ServeError::Capture { path: path.clone(), source })?,
        None => Tap::none(),
    };
    // A capture has packets as they are on the network.
    let finish = if options.offload && tap.is_none() { Finish::Kernel } else { Finish::Here };
    let meter = meter.clone();
    let of_driver = pacing.clone();
    let driver = Driver {
        ports,
        server,
        finish,
        tap,
        board,
        meter,
        pacing: of_driver,
        state,
        state_due: None,
        linger_until: None,
    };
    Ok(Prepared { driver, wakes, streams, budget, files, pacing })
}

/// Resets what an earlier server left open, and begins a list of this one's subflows.
fn adopt(place: Place, server: &mut Server<Open, StreamApplication>) -> Result<Writer, ServeError> {
    let path = match &place {
        Place::File(path) => path.clone(),
        Place::Memory(_) => PathBuf::from("(memory)"),
    };
    let adopted = state::read(&place).and_then(|orphans| {
        server.reset_orphans(Instant::ZERO, &orphans);
        Writer::start(place, &orphans)
    });
    adopted.map_err(|source| ServeError::State { path, source })
}

fn open_log(options: &AccessLog, present: Option<&Log>) -> Result<Log, ServeError> {
    let log = present.map_or_else(|| Log::start(options), |present| present.changed(options));
    log.map_err(|source| ServeError::AccessLog { path: options.file.clone(), source })
}

fn open_port(options: &Options, listen: &Listen) -> Result<Port, ServeError> {
    let opened = options.devices.as_ref().and_then(|devices| devices.tun(&listen.device));
    let device = opened.map_or_else(|| devices::open(&listen.device), Ok)?;
    Ok(Port::new(device, listen.clone()))
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|source| ServeError::Metrics { address, source })
}
