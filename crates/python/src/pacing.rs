//! The pacing of responses for the server: its calls, passed on to the policies of `media`.

use anabranch_events::PacingCounts;
use anabranch_live::QueueingDelays;
use anabranch_media::cmcd::Cmcd;
use anabranch_media::pacing::{FilePacer, FileResponse, Presentation, create};
use anabranch_serve::{BegunResponse, Caps, ResponsePacer, ServedMpd};
use anabranch_stack::options::{OptionError, Options};
use anabranch_units::Instant;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A policy, by name, with the viewers and connections of a server.
#[derive(Debug)]
struct Paced {
    name: String,
    pacer: Mutex<FilePacer>,
}

/// The policy of that name with its defaults; nothing if it paces nothing.
///
/// # Errors
/// If there is no such policy.
pub fn response_pacing(name: &str) -> Result<Option<Arc<dyn ResponsePacer>>, OptionError> {
    let made = create(name, &Options::default())?;
    let paced = |policy| Paced { name: name.to_owned(), pacer: Mutex::new(FilePacer::new(policy)) };
    Ok(made.map(|policy| Arc::new(paced(policy)) as Arc<dyn ResponsePacer>))
}

impl Paced {
    fn pacer(&self) -> MutexGuard<'_, FilePacer> {
        self.pacer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResponsePacer for Paced {
    fn name(&self) -> &str {
        &self.name
    }

    fn knows(&self, path: &str, version: &str) -> bool {
        self.pacer().knows(path, version)
    }

    fn learn(&self, mpd: ServedMpd<'_>) {
        // Before the lock, which the server's loop waits for.
        let read = Presentation::read(mpd.path, mpd.bytes, mpd.size);
        self.pacer().learn(mpd.path, mpd.version, read);
    }

    fn open(&self, client: IpAddr) -> usize {
        self.pacer().open(client)
    }

    fn progress(
        &self,
        now: Instant,
        connection: usize,
        acked: u64,
        delays: &QueueingDelays,
        begun: Vec<BegunResponse>,
    ) -> Caps {
        let mut pacer = self.pacer();
        pacer.note_delays(now, connection, delays.iter().flatten().copied());
        let responses = begun.into_iter().map(|BegunResponse { path, query, cmcd, begin, bytes }| {
            let cmcd = Cmcd::of(query.as_deref(), cmcd.iter().map(String::as_str));
            FileResponse { path, cmcd, begin, bytes }
        });
        pacer.advance(now, connection, acked, responses);
        let buffered_until = pacer.buffered_until(connection);
        Caps { own: pacer.cap(connection), buffered_until, changed: pacer.take_changed() }
    }

    fn close(&self, now: Instant, connection: usize) -> Vec<usize> {
        let mut pacer = self.pacer();
        pacer.close(now, connection);
        pacer.take_changed()
    }

    fn counts(&self) -> PacingCounts {
        self.pacer().counts()
    }
}
