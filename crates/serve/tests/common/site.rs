//! A client, links, a router, and a running server behind it.

use super::kernel::PORT;
use super::{content, while_emulating};
use anabranch_live::{Clock, Tap};
use anabranch_network::{Direction, DirectionConfig, Loss, Probability, QueueConfig, Reordering, Streams};
use anabranch_serve::{Content, Listen, Options, Serving};
use anabranch_testnet::sites::{self, Family};
use anabranch_testnet::{EmulatedPath, Emulator, Far, Netns, NoHost, Script};
use anabranch_units::{Bandwidth, Duration, LinkDirection};
use std::fs;
use std::path::PathBuf;

/// The length of `film.mp4`.
pub const LEN: u64 = 5_000_000;

/// A directory of files to serve, removed with its owner.
pub struct Root(pub PathBuf);

impl Root {
    pub fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("anabranch-{}-{name}", std::process::id()));
        fs::create_dir_all(root.join("video")).expect("a directory");
        let mut video = vec![0; LEN as usize];
        content::fill(0, &mut video);
        fs::write(root.join("video/film.mp4"), video).expect("a file");
        for file in ["index.html", "player.js", "video/manifest.mpd", "video/1.m4s"] {
            fs::write(root.join(file), file).expect("a file");
        }
        fs::write(root.with_extension("secret"), "outside").expect("a file");
        Root(root)
    }

    pub fn content(&self) -> Content {
        Content::Root(self.0.clone())
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_file(self.0.with_extension("secret"));
    }
}

/// The network of a test.
pub struct Site<'a> {
    pub client: &'a Netns,
    /// The namespace of the server and of its origin.
    pub router: &'a Netns,
    pub serving: Serving,
}

/// The links.
#[derive(Clone, Copy)]
pub struct Plan {
    pub family: Family,
    pub paths: u16,
    /// In each direction of each path.
    pub rate: Bandwidth,
    /// One-way delay of the first path; each further one has this much more.
    pub delay: Duration,
    /// Bytes of each link's queue.
    pub queue: u64,
    /// Packets of a hundred that are lost.
    pub loss: u8,
    /// Packets of a hundred that are overtaken.
    pub reordering: u8,
}

/// How much later a packet that is overtaken arrives.
const OVERTAKEN_BY: Duration = Duration::from_millis(4);

impl Plan {
    /// Two paths of 20 Mb/s.
    pub fn new(family: Family) -> Self {
        Plan {
            family,
            paths: 2,
            rate: Bandwidth::from_mbps(20),
            delay: Duration::from_millis(10),
            queue: 64_000,
            loss: 0,
            reordering: 0,
        }
    }

    /// The links between a client's devices and those at the far end.
    pub fn links(&self, client: sites::Site, far: sites::Site) -> (Vec<EmulatedPath>, Netns, Netns) {
        let direction = |path: usize, to: LinkDirection| {
            let mut config = DirectionConfig::new(self.rate, QueueConfig::drop_tail_bytes(self.queue));
            config.delay = Duration::from_nanos(self.delay.as_nanos() * (path as u64 + 1)).into();
            let share = |percent: u8| Probability::new(f64::from(percent) / 100.0).expect("a share");
            config.loss = Loss::independent(share(self.loss));
            if self.reordering > 0 {
                config.reordering = Some(Reordering { share: share(self.reordering), by: OVERTAKEN_BY });
            }
            Direction::new(&config, Streams::new(1, format!("link/{path}/{to}")))
        };
        let links = client.devices.into_iter().zip(far.devices).enumerate().map(|(i, (client, far))| EmulatedPath {
            client,
            far: Far::Device(far),
            up: direction(i, LinkDirection::Up),
            down: direction(i, LinkDirection::Down),
            middlebox: Default::default(),
        });
        (links.collect(), client.namespace, far.namespace)
    }

    /// The options of a server on the router.
    pub fn options(&self, content: Content) -> Options {
        let listen = |path| Listen { device: format!("srv{path}"), address: self.family.server(), metered: false };
        Options { port: PORT, ..Options::new((1..=self.paths).map(listen).collect(), content) }
    }

    /// Runs `work` with a server whose options `adjust` has changed; returns the client's namespace for its counters.
    pub fn serve<T>(
        &self,
        content: Content,
        adjust: impl FnOnce(&mut Options),
        work: impl FnOnce(Site<'_>) -> T,
    ) -> (T, Netns) {
        let client = sites::client(self.family, self.paths, "reno").unwrap();
        let router = sites::router(self.family, self.paths).unwrap();
        let (links, client, router) = self.links(client, router);
        let emulator = Emulator::new(Clock::new(), links, NoHost, Script::default(), Tap::none()).unwrap();
        let mut options = self.options(content);
        adjust(&mut options);
        let (result, NoHost, _) = while_emulating(emulator, || {
            let serving = start(&router, options);
            work(Site { client: &client, router: &router, serving })
        });
        (result, client)
    }
}

/// Starts a server inside a namespace.
pub fn start(namespace: &Netns, options: Options) -> Serving {
    let started = namespace.run(|| Serving::start(options)).expect("the namespace can be entered");
    started.unwrap_or_else(|error| panic!("{error}"))
}
