"""Answers for pods that run nothing: whoever asks on a pod's address gets that pod's series.

As a program, ``python exporters.py FOLDER PORT...`` serves the file ``FOLDER/<port>/<address>`` on every address of the
machine. A series that grows stands in it as what :func:`growing` gives, and is worked out when it is asked for.
"""

import re
import sys
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

_GROWING: Final = re.compile(r"~(\S+) (\S+) (\S+)~")


def growing(start: float, per_second: float, since: float | None = None) -> str:
    """The value of a counter that is ``start`` at a time, by default now, and grows."""
    return f"~{start!r} {per_second!r} {time.time() if since is None else since!r}~"


def at(now: float, text: str) -> str:
    """The text with every growing value as it is at a time."""
    return _GROWING.sub(lambda found: repr(float(found[1]) + float(found[2]) * max(0.0, now - float(found[3]))), text)


@dataclass(frozen=True)
class Exporters:
    """What every pod answers."""

    folder: Path

    def say(self, port: int, address: str, text: str) -> None:
        """From now on the pod with this address says that."""
        file = self.folder / str(port) / address
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_text(text)
        partial.replace(file)

    def silence(self, port: int, address: str) -> None:
        """From now on the pod has nothing to say."""
        (self.folder / str(port) / address).unlink()


def _handler(folder: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                text = (folder / self.connection.getsockname()[0]).read_text()
            except FileNotFoundError:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            body = at(time.time(), text).encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def main(folder: Path, ports: list[int]) -> None:
    """Serve until the process is ended."""
    for port in ports:
        server = ThreadingHTTPServer(("0.0.0.0", port), _handler(folder / str(port)))  # noqa: S104  # every pod's
        threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(port) for port in sys.argv[2:]])
