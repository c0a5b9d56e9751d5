//! Network namespaces that are removed with their owner.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The directory of `ip netns`.
const DIRECTORY: &str = "/run/netns";

/// Prefix of the names of all namespaces made here; the process id follows, so that a later process can detect
/// abandoned ones.
const PREFIX: &str = "anabranch-";

/// Number of characters of a label in the name.
const LABEL_LEN: usize = 16;

/// Namespaces made by this process so far.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A network namespace, removed when dropped, also by a panic.
///
/// Devices and sockets in it are removed with their last user. A process that is killed leaves its namespaces behind;
/// [`Netns::sweep`] removes these.
#[derive(Debug)]
pub struct Netns {
    name: String,
}

impl Netns {
    /// Creates a namespace with a name of this process's id, a running number and `label` (its letters and digits).
    ///
    /// # Errors
    /// If `ip netns add` fails: it is not installed, or the caller is not privileged.
    pub fn create(label: &str) -> io::Result<Self> {
        let label: String = label.chars().filter(char::is_ascii_alphanumeric).take(LABEL_LEN).collect();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}-{label}", std::process::id());
        run(Command::new("ip").args(["netns", "add", &name]))?;
        Ok(Netns { name })
    }

    /// Removes the namespaces of processes that no longer run and returns their number.
    ///
    /// # Errors
    /// If the list of namespaces cannot be read. One that cannot be removed is not an error: another sweep may be
    /// faster.
    pub fn sweep() -> io::Result<usize> {
        if !Path::new(DIRECTORY).exists() {
            return Ok(0);
        }
        let mut removed = 0;
        for entry in fs::read_dir(DIRECTORY)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
            let orphaned = owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
            if orphaned && run(Command::new("ip").args(["netns", "delete", name])).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// The name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that runs a program inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs `ip` commands inside, one for each line of `script`; stops at the first that fails.
    ///
    /// # Errors
    /// What `ip` printed.
    pub fn ip(&self, script: &str) -> io::Result<()> {
        self.ip_of("-4", script)
    }

    /// [`Netns::ip`] for a family (`-4` or `-6`).
    ///
    /// # Errors
    /// What `ip` printed.
    pub fn ip_of(&self, family: &str, script: &str) -> io::Result<()> {
        let mut command = Command::new("ip");
        command.args([family, "-n", &self.name, "-batch", "-"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(script.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        check(&command, output.status.success(), &output.stderr)
    }

    /// Sets kernel parameters inside, named as under `/proc/sys`: `net/ipv4/tcp_congestion_control`.
    ///
    /// # Errors
    /// If one does not exist or its value is refused; the message names it.
    pub fn sysctl(&self, settings: &[(&str, &str)]) -> io::Result<()> {
        self.run(|| {
            for (name, value) in settings {
                let path = Path::new("/proc/sys").join(name);
                fs::write(&path, value)
                    .map_err(|e| io::Error::new(e.kind(), format!("cannot set {name} to {value:?}: {e}")))?;
            }
            Ok(())
        })?
    }

    /// Runs `task` on a thread inside the namespace: sockets and devices that it creates belong to it.
    ///
    /// # Errors
    /// If the thread cannot enter.
    ///
    /// # Panics
    /// If `task` does.
    pub fn run<T: Send>(&self, task: impl FnOnce() -> T + Send) -> io::Result<T> {
        let task = self.inside(task)?;
        std::thread::scope(|scope| match scope.spawn(task).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// Wraps `task` so that its thread enters the namespace first. A thread never leaves it again, so pass this to
    /// [`std::thread::spawn`].
    ///
    /// # Errors
    /// If the namespace is gone; the task itself fails if the thread is not allowed to enter.
    pub fn inside<T, F: FnOnce() -> T>(&self, task: F) -> io::Result<impl FnOnce() -> io::Result<T> + use<T, F>> {
        let namespace = File::open(Path::new(DIRECTORY).join(&self.name))?;
        Ok(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(task())
        })
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("ip").args(["netns", "delete", &self.name])) {
            // A panic here would abort a test that fails already; the next sweep tries again.
            eprintln!("could not remove network namespace {}: {error}", self.name);
        }
    }
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    check(command, output.status.success(), &output.stderr)
}

/// An error with the failed command and its output.
fn check(command: &Command, success: bool, stderr: &[u8]) -> io::Result<()> {
    if success {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(stderr);
    Err(io::Error::other(format!("{command:?} failed: {}", printed.trim())))
}
