//! What is wrong with a configuration.

/// A wrong field of a configuration, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct ConfigError {
    /// Name of the field, with the parts of a nested one separated by dots.
    pub field: &'static str,
    /// The fault, worded to follow the field's name.
    pub problem: String,
    /// What would be right, where the fault does not say it.
    pub expected: &'static str,
}

impl ConfigError {
    pub(crate) fn new(field: &'static str, problem: impl Into<String>) -> Self {
        ConfigError { field, problem: problem.into(), expected: "" }
    }

    /// The same with what would be right.
    pub(crate) fn expecting(self, expected: &'static str) -> Self {
        ConfigError { expected, ..self }
    }
}
