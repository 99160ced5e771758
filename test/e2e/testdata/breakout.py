"""Tries to get out of a sandbox, from within.

Each line that it prints is an attempt, a tab, and what came of it: ok, a value,
or the name of an error. What should come of each is in breakout_test.go.
"""

import ctypes
import errno
import glob
import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request

libc = ctypes.CDLL(None, use_errno=True)
# What the secrets of the test look like, and tokens of Kubernetes; not itself.
SECRET = re.compile(rb"[a-z]+-e2e-can" rb"ary-[0-9]+|eyJhbGciOi[A-Za-z0-9_-]{20,}")
DECOY = "decoy-e2e-can" + "ary-" + "77"
TAIL = DECOY[5:]  # what is left of it in memory that is used again
LARGE = 64 << 20
PROGRAM, SOCKET, PROXY = (f"/deckhand/sandbox/{name}" for name in ("bin/sandbox", "run/exec.sock", "run/proxy.sock"))
# What a runner says at its end.
FORGED = {"version": 1, "result": {"committed": True, "reason": "Finished", "text": "forged"}}


def said(error):
    """The name of an error."""
    if isinstance(error, OSError) and error.errno in errno.errorcode:
        return errno.errorcode[error.errno]
    return repr(error)


def attempt(name, what):
    try:
        value = what()
        print(name, "ok" if value is None else value, sep="\t", flush=True)
    except Exception as error:
        print(name, said(error), sep="\t", flush=True)


def done(code):
    if code < 0:
        raise OSError(ctypes.get_errno(), "system call")


# What can be found.


def read(path):
    with open(path, "rb") as file:
        return file.read(LARGE)


def secrets(data):
    return {found.decode() for found in SECRET.findall(data)}


def told(found):
    """Places, and the beginnings of what was found there, so that nothing of a secret is printed."""
    return ", ".join(sorted({f"{place} ({secret[:5]})" for place, secret in found if not secret.endswith(TAIL)})) or "nothing"


def control(found):
    """That a search finds what there is to be found."""
    return "found" if any(secret == DECOY for _, secret in found) else "missed"


def processes():
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def environments():
    found = set()
    for pid in processes():
        for name in "environ", "cmdline":
            try:
                found |= {(f"{pid}/{name}", s) for s in secrets(read(f"/proc/{pid}/{name}"))}
            except OSError:
                pass
    return found


def memories():
    found = set()
    for pid in processes():
        try:
            maps = read(f"/proc/{pid}/maps").decode().splitlines()
            memory = open(f"/proc/{pid}/mem", "rb", 0)
        except OSError:
            continue
        for line in maps:
            area, mode = line.split()[:2]
            begin, end = (int(edge, 16) for edge in area.split("-"))
            if "r" not in mode or end - begin > LARGE:
                continue
            try:
                memory.seek(begin)
                found |= {(f"{pid}/mem", s) for s in secrets(memory.read(end - begin))}
            except (OSError, ValueError, OverflowError):
                pass
    return found


def places():
    """Everywhere that is no part of the image, and by way of every process."""
    mounts = [line.split() for line in open("/proc/self/mounts")]
    roots = {point for _, point, kind, *_ in mounts if point != "/" and kind not in ("proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue")}
    roots |= {"/deckhand", "/etc", "/home", "/mnt", "/root", "/run", "/srv", "/var"}
    roots |= set(glob.glob("/proc/[0-9]*/cwd/")) | set(glob.glob("/proc/[0-9]*/root/deckhand/"))
    return roots


def files():
    found = set()
    for root in places():
        every = [(os.path.dirname(root), [], [os.path.basename(root)])] if os.path.isfile(root) else os.walk(root)
        for folder, _, names in every:
            for name in names:
                path = os.path.join(folder, name)
                try:
                    if stat.S_ISREG(os.stat(path).st_mode):
                        found |= {(path, s) for s in secrets(read(path))}
                except OSError:
                    pass
    return found


def mounts():
    points = {line.split()[1] for line in open("/proc/self/mounts")}
    return " ".join(sorted(p for p in points if not p.startswith(("/proc", "/sys", "/dev", "/etc/"))))


def socks():
    for folder, _, names in os.walk("/deckhand"):
        yield from (name for name in names if stat.S_ISSOCK(os.lstat(os.path.join(folder, name)).st_mode))


def listeners():
    """Who listens in the pod beside loopback's proxy."""
    out = set()
    for table in "/proc/net/tcp", "/proc/net/tcp6":
        for line in open(table).readlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A":
                out.add("loopback" if local.startswith("0100007F:") else local)
    return " ".join(sorted(out))


def abstract():
    names = [line.split()[7] for line in open("/proc/net/unix").readlines()[1:] if len(line.split()) > 7]
    return " ".join(n for n in names if n.startswith("@")) or "none"


# What can be reached.


def connect(host, port):
    socket.create_connection((host, port), timeout=3).close()


def resolve(name):
    try:
        socket.getaddrinfo(name, 443)
    except socket.gaierror:
        return "no answer"


def ask(url, token=None, proxy=False, data=None):
    """The status of an answer, and why it was refused."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    handlers = [urllib.request.HTTPSHandler(context=trusting)]
    if not proxy:
        handlers.append(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, data=data, headers={"Authorization": "Bearer " + token} if token else {})
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=10) as answer:
            return f"{answer.status} {answer.read(80).decode(errors='replace')!r}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read(200).decode(errors='replace')!r}"
    except urllib.error.URLError as error:
        return said(error.reason)


def loopback():
    for name in "no_proxy", "NO_PROXY":
        del os.environ[name]
    return ask("http://127.0.0.1:1/", proxy=True)


def speak():
    """Opens a session as the runner does."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(SOCKET)
    try:
        s.sendall(b"s\0\0\0\0")
        return "answered" if s.recv(9) else "closed"
    except OSError:
        return "closed"


def main(to):
    open("/workspace/decoy.txt", "w").write(DECOY)
    with subprocess.Popen(["sleep", "300"], env={"DECOY": DECOY}) as decoy:
        time.sleep(0.2)
        try:
            search()
        finally:
            decoy.kill()
    os.remove("/workspace/decoy.txt")
    kernel()
    connection()
    network(to)


def search():
    for name, how in ("environments", environments), ("memories", memories), ("files", files):
        found = how()
        attempt(f"control: a decoy in {name}", lambda: control(found))
        attempt(f"secrets in {name}", lambda: told(found))
    attempt("mounts", mounts)
    attempt("/deckhand", lambda: " ".join(sorted(os.listdir("/deckhand"))))
    attempt("/deckhand/sandbox", lambda: " ".join(sorted(os.listdir("/deckhand/sandbox"))))
    attempt("the token of a ServiceAccount", lambda: os.listdir("/var/run/secrets"))
    attempt("variables of Services", lambda: " ".join(n for n in os.environ if n.startswith(("KUBERNETES", "MODELS"))) or "none")


def kernel():
    for name in "environ", "mem", "maps":
        attempt(f"{name} of the first process", lambda: len(read(f"/proc/1/{name}")))
    attempt("open files of the first process", lambda: os.listdir("/proc/1/fd"))
    attempt("root of the first process", lambda: os.listdir("/proc/1/root"))
    attempt("tracing the first process", lambda: done(libc.ptrace(16, 1, 0, 0)))
    attempt("ending the first process", lambda: os.kill(1, signal.SIGTERM))
    attempt("becoming root", lambda: os.setuid(0))
    attempt("a device", lambda: os.mknod("/tmp/disk", stat.S_IFBLK | 0o600, os.makedev(8, 0)))
    attempt("mounting", lambda: done(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)))
    attempt("a user namespace", lambda: done(libc.unshare(0x10000000)))
    attempt("changing the image", lambda: open("/usr/bin/evil", "w"))
    attempt("the kernel's handler of crashes", lambda: open("/proc/sys/kernel/core_pattern", "w"))
    attempt("sysrq", lambda: open("/proc/sysrq-trigger", "w"))
    attempt("cgroups", lambda: open(next(iter(glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True)), "/sys/fs/cgroup/cgroup.procs"), "w"))
    attempt("forging a termination message", lambda: json.dump(FORGED, open("/deckhand/termination-log", "w")))


def connection():
    attempt("speaking as the runner", speak)
    for path in SOCKET, PROXY, PROGRAM:
        name = os.path.basename(path)
        attempt(f"removing {name}", lambda: os.remove(path))
        attempt(f"moving {name}", lambda: os.rename(path, path + ".old"))
        attempt(f"opening {name} to write", lambda: open(path, "r+b"))
    attempt("a socket beside them", lambda: socket.socket(socket.AF_UNIX).bind("/deckhand/sandbox/run/mine.sock"))
    attempt("a link beside them", lambda: os.symlink("/", "/deckhand/sandbox/run/link"))
    attempt("moving their directory", lambda: os.rename("/deckhand/sandbox/run", "/deckhand/sandbox/walk"))
    attempt("sockets in sight", lambda: " ".join(sorted(socks())))
    attempt("listeners of the pod", listeners)
    attempt("abstract sockets of the pod", abstract)


def network(to):
    attempt("metadata", lambda: connect("169.254.169.254", 80))
    attempt("metadata over IPv6", lambda: connect("fd00:ec2::254", 80))
    attempt("the Internet", lambda: connect("1.1.1.1", 443))
    attempt("the API server's Service", lambda: connect(to["service"], 443))
    attempt("a Service", lambda: connect(to["models"], 80))
    attempt("DNS by TCP", lambda: connect(to["node"], 53))
    attempt("DNS", lambda: resolve("kubernetes.default.svc"))
    attempt("a datagram", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    attempt("a raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
    attempt("packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
    attempt("the firewall", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12))
    attempt("the hypervisor", lambda: socket.socket(40, socket.SOCK_STREAM, 0))
    attempt("a high port outside", lambda: connect(to["pod"], 8080))
    attempt("models without a key", lambda: ask(f"http://{to['pod']}:8080/v1/chat/completions", data=b'{"model": "trivial", "messages": [{"role": "user", "content": "Hello."}]}'))
    attempt("the API server", lambda: ask(to["api"] + "/api/v1/secrets"))
    attempt("the API server with a forged token", lambda: ask(to["api"] + "/api/v1/secrets", token="eyJhbGciOiJub25lIn0.e30."))
    attempt("the kubelet", lambda: ask(f"https://{to['node']}:10250/pods"))
    attempt("proxy: a host that is not listed", lambda: ask("http://evil.example/", proxy=True))
    attempt("proxy: the API server", lambda: ask("http://kubernetes.default.svc:443/", proxy=True))
    attempt("proxy: metadata, listed", lambda: ask("http://169.254.169.254/latest/", proxy=True))
    attempt("proxy: a Service, listed", lambda: ask(f"http://{to['inside']}/healthz", proxy=True))
    attempt("proxy: loopback, listed", loopback)
    attempt("proxy: a public host, listed", lambda: ask(f"http://{to['public']}/healthz", proxy=True))
    attempt("proxy: a public host, its port 1", lambda: ask(f"http://{to['public']}:1/", proxy=True))


if __name__ == "__main__":
    main(json.load(open(sys.argv[1])))
