//! Where attachments live: a directory for each control in a file system of the kernel's BPF objects. What is pinned
//! there outlives the process that attached it, so no process has to stay, and none can leave anything behind that the
//! next one would not find.

use crate::{Control, KernelError, checks};
use rustix::fs::{FlockOperation, flock, statfs};
use rustix::mount::{MountFlags, mount};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Where systemd and other programs mount it.
pub const DEFAULT_FILE_SYSTEM: &str = "/sys/fs/bpf";

/// Its magic number (`linux/magic.h`).
const BPF_FS_MAGIC: u64 = 0xcafe_4a11;
/// Our directory in it.
const DIRECTORY: &str = "anabranch";
/// Who holds it may change pins.
const LOCK: &str = "/run/anabranch-kernel.lock";

/// The pinned objects of one control.
#[derive(Clone, Debug)]
pub(crate) struct Pins {
    pub directory: PathBuf,
}

impl Pins {
    pub fn of(file_system: &Path, control: Control) -> Self {
        Pins { directory: file_system.join(DIRECTORY).join(control.name()) }
    }

    pub fn subflows(&self) -> PathBuf {
        self.directory.join("subflows")
    }

    pub fn totals(&self) -> PathBuf {
        self.directory.join("totals")
    }

    /// The registration of the control in the kernel.
    pub fn registration(&self) -> PathBuf {
        self.directory.join("control")
    }

    /// The program of the cgroup. It is pinned last, so an attachment that has it is complete.
    pub fn selection(&self) -> PathBuf {
        self.directory.join("selection")
    }

    pub fn exist(&self) -> bool {
        self.directory.exists()
    }

    pub fn complete(&self) -> bool {
        self.selection().exists()
    }

    /// Removes what there is, in the order in which new connections are affected: first nothing selects the control any
    /// more.
    pub fn remove(&self) -> io::Result<()> {
        for path in [self.selection(), self.registration(), self.subflows(), self.totals()] {
            ignore_missing(fs::remove_file(path))?;
        }
        ignore_missing(fs::remove_dir(&self.directory))?;
        // Other controls may be attached.
        if let Some(parent) = self.directory.parent() {
            let _ = fs::remove_dir(parent);
        }
        Ok(())
    }
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Mounts the file system where it is missing, as `ip` and `bpftool` do too.
pub(crate) fn provide(file_system: &Path) -> Result<(), KernelError> {
    if mounted(file_system) {
        return Ok(());
    }
    let missing = |error: io::Error| {
        let path = file_system.display();
        KernelError::Machine(format!("no BPF file system is at {path} ({error}); mount -t bpf bpf {path}"))
    };
    if !file_system.exists() {
        return Err(missing(io::ErrorKind::NotFound.into()));
    }
    mount("bpf", file_system, "bpf", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
        .map_err(|error| missing(error.into()))
}

pub(crate) fn mounted(file_system: &Path) -> bool {
    statfs(file_system).is_ok_and(|found| found.f_type as u64 == BPF_FS_MAGIC)
}

/// The mounted BPF file systems in which controls are attached, or were left half attached.
#[must_use]
pub fn used_file_systems() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let used = |place: &Path| Control::ALL.into_iter().any(|control| Pins::of(place, control).exist());
    checks::mounted(&mounts, "bpf").map(PathBuf::from).filter(|place| used(place)).collect()
}

/// Waits until no other process changes pins; the lock ends with the returned file.
pub(crate) fn lock() -> Result<File, KernelError> {
    let file = File::options().create(true).append(true).open(LOCK);
    let file = file.map_err(|error| KernelError::refused(&format!("cannot open {LOCK}"), error))?;
    flock(&file, FlockOperation::LockExclusive)
        .map_err(|error| KernelError::refused(&format!("cannot lock {LOCK}"), error))?;
    Ok(file)
}
