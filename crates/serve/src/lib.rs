//! A server for real Multipath TCP clients: files over HTTP/1.1, or another server behind it.
//!
//! One TUN device per path connects the kernel, which routes the server's address to it, with our endpoint. A thread
//! drives the endpoint and yields a [`Stream`] per connection; a second one runs HTTP, or passes the streams on.
//!
//! `docs/how-to/serve.md` describes the setup of devices, addresses and routes.

mod access;
mod channel;
mod dates;
mod devices;
mod driver;
mod files;
mod front;
mod http2;
mod loop_waker;
mod meter;
mod metrics;
mod options;
mod pacing;
mod proxy;
mod room;
mod serving;
mod state;
mod status;
mod stream;
mod sync;
mod trim;

pub use access::{AccessLog, LogFormat};
pub use devices::Devices;
pub use files::Visible;
pub use options::{Content, Listen, Options, SEND_MEMORY, ServeError};
pub use pacing::{BegunResponse, Caps, ResponsePacer, ServedMpd};
pub use room::FIRST_ROOM;
pub use serving::Serving;
pub use status::{PathStatus, Process, Status, Traffic};
pub use stream::Stream;
