"""A web server that misbehaves on purpose, for the tests of `doppler pull`. It serves bytes given to it and counts
what it sends. Standard library only. Read next: pull_test.py.

  server = FaultyServer({"/model.gguf": File(data)})      # listens on 127.0.0.1, at a port of its own
  server.files["/model.gguf"].faults = [Drop(after=1000)]  # the next answers misbehave, one fault each
  server.url("/model.gguf"), server.requests, server.sent_bytes
"""

import hashlib
import http.server
import re
import socket
import ssl
import threading
import time


class Fault:
    """One answer's misbehaviour; the fields say which."""

    def __init__(self, **fields):
        self.fields = fields

    def __getattr__(self, name):
        return self.__dict__["fields"].get(name)


def Drop(after):  # the connection is cut after so many bytes of the body
    return Fault(cut_after=after)


def Stall(after, seconds=60):
    return Fault(cut_after=after, stall=seconds)


def Status(code, **headers):
    return Fault(status=code, headers=headers)


def Corrupt(at):  # one byte of the file is another
    return Fault(corrupt=at)


class File:
    def __init__(self, data, etag="strong", ranges=True, slow=0, **headers):
        self.data, self.ranges, self.slow, self.headers = data, ranges, slow, headers
        self.etag = '"%s"' % hashlib.md5(data).hexdigest() if etag == "strong" else etag
        self.faults = []     # taken from the front, one an answer (not by probes of one byte)
        self.always = None   # a fault of every answer
        self.length = True   # False: chunked, without Content-Length


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        # Bytes in this side's buffer count as sent: with the system's megabytes, a client that waits for a
        # processor seems to lose them when it is killed.
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        super().setup()

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        server = self.server.owner
        path = self.path.split("?")[0]
        with server.lock:
            server.requests.append((path, self.headers.get("Range"), dict(self.headers)))
            file = server.files.get(path)
            is_probe = self.headers.get("Range") == "bytes=0-0"
            fault = None
            if isinstance(file, File):
                fault = file.faults.pop(0) if file.faults and not is_probe else file.always
                if fault and fault.also_probe is None and is_probe and fault is file.always and not fault.status:
                    fault = None
        if file is None:
            return self.answer(404, b"nothing here")
        if callable(file):
            return file(self)
        if fault and fault.status:
            return self.answer(fault.status, b"no", {k.replace("_", "-"): v for k, v in fault.headers.items()})
        self.send_file(file, fault)

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_file(self, file, fault):
        data, status, first = file.data, 200, 0
        if fault and fault.replaced is not None:
            data = fault.replaced
        etag = '"other"' if fault and fault.replaced is not None else file.etag
        last = len(data) - 1
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if_range = self.headers.get("If-Range")
        if match and file.ranges and (if_range is None or if_range == etag):
            first, last = int(match[1]), min(int(match[2] or last), last)
            if first >= len(data):
                return self.answer(416, b"", {"Content-Range": "bytes */%d" % len(data)})
            status = 206
        body = bytearray(data[first:last + 1])
        if fault and fault.corrupt is not None and first <= fault.corrupt <= last:
            body[fault.corrupt - first] ^= 1
        if fault and fault.extra:
            body += bytes(fault.extra)
        self.send_response(status)
        shift = fault.shift if fault and fault.shift else 0
        if status == 206:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (first + shift, last + shift, len(data) + shift))
        if etag:
            self.send_header("ETag", etag)
        for key, value in file.headers.items():
            self.send_header(key.replace("_", "-"), value)
        chunked = not file.length
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            announced = len(body) + (fault.announce_more if fault and fault.announce_more else 0)
            self.send_header("Content-Length", str(announced))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.send_body(file, fault, bytes(body), chunked)

    def send_body(self, file, fault, body, chunked):
        cut = fault.cut_after if fault else None
        is_cut = cut is not None and cut < len(body)
        out = body[:cut] if is_cut else body
        server = self.server.owner
        step = 16384 if file.slow else 1 << 16
        try:
            for at in range(0, len(out), step):
                piece = out[at:at + step]
                if server.closing.is_set():
                    break
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                with server.lock:
                    server.sent_bytes += len(piece)
                if file.slow:
                    time.sleep(file.slow)
            if chunked and not is_cut:
                self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
            if is_cut and fault.stall:
                server.closing.wait(fault.stall)
        except OSError:
            self.close_connection = True
        if is_cut or (fault and fault.announce_more):
            self.close_connection = True
            try:
                self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass


class FaultyServer:
    def __init__(self, files, certificate=None):
        self.files = files  # path -> File, or a function of the handler
        self.requests, self.sent_bytes = [], 0
        self.lock, self.closing = threading.Lock(), threading.Event()
        self.http = QuietServer(("127.0.0.1", 0), Handler)
        self.http.owner = self
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
            self.scheme = "https"
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def url(self, path, host="127.0.0.1"):
        return "%s://%s:%d%s" % (self.scheme, host, self.port, path)

    def ranges(self, path):
        """First bytes of the requested ranges, without the probes."""
        with self.lock:
            asked = [r for p, r, _ in self.requests if p == path and r and r != "bytes=0-0"]
        return [int(re.match(r"bytes=(\d+)", r)[1]) for r in asked]

    def reset(self):
        with self.lock:
            self.requests, self.sent_bytes = [], 0

    def close(self):
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()
