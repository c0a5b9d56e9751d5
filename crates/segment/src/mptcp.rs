//! Multipath TCP version 1 options (RFC 8684).

use core::net::IpAddr;
use core::ops::Deref;

/// A data sequence number, or a data acknowledgment, with its encoded width.
///
/// A 4-byte one has the low 32 bits only; the receiver expands it near the expected number.
///
/// Packed, like [`Timestamps`](crate::Timestamps), because padding would be a sixth of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(2))]
pub struct DataSeq {
    /// The number; only its low 32 bits are valid where `wide` is false.
    pub value: u64,
    /// Whether it is encoded in 8 bytes rather than 4.
    pub wide: bool,
}

impl DataSeq {
    /// Encoded bytes.
    pub const fn encoded_len(self) -> u32 {
        if self.wide { 8 } else { 4 }
    }
}

/// Which data bytes a run of subflow bytes carries (RFC 8684 section 3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Data sequence number of the first byte.
    pub dsn: DataSeq,
    /// Offset of the first byte on the subflow, relative to the initial sequence number: the first byte after the SYN
    /// is 1.
    /// Zero for a DATA_FIN without payload.
    pub subflow_offset: u32,
    /// Bytes mapped, one more for a DATA_FIN; zero is the infinite mapping of a fallback.
    pub len: u16,
    /// The checksum; `None` if it was not negotiated.
    pub checksum: Option<u16>,
}

/// Data sequence signal (subtype 2): acknowledgment and mapping at the connection level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dss {
    /// Everything before this number has arrived; `None` without a DATA_ACK.
    pub data_ack: Option<DataSeq>,
    /// Place of this segment's payload in the stream; `None` without a mapping.
    pub mapping: Option<Mapping>,
    /// The mapping's last number is the end of the data.
    pub data_fin: bool,
}

impl Dss {
    /// Encoded bytes, padded to whole words.
    pub fn encoded_len(&self) -> u32 {
        let ack = self.data_ack.map_or(0, DataSeq::encoded_len);
        let map = self.mapping.map_or(0, |m| m.dsn.encoded_len() + 6 + if m.checksum.is_some() { 2 } else { 0 });
        (4 + ack + map).next_multiple_of(4)
    }
}

/// Flags of MP_CAPABLE (RFC 8684 section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapableFlags {
    /// `A`: DSS carries checksums.
    pub checksum_required: bool,
    /// `C`: do not join to the address of the initial subflow.
    pub deny_join_initial: bool,
    /// `H`: HMAC-SHA256, the only defined algorithm.
    pub hmac_sha256: bool,
}

/// Why a subflow was reset (RFC 8684 section 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetReason {
    /// Unspecified error.
    Unspecified,
    /// MPTCP-specific error: the peer violated the protocol.
    MptcpError,
    /// Lack of resources.
    NoResources,
    /// Administratively prohibited.
    Prohibited,
    /// Too much outstanding data.
    TooMuchOutstanding,
    /// Unacceptable performance of the path.
    BadPerformance,
    /// Middlebox interference.
    Middlebox,
    /// Another reason code.
    Other(u8),
}

/// The address identifiers of a REMOVE_ADDR: one to eight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedAddresses {
    ids: [u8; 8],
    len: u8,
}

impl RemovedAddresses {
    /// From a list of identifiers; `None` if it is empty or longer than an option allows.
    pub fn new(list: &[u8]) -> Option<Self> {
        let mut ids = [0; 8];
        ids.get_mut(..list.len())?.copy_from_slice(list);
        (!list.is_empty()).then_some(RemovedAddresses { ids, len: list.len() as u8 })
    }

    /// The identifiers.
    pub fn as_slice(&self) -> &[u8] {
        &self.ids[..usize::from(self.len)]
    }
}

/// Every MPTCP option but DSS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MptcpOption {
    /// MP_CAPABLE (0): no key on a SYN, the sender's on a SYN/ACK, both from the third segment on;
    /// with `data_len` it acts as a DSS that maps the connection's first bytes.
    Capable {
        /// Protocol version; 1 here.
        version: u8,
        /// Flags of the option.
        flags: CapableFlags,
        /// The sender's key.
        sender_key: Option<u64>,
        /// The receiver's key, echoed.
        receiver_key: Option<u64>,
        /// Bytes of data in the segment; `None` on a segment without data.
        data_len: Option<u16>,
        /// Checksum of these data; `None` if it was not negotiated.
        checksum: Option<u16>,
    },
    /// MP_JOIN (1) on a SYN.
    JoinSyn {
        /// Use this subflow only when no other works.
        backup: bool,
        /// Identifier of the sender's address.
        address_id: u8,
        /// Identifies the connection: the first 32 bits of the hash of the receiver's key.
        token: u32,
        /// The sender's random number.
        nonce: u32,
    },
    /// MP_JOIN on a SYN/ACK.
    JoinSynAck {
        /// Use this subflow only when no other works.
        backup: bool,
        /// Identifier of the sender's address.
        address_id: u8,
        /// The leftmost 64 bits of the sender's HMAC.
        hmac: u64,
        /// The sender's random number.
        nonce: u32,
    },
    /// MP_JOIN on the third segment.
    JoinAck {
        /// The leftmost 160 bits of the sender's HMAC.
        hmac: [u8; 20],
    },
    /// ADD_ADDR (3).
    AddAddress {
        /// Whether this is the receiver's echo, which has no HMAC.
        echo: bool,
        /// Identifier of the address.
        address_id: u8,
        /// The address.
        address: IpAddr,
        /// The port; `None` for the connection's own.
        port: Option<u16>,
        /// The rightmost 64 bits of the sender's HMAC; zero in an echo.
        hmac: u64,
    },
    /// REMOVE_ADDR (4).
    RemoveAddress(RemovedAddresses),
    /// MP_PRIO (5).
    Priority {
        /// Whether the receiver should send on this subflow only when no other works.
        backup: bool,
    },
    /// MP_FAIL (6): mappings failed from this data sequence number on.
    Fail {
        /// The first number whose mapping failed.
        dsn: u64,
    },
    /// MP_FASTCLOSE (7): aborts the connection.
    FastClose {
        /// The receiver's key, as authentication.
        receiver_key: u64,
    },
    /// MP_TCPRST (8), on a segment with RST.
    Reset {
        /// Whether the cause is transient, so that a retry may work.
        transient: bool,
        /// Reason of the reset.
        reason: ResetReason,
    },
}

/// The MPTCP options of a segment, DSS aside: a list that takes one word and no allocation while it is empty.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MptcpOptions(
    // A vector in place would take three words of every segment.
    #[expect(clippy::box_collection)] Option<Box<Vec<MptcpOption>>>,
);

impl MptcpOptions {
    /// No option.
    pub const NONE: MptcpOptions = MptcpOptions(None);

    /// Appends an option.
    pub fn push(&mut self, option: MptcpOption) {
        self.0.get_or_insert_default().push(option);
    }

    /// Removes and returns the last option, if there is one.
    pub fn pop(&mut self) -> Option<MptcpOption> {
        let last = self.0.as_mut()?.pop();
        if self.is_empty() {
            *self = MptcpOptions::NONE;
        }
        last
    }
}

impl Deref for MptcpOptions {
    type Target = [MptcpOption];

    #[inline]
    fn deref(&self) -> &[MptcpOption] {
        self.0.as_ref().map_or(&[], |list| list.as_slice())
    }
}

impl<const N: usize> From<[MptcpOption; N]> for MptcpOptions {
    fn from(list: [MptcpOption; N]) -> Self {
        list.into_iter().collect()
    }
}

impl FromIterator<MptcpOption> for MptcpOptions {
    fn from_iter<T: IntoIterator<Item = MptcpOption>>(options: T) -> Self {
        let mut list = MptcpOptions::NONE;
        list.extend(options);
        list
    }
}

impl Extend<MptcpOption> for MptcpOptions {
    fn extend<T: IntoIterator<Item = MptcpOption>>(&mut self, options: T) {
        options.into_iter().for_each(|option| self.push(option));
    }
}

impl<'a> IntoIterator for &'a MptcpOptions {
    type Item = &'a MptcpOption;
    type IntoIter = core::slice::Iter<'a, MptcpOption>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<const N: usize> PartialEq<[MptcpOption; N]> for MptcpOptions {
    fn eq(&self, other: &[MptcpOption; N]) -> bool {
        **self == *other
    }
}

impl core::fmt::Debug for MptcpOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl MptcpOption {
    /// Encoded bytes, padded to whole words.
    pub fn encoded_len(&self) -> u32 {
        let len: u32 = match self {
            MptcpOption::Capable { sender_key, receiver_key, data_len, checksum, .. } => {
                let keys = u32::from(sender_key.is_some()) + u32::from(receiver_key.is_some());
                let halves = u32::from(data_len.is_some()) + u32::from(checksum.is_some());
                4 + 8 * keys + 2 * halves
            }
            MptcpOption::JoinSyn { .. } => 12,
            MptcpOption::JoinSynAck { .. } => 16,
            MptcpOption::JoinAck { .. } => 24,
            MptcpOption::AddAddress { echo, address, port, .. } => {
                let address = if address.is_ipv4() { 8 } else { 20 };
                address + if port.is_some() { 2 } else { 0 } + if *echo { 0 } else { 8 }
            }
            MptcpOption::RemoveAddress(ids) => 3 + ids.as_slice().len() as u32,
            MptcpOption::Priority { .. } => 3,
            MptcpOption::Fail { .. } | MptcpOption::FastClose { .. } => 12,
            MptcpOption::Reset { .. } => 4,
        };
        len.next_multiple_of(4)
    }
}
