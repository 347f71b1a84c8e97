# SPDX-License-Identifier: Apache-2.0
#
# Configures and compiles build folders. Source common.sh and openvswitch.sh first.

# configure_build FOLDER MESON-ARGUMENT...: configures it unless it is configured in this very way.
configure_build() {
  local folder=$1 stamp want
  shift
  ovs_prefix
  stamp=$folder/.configured
  want=$(printf '%s\n' "$OVS_PREFIX" "${CXX:-}" "$@")
  if [[ -f $folder/build.ninja && -f $stamp && $(<"$stamp") == "$want" ]]; then return 0; fi
  local again=()
  [[ -f $folder/meson-private/coredata.dat ]] && again=(--wipe)
  mkdir -p "$folder"
  step "configuring $folder" "$SLUICE_CACHE/configure.log" \
    meson setup "${again[@]}" --pkg-config-path "$OVS_PREFIX/lib/pkgconfig" "$@" "$folder"
  printf '%s\n' "$want" >"$stamp"
}

# compile_build FOLDER TARGET...: ninja, with its output in FOLDER/ninja.log unless it fails.
compile_build() {
  local folder=$1
  shift
  step "compiling $folder" "$folder/ninja.log" nice ninja -C "$folder" "$@"
}
