//! The DASH presentations that a server of files knows: which file is which media segment.

use crate::content::{ContentError, DashVideo, Mpd, MpdSelection, file_of};
use crate::http::MediaSegment;
use std::collections::HashMap;
use std::sync::Arc;

/// MPDs that are kept; beyond, the one that was asked for longest ago is forgotten.
const MOST_PRESENTATIONS: usize = 256;
/// Files of a presentation whose sizes are asked for; beyond, sizes are nominal. A film of three hours in twenty
/// representations has half as many.
const MOST_FILES: usize = 200_000;

/// A presentation: its video, and its files.
#[derive(Debug)]
pub struct Presentation {
    video: Arc<DashVideo>,
    segments: HashMap<String, MediaSegment>,
}

/// Why a presentation is not known.
#[derive(Debug, thiserror::Error)]
pub enum UnknownMedia {
    /// Its MPD cannot be used.
    #[error(transparent)]
    Mpd(#[from] ContentError),
    /// What comes next is not in the MPD.
    #[error("a live presentation")]
    Live,
    /// No media segment has a file of its own.
    #[error("a presentation without files for its media segments")]
    NoFiles,
}

impl Presentation {
    /// Reads the MPD that the server has at `path`. `size` gives the bytes of a file at a path, if there is one.
    ///
    /// # Errors
    /// If the MPD cannot be used, or does not say which files will be asked for.
    pub fn read(path: &str, mpd: &[u8], mut size: impl FnMut(&str) -> Option<u64>) -> Result<Self, UnknownMedia> {
        let (path, selection) = (file_of(path), MpdSelection::default());
        let read = Mpd::read(&path, mpd)?;
        if read.live {
            return Err(UnknownMedia::Live);
        }
        let (video, files) = (read.video(&selection)?, read.files(&selection, &path)?);
        let mut asked = 0;
        let sized = video.with_sizes_of(|rank, index| {
            let file = files.get(rank)?.get(index as usize)?.as_ref().filter(|_| asked < MOST_FILES)?;
            asked += 1;
            size(file)
        });
        let mut segments = HashMap::new();
        for (representation, names) in (0..).zip(files) {
            let named =
                (0..).zip(names).filter_map(|(index, name)| Some((name?, MediaSegment { representation, index })));
            segments.extend(named);
        }
        if segments.is_empty() {
            return Err(UnknownMedia::NoFiles);
        }
        let video = Arc::new(sized.unwrap_or(video));
        Ok(Presentation { video, segments })
    }

    /// Its video.
    pub fn video(&self) -> &DashVideo {
        &self.video
    }
}

/// An MPD that was asked for.
#[derive(Debug)]
struct Known {
    path: String,
    /// Changes when the file does.
    version: String,
    /// `None` if it cannot be used.
    presentation: Option<Presentation>,
}

/// The MPDs that were asked for lately.
#[derive(Debug, Default)]
pub(super) struct Presentations {
    /// The one asked for last comes first.
    known: Vec<Known>,
}

/// A media segment of a presentation.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The path of the MPD.
    pub mpd: String,
    pub video: Arc<DashVideo>,
    pub segment: MediaSegment,
}

impl Presentations {
    /// Whether this version of an MPD is known.
    pub fn has(&self, path: &str, version: &str) -> bool {
        let path = file_of(path);
        self.known.iter().any(|known| known.path == path && known.version == version)
    }

    pub fn add(&mut self, path: &str, version: &str, presentation: Option<Presentation>) {
        let path = file_of(path);
        self.known.retain(|known| known.path != path);
        self.known.insert(0, Known { path, version: version.to_string(), presentation });
        self.known.truncate(MOST_PRESENTATIONS);
    }

    /// The media segment in the file at this path.
    pub fn find(&mut self, path: &str) -> Option<Found> {
        let path = file_of(path);
        let segment_of = |known: &Known| known.presentation.as_ref()?.segments.get(&path).copied();
        let (at, segment) = self.known.iter().enumerate().find_map(|(at, known)| Some((at, segment_of(known)?)))?;
        self.known[..=at].rotate_right(1);
        let Known { path: mpd, presentation, .. } = &self.known[0];
        Some(Found { mpd: mpd.clone(), video: presentation.as_ref()?.video.clone(), segment })
    }

    /// Number of those that can be used, and of the others.
    pub fn count(&self) -> (usize, usize) {
        let usable = self.known.iter().filter(|known| known.presentation.is_some()).count();
        (usable, self.known.len() - usable)
    }
}
