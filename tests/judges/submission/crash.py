"""Clients that die at every byte of a conversation, and a server that is killed under load. Whoever did not read a 250
repeats the mail, as every mail server does: each mail must arrive exactly once."""

import base64
import socket
import struct
import threading
import time

from program import KEY, Conversation, Program

REPEAT_SECONDS_MAX = 60
KILLS = 4
SENDERS = 8
MAILS_PER_SENDER = 25
DOMAIN = "crash.example"


def content(name):
    return (f"From: Shop <shop@judge.example>\r\nTo: {name}@{DOMAIN}\r\nSubject: {name}\r\n"
            f"Message-ID: <{name}@judge.example>\r\nX-Waypost-Tracking: off\r\n\r\n..\r\nHello\r\n").encode()


def conversation(name):
    """Every byte of a client that sends one mail."""
    login = base64.b64encode(b"\0waypost\0" + KEY.encode()).decode()
    head = (f"EHLO judge.example\r\nAUTH PLAIN {login}\r\nMAIL FROM:<shop@judge.example>\r\n"
            f"RCPT TO:<{name}@{DOMAIN}>\r\nDATA\r\n")
    return head.encode() + content(name) + b".\r\nQUIT\r\n"


def die_after(program, count, waits):
    """Sends the first bytes of a conversation and dies: at once, or when the server has had time to read them."""
    client = Conversation(program)
    client.send(conversation(f"byte{count}{'w' if waits else ''}")[:count])
    if waits:
        time.sleep(0.01)
    # The connection is reset, as that of a process that is killed with replies unread.
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def repeat(program, name):
    """Sends the mail until it is accepted; returns the last reply."""
    reply = ""
    deadline = time.monotonic() + REPEAT_SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            client = Conversation(program).log_in()
            reply = client.mail(content(name)[:-2], [f"{name}@{DOMAIN}"])
            client.close()
            if reply.startswith(("2", "5")):
                return reply
        except (OSError, AssertionError) as problem:
            reply = str(problem)
        time.sleep(0.1)
    return reply


def die_at_every_byte(tally, program):
    names = []
    for count in range(1, len(conversation("byte999w")) + 1):
        waits = count % 2 == 0
        name = f"byte{count}{'w' if waits else ''}"
        die_after(program, count, waits)
        reply = repeat(program, name)
        tally.check(f"repeated after {count} bytes", reply.startswith("250 "), reply)
        names.append(name)
    return names


def kill_the_server(tally):
    """Senders repeat each mail until its 250, while the server is killed again and again."""
    names = [f"kill{sender}x{nth}" for sender in range(SENDERS) for nth in range(MAILS_PER_SENDER)]
    program = Program("killed-0")
    ports = program.port, program.tls_port
    replies = {}

    def send(own):
        for name in own:
            replies[name] = repeat(program, name)

    def part(nth):
        return threading.Thread(target=send, args=[names[nth::SENDERS]])

    senders = [part(nth) for nth in range(SENDERS)]
    for sender in senders:
        sender.start()
    running = program
    for nth in range(KILLS):
        time.sleep(0.4)
        running.process.kill()
        running.process.wait()
        running = Program(f"killed-{nth + 1}", ports)
    for sender in senders:
        sender.join()
    for name in names:
        reply = replies.get(name, "no reply")
        tally.check(f"{name} is accepted in the end", reply.startswith("250 "), reply)
    running.stop()
    return names


def judge(tally, program, receiver):
    names = die_at_every_byte(tally, program) + kill_the_server(tally)
    wanted = {f"{name}@{DOMAIN}" for name in names}
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        arrived = [to for recipients, _ in list(receiver.taken) for to in recipients if to.endswith("@" + DOMAIN)]
        if wanted <= set(arrived):
            break
        time.sleep(0.2)
    time.sleep(2)  # For a second mail, if there is one.
    arrived = [to for recipients, _ in list(receiver.taken) for to in recipients if to.endswith("@" + DOMAIN)]
    for recipient in sorted(wanted):
        tally.equal(f"mails to {recipient}", arrived.count(recipient), 1)
