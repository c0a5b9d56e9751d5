//! What may go wrong, by who can change it.

use thiserror::Error;

/// Why nothing was attached, detached or read.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The caller asked for something that does not exist or contradicts itself.
    #[error("{0}")]
    Input(String),
    /// The machine lacks something, or the kernel refused.
    #[error("{0}")]
    Machine(String),
}

#[cfg(feature = "bpf")]
impl KernelError {
    /// The kernel refused an operation.
    pub(crate) fn refused(doing: &str, error: impl std::fmt::Display) -> Self {
        KernelError::Machine(format!("{doing}: {error}"))
    }
}
