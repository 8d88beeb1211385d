"""Prints Python without its docstrings and comments, so that its lines can be counted:

python scripts/code.py FILE…
"""

import io
import sys
import tokenize
from pathlib import Path

LAYOUT = (tokenize.ENCODING, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def code(source: str) -> "list[str]":
    lines, kept, begins = source.splitlines(), set[int](), True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in LAYOUT:
            begins = begins or token.type == tokenize.NEWLINE
        elif token.type != tokenize.COMMENT and not (begins and token.type == tokenize.STRING):
            kept.update(range(token.start[0], token.end[0] + 1))
            begins = False
    return [lines[number - 1] for number in sorted(kept) if number <= len(lines)]


for path in sys.argv[1:]:
    print(*code(Path(path).read_text()), sep="\n")
