#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The demo's program; ./demo builds first and then runs this."""
import argparse
import json
import pathlib
import shlex
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import checks, lab, manifest, shell, world  # noqa: E402

WHOAMI = pathlib.Path(__file__).resolve().parent / "whoami.py"


def paint(text, colour):
    return f"\x1b[{colour}m{text}\x1b[0m" if sys.stdout.isatty() else text


def next_commands(made):
    """What to try in a lab that was kept: a shell script with comments; tests/topology runs it."""
    controller, fabric, red = made.lab.controller, made.fabric, made.red
    web1, db1, elastic = red.tenants["web1"], red.tenants["db1"], red.elastic_ip()
    address, capture = elastic["address"], next(iter(sorted(made.lab.captures.glob("*.pcap"))), None)
    # --down removes the lab that the environment names.
    name = "" if made.lab.name == lab.DEFAULT_NAME else f"SLUICE_LAB={made.lab.name} "
    read = f"tshark -r {shlex.quote(str(capture))} -o ip.check_checksum:TRUE -c 5" if capture else None
    return f"""
The lab stays. Try:

  export PATH={shell.BUILD}:$PATH SLUICE_API={controller.base} SLUICE_TOKEN=sluice-red
  # (the other tenant is sluice-blue, who may do everything sluice-admin)

  sluicectl endpoint list
  sluicectl explain --vpc red-vpc --source {web1.ip} --destination {db1.ip} --destination-port 22
  ip netns exec {web1.space} ping -c 3 {db1.ip}
  sluicectl flows --endpoint web1
  sluicectl drops

  # a web server behind the elastic IP, asked from the internet; detached, it is out of reach
  ip netns exec {web1.space} timeout 600 python3 {WHOAMI} web1 80 >/dev/null &
  ip netns exec {fabric.internet} curl -sS --retry 5 --retry-connrefused http://{address}/
  sluicectl elastic-ip update {elastic["name"]} --endpoint none --wait
  ip netns exec {fabric.internet} curl -m 2 http://{address}/ || echo "nobody there"

  ovs-ofctl -O OpenFlow13 dump-flows {made.lab.gateway.listen}
  ip netns exec {fabric.gateway} curl -s 127.0.0.1:9301/metrics
{f"  {read}" if read else ""}

Captures: {made.lab.captures}
Logs of the running daemons: {made.lab.folder}
To remove it: {name}./demo --down
"""


def wanted(argument):
    """"1,4": which checks; an unknown one is refused rather than passed over."""
    numbers = {int(number) for number in argument.split(",")}
    known = {number for number, _, _ in checks.all_checks()}
    if not numbers <= known:
        raise argparse.ArgumentTypeError(
            f"there are checks {min(known)} to {max(known)}, not {', '.join(map(str, numbers - known))}")
    return numbers


def run_checks(made, only, results):
    width = max(len(title) for _, title, _ in checks.all_checks())
    from lab.check import Check
    for number, title, body in checks.all_checks():
        if only and number not in only:
            continue
        done = Check(number, title, made).run(body)
        results.append(done)
        mark = paint("ok  ", "32") if done.passed else paint("FAIL", "31")
        print(f"{mark} {number:2} {title:{width}}  {done.line()} ({done.seconds:.1f} s)", flush=True)


def main():
    parser = argparse.ArgumentParser(
        prog="./demo", description="Raises a lab of network namespaces with kernel VXLAN hosts, a "
        "gateway and a controller, and checks on it what the system promises.")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path,
                        help="per check what was expected, what was measured, and which capture shows it")
    parser.add_argument("--keep", action="store_true",
                        help="leave the lab and its captures, and print how to use them")
    parser.add_argument("--down", action="store_true", help="remove a lab that was kept")
    parser.add_argument("--only", metavar="N,N…", type=wanted, default=set(),
                        help="run these checks only")
    # What ./demo asks before it builds.
    parser.add_argument("--only-arguments", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only_arguments:
        return 0
    begin = time.monotonic()
    results, broken = [], None
    try:
        if args.down:
            left = manifest.Manifest(lab.Lab().name)
            left.lock()
            processes, namespaces = left.clear()
            print(f"removed {namespaces} namespaces and {processes} processes")
            return 0
        with lab.Lab() as raised:
            raised.start_product()
            made = world.World(raised)
            print(f"lab raised in {time.monotonic() - begin:.1f} s: {len(made.fabric.tenants)} "
                  "tenants of 2 projects on 2 kernel VXLAN hosts", flush=True)
            run_checks(made, args.only, results)
            if args.keep:
                raised.keep = True
                print(next_commands(made))
    except shell.LabError as error:
        broken = str(error)
        print(f"{paint('FAIL', '31')}  0 the lab: {broken}", flush=True)
    except KeyboardInterrupt:
        broken = "interrupted"
    failed = [done for done in results if not done.passed]
    if args.json:
        args.json.write_text(json.dumps(
            {"passed": len(results) - len(failed), "failed": len(failed) + bool(broken),
             "seconds": round(time.monotonic() - begin, 1), "error": broken,
             "checks": [done.json() for done in results]}, indent=2) + "\n", encoding="utf-8")
    print(f"{len(results) - len(failed)} passed, {len(failed) + bool(broken)} failed")
    return 0 if results and not failed and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
