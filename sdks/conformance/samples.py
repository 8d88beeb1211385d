#!/usr/bin/env python3
"""Writes the code samples of a language to files that its compiler can check: samples.py LANGUAGE PATTERN

In PATTERN `*` stands for the id of the operation: samples/*/main.go.
"""

import json
import pathlib
import sys

SAMPLES = pathlib.Path(__file__).parents[2] / "openapi" / "samples.json"


def main():
    language, pattern = sys.argv[1:]
    for operation, samples in json.loads(SAMPLES.read_text()).items():
        (source,) = [sample["source"] for sample in samples if sample["lang"] == language]
        path = pathlib.Path(pattern.replace("*", operation))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)


if __name__ == "__main__":
    main()
