//! The two ends of a connection.

use anabranch_units::LinkDirection;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that connects.
    Client,
    /// The end that accepts.
    Server,
}

impl Side {
    /// The position among a flow's two components.
    pub(super) fn index(self) -> usize {
        usize::from(self == Side::Server)
    }

    /// The peer's end.
    pub(super) fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    /// As sources of the table of events name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }

    /// The direction of the packets that this end sends.
    pub(super) fn sends(self) -> LinkDirection {
        match self {
            Side::Client => LinkDirection::Up,
            Side::Server => LinkDirection::Down,
        }
    }

    /// The end that packets of this direction reach.
    pub(super) fn receiver(direction: LinkDirection) -> Side {
        match direction {
            LinkDirection::Down => Side::Client,
            LinkDirection::Up => Side::Server,
        }
    }
}
