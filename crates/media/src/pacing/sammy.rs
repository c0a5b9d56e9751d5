//! Sammy: responses are sent at a multiple of the highest bitrate, which falls as the viewer's buffer grows.
//!
//! ```text
//! pace = top * (empty + (full - empty) * min(1, buffer / target))
//! ```
//!
//! Source: Spang et al., SIGCOMM 2023, sections 4 and 5, from memory: 3 times the highest bitrate with an empty buffer
//! and 1.5 times with a full one; nothing is paced before the video plays, which here is until `start_s` are buffered.
//! The paper's players choose the bitrate and the pace together; here the player knows nothing of it.

use super::{Entry, Moment, ResponsePacing, Viewer};
use anabranch_units::{Bandwidth, Instant};

pub(super) const ENTRY: Entry = Entry {
    name: "sammy",
    summary: "Sends at 3 times the highest bitrate to an empty buffer, down to 1.5 times to a full one.",
    source: "Spang et al., SIGCOMM 2023",
    create: |options| {
        options.expect_only(&["empty", "full", "target_s", "start_s"])?;
        Ok(Some(Box::new(Sammy {
            empty: options.number("empty", 3.0, 1.0..=100.0)?,
            full: options.number("full", 1.5, 1.0..=100.0)?,
            target_s: options.number("target_s", 18.0, 0.1..=3_600.0)?,
            start_s: options.number("start_s", 2.0, 0.0..=3_600.0)?,
        })))
    },
};

#[derive(Debug)]
struct Sammy {
    empty: f64,
    full: f64,
    target_s: f64,
    start_s: f64,
}

impl ResponsePacing for Sammy {
    fn decide(&mut self, now: Instant, viewers: &mut [Viewer], moment: &Moment) {
        let Moment::Requested(at) = *moment else { return };
        let viewer = &mut viewers[at];
        let buffer = viewer.buffer(now).as_secs_f64();
        let top = viewer.top_bitrate();
        let multiple = self.empty + (self.full - self.empty) * (buffer / self.target_s).min(1.0);
        viewer.pace = (buffer >= self.start_s && top > 0.0).then(|| Bandwidth::from_bps((top * multiple) as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::super::create;
    use super::*;
    use crate::http::MediaSegment;
    use crate::testing::at_ms;
    use anabranch_registry::options::Options;
    use std::sync::Arc;

    #[test]
    fn the_multiple_falls_with_the_buffer() {
        let mut policy = create("sammy", &Options::default()).unwrap().unwrap();
        let video = crate::content::find_ladder("bbb-2s").map(|ladder| Arc::new(ladder.video(None).unwrap()));
        let mut viewers = [Viewer::new(video)];
        let mut paces = Vec::new();
        for index in 0..12 {
            let segment = MediaSegment { representation: 0, index };
            viewers[0].requested(at_ms(0), 0, segment, 1);
            policy.decide(at_ms(0), &mut viewers, &Moment::Requested(0));
            paces.push(viewers[0].pace.map(Bandwidth::as_bps));
            viewers[0].completed(at_ms(0), 0, segment);
        }
        let top = 4_219_897.0;
        assert_eq!(paces[0], None, "nothing is buffered");
        assert_eq!(paces[3], Some((top * 2.5) as u64), "6 of 18 s");
        assert_eq!((paces[9], paces[11]), (Some((top * 1.5) as u64), Some((top * 1.5) as u64)));
    }
}
