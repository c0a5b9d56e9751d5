//! Captures of a run.

use crate::script::Way;
use anabranch_units::{Instant, PathId};
use anabranch_wire::capture::{Capture, Direction, InterfaceId};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// At which end of the links packets are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As the client sees them.
    Client,
    /// As the far end sees them.
    Far,
}

/// Records packets to a pcapng file, one interface for each path; or nothing.
#[derive(Debug)]
pub struct Tap(Option<Recorder>);

#[derive(Debug)]
struct Recorder {
    capture: Capture<BufWriter<File>>,
    interfaces: Vec<InterfaceId>,
    end: End,
}

impl Tap {
    /// No capture.
    pub fn none() -> Self {
        Tap(None)
    }

    /// A capture to a new file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn file(path: &Path, end: End) -> io::Result<Self> {
        let capture = Capture::new(BufWriter::new(File::create(path)?))?;
        Ok(Tap(Some(Recorder { capture, interfaces: Vec::new(), end })))
    }

    /// Declares the next path.
    pub(crate) fn interface(&mut self, name: &str) -> io::Result<()> {
        if let Some(recorder) = &mut self.0 {
            recorder.interfaces.push(recorder.capture.interface(name)?);
        }
        Ok(())
    }

    pub(crate) fn at_client(&mut self, now: Instant, path: PathId, way: Way, packet: &[u8]) -> io::Result<()> {
        self.record(End::Client, now, path, way, packet)
    }

    pub(crate) fn at_far_end(&mut self, now: Instant, path: PathId, way: Way, packet: &[u8]) -> io::Result<()> {
        self.record(End::Far, now, path, way, packet)
    }

    fn record(&mut self, end: End, now: Instant, path: PathId, way: Way, packet: &[u8]) -> io::Result<()> {
        let Some(recorder) = self.0.as_mut().filter(|recorder| recorder.end == end) else { return Ok(()) };
        let direction = match (end, way) {
            (End::Client, Way::Down) | (End::Far, Way::Up) => Direction::Inbound,
            _ => Direction::Outbound,
        };
        recorder.capture.packet(recorder.interfaces[path.index()], now, direction, packet)
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        match self.0 {
            Some(recorder) => recorder.capture.finish().map(drop),
            None => Ok(()),
        }
    }
}
