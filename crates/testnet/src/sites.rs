//! The namespaces of a test network: a client and a server, with one device per path and routes that keep the paths
//! apart.
//!
//! Path `i` (from 0) belongs to the client's address `10.(i+1).0.2`, or `fd00:(i+1)::2`, and its device `ct(i+1)`. The
//! server has a single address on all paths, as servers do: [`Family::server`].

use crate::Netns;
use anabranch_live::{DEFAULT_MTU, Tun};
use anabranch_units::PathId;
use std::fmt::Write;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The number of paths of a client: the kernel's limit of additional subflows, plus one.
pub const MAX_PATHS: u16 = 9;

/// Address family of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The server's address on every path.
    pub fn server(self) -> IpAddr {
        match self {
            Family::V4 => IpAddr::V4(Ipv4Addr::new(10, 99, 0, 1)),
            Family::V6 => IpAddr::V6(Ipv6Addr::new(0xfd00, 0x99, 0, 0, 0, 0, 0, 1)),
        }
    }

    /// The client's address on a path.
    pub fn client(self, path: PathId) -> IpAddr {
        let number = path.0 + 1;
        match self {
            Family::V4 => IpAddr::V4(Ipv4Addr::new(10, number as u8, 0, 2)),
            Family::V6 => IpAddr::V6(Ipv6Addr::new(0xfd00, number, 0, 0, 0, 0, 0, 2)),
        }
    }

    /// The prefix of all addresses, in `ip`'s syntax.
    fn everything(self) -> &'static str {
        match self {
            Family::V4 => "0.0.0.0/0",
            Family::V6 => "::/0",
        }
    }

    /// The family's option of `ip`.
    fn option(self) -> &'static str {
        match self {
            Family::V4 => "-4",
            Family::V6 => "-6",
        }
    }

    /// Bits of an address.
    fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }

    /// Further options of `ip address add`. An IPv6 address cannot be used at once where duplicate address detection
    /// runs first; a device without neighbours does not need it.
    fn address_flags(self) -> &'static str {
        match self {
            Family::V4 => "",
            Family::V6 => " nodad",
        }
    }
}

/// Kernel parameters of both namespaces. All that affect results are set, because a machine's defaults differ;
/// buffer sizes are those that Linux chooses on a machine with plenty of memory.
const SETTINGS: [(&str, &str); 8] = [
    ("net/mptcp/enabled", "1"),
    // A packet for one address may arrive by any path; strict reverse-path filtering would drop it.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // A connection must not use metrics of an earlier one.
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_rmem", "4096 131072 6291456"),
    ("net/ipv4/tcp_wmem", "4096 16384 4194304"),
    ("net/ipv4/tcp_sack", "1"),
    ("net/ipv4/tcp_timestamps", "1"),
];

/// Further parameters, to keep the kernel from sending packets of its own into the links.
const QUIET: [(&str, &str); 3] = [
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    // No link-local address, and so no router or neighbour messages from it.
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
];

/// A namespace and its devices, one for each path. Drop the devices first, or together with it.
#[derive(Debug)]
pub struct Site {
    /// The devices, indexed by path.
    pub devices: Vec<Tun>,
    /// The namespace.
    pub namespace: Netns,
}

/// One path of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitePath {
    /// Identifier, which determines the client's address and the devices' names.
    pub id: PathId,
    /// The largest IP packet.
    pub mtu: u32,
    /// Whether the client's subflow on it is used only when no other works.
    pub backup: bool,
}

/// Configuration of a site.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The family of all addresses.
    pub family: Family,
    /// Its paths. A client has up to [`MAX_PATHS`], of which the first carries the initial subflow; a server has those
    /// of all its clients.
    pub paths: Vec<SitePath>,
    /// Kernel parameters in addition to, or instead of, those of every site.
    pub settings: Vec<(&'static str, String)>,
    /// Packets that a server may send before the first acknowledgment; `None` for the kernel's default.
    pub initial_window: Option<u32>,
}

impl Plan {
    /// Paths number 0 to `paths - 1` with the usual MTU.
    pub fn new(family: Family, paths: u16, congestion_control: &str) -> Self {
        let path = |i| SitePath { id: PathId(i), mtu: DEFAULT_MTU, backup: false };
        Plan {
            family,
            paths: (0..paths).map(path).collect(),
            settings: vec![("net/ipv4/tcp_congestion_control", congestion_control.to_owned())],
            initial_window: None,
        }
    }

    /// A namespace with settings, and without devices.
    fn namespace(&self, label: &str) -> io::Result<Netns> {
        let namespace = Netns::create(label)?;
        namespace.sysctl(&SETTINGS)?;
        let settings: Vec<_> = self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        namespace.sysctl(&settings)?;
        match self.family {
            Family::V4 => namespace.sysctl(&[("net/ipv6/conf/default/disable_ipv6", "1")])?,
            Family::V6 => namespace.sysctl(&QUIET)?,
        }
        Ok(namespace)
    }

    /// Creates the devices `PREFIX1`, `PREFIX2`, ..., removed with their owner.
    fn devices(&self, namespace: &Netns, prefix: &str) -> io::Result<Vec<Tun>> {
        self.paths.iter().map(|path| namespace.run(|| Tun::open(&format!("{prefix}{}", number(path.id))))?).collect()
    }

    fn check(&self, most: u16) -> io::Result<()> {
        let paths = self.paths.len();
        let fits = (1..=usize::from(most)).contains(&paths) && self.paths.iter().all(|path| path.id.0 < MAX_NUMBER);
        let message = || format!("{paths} paths; 1 to {most} are possible, with numbers below {MAX_NUMBER}");
        if fits { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, message())) }
    }

    /// The `ip` commands that make a path of a client usable: routes and endpoint.
    fn client_path(&self, path: SitePath) -> String {
        let (family, n) = (self.family, number(path.id));
        let (address, everything, table) = (family.client(path.id), family.everything(), FIRST_TABLE + n);
        let mut script = format!(
            "link set ct{n} up mtu {}\n\
             route replace {everything} dev ct{n} src {address} table {table}\n",
            path.mtu
        );
        if self.paths[0] == path {
            let _ = writeln!(script, "route replace {everything} dev ct{n} src {address}");
        }
        let backup = if path.backup { " backup" } else { "" };
        let _ = writeln!(script, "mptcp endpoint add {address} dev ct{n} id {n} subflow{backup}");
        script
    }

    /// The `ip` commands that give a client its addresses, routes and endpoints.
    fn client_script(&self) -> String {
        let (bits, flags) = (self.family.bits(), self.family.address_flags());
        let mut script = String::from("link set lo up\n");
        // The kernel's limit counts all but the initial subflow, and that may be opened again.
        let most = self.paths.len().min(usize::from(MAX_PATHS - 1));
        let _ = writeln!(script, "mptcp limits set subflows {most} add_addr_accepted 0");
        for path in &self.paths {
            let (n, address) = (number(path.id), self.family.client(path.id));
            let table = FIRST_TABLE + n;
            // The source address selects the device, so that each subflow stays on its path.
            let _ = write!(
                script,
                "addr add {address}/{bits} dev ct{n}{flags}\n\
                 rule add from {address}/{bits} lookup {table} pref {table}\n"
            );
            script += &self.client_path(*path);
        }
        script
    }

    /// A client that opens a subflow on each of its paths.
    ///
    /// # Errors
    /// If something cannot be set up; [`crate::requirements::missing`] knows the common reasons.
    pub fn client(&self) -> io::Result<Site> {
        self.check(MAX_PATHS)?;
        let namespace = self.namespace("client")?;
        let devices = self.devices(&namespace, "ct")?;
        namespace.ip_of(self.family.option(), &self.client_script())?;
        Ok(Site { devices, namespace })
    }

    /// Removes a client's interface on a path, or brings it back, as a connection manager does: its subflow is closed
    /// or opened.
    ///
    /// # Errors
    /// If the kernel refuses: the path is not the client's, or is in that state already.
    pub fn set_interface(&self, client: &Netns, path: PathId, up: bool) -> io::Result<()> {
        let Some(path) = self.paths.iter().find(|own| own.id == path) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("the client has no path {}", path.0)));
        };
        let n = number(path.id);
        let script = match up {
            true => self.client_path(*path),
            false => format!("mptcp endpoint delete id {n}\nlink set ct{n} down\n"),
        };
        client.ip_of(self.family.option(), &script)
    }

    /// A server with [`Family::server`] as its address on all paths, for runs against a kernel at both ends.
    ///
    /// # Errors
    /// As [`Plan::client`].
    pub fn server(&self) -> io::Result<Site> {
        self.check(MAX_NUMBER)?;
        let namespace = self.namespace("server")?;
        let devices = self.devices(&namespace, "st")?;
        let (server, bits, flags) = (self.family.server(), self.family.bits(), self.family.address_flags());
        let window = self.initial_window.map(|packets| format!(" initcwnd {packets}")).unwrap_or_default();
        let mut script = format!("link set lo up\naddr add {server}/{bits} dev lo{flags}\n");
        for path in &self.paths {
            let (n, client) = (number(path.id), self.family.client(path.id));
            let _ = write!(
                script,
                "link set st{n} up mtu {}\n\
                 route add {client}/{bits} dev st{n} src {server}{window}\n",
                path.mtu
            );
        }
        let _ = writeln!(script, "mptcp limits set subflows {} add_addr_accepted 0", MAX_PATHS - 1);
        namespace.ip_of(self.family.option(), &script)?;
        Ok(Site { devices, namespace })
    }
}

/// The number of a path in its devices, addresses and tables.
fn number(path: PathId) -> u16 {
    path.0 + 1
}

/// The largest number of paths of all clients together: it is one byte of an address.
pub const MAX_NUMBER: u16 = 250;

/// The routing table of the path before the first one.
const FIRST_TABLE: u16 = 1000;

/// A client that opens a subflow on each of its paths; the first path carries the initial one.
///
/// # Errors
/// If something cannot be set up; [`crate::requirements::missing`] knows the common reasons.
pub fn client(family: Family, paths: u16, congestion_control: &str) -> io::Result<Site> {
    Plan::new(family, paths, congestion_control).client()
}

/// A server with [`Family::server`] as its address on all paths, for runs against a kernel at both ends.
///
/// # Errors
/// As [`client`].
pub fn server(family: Family, paths: u16, congestion_control: &str) -> io::Result<Site> {
    Plan::new(family, paths, congestion_control).server()
}

/// A router in front of a server that runs inside the namespace as a separate program. The site's devices are the
/// router's ends of the paths; behind them the devices `srv1`, `srv2`, ... exist without an owner, one for each path,
/// and the program attaches itself to them ([`Tun::open`]). Packets of a path are routed to the device of that path
/// only.
/// # Errors
/// As [`client`].
pub fn router(family: Family, paths: u16) -> io::Result<Site> {
    let plan = Plan::new(family, paths, "reno");
    plan.check(MAX_PATHS)?;
    let namespace = plan.namespace("router")?;
    let devices = plan.devices(&namespace, "st")?;
    let (server, bits) = (family.server(), family.bits());
    let mut script = String::from("link set lo up\n");
    for n in 1..=paths {
        let client = family.client(PathId(n - 1));
        let table = 200 + n;
        let _ = write!(
            script,
            "tuntap add dev srv{n} mode tun\n\
             link set st{n} up mtu {DEFAULT_MTU}\n\
             link set srv{n} up mtu {DEFAULT_MTU}\n\
             route add {client}/{bits} dev st{n}\n\
             route add {server}/{bits} dev srv{n} table {table}\n\
             rule add iif st{n} lookup {table} pref {table}\n"
        );
    }
    namespace.ip_of(family.option(), &script)?;
    match family {
        Family::V4 => namespace.sysctl(&[("net/ipv4/ip_forward", "1")])?,
        Family::V6 => namespace.sysctl(&[("net/ipv6/conf/all/forwarding", "1")])?,
    }
    Ok(Site { devices, namespace })
}
