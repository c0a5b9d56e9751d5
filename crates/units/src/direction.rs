//! The two directions of a link.

use core::fmt;
use core::ops::{Index, IndexMut};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A direction of a link, and of the packets on it. Written as `down` and `up`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkDirection {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

impl LinkDirection {
    /// Both directions, in the order in which metrics and tables list them.
    pub const BOTH: [LinkDirection; 2] = [LinkDirection::Down, LinkDirection::Up];

    /// Its name: `down` or `up`.
    pub const fn name(self) -> &'static str {
        match self {
            LinkDirection::Down => "down",
            LinkDirection::Up => "up",
        }
    }

    /// Its position in [`LinkDirection::BOTH`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for LinkDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A value for each direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    /// That of packets from the server to the client.
    pub down: T,
    /// That of packets from the client to the server.
    pub up: T,
}

impl<T> PerDirection<T> {
    /// The values that `make` returns, first for [`LinkDirection::Down`].
    pub fn from_fn(mut make: impl FnMut(LinkDirection) -> T) -> Self {
        PerDirection { down: make(LinkDirection::Down), up: make(LinkDirection::Up) }
    }
}

impl<T> Index<LinkDirection> for PerDirection<T> {
    type Output = T;

    #[inline]
    fn index(&self, direction: LinkDirection) -> &T {
        match direction {
            LinkDirection::Down => &self.down,
            LinkDirection::Up => &self.up,
        }
    }
}

impl<T> IndexMut<LinkDirection> for PerDirection<T> {
    #[inline]
    fn index_mut(&mut self, direction: LinkDirection) -> &mut T {
        match direction {
            LinkDirection::Down => &mut self.down,
            LinkDirection::Up => &mut self.up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_for_each_direction_is_found_by_its_direction() {
        let mut names = PerDirection::from_fn(|direction| direction.to_string());
        assert_eq!((names.down.as_str(), names.up.as_str()), ("down", "up"));
        names[LinkDirection::Up].push('!');
        assert_eq!(LinkDirection::BOTH.map(|direction| names[direction].as_str()), ["down", "up!"]);
        assert_eq!(LinkDirection::BOTH.map(LinkDirection::index), [0, 1]);
    }
}
