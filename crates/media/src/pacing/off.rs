//! No pacing of responses.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "off",
    summary: "Sends every response as fast as the congestion control allows.",
    source: "what web servers do",
    create: |options| {
        options.expect_only(&[])?;
        Ok(None)
    },
};
