//! Processor time of the server's threads.

use std::collections::BTreeMap;
use std::fmt;

/// Seconds by thread's name, of all threads whose name begins with `anabranch-`.
#[derive(Clone, Debug)]
pub struct Threads(BTreeMap<String, f64>);

impl Threads {
    /// Since each thread began.
    pub fn now() -> Self {
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let mut seconds = BTreeMap::new();
        for task in std::fs::read_dir("/proc/self/task").expect("Linux has it").flatten() {
            // A thread may end between the two calls.
            let Ok(stat) = std::fs::read_to_string(task.path().join("stat")) else { continue };
            let (name, rest) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(") ")).expect("proc(5)");
            if name.starts_with("anabranch-") {
                // Fields 14 and 15 of the line; 3 is the first one here.
                let spent = rest.split(' ').skip(11).take(2).map(|field| field.parse::<f64>().expect("a number"));
                *seconds.entry(name.to_owned()).or_default() += spent.sum::<f64>() / ticks;
            }
        }
        Threads(seconds)
    }

    /// The difference to an earlier reading.
    pub fn since(mut self, before: &Threads) -> Self {
        for (name, seconds) in &mut self.0 {
            *seconds -= before.0.get(name).unwrap_or(&0.0);
        }
        self
    }

    pub fn total(&self) -> f64 {
        self.0.values().sum()
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.iter().map(|(name, seconds)| format!("{name} {seconds:.2} CPU s"));
        f.write_str(&parts.collect::<Vec<_>>().join(", "))
    }
}
