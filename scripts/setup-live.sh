#!/usr/bin/env bash
# Installs what the live tests start (Debian and Ubuntu), as root. What else they need, the machine must have:
# root, /dev/net/tun, and a kernel with Multipath TCP; this says at the end whether it has.
set -euo pipefail

declare -A package_of=(
  [apache2]=apache2-bin
  [chromium]=chromium
  [clang]=clang
  [curl]=curl
  [ethtool]=ethtool
  [cvlc]=vlc-bin
  [ffmpeg]=ffmpeg
  [ip]=iproute2
  [mptcpize]=mptcpize
  [npm]=npm
  [nginx]=nginx-light
  [nstat]=iproute2
  [openssl]=openssl
  [sysctl]=procps
  [tshark]=tshark
)

missing=()
for program in "${!package_of[@]}"; do
  command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
# VLC's decoders, letters for Chromium's pages, nginx's proxy of streams, and what the programs for the kernel are built with besides clang: these
# come without a program.
for package in vlc-plugin-base fonts-dejavu-core libnginx-mod-stream libelf-dev zlib1g-dev; do
  dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if ((${#missing[@]})); then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

status=0
complain() {
  echo "missing: $*" >&2
  status=1
}
((EUID == 0)) || complain "root: network namespaces need it"
[[ -c /dev/net/tun ]] || complain "/dev/net/tun: modprobe tun"
[[ -e /proc/sys/net/mptcp/enabled ]] || complain "Multipath TCP in the kernel (CONFIG_MPTCP, Linux 5.6 or later)"
((status)) || echo "The live tests can run here."
exit $status
