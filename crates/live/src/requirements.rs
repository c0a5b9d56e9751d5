//! What the machine must offer for live runs.

use std::path::Path;
use std::process::{Command, Stdio};

/// A program that live runs start, and the Debian package that brings it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub program: &'static str,
    /// Its package.
    pub package: &'static str,
}

/// `ip`, which every live run needs.
pub const IP: Tool = Tool { program: "ip", package: "iproute2" };
/// The kernel's counters.
pub const NSTAT: Tool = Tool { program: "nstat", package: "iproute2" };
/// Independent decoding of captures.
pub const TSHARK: Tool = Tool { program: "tshark", package: "tshark" };
/// Makes programs open MPTCP sockets.
pub const MPTCPIZE: Tool = Tool { program: "mptcpize", package: "mptcpize" };
/// An HTTP client.
pub const CURL: Tool = Tool { program: "curl", package: "curl" };
/// A web server to stand behind ours.
pub const NGINX: Tool = Tool { program: "nginx", package: "nginx-light" };
/// Makes certificates.
pub const OPENSSL: Tool = Tool { program: "openssl", package: "openssl" };

/// What is missing here, one sentence each with the way to get it; empty if live runs with these tools work.
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

fn installed(tool: &Tool) -> bool {
    let found = Command::new("sh").args(["-c", "command -v -- \"$0\"", tool.program]).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}
