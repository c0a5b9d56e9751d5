//! Opening files below a directory, whatever lies there.

use super::conditions::Version;
use percent_encoding::percent_decode_str;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Which files are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visible {
    /// Follow symbolic links that lead out of the directory. Those that stay below it are always followed.
    pub symlinks: bool,
    /// Serve names that begin with a dot.
    pub hidden: bool,
}

/// The files below a directory.
#[derive(Debug)]
pub(super) struct Directory {
    root: OwnedFd,
    visible: Visible,
}

/// An open regular file.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) len: u64,
    pub(super) version: Version,
}

/// How often an open is tried while directories on its way are renamed.
const ATTEMPTS: usize = 16;

impl Directory {
    pub(super) fn new(root: &Path, visible: Visible) -> io::Result<Self> {
        let root = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Directory { root, visible })
    }

    /// Opens the file of a request; `None` if no file is served under that name.
    ///
    /// # Errors
    /// Of the operating system, other than those that say that there is no such file.
    pub(super) fn open(&self, path: &str) -> io::Result<Option<Opened>> {
        let Some(path) = self.below(path) else { return Ok(None) };
        match self.open_file(&path) {
            Ok(file) => regular(file),
            Err(
                Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::LOOP | Errno::XDEV | Errno::ACCESS | Errno::PERM
                // A socket, or a device without hardware.
                | Errno::NXIO | Errno::NODEV,
            ) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Neither a FIFO nor a terminal makes this wait, and nothing outside is opened.
    fn open_file(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let beneath = if self.visible.symlinks { ResolveFlags::empty() } else { ResolveFlags::BENEATH };
        let resolve = beneath | ResolveFlags::NO_MAGICLINKS;
        let mut attempts = 0;
        loop {
            match openat2(&self.root, path, flags, Mode::empty(), resolve) {
                // The kernel could not prove that the path stays below: something was renamed meanwhile.
                Err(Errno::AGAIN) if attempts < ATTEMPTS => attempts += 1,
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// The path of a request, relative to the directory; `None` if it is none, or is hidden.
    fn below(&self, path: &str) -> Option<PathBuf> {
        let decoded: Vec<u8> = percent_decode_str(path.strip_prefix('/')?).collect();
        // A file is no directory.
        if decoded.contains(&0) || decoded.ends_with(b"/") {
            return None;
        }
        let mut below = PathBuf::new();
        for name in decoded.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".") {
            if name == b".." || (name.starts_with(b".") && !self.visible.hidden) {
                return None;
            }
            below.push(OsStr::from_bytes(name));
        }
        (!below.as_os_str().is_empty()).then_some(below)
    }
}

/// The file, if it is a regular one.
fn regular(file: OwnedFd) -> io::Result<Option<Opened>> {
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let len = u64::try_from(stat.st_size).unwrap_or_default();
    // The types of these numbers differ between machines.
    #[allow(clippy::unnecessary_cast)]
    let modified = (stat.st_mtime as i64, stat.st_mtime_nsec as u64);
    Ok(Some(Opened { file: file.into(), len, version: Version::new(len, stat.st_ino, modified) }))
}

/// Whether this kernel can open files below a directory (Linux 5.6).
pub(super) fn is_supported() -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(CWD, ".", flags, Mode::empty(), ResolveFlags::BENEATH).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("anabranch-{}-{name}", std::process::id()));
            fs::create_dir_all(root.join("served/inner")).expect("a directory");
            fs::write(root.join("outside"), "outside").expect("a file");
            fs::write(root.join("served/inner/file"), "inside").expect("a file");
            fs::write(root.join("served/.hidden"), "hidden").expect("a file");
            Root(root)
        }

        fn served(&self, visible: Visible) -> Directory {
            Directory::new(&self.0.join("served"), visible).expect("a directory")
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn serves(directory: &Directory, path: &str) -> bool {
        directory.open(path).expect("no error of the system").is_some()
    }

    #[test]
    fn only_regular_files_below_the_directory_are_opened_and_nothing_waits() {
        assert!(is_supported());
        let root = Root::new("regular");
        let directory = root.served(Visible::default());
        rustix::fs::mknodat(CWD, root.0.join("served/fifo"), FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
        let _listener = std::os::unix::net::UnixListener::bind(root.0.join("served/socket")).expect("a socket");
        for path in ["/inner/file", "//inner/./file", "/%69nner%2ffile"] {
            assert!(serves(&directory, path), "{path}");
        }
        let long = format!("/{}", "x".repeat(300));
        let deep = "/x".repeat(5000);
        for path in [
            "/",
            "",
            "*",
            "inner/file",
            "/inner",
            "/inner/",
            "/inner/file/",
            "/inner/file/more",
            "/none",
            "/fifo",
            "/socket",
            "/../outside",
            "/inner/../../outside",
            "/inner/../inner/file",
            "/%2e%2e/outside",
            "/inner/file%00",
            &long,
            &deep,
        ] {
            assert!(!serves(&directory, path), "{path}");
        }
    }

    #[test]
    fn links_that_lead_out_and_hidden_names_have_to_be_allowed() {
        let root = Root::new("visible");
        let served = root.0.join("served");
        symlink("inner/file", served.join("within")).expect("a link");
        symlink("../outside", served.join("out")).expect("a link");
        symlink(root.0.join("outside"), served.join("absolute")).expect("a link");
        symlink("loop", served.join("loop")).expect("a link");
        for (visible, path, expected) in [
            (Visible::default(), "/within", true),
            (Visible::default(), "/out", false),
            (Visible::default(), "/absolute", false),
            (Visible::default(), "/loop", false),
            (Visible::default(), "/.hidden", false),
            (Visible { symlinks: true, hidden: false }, "/out", true),
            (Visible { symlinks: true, hidden: false }, "/absolute", true),
            (Visible { symlinks: true, hidden: false }, "/loop", false),
            (Visible { symlinks: true, hidden: false }, "/../outside", false),
            (Visible { symlinks: false, hidden: true }, "/.hidden", true),
            (Visible { symlinks: false, hidden: true }, "/../outside", false),
        ] {
            assert_eq!(serves(&root.served(visible), path), expected, "{path} with {visible:?}");
        }
    }

    #[test]
    fn a_replaced_file_has_another_version() {
        let root = Root::new("versions");
        let directory = root.served(Visible::default());
        let version = || directory.open("/inner/file").expect("no error").expect("a file").version;
        let first = version();
        assert_eq!(first, version());
        fs::write(root.0.join("served/new"), "inside").expect("a file");
        fs::rename(root.0.join("served/new"), root.0.join("served/inner/file")).expect("renamed");
        assert_ne!(first.etag, version().etag);
    }
}
