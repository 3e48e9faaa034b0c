# SPDX-License-Identifier: Apache-2.0
"""Makes a folder with everything that building needs except compilers, for machines that lack it
and have no network: headers and shared libraries of Debian's packages, and pkg-config, which finds
them. x86-64."""
import os
import platform
import re
import shutil
import subprocess

from .steps import Failure

# For each name that pkg-config knows: Debian's package, and the library (None: only the header is
# needed).
PARTS = {
    "libsodium": ("libsodium-dev", "sodium"),
    "expat": ("libexpat1-dev", "expat"),
    "jansson": ("libjansson-dev", "jansson"),
    "hwloc": ("libhwloc-dev", "hwloc"),
    "libibverbs": ("libibverbs-dev", None),
    "cmocka": ("libcmocka-dev", "cmocka"),
}
# Libraries that every machine with a compiler has, and that must match its libc.
SYSTEM = re.compile(r"(linux-vdso|ld-linux|libc|libm|libpthread|libdl|librt|libgcc_s|"
                    r"libstdc\+\+)\b")
LIBC = "GLIBC"
MOST_BYTES = 40 << 20


def output_of(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(f"\"{' '.join(command)}\" failed: "
                      f"{getattr(error, 'stderr', None) or error}") from None


def libc_version():
    return tuple(int(number) for number in platform.libc_ver()[1].split("."))


def lacking():
    """Names of what is not installed here."""
    if shutil.which("pkg-config") is None:
        return ["pkg-config"]
    return [name for name in PARTS
            if subprocess.run(["pkg-config", "--exists", name], check=False).returncode != 0]


def files_of(package):
    return output_of("dpkg", "-L", package).splitlines()


def copy_headers(package, folder):
    """Copy a package's headers. Those in Debian's directory for one architecture go beside the
    others."""
    for path in files_of(package):
        if path.startswith("/usr/include/") and os.path.isfile(path):
            inside = re.sub(r"^[a-z0-9_]+-linux-gnu/", "", path[len("/usr/include/"):])
            target = os.path.join(folder, "include", inside)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(path, target)


def needed_by(path):
    """The libraries of a program or library, without the system's: {name: path}."""
    found = re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", path), re.M)
    return {name: where for name, where in found if not SYSTEM.match(name)}


def copy_library(name, package, folder):
    """Copy a library under the name that the linker looks for, and under its soname. Two copies are
    made because symbolic links are lost in some ways of copying a folder."""
    path = next(path for path in files_of(package) if path.endswith(f"/lib{name}.so"))
    soname = re.search(r"SONAME.*\[(.+)\]", output_of("readelf", "-d", path)).group(1)
    for target in (f"lib{name}.so", soname):
        shutil.copyfile(path, os.path.join(folder, "lib", target))
    for other, where in needed_by(path).items():
        shutil.copyfile(where, os.path.join(folder, "lib", other))


def copy_pkg_config(folder):
    path = os.path.realpath(shutil.which("pkg-config") or "")
    target = os.path.join(folder, "bin", "pkg-config")
    shutil.copyfile(path, target)
    os.chmod(target, 0o755)
    for other, where in needed_by(path).items():
        shutil.copyfile(where, os.path.join(folder, "lib", other))


def describe(pkg_name, library, folder):
    """A .pc file whose paths are relative to its own place."""
    version = output_of("pkg-config", "--modversion", pkg_name)
    libs = f"Libs: -L${{pcfiledir}}/../lib -l{library}\n" if library else ""
    with open(os.path.join(folder, "pkgconfig", f"{pkg_name}.pc"), "w", encoding="utf-8") as file:
        file.write(f"Name: {pkg_name}\nDescription: packed\nVersion: {version}\n"
                   f"Cflags: -I${{pcfiledir}}/../include\n{libs}")


def size_of(folder):
    return sum(os.path.getsize(os.path.join(where, name))
               for where, _, names in os.walk(folder) for name in names)


def make(folder):
    """Pack the libraries that are installed here into `folder`, which is made again. Returns its
    size in bytes."""
    missing = lacking()
    if missing:
        raise Failure(f"not installed here: {', '.join(missing)}; scripts/setup installs them")
    if platform.machine() != "x86_64":
        raise Failure(f"only x86-64 is packed, and this is {platform.machine()}")
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("bin", "include", "lib", "pkgconfig"):
        os.makedirs(os.path.join(folder, part))
    for pkg_name, (package, library) in PARTS.items():
        copy_headers(package, folder)
        if library:
            copy_library(library, package, folder)
        describe(pkg_name, library, folder)
    copy_pkg_config(folder)
    with open(os.path.join(folder, LIBC), "w", encoding="utf-8") as file:
        file.write(".".join(map(str, libc_version())) + "\n")
    size = size_of(folder)
    if size > MOST_BYTES:
        raise Failure(f"{folder} has {size >> 20} MiB, more than the {MOST_BYTES >> 20} MiB that a "
                      "pack may have; copy fewer libraries (PARTS)")
    return size


def environment(folder):
    """The environment with which commands use the folder. Raises Failure if they cannot."""
    if not os.path.exists(os.path.join(folder, LIBC)):
        raise Failure(f"{', '.join(lacking())} missing, and there is no {folder}: make one with "
                      "scripts/gpu-check --pack on a machine where scripts/setup has run")
    with open(os.path.join(folder, LIBC), encoding="utf-8") as file:
        packed = tuple(int(number) for number in file.read().strip().split("."))
    if packed > libc_version():
        raise Failure(f"{folder} was packed for a libc of version {packed}, this machine's is "
                      f"{libc_version()}: pack on an older system")
    library = os.path.join(folder, "lib")
    program = os.path.join(folder, "bin", "pkg-config")
    os.chmod(program, 0o755)  # which not every way of traveling keeps
    before = os.environ.get("LD_LIBRARY_PATH")
    return {"PKG_CONFIG": program,
            "PKG_CONFIG_LIBDIR": os.path.join(folder, "pkgconfig"),
            "LD_LIBRARY_PATH": f"{library}:{before}" if before else library,
            "LDFLAGS": f"-Wl,-rpath-link,{library}"}
