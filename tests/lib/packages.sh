# SPDX-License-Identifier: Apache-2.0
#
# Debian packages that building and testing need. install_packages installs what is missing and
# nothing else; with everything present it costs one dpkg-query. Source common.sh first.

SLUICE_PACKAGES=(
  # building
  git g++ make meson ninja-build ccache pkg-config mold
  clang clang-format clang-tidy libclang-rt-14-dev
  # libraries
  libdpdk-dev openvswitch-source libboost1.81-dev libboost-json1.81-dev libboost-url1.81-dev
  libboost-system1.81-dev libcli11-dev libtomlplusplus-dev libspdlog-dev libfmt-dev libsqlite3-dev
  libbpf-dev libssl-dev libpcap-dev
  # tests and their peers
  catch2 librapidcheck-dev dpdk dpdk-dev openvswitch-switch openvswitch-switch-dpdk tshark iperf3 traceroute valgrind
  python3 python3-os-ken python3-scapy curl jq zsh fish iproute2 iputils-ping ethtool tcpdump procps man-db systemd
)

missing_packages() {
  comm -23 <(printf '%s\n' "${SLUICE_PACKAGES[@]}" | sort) \
    <(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' "${SLUICE_PACKAGES[@]}" 2>/dev/null |
      sed -n 's/^ii *//p' | sort)
}

# Refuses to start any service while packages are installed, and puts back what was there before.
# openvswitch-switch would otherwise start a daemon that the lab does not want.
without_services() (
  policy=/usr/sbin/policy-rc.d
  mark='# by ./setup, for one installation'
  saved=
  # One that a killed run of ours left behind is nobody's: it goes.
  if [[ -f $policy ]] && grep -qxF "$mark" "$policy"; then rm -f "$policy"; fi
  if [[ -e $policy || -L $policy ]]; then
    saved=$policy.before-sluice
    mv "$policy" "$saved"
  fi
  restore() {
    rm -f "$policy"
    if [[ -n $saved ]]; then mv "$saved" "$policy"; fi
  }
  trap restore EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy"
  chmod 755 "$policy"
  "$@"
)

apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q update
  without_services apt-get -q install -y --no-install-recommends \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@"
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  [[ $(id -u) == 0 ]] || fail "missing packages, and only root can install them: ${missing[*]}"
  command -v apt-get >/dev/null || fail "this system has no apt-get; install: ${missing[*]}"
  say "installing ${#missing[@]} packages: ${missing[*]}"
  mkdir -p "$SLUICE_CACHE"
  # One at a time, so that none takes another's policy-rc.d for the machine's own.
  (
    flock 9
    step "installing packages" "$SLUICE_CACHE/apt.log" apt_install "${missing[@]}" 9>&-
  ) 9>"$SLUICE_CACHE/apt.lock"
}
