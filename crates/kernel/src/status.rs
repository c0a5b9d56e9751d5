//! What is attached, and how its connections are doing.

use crate::pins::{self, Pins};
use crate::table::{Subflow, Totals};
use crate::{Control, KernelError, checks};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The name of the programs' table in the kernel.
const TABLE: &str = "abr_subflows";

/// A control that is attached.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    /// The control.
    pub control: Control,
    /// Directory of the cgroup; `None` if it was removed.
    pub cgroup: Option<PathBuf>,
    /// Counters.
    pub totals: Totals,
    /// Open subflows, by connection and number.
    pub subflows: Vec<Subflow>,
}

/// A table that is not pinned any more, because its control was detached, and which running connections keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draining {
    /// The kernel's identifier of the table.
    pub map: u32,
    /// Open subflows.
    pub subflows: usize,
}

/// All controls that are attached, in the order of [`Control::ALL`].
///
/// # Errors
/// If pins exist and cannot be read.
pub fn attachments(file_system: &Path) -> Result<Vec<Attachment>, KernelError> {
    if !pins::mounted(file_system) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for control in Control::ALL {
        let pins = Pins::of(file_system, control);
        if pins.complete() {
            found.push(attachment(&pins, control)?);
        }
    }
    Ok(found)
}

fn attachment(pins: &Pins, control: Control) -> Result<Attachment, KernelError> {
    let doing = || format!("cannot read the attachment of {}", control.name());
    let open = |path: PathBuf| MapHandle::from_pinned_path(path).map_err(|error| KernelError::refused(&doing(), error));
    let (table, totals) = (open(pins.subflows())?, open(pins.totals())?);
    let totals = totals.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten();
    let mut subflows: Vec<_> = elements(&table).filter_map(|(key, value)| Subflow::read(&key, &value)).collect();
    subflows.sort_by_key(|subflow| (subflow.token, subflow.number));
    Ok(Attachment {
        control,
        cgroup: cgroup_of(pins),
        totals: totals.as_deref().and_then(Totals::read).unwrap_or_default(),
        subflows,
    })
}

/// The elements of a table; those that are removed meanwhile are left out.
fn elements(table: &MapHandle) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    table.keys().filter_map(|key| {
        let value = table.lookup(&key, MapFlags::ANY).ok().flatten()?;
        Some((key, value))
    })
}

/// The kernel has the cgroup's number, which is the inode number of its directory.
fn cgroup_of(pins: &Pins) -> Option<PathBuf> {
    let link = libbpf_rs::Link::open(pins.selection()).ok()?;
    let libbpf_rs::query::LinkTypeInfo::Cgroup(info) = link.info().ok()?.info else { return None };
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    find(Path::new(checks::cgroup_root(&mounts)?), info.cgroup_id)
}

fn find(directory: &Path, inode: u64) -> Option<PathBuf> {
    if fs::metadata(directory).ok()?.ino() == inode {
        return Some(directory.to_owned());
    }
    let entries = fs::read_dir(directory).ok()?.filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .find_map(|entry| find(&entry.path(), inode))
}

/// Tables of detached controls that running connections keep.
pub fn draining(file_system: &Path) -> Vec<Draining> {
    let pinned: BTreeSet<u32> = Control::ALL
        .into_iter()
        .filter_map(|control| MapHandle::from_pinned_path(Pins::of(file_system, control).subflows()).ok()?.info().ok())
        .map(|map| map.info.id)
        .collect();
    MapInfoIter::default()
        .filter(|map| map.name.to_str() == Some(TABLE) && !pinned.contains(&map.id))
        .filter_map(|map| {
            let table = MapHandle::from_map_id(map.id).ok()?;
            Some(Draining { map: map.id, subflows: elements(&table).count() })
        })
        .collect()
}
