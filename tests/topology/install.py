#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An installation: its files, its units, its examples as they are, and both daemons on them.

The daemons run as an unprivileged user with exactly the capabilities of their units, on a machine of
their own: a network namespace with the examples' interfaces, and a mount namespace whose /etc/sluice,
/run/sluice and /var/lib/sluice are made by the installed tmpfiles.d.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import install, manifest, netns, shell  # noqa: E402

NAME = f"{os.environ.get('SLUICE_LAB', 'sluice')}-install"
UNITS = ("sluiced.service", "sluice-controller.service")
USER = 64123  # nobody's


def result(name, wrong, said=""):
    wrong, said = (" ".join(text.split())[:600] for text in (wrong, said))
    print(f"not ok topology/install/{name}: {wrong}" if wrong
          else f"ok topology/install/{name}" + (f" ({said})" if said else ""), flush=True)


def files(root):
    """Everything that the page promises is there, wherever the prefix is."""
    prefix = next(path for path in (root / "usr/local", root / "usr") if path.is_dir())
    wanted = [*(f"bin/{name}" for name in ("sluiced", "sluice-controller", "sluicectl")),
              *(f"lib/systemd/system/{unit}" for unit in UNITS), "lib/sysusers.d/sluice.conf",
              "lib/tmpfiles.d/sluice.conf", "share/man/man1/sluicectl.1", "share/man/man8/sluiced.8",
              "share/man/man8/sluice-controller.8",
              "share/bash-completion/completions/sluicectl",
              "share/fish/vendor_completions.d/sluicectl.fish",
              *(f"share/doc/sluice/examples/{name}.example.toml"
                for name in ("gateway", "controller", "tokens"))]
    missing = [file for file in wanted if not (prefix / file).stat().st_size]
    completions = list(prefix.glob("share/zsh/*/_sluicectl"))
    result("files", ", ".join(missing) or ("" if completions else "no completion for zsh"),
           f"{len(wanted) + 1} files")
    return prefix


def units(prefix, folder):
    """systemd takes the units as they are, and finds little that they could still reach."""
    for unit in UNITS:
        text = (prefix / "lib/systemd/system" / unit).read_text(encoding="utf-8")
        words = re.findall(r"^Exec(?:Start|StartPre)=(\S+)", text, re.M)
        result(f"{unit}-starts-what-is-installed", "" if words and all(
            (prefix / "bin" / pathlib.Path(word).name).exists()
            and word.startswith("/usr") for word in words) else str(words))
        # The programs are in a folder of the test's: the unit is held to that.
        here = folder / unit
        here.write_text(re.sub(r"=/usr(?:/local)?/bin/(sluice)", rf"={prefix}/bin/\1", text),
                        encoding="utf-8")
        checked = subprocess.run(["systemd-analyze", "verify", "--man=no", here],
                                 capture_output=True, text=True, timeout=60, check=False)
        ours = [line for line in checked.stderr.splitlines() if "sluice" in line]
        result(f"{unit}-verifies", "; ".join(ours))
        judged = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=50",
                                 here], capture_output=True, text=True, timeout=60, check=False)
        exposure = re.search(r"exposure level.*?: ([\d.]+)", judged.stdout + judged.stderr)
        result(f"{unit}-is-confined", "" if exposure and float(exposure[1]) <= 5
               else (judged.stdout + judged.stderr)[-300:], f"exposure {exposure and exposure[1]}")
    for tool, arguments in (("systemd-sysusers", ["--dry-run"]), ("systemd-tmpfiles", None)):
        conf = prefix / f"lib/{tool.removeprefix('systemd-')}.d/sluice.conf"
        if arguments is None:  # run for real below, in a machine of its own
            continue
        done = subprocess.run([tool, *arguments, conf], capture_output=True, text=True, check=False)
        result(tool, "" if done.returncode == 0 and "sluice" in done.stdout + done.stderr
               else done.stdout + done.stderr)


def capabilities(prefix, unit):
    text = (prefix / "lib/systemd/system" / unit).read_text(encoding="utf-8")
    found = re.search(r"^AmbientCapabilities=(.*)", text, re.M)
    return [word.removeprefix("CAP_").lower() for word in found[1].split()] if found else []


def inside(prefix, unit):
    """The words before a command that make it run as the unit does."""
    caps = "".join(f",+{name}" for name in capabilities(prefix, unit))
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs",
            f"--inh-caps=-all{caps}", f"--ambient-caps=-all{caps}", f"--bounding-set=-all{caps}"]


# Runs in the mount namespace; what it prints is judged below.
MACHINE = """
set -eu
mount --make-rprivate /
for folder in /etc /var/lib /run; do mkdir -p {folder}$folder; done
cp /etc/ld.so.cache /etc/localtime /etc/nsswitch.conf {folder}/etc/ 2>/dev/null || true
printf 'root:x:0:0::/root:/bin/sh\nsluice:x:{user}:{user}::/var/lib/sluice:/bin/false\n' >{folder}/etc/passwd
printf 'root:x:0:\nsluice:x:{user}:\n' >{folder}/etc/group
for folder in /etc /var/lib /run; do mount --bind {folder}$folder $folder; done
systemd-tmpfiles --create {prefix}/lib/tmpfiles.d/sluice.conf
export PATH={prefix}/bin:$PATH
cp {prefix}/share/doc/sluice/examples/controller.example.toml /etc/sluice/controller.toml
cp {prefix}/share/doc/sluice/examples/gateway.example.toml /etc/sluice/gateway.toml
install -m 600 -o sluice {prefix}/share/doc/sluice/examples/tokens.example.toml /etc/sluice/tokens.toml
echo "== folders"; stat -c '%n %U %G %a' /run/sluice /var/lib/sluice /etc/sluice
echo "== check-controller"; {controller} sluice-controller --check /etc/sluice/controller.toml 2>&1 || true
echo "== check-gateway"; {gateway} sluiced --check /etc/sluice/gateway.toml 2>&1 || true
{controller} sluice-controller --config /etc/sluice/controller.toml >{folder}/controller.log 2>&1 &
controller=$!
{gateway} sluiced --config /etc/sluice/gateway.toml >{folder}/gateway.log 2>&1 &
gateway=$!
trap 'kill $controller $gateway' EXIT
echo "== met"
for try in $(seq 100); do
  said=$(curl -s http://127.0.0.1:8080/v1/gateways || true)
  case $said in *',"state":"active"'*) break ;; esac
  sleep 0.1
done
echo "$said"
echo "== tokens"
sed -i 's|^# tokens = |tokens = |' /etc/sluice/controller.toml
{controller} sluice-controller --check /etc/sluice/controller.toml 2>&1 || true
echo "== socket"; stat -c '%U %a' /run/sluice/gw1.of
"""


def daemons(prefix, folder, made):
    space = f"{NAME}-machine"
    made.namespace(space)
    netns.add(space)
    for device in ("u0", "x0"):
        netns.batch(space, f"link add {device} mtu 1700 type veth peer name {device}-peer mtu 1700",
                    f"link set {device} up", f"link set {device}-peer up")
    words = {unit: shlex.join(inside(prefix, unit)) for unit in UNITS}
    script = MACHINE.format(folder=folder, prefix=prefix, user=USER,
                            gateway=words["sluiced.service"],
                            controller=words["sluice-controller.service"])
    done = netns.execute(space, "unshare", "--mount", "bash", "-c", script, check=False, timeout=60)
    said = dict(re.findall(r"^== (\S+)\n((?:(?!== ).*\n)*)", done.stdout, re.M))
    logs = "".join(f"{log.name}: {log.read_text(encoding='utf-8', errors='replace')[-600:]} "
                   for log in folder.glob("*.log"))
    result("folders", "" if said.get("folders", "").split() == [
        "/run/sluice", "sluice", "sluice", "750", "/var/lib/sluice", "sluice", "sluice", "750",
        "/etc/sluice", "root", "sluice", "750"] else str(said) + done.stderr)
    for name, sentence in (("check-controller", "in order"), ("check-gateway", "no problem found"),
                           ("tokens", "in order")):
        lines = said.get(name, "").strip().splitlines()
        result(f"examples-{name}", "" if len(lines) == 1 and sentence in lines[0]
               else str(lines) + done.stderr)
    try:
        gateways = json.loads(said.get("met", "") or "{}").get("items", [])
    except ValueError:
        gateways = []
    result("examples-meet", "" if [(one["name"], one["state"]) for one in gateways]
           == [("gw1", "active")] else f"{said.get('met')} {logs} {done.stderr}",
           "both without root: the gateway is active")


def page(prefix):
    """Every file and command that the page names exists."""
    text = install.PAGE.read_text(encoding="utf-8")
    missing = [path for path in re.findall(r"/usr/local(/share\S+\.toml)", text)
               if not (prefix / path.lstrip("/")).exists()]
    missing += [unit for unit in UNITS if unit not in text]
    for line in re.findall(r"^(sluicectl .*)", text, re.M):
        tried = subprocess.run(shlex.split(line) + ["--api", "http://127.0.0.1:1"], text=True,
                               env={**os.environ, "PATH": f"{prefix}/bin:{os.environ['PATH']}"},
                               capture_output=True, timeout=20, check=False)
        if tried.returncode != 3:  # understood, and nobody answered
            missing.append(f"{line}: {tried.stderr}")
    result("page", "; ".join(missing))


def main():
    made = manifest.Manifest(NAME)
    try:
        made.lock()
        made.clear()
        made.folder.mkdir(parents=True)
        made.folder.chmod(0o755)
        # Where an unprivileged user may look, as in an installation.
        root = pathlib.Path("/tmp") / NAME
        shutil.rmtree(root, ignore_errors=True)
        shell.run("meson", "install", "-C", shell.BUILD, "--no-rebuild", "--quiet", "--destdir",
                  root, timeout=120)
        machine = root / "machine"
        machine.mkdir()
        prefix = files(root)
        units(prefix, machine)
        page(prefix)
        daemons(prefix, machine, made)
    except (shell.LabError, OSError) as error:
        result("lab", str(error))
    finally:
        made.clear()
        shutil.rmtree(pathlib.Path("/tmp") / NAME, ignore_errors=True)


if __name__ == "__main__":
    main()
