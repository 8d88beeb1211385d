#!/usr/bin/env python3
"""Forwards every call to the simulator unchanged and writes it to a file, one JSON object per line.

Listens at RECORDER_URL, forwards to SIMULATOR_URL, writes to RECORDED_REQUESTS.
"""

import http.client
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

SIMULATOR = urlsplit(os.environ["SIMULATOR_URL"])
RECORDER = urlsplit(os.environ["RECORDER_URL"])
RECORDS = open(os.environ["RECORDED_REQUESTS"], "a", buffering=1, encoding="utf-8")
# Headers of a single connection, which are not forwarded (RFC 9110, 7.6.1).
OF_THE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        record = {"method": self.command, "path": self.path, "headers": list(self.headers.items())}
        RECORDS.write(json.dumps(record | {"body": body.decode("utf-8", "surrogateescape")}) + "\n")
        connection = http.client.HTTPConnection(SIMULATOR.hostname, SIMULATOR.port, timeout=60)
        try:
            # The Host header is not changed: signatures of SES cover it.
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in OF_THE_CONNECTION:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            text = answer.read()
        except OSError:
            self.close_connection = True  # The caller sees a cut connection, as the recorder did.
            return
        finally:
            connection.close()
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in OF_THE_CONNECTION:
                self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

    def log_message(self, *_):
        pass


ThreadingHTTPServer((RECORDER.hostname, RECORDER.port), Recorder).serve_forever()
