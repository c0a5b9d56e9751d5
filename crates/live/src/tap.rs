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

/// Records packets to pcapng files, one interface for each path; or nothing.
#[derive(Debug)]
pub struct Tap(Option<Recorder>);

#[derive(Debug)]
struct Recorder {
    captures: Vec<Capture<BufWriter<File>>>,
    /// For each path, which capture it goes to and as which interface.
    interfaces: Vec<(usize, InterfaceId)>,
    end: End,
}

impl Tap {
    /// No capture.
    pub fn none() -> Self {
        Tap(None)
    }

    /// A capture of all paths to a new file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn file(path: &Path, end: End) -> io::Result<Self> {
        Tap::files(&[path], end)
    }

    /// A capture to new files, one for each path; should there be more paths, the rest goes to the last.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn files(list: &[impl AsRef<Path>], end: End) -> io::Result<Self> {
        let capture = |path: &Path| Capture::new(BufWriter::new(File::create(path)?));
        let captures = list.iter().map(|path| capture(path.as_ref())).collect::<io::Result<_>>()?;
        Ok(Tap(Some(Recorder { captures, interfaces: Vec::new(), end })))
    }

    /// Declares the next path.
    pub(crate) fn interface(&mut self, name: &str) -> io::Result<()> {
        if let Some(Recorder { captures, interfaces, .. }) = &mut self.0 {
            let last = captures.len().saturating_sub(1);
            let at = interfaces.len().min(last);
            if let Some(capture) = captures.get_mut(at) {
                interfaces.push((at, capture.interface(name)?));
            }
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
        let Some(&(at, interface)) = recorder.interfaces.get(path.index()) else { return Ok(()) };
        recorder.captures[at].packet(interface, now, direction, packet)
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        for capture in self.0.into_iter().flat_map(|recorder| recorder.captures) {
            capture.finish()?;
        }
        Ok(())
    }
}
