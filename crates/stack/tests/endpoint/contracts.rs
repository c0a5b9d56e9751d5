//! What the endpoint refuses from its host and from parts that come from outside, in every build.

use crate::common::{Pair, Path, Seeded, config, secs};
use anabranch_segment::{Flags, Segment};
use anabranch_stack::congestion::CongestionControl;
use anabranch_stack::connection::{Choice, Connection, Protocol};
use anabranch_stack::external::{ExternalParts, Kind};
use anabranch_stack::options::{OptionError, Options};
use anabranch_stack::path_policy::PathPolicy;
use anabranch_stack::scheduler::{Decision, Scheduler, Trigger, View};
use anabranch_units::{Instant, PathId};
use std::sync::Arc;

/// A scheduler that chooses a subflow that the connection does not have.
#[derive(Debug)]
struct Astray(Trigger);

impl Scheduler for Astray {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        let subflow = if trigger == self.0 { view.subflows.len() } else { view.candidates.iter().next().unwrap() };
        Decision::Send { subflow, bytes: 1_000 }
    }
}

#[derive(Debug)]
struct Parts(Trigger);

impl ExternalParts for Parts {
    fn knows(&self, _: Kind, _: &str) -> bool {
        true
    }

    fn scheduler(&self, _: &str, _: &Options) -> Result<Box<dyn Scheduler>, OptionError> {
        Ok(Box::new(Astray(self.0)))
    }

    fn path_policy(&self, _: &str, _: &Options) -> Result<Box<dyn PathPolicy>, OptionError> {
        unreachable!("only the scheduler comes from outside")
    }

    fn congestion_control(&self, _: &str, _: &Options, _: u64) -> Result<Box<dyn CongestionControl>, OptionError> {
        unreachable!("only the scheduler comes from outside")
    }
}

/// A download over two paths whose server's scheduler goes astray.
fn astray(trigger: Trigger) -> Pair {
    let mut server = config(Protocol::Mptcp, 2);
    server.transport.scheduler = Choice::of("module:Astray");
    server.transport.scheduler.attach(Arc::new(Parts(trigger)));
    let paths = vec![Path::symmetric(10, 10), Path::symmetric(10, 10)];
    let mut pair = Pair::new(config(Protocol::Mptcp, 2), server, paths, 3);
    pair.to_send = 1 << 20;
    pair
}

#[test]
#[should_panic(expected = "that is no candidate")]
fn a_scheduler_that_chooses_no_candidate_for_new_data_is_an_error() {
    astray(Trigger::NewData).run_until(secs(5), |_| false);
}

#[test]
#[should_panic(expected = "that is no candidate")]
fn a_scheduler_that_chooses_no_candidate_for_a_reinjection_is_an_error() {
    let mut pair = astray(Trigger::Reinjection);
    pair.run_until(secs(1), |pair| pair.received > 100_000);
    pair.paths[0].cut();
    pair.run_until(secs(60), |_| false);
}

#[test]
fn a_first_syn_on_an_unknown_path_is_refused() {
    let mut syn = Segment::new(Flags::SYN);
    (syn.source_port, syn.destination_port) = (5000, 80);
    let accept = |path| Connection::accept(config(Protocol::Tcp, 2), Box::new(Seeded(1)), Instant::ZERO, path, &syn);
    assert!(accept(PathId(1)).is_ok());
    let refused = accept(PathId(2)).unwrap_err();
    assert_eq!((refused.option.as_ref(), refused.message.contains("path 2")), ("paths", true));
}
