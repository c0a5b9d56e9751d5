//! What the pacing of responses gets to know of files and of their responses.

use super::super::access::Client;
use super::super::pacing::{Announcements, BegunResponse, MOST_MPD, ServedMpd, cmcd_of};
use super::Answer;
use super::directory::{Directory, Opened};
use super::media_type::media_type;
use hyper::Request;
use hyper::body::Body;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The type of MPDs.
const MPD: &str = "application/dash+xml";

/// Announces a response that is about to be written, if responses are paced.
pub(super) fn announce<B>(client: &Client, request: &Request<B>, answer: &Answer) {
    let Some(announcements) = &client.announcements else { return };
    let bytes = answer.body().size_hint().exact().unwrap_or_default();
    if bytes == 0 || !answer.status().is_success() {
        return;
    }
    let uri = request.uri();
    announcements.announce(BegunResponse {
        path: uri.path().to_owned(),
        query: uri.query().map(str::to_owned),
        cmcd: cmcd_of(request.headers()),
        begin: client.stats.written(),
        bytes,
    });
}

/// Passes an MPD on, from another thread, unless this version of it was.
pub(super) fn pass_mpd(directory: &Arc<Directory>, client: &Client, path: &str, opened: &Opened) {
    let Some(announcements) = &client.announcements else { return };
    let version = &opened.version.etag;
    if media_type(path) != MPD || opened.len > MOST_MPD || !announcements.wants(path, version) {
        return;
    }
    let Ok(file) = opened.file.try_clone() else { return announcements.learn(path, None) };
    let (directory, announcements) = (directory.clone(), announcements.clone());
    let (path, version, len) = (path.to_owned(), version.clone(), opened.len);
    tokio::task::spawn_blocking(move || read(&directory, &announcements, &file, (&path, &version, len)));
}

fn read(directory: &Directory, announcements: &Announcements, file: &File, (path, version, len): (&str, &str, u64)) {
    let mut bytes = vec![0; len as usize];
    // One that became shorter has another version by now.
    let whole = file.read_exact_at(&mut bytes, 0).is_ok();
    let size = |path: &str| directory.open(path).ok().flatten().map(|opened| opened.len);
    announcements.learn(path, whole.then_some(ServedMpd { path, version, bytes: &bytes, size: &size }));
}
