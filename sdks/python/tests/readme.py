"""Writes the Python of README.md to tests/readme/, one module for each block, so that type checkers read it:

python tests/readme.py
"""

import re
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent
BLOCKS = re.findall(r"```python\n(.*?)```", (HERE.parent / "README.md").read_text(), re.DOTALL)
assert BLOCKS, "README.md has no Python"

shutil.rmtree(HERE / "readme", ignore_errors=True)
(HERE / "readme").mkdir()
for index, block in enumerate(BLOCKS):
    (HERE / "readme" / f"block_{index}.py").write_text(f"from ..readme_names import *\n\n{block}")
