//! The kernel's path manager, by generic netlink: MP_PRIO of a subflow, as the server's user-space path manager orders
//! it.
//!
//! Attributes and commands are those of `linux/mptcp_pm.h` and `linux/genetlink.h`.

use crate::KernelError;
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::sockopt::set_socket_timeout;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLMSG_ERROR: u16 = 2;
/// Attributes that contain attributes.
const NESTED: u16 = 0x8000;

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CTRL_ATTR_MCAST_GROUPS: u16 = 7;
const CTRL_ATTR_MCAST_GRP_NAME: u16 = 1;
const CTRL_ATTR_MCAST_GRP_ID: u16 = 2;

const FAMILY: &[u8] = b"mptcp_pm\0";
const EVENTS: &[u8] = b"mptcp_pm_events\0";
const VERSION: u8 = 1;
const CMD_SET_FLAGS: u8 = 7;
const ATTR_ADDR: u16 = 1;
const ATTR_TOKEN: u16 = 4;
const ATTR_ADDR_REMOTE: u16 = 6;
const ADDR_FAMILY: u16 = 1;
const ADDR_ID: u16 = 2;
const ADDR_ADDR4: u16 = 3;
const ADDR_ADDR6: u16 = 4;
const ADDR_PORT: u16 = 5;
const ADDR_FLAGS: u16 = 6;
const FLAG_BACKUP: u32 = 1 << 2;

/// Bytes of the headers of a message, and of the generic header behind it.
const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;
/// The longest answer.
const LONGEST: usize = 1 << 15;
const TIMEOUT: Duration = Duration::from_secs(2);

/// An end of a subflow.
pub(crate) type End = (IpAddr, u16);

/// Sockets to the path manager of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct PathManager {
    socket: OwnedFd,
    family: u16,
    /// While a program receives events, the kernel leaves the acceptance of joins to user space, and accepts them.
    events: OwnedFd,
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The attributes in a row: kind without the mark of nested ones, and value.
fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while let [a, b, c, d, ..] = *bytes {
        let len = usize::from(u16::from_ne_bytes([a, b]));
        let Some(value) = bytes.get(4..len) else { break };
        found.push((u16::from_ne_bytes([c, d]) & !NESTED, value));
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

fn value_of<'a>(list: &[(u16, &'a [u8])], kind: u16) -> Option<&'a [u8]> {
    list.iter().find(|(found, _)| *found == kind).map(|(_, value)| *value)
}

fn short(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?))
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}

/// An address as the path manager takes it.
fn address((address, port): End, more: &[u8]) -> Vec<u8> {
    let (family, octets) = match address {
        IpAddr::V4(v4) => (2u16, attribute(ADDR_ADDR4, &v4.octets())),
        IpAddr::V6(v6) => (10u16, attribute(ADDR_ADDR6, &v6.octets())),
    };
    [attribute(ADDR_FAMILY, &family.to_ne_bytes()), octets, attribute(ADDR_PORT, &port.to_ne_bytes()), more.to_vec()]
        .concat()
}

fn open() -> rustix::io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(GENERIC))?;
    bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, Some(TIMEOUT))?;
    Ok(socket)
}

/// Sends a command and returns the attributes of its answer; an acknowledgment has none.
fn call(socket: &OwnedFd, family: u16, command: u8, attributes: &[u8], flags: u16) -> rustix::io::Result<Vec<u8>> {
    let len = (HEADER + GENERIC_HEADER + attributes.len()) as u32;
    let mut message = len.to_ne_bytes().to_vec();
    message.extend([family.to_ne_bytes(), flags.to_ne_bytes()].concat());
    message.extend([0; 8]);
    message.extend([command, VERSION, 0, 0]);
    message.extend(attributes);
    send(socket, &message, SendFlags::empty())?;
    let mut answer = vec![0; LONGEST];
    let (received, _) = recv(socket, &mut answer[..], RecvFlags::empty())?;
    answer.truncate(received);
    if answer.get(4..).and_then(short) != Some(NLMSG_ERROR) {
        return Ok(answer.split_off(answer.len().min(HEADER + GENERIC_HEADER)));
    }
    match answer.get(HEADER..).and_then(word) {
        Some(0) => Ok(Vec::new()),
        // The kernel's error numbers are negative.
        Some(negative) => Err(rustix::io::Errno::from_raw_os_error((negative as i32).wrapping_neg())),
        None => Err(rustix::io::Errno::BADMSG),
    }
}

impl PathManager {
    /// Opens the path manager of this namespace.
    pub fn open() -> Result<Self, KernelError> {
        let doing = "cannot reach the kernel's path manager";
        let failed = |error| KernelError::refused(doing, error);
        let socket = open().map_err(failed)?;
        let name = attribute(CTRL_ATTR_FAMILY_NAME, FAMILY);
        let answer = call(&socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &name, NLM_F_REQUEST).map_err(failed)?;
        let answer = attributes(&answer);
        let absent = || KernelError::Machine(format!("{doing}: this kernel has none"));
        let family = value_of(&answer, CTRL_ATTR_FAMILY_ID).and_then(short).ok_or_else(absent)?;
        let groups = attributes(value_of(&answer, CTRL_ATTR_MCAST_GROUPS).ok_or_else(absent)?);
        let group = groups.iter().find_map(|(_, group)| {
            let group = attributes(group);
            let found = value_of(&group, CTRL_ATTR_MCAST_GRP_NAME) == Some(EVENTS);
            found.then(|| value_of(&group, CTRL_ATTR_MCAST_GRP_ID).and_then(word)).flatten()
        });
        let events = open().map_err(failed)?;
        join(&events, group.ok_or_else(absent)?).map_err(|error| KernelError::refused(doing, error))?;
        Ok(PathManager { socket, family, events })
    }

    /// Asks the peer by MP_PRIO to use a subflow only if no other works, and does the same here; or takes that back.
    pub fn set_backup(&self, token: u32, local: End, remote: End, backup: bool) -> rustix::io::Result<()> {
        let flags = if backup { FLAG_BACKUP } else { 0 };
        let more = [attribute(ADDR_ID, &[0]), attribute(ADDR_FLAGS, &flags.to_ne_bytes())].concat();
        let request = [
            attribute(ATTR_ADDR | NESTED, &address(local, &more)),
            attribute(ATTR_TOKEN, &token.to_ne_bytes()),
            attribute(ATTR_ADDR_REMOTE | NESTED, &address(remote, &[])),
        ];
        call(&self.socket, self.family, CMD_SET_FLAGS, &request.concat(), NLM_F_REQUEST | NLM_F_ACK).map(|_| ())
    }

    /// Reads and drops the events that have come: what changes is in the table of subflows.
    pub fn drain(&self) {
        let mut buffer = vec![0; LONGEST];
        while recv(&self.events, &mut buffer[..], RecvFlags::DONTWAIT).is_ok() {}
    }
}

/// Receives the messages of a group.
fn join(socket: &OwnedFd, group: u32) -> std::io::Result<()> {
    let len = size_of::<u32>() as libc::socklen_t;
    let option = libc::NETLINK_ADD_MEMBERSHIP;
    // SAFETY: the kernel reads `len` bytes from where the pointer leads, which outlives the call.
    let failed =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_NETLINK, option, (&raw const group).cast(), len) } != 0;
    if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
