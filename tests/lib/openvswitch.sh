# SPDX-License-Identifier: Apache-2.0
#
# Builds Open vSwitch's static library, the OpenFlow codec, from Debian's openvswitch-source (there
# is no -dev package). The result lives in the user's cache, keyed by the tarball, this script and
# the compiler, so that every clone shares it. Source common.sh first.

OVS_TARBALL=/usr/src/openvswitch/openvswitch.tar.gz

# Sets OVS_PREFIX, the folder where the library is or will be.
ovs_prefix() {
  local key
  [[ -r $OVS_TARBALL ]] || fail "$OVS_TARBALL is missing: install openvswitch-source"
  key=$({
    sha256sum <"$OVS_TARBALL"
    cat "${BASH_SOURCE[0]}"
    gcc -dumpfullversion -dumpmachine
  } | sha256sum | cut -c1-16)
  OVS_PREFIX=$SLUICE_CACHE/openvswitch-$key
}

# In a fresh folder: unpack, configure, make the one library, install into $1.
ovs_build_into() (
  set -euo pipefail
  prefix=$1
  work=$(mktemp -d "$SLUICE_CACHE/openvswitch-build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/source" "$work/build"
  tar -xzf "$OVS_TARBALL" -C "$work/source" --strip-components=1
  cd "$work/build"
  # Without these pins configure links whatever happens to be installed here.
  "$work/source/configure" --prefix="$prefix" --disable-shared --enable-static --with-pic \
    --disable-ssl --disable-libcapng --enable-afxdp=no --disable-dependency-tracking \
    ac_cv_lib_unwind_unw_backtrace=no ac_cv_lib_unbound_ub_ctx_create=no \
    PYTHON3=/usr/bin/python3 CC=gcc CFLAGS='-O2 -g0'
  # The generated sources are in BUILT_SOURCES, which only `all` makes first.
  printf '%s\n' 'include Makefile' 'sluice-sources: $(BUILT_SOURCES)' \
    'sluice-library: sluice-sources' '	$(MAKE) lib/libopenvswitch.la' >sluice.mk
  nice make -f sluice.mk -j"$(nproc)" sluice-library
  # The library folds into one archive: --with-pic leaves the AVX-512 part in a second one.
  if [[ -f lib/.libs/libopenvswitchavx512.a ]]; then
    printf '%s\n' 'create folded.a' 'addlib lib/.libs/libopenvswitch.a' \
      'addlib lib/.libs/libopenvswitchavx512.a' 'save' 'end' | ar -M
    mv folded.a lib/.libs/libopenvswitch.a
    ranlib lib/.libs/libopenvswitch.a
  fi
  stage=$work/stage
  make DESTDIR="$stage" install-openvswitchincludeHEADERS install-openflowincludeHEADERS \
    install-pkgconfigDATA
  install -D -m 644 lib/.libs/libopenvswitch.a "$stage$prefix/lib/libopenvswitch.a"
  mkdir -p "$stage$prefix/share/licenses/openvswitch"
  cp "$work/source/LICENSE" "$work/source/NOTICE" "$stage$prefix/share/licenses/openvswitch/"
  # One rename makes the result visible: a broken build never leaves half a prefix behind.
  rm -rf "$prefix"
  mv "$stage$prefix" "$prefix"
)

build_openvswitch() {
  ovs_prefix
  [[ -f $OVS_PREFIX/lib/libopenvswitch.a ]] && return 0
  mkdir -p "$SLUICE_CACHE"
  (
    flock 9
    [[ -f $OVS_PREFIX/lib/libopenvswitch.a ]] && exit 0
    step "building the Open vSwitch library" "$SLUICE_CACHE/openvswitch.log" \
      ovs_build_into "$OVS_PREFIX"
  ) 9>"$SLUICE_CACHE/openvswitch.lock"
}
