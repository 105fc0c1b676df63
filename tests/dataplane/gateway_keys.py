"""Somebody else who publishes the keys of tokens.

``python gateway_keys.py FOLDER ADDRESS PORT`` answers every GET with ``keys.json`` of the folder, over TLS with
``tls.crt`` and ``tls.key`` of the folder. It makes ``ready`` there when it listens.
"""

import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def main(folder: Path, address: str, port: int) -> None:
    """Serve until the process is ended."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = (folder / "keys.json").read_bytes()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    server = ThreadingHTTPServer((address, port), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    (folder / "ready").touch()
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
