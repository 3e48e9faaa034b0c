# SPDX-License-Identifier: Apache-2.0
"""The machine: the packages that are installed, its description, and its load."""
import datetime
import os
import platform
import re
import subprocess
import sys

PACKAGES = ("g++", "gcc", "openmpi-bin", "libopenmpi-dev", "mpich", "libmpich-dev", "libgloo-dev")
# Packages that only rarely measured settings need; without them these settings are left out.
OPTIONAL_PACKAGES = ("liburing-dev",)


class Failure(Exception):
    pass


def package_version(name):
    """The installed version of a Debian package, or None."""
    query = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", name],
                           capture_output=True, text=True, check=False)
    status, _, version = query.stdout.partition(" ")
    return version if query.returncode == 0 and status == "installed" else None


def install(names):
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (["apt-get", "update", "-qq"],
                    ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *names]):
        if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL,
                          check=False).returncode != 0:
            raise Failure(f"\"{' '.join(command)}\" failed")


def install_missing(all_settings):
    missing = [name for name in PACKAGES if package_version(name) is None]
    if missing and os.geteuid() != 0:
        raise Failure(f"missing packages; as root: apt-get install {' '.join(missing)}")
    if missing:
        install(missing)
    missing = [name for name in OPTIONAL_PACKAGES if package_version(name) is None]
    if missing and all_settings and os.geteuid() == 0:
        try:
            install(missing)
        except Failure as error:
            print(error, file=sys.stderr)


def cpus():
    return len(os.sched_getaffinity(0))


def free_bytes():
    """The memory that can be allocated without swapping."""
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(re.search(r"MemAvailable:\s+(\d+) kB", file.read())[1]) * 1024


def memory_directory():
    """A folder whose files are in memory, if there is one, or else /tmp."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"


def load():
    """The mean number of tasks that ran or waited for a CPU during the last minute."""
    return os.getloadavg()[0]


# The load of other programs, because it is read before this program builds or runs anything.
LOAD_BEFORE = load()


def describe():
    text = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
    fields = dict(re.findall(r"^\s*([^:]+):\s+(.*)$", text, re.MULTILINE))
    return {"cpu": fields.get("Model name", "unknown"), "cpus": cpus(),
            "caches": {level: fields[key] for level in ("L1d", "L2", "L3")
                       if (key := f"{level} cache") in fields},
            "kernel": platform.release(), "load_before": LOAD_BEFORE,
            "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds")}
