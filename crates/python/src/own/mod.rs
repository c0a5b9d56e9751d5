//! Algorithms that are written in Python: schedulers, congestion controls, path policies and bitrate rules.
//!
//! The crates below see parts that are in no registry ([`parts`]) and do not know in which language they are written.
//! Each kind has a file that carries the calls over: it copies the state that the engine shows into objects that live
//! as long as the part ([`views`], [`control`], [`playback`]), calls the author's method, and checks what that
//! returned. [`context`] is what an author's object has as `self.ctx`, [`run`] keeps the first exception of a run. In a
//! server ([`served`]) each
//! connection is a run of its own.

pub(crate) mod abr;
pub(crate) mod conformance;
pub(crate) mod congestion;
pub(crate) mod context;
pub(crate) mod control;
pub(crate) mod part;
pub(crate) mod parts;
pub(crate) mod path_policy;
pub(crate) mod playback;
pub(crate) mod run;
pub(crate) mod scheduler;
#[cfg(target_os = "linux")]
pub(crate) mod served;
pub(crate) mod views;
