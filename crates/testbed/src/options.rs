//! Options of a run in the testbed.

use std::path::PathBuf;

/// The server of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerKind {
    /// Our endpoint, in this process.
    #[default]
    Anabranch,
    /// The kernel, in a namespace of its own: its scheduler, and its congestion control if it has the scenario's.
    Kernel,
}

impl ServerKind {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ServerKind::Anabranch => "anabranch",
            ServerKind::Kernel => "kernel",
        }
    }
}

/// The client of the first session. The others, and cross traffic, are always the scenario's players.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientKind {
    /// The scenario's player on a kernel's socket.
    #[default]
    Model,
    /// A program that the caller starts in the client's namespace. The server speaks HTTP to it.
    Program,
}

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Seed of the links' random effects.
    pub seed: u64,
    /// The server.
    pub server: ServerKind,
    /// The client of the first session.
    pub client: ClientKind,
    /// Directory for captures, one file for each path of each client; `None`: no captures.
    pub capture: Option<PathBuf>,
    /// The directory of the files that are served to programs; `None`: no files.
    pub content: Option<PathBuf>,
    /// Whether to keep every event and make a table of them.
    pub record_events: bool,
}

impl Options {
    /// Whether the client of the connection with this number is a program.
    pub(crate) fn is_program(&self, number: usize) -> bool {
        number == 0 && self.client == ClientKind::Program
    }
}
