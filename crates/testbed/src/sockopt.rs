//! Socket options without library support: the kernel's counters of a connection and of each of its subflows.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The level of options of Multipath TCP (`linux/mptcp.h`).
const SOL_MPTCP: libc::c_int = 284;
/// Counters of all subflows (`MPTCP_FULL_INFO`, Linux 6.5).
const MPTCP_FULL_INFO: libc::c_int = 4;

/// Bytes of `struct tcp_info` to read: the size in Linux 6.18, and some more. An older kernel fills in fewer.
pub(crate) const TCP_INFO_BYTES: usize = 264;
/// Bytes of `struct mptcp_subflow_info`: a number, padding, and two addresses of 128 bytes.
pub(crate) const SUBFLOW_INFO_BYTES: usize = 264;

/// Reads an option into `buffer` and returns the number of bytes filled.
fn get(socket: impl AsFd, level: libc::c_int, name: libc::c_int, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = buffer.len() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `buffer` and `len` outlive the call; the kernel writes at most `len` bytes, and then their number to
    // `len`.
    let failed = unsafe { libc::getsockopt(fd, level, name, buffer.as_mut_ptr().cast(), &raw mut len) } != 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(len as usize) }
}

/// `struct tcp_info` of a TCP socket, or of the only subflow of a connection that fell back; fields unknown to this
/// kernel are zero.
pub(crate) fn tcp_info(socket: impl AsFd) -> io::Result<[u8; TCP_INFO_BYTES]> {
    let mut info = [0; TCP_INFO_BYTES];
    get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    Ok(info)
}

/// `struct mptcp_full_info` up to its optional last member.
#[repr(C)]
struct FullInfo {
    size_tcpinfo_kernel: u32,
    size_tcpinfo_user: u32,
    size_sfinfo_kernel: u32,
    size_sfinfo_user: u32,
    num_subflows: u32,
    size_arrays_user: u32,
    subflow_info: u64,
    tcp_info: u64,
}

/// One subflow: its `struct mptcp_subflow_info`, and its `struct tcp_info`.
pub(crate) type SubflowInfo = ([u8; SUBFLOW_INFO_BYTES], [u8; TCP_INFO_BYTES]);

/// The open subflows of an MPTCP connection.
///
/// # Errors
/// If the socket is not an MPTCP socket, has fallen back, or the kernel does not support the option.
pub(crate) fn subflow_infos(socket: impl AsFd, most: usize) -> io::Result<Vec<SubflowInfo>> {
    let mut subflows = vec![[0u8; SUBFLOW_INFO_BYTES]; most];
    let mut infos = vec![[0u8; TCP_INFO_BYTES]; most];
    let mut full = FullInfo {
        size_tcpinfo_kernel: 0,
        size_tcpinfo_user: TCP_INFO_BYTES as u32,
        size_sfinfo_kernel: 0,
        size_sfinfo_user: SUBFLOW_INFO_BYTES as u32,
        num_subflows: 0,
        size_arrays_user: most as u32,
        subflow_info: subflows.as_mut_ptr() as u64,
        tcp_info: infos.as_mut_ptr() as u64,
    };
    let mut len = size_of::<FullInfo>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads and writes `full`, whose layout is the kernel's, and writes to the two arrays that it
    // points to: at most `size_arrays_user` elements of the sizes that stand in it, which is what they have. All three
    // outlive the call.
    let failed = unsafe { libc::getsockopt(fd, SOL_MPTCP, MPTCP_FULL_INFO, (&raw mut full).cast(), &raw mut len) } != 0;
    if failed {
        return Err(io::Error::last_os_error());
    }
    let count = (full.num_subflows as usize).min(most);
    Ok(subflows.into_iter().zip(infos).take(count).collect())
}

/// Bytes written to the socket and not acknowledged by the peer.
pub(crate) fn unacknowledged(socket: impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes an int to where the pointer leads, which outlives the call.
    let failed = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) } != 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(bytes.max(0) as u64) }
}
