//! The list of the subflows that are open, so that the next server can reset them if this one is killed.

use anabranch_live::Orphan;
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Where the list is kept.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// In a file, for a server that is started later.
    File(PathBuf),
    /// In memory, for the next child of the same parent.
    Memory(Arc<SharedState>),
}

/// A list in memory that processes share. A process that is killed while it writes leaves the list of before: there is
/// room for two, and a header says which of them is whole.
#[derive(Debug)]
pub(super) struct SharedState(File);

/// Length of the header: the number of the whole list, 0 or 1, and its length in bytes.
const HEADER: usize = 16;
/// The first list begins here, and the second one so much later: more than a list has. Pages without bytes take no
/// memory.
const FIRST_LIST: u64 = 4096;
const APART: u64 = 1 << 30;

impl SharedState {
    /// An empty list.
    pub(super) fn new() -> io::Result<Self> {
        let file = File::from(memfd_create("anabranch-subflows", MemfdFlags::CLOEXEC)?);
        file.write_all_at(&[0; HEADER], 0)?;
        Ok(SharedState(file))
    }

    fn header(&self) -> io::Result<(u64, u64)> {
        let mut header = [0; HEADER];
        self.0.read_exact_at(&mut header, 0)?;
        let [which, len] = [0, 8].map(|at| u64::from_ne_bytes(std::array::from_fn(|i| header[at + i])));
        Ok((which, len))
    }

    fn read(&self) -> io::Result<String> {
        let (which, len) = self.header()?;
        let mut text = vec![0; len as usize];
        self.0.read_exact_at(&mut text, FIRST_LIST + which * APART)?;
        String::from_utf8(text).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let which = 1 - self.header()?.0;
        self.0.write_all_at(text.as_bytes(), FIRST_LIST + which * APART)?;
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&which.to_ne_bytes());
        header[8..].copy_from_slice(&(text.len() as u64).to_ne_bytes());
        self.0.write_all_at(&header, 0)
    }
}

/// The first line of the file; another one is another program's.
const HEAD: &str = "anabranch serve 1";

/// The subflows on the list; none if there is none.
///
/// # Errors
/// If the file cannot be read or is not one of a server.
pub(super) fn read(place: &Place) -> io::Result<Vec<Orphan>> {
    let found = match place {
        Place::File(path) => std::fs::read_to_string(path),
        Place::Memory(shared) => shared.read(),
    };
    let text = match found {
        Ok(text) if text.is_empty() && matches!(place, Place::Memory(_)) => return Ok(Vec::new()),
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

fn write(place: &Place, open: &[Orphan]) -> io::Result<()> {
    let mut text = format!("{HEAD}\n");
    for orphan in open {
        let _ = writeln!(text, "{orphan}");
    }
    match place {
        Place::File(path) => replace(path, &text),
        Place::Memory(shared) => shared.write(&text),
    }
}

/// Replaces the file as a whole, so that a reader finds one version or the other. Only its owner may read it,
/// because a key allows to reset its connection.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&new, flags, Mode::RUSR | Mode::WUSR)?;
    File::from(file).write_all(text.as_bytes())?;
    std::fs::rename(&new, path)
}

/// Writes the list on a thread of its own, because the loop must not wait for a disk.
#[derive(Debug)]
pub(super) struct Writer {
    versions: Option<SyncSender<Vec<Orphan>>>,
    last: Vec<Orphan>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// A writer of a list that begins with these.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn start(place: Place, adopted: &[Orphan]) -> io::Result<Self> {
        write(&place, adopted)?;
        let (versions, received) = sync_channel::<Vec<Orphan>>(1);
        let work = move || {
            for open in received {
                // A full disk leaves the list of before; the next version may succeed.
                let _ = write(&place, &open);
            }
        };
        let thread = std::thread::Builder::new().name("anabranch-state".into()).spawn(work)?;
        Ok(Writer { versions: Some(versions), last: adopted.to_vec(), thread: Some(thread) })
    }

    /// Writes the subflows that are open now, unless the list says so already; false if an earlier list is still being
    /// written.
    pub(super) fn update(&mut self, open: Vec<Orphan>) -> bool {
        if open == self.last {
            return true;
        }
        let Some(versions) = &self.versions else { return true };
        match versions.try_send(open.clone()) {
            Ok(()) => self.last = open,
            Err(TrySendError::Full(_)) => return false,
            Err(TrySendError::Disconnected(_)) => {}
        }
        true
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

    fn two() -> Vec<Orphan> {
        ["0 10.99.0.1:80 10.1.0.2:4000 00000000000000ff", "1 10.99.0.1:80 10.2.0.2:4001 -"]
            .map(|line| line.parse().unwrap())
            .into()
    }

    #[test]
    fn the_file_says_what_was_open_last_and_is_its_owner_s_alone() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("anabranch-{}-state", std::process::id()));
        let place = Place::File(path.clone());
        assert_eq!(read(&place).expect("no file"), []);
        let open = two();
        write(&place, &open).expect("written");
        assert_eq!(read(&place).expect("a file"), open);
        assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        let mut writer = Writer::start(place.clone(), &open[..1]).expect("written");
        assert_eq!(read(&place).expect("a file"), open[..1], "those that were adopted are not reset yet");
        writer.update(open);
        writer.finish();
        assert_eq!(read(&place).expect("a file"), [], "a server that ended in order leaves no entry");
        std::fs::write(&path, "something else").expect("written");
        assert!(read(&place).is_err());
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn a_writer_that_was_killed_leaves_the_list_of_before_in_memory() {
        let shared = Arc::new(SharedState::new().expect("memory"));
        let place = Place::Memory(shared.clone());
        assert_eq!(read(&place).expect("a list"), []);
        let open = two();
        for n in [2, 1, 0, 2] {
            write(&place, &open[..n]).expect("written");
            assert_eq!(read(&place).expect("a list"), open[..n]);
        }
        // The header is written last.
        let other = 1 - shared.header().expect("a header").0;
        shared.0.write_all_at(b"half a li", FIRST_LIST + other * APART).expect("written");
        assert_eq!(read(&place).expect("a list"), open);
    }
}
