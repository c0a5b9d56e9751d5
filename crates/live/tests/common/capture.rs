//! Checks of a capture by tshark.

use super::kernel::PORT;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file for a capture, removed with its owner unless the test fails: then it is kept and named.
pub struct CaptureFile(PathBuf);

impl CaptureFile {
    pub fn new(name: &str) -> Self {
        CaptureFile(std::env::temp_dir().join(format!("anabranch-{}-{name}.pcapng", std::process::id())))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for CaptureFile {
    fn drop(&mut self) {
        if std::thread::panicking() || std::env::var_os("ANABRANCH_KEEP_CAPTURES").is_some() {
            eprintln!("the capture is {}", self.0.display());
        } else {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

fn tshark(file: &Path, arguments: &[&str]) -> String {
    // Checksums are verified, too; that is off by default because of offloads, which are not used here.
    let checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
    // The payload is random; without this tshark takes some of it for known protocols.
    let payload = format!("tcp.port=={PORT},data");
    let mut command = Command::new("tshark");
    let command = command.args(checks).args(["-n", "-d", &payload, "-r"]).arg(file).args(arguments);
    let output = command.output().expect("tshark starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Fails if tshark finds any packet malformed, or marks anything in it as an error.
pub fn assert_well_formed(file: &Path) {
    // 0x800000 is the severity "error" of Wireshark's expert information. Linux writes a checksum of zero as 0xffff,
    // its other form in one's complement, as UDP must; Wireshark reports that as an error.
    let filter = "_ws.malformed || _ws.expert.severity >= 8388608 || ip.checksum.status == 0 \
                  || (tcp.checksum.status == 0 && tcp.checksum != 0xffff)";
    let bad = tshark(file, &["-Y", filter, "-V"]);
    let shown: String = bad.lines().take(120).collect::<Vec<_>>().join("\n");
    assert!(bad.is_empty(), "tshark complains:\n{shown}");
}

/// The number of MPTCP options of each subtype, which tshark gives as a number.
pub fn mptcp_options(file: &Path) -> BTreeMap<u8, u64> {
    let text = tshark(file, &["-Y", "tcp.options.mptcp.subtype", "-T", "fields", "-e", "tcp.options.mptcp.subtype"]);
    let mut counts = BTreeMap::new();
    for subtype in text.split_whitespace().flat_map(|line| line.split(',')) {
        let number = subtype.strip_prefix("0x").map_or_else(|| subtype.parse(), |hex| u8::from_str_radix(hex, 16));
        *counts.entry(number.expect("a number")).or_insert(0) += 1;
    }
    counts
}

/// The number of packets that match a display filter of Wireshark's.
pub fn count(file: &Path, filter: &str) -> usize {
    tshark(file, &["-Y", filter, "-T", "fields", "-e", "frame.number"]).lines().count()
}
