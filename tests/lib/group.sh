# SPDX-License-Identifier: Apache-2.0
#
# What a test group's script needs:
#   #!/usr/bin/env bash
#   . "$(dirname "${BASH_SOURCE[0]}")/../lib/group.sh"
# It starts in the repository's root with strict mode, and has SLUICE_LONG (0 or 1), SLUICE_LOGS (a
# folder for logs and captures), ok, not_ok, and everything of common.sh and build.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$SLUICE_ROOT/tests/lib/openvswitch.sh"
. "$SLUICE_ROOT/tests/lib/build.sh"
cd "$SLUICE_ROOT"
SLUICE_LONG=${SLUICE_LONG:-0}
SLUICE_LOGS=${SLUICE_LOGS:-$SLUICE_ROOT/build/test-logs}
mkdir -p "$SLUICE_LOGS"

# One result line each: ok NAME [what was measured]; not_ok NAME WHY.
ok() { printf 'ok %s\n' "$*"; }
not_ok() {
  local name=$1
  shift
  printf 'not ok %s: %s\n' "$name" "$*"
}

# check NAME COMMAND...: one result line by the command's status; its output goes to a log whose
# end is printed on failure.
check() {
  local name=$1 log status=0
  shift
  log=$SLUICE_LOGS/${name//\//-}.log
  "$@" </dev/null >"$log" 2>&1 || status=$?
  if ((status == 0)); then
    ok "$name"
  else
    tail -n 40 "$log" | sed 's/^/    /'
    not_ok "$name" "status $status, see $log"
  fi
}

# build_check NAME FOLDER MESON-ARGUMENT...: configures and compiles a build folder as one test.
build_check() {
  local name=$1 folder=$2
  shift 2
  if configure_build "$folder" "$@" && compile_build "$folder"; then
    ok "$name"
  else
    not_ok "$name" "does not compile, see $folder/ninja.log"
    return 1
  fi
}

# meson_tests PREFIX FOLDER SUITE [WRAPPER]: runs a suite of a compiled folder, a line per test.
meson_tests() {
  local prefix=$1 folder=$2 suite=$3 wrapper=${4:-} log
  log=$folder/meson-logs/$prefix
  # With a wrapper meson adds its name to the log's.
  if [[ -n $wrapper ]]; then log+=-${wrapper%% *}; fi
  rm -f "$log.json"
  # Sanitisers make everything slower, and full counts take long.
  local patience=4
  if ((SLUICE_LONG)); then patience=80; fi
  meson test -C "$folder" --no-rebuild --suite "$suite" --logbase "$prefix" \
    --timeout-multiplier "$patience" ${wrapper:+--wrap "$wrapper"} \
    >"$SLUICE_LOGS/meson-$prefix.log" 2>&1 || true
  if [[ -s $log.json ]]; then
    tests/lib/meson_results.py "$prefix" "$log.json"
  elif grep -qE '^No (suitable )?tests' "$SLUICE_LOGS/meson-$prefix.log"; then
    say "$prefix: no tests yet"
  else
    tail -n 20 "$SLUICE_LOGS/meson-$prefix.log"
    not_ok "$prefix" "meson test failed, see $SLUICE_LOGS/meson-$prefix.log"
  fi
}
