//! What a subflow has to send other than data and acknowledgments. All of it is rare, so the connection looks for it
//! only at subflows that have any.

use anabranch_segment::{MptcpOption, ResetReason};
use std::collections::VecDeque;

/// How far this end has closed its half of the subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    /// It may send data.
    #[default]
    Open,
    /// The FIN follows the data that is queued.
    Closing,
    /// The FIN was sent.
    FinSent,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct ControlSegments {
    reset: Option<ResetReason>,
    third_segment: bool,
    data_fin: bool,
    window_probe: bool,
    end: End,
    /// Options that the next segment must carry.
    pub signals: VecDeque<MptcpOption>,
}

/// A segment that an established subflow has to send when it has sent its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// DATA_FIN.
    DataFin,
    /// The subflow's FIN.
    Fin,
    /// A probe of the peer's closed window.
    WindowProbe,
}

impl ControlSegments {
    /// Whether there is none to send now or later, unless that is requested.
    pub fn is_empty(&self) -> bool {
        let segments = self.reset.is_some() || self.third_segment || self.data_fin || self.window_probe;
        !segments && self.end == End::Open && self.signals.is_empty()
    }

    /// The subflow is to be closed with RST.
    pub fn reset(&mut self, reason: ResetReason) {
        self.reset = Some(reason);
    }

    /// Whether RST is to be sent.
    pub fn resets(&self) -> bool {
        self.reset.is_some()
    }

    /// RST is sent; returns its reason.
    pub fn take_reset(&mut self) -> Option<ResetReason> {
        self.reset.take()
    }

    /// The third segment of the first handshake must be sent on its own and before any data, as Linux does, whose
    /// application learns of the connection later.
    pub fn send_third_segment(&mut self) {
        self.third_segment = true;
    }

    /// Whether the third segment is to be sent.
    pub fn owes_third_segment(&self) -> bool {
        self.third_segment
    }

    /// An acknowledgment is sent, which is the third segment as well.
    pub fn third_segment_sent(&mut self) {
        self.third_segment = false;
    }

    /// DATA_FIN must be sent on this subflow.
    pub fn send_data_fin(&mut self) {
        self.data_fin = true;
    }

    /// DATA_FIN is sent.
    pub fn data_fin_sent(&mut self) {
        self.data_fin = false;
    }

    /// A probe of the peer's closed window must be sent.
    pub fn probe_window(&mut self) {
        self.window_probe = true;
    }

    /// The probe is sent.
    pub fn window_probed(&mut self) {
        self.window_probe = false;
    }

    /// This end wants to close the subflow.
    pub fn close(&mut self) {
        if self.end == End::Open {
            self.end = End::Closing;
        }
    }

    /// Whether this end wants to close the subflow, or has.
    pub fn is_closing(&self) -> bool {
        self.end != End::Open
    }

    /// The FIN is sent.
    pub fn on_fin_sent(&mut self) {
        self.end = End::FinSent;
    }

    /// Whether the FIN was sent.
    pub fn fin_sent(&self) -> bool {
        self.end == End::FinSent
    }

    /// What is to be sent after the data; `has_data` if some is queued.
    pub fn closing(&self, has_data: bool) -> Option<Closing> {
        if self.data_fin {
            Some(Closing::DataFin)
        } else if self.end == End::Closing && !has_data {
            Some(Closing::Fin)
        } else {
            self.window_probe.then_some(Closing::WindowProbe)
        }
    }
}
