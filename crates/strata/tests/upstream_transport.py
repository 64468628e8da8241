"""A model behind TLS and a plain one, and a real HTTP proxy in front of both that asks for a password.

Usage: upstream_transport.py FOLDER [http|https]. The second argument says how the proxy itself is reached. The certificate of an
authority of its own is put into FOLDER/ca.pem, and each line of the proxy's log into FOLDER/proxy.log. The ports are printed as one line
of JSON. The script ends with its input.
"""

import datetime
import ipaddress
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

FOLDER = Path(sys.argv[1])
HAS_TLS = sys.argv[2:] == ["https"]


def certificate(name, issuer, issuer_key, extensions):
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.timezone.utc)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(issuer_key or key, hashes.SHA256()), key


def pem(made):
    return made.public_bytes(serialization.Encoding.PEM)


authority, authority_key = certificate(
    "the test's authority", None, None, [(x509.BasicConstraints(ca=True, path_length=0), True)]
)
names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
server, server_key = certificate(
    "localhost",
    authority.subject,
    authority_key,
    [(names, False), (usage, False), (x509.BasicConstraints(ca=False, path_length=None), True)],
)
(FOLDER / "ca.pem").write_bytes(pem(authority))
(FOLDER / "server.pem").write_bytes(pem(server))
(FOLDER / "server.key").write_bytes(
    server_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
)

seen = []


class Model(BaseHTTPRequestHandler):
    """Repeats the last message, and remembers what it was sent."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        seen.append({"target": self.path, "headers": list(self.headers.keys()), "body": body})
        text = "reply to " + body["messages"][-1]["content"].rsplit("\n\n", 1)[-1]
        if body.get("stream"):
            pieces = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in text.replace(" ", " \n").split("\n")]
            answer = "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces) + "data: [DONE]\n\n"
            kind = "text/event-stream"
        else:
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = json.dumps({"object": "chat.completion", "model": "m", "choices": [choice]})
            kind = "application/json"
        self.send(answer, kind)

    def do_GET(self):
        self.send(json.dumps(seen), "application/json")

    def send(self, answer, kind):
        answer = answer.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def serve(context=None):
    http = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    if context:
        http.socket = context.wrap_socket(http.socket, server_side=True)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    return http.server_address[1]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(FOLDER / "server.pem", FOLDER / "server.key")
ports = {"tls": serve(context), "plain": serve(), "proxy": free_port(), "nothing": free_port()}
log = open(FOLDER / "proxy.log", "w")
certified = ["--cert-file", str(FOLDER / "server.pem"), "--key-file", str(FOLDER / "server.key")] if HAS_TLS else []
proxy = subprocess.Popen(
    [sys.executable, "-m", "proxy", "--hostname", "127.0.0.1", "--port", str(ports["proxy"]), "--basic-auth", "ann:p@ss",
     "--num-acceptors", "1", "--num-workers", "1", "--data-dir", str(FOLDER / "proxy"), *certified],
    stdout=log, stderr=log, cwd=FOLDER,
)
try:
    for _ in range(600):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", ports["proxy"])) == 0:
                break
        time.sleep(0.1)
    print(json.dumps(ports), flush=True)
    sys.stdin.read()
finally:
    proxy.terminate()
    proxy.wait()
