//! Requirements of live runs.

use std::path::Path;
use std::process::{Command, Stdio};

/// A program used by live runs, and its Debian package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Name of the program.
    pub program: &'static str,
    /// Name of the package.
    pub package: &'static str,
}

/// `ip`, required by every live run.
pub const IP: Tool = Tool { program: "ip", package: "iproute2" };
/// Reads the kernel's counters.
pub const NSTAT: Tool = Tool { program: "nstat", package: "iproute2" };
/// Decodes captures independently.
pub const TSHARK: Tool = Tool { program: "tshark", package: "tshark" };
/// Makes programs open MPTCP sockets.
pub const MPTCPIZE: Tool = Tool { program: "mptcpize", package: "mptcpize" };
/// An HTTP client.
pub const CURL: Tool = Tool { program: "curl", package: "curl" };
/// A web server as an origin behind ours.
pub const NGINX: Tool = Tool { program: "nginx", package: "nginx-light" };
/// Runs clients of the tests.
pub const PYTHON: Tool = Tool { program: "python3", package: "python3" };
/// Limits the rate of an interface.
pub const TC: Tool = Tool { program: "tc", package: "iproute2" };
/// Creates certificates.
pub const OPENSSL: Tool = Tool { program: "openssl", package: "openssl" };

/// The missing requirements, one sentence each with the way to meet it; empty if live runs with these tools work.
pub fn missing(tools: &[Tool]) -> Vec<String> {
    let mut list = Vec::new();
    if !rustix::process::geteuid().is_root() {
        list.push("Network namespaces need root: run as root.".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        list.push("There is no /dev/net/tun: load the module `tun` (`modprobe tun`).".to_owned());
    }
    match std::fs::read_to_string("/proc/sys/net/mptcp/enabled") {
        Ok(_) => {}
        Err(_) => list
            .push("The kernel has no Multipath TCP: use one built with CONFIG_MPTCP (Linux 5.6 or later).".to_owned()),
    }
    for tool in std::iter::once(&IP).chain(tools).filter(|tool| !installed(tool)) {
        list.push(format!("`{}` is not installed: apt-get install {}.", tool.program, tool.package));
    }
    list
}

/// For tests: prints why a live test with these tools cannot run on this machine; returns whether that is so.
///
/// # Panics
/// If `ANABRANCH_REQUIRE_LIVE=1`: then a machine that cannot run the live tests fails them.
pub fn skips_test(tools: &[Tool]) -> bool {
    let missing = missing(tools);
    if missing.is_empty() {
        return false;
    }
    let reasons = missing.join(" ");
    let required = std::env::var("ANABRANCH_REQUIRE_LIVE").is_ok_and(|value| value == "1");
    assert!(!required, "live tests are required, but: {reasons}");
    eprintln!("skipped: {reasons}");
    true
}

fn installed(tool: &Tool) -> bool {
    let found = Command::new("sh").args(["-c", "command -v -- \"$0\"", tool.program]).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}
