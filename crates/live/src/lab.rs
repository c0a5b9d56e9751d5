//! Namespaces of a client and of a server, with one device per path and routes that keep the paths apart.
//!
//! Path `i` (from 0) belongs to the client's address `10.(i+1).0.2` and its device `ct(i+1)`. The server has a
//! single address on all paths, as servers do: [`SERVER`].

use crate::{Netns, Tun};
use anabranch_units::PathId;
use std::fmt::Write;
use std::io;
use std::net::Ipv4Addr;

/// The server's address on every path.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);

/// The kernel admits this many additional subflows, and so one path more.
pub const MAX_PATHS: u16 = 9;

/// The MTU of every device.
pub const MTU: u32 = 1500;

/// The client's address on a path.
pub fn client_address(path: PathId) -> Ipv4Addr {
    Ipv4Addr::new(10, (path.0 + 1) as u8, 0, 2)
}

/// Kernel parameters of both namespaces. All that bears on results is set, because a machine's defaults differ;
/// buffer sizes are those that Linux chooses on a machine with plenty of memory.
const SETTINGS: [(&str, &str); 10] = [
    ("net/mptcp/enabled", "1"),
    // A packet for one address comes in by whatever path it came; strict checks would drop it.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // Otherwise the kernel sends router solicitations into the links.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    // A connection must not begin with what an earlier one has learnt.
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_rmem", "4096 131072 6291456"),
    ("net/ipv4/tcp_wmem", "4096 16384 4194304"),
    ("net/ipv4/tcp_sack", "1"),
    ("net/ipv4/tcp_timestamps", "1"),
];

/// A namespace and its devices, one for each path. Drop the devices first, or together with it.
#[derive(Debug)]
pub struct Site {
    /// The devices, by path.
    pub devices: Vec<Tun>,
    /// The namespace.
    pub namespace: Netns,
}

fn site(label: &str, prefix: &str, paths: u16, congestion_control: &str) -> io::Result<Site> {
    if paths == 0 || paths > MAX_PATHS {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{paths} paths; 1 to {MAX_PATHS} are possible"),
        ));
    }
    let namespace = Netns::create(label)?;
    namespace.sysctl(&SETTINGS)?;
    namespace.sysctl(&[("net/ipv4/tcp_congestion_control", congestion_control)])?;
    let devices: io::Result<_> = (1..=paths).map(|i| Tun::create(&namespace, &format!("{prefix}{i}"))).collect();
    Ok(Site { devices: devices?, namespace })
}

/// A client that opens a subflow on each of its paths; the first path carries the initial one.
///
/// # Errors
/// If something cannot be set up; [`crate::requirements::missing`] knows the common reasons.
pub fn client(paths: u16, congestion_control: &str) -> io::Result<Site> {
    let site = site("client", "ct", paths, congestion_control)?;
    let mut script = String::from("link set lo up\n");
    for n in 1..=paths {
        let address = client_address(PathId(n - 1));
        let table = 100 + n;
        // The source address selects the device, so that each subflow stays on its path.
        let _ = write!(
            script,
            "addr add {address}/32 dev ct{n}\n\
             link set ct{n} up mtu {MTU}\n\
             route add default dev ct{n} src {address} table {table}\n\
             rule add from {address}/32 lookup {table} pref {table}\n"
        );
    }
    let _ = writeln!(script, "route add default dev ct1 src {}", client_address(PathId(0)));
    let _ = writeln!(script, "mptcp limits set subflows {} add_addr_accepted 0", paths - 1);
    for n in 1..=paths {
        let _ = writeln!(script, "mptcp endpoint add {} dev ct{n} id {n} subflow", client_address(PathId(n - 1)));
    }
    site.namespace.ip(&script)?;
    Ok(site)
}

/// A server with [`SERVER`] as its address on all paths, for runs against a kernel at both ends.
///
/// # Errors
/// As [`client`].
pub fn server(paths: u16, congestion_control: &str) -> io::Result<Site> {
    let site = site("server", "st", paths, congestion_control)?;
    let mut script = format!("link set lo up\naddr add {SERVER}/32 dev lo\n");
    for n in 1..=paths {
        let _ = write!(
            script,
            "link set st{n} up mtu {MTU}\n\
             route add {}/32 dev st{n} src {SERVER}\n",
            client_address(PathId(n - 1))
        );
    }
    let _ = writeln!(script, "mptcp limits set subflows {} add_addr_accepted 0", paths - 1);
    site.namespace.ip(&script)?;
    Ok(site)
}
