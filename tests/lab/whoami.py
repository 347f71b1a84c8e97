#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A web server that answers with its name and the address it sees: whoami.py NAME PORT."""
import http.server
import json
import socket
import sys


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        peer = self.client_address[0].removeprefix("::ffff:")
        body = json.dumps({"host": sys.argv[1], "peer": peer}).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


if __name__ == "__main__":
    server = Server(("::", int(sys.argv[2])), Answer)
    print("ready", flush=True)
    server.serve_forever()
