//! nginx, as the origin behind our server or a second server, and as a proxy of the kernel's sockets.

use anabranch_testnet::Netns;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time until it listens.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Debian's file of the module that passes streams on (libnginx-mod-stream).
const STREAM_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

/// A running nginx, ended with its owner.
pub struct Nginx(Child);

impl Nginx {
    /// Starts it inside the namespace with one `server`, which listens on `address`; its own files are in `base`.
    pub fn start(namespace: &Netns, base: &Path, address: &str, server: &str) -> Self {
        let files = base.display();
        let http = format!(
            "http {{ access_log off;\n\
             client_body_temp_path {files}/t1; proxy_temp_path {files}/t2; fastcgi_temp_path {files}/t3;\n\
             uwsgi_temp_path {files}/t4; scgi_temp_path {files}/t5;\n\
             server {{ {server} }} }}\n"
        );
        Nginx::run(namespace, namespace.command("nginx"), base, address, "", &http)
    }

    /// The same with TLS: serves `root`, and stores what is sent with PUT there. It signs its certificate itself.
    pub fn start_tls(namespace: &Netns, root: &Path, address: &str) -> Self {
        let path = |name: &str| root.join(name).display().to_string();
        let (key, certificate) = (path("key.pem"), path("certificate.pem"));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-days", "1", "-subj", "/CN=anabranch.test", "-keyout", &key, "-out", &certificate]);
        assert!(openssl.stderr(Stdio::null()).status().expect("it starts").success());
        let server = format!(
            "listen {address} ssl; root {}; dav_methods PUT; client_max_body_size 0;\n\
             ssl_certificate {certificate}; ssl_certificate_key {key};",
            root.display()
        );
        Nginx::start(namespace, root, address, &server)
    }

    /// Starts a proxy of Multipath TCP inside the namespace, which passes all streams from `address` on to `origin`.
    pub fn relay(namespace: &Netns, base: &Path, address: &str, origin: &str) -> Self {
        assert!(Path::new(STREAM_MODULE).exists(), "no {STREAM_MODULE}: apt-get install libnginx-mod-stream");
        let mut program = namespace.command("mptcpize");
        program.args(["run", "nginx"]);
        let head = format!("load_module {STREAM_MODULE};\n");
        let stream = format!("stream {{ server {{ listen {address}; proxy_pass {origin}; proxy_half_close on; }} }}\n");
        Nginx::run(namespace, program, base, address, &head, &stream)
    }

    fn run(namespace: &Netns, mut program: Command, base: &Path, address: &str, head: &str, body: &str) -> Self {
        let (file, files) = (base.join("nginx.conf"), base.display());
        let configuration = format!(
            "{head}daemon off; user root; worker_processes 1; pid {files}/nginx.pid; error_log {files}/error.log;\n\
             events {{ }}\n{body}"
        );
        std::fs::write(&file, configuration).expect("a file");
        program.args(["-e", "stderr", "-c"]).arg(&file).stderr(Stdio::null());
        let nginx = Nginx(program.spawn().expect("it starts"));
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
