//! Python bindings (conversions only).
