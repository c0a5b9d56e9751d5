//! Configuration of a connection, chosen by the host before it begins.

use super::transport::{Protocol, Transport};
use crate::external::{Choice, ExternalParts};
use crate::path::PathConfig;
use anabranch_units::PathId;
use core::num::NonZeroU32;
use std::sync::Arc;

/// Random numbers for keys, initial sequence numbers and nonces: from the operating system live, from the seed in
/// simulation.
pub trait Entropy: Send {
    /// The next 64 random bits.
    fn next_u64(&mut self) -> u64;
}

/// One in so many segments is withheld where clients are not trusted: that costs less than 0.5 % of the goodput.
pub const WITHHELD_INTERVAL: NonZeroU32 = NonZeroU32::new(1_000).unwrap();

/// Everything that the host decides before a connection begins.
#[derive(Clone, Debug)]
pub struct Config {
    /// How the endpoint behaves.
    pub transport: Transport,
    /// Paths whose subflows have another congestion control.
    pub path_congestion_control: Vec<(PathId, Choice)>,
    /// A client joins to the remote addresses of all its paths; otherwise only to that of the first path and to those
    /// that the server advertised, as a host without other knowledge must.
    pub join_unannounced: bool,
    /// This end's port: the listening one of a server, the first ephemeral one of a client.
    pub local_port: u16,
    /// The server's port, on a client.
    pub remote_port: u16,
    /// The paths; the first carries the initial subflow.
    pub paths: Vec<PathConfig>,
    /// Links may take smaller packets than the paths' MTUs say. Then segments that are lost because of their size are
    /// noticed, and larger sizes are tried. Where every link is known to take the MTU, this is needless: it costs a few
    /// packets after timeouts.
    pub mtu_discovery: bool,
    /// One in so many segments with new data, on average, is withheld for a round trip, and a subflow is reset whose
    /// peer acknowledges it before. `None`: the peer is trusted not to acknowledge what it has not received, as in
    /// simulation.
    pub withheld_interval: Option<NonZeroU32>,
}

impl Config {
    /// An endpoint with the default [`Transport`] but for its protocol.
    ///
    /// # Panics
    /// If `paths` is empty.
    pub fn new(protocol: Protocol, paths: Vec<PathConfig>) -> Self {
        assert!(!paths.is_empty(), "a connection needs a path");
        Config {
            transport: Transport { protocol, ..Transport::default() },
            path_congestion_control: Vec::new(),
            join_unannounced: true,
            local_port: 80,
            remote_port: 80,
            paths,
            mtu_discovery: false,
            withheld_interval: None,
        }
    }

    /// The congestion control for a subflow on that path.
    pub(crate) fn congestion_control_on(&self, path: PathId) -> &Choice {
        let own = self.path_congestion_control.iter().find(|(id, _)| *id == path);
        own.map_or(&self.transport.congestion_control, |(_, choice)| choice)
    }

    /// The host that makes the parts that are in no registry; `None` if all are in one. A configuration has parts of
    /// one host.
    pub fn external_parts(&self) -> Option<&Arc<dyn ExternalParts>> {
        let transport = &self.transport;
        let own = self.path_congestion_control.iter().map(|(_, choice)| choice);
        let common = [&transport.scheduler, &transport.path_policy, &transport.congestion_control];
        common.into_iter().chain(own).find_map(Choice::external)
    }

    /// Lets another one make these parts.
    pub fn set_external_parts(&mut self, parts: &Arc<dyn ExternalParts>) {
        let transport = &mut self.transport;
        let own = self.path_congestion_control.iter_mut().map(|(_, choice)| choice);
        let common = [&mut transport.scheduler, &mut transport.path_policy, &mut transport.congestion_control];
        for choice in common.into_iter().chain(own).filter(|choice| choice.external().is_some()) {
            choice.attach(parts.clone());
        }
    }

    pub(crate) fn path(&self, id: PathId) -> Option<&PathConfig> {
        self.paths.iter().find(|path| path.id == id)
    }
}
