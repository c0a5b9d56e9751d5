//! sim
mod error;
mod quantity;
pub mod scenario;
mod world { mod agenda; }
pub use error::Error;
pub use scenario::load;
