//! MPTCP version 1 options (RFC 8684 section 3), which all share one option kind and differ in their subtype.

use crate::reader::Reader;
use crate::writer::{NOP, Writer};
use anabranch_segment::{CapableFlags, DataSeq, Dss, Mapping, MptcpOption, RemovedAddresses, ResetReason};
use core::net::IpAddr;

/// The TCP option kind of MPTCP.
pub(crate) const KIND: u8 = 30;

/// Subtypes, in the high half of an option's third byte (RFC 8684 section 8.2).
mod subtype {
    pub const CAPABLE: u8 = 0x0;
    pub const JOIN: u8 = 0x1;
    pub const DSS: u8 = 0x2;
    pub const ADD_ADDR: u8 = 0x3;
    pub const REMOVE_ADDR: u8 = 0x4;
    pub const PRIO: u8 = 0x5;
    pub const FAIL: u8 = 0x6;
    pub const FASTCLOSE: u8 = 0x7;
    pub const RESET: u8 = 0x8;
}

/// Flags of MP_CAPABLE (section 3.1).
mod capable {
    pub const CHECKSUM: u8 = 0x80;
    pub const EXTENSIBILITY: u8 = 0x40;
    pub const DENY_JOIN_INITIAL: u8 = 0x20;
    pub const HMAC_SHA256: u8 = 0x01;
}

/// Flags of DSS (section 3.3).
mod dss {
    pub const ACK: u8 = 0x01;
    pub const ACK_WIDE: u8 = 0x02;
    pub const MAP: u8 = 0x04;
    pub const DSN_WIDE: u8 = 0x08;
    pub const FIN: u8 = 0x10;
}

/// The low bit of the third byte: `B` of MP_JOIN and MP_PRIO, `E` of ADD_ADDR, `T` of MP_TCPRST.
const LOW_FLAG: u8 = 0x01;

/// A decoded MPTCP option.
pub(crate) enum Decoded {
    Dss(Dss),
    Other(MptcpOption),
}

/// Reads the part of an option behind kind and length. `None` for an unknown subtype and for a malformed option:
/// like Linux, the caller ignores both.
pub(crate) fn decode(body: &[u8]) -> Option<Decoded> {
    let mut r = Reader::new(body);
    let first = r.u8()?;
    let low = first & 0x0f;
    let option = match first >> 4 {
        subtype::DSS => return decode_dss(r).map(Decoded::Dss),
        subtype::CAPABLE => decode_capable(low, r),
        subtype::JOIN => decode_join(low, r),
        subtype::ADD_ADDR => decode_add_address(low, r),
        subtype::REMOVE_ADDR => RemovedAddresses::new(r.remaining()).map(MptcpOption::RemoveAddress),
        // Version 0 had an address identifier behind the flag; version 1 does not.
        subtype::PRIO => whole(r, MptcpOption::Priority { backup: low & LOW_FLAG != 0 }),
        subtype::FAIL => decode_u64(r).map(|dsn| MptcpOption::Fail { dsn }),
        subtype::FASTCLOSE => decode_u64(r).map(|receiver_key| MptcpOption::FastClose { receiver_key }),
        subtype::RESET => decode_reset(low, r),
        _ => None,
    };
    option.map(Decoded::Other)
}

/// The value, if no byte is left to read.
fn whole<T>(r: Reader<'_>, value: T) -> Option<T> {
    r.remaining().is_empty().then_some(value)
}

fn decode_capable(version: u8, mut r: Reader<'_>) -> Option<MptcpOption> {
    let bits = r.u8()?;
    // "If the B flag is set to 1 ... this option MUST be silently ignored" (section 3.1).
    if bits & capable::EXTENSIBILITY != 0 {
        return None;
    }
    let flags = CapableFlags {
        checksum_required: bits & capable::CHECKSUM != 0,
        deny_join_initial: bits & capable::DENY_JOIN_INITIAL != 0,
        hmac_sha256: bits & capable::HMAC_SHA256 != 0,
    };
    // Each field is there only if the previous ones are, so the length alone tells the forms apart.
    let (sender_key, receiver_key) = (r.u64(), r.u64());
    let (data_len, checksum) = (r.u16(), r.u16());
    let keys = [sender_key, receiver_key].iter().flatten().count();
    if keys < 2 && data_len.is_some() {
        return None;
    }
    whole(r, MptcpOption::Capable { version, flags, sender_key, receiver_key, data_len, checksum })
}

fn encode_capable(w: &mut Writer<'_>, option: &MptcpOption) {
    let MptcpOption::Capable { version, flags, sender_key, receiver_key, data_len, checksum } = option else {
        return;
    };
    w.u8(subtype::CAPABLE << 4 | version & 0x0f);
    w.u8(bit(flags.checksum_required, capable::CHECKSUM)
        | bit(flags.deny_join_initial, capable::DENY_JOIN_INITIAL)
        | bit(flags.hmac_sha256, capable::HMAC_SHA256));
    for key in [sender_key, receiver_key].into_iter().flatten() {
        w.u64(*key);
    }
    for half in [data_len, checksum].into_iter().flatten() {
        w.u16(*half);
    }
}

fn decode_join(low: u8, mut r: Reader<'_>) -> Option<MptcpOption> {
    let backup = low & LOW_FLAG != 0;
    let address_id = r.u8()?;
    match r.remaining().len() {
        8 => Some(MptcpOption::JoinSyn { backup, address_id, token: r.u32()?, nonce: r.u32()? }),
        12 => Some(MptcpOption::JoinSynAck { backup, address_id, hmac: r.u64()?, nonce: r.u32()? }),
        // The byte that holds the address identifier elsewhere is reserved here.
        20 => Some(MptcpOption::JoinAck { hmac: r.array()? }),
        _ => None,
    }
}

fn decode_add_address(low: u8, mut r: Reader<'_>) -> Option<MptcpOption> {
    let echo = low & LOW_FLAG != 0;
    let address_id = r.u8()?;
    let hmac_len = if echo { 0 } else { 8 };
    let (ipv4, with_port) = match r.remaining().len().checked_sub(hmac_len)? {
        4 => (true, false),
        6 => (true, true),
        16 => (false, false),
        18 => (false, true),
        _ => return None,
    };
    let address = if ipv4 { IpAddr::from(r.array::<4>()?) } else { IpAddr::from(r.array::<16>()?) };
    let port = if with_port { Some(r.u16()?) } else { None };
    let hmac = if echo { 0 } else { r.u64()? };
    Some(MptcpOption::AddAddress { echo, address_id, address, port, hmac })
}

fn decode_u64(mut r: Reader<'_>) -> Option<u64> {
    let _reserved = r.u8()?;
    let value = r.u64()?;
    whole(r, value)
}

fn decode_reset(low: u8, mut r: Reader<'_>) -> Option<MptcpOption> {
    let reason = reset_reason(r.u8()?);
    whole(r, MptcpOption::Reset { transient: low & LOW_FLAG != 0, reason })
}

fn reset_reason(code: u8) -> ResetReason {
    match code {
        0 => ResetReason::Unspecified,
        1 => ResetReason::MptcpError,
        2 => ResetReason::NoResources,
        3 => ResetReason::Prohibited,
        4 => ResetReason::TooMuchOutstanding,
        5 => ResetReason::BadPerformance,
        6 => ResetReason::Middlebox,
        code => ResetReason::Other(code),
    }
}

fn reset_code(reason: ResetReason) -> u8 {
    match reason {
        ResetReason::Unspecified => 0,
        ResetReason::MptcpError => 1,
        ResetReason::NoResources => 2,
        ResetReason::Prohibited => 3,
        ResetReason::TooMuchOutstanding => 4,
        ResetReason::BadPerformance => 5,
        ResetReason::Middlebox => 6,
        ResetReason::Other(code) => code,
    }
}

fn decode_data_seq(r: &mut Reader<'_>, wide: bool) -> Option<DataSeq> {
    let value = if wide { r.u64()? } else { u64::from(r.u32()?) };
    Some(DataSeq { value, wide })
}

fn decode_dss(mut r: Reader<'_>) -> Option<Dss> {
    let flags = r.u8()?;
    let has = |bit: u8| flags & bit != 0;
    let data_ack = if has(dss::ACK) { Some(decode_data_seq(&mut r, has(dss::ACK_WIDE))?) } else { None };
    let mapping = if has(dss::MAP) {
        let dsn = decode_data_seq(&mut r, has(dss::DSN_WIDE))?;
        Some(Mapping { dsn, subflow_offset: r.u32()?, len: r.u16()?, checksum: r.u16() })
    } else {
        None
    };
    whole(r, Dss { data_ack, mapping, data_fin: has(dss::FIN) })
}

fn encode_data_seq(w: &mut Writer<'_>, n: DataSeq) {
    if n.wide {
        w.u64(n.value);
    } else {
        w.u32(n.value as u32);
    }
}

fn bit(set: bool, mask: u8) -> u8 {
    if set { mask } else { 0 }
}

/// Writes an option: kind, length, what `body` writes, and NOPs up to a whole word, which the length does not count.
fn framed(w: &mut Writer<'_>, body: impl FnOnce(&mut Writer<'_>)) {
    let start = w.position();
    w.u8(KIND);
    w.u8(0);
    body(w);
    let len = w.position() - start;
    w.patch(start + 1, len as u8);
    for _ in len..len.next_multiple_of(4) {
        w.u8(NOP);
    }
}

/// Writes a DSS option with its padding.
pub(crate) fn encode_dss(w: &mut Writer<'_>, option: &Dss) {
    framed(w, |w| encode_dss_body(w, option));
}

fn encode_dss_body(w: &mut Writer<'_>, option: &Dss) {
    let wide_ack = option.data_ack.is_some_and(|ack| ack.wide);
    let wide_dsn = option.mapping.is_some_and(|map| map.dsn.wide);
    w.u8(subtype::DSS << 4);
    w.u8(bit(option.data_ack.is_some(), dss::ACK)
        | bit(wide_ack, dss::ACK_WIDE)
        | bit(option.mapping.is_some(), dss::MAP)
        | bit(wide_dsn, dss::DSN_WIDE)
        | bit(option.data_fin, dss::FIN));
    if let Some(ack) = option.data_ack {
        encode_data_seq(w, ack);
    }
    if let Some(map) = option.mapping {
        encode_data_seq(w, map.dsn);
        w.u32(map.subflow_offset);
        w.u16(map.len);
        if let Some(checksum) = map.checksum {
            w.u16(checksum);
        }
    }
}

/// Writes any other option with its padding.
pub(crate) fn encode(w: &mut Writer<'_>, option: &MptcpOption) {
    framed(w, |w| encode_body(w, option));
}

fn encode_body(w: &mut Writer<'_>, option: &MptcpOption) {
    match option {
        MptcpOption::Capable { .. } => encode_capable(w, option),
        MptcpOption::JoinSyn { backup, address_id, token, nonce } => {
            w.bytes(&[subtype::JOIN << 4 | bit(*backup, LOW_FLAG), *address_id]);
            w.u32(*token);
            w.u32(*nonce);
        }
        MptcpOption::JoinSynAck { backup, address_id, hmac, nonce } => {
            w.bytes(&[subtype::JOIN << 4 | bit(*backup, LOW_FLAG), *address_id]);
            w.u64(*hmac);
            w.u32(*nonce);
        }
        MptcpOption::JoinAck { hmac } => {
            w.bytes(&[subtype::JOIN << 4, 0]);
            w.bytes(hmac);
        }
        MptcpOption::AddAddress { echo, address_id, address, port, hmac } => {
            w.bytes(&[subtype::ADD_ADDR << 4 | bit(*echo, LOW_FLAG), *address_id]);
            match address {
                IpAddr::V4(a) => w.bytes(&a.octets()),
                IpAddr::V6(a) => w.bytes(&a.octets()),
            }
            if let Some(port) = port {
                w.u16(*port);
            }
            if !echo {
                w.u64(*hmac);
            }
        }
        MptcpOption::RemoveAddress(ids) => {
            w.u8(subtype::REMOVE_ADDR << 4);
            w.bytes(ids.as_slice());
        }
        MptcpOption::Priority { backup } => w.u8(subtype::PRIO << 4 | bit(*backup, LOW_FLAG)),
        MptcpOption::Fail { dsn } => {
            w.bytes(&[subtype::FAIL << 4, 0]);
            w.u64(*dsn);
        }
        MptcpOption::FastClose { receiver_key } => {
            w.bytes(&[subtype::FASTCLOSE << 4, 0]);
            w.u64(*receiver_key);
        }
        MptcpOption::Reset { transient, reason } => {
            w.bytes(&[subtype::RESET << 4 | bit(*transient, LOW_FLAG), reset_code(*reason)]);
        }
    }
}
