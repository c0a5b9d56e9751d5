//! Packet captures of a run.

use anabranch_units::{Instant, LinkDirection, PathId};
use anabranch_wire::capture::{Capture, InterfaceId, PacketDirection};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// The end of the links at which packets are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At the client.
    Client,
    /// At the far end.
    Far,
}

/// Records packets to pcapng files, one interface for each path; or nothing.
#[derive(Debug)]
pub struct Tap(Option<Recorder>);

#[derive(Debug)]
struct Recorder {
    captures: Vec<Capture<BufWriter<File>>>,
    /// For each path, its capture and its interface.
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

    /// A capture to new files, one for each path; further paths use the last one.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn files(list: &[impl AsRef<Path>], end: End) -> io::Result<Self> {
        let capture = |path: &Path| Capture::new(BufWriter::new(File::create(path)?));
        let captures = list.iter().map(|path| capture(path.as_ref())).collect::<io::Result<_>>()?;
        Ok(Tap(Some(Recorder { captures, interfaces: Vec::new(), end })))
    }

    /// Whether nothing is recorded.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Declares the next path.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn interface(&mut self, name: &str) -> io::Result<()> {
        if let Some(Recorder { captures, interfaces, .. }) = &mut self.0 {
            let last = captures.len().saturating_sub(1);
            let at = interfaces.len().min(last);
            if let Some(capture) = captures.get_mut(at) {
                interfaces.push((at, capture.interface(name)?));
            }
        }
        Ok(())
    }

    /// Records a packet that passes the client's end, if that is the end to record.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn at_client(&mut self, now: Instant, path: PathId, direction: LinkDirection, packet: &[u8]) -> io::Result<()> {
        self.record(End::Client, now, path, direction, packet)
    }

    /// Records a packet that passes the far end, if that is the end to record.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn at_far_end(
        &mut self,
        now: Instant,
        path: PathId,
        direction: LinkDirection,
        packet: &[u8],
    ) -> io::Result<()> {
        self.record(End::Far, now, path, direction, packet)
    }

    fn record(
        &mut self,
        end: End,
        now: Instant,
        path: PathId,
        direction: LinkDirection,
        packet: &[u8],
    ) -> io::Result<()> {
        let Some(recorder) = self.0.as_mut().filter(|recorder| recorder.end == end) else { return Ok(()) };
        let seen_from_end = match (end, direction) {
            (End::Client, LinkDirection::Down) | (End::Far, LinkDirection::Up) => PacketDirection::Inbound,
            _ => PacketDirection::Outbound,
        };
        let Some(&(at, interface)) = recorder.interfaces.get(path.index()) else { return Ok(()) };
        recorder.captures[at].packet(interface, now, seen_from_end, packet)
    }

    /// Writes what is left of the captures.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish(self) -> io::Result<()> {
        for capture in self.0.into_iter().flat_map(|recorder| recorder.captures) {
            capture.finish()?;
        }
        Ok(())
    }
}
