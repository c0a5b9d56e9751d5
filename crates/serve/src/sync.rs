//! The primitives under [`channel`](super::channel). Its model test compiles the same file with loom's in their place.

pub(super) use std::sync::{Arc, Mutex, MutexGuard};
