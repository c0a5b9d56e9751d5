//! Namespaces of a client and of a server, with one device per path and routes that keep the paths apart.
//!
//! Path `i` (from 0) belongs to the client's address `10.(i+1).0.2`, or `fd00:(i+1)::2`, and its device `ct(i+1)`. The server
//! has a single address on all paths, as servers do: [`Family::server`].

use crate::{Netns, Tun};
use anabranch_units::PathId;
use std::fmt::Write;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kernel admits this many additional subflows, and so one path more.
pub const MAX_PATHS: u16 = 9;

/// The MTU of every device.
pub const MTU: u32 = 1500;

/// Which Internet the paths belong to.
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

    /// All addresses, as `ip` wants them.
    fn everything(self) -> &'static str {
        match self {
            Family::V4 => "0.0.0.0/0",
            Family::V6 => "::/0",
        }
    }

    /// The option by which `ip` knows it.
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

    /// What `ip address add` has to be told besides. An IPv6 address is not usable at once where its uniqueness is tested
    /// first; on a device without neighbours nobody could object.
    fn address_flags(self) -> &'static str {
        match self {
            Family::V4 => "",
            Family::V6 => " nodad",
        }
    }
}

/// Kernel parameters of both namespaces. All that bears on results is set, because a machine's defaults differ;
/// buffer sizes are those that Linux chooses on a machine with plenty of memory.
const SETTINGS: [(&str, &str); 8] = [
    ("net/mptcp/enabled", "1"),
    // A packet for one address comes in by whatever path it came; strict checks would drop it.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // A connection must not begin with what an earlier one has learnt.
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_rmem", "4096 131072 6291456"),
    ("net/ipv4/tcp_wmem", "4096 16384 4194304"),
    ("net/ipv4/tcp_sack", "1"),
    ("net/ipv4/tcp_timestamps", "1"),
];

/// Further parameters, so that the kernel sends nothing into the links of its own accord.
const QUIET: [(&str, &str); 3] = [
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    // No link-local address, and so nothing that would be announced from it.
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
];

/// A namespace and its devices, one for each path. Drop the devices first, or together with it.
#[derive(Debug)]
pub struct Site {
    /// The devices, by path.
    pub devices: Vec<Tun>,
    /// The namespace.
    pub namespace: Netns,
}

/// A namespace with settings, and without devices.
fn namespace(label: &str, family: Family, paths: u16, congestion_control: &str) -> io::Result<Netns> {
    if paths == 0 || paths > MAX_PATHS {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{paths} paths; 1 to {MAX_PATHS} are possible"),
        ));
    }
    let namespace = Netns::create(label)?;
    namespace.sysctl(&SETTINGS)?;
    namespace.sysctl(&[("net/ipv4/tcp_congestion_control", congestion_control)])?;
    match family {
        Family::V4 => namespace.sysctl(&[("net/ipv6/conf/default/disable_ipv6", "1")])?,
        Family::V6 => namespace.sysctl(&QUIET)?,
    }
    Ok(namespace)
}

/// Makes the devices `PREFIX1`, `PREFIX2`, ... that live as long as their owner.
fn devices(namespace: &Netns, prefix: &str, paths: u16) -> io::Result<Vec<Tun>> {
    (1..=paths).map(|i| Tun::create(namespace, &format!("{prefix}{i}"))).collect()
}

/// The `ip` commands that give a client its addresses, routes and endpoints.
fn client_script(family: Family, paths: u16) -> String {
    let mut script = String::from("link set lo up\n");
    let (everything, bits, flags) = (family.everything(), family.bits(), family.address_flags());
    for n in 1..=paths {
        let address = family.client(PathId(n - 1));
        let table = 100 + n;
        // The source address selects the device, so that each subflow stays on its path.
        let _ = write!(
            script,
            "link set ct{n} up mtu {MTU}\n\
             addr add {address}/{bits} dev ct{n}{flags}\n\
             route add {everything} dev ct{n} src {address} table {table}\n\
             rule add from {address}/{bits} lookup {table} pref {table}\n"
        );
    }
    let _ = writeln!(script, "route add {everything} dev ct1 src {}", family.client(PathId(0)));
    let _ = writeln!(script, "mptcp limits set subflows {} add_addr_accepted 0", paths - 1);
    for n in 1..=paths {
        let _ = writeln!(script, "mptcp endpoint add {} dev ct{n} id {n} subflow", family.client(PathId(n - 1)));
    }
    script
}

/// A client that opens a subflow on each of its paths; the first path carries the initial one.
///
/// # Errors
/// If something cannot be set up; [`crate::requirements::missing`] knows the common reasons.
pub fn client(family: Family, paths: u16, congestion_control: &str) -> io::Result<Site> {
    let namespace = namespace("client", family, paths, congestion_control)?;
    let devices = devices(&namespace, "ct", paths)?;
    namespace.ip_of(family.option(), &client_script(family, paths))?;
    Ok(Site { devices, namespace })
}

/// A server with [`Family::server`] as its address on all paths, for runs against a kernel at both ends.
///
/// # Errors
/// As [`client`].
pub fn server(family: Family, paths: u16, congestion_control: &str) -> io::Result<Site> {
    let namespace = namespace("server", family, paths, congestion_control)?;
    let devices = devices(&namespace, "st", paths)?;
    let (server, bits, flags) = (family.server(), family.bits(), family.address_flags());
    let mut script = format!("link set lo up\naddr add {server}/{bits} dev lo{flags}\n");
    for n in 1..=paths {
        let client = family.client(PathId(n - 1));
        let _ = write!(
            script,
            "link set st{n} up mtu {MTU}\n\
             route add {client}/{bits} dev st{n} src {server}\n"
        );
    }
    let _ = writeln!(script, "mptcp limits set subflows {} add_addr_accepted 0", paths - 1);
    namespace.ip_of(family.option(), &script)?;
    Ok(Site { devices, namespace })
}

/// A router in front of a server that runs inside the namespace as a program of its own. The site's devices are the router's ends
/// of the paths; behind them the devices `srv1`, `srv2`, ... exist without an owner, one for each path, and the program attaches
/// itself to them ([`Tun::open`]). What comes in by a path goes to the device of that path and no other.
///
/// # Errors
/// As [`client`].
pub fn router(family: Family, paths: u16) -> io::Result<Site> {
    let namespace = namespace("router", family, paths, "reno")?;
    let devices = devices(&namespace, "st", paths)?;
    let (server, bits) = (family.server(), family.bits());
    let mut script = String::from("link set lo up\n");
    for n in 1..=paths {
        let client = family.client(PathId(n - 1));
        let table = 200 + n;
        let _ = write!(
            script,
            "tuntap add dev srv{n} mode tun\n\
             link set st{n} up mtu {MTU}\n\
             link set srv{n} up mtu {MTU}\n\
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
