//! What a scenario reads besides itself: recorded traces and descriptions of videos.

use super::document::Origin;
use super::mistake::Mistake;
use super::tables::Trace;
use std::path::{Path, PathBuf};

/// Larger files are other files taken by mistake.
const MOST_BYTES: u64 = 1 << 28;

/// The files next to the scenario.
pub(super) struct Files<'a> {
    directory: Option<&'a Path>,
    /// Traces as they were written and as they were read: both directions of a link have the same one.
    pub traces: Vec<(Trace, Trace)>,
}

impl<'a> Files<'a> {
    pub fn of_folder(directory: Option<&'a Path>) -> Self {
        Files { directory, traces: Vec::new() }
    }

    /// The scenario's directory is in front of a relative name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.map_or_else(|| PathBuf::from(name), |directory| directory.join(name))
    }

    /// The name as it is opened, and the bytes of a description of a video.
    pub fn description(&self, name: &str, at: &Origin) -> Result<(String, Vec<u8>), Mistake> {
        let path = self.path(name);
        let wrong = |problem: String| Mistake::new(format!("`{}`: {problem}", path.display()), "").at(at);
        check_regular(&path, "a description of a video").map_err(wrong)?;
        let bytes = std::fs::read(&path).map_err(|error| wrong(error.to_string()))?;
        Ok((path.to_string_lossy().into_owned(), bytes))
    }

    pub fn trace(&self, path: &Path, at: &Origin) -> Result<Vec<u8>, Mistake> {
        let wrong = |problem: String| Mistake::new(format!("trace {}: {problem}", path.display()), "").at(at);
        check_regular(path, "a trace").map_err(wrong)?;
        std::fs::read(path).map_err(|error| wrong(error.to_string()))
    }
}

/// Refuses what has no size that is known before it is read, such as a FIFO, which may never end, and what is too
/// large.
fn check_regular(path: &Path, what: &str) -> std::result::Result<(), String> {
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("this is no regular file".to_owned());
    }
    if found.len() > MOST_BYTES {
        return Err(format!("{} bytes are more than {what} has", found.len()));
    }
    Ok(())
}
