//! What the machine must provide, and what is missing: one sentence each, with the remedy.

use std::fs;
use std::path::Path;

/// The first version whose struct_ops programs are attached by links, which can be pinned.
const OLDEST: (u32, u32) = (6, 4);

/// Bits of capabilities (`linux/capability.h`).
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// One requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at: a version, a feature, a privilege.
    pub name: &'static str,
    /// What was found, or what is wrong.
    pub found: String,
    /// What helps; `None` if the requirement is met.
    pub remedy: Option<String>,
}

impl Check {
    fn met(name: &'static str, found: impl Into<String>) -> Self {
        Check { name, found: found.into(), remedy: None }
    }

    fn unmet(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Check { name, found: found.into(), remedy: Some(remedy.into()) }
    }

    /// Problem and remedy in a sentence; nothing if it is met.
    pub fn sentence(&self) -> Option<String> {
        self.remedy.as_ref().map(|remedy| format!("{}: {}; {remedy}", self.name, self.found))
    }
}

/// All requirements, in the order in which one would meet them.
pub fn checks() -> Vec<Check> {
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    vec![
        version(read("/proc/sys/kernel/osrelease").as_deref().unwrap_or_default()),
        multipath(read("/proc/sys/net/mptcp/enabled").as_deref()),
        type_information(Path::new("/sys/kernel/btf/vmlinux").exists()),
        jit(read("/proc/sys/net/core/bpf_jit_enable").as_deref(), Path::new(OF_FIRST_NAMESPACE).exists()),
        lockdown(read("/sys/kernel/security/lockdown").as_deref()),
        privileges(&read("/proc/self/status").unwrap_or_default()),
        cgroups(&read("/proc/self/mounts").unwrap_or_default()),
    ]
}

/// The sentences of all unmet requirements.
pub fn missing() -> Vec<String> {
    checks().iter().filter_map(Check::sentence).collect()
}

fn version(release: &str) -> Check {
    let (major, minor) = OLDEST;
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found >= OLDEST {
        return Check::met("kernel", format!("Linux {release}"));
    }
    Check::unmet("kernel", format!("Linux {release} is too old"), format!("boot Linux {major}.{minor} or later"))
}

fn multipath(enabled: Option<&str>) -> Check {
    match enabled {
        Some("0") => Check::unmet("Multipath TCP", "it is off in this namespace", "sysctl net.mptcp.enabled=1"),
        Some(_) => Check::met("Multipath TCP", "on"),
        None => Check::unmet("Multipath TCP", "the kernel has none", "boot one built with CONFIG_MPTCP"),
    }
}

fn type_information(exists: bool) -> Check {
    if exists {
        return Check::met("BTF", "/sys/kernel/btf/vmlinux");
    }
    Check::unmet("BTF", "there is no /sys/kernel/btf/vmlinux", "boot a kernel built with CONFIG_DEBUG_INFO_BTF")
}

/// Every kernel has this setting, and like that of the BPF compiler only the first network namespace shows it.
const OF_FIRST_NAMESPACE: &str = "/proc/sys/net/core/dev_weight";

/// In another namespace than the first one the kernel itself has to refuse, if there is no compiler.
fn jit(enabled: Option<&str>, in_first_namespace: bool) -> Check {
    match enabled {
        Some("0") => Check::unmet("BPF compiler", "it is off", "sysctl net.core.bpf_jit_enable=1"),
        Some(_) => Check::met("BPF compiler", "on"),
        None if !in_first_namespace => Check::met("BPF compiler", "not shown in this network namespace"),
        None => Check::unmet("BPF compiler", "the kernel has none", "boot one built with CONFIG_BPF_JIT"),
    }
}

/// The file has all modes, the active one in brackets. Integrity allows these programs, confidentiality does not.
fn lockdown(modes: Option<&str>) -> Check {
    match modes {
        Some(modes) if modes.contains("[confidentiality]") => Check::unmet(
            "lockdown",
            "in the mode `confidentiality` BPF may not read the kernel's memory",
            "boot with lockdown=integrity or without it",
        ),
        Some(modes) => Check::met("lockdown", modes),
        None => Check::met("lockdown", "none"),
    }
}

/// `status` is a file of `/proc/PID/status`.
fn privileges(status: &str) -> Check {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let has = |bit: u32| effective >> bit & 1 == 1;
    let powerful = has(CAP_SYS_ADMIN);
    let lacking: Vec<_> = [("CAP_BPF", has(CAP_BPF) || powerful), ("CAP_PERFMON", has(CAP_PERFMON) || powerful)]
        .into_iter()
        .chain([("CAP_NET_ADMIN", has(CAP_NET_ADMIN))])
        .filter_map(|(name, has)| (!has).then_some(name))
        .collect();
    if lacking.is_empty() {
        return Check::met("privileges", "sufficient");
    }
    Check::unmet("privileges", format!("this process lacks {}", lacking.join(", ")), "run as root")
}

fn cgroups(mounts: &str) -> Check {
    match cgroup_root(mounts) {
        Some(root) => Check::met("cgroups", root),
        None => Check::unmet(
            "cgroups",
            "no hierarchy of version 2 is mounted",
            "mount -t cgroup2 none /sys/fs/cgroup, on a directory of your choice",
        ),
    }
}

/// Where the hierarchy of version 2 is mounted; `mounts` is `/proc/self/mounts`.
pub(crate) fn cgroup_root(mounts: &str) -> Option<&str> {
    mounted(mounts, "cgroup2").next()
}

/// Where file systems of a type are mounted; `mounts` is `/proc/self/mounts`.
pub(crate) fn mounted<'a>(mounts: &'a str, file_system: &'a str) -> impl Iterator<Item = &'a str> {
    mounts.lines().filter_map(move |line| {
        let mut fields = line.split(' ').skip(1);
        let target = fields.next()?;
        (fields.next()? == file_system).then_some(target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_numbers() {
        for (release, met) in
            [("6.18.44-fc", true), ("6.4.0", true), ("6.3.12", false), ("5.19", false), ("10.0-rc1", true)]
        {
            assert_eq!(version(release).remedy.is_none(), met, "{release}");
        }
    }

    #[test]
    fn each_missing_feature_has_a_sentence_with_its_remedy() {
        let all = [
            version("5.10.0"),
            multipath(None),
            multipath(Some("0")),
            type_information(false),
            jit(Some("0"), true),
            jit(None, true),
            lockdown(Some("none integrity [confidentiality]")),
            privileges("Name:\tx\nCapEff:\t0000000000000000\n"),
            cgroups("cgroup /sys/fs/cgroup cgroup rw 0 0\n"),
        ];
        for check in all {
            let sentence = check.sentence().unwrap_or_else(|| panic!("{} is met", check.name));
            assert!(sentence.contains("; "), "{sentence}");
        }
    }

    #[test]
    fn a_setting_that_a_namespace_hides_is_no_reason_to_refuse() {
        assert_eq!(jit(None, false).remedy, None);
        assert_eq!(jit(Some("1"), true).remedy, None);
    }

    #[test]
    fn privileges_are_the_three_or_those_of_an_administrator_of_networks() {
        let status = |bits: &[u32]| format!("CapEff:\t{:016x}\n", bits.iter().fold(0u64, |all, bit| all | 1 << bit));
        assert_eq!(privileges(&status(&[CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON])).remedy, None);
        assert_eq!(privileges(&status(&[CAP_NET_ADMIN, CAP_SYS_ADMIN])).remedy, None);
        assert_eq!(privileges(&status(&[CAP_BPF, CAP_PERFMON])).found, "this process lacks CAP_NET_ADMIN");
    }

    #[test]
    fn the_second_version_of_cgroups_is_found_where_there_is_the_first_too() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(cgroup_root(mounts), Some("/sys/fs/cgroup/unified"));
    }
}
