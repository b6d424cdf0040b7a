"""Makes a virtual environment for the tests unless it exists: prepare_venv.py FOLDER REQUIREMENTS

Exits with SKIPPED where no package registry can be reached.
"""

import hashlib
import pathlib
import subprocess
import sys

SKIPPED = 77
UNREACHABLE = ("Failed to establish a new connection", "Temporary failure in name resolution", "Network is unreachable",
               "Cannot connect to proxy", "connection timed out", "Connection refused", "Read timed out")


def install(python, requirements):
    # Fewer retries than pip's default: without a network, failing should not take minutes.
    result = subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check",
                             "--retries", "2", "-r", requirements], stderr=subprocess.PIPE, text=True)
    if result.returncode == 0:
        return
    if any(sign in result.stderr for sign in UNREACHABLE):
        print(f"skipped: no package registry can be reached, and the packages of {requirements} are not here yet")
        sys.exit(SKIPPED)
    sys.exit(result.stderr)


def main():
    folder, requirements = map(pathlib.Path, sys.argv[1:])
    stamp = folder / "stamp"
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    install(folder / "bin/python", requirements)
    stamp.write_text(wanted)


main()
