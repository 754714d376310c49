"""What a user would otherwise run, by its configuration in perf/peers; each on the servers' CPU."""

import base64
import contextlib
import http.server
import json
import os
import shutil
import threading

from perf.bench import procs, servers

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers")


def configuration(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
        return f.read()


def filled(bench, name, **values):
    text = configuration(name)
    for key, value in dict(values, SCRATCH=bench.scratch, ISSUER=servers.ISSUER, AUDIENCE=servers.AUDIENCE).items():
        text = text.replace(f"@{key}@", str(value))
    return bench.write(os.path.basename(name), text)


def go_program(name):
    """One that script/peers built, else one on PATH, else None."""
    built = os.path.join(os.environ.get("SUBZERO_PEERS", os.path.expanduser("~/.cache/subzero/peers")), name)
    return built if os.access(built, os.X_OK) else shutil.which(name)


# ---- the issuer's key as they want it ----

def der(tag, content):
    size = len(content)
    length = bytes([size]) if size < 128 else (lambda b: bytes([0x80 | len(b)]) + b)(size.to_bytes((size.bit_length() + 7) // 8, "big"))
    return bytes([tag]) + length + content


def der_integer(text):
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return der(2, b"\0" + raw if raw[0] & 0x80 else raw)


def public_pem(jwk):
    """An RSA key of a JWK as SubjectPublicKeyInfo."""
    key = der(0x30, der_integer(jwk["n"]) + der_integer(jwk["e"]))
    rsa = der(0x30, bytes.fromhex("06092a864886f70d010101") + b"\x05\0")
    text = base64.b64encode(der(0x30, rsa + der(3, b"\0" + key))).decode()
    return "-----BEGIN PUBLIC KEY-----\n" + "\n".join(text[i:i + 64] for i in range(0, len(text), 64)) + "\n-----END PUBLIC KEY-----\n"


@contextlib.contextmanager
def key_server(bench):
    """The issuer's JWK Set over HTTP; gives its URL."""
    with open(bench.path("jwks.json"), "rb") as f:
        body = f.read()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/jwks.json"
        finally:
            server.shutdown()
            thread.join()


# ---- the programs ----

def haproxy(bench):
    with open(bench.path("jwks.json"), encoding="utf-8") as f:
        bench.write("key.pem", public_pem(json.load(f)["keys"][0]))
    port = procs.free_port()
    path = filled(bench, "haproxy/haproxy.cfg", PORT=port)
    return procs.Server("haproxy", ["haproxy", "-db", "-f", path], port, bench.path("haproxy.log"), procs.cpus()[0])


def nginx_auth_request(bench, upstream, auth):
    port = procs.free_port()
    path = filled(bench, "nginx/auth_request.conf", PORT=port, UPSTREAM=upstream, AUTH=auth)
    return procs.Server("nginx", ["nginx", "-e", "/dev/null", "-c", path], port, bench.path("nginx.log"), procs.cpus()[0])


def oauth2_proxy(bench, program, jwks_url):
    port = procs.free_port()
    argv = [program, f"--http-address=127.0.0.1:{port}", "--provider=oidc", f"--oidc-issuer-url={servers.ISSUER}", "--skip-oidc-discovery",
            f"--oidc-jwks-url={jwks_url}", f"--login-url={servers.ISSUER}a", f"--redeem-url={servers.ISSUER}t", f"--client-id={servers.AUDIENCE}",
            "--client-secret=unused", "--cookie-secret=0123456789abcdef0123456789abcdef", "--email-domain=*", "--oidc-email-claim=sub",
            "--skip-jwt-bearer-tokens", "--upstream=static://200", "--reverse-proxy", "--standard-logging=false", "--auth-logging=false",
            "--request-logging=false"]
    return procs.Server("oauth2-proxy", argv, port, bench.path("oauth2-proxy.log"), procs.cpus()[0], {"GOMAXPROCS": "1"})


def heimdall(bench, program, jwks_url):
    port = procs.free_port()
    path = filled(bench, "heimdall/heimdall.yaml", PORT=port, JWKS=jwks_url)
    argv = [program, "serve", "decision", "-c", path, "--insecure"]
    return procs.Server("heimdall", argv, port, bench.path("heimdall.log"), procs.cpus()[0], {"GOMAXPROCS": "1"})


def oathkeeper(bench, program, jwks_url):
    port = procs.free_port()
    bench.write("oathkeeper-rules.json", configuration("oathkeeper/rules.json"))
    path = filled(bench, "oathkeeper/oathkeeper.yaml", PORT=port, PROXY=procs.free_port(), JWKS=jwks_url)
    argv = [program, "serve", "-c", path]
    return procs.Server("oathkeeper", argv, port, bench.path("oathkeeper.log"), procs.cpus()[0], {"GOMAXPROCS": "1"})
