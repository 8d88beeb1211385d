#!/usr/bin/env python3
"""One HTTP request for the scripts: request.py METHOD URL [JSON_BODY]

Prints the status code on the first line and the body after it; exits with 0 whatever the answer, and with 1 if there
was none. A bearer token is taken from the environment variable API_KEY: arguments are visible to other users.
Not curl, which a bare Debian lacks; and never through a proxy, since it is all on this machine.
"""

import os
import sys
import urllib.error
import urllib.request

TIMEOUT_SECONDS = 10


def main() -> int:
    method, url = sys.argv[1:3]
    body = sys.argv[3].encode() if len(sys.argv) > 3 else None
    request = urllib.request.Request(url, data=body, method=method)
    if body is not None:
        request.add_header("Content-Type", "application/json")
    if os.environ.get("API_KEY"):
        request.add_header("Authorization", "Bearer " + os.environ["API_KEY"])
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_SECONDS) as response:
            status, answer = response.status, response.read()
    except urllib.error.HTTPError as refusal:
        status, answer = refusal.code, refusal.read()
    except OSError:
        return 1
    print(status)
    print(answer.decode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
