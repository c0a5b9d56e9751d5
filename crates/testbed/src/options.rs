//! What a run in the testbed may be asked for.

use std::path::PathBuf;

/// Who serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerKind {
    /// Our endpoint, in this process.
    #[default]
    Anabranch,
    /// The kernel, in a namespace of its own: its scheduler, and its congestion control if it has the scenario's.
    Kernel,
}

impl ServerKind {
    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ServerKind::Anabranch => "anabranch",
            ServerKind::Kernel => "kernel",
        }
    }
}

/// Who watches in the first session. The others, and cross traffic, are always the scenario's players.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientKind {
    /// The scenario's player on a kernel's socket.
    #[default]
    Model,
    /// A program that the caller starts in the client's namespace. The server speaks HTTP to it.
    Program,
}

/// What a run may be asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Decides what the links do to packets.
    pub seed: u64,
    /// Who serves.
    pub server: ServerKind,
    /// Who watches.
    pub client: ClientKind,
    /// A directory for captures, one file for each path of each client.
    pub capture: Option<PathBuf>,
    /// The directory whose files are served to programs.
    pub content: Option<PathBuf>,
    /// Keep every event and make a table of them.
    pub record_events: bool,
}

impl Options {
    /// Whether the client of the connection with this number is a program.
    pub(crate) fn is_program(&self, number: usize) -> bool {
        number == 0 && self.client == ClientKind::Program
    }
}
