//! nginx, as the origin behind our server or beside it.

use anabranch_live::Netns;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The longest time until it listens.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A running nginx, ended with its owner.
pub struct Nginx(Child);

impl Nginx {
    /// Starts it inside the namespace with one `server`, which listens on `address`; its own files are in `base`.
    pub fn start(namespace: &Netns, base: &Path, address: &str, server: &str) -> Self {
        let file = base.join("nginx.conf");
        let base = base.display();
        let configuration = format!(
            "daemon off; user root; worker_processes 1; pid {base}/nginx.pid; error_log {base}/error.log;\n\
             events {{ }}\n\
             http {{ access_log off;\n\
             client_body_temp_path {base}/t1; proxy_temp_path {base}/t2; fastcgi_temp_path {base}/t3;\n\
             uwsgi_temp_path {base}/t4; scgi_temp_path {base}/t5;\n\
             server {{ {server} }} }}\n"
        );
        std::fs::write(&file, configuration).expect("a file");
        let mut command = namespace.command("nginx");
        command.args(["-e", "stderr", "-c"]).arg(&file).stderr(Stdio::null());
        let nginx = Nginx(command.spawn().expect("it starts"));
        let began = Instant::now();
        while !namespace.run(|| TcpStream::connect(address).is_ok()).expect("it can be entered") {
            assert!(began.elapsed() < TIMEOUT, "nginx does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its master ends the workers on a signal; when it is killed, it cannot.
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.0), rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}
