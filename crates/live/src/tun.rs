//! TUN devices: network interfaces whose packets a process reads and writes.

use crate::Netns;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// `TUNSETIFF` of `linux/if_tun.h`: attaches a file to an interface by name.
const TUNSETIFF: ioctl::Opcode = ioctl::opcode::write::<core::ffi::c_int>(b'T', 202);
/// The device carries IP packets.
const IFF_TUN: u16 = 0x0001;
/// Packets have no header of the kernel's own.
const IFF_NO_PI: u16 = 0x1000;

/// Maximum length of a name in bytes (`IFNAMSIZ` less its end).
const MAX_NAME_LEN: usize = 15;

/// The kernel's `struct ifreq`: a name, and a union of 24 bytes whose first two are flags here.
#[repr(C, align(8))]
struct InterfaceRequest {
    name: [u8; MAX_NAME_LEN + 1],
    flags: u16,
    rest: [u8; 22],
}

/// A TUN device: reading returns the packets that the kernel routes to it, writing passes packets to the kernel.
///
/// A device made by this process exists as long as this value. There are no offloads: every packet has at most the
/// interface's MTU, and complete checksums.
#[derive(Debug)]
pub struct Tun {
    file: OwnedFd,
    name: String,
}

impl Tun {
    /// Creates the device `name` inside a namespace. It is down and has no address.
    ///
    /// # Errors
    /// If the name is empty or longer than 15 bytes, TUN is not available, or the caller is not privileged.
    pub fn create(namespace: &Netns, name: &str) -> io::Result<Self> {
        namespace.run(|| open(name))?
    }

    /// Opens the device `name` in the namespace of the calling thread: attaches itself to one that exists and has no
    /// process yet, which needs no privilege if the caller owns it (`ip tuntap add dev NAME mode tun user USER`); makes a new one otherwise.
    ///
    /// # Errors
    /// As [`Tun::create`]; or if the device is busy.
    pub fn open(name: &str) -> io::Result<Self> {
        open(name)
    }

    /// Another file of the same open device.
    ///
    /// # Errors
    /// If the process has too many open files.
    #[cfg(feature = "serve")]
    pub(crate) fn try_clone(&self) -> io::Result<OwnedFd> {
        self.file.try_clone()
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads one packet; `None` if there is none at the moment. One larger than the buffer is truncated.
    ///
    /// # Errors
    /// Only if the device is gone.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&self.file, &mut *buffer) {
                Ok(len) => return Ok(Some(len)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Passes one packet to the kernel; false if the kernel refuses it, as it does while the interface is down or its
    /// backlog is full. Like a network, it may drop.
    ///
    /// # Errors
    /// Only if the device is gone.
    pub fn write(&self, packet: &[u8]) -> io::Result<bool> {
        loop {
            match rustix::io::write(&self.file, packet) {
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(Errno::IO | Errno::AGAIN | Errno::NOBUFS | Errno::INVAL | Errno::NOMEM) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens the device in the namespace of the calling thread.
fn open(name: &str) -> io::Result<Tun> {
    if name.is_empty() || name.len() > MAX_NAME_LEN || name.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is no name for an interface")));
    }
    let mut request = InterfaceRequest { name: [0; MAX_NAME_LEN + 1], flags: IFF_TUN | IFF_NO_PI, rest: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
    // SAFETY: TUNSETIFF reads (and writes back) a `struct ifreq`, 40 bytes on 64-bit Linux, whose layout
    // `InterfaceRequest` has; its name ends with a zero byte. `Setter` owns the value for the length of the call
    // and passes a pointer to it, which the kernel does not keep.
    unsafe { ioctl::ioctl(&file, ioctl::Setter::<TUNSETIFF, InterfaceRequest>::new(request))? };
    Ok(Tun { file, name: name.to_owned() })
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);
