# SPDX-License-Identifier: Apache-2.0
#
# Builds the oracle's driver with a fault in it and asks whether the oracle notices: faults named
# worker-* by sequences of packets, the others by first packets alone. Works on a copy of the
# sources, so that the tree itself is never touched. Source group.sh first.

FAULT_TREE=$SLUICE_ROOT/build/oracle-faults/tree
# As build/ lies in its tree, so that the compiler cache serves both.
FAULT_BUILD=$FAULT_TREE/build
FAULT_DRIVERS=$FAULT_BUILD/tests/oracle

copy_tree() { tests/oracle/copy_tree.py "$FAULT_TREE"; }

build_driver() {
  (cd "$FAULT_TREE" && configure_build build && compile_build build "tests/oracle/$1")
}

# ask FAULT: with status 1 and a line "mismatch: ..." it is noticed.
ask() {
  if [[ $1 == worker-* ]]; then
    tests/oracle/sequences.py --driver "$FAULT_DRIVERS/oracle_gateway" --seconds 60 \
      --no-coverage --no-shrinking
  else
    tests/oracle/oracle.py --driver "$FAULT_DRIVERS/oracle_driver" --seconds 60 --no-coverage
  fi
}

# prove FAULT.patch: one result line.
prove() {
  local fault=$1 short name log status=0 driver=oracle_driver
  short=$(basename "$fault" .patch)
  name=oracle/fault_$short
  [[ $short == worker-* ]] && driver=oracle_gateway
  log=$SLUICE_LOGS/${name//\//-}.log
  if ! patch --batch --forward -d "$FAULT_TREE" -p1 <"$fault" >"$log" 2>&1; then
    not_ok "$name" "the patch does not apply, see $log"
  elif ! build_driver "$driver"; then
    not_ok "$name" "does not compile: no longer a plausible bug, see $FAULT_BUILD/ninja.log"
  else
    ask "$short" >"$log" 2>&1 || status=$?
    if ((status == 1)) && grep -q '^mismatch: ' "$log"; then
      ok "$name (found: $(sed -n 's/^mismatch: \(seed [0-9]*\).*/\1/p' "$log"))"
    else
      not_ok "$name" "not noticed in 60 s, see $log"
    fi
  fi
  copy_tree
}
