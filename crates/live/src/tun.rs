//! TUN devices: network interfaces whose packets a process reads and writes.

use anabranch_wire::CHECKSUM_AT;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// `TUNSETIFF` of `linux/if_tun.h`: attaches a file to an interface by name.
const TUNSETIFF: ioctl::Opcode = ioctl::opcode::write::<core::ffi::c_int>(b'T', 202);
/// `TUNGETIFF`: tells the interface that a file is attached to.
const TUNGETIFF: ioctl::Opcode = ioctl::opcode::read::<core::ffi::c_uint>(b'T', 210);
/// The device carries IP packets.
const IFF_TUN: u16 = 0x0001;
/// Packets have no header of the kernel's own.
const IFF_NO_PI: u16 = 0x1000;
/// Packets begin with a [`Header`].
const IFF_VNET_HDR: u16 = 0x4000;

/// The MTU of a device where none is set: Linux's default, and that of Ethernet.
pub const DEFAULT_MTU: u32 = 1500;

/// Maximum length of a name in bytes (`IFNAMSIZ` less its end).
const MAX_NAME_LEN: usize = 15;

/// The kernel's `struct ifreq`: a name, and a union of 24 bytes whose first two are flags here.
#[repr(C, align(8))]
struct InterfaceRequest {
    name: [u8; MAX_NAME_LEN + 1],
    flags: u16,
    rest: [u8; 22],
}

/// `struct virtio_net_hdr` of `linux/virtio_net.h`, in the machine's order of bytes: what is left to do with a packet.
type Header = [u8; 10];

/// The header of a packet with which there is nothing left to do.
const COMPLETE: Header = [0; 10];

/// What the kernel has to do with a TCP packet that a process writes: complete its checksum, and perhaps cut it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Whether it is an IPv6 packet.
    pub ipv6: bool,
    /// Bytes of its IP header.
    pub ip_header: u16,
    /// Bytes of both headers.
    pub headers: u16,
    /// Payload of each of the packets that it is cut into, but for the last one, which may have less; `None` if it is
    /// one packet.
    pub cut: Option<u16>,
}

impl Offload {
    /// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
    const NEEDS_CHECKSUM: u8 = 1;
    /// `VIRTIO_NET_HDR_GSO_TCPV4` and `VIRTIO_NET_HDR_GSO_TCPV6`.
    const CUT: [u8; 2] = [1, 4];

    fn header(&self) -> Header {
        let mut header = COMPLETE;
        header[0] = Self::NEEDS_CHECKSUM;
        let mut put = |at: usize, value: u16| header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        put(2, self.headers);
        put(6, self.ip_header);
        put(8, CHECKSUM_AT as u16);
        if let Some(payload) = self.cut {
            put(4, payload);
            header[1] = Self::CUT[usize::from(self.ipv6)];
        }
        header
    }
}

/// A TUN device: reading returns the packets that the kernel routes to it, writing passes packets to the kernel.
///
/// A device made by this process exists as long as this value. Packets that are read have at most the interface's MTU,
/// and complete checksums.
#[derive(Debug)]
pub struct Tun {
    file: OwnedFd,
    name: String,
    /// Whether each packet has a [`Header`].
    offloads: bool,
}

impl Tun {
    /// Opens the device `name` in the namespace of the calling thread: attaches itself to one that exists and has no
    /// process yet, which needs no privilege if the caller owns it (`ip tuntap add dev NAME mode tun user USER`); makes
    /// a new one otherwise, which is down and has no address.
    ///
    /// # Errors
    /// If the name is empty or longer than 15 bytes, TUN is not available, the caller is not privileged, or the device
    /// is busy.
    pub fn open(name: &str) -> io::Result<Self> {
        open(name, false)
    }

    /// The same for a device to which [`Tun::write_unfinished`] can write.
    ///
    /// # Errors
    /// As [`Tun::open`].
    pub fn open_offloading(name: &str) -> io::Result<Self> {
        open(name, true)
    }

    /// Another file of the same open device.
    ///
    /// # Errors
    /// If the process has too many open files.
    pub fn try_clone(&self) -> io::Result<OwnedFd> {
        self.file.try_clone()
    }

    /// Whether the interface exists: it may have been deleted.
    pub fn is_attached(&self) -> bool {
        let asked = InterfaceRequest { name: [0; MAX_NAME_LEN + 1], flags: 0, rest: [0; 22] };
        let mut answer = asked;
        // SAFETY: TUNGETIFF writes a `struct ifreq`, 40 bytes on 64-bit Linux, whose layout `InterfaceRequest` has.
        // `Updater` passes a pointer to the value, which outlives the call.
        unsafe { ioctl::ioctl(&self.file, ioctl::Updater::<TUNGETIFF, InterfaceRequest>::new(&mut answer)) }.is_ok()
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
            let read = if self.offloads {
                // Checksums are complete, and nothing is larger than the MTU, because nothing (TUNSETOFFLOAD) allows
                // that.
                let mut header = COMPLETE;
                let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
                rustix::io::readv(&self.file, &mut parts).map(|len| len.saturating_sub(COMPLETE.len()))
            } else {
                rustix::io::read(&self.file, &mut *buffer)
            };
            match read {
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
        self.pass(&COMPLETE, packet)
    }

    /// Passes a TCP packet to the kernel that lacks its checksum ([`anabranch_wire::encode_unsummed`]) and that may be
    /// as large as an IP packet can be; false if the kernel refuses it.
    ///
    /// # Errors
    /// Only if the device is gone.
    ///
    /// # Panics
    /// If the device was not opened with [`Tun::open_offloading`].
    pub fn write_unfinished(&self, packet: &[u8], offload: &Offload) -> io::Result<bool> {
        assert!(self.offloads, "the device takes complete packets only");
        self.pass(&offload.header(), packet)
    }

    fn pass(&self, header: &Header, packet: &[u8]) -> io::Result<bool> {
        loop {
            let written = if self.offloads {
                rustix::io::writev(&self.file, &[IoSlice::new(header), IoSlice::new(packet)])
            } else {
                rustix::io::write(&self.file, packet)
            };
            match written {
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
fn open(name: &str, offloads: bool) -> io::Result<Tun> {
    if name.is_empty() || name.len() > MAX_NAME_LEN || name.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is no name for an interface")));
    }
    let flags = IFF_TUN | IFF_NO_PI | if offloads { IFF_VNET_HDR } else { 0 };
    let mut request = InterfaceRequest { name: [0; MAX_NAME_LEN + 1], flags, rest: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
    // SAFETY: TUNSETIFF reads (and writes back) a `struct ifreq`, 40 bytes on 64-bit Linux, whose layout
    // `InterfaceRequest` has; its name ends with a zero byte. `Setter` owns the value for the length of the call
    // and passes a pointer to it, which the kernel does not keep.
    unsafe { ioctl::ioctl(&file, ioctl::Setter::<TUNSETIFF, InterfaceRequest>::new(request))? };
    Ok(Tun { file, name: name.to_owned(), offloads })
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);
