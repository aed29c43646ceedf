"""Write what an extra of pyproject.toml asks for, a line each, so that pip can fetch it before nnrs is built.

python tools/extra.py test | pip install -r /dev/stdin
"""

import pathlib
import sys

try:
    import tomllib
except ImportError:  # Python 3.10, whose pip brings it
    from pip._vendor import tomli as tomllib

TEXT = (pathlib.Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
project = tomllib.loads(TEXT)["project"]
print(*project["dependencies"], *project["optional-dependencies"][sys.argv[1]], sep="\n")
