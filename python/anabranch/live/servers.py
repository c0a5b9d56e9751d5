"""nginx and Apache on the kernel's Multipath TCP, in the server's namespace of a testbed or in another one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from anabranch.system.programs import ToolError, find

ADDRESS = "10.99.0.1"
"""The address of a testbed's servers."""

FIRST_PORT = 8100
"""The testbed gives 8000 and the following ports to its own servers."""

NGINX_WRITES: Mapping[str, str] = {
    "pages": "sendfile on",
    "32 kB": "sendfile off",
    "whole chunks": "sendfile off; output_buffers 1 512k",
}
"""How nginx gives a file to the kernel, by the size of each write: pages of 4 kB, its buffers, or a whole chunk."""

_START_TIMEOUT_S = 30.0
_LOOK_EVERY_S = 0.05


def inside(namespace: str, *words: object) -> list[str]:
    """A command in a namespace. `nsenter` leaves /sys as it is, where programs and cgroups are."""
    return ["nsenter", f"--net=/run/netns/{namespace}", *map(str, words)]


def shell(namespace: str, script: str) -> None:
    """Runs a script of the shell in a namespace."""
    subprocess.run(inside(namespace, "bash", "-euc", script), check=True, stdout=subprocess.DEVNULL)


def namespaces(kind: str) -> list[str]:
    """The namespaces of this process's testbed for clients (`client`) or the server (`server`)."""
    return [entry.name for entry in Path("/run/netns").glob(f"anabranch-{os.getpid()}-*{kind}*")]


def controls_of(namespace: str, port: int) -> list[str]:
    """The kernel's names of the congestion controls of the connections on a server's port."""
    command = inside(namespace, "ss", "-Htni", "sport", "=", f":{port}")
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return sorted({name for name in words if name in {"cubic", "bbr", "reno"} or name.startswith("anabranch_")})


# nginx takes over sockets that are open already (it replaces its own program so), and has no setting for their
# congestion control. For Multipath TCP Debian's `mptcpize enable nginx` does the same as the protocol here, 262.
_LAUNCH = """
import os, socket, sys
control, port, *command = sys.argv[1:]
server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.setsockopt(socket.IPPROTO_TCP, 13, control.encode())
server.bind(("0.0.0.0", int(port)))
server.listen(4096)
os.set_inheritable(server.fileno(), True)
os.environ["NGINX"] = f"{server.fileno()};"
os.execvp(command[0], command)
"""


@contextmanager
def nginx(namespace: str, root: Path, folder: Path, *, control: str, port: int, writes: str) -> Iterator[int]:
    """Runs nginx with Debian's settings on a Multipath TCP socket; the process id of its master.

    Args:
        namespace: Where it runs.
        root: What it serves.
        folder: Its own files.
        control: The kernel's name of its socket's congestion control.
        port: Its port.
        writes: A key of `NGINX_WRITES`.

    Raises:
        ToolError: It is missing, or does not listen.
    """
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; worker_processes 1; user root; pid {folder}/pid; error_log {folder}/error.log;\n"
        "worker_rlimit_nofile 8192;\nevents { worker_connections 4096; }\n"
        f"http {{ {paths}access_log off; {NGINX_WRITES[writes]}; tcp_nopush on; keepalive_requests 1000000;\n"
        "types { application/dash+xml mpd; video/mp4 mp4 m4s; }\n"
        f"server {{ listen {port}; root {root}; }} }}\n",
        "utf-8",
    )
    launch = (sys.executable, "-c", _LAUNCH, control, port)
    command = inside(namespace, *launch, find("nginx", "nginx-light"), "-e", "stderr", "-c", folder / "nginx.conf")
    log = folder / "nginx.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    with _listening(process, folder, log):
        yield process.pid


_APACHE_CONF = """
ServerRoot {folder}
ServerName {server}
PidFile {folder}/pid
ErrorLog {folder}/error.log
Mutex file:{folder}
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
Listen {port}
DocumentRoot {root}
KeepAliveTimeout 60
AcceptFilter http {filter}
"""


@contextmanager
def apache(namespace: str, root: Path, folder: Path, *, port: int, defers: bool = True) -> Iterator[None]:
    """Runs Apache on Multipath TCP sockets, which are those of `mptcpize`, with the namespace's control.

    Args:
        namespace: Where it runs.
        root: What it serves.
        folder: Its own files.
        port: Its port.
        defers: Whether it accepts a connection only with its first data (`TCP_DEFER_ACCEPT`), as by default. The
            kernel then drops the end of a join's handshake as well, because it has no data: a second subflow is used
            after half a minute.

    Raises:
        ToolError: It is missing, or does not listen.
    """
    file, log = folder / "apache.conf", folder / "apache.log"
    how = "data" if defers else "none"
    file.write_text(_APACHE_CONF.format(folder=folder, server=ADDRESS, port=port, root=root, filter=how), "utf-8")
    server = find("mptcpize", "mptcpize"), "run", find("apache2", "apache2-bin")
    command = inside(namespace, *server, "-D", "FOREGROUND", "-f", file)
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    with _listening(process, folder, log):
        yield


@contextmanager
def _listening(process: subprocess.Popen[bytes], folder: Path, log: Path) -> Iterator[None]:
    """Waits until a server has written its process id, which it does when it listens; ends it at the end."""
    try:
        until = time.monotonic() + _START_TIMEOUT_S
        while not (folder / "pid").exists():
            if time.monotonic() > until or process.poll() is not None:
                said = log.read_text("utf-8").strip().splitlines()
                raise ToolError(f"{log.stem} does not listen{f': {said[-1]}' if said else ''}")
            time.sleep(_LOOK_EVERY_S)
        yield
    finally:
        process.terminate()
        process.wait()
