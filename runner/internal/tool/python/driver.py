# Keeps the names that code defines from one call to the next. It runs as
# `python -u -c`, with any Python from 3.8 on and nothing but its library.
#
# stdin brings requests: four bytes of length, then JSON. File descriptor 3 takes
# answers in the same form. Both are moved out of the way first: code finds an
# empty stdin, and nothing at 3. What it prints is no part of this. When code has
# ended, the mark of its request goes to stdout, so that whoever reads both knows
# that everything before it was printed by that code.
import ast, builtins, fcntl, json, linecache, os, re, signal, struct, sys, threading, traceback


def main():
    requests, answers, printed = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in (0, 3, 1))
    os.close(0)
    os.close(3)
    os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)  # it is 0, the lowest that is free
    os.dup2(1, 2)
    for stream in sys.stdout, sys.stderr:
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    home, me = os.getpid(), threading.main_thread().ident
    lock, ready = threading.Lock(), threading.Semaphore(0)
    queue, busy, names = [], [0], fresh()

    def forked():
        for fd in (requests, answers, printed):
            os.close(fd)

    os.register_at_fork(after_in_child=forked)

    def answer(**what):
        data = json.dumps(what).encode()
        write(answers, struct.pack(">I", len(data)) + data)

    def listen():
        while True:
            head = read(requests, 4)
            data = head and read(requests, struct.unpack(">I", head)[0])
            if not data:
                os._exit(0)  # nobody asks any more
            what = json.loads(data.decode())
            if what.get("interrupt"):
                with lock:
                    if busy[0] == what["id"]:
                        signal.pthread_kill(me, signal.SIGINT)
                continue
            queue.append(what)
            ready.release()

    threading.Thread(target=listen, daemon=True).start()
    signal.signal(signal.SIGINT, late)
    answer(id=0, how="ready", version=sys.version.split()[0])
    while True:
        ready.acquire()
        what = queue.pop(0)
        how, note = "interrupted", ""
        try:
            how, note = perform(what, names, lock, busy)
        except KeyboardInterrupt:
            pass
        while signal.getsignal(signal.SIGINT) is not late or busy[0]:
            try:
                with lock:
                    busy[0] = 0
                signal.signal(signal.SIGINT, late)
            except KeyboardInterrupt:
                how = "interrupted"
        if os.getpid() != home:
            os._exit(0)  # code that forked, and did not end the child
        quiet(lambda: sys.stdout.flush())
        quiet(lambda: sys.stderr.flush())
        write(printed, what["mark"].encode())
        answer(id=what["id"], how=how, note=note)


def late(signum, frame):
    """An interrupt that comes when the code it was meant for has ended."""


def fresh():
    import types
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__builtins__ = builtins
    sys.argv, sys.path[0:1] = [""], [""]
    return module.__dict__


def perform(what, names, lock, busy):
    code, file, note = what.get("code", ""), "<call %d>" % what["id"], ""
    place = os.path.join(os.path.expanduser("~"), "scripts")
    if what.get("script"):
        file = os.path.join(place, what["script"] + ".py")
        try:
            with open(file, encoding="utf-8") as f:
                code = f.read()
        except FileNotFoundError:
            return "missing", ", ".join(saved(place))
        except (OSError, ValueError) as e:
            return "unreadable", str(e)
    elif what.get("save"):
        file = os.path.join(place, what["save"] + ".py")
        try:
            os.makedirs(place, exist_ok=True)
            with open(file + ".new", "w", encoding="utf-8") as f:
                f.write(code)
            os.replace(file + ".new", file)
        except (OSError, ValueError) as e:
            return "unsaved", str(e)
        note = file
    sys.argv = [file] + what.get("args", [])
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    try:
        tree = compile(code, file, "exec", ast.PyCF_ONLY_AST, True)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = compile(ast.Expression(tree.body.pop().value), file, "eval", 0, True)
        body = compile(tree, file, "exec", 0, True)
    except Exception as e:  # code that is none, or too deep
        sys.stderr.write("".join(traceback.format_exception_only(type(e), e)))
        return "failed", note
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with lock:
        busy[0] = what["id"]
    try:
        exec(body, names)
        if last is not None:
            sys.displayhook(eval(last, names))
    except SystemExit as e:
        if e.code not in (None, 0):
            quiet(lambda: sys.stderr.write("SystemExit: %s\n" % (e.code,)))
        return ("done" if e.code in (None, 0) else "failed"), note
    except BaseException as e:
        quiet(lambda: show(e))
        return ("interrupted" if isinstance(e, KeyboardInterrupt) else "failed"), note
    return "done", note


def show(e):
    lines = traceback.format_exception(type(e), e, e.__traceback__.tb_next)
    sys.stderr.write("".join(lines))


def saved(place):
    try:
        return sorted(n[:-3] for n in os.listdir(place) if re.fullmatch(r"[\w.-]{1,64}\.py", n))[:50]
    except OSError:
        return []


def quiet(f):
    try:
        f()
    except BaseException:  # code may have put anything in the way
        pass


def read(fd, n):
    data = b""
    while len(data) < n:
        more = os.read(fd, min(n - len(data), 65536))
        if not more:
            return b""
        data += more
    return data


def write(fd, data):
    while data:
        data = data[os.write(fd, data):]


main()
