//! The pacing of responses in a live run: the servers of all flows are one server, as in a simulation.

use crate::shared_flow::SharedFlow;
use anabranch_live::ConnectionId;
use anabranch_media::content::DashVideo;
use anabranch_media::pacing::{FilePacer, FileResponse, Presentation, Progress, create};
use anabranch_media::{Content, HttpServer};
use anabranch_scenario::Scenario;
use anabranch_units::{Bandwidth, Instant};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Folders within the content's that are looked into for MPDs.
const DEPTH: usize = 4;
/// No viewer has got this number yet.
const UNKNOWN: usize = usize::MAX;

/// A connection: the number of its listener, and its id there.
pub(crate) type End = (usize, ConnectionId);

/// The viewers of a run, and the policy.
#[derive(Clone)]
pub(crate) struct Pacing(Arc<Mutex<Shared>>);

struct Shared {
    pacer: FilePacer,
    /// By the number of the connection.
    ends: Vec<Option<End>>,
}

impl Pacing {
    /// `None` if the scenario's server paces nothing. `content`: the folder of the files that are served to programs.
    ///
    /// # Panics
    /// If the scenario was not made by [`load`](anabranch_scenario::load).
    pub fn of(scenario: &Scenario, content: Option<&Path>) -> Option<Self> {
        let choice = &scenario.server.response_pacing;
        let policy = create(&choice.name, &choice.options).expect("the choice was checked")?;
        let mut pacer = FilePacer::new(policy);
        if let Some(root) = content {
            // Before the run, whose links would wait for it.
            learn(&mut pacer, root);
        }
        Some(Pacing(Arc::new(Mutex::new(Shared { pacer, ends: Vec::new() }))))
    }

    /// Connections whose caps are others than when this was called last.
    pub fn take_changed(&self) -> Vec<End> {
        let mut shared = self.lock();
        let changed = shared.pacer.take_changed();
        changed.into_iter().filter_map(|at| shared.ends.get(at).copied().flatten()).collect()
    }

    /// A connection of a program.
    fn open(&self, end: End, client: IpAddr) -> Paced {
        let connection = self.lock().pacer.open(client);
        self.note(end, connection)
    }

    fn open_of_viewer(&self, end: End, now: Instant, viewer: &FlowViewer) -> Paced {
        let known = Some(viewer.number.load(Ordering::Relaxed)).filter(|number| *number != UNKNOWN);
        let (connection, number) = self.lock().pacer.open_of_viewer(now, viewer.video.clone(), known);
        viewer.number.store(number, Ordering::Relaxed);
        self.note(end, connection)
    }

    fn note(&self, end: End, connection: usize) -> Paced {
        let ends = &mut self.lock().ends;
        if ends.len() <= connection {
            ends.resize(connection + 1, None);
        }
        ends[connection] = Some(end);
        Paced { pacing: self.clone(), connection, now: Instant::ZERO }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the MPDs in a folder and those within it.
fn learn(pacer: &mut FilePacer, root: &Path) {
    for file in mpds(root, DEPTH) {
        let Ok(relative) = file.strip_prefix(root) else { continue };
        let Ok(bytes) = fs::read(&file) else { continue };
        let path = format!("/{}", relative.display());
        let size = |path: &str| fs::metadata(root.join(path.trim_start_matches('/'))).ok().map(|about| about.len());
        pacer.learn(&path, "", Presentation::read(&path, &bytes, size));
    }
}

fn mpds(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() && depth > 0 {
            found.extend(mpds(&path, depth - 1));
        } else if path.extension().is_some_and(|extension| extension == "mpd") {
            found.push(path);
        }
    }
    // Directories are in no order.
    found.sort();
    found
}

/// The viewer of a flow whose player is ours, on one connection after the other.
pub(crate) struct FlowViewer {
    video: Option<Arc<DashVideo>>,
    number: AtomicUsize,
}

impl FlowViewer {
    pub fn new(content: &Content) -> Self {
        let video = match content {
            Content::Dash(video) => Some(video.clone()),
            _ => None,
        };
        FlowViewer { video, number: AtomicUsize::new(UNKNOWN) }
    }
}

/// What a flow's applications need to have their connections paced.
#[derive(Clone)]
pub(crate) struct FlowPacing {
    pub pacing: Pacing,
    pub viewer: Arc<FlowViewer>,
}

impl FlowPacing {
    /// A connection of a flow; `end` is missing where a kernel serves, which paces nothing.
    pub fn open(&self, flow: &SharedFlow, end: Option<End>) -> Option<Paced> {
        let end = end?;
        // Each flow's program is a client of its own.
        let number = u32::try_from(end.0).unwrap_or(u32::MAX);
        let client = IpAddr::from(Ipv4Addr::from_bits(number));
        Some(match flow.program {
            true => self.pacing.open(end, client),
            false => self.pacing.open_of_viewer(end, flow.clock.now(), &self.viewer),
        })
    }
}

/// The cap of a connection's rate, and when its viewer's buffer will be empty if nothing more arrives.
type Guidance = (Option<Bandwidth>, Option<Instant>);

/// A connection that is paced.
pub(crate) struct Paced {
    pacing: Pacing,
    connection: usize,
    now: Instant,
}

impl Paced {
    /// The server of one of our players has read what there is.
    pub fn follow(&mut self, at: &anabranch_live::Progress, http: &mut HttpServer) -> Guidance {
        self.now = at.now;
        let progress = Progress { acked: at.acked, written: http.written(), over: at.ended || at.closed };
        let pacer = &mut self.pacing.lock().pacer;
        pacer.note_delays(at.now, self.connection, at.delays.iter().flatten().copied());
        pacer.progress(at.now, self.connection, progress, std::iter::from_fn(|| http.next_answer()));
        (pacer.cap(self.connection), pacer.buffered_until(self.connection))
    }

    /// The server of a program has begun these responses.
    pub fn advance(&mut self, at: &anabranch_live::Progress, begun: Vec<FileResponse>) -> Guidance {
        self.now = at.now;
        let pacer = &mut self.pacing.lock().pacer;
        pacer.note_delays(at.now, self.connection, at.delays.iter().flatten().copied());
        pacer.advance(at.now, self.connection, at.acked, begun.into_iter());
        (pacer.cap(self.connection), pacer.buffered_until(self.connection))
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        let shared = &mut *self.pacing.lock();
        shared.ends[self.connection] = None;
        shared.pacer.close(self.now, self.connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpds_of_the_content_are_known_before_the_run() {
        let root = std::env::temp_dir().join(format!("anabranch-testbed-pacing-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).unwrap();
        let mpd = r#"<MPD mediaPresentationDuration="PT8S"><Period><AdaptationSet mimeType="video/mp4">
            <SegmentTemplate media="$Number$.m4s" duration="4"/><Representation bandwidth="500000"/></AdaptationSet></Period></MPD>"#;
        fs::write(root.join("a/b/film.mpd"), mpd).unwrap();
        fs::write(root.join("broken.mpd"), "<MPD").unwrap();
        let mut pacer = FilePacer::new(create("sammy", &Default::default()).unwrap().unwrap());
        learn(&mut pacer, &root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((pacer.counts().presentations, pacer.counts().unusable), (1, 1));
        assert!(pacer.knows("/a/b/film.mpd", ""));
    }
}
