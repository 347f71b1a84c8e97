# SPDX-License-Identifier: Apache-2.0
#
# Builds the oracle's driver with a fault in it and asks whether the oracle notices. Works on a copy
# of the sources, so that the tree itself is never touched. Source group.sh first.

FAULT_TREE=$SLUICE_ROOT/build/oracle-faults/tree
# As build/ lies in its tree, so that the compiler cache serves both.
FAULT_BUILD=$FAULT_TREE/build
FAULT_DRIVER=$FAULT_BUILD/tests/oracle/oracle_driver

copy_tree() { tests/oracle/copy_tree.py "$FAULT_TREE"; }

build_driver() {
  (cd "$FAULT_TREE" && configure_build build &&
    compile_build build tests/oracle/oracle_driver)
}

# prove FAULT.patch: one result line.
prove() {
  local fault=$1 name log status=0
  name=oracle/fault_$(basename "$fault" .patch)
  log=$SLUICE_LOGS/${name//\//-}.log
  if ! patch --batch --forward -d "$FAULT_TREE" -p1 <"$fault" >"$log" 2>&1; then
    not_ok "$name" "the patch does not apply, see $log"
  elif ! build_driver; then
    not_ok "$name" "does not compile: no longer a plausible bug, see $FAULT_BUILD/ninja.log"
  else
    tests/oracle/oracle.py --driver "$FAULT_DRIVER" --seconds 60 --no-coverage \
      >"$log" 2>&1 || status=$?
    if ((status == 1)) && grep -q '^mismatch: ' "$log"; then
      ok "$name (found: $(sed -n 's/^mismatch: \(seed [0-9]*\).*/\1/p' "$log"))"
    else
      not_ok "$name" "not noticed in 60 s, see $log"
    fi
  fi
  copy_tree
}
