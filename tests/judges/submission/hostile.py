"""Clients that mean harm, or are broken: smuggled mails, commands before TLS, thousands of sessions, trickling bytes, mails
made to take time or memory. The server must answer each in the form of SMTP, serve others meanwhile, and keep little."""

import base64
import itertools
import os
import random
import re
import resource
import socket
import ssl
import threading
import time

from program import CERTIFICATE, Conversation, Program

HEADER = b"From: Shop <shop@judge.example>\r\nTo: ann@hostile.example\r\nSubject: Hostile\r\nX-Waypost-Test: true\r\n"
SMUGGLED = "smuggled@hostile.example"
SESSIONS = 10_000
SESSION_KIB_MAX = 16
ANSWER_SECONDS_MAX = 10
LARGE_MAILS = 20
LARGE_BYTES = 25 << 20
RANDOM_CONVERSATIONS = 300


def is_well_formed(reply):
    """RFC 5321, 4.2: one code on all lines, at most 512 bytes each; RFC 2034: an enhanced code of the same class."""
    lines = reply.split("\r\n")
    if lines.pop() != "" or not lines:
        return False
    code = lines[0][:3]
    separators = [line[3:4] for line in lines]
    for line in lines:
        enhanced = re.match(r"\d{3}[ -](\d)\.\d{1,3}\.\d{1,3} ", line)
        if len(line) > 510 or line[:3] != code or not line.isprintable() or (enhanced and enhanced[1] != code[0]):
            return False
    return bool(re.fullmatch(r"[2-5]\d\d", code)) and separators == ["-"] * (len(lines) - 1) + [" "]


def served(tally, program, what, seconds_max=ANSWER_SECONDS_MAX):
    """Another client is served meanwhile; if it is asked to come again, it does, as every client."""
    since = time.monotonic()
    while True:
        try:
            reply = Conversation(program, timeout=seconds_max).log_in().mail(HEADER + b"\r\nmeanwhile", ["ann@hostile.example"])
        except (OSError, AssertionError) as problem:
            reply = str(problem)
        seconds = time.monotonic() - since
        if not reply.startswith("4") or seconds > seconds_max - 1:
            break
        time.sleep(0.5)
    tally.check(f"{what}: another client is served", reply.startswith("250 ") and seconds < seconds_max, f"{reply} {seconds:.1f} s")


# Smuggling


def smuggle(tally, program):
    ends = [b"\r\n", b"\n", b"\r", b"\n\r", b"\r\r\n", b"\r\n\r", b"\r\0\n", b"\0\r\n"]
    after = f"MAIL FROM:<shop@judge.example>\r\nRCPT TO:<{SMUGGLED}>\r\nDATA\r\n".encode()
    after += HEADER.replace(b"Test: true", b"Tags: smuggled") + b"\r\nsmuggled\r\n.\r\nQUIT\r\n"
    for before, behind in itertools.product(ends, ends):
        form = before + b"." + behind
        if b"\r\n.\r\n" in form and not re.search(rb"\r(?!\n)|(?<!\r)\n", form.split(b".")[0]):
            continue  # The end of a mail, for every server.
        head = HEADER + b"\r\nfirst"
        for cut in (None, *range(1, len(form) + 1)):
            client = Conversation(program).log_in()
            client.envelope(["ann@hostile.example"])
            whole = head + form + after
            try:
                if cut is None:
                    client.send(whole)
                else:
                    client.send(whole[:len(head) + cut])
                    time.sleep(0.005)
                    client.send(whole[len(head) + cut:])
            except ConnectionError:
                pass  # It has closed already.
            replies = []
            while (reply := client.reply()) and len(replies) < 9:
                replies.append(reply)
            client.close()
            what = f"smuggling by {form!r} cut at {cut}"
            is_plain = not re.search(rb"\r(?!\n)|(?<!\r)\n", form)
            if is_plain:
                # The dot is content of the one mail, which is refused for its NUL.
                tally.check(what, [reply[:3] for reply in replies] == ["554", "221"], replies)
            else:
                tally.check(what, len(replies) == 1 and replies[0].startswith("5") and is_well_formed(replies[0]), replies)


def inject_before_tls(tally, program):
    context = ssl.create_default_context(cafile=CERTIFICATE)
    for injected in (b"NOOP\r\n", b"EHLO attacker.example\r\n", b"RSET\r\nNOOP\r\n", b"NO"):
        client = Conversation(program)
        client.command("EHLO judge.example")
        client.send(b"STARTTLS\r\n" + injected)
        tally.check("STARTTLS is answered", client.reply().startswith("220"))
        secure = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
        client.socket, client.input = secure, secure.makefile("rb")
        reply = client.command("HELP")
        tally.check(f"{injected!r} before TLS is dropped", reply.startswith("214"), reply)
        client.close()
    client = Conversation(program).log_in()
    client.send(b"STARTTLS\r\n")
    client.reply()
    client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
    client.input = client.socket.makefile("rb")
    reply = client.command("MAIL FROM:<shop@judge.example>")
    tally.check("a login before TLS is forgotten", reply.startswith("5"), reply)
    client.close()


# Sessions


def leave_sessions(tally):
    """Opens sessions, and leaves them open; then closes all."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(SESSIONS, hard - 1_000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, SESSIONS + 2_000), hard))
    many = str(2 * SESSIONS)
    program = Program("sessions", WAYPOST_SUBMISSION_SESSIONS_MAX=many, WAYPOST_SUBMISSION_SESSIONS_PER_ADDRESS_MAX=many)
    served(tally, program, "before the sessions")
    memory, descriptors = program.memory_kib(), program.descriptors()
    peaks = []
    for _ in range(2):
        opened, greeted = [], 0
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", program.port), timeout=30)
            opened.append(one)
            greeted += one.recv(100).startswith(b"220 ")
        tally.equal("sessions that are greeted", greeted, count)
        served(tally, program, f"{count} sessions")
        peaks.append(program.memory_kib() - memory)
        for one in opened:
            one.close()
        deadline = time.monotonic() + 30
        while program.descriptors() > descriptors + 20 and time.monotonic() < deadline:
            time.sleep(0.1)
        left = program.descriptors() - descriptors
        tally.check("the descriptors are given back", left <= 20, f"{left} more than before")
    first, second = peaks
    print(f"{count} sessions: {first} KiB, and {second} KiB the second time", flush=True)
    tally.check(f"a session takes at most {SESSION_KIB_MAX} KiB", first / count <= SESSION_KIB_MAX, f"{first} KiB")
    # The allocator may keep what it has: what matters is that the next sessions use it again.
    tally.check("the memory of closed sessions is used again", second < 1.25 * first, f"{first} KiB, then {second} KiB")
    served(tally, program, "after the sessions")
    program.stop()


def too_many_sessions(tally):
    program = Program("bounded", WAYPOST_SUBMISSION_SESSIONS_PER_ADDRESS_MAX="20")
    opened = [Conversation(program) for _ in range(20)]
    further = Conversation(program)
    tally.check("a session too many gets 421", further.greeting.startswith("421 4."), further.greeting)
    for one in (*opened, further):
        one.close()
    deadline = time.monotonic() + 10
    while Conversation(program).greeting[:3] != "220" and time.monotonic() < deadline:
        time.sleep(0.1)
    tally.check("and is served after the others", Conversation(program).greeting.startswith("220"))
    program.stop()


class Trickle(threading.Thread):
    """Clients that send a byte now and then, before their login and within a mail. The server ends both after a minute."""

    SECONDS_MAX = 75

    def __init__(self, program):
        super().__init__(daemon=True)
        self.program, self.ended = program, {}

    def run(self):
        commands = [Conversation(self.program) for _ in range(50)]
        mails = [Conversation(self.program).log_in() for _ in range(50)]
        for one in mails:
            one.envelope(["ann@hostile.example"])
        left = {"command": commands, "mail": mails}
        since = time.monotonic()
        while any(left.values()) and time.monotonic() - since < self.SECONDS_MAX:
            time.sleep(1)
            for kind, clients in left.items():
                for one in list(clients):
                    try:
                        one.send(b"x")
                        one.socket.setblocking(False)
                        text = one.socket.recv(1_000)
                    except BlockingIOError:
                        continue
                    except OSError:
                        text = b""
                    finally:
                        one.socket.settimeout(30)
                    clients.remove(one)
                    self.ended.setdefault(kind, []).append(text)

    def judge(self, tally):
        served(tally, self.program, "trickling clients")
        self.join()
        for kind in ("command", "mail"):
            replies = self.ended.get(kind, [])
            is_told = sum(text.startswith(b"421 4.4.2 ") for text in replies)
            tally.check(f"clients that trickle a {kind} get 421", is_told == 50, f"{len(replies)} ended: {replies[:2]}")


# Mails


def multipart(boundaries):
    """Each in the one before."""
    head = (f'Content-Type: multipart/mixed; boundary="{one}"\r\n\r\n--{one}\r\n' for one in boundaries)
    return "".join(head).encode() + b"\r\ninnermost"


def hostile_mails():
    """Content after the header, and whether it must be refused."""
    mixed = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    yield "a header of 5 MB", b"X-Long: " + b"x" * (5 << 20) + b"\r\n\r\nbody", True
    yield "a folded header of 5 MB", b"X-Long: x" + b"\r\n yyyyyyyy" * 500_000 + b"\r\n\r\nbody", True
    yield "100,000 header fields", b"".join(b"X-%d: a\r\n" % nth for nth in range(100_000)) + b"\r\nbody", True
    yield "10,000 parts", mixed + b"--b\r\n\r\npart\r\n" * 10_000 + b"--b--", True
    yield "10,000 empty parts", mixed + b"--b\r\n" * 10_000 + b"--b--", True
    yield "1,000 files", mixed + b"--b\r\nContent-Type: image/png; name=a.png\r\n\r\npart\r\n" * 400 + b"--b--", True
    yield "parts 1,000 deep", multipart(f"b{nth}" for nth in range(1_000)), True
    yield "parts 1,000 deep with one boundary", multipart(["b"] * 1_000), None
    yield "mails 1,000 deep", b"Content-Type: message/rfc822\r\n\r\n" * 1_000 + b"body", None
    yield "no boundary", b"Content-Type: multipart/mixed\r\n\r\nbody", True
    yield "an empty boundary", b"Content-Type: multipart/mixed; boundary=\"\"\r\n\r\n--\r\n\r\nbody\r\n----", True
    yield "a boundary of 10,000 bytes", b"Content-Type: multipart/mixed; boundary=" + b"b" * 10_000 + b"\r\n\r\nbody", True
    yield "a boundary that never comes", mixed + b"body", True
    yield "a boundary within lines", mixed + b"x--b\r\n--bb\r\n--b\r\n\r\ntext --b-- more\r\n--b--x\r\n--b--\r\nafter", None
    yield "almost boundaries", mixed + b"--b\r\n\r\n" + b"--bx\r\n" * 2_000_000 + b"--b--", None
    yield "a boundary of spaces", b"Content-Type: multipart/mixed; boundary=\"   \"\r\n\r\n--   \r\n\r\nbody\r\n--   --", None
    many = b"".join(b";\r\n filename*%d=a" % nth for nth in range(40_000))
    yield "a name in 40,000 pieces", mixed + b"--b\r\nContent-Disposition: attachment" + many + b"\r\n\r\nx\r\n--b--", None
    many = b"".join(b";\r\n p%d=a" % nth for nth in range(40_000))
    yield "40,000 parameters", b"Content-Type: text/plain" + many + b"\r\n\r\nbody", None
    yield "comments 500,000 deep", b"Cc: " + b"(" * 500_000 + b"\r\n\r\nbody", None
    yield "groups in groups", b"Cc: " + b"a:" * 200_000 + b"\r\n\r\nbody", None
    yield "500,000 quotes", b"Cc: " + b'"' * 500_000 + b"\r\n\r\nbody", None
    yield "100,000 angles", b"Cc: " + b"<" * 100_000 + b"\r\n\r\nbody", None
    yield "40,000 addresses in the header", b"Cc: " + b",\r\n ".join(b"a%d@b.example" % nth for nth in range(40_000)) + b"\r\n\r\nbody", None
    yield "encoded words", b"X-Words: " + b"\r\n ".join([b"=?utf-8?q?=C3=BC?="] * 30_000) + b"\r\n\r\nbody", None
    yield "half encoded words", b"Reply-To: " + b"=?utf-8?q?" * 50_000 + b"\r\n\r\nbody", None
    yield "base64 of nothing", b"Content-Transfer-Encoding: base64\r\n\r\n" + b"=" * 1_000_000, None
    yield "quoted-printable of nothing", b"Content-Transfer-Encoding: quoted-printable\r\n\r\n" + b"=\r\n" * 500_000, None
    yield "a line of 20 MB", b"\r\n" + b"x" * (20 << 20), None
    yield "NULs", b"\r\n" + b"\0" * 100_000, None
    yield "one byte too few", b"", None


def send_hostile_mails(tally, program):
    for what, content, is_refused in hostile_mails():
        since = time.monotonic()
        reply = Conversation(program, timeout=120).log_in().mail(HEADER + content, ["ann@hostile.example"])
        seconds = time.monotonic() - since
        is_right = is_well_formed(reply) and reply[0] in ("5" if is_refused else "25")
        tally.check(f"{what}: the answer", is_right, reply[:300])
        tally.check(f"{what}: its time", seconds < ANSWER_SECONDS_MAX, f"{seconds:.1f} s")
    served(tally, program, "hostile mails")


def send_large_mails(tally):
    """Large attachments at the same time. A bound of memory may refuse some with 452, which then come again."""
    program = Program("large")
    served(tally, program, "before large mails")
    before, peak, replies = program.memory_kib(), [0], []
    done = threading.Event()

    def watch():
        while not done.wait(0.05):
            peak[0] = max(peak[0], program.memory_kib())

    file = base64.encodebytes(os.urandom(1 << 20) * (LARGE_BYTES >> 20)).replace(b"\n", b"\r\n")
    content = HEADER + b"Content-Type: application/octet-stream; name=large.bin\r\nContent-Transfer-Encoding: base64\r\n\r\n" + file

    def send(nth):
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            try:
                reply = Conversation(program, timeout=240).log_in().mail(content, [f"n{nth}@hostile.example"])
            except (OSError, AssertionError) as problem:
                reply = f"4 {problem}"
            replies.append(reply)
            if not reply.startswith("4"):
                break
            time.sleep(0.5)

    watcher = threading.Thread(target=watch)
    watcher.start()
    senders = [threading.Thread(target=send, args=[nth]) for nth in range(LARGE_MAILS)]
    for one in senders:
        one.start()
    # The other clients share a processor with this one, and PostgreSQL writes half a gigabyte.
    served(tally, program, "large mails", seconds_max=120)
    for one in senders:
        one.join()
    done.set()
    watcher.join()
    accepted = sum(reply.startswith("250 ") for reply in replies)
    later = sum(reply.startswith("4") for reply in replies)
    grown = (peak[0] - before) >> 10
    print(f"{LARGE_MAILS} mails with {LARGE_BYTES >> 20} MiB: {accepted} accepted, {later} refused for a while, {grown} MiB more at most", flush=True)
    tally.equal("large mails that are accepted in the end", accepted, LARGE_MAILS)
    tally.check("the memory of large mails is bounded", grown < 768, f"{grown} MiB")
    program.stop()


def talk_at_random(tally, program):
    """Commands and bytes in any order and any pieces."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    tokens = [b"EHLO a\r\n", b"HELO a\r\n", b"MAIL FROM:<shop@judge.example>\r\n", b"RCPT TO:<ann@hostile.example>\r\n",
              b"DATA\r\n", b".\r\n", b"RSET\r\n", b"NOOP\r\n", b"AUTH LOGIN\r\n", b"AUTH PLAIN\r\n", b"*\r\n", b"AUTH", b" ",
              b"\r\n", b"\n", b"\r", b"\0", b"\xff\xfe", b"QUIT\r\n", b"VRFY x\r\n", b"HELP\r\n", b"x" * 1_200, b"BDAT 5 LAST\r\n",
              b"MAIL FROM:<", b"RCPT TO:<\"a", b"SIZE=", b"Subject: a\r\n", HEADER, b"=", b"\xc3\xbc", b"<>", b" SIZE=99999999999\r\n"]
    for nth in range(RANDOM_CONVERSATIONS):
        client = Conversation(program)
        if nth % 2:
            client.log_in()
        said = b"".join(chance.choices(tokens, k=chance.randrange(1, 40)))
        try:
            for piece in range(0, len(said), 700):
                client.send(said[piece:piece + 700])
            client.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # It has closed already.
        while reply := client.reply():
            if not tally.check(f"a reply at random (seed {seed})", is_well_formed(reply), f"{reply!r} to {said!r}"):
                break
        client.close()
    tally.check("it lives", program.is_alive())
    served(tally, program, "random conversations")


def judge(tally, program, receiver):
    trickle = Trickle(program)
    trickle.start()
    for part in (smuggle, inject_before_tls, send_hostile_mails, talk_at_random):
        since = time.monotonic()
        part(tally, program)
        print(f"{part.__name__}: {time.monotonic() - since:.1f} s", flush=True)
    for part in (too_many_sessions, leave_sessions, send_large_mails):
        since = time.monotonic()
        part(tally)
        print(f"{part.__name__}: {time.monotonic() - since:.1f} s", flush=True)
    trickle.judge(tally)
    smuggled = [to for recipients, _ in list(receiver.taken) for to in recipients if to == SMUGGLED]
    tally.equal("smuggled mails", smuggled, [])
