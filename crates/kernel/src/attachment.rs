//! Attaching a control to a cgroup or a port, and detaching it.
//!
//! The programs of a control are registered in the kernel under a name, and a program of the cgroup gives that name to
//! its subflows as they are established. Both are pinned. When they are unpinned, new connections get the kernel's
//! default, and running ones keep the programs until they close, which frees them.

use crate::pins::{self, Pins};
use crate::table::Totals;
use crate::{Control, KernelError, checks};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, OpenMapMut, PrintLevel, set_print};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The default of [`Selection::max_subflows`].
pub const MAX_SUBFLOWS: u32 = 65_536;

/// The program that selects, for all controls.
static SELECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/select.bpf.o"));

/// Bytes of a control's name in the kernel, and of the port behind it (`abr_selected` in `bpf/select.bpf.c`).
const NAME_BYTES: usize = 16;

/// The connections that get a control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The cgroup (version 2) of the processes whose connections are meant; `None` for all processes.
    pub cgroup: Option<PathBuf>,
    /// Only those that a server accepted on this port.
    pub port: Option<u16>,
    /// Subflows that can have the control at a time. Each takes half a kilobyte of the kernel's memory while it is
    /// open; further ones behave as NewReno.
    pub max_subflows: u32,
}

impl Selection {
    /// The directory of the cgroup.
    fn directory(&self) -> Result<PathBuf, KernelError> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let root = checks::cgroup_root(&mounts)
            .ok_or_else(|| KernelError::Machine("no hierarchy of cgroups of version 2 is mounted".into()))?;
        let Some(cgroup) = &self.cgroup else {
            if self.port.is_none() {
                let message =
                    "neither a cgroup nor a port: a control is never attached to all connections of a machine";
                return Err(KernelError::Input(message.into()));
            }
            return Ok(root.into());
        };
        if !cgroup.join("cgroup.procs").exists() {
            let path = cgroup.display();
            return Err(KernelError::Input(format!(
                "{path} is no cgroup of version 2; their root is {root}, and `systemctl show -p ControlGroup NAME.service` prints a service's below it"
            )));
        }
        Ok(cgroup.clone())
    }
}

/// Attaches a control to the selected connections, and returns at once. What an earlier attempt left behind half done
/// is removed.
///
/// # Errors
/// If the selection is wrong, the control is attached already, the machine lacks something, or the kernel refuses. Then
/// nothing is attached.
pub fn attach(file_system: &Path, control: Control, selection: &Selection) -> Result<(), KernelError> {
    let cgroup = selection.directory()?;
    if let Some(sentence) = checks::missing().into_iter().next() {
        return Err(KernelError::Machine(sentence));
    }
    let _lock = pins::lock()?;
    pins::provide(file_system)?;
    let pins = Pins::of(file_system, control);
    if pins.complete() {
        let name = control.name();
        return Err(KernelError::Input(format!("{name} is attached already; anabranch kernel detach {name} first")));
    }
    let result = pin(&pins, control, selection, &cgroup);
    if result.is_err() {
        // The first error is the one to report.
        let _ = pins.remove();
    }
    result
}

/// Detaches one control, or all, and what is left of attachments that were not completed. Returns the controls that
/// were attached.
///
/// # Errors
/// If pins cannot be removed.
pub fn detach(file_system: &Path, only: Option<Control>) -> Result<Vec<Control>, KernelError> {
    if !pins::mounted(file_system) {
        return Ok(Vec::new());
    }
    let _lock = pins::lock()?;
    let mut detached = Vec::new();
    for control in Control::ALL.into_iter().filter(|control| only.is_none_or(|only| only == *control)) {
        let pins = Pins::of(file_system, control);
        if !pins.exist() {
            continue;
        }
        let complete = pins.complete();
        pins.remove().map_err(|error| KernelError::refused(&format!("cannot detach {}", control.name()), error))?;
        if complete {
            detached.push(control);
        }
    }
    Ok(detached)
}

fn pin(pins: &Pins, control: Control, selection: &Selection, cgroup: &Path) -> Result<(), KernelError> {
    let name = control.name();
    pins.remove().map_err(|error| KernelError::refused("cannot remove an incomplete attachment", error))?;
    expect_unregistered(control)?;
    fs::create_dir_all(&pins.directory)
        .map_err(|error| KernelError::refused(&format!("cannot create {}", pins.directory.display()), error))?;
    let mut programs = load(control.object(), &format!("cannot load {name}"), |map| match map.name().to_str() {
        Some("abr_subflows") => map.set_max_entries(selection.max_subflows.max(1)),
        _ => Ok(()),
    })?;
    let totals = Totals { port: selection.port.unwrap_or(0).into(), ..Totals::default() };
    for mut map in programs.maps_mut() {
        let path = match map.name().to_str() {
            Some("abr_subflows") => pins.subflows(),
            Some("abr_totals") => {
                map.update(&0u32.to_ne_bytes(), &totals.bytes(), MapFlags::ANY)
                    .map_err(|error| KernelError::refused("cannot write the port", error))?;
                pins.totals()
            }
            Some("abr_control") => {
                let doing = || format!("cannot register {}", control.kernel_name());
                let mut link = map.attach_struct_ops().map_err(|error| KernelError::refused(&doing(), error))?;
                link.pin(pins.registration()).map_err(|error| KernelError::refused(&doing(), error))?;
                continue;
            }
            _ => continue,
        };
        map.pin(path).map_err(|error| KernelError::refused("cannot pin a map", error))?;
    }
    select(pins, control, selection, cgroup)
}

/// The names of all controls that the kernel has.
const CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The kernel unregisters a control a moment after its last pin is removed.
const UNREGISTERED_WITHIN: Duration = Duration::from_secs(1);

/// A name in the kernel is one for the whole machine.
fn expect_unregistered(control: Control) -> Result<(), KernelError> {
    let name = control.kernel_name();
    let began = Instant::now();
    while fs::read_to_string(CONTROLS).is_ok_and(|names| names.split_whitespace().any(|other| other == name)) {
        if began.elapsed() > UNREGISTERED_WITHIN {
            return Err(KernelError::Input(format!("{name} is attached already{}", elsewhere(control))));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// The place of a control that the kernel has and that is not attached here, with the remedy.
fn elsewhere(control: Control) -> String {
    let place = pins::used_file_systems().into_iter().find(|place| Pins::of(place, control).exist());
    match place {
        Some(place) => {
            format!("; anabranch kernel detach {} --bpf-file-system {} first", control.name(), place.display())
        }
        None => {
            ", by another program or in a BPF file system that is not mounted here; detach it there first".to_owned()
        }
    }
}

/// Attaches the program of the cgroup, which is what changes connections.
fn select(pins: &Pins, control: Control, selection: &Selection, cgroup: &Path) -> Result<(), KernelError> {
    let mut selected = control.kernel_name().into_bytes();
    selected.resize(NAME_BYTES, 0);
    selected.extend(u32::from(selection.port.unwrap_or(0)).to_ne_bytes());
    let selector = load(SELECT, "cannot load the program that selects connections", |map| {
        let read_only = map.name().to_string_lossy().ends_with(".rodata");
        if let Some(value) = map.initial_value_mut().filter(|value| read_only && value.len() >= selected.len()) {
            value[..selected.len()].copy_from_slice(&selected);
        }
        Ok(())
    })?;
    let doing = || format!("cannot attach to {}", cgroup.display());
    let directory = File::open(cgroup).map_err(|error| KernelError::refused(&doing(), error))?;
    for program in selector.progs_mut() {
        let mut link =
            program.attach_cgroup(directory.as_raw_fd()).map_err(|error| KernelError::refused(&doing(), error))?;
        link.pin(pins.selection()).map_err(|error| KernelError::refused(&doing(), error))?;
    }
    Ok(())
}

/// The last warning of libbpf, which says more than an error number.
static WARNING: Mutex<Option<String>> = Mutex::new(None);

#[expect(clippy::needless_pass_by_value, reason = "libbpf-rs calls it with a string of its own")]
fn keep_warning(_: PrintLevel, text: String) {
    // Of the verifier's log, which has many lines, the first ones name what libbpf was doing.
    let line = text.lines().next().unwrap_or_default().trim_start_matches("libbpf: ").to_owned();
    let mut kept = WARNING.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.is_none() {
        *kept = Some(line);
    }
}

/// Loads an object whose maps `prepare` may change.
fn load(
    object: &[u8],
    doing: &str,
    mut prepare: impl FnMut(&mut OpenMapMut<'_>) -> libbpf_rs::Result<()>,
) -> Result<Object, KernelError> {
    WARNING.lock().unwrap_or_else(PoisonError::into_inner).take();
    let before = set_print(Some((PrintLevel::Warn, keep_warning)));
    let loaded = ObjectBuilder::default().open_memory(object).and_then(|mut object| {
        object.maps_mut().try_for_each(|mut map| prepare(&mut map))?;
        object.load()
    });
    set_print(before);
    loaded.map_err(|error| {
        let warning = WARNING.lock().unwrap_or_else(PoisonError::into_inner).take();
        KernelError::refused(doing, warning.map_or_else(|| error.to_string(), |warning| format!("{error} ({warning})")))
    })
}
