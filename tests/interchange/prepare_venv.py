"""Makes a virtual environment for the tests unless it is there: prepare_venv.py FOLDER REQUIREMENTS"""

import hashlib
import pathlib
import subprocess
import sys

folder, requirements = map(pathlib.Path, sys.argv[1:])
stamp = folder / "stamp"
wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
if not stamp.exists() or stamp.read_text() != wanted:
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                    "-r", requirements], check=True)
    stamp.write_text(wanted)
