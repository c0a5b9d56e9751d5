//! Checks of a capture by tshark.

use super::kernel::PORT;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A file for a capture, removed with its owner unless the test fails: then it is kept and named.
pub struct CaptureFile {
    path: PathBuf,
    /// What tshark found in it, once it was asked: a second look costs half a second of processor time.
    packets: OnceLock<Vec<Packet>>,
}

impl CaptureFile {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("anabranch-{}-{name}.pcapng", std::process::id()));
        CaptureFile { path, packets: OnceLock::new() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The packets of the complete capture.
    fn packets(&self) -> &[Packet] {
        self.packets.get_or_init(|| {
            let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
            let arguments: Vec<&str> = ["-T", "fields"].into_iter().chain(fields).collect();
            tshark(&self.path, &arguments).lines().map(Packet::of).collect()
        })
    }
}

impl Drop for CaptureFile {
    fn drop(&mut self) {
        if std::thread::panicking() || std::env::var_os("ANABRANCH_KEEP_CAPTURES").is_some() {
            eprintln!("the capture is {}", self.path.display());
        } else {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// What tshark says of a packet, in the order of [`FIELDS`].
pub struct Packet {
    /// The subtypes of its MPTCP options.
    pub mptcp: Vec<u8>,
    /// Whether RST is set.
    pub reset: bool,
    /// The receiver's address; none in IPv6.
    pub to: Option<IpAddr>,
    /// The advertised window, scaled; none without TCP.
    pub window: Option<u32>,
    faulty: bool,
}

/// The names of the fields in Wireshark's display filters.
const FIELDS: [&str; 9] = [
    "tcp.options.mptcp.subtype",
    "tcp.flags.reset",
    "ip.dst",
    "tcp.window_size",
    "_ws.malformed",
    "_ws.expert.severity",
    "ip.checksum.status",
    "tcp.checksum.status",
    "tcp.checksum",
];

/// The severity "error" of Wireshark's expert information.
const ERROR: u32 = 0x0080_0000;
/// A checksum that is wrong.
const BAD: &str = "0";
/// Linux writes a checksum of zero as its other form in one's complement, as UDP must; Wireshark takes that for wrong.
const OTHER_ZERO: &str = "0xffff";

impl Packet {
    /// From a line of tshark's fields.
    fn of(line: &str) -> Packet {
        let fields: Vec<&str> = line.split('\t').collect();
        let [mptcp, reset, to, window, malformed, severities, ip, tcp, checksum] = fields[..] else {
            panic!("tshark prints {} fields: {line}", fields.len())
        };
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => text.parse(),
        };
        let numbers = |text: &str| {
            let list = text.split(',').filter(|text| !text.is_empty());
            list.map(|text| number(text).unwrap_or_else(|_| panic!("{text} is no number"))).collect::<Vec<u32>>()
        };
        let wrong_sum = ip == BAD || (tcp == BAD && checksum != OTHER_ZERO);
        let error = numbers(severities).into_iter().any(|severity| severity >= ERROR);
        Packet {
            mptcp: numbers(mptcp).into_iter().map(|subtype| u8::try_from(subtype).expect("four bits")).collect(),
            reset: reset == "1",
            // An ICMP message has the addresses of the packet that it is about behind its own.
            to: to.split(',').next().filter(|to| !to.is_empty()).map(|to| to.parse().expect("an address")),
            window: numbers(window).first().copied(),
            faulty: !malformed.is_empty() || wrong_sum || error,
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
pub fn assert_well_formed(file: &CaptureFile) {
    let Some(first) = file.packets().iter().position(|packet| packet.faulty) else { return };
    let text = tshark(&file.path, &["-Y", &format!("frame.number == {}", first + 1), "-V"]);
    let faulty = file.packets().iter().filter(|packet| packet.faulty).count();
    panic!("tshark complains of {faulty} packets, first of this one:\n{text}");
}

/// The number of MPTCP options of each subtype.
pub fn mptcp_options(file: &CaptureFile) -> BTreeMap<u8, u64> {
    let mut counts = BTreeMap::new();
    for subtype in file.packets().iter().flat_map(|packet| &packet.mptcp) {
        *counts.entry(*subtype).or_insert(0) += 1;
    }
    counts
}

/// The number of packets for which this is true.
pub fn count(file: &CaptureFile, is_counted: impl Fn(&Packet) -> bool) -> usize {
    file.packets().iter().filter(|packet| is_counted(packet)).count()
}
