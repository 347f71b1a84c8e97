# SPDX-License-Identifier: Apache-2.0
#
# Helpers shared by ./setup, ./test and the test groups: progress lines, steps with a log, locks.
# Source it under `set -euo pipefail`; it defines functions and SLUICE_* variables, nothing else.

SLUICE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SLUICE_CACHE=${XDG_CACHE_HOME:-~/.cache}/sluice

# One line of progress, on standard error so that results on standard output stay clean.
say() { printf '%s\n' "$*" >&2; }

fail() {
  say "error: $*"
  exit 1
}

# step TITLE LOG COMMAND...: runs the command with its output in LOG. Silent if it takes less than
# two seconds; else a line at the start, one every 15 seconds and one at the end. On failure prints
# the tail of the log and returns the command's status.
step() {
  local title=$1 log=$2 status=0 seconds=0 child
  shift 2
  mkdir -p "$(dirname "$log")"
  "$@" </dev/null >"$log" 2>&1 &
  child=$!
  local started=$SECONDS ticks=0
  while kill -0 "$child" 2>/dev/null; do
    # The first two seconds are polled finely, so that a quick step costs no more than itself.
    if ((ticks < 40)); then sleep 0.05; else sleep 0.5; fi
    ticks=$((ticks + 1))
    ((ticks == 40)) && say "$title ..."
    if ((SECONDS - started >= seconds + 15)); then
      seconds=$((SECONDS - started))
      say "$title ... ${seconds} s"
    fi
  done
  wait "$child" || status=$?
  if ((status != 0)); then
    say "$title: failed (status $status); the end of $log:"
    tail -n 40 "$log" >&2 || true
    return "$status"
  fi
  if ((ticks >= 40)); then say "$title: done in $((SECONDS - started)) s"; fi
}
