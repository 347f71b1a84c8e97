# SPDX-License-Identifier: Apache-2.0
#
# Configures and compiles build folders. Source common.sh and openvswitch.sh first.

# configure_build FOLDER MESON-ARGUMENT...: configures it unless it is configured in this very way.
# The compiler is $SLUICE_CXX, by default g++, always behind ccache: meson adds ccache by itself only
# to a compiler that nobody chose.
configure_build() {
  local folder=$1 stamp want compiler="ccache ${SLUICE_CXX:-g++}"
  shift
  ovs_prefix
  stamp=$folder/.configured
  want=$(printf '%s\n' "$OVS_PREFIX" "$compiler" "$@")
  if [[ -f $folder/build.ninja && -f $stamp && $(<"$stamp") == "$want" ]]; then return 0; fi
  rm -rf "$folder"
  mkdir -p "$folder"
  step "configuring $folder" "$folder/configure.log" env CXX="$compiler" \
    meson setup --pkg-config-path "$OVS_PREFIX/lib/pkgconfig" "$@" "$folder"
  printf '%s\n' "$want" >"$stamp"
}

# compile_build FOLDER TARGET...: ninja, with its output in FOLDER/ninja.log unless it fails.
compile_build() {
  local folder=$1
  shift
  step "compiling $folder" "$folder/ninja.log" nice ninja -C "$folder" "$@"
}
