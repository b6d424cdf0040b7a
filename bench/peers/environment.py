"""Prepares what the peers need: a virtual environment and the libtorch program."""

import hashlib
import json
import os
import shutil
import subprocess
import sys

VENV_GIGABYTES = 14  # the PyPI wheel of torch includes its CUDA libraries

TORCH_QUERY = """
import json, os, torch
print(json.dumps([os.path.dirname(torch.__file__), int(torch.compiled_with_cxx11_abi())]))
"""


# Eigen's kernels in TensorFlow have no such switch: its wheel is built for a fixed instruction set.
AVX2_LIMITS = {
    "LOCKSTEP_MAX_ISA": "avx2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "TORCHINDUCTOR_CPP_MARCH": "haswell",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
}


class SetupError(Exception):
    """Prints one line for the user."""


class Libtorch:
    """Returns the built program, or the reason for its absence."""

    def __init__(self, program=None, error=None):
        self.program = program
        self.error = error


def progress(text):
    print(text, file=sys.stderr, flush=True)


def last_line(text, prefer=""):
    """Returns the last meaningful line, preferring lines with `prefer`."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    preferred = [line for line in lines if prefer and prefer in line]
    return (preferred or lines or ["it said nothing"])[-1]


def child_environment(threads, cache, isa):
    """The environment of every contestant, limited to an instruction set unless it is the machine's own."""
    limits = AVX2_LIMITS if isa == "avx2" else {}
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads),
            "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONDONTWRITEBYTECODE": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(cache / f"inductor-{isa}"), "TORCHINDUCTOR_COMPILE_THREADS": "1",
            **limits}


def machine_isa():
    with open("/proc/cpuinfo") as file:
        flags = next((line.split() for line in file if line.startswith("flags")), [])
    return "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else "no avx2"


def prepare_venv(folder, requirements):
    """Makes the environment unless its stamp says that it is current; returns its interpreter."""
    python = folder / "bin/python"
    stamp = folder / "peers.stamp"
    version = "{}.{}".format(*sys.version_info).encode()
    wanted = hashlib.sha256(requirements.read_bytes() + version).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    check_space(folder.parent)
    progress(f"making {folder.parent.name}/{folder.name}")
    create_venv(folder)
    install(python, requirements)
    stamp.write_text(wanted)
    return python


def check_space(folder):
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free / 1e9
    if free < VENV_GIGABYTES:
        raise SetupError(f"the peers need {VENV_GIGABYTES} GB of disk under {folder.name}/, "
                         f"{free:.0f} GB are free")


def create_venv(folder):
    attempts = [[sys.executable, "-m", "venv", "--clear", str(folder)],
                [sys.executable, "-m", "virtualenv", "--clear", str(folder)]]
    for command in attempts:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return
    raise SetupError("python3 cannot make virtual environments: apt-get install python3-venv")


def install(python, requirements):
    """Shows pip's own steps as progress, without its lines about package indexes."""
    names = ", ".join(requirements.read_text().split())
    progress(f"installing {names} (about 3 GB to download)")
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check",
               "--progress-bar", "off", "-r", str(requirements)]
    pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = []
    for line in pip.stdout:
        output.append(line)
        if line.lstrip().startswith(("Downloading", "Installing", "Building")):
            progress(f"  {line.strip()[:100]}")
    if pip.wait() != 0:
        raise SetupError(f"pip install failed: {last_line(''.join(output), prefer='ERROR')}")


def build_libtorch(source, build, python):
    program = build / "libtorch_peer"
    progress("building the libtorch peer")
    try:
        torch, abi = json.loads(checked([str(python), "-c", TORCH_QUERY]))
        checked(["cmake", "-S", str(source), "-B", str(build), f"-DTORCH_DIR={torch}",
                 f"-DTORCH_CXX11_ABI={abi}", "-DCMAKE_BUILD_TYPE=Release"])
        checked(["cmake", "--build", str(build)])
    except SetupError as error:
        return Libtorch(error=str(error))
    return Libtorch(program=program)


def checked(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise SetupError(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        reason = last_line(done.stdout + done.stderr, prefer="rror")
        raise SetupError(f"{' '.join(command[:2])} failed: {reason}")
    return done.stdout
