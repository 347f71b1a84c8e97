# SPDX-License-Identifier: Apache-2.0
"""Result lines of the interop scripts: a function per case, named as a specification."""
import traceback

CASES = []


def case(function):
    CASES.append(function)
    return function


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what)[:300])


def run(prefix, *arguments):
    for function in CASES:
        name = f"{prefix}/{function.__name__.replace('_', '-')}"
        try:
            measured = function(*arguments)
            print(f"ok {name}" + (f" ({measured})" if measured else ""), flush=True)
        except AssertionError as error:
            print(f"not ok {name}: {' '.join(str(error).split())}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            traceback.print_exc()
            print(f"not ok {name}: {type(error).__name__}: {error}", flush=True)
