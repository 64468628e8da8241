"""Runs a program on a terminal of its own and prints what the terminal shows.

    python3 terminal.py WIDTH STEPS PROGRAM ARGUMENT...

STEPS is a JSON list. ["see", TEXT] reads until the terminal shows a text after the one seen before, ["type", TEXT] presses
keys, and ["open", FIFO] waits until another program writes into a named pipe, whose text is shown too.
"""

import fcntl
import json
import os
import pty
import struct
import sys
import termios

width, steps, program = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    os.execvp(program[0], program)

shown = b""


def read() -> bool:
    """Reads more; False at the end of the program."""
    global shown
    try:
        more = os.read(terminal, 65536)
    except OSError:
        more = b""
    shown += more
    return more != b""


seen = 0
for kind, text in steps:
    if kind == "see":
        while (at := shown.find(text.encode(), seen)) < 0:
            if not read():
                sys.exit(f"{text!r} was not shown: {shown.decode(errors='replace')}")
        seen = at + len(text.encode())
    elif kind == "type":
        os.write(terminal, text.encode())
    else:
        with open(text, "rb") as pipe:
            shown += pipe.read()
while read():
    pass
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
