"""The devices, routes and settings that connect a server to the kernel.

The wanted state is a list of items. Each has a name, a test whether it is there, the command that makes it and the
command that removes it. Setting up runs the commands of what is missing, so a second time nothing is left to do.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import InputError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
ListenPath = tuple[str, str, bool]
"""A `--listen`: the device, the server's address on it, and whether the path is metered."""
METERED = "metered"
"""What follows the address in `--listen` where bytes cost money."""

# Routing tables and preferences of rules: those of docs/how-to/serve.md. To the server, and from it.
_TO_SERVER = 200
_FROM_SERVER = 300


@dataclass(frozen=True)
class Uplink:
    """The interface by which packets of a path come and leave."""

    interface: str
    # The next hop; `None` for a link without one, or for the interface's own default route.
    gateway: Address | None


@dataclass(frozen=True)
class WiredPath:
    """One `--listen`, with its uplink."""

    number: int
    device: str
    address: Address
    uplink: Uplink | None

    @property
    def family(self) -> str:
        """The option of `ip` for its address."""
        return f"-{self.address.version}"

    @property
    def prefix(self) -> str:
        """Its address as a route has it."""
        return f"{self.address}/{self.address.max_prefixlen}"


@dataclass(frozen=True)
class Item:
    """A part of the wanted state."""

    name: str
    is_there: Callable[[], bool]
    make: tuple[str, ...]
    # `None` for settings of the whole machine, which others may need.
    remove: tuple[str, ...] | None


@dataclass(frozen=True)
class Obstacle:
    """Something that keeps clients from being served, and what helps."""

    problem: str
    remedy: str


def paths_of(listen: Sequence[ListenPath], uplinks: Sequence[str]) -> list[WiredPath]:
    """The paths, from the texts of `--listen` and `--uplink`.

    Raises:
        InputError: A text is wrong, an uplink belongs to no path, or several paths have not all got one.
    """
    by_device = dict(_uplink(text) for text in uplinks)
    devices = [device for device, *_ in listen]
    for device in by_device:
        if device not in devices:
            raise InputError(
                f"--uplink {device}=...: no --listen has the device {device}; there is {', '.join(devices)}"
            )
    if len(listen) > 1 and (missing := [device for device in devices if device not in by_device]):
        raise InputError(
            f"several paths need an uplink each, and {missing[0]} has none: --uplink {missing[0]}=INTERFACE[,GATEWAY]"
        )
    paths = []
    for number, (device, text, _) in enumerate(listen, 1):
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            raise InputError(f"--listen {device}={text}: `{text}` is no IP address, such as 10.99.0.1") from None
        uplink = by_device.get(device)
        if uplink and uplink.gateway and uplink.gateway.version != address.version:
            raise InputError(f"--uplink {device}: the gateway {uplink.gateway} and {address} are of different families")
        paths.append(WiredPath(number, device, address, uplink))
    return paths


def _uplink(text: str) -> tuple[str, Uplink]:
    device, separator, rest = text.partition("=")
    interface, _, gateway = rest.partition(",")
    if not (device and separator and interface):
        raise InputError(f"--uplink {text}: expected DEVICE=INTERFACE[,GATEWAY], such as srv1=eth0,192.0.2.1")
    try:
        return device, Uplink(interface, ipaddress.ip_address(gateway) if gateway else None)
    except ValueError:
        raise InputError(f"--uplink {text}: `{gateway}` is no IP address, such as 192.0.2.1") from None


def wanted(paths: Sequence[WiredPath], user: str, mtu: int) -> list[Item]:
    """Everything that a server on these paths needs, in the order in which it is made."""
    items = [_forwarding(version) for version in sorted({path.address.version for path in paths})]
    if any(path.address.version == 4 for path in paths):
        # Linux uses the larger of this and the interface's own value.
        items.append(_setting("net.ipv4.conf.all.rp_filter", "0"))
    for path in paths:
        items += _device(path, user, mtu)
        items += _uplink_routes(path, path.uplink) if path.uplink else [_plain_route(path)]
    return items


def _forwarding(version: int) -> Item:
    return _setting("net.ipv4.ip_forward" if version == 4 else "net.ipv6.conf.all.forwarding", "1")


def _setting(name: str, value: str) -> Item:
    def is_there() -> bool:
        return sysctl(name) == value

    return Item(f"{name} is {value}", is_there, ("sysctl", "-q", "-w", f"{name}={value}"), None)


def _device(path: WiredPath, user: str, mtu: int) -> Iterator[Item]:
    device = path.device
    make = ("ip", "tuntap", "add", "dev", device, "mode", "tun", "user", user)
    remove = ("ip", "tuntap", "del", "dev", device, "mode", "tun")
    yield Item(f"TUN device {device}", lambda: bool(_link(device)), make, remove)

    def is_up() -> bool:
        link = _link(device)
        return bool(link) and "UP" in link["flags"] and link["mtu"] == mtu

    yield Item(f"{device} is up, MTU {mtu}", is_up, ("ip", "link", "set", device, "up", "mtu", str(mtu)), None)
    if path.address.version == 4:
        yield _setting(f"net.ipv4.conf.{device}.rp_filter", "0")


def _plain_route(path: WiredPath) -> Item:
    route = (path.prefix, "dev", path.device)
    return _route(path, f"packets for {path.address} go to {path.device}", route, "main")


def _uplink_routes(path: WiredPath, uplink: Uplink) -> Iterator[Item]:
    to, back = str(_TO_SERVER + path.number), str(_FROM_SERVER + path.number)
    interface, device = uplink.interface, path.device
    name = f"packets for {path.address} from {interface} go to {device}"
    yield _route(path, name, (path.prefix, "dev", device), to)
    yield _rule(path, f"rule for packets from {interface}", ("iif", interface, "to", path.prefix), to)
    hop = uplink.gateway or default_gateway(path.family, interface)
    via = ("via", str(hop)) if hop else ()
    yield _route(path, f"packets from {device} leave by {interface}", ("default", *via, "dev", interface), back)
    yield _rule(path, f"rule for packets from {device}", ("iif", device), back)
    if path.address.version == 4:
        yield _setting(f"net.ipv4.conf.{interface}.rp_filter", "0")


def _route(path: WiredPath, name: str, route: tuple[str, ...], table: str) -> Item:
    where = ("table", table)

    def is_there() -> bool:
        shown = _ip(path.family, "route", "show", *where)
        return any(_same_route(entry, route) for entry in shown)

    target = ("ip", path.family, "route")
    return Item(name, is_there, (*target, "replace", *route, *where), (*target, "del", *route, *where))


def _same_route(entry: dict[str, Any], route: tuple[str, ...]) -> bool:
    destination, *rest = route
    options = dict(zip(rest[::2], rest[1::2], strict=True))
    bare = destination.removesuffix("/32").removesuffix("/128")
    return (
        entry.get("dst") in (destination, bare)
        and entry.get("dev") == options["dev"]
        and entry.get("gateway") == options.get("via")
    )


def _rule(path: WiredPath, name: str, selector: tuple[str, ...], table: str) -> Item:
    options = dict(zip(selector[::2], selector[1::2], strict=True))

    def is_there() -> bool:
        bare = str(path.address) if "to" in options else None
        return any(
            str(rule.get("priority")) == table
            and str(rule.get("table")) == table
            and rule.get("iif") == options["iif"]
            and rule.get("dst") == bare
            for rule in _ip(path.family, "rule", "show")
        )

    target = ("ip", path.family, "rule")
    make = (*target, "add", *selector, "lookup", table, "pref", table)
    return Item(name, is_there, make, (*target, "del", "pref", table))


def obstacles(paths: Sequence[WiredPath], user: str) -> Iterator[Obstacle]:
    """What no command of `wanted` changes."""
    if shutil.which("ip") is None:
        yield Obstacle("there is no program `ip`", "install iproute2")
        return
    if not Path("/dev/net/tun").exists():
        yield Obstacle("there is no /dev/net/tun", "modprobe tun; in a container, pass the device in")
    for path in paths:
        if path.address in _own_addresses():
            yield Obstacle(
                f"{path.address} is one of this machine's own addresses, so its packets never reach {path.device}",
                "have another address routed to this machine, or remove this one (`ip addr del`)",
            )
        uplink = path.uplink
        if uplink and not _link(uplink.interface):
            names = ", ".join(entry["ifname"] for entry in _ip("link", "show"))
            yield Obstacle(f"there is no interface {uplink.interface}", f"--uplink with one of {names}")
        yield from _device_obstacles(path, user)
    yield from _filters()


def mtu_notes(paths: Sequence[WiredPath], mtu: int) -> Iterator[Obstacle]:
    """Interfaces and routes that take smaller packets than the devices.

    Clients are served nevertheless, but each connection finds that out with a few lost packets.
    """
    for path in paths:
        smaller = {name: taken for name, taken in _onward(path) if taken < mtu}
        for name, taken in smaller.items():
            yield Obstacle(
                f"{name} takes packets of {taken} bytes, and {path.device} is for {mtu}",
                f"--mtu {min(smaller.values())} saves each connection a few lost packets",
            )


def _onward(path: WiredPath) -> Iterator[tuple[str, int]]:
    """What packets of a path leave by, and the largest packet that it takes."""
    routes = _ip(path.family, "route", "show", "default")
    if path.uplink:
        interfaces = [path.uplink.interface]
        routes += _ip(path.family, "route", "show", "default", "table", str(_FROM_SERVER + path.number))
    else:
        interfaces = [str(route["dev"]) for route in routes if "dev" in route]
    for interface in dict.fromkeys(interfaces):
        if link := _link(interface):
            yield interface, int(link["mtu"])
    for route in routes:
        for metric in route.get("metrics", ()):
            if route.get("dev") in interfaces and "mtu" in metric:
                yield f"the default route by {route['dev']}", int(metric["mtu"])


def _device_obstacles(path: WiredPath, user: str) -> Iterator[Obstacle]:
    link = _link(path.device, "-d")
    if not link:
        return
    kind = link.get("linkinfo", {})
    if kind.get("info_kind") != "tun" or kind.get("info_data", {}).get("type") != "tun":
        yield Obstacle(f"{path.device} is no TUN device", "--listen with another name")
        return
    owner = kind.get("info_data", {}).get("user")
    if owner != user and user != "root":
        yield Obstacle(
            f"{path.device} belongs to {owner or 'no user'} and not to {user}",
            f"ip tuntap del dev {path.device} mode tun, and --setup again",
        )


def _filters() -> Iterator[Obstacle]:
    """Chains of nftables that drop forwarded packets unless a rule allows them."""
    if shutil.which("nft") is None or os.geteuid() != 0:
        return
    for entry in _json(("nft", "-j", "list", "chains")).get("nftables", []):
        chain = entry.get("chain", {})
        if chain.get("hook") == "forward" and chain.get("policy") == "drop":
            where = f"{chain.get('family')} {chain.get('table')} {chain.get('name')}"
            yield Obstacle(
                f"the chain {where} drops forwarded packets that no rule accepts",
                f"see `nft list chain {where}`; accept packets from and to the server's address",
            )


def client_commands(paths: Sequence[WiredPath], port: int) -> list[str]:
    """What a client types to try the server."""
    host = f"[{paths[0].address}]" if paths[0].address.version == 6 else str(paths[0].address)
    url = f"http://{host}/" if port == 80 else f"http://{host}:{port}/"
    return [
        "sysctl net.mptcp.enabled     # 1",
        "ip mptcp endpoint show       # one `subflow` for each further address",
        f"mptcpize run curl --output /dev/null {url}FILE",
        "nstat -asz MPTcpExtMPCapableSYNACKRX MPTcpExtMPJoinSynAckRx",
    ]


def text_of(command: Sequence[str]) -> str:
    """A command as one types it."""
    return shlex.join(command)


def sysctl(name: str) -> str | None:
    """The value of a kernel parameter; `None` if there is none of this name."""
    # Names of interfaces may have dots, so only those before them are separators.
    parts = name.split(".", 3)
    if len(parts) == 4:
        device, _, last = parts[3].rpartition(".")
        parts[3:] = [device, last] if device else [last]
    try:
        return Path("/proc/sys", *parts).read_text("utf-8").strip()
    except OSError:
        return None


def default_gateway(family: str, interface: str) -> str | None:
    """The next hop of an interface's default route."""
    routes = _ip(family, "route", "show", "default", "dev", interface)
    return next((str(route["gateway"]) for route in routes if "gateway" in route), None)


def _own_addresses() -> set[Address]:
    found = (
        entry["local"] for link in _ip("address", "show") for entry in link.get("addr_info", []) if "local" in entry
    )
    return {ipaddress.ip_address(text) for text in found}


def _link(name: str, *options: str) -> dict[str, Any]:
    """An interface; empty if there is none of this name."""
    return next(iter(_ip(*options, "link", "show", "dev", name)), {})


def _ip(*arguments: str) -> list[dict[str, Any]]:
    found = _json(("ip", "-j", *arguments))
    return [entry for entry in found if entry] if isinstance(found, list) else []


def _json(command: Sequence[str]) -> Any:
    """What a command prints; nothing if it fails, as it does for what is not there."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else {}
    except json.JSONDecodeError:
        return {}
