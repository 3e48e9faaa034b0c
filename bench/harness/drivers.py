# SPDX-License-Identifier: Apache-2.0
"""Builds the library, and one driver for each library that is measured."""
import os
import shutil
import subprocess
import sys

FLAGS = ["-O2", "-g", "-Wall", "-Wextra", "-D_GNU_SOURCE"]


class Failure(Exception):
    pass


def run(command, cwd):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"\"{' '.join(command)}\" failed:\n{done.stdout[-4000:]}")


def has_header(name):
    return subprocess.run(["gcc", "-fsyntax-only", "-include", name, "-x", "c", os.devnull],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def build_library(root, target="tutti"):
    """Build a target in build/release, and return that directory."""
    directory = os.path.join(root, "build", "release")
    if not os.path.exists(os.path.join(directory, "CMakeCache.txt")):
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        run(["cmake", "--preset", "release", *generator], root)
    run(["cmake", "--build", directory, "--target", target, "-j", str(os.cpu_count() or 2)], root)
    return directory


def build(root, library_directory, workdir):
    """Returns {library: path of its driver}."""
    print("building", file=sys.stderr)
    library_directory = os.path.abspath(library_directory or build_library(root))
    if not os.path.exists(os.path.join(library_directory, "libtutti.so")):
        raise Failure(f"there is no libtutti.so in {library_directory}; build its target tutti, or "
                      "leave out --build")
    source = os.path.join(root, "bench", "drivers")
    out = {name: os.path.join(workdir, name)
           for name in ("tutti", "openmpi", "mpich", "gloo", "bare", "limit", "sockets")}
    gcc = ["gcc", "-std=c11", *FLAGS]
    common = [os.path.join(workdir, f"{name}.o") for name in ("driver", "check", "sync")]

    for path in common:
        name = os.path.basename(path).replace(".o", ".c")
        run([*gcc, "-O3", "-c", name, "-o", path], source)
    run([*gcc, "-I", os.path.join(root, "include"), "tutti.c", *common, "-o", out["tutti"],
         "-L", library_directory, "-ltutti", f"-Wl,-rpath,{library_directory}"], source)
    # These measure the machine, so they may use all of its instructions.
    run([*gcc, "-O3", "-march=native", "bare.c", "arena.c", *common, "-o", out["bare"]], source)
    run([*gcc, "-O3", "-march=native", "limit.c", "mover.c", "arena.c", *common, "-o",
         out["limit"]], source)
    # Without liburing the variant of io_uring is left out.
    uring = ["-luring"] if has_header("liburing.h") else []
    run([*gcc, "sockets.c", "uring.c", *common, "-o", out["sockets"], *uring], source)
    for mpi in ("openmpi", "mpich"):
        run([f"mpicc.{mpi}", "-std=c11", *FLAGS, "mpi.c", *common, "-o", out[mpi]], source)
    run(["g++", *FLAGS, "gloo.cc", *common, "-o", out["gloo"], "-lgloo", "-pthread"], source)
    return out


def build_choices(root, library_directory, workdir):
    """Returns the path of the driver that measures the tuner's candidates. It uses internals of the
    library, so it is linked with the archive."""
    print("building", file=sys.stderr)
    library_directory = os.path.abspath(library_directory or build_library(root, "tutti-internal"))
    archive = os.path.join(library_directory, "libtutti-internal.a")
    if not os.path.exists(archive):
        raise Failure(f"there is no libtutti-internal.a in {library_directory}; "
                      "build its target tutti-internal")
    out = os.path.join(workdir, "choices")
    run(["gcc", "-std=c11", *FLAGS, "-I", "src", "-I", "include", "bench/drivers/choices.c",
         "-o", out, archive, "-lsodium", "-lm", "-pthread"], root)
    return out


def build_distances(bench, workdir):
    """Returns the path of the driver that measures memory. It does not use the library."""
    if shutil.which("gcc") is None:
        raise Failure("there is no gcc; as root: apt-get install gcc libc6-dev")
    out = os.path.join(workdir, "distances")
    run(["gcc", "-std=c11", *FLAGS, "-O3", "-march=native", "distances.c", "mover.c", "driver.c",
         "check.c", "sync.c", "-o", out], os.path.join(bench, "drivers"))
    return out
