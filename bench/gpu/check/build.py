# SPDX-License-Identifier: Apache-2.0
"""Builds the programs for the GPU of this machine."""
import os
import re
import shutil
import subprocess

from . import pack
from .steps import Failure


def nvidia_smi(*fields):
    """The values of the first GPU, or None if nvidia-smi does not give them."""
    try:
        text = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(fields)}",
                               "--format=csv,noheader"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return [value.strip() for value in text.splitlines()[0].split(",")] if text.strip() else None


def describe_gpu():
    values = nvidia_smi("name", "compute_cap", "driver_version")
    if values is None:
        raise Failure("nvidia-smi shows no GPU here")
    return {"gpu": values[0], "compute_capability": values[1], "driver": values[2]}


def compilers():
    """The path of nvcc, which need not be on PATH. Raises Failure if nvcc or CMake is missing."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        raise Failure("there is no nvcc, neither on PATH nor in /usr/local/cuda; install CUDA's "
                      "toolkit")
    if shutil.which("cmake") is None:
        raise Failure("there is no cmake on PATH; install CMake")
    return nvcc


def build(steps, root, directory, folder, capability):
    """Builds the measuring programs, optimized, with kernels for this GPU only."""
    nvcc = compilers()
    extra = {} if not pack.lacking() else pack.environment(folder)
    architecture = re.sub(r"\D", "", capability)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []

    steps.environment.update(extra)
    if extra:
        steps.say(f"with what is packed in {os.path.relpath(folder, root)}")
    steps.run("cmake", "-S", root, "-B", directory, *generator, "-DCMAKE_BUILD_TYPE=Release",
              "-DTUTTI_TEST_GPUS=ON",
              f"-DTUTTI_CUDA_ARCHITECTURES={architecture}", f"-DTUTTI_NVCC={nvcc}",
              *([f"-DPKG_CONFIG_EXECUTABLE={extra['PKG_CONFIG']}"] if extra else []))
    compile_targets(steps, directory, "gpu-measuring")


def compile_targets(steps, directory, target):
    steps.run("cmake", "--build", directory, "-j", str(os.cpu_count() or 2), "--target", target)
