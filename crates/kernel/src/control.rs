//! The laws by name.

/// A coupled congestion control that the programs implement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// RFC 6356.
    Lia,
    /// draft-khalili-mptcp-congestion-control-05.
    Olia,
    /// draft-walid-mptcp-congestion-control-04.
    Balia,
    /// MPTCP+, section III.B.
    Mcc,
}

impl Control {
    /// All of them, in the order in which lists show them.
    pub const ALL: [Control; 4] = [Control::Lia, Control::Olia, Control::Balia, Control::Mcc];

    /// The name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Control::Lia => "lia",
            Control::Olia => "olia",
            Control::Balia => "balia",
            Control::Mcc => "mcc",
        }
    }

    /// The control of this name.
    pub fn find(name: &str) -> Option<Self> {
        Control::ALL.into_iter().find(|control| control.name() == name)
    }

    /// The name in the kernel, as of `TCP_CONGESTION`: at most 15 bytes, and one for the whole machine.
    pub fn kernel_name(self) -> String {
        format!("anabranch_{}", self.name())
    }

    /// The compiled programs.
    #[cfg(feature = "bpf")]
    pub(crate) fn object(self) -> &'static [u8] {
        match self {
            Control::Lia => include_bytes!(concat!(env!("OUT_DIR"), "/lia.bpf.o")),
            Control::Olia => include_bytes!(concat!(env!("OUT_DIR"), "/olia.bpf.o")),
            Control::Balia => include_bytes!(concat!(env!("OUT_DIR"), "/balia.bpf.o")),
            Control::Mcc => include_bytes!(concat!(env!("OUT_DIR"), "/mcc.bpf.o")),
        }
    }
}
