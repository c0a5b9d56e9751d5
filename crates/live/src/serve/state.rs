//! The file that says which subflows are open, so that the next server can reset them if this one is killed.

use crate::Orphan;
use rustix::fs::{Mode, OFlags};
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// The first line of the file; another one is another program's.
const HEAD: &str = "anabranch serve 1";

/// The subflows in the file; none if there is no file.
///
/// # Errors
/// If the file cannot be read or is not one of a server.
pub(super) fn read(path: &Path) -> io::Result<Vec<Orphan>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is not a file of `anabranch serve --state`"));
    }
    // A line of a later version's is no reason not to start.
    Ok(lines.filter_map(|line| line.parse().ok()).collect())
}

/// Replaces the file as a whole, so that whoever reads it finds one version or the other. Only its owner may read it,
/// because a key allows to reset its connection.
fn write(path: &Path, open: &[Orphan]) -> io::Result<()> {
    let mut text = format!("{HEAD}\n");
    for orphan in open {
        let _ = writeln!(text, "{orphan}");
    }
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&new, flags, Mode::RUSR | Mode::WUSR)?;
    std::fs::File::from(file).write_all(text.as_bytes())?;
    std::fs::rename(&new, path)
}

/// Writes the file on a thread of its own, because the loop must not wait for a disk.
#[derive(Debug)]
pub(super) struct Writer {
    versions: Option<SyncSender<Vec<Orphan>>>,
    last: Vec<Orphan>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// A writer of this file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn start(path: PathBuf) -> io::Result<Self> {
        write(&path, &[])?;
        let (versions, received) = sync_channel::<Vec<Orphan>>(1);
        let work = move || {
            for open in received {
                // A full disk leaves the file of before; the next version may succeed.
                let _ = write(&path, &open);
            }
        };
        let thread = std::thread::Builder::new().name("anabranch-state".into()).spawn(work)?;
        Ok(Writer { versions: Some(versions), last: Vec::new(), thread: Some(thread) })
    }

    /// Writes the subflows that are open now, unless the file says so already or is still being written.
    pub(super) fn update(&mut self, open: Vec<Orphan>) {
        if open == self.last {
            return;
        }
        let Some(versions) = &self.versions else { return };
        match versions.try_send(open.clone()) {
            Ok(()) => self.last = open,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }

    /// Waits until everything is written: at the end, when no connection is left.
    pub(super) fn finish(mut self) {
        if let Some(versions) = self.versions.take() {
            let _ = versions.send(Vec::new());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_what_was_open_last_and_is_its_owner_s_alone() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("anabranch-{}-state", std::process::id()));
        assert_eq!(read(&path).expect("no file"), []);
        let open: Vec<Orphan> = ["0 10.99.0.1:80 10.1.0.2:4000 00000000000000ff", "1 10.99.0.1:80 10.2.0.2:4001 -"]
            .map(|l| l.parse().unwrap())
            .into();
        write(&path, &open).expect("written");
        assert_eq!(read(&path).expect("a file"), open);
        assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        let mut writer = Writer::start(path.clone()).expect("written");
        assert_eq!(read(&path).expect("a file"), []);
        writer.update(open);
        writer.finish();
        assert_eq!(read(&path).expect("a file"), [], "a server that ended in order leaves nobody");
        std::fs::write(&path, "something else").expect("written");
        assert!(read(&path).is_err());
        std::fs::remove_file(&path).expect("removed");
    }
}
