//! Serves a directory over HTTP to Multipath TCP clients: the command line of `anabranch_live::serve`.

use anabranch_live::serve::{Listen, Options, serve};
use anabranch_stack::congestion;
use anabranch_stack::connection::{Choice, CongestionChoice};
use anabranch_stack::options::Options as NoOptions;
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Serves a directory over HTTP/1.1 to Multipath TCP clients, with our own endpoint on TUN devices.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// A path: TUN device and the server's address on it; once for each path.
    #[arg(long = "listen", value_name = "DEVICE=ADDRESS", required = true, value_parser = parse_listen)]
    listen: Vec<Listen>,
    /// The directory whose files are served.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// The port.
    #[arg(long, default_value_t = 80)]
    port: u16,
    /// The MTU of the devices in bytes.
    #[arg(long, default_value_t = anabranch_live::lab::MTU)]
    mtu: u32,
    /// Which subflow carries the next data.
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// The window of each subflow.
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// Which subflows may carry new data.
    #[arg(long, value_name = "NAME")]
    path_policy: Option<String>,
    /// Seconds that responses under way may take after Ctrl-C.
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u64>,
    /// Record all packets to a pcapng file.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

fn parse_listen(text: &str) -> Result<Listen, String> {
    let (device, address) = text.split_once('=').ok_or("expected DEVICE=ADDRESS")?;
    let address = address.parse().map_err(|error| format!("{address:?}: {error}"))?;
    Ok(Listen { device: device.to_owned(), address })
}

fn options(arguments: Arguments) -> Result<Options, String> {
    let mut options = Options::new(arguments.listen, arguments.root);
    (options.port, options.mtu, options.capture) = (arguments.port, arguments.mtu, arguments.pcap);
    if let Some(name) = arguments.scheduler {
        options.scheduler = Choice::of(&name);
    }
    if let Some(name) = arguments.path_policy {
        options.path_policy = Choice::of(&name);
    }
    if let Some(name) = arguments.congestion_control {
        let entry = congestion::find(&name).ok_or_else(|| {
            let known: Vec<_> = congestion::REGISTRY.iter().map(|entry| entry.name).collect();
            format!("there is no congestion control {name:?}; there are {}", known.join(", "))
        })?;
        options.congestion_control = CongestionChoice { entry, options: NoOptions::default() };
    }
    if let Some(seconds) = arguments.grace {
        options.grace = Duration::from_secs(seconds);
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options(Arguments::parse()) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    let where_: Vec<_> = options.listen.iter().map(|l| format!("{} on {}", l.address, l.device)).collect();
    let banner = format!("serving {} at {}, port {}", options.root.display(), where_.join(" and "), options.port);
    match serve(&options, || eprintln!("{banner}")) {
        Ok(counters) => {
            eprintln!("served {} connections", counters.accepted);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
