"""Usage: complete_in_shell.py SHELL SCRIPT

Types lines with a TAB into an interactive shell on a terminal of its own. A stub named `disttf` prints its
arguments, which this program reads."""
import os
import pty
import re
import select
import sys
import time

LINES = [
    ("disttf laun\t", "[launch]"),
    ("disttf launch --print_w\t", "[launch][--print_weights_hash]"),
    ("disttf launch --log_format js\t", "[launch][--log_format][json]"),
    ("disttf launch --log_format=js\t", "[launch][--log_format=json]"),
    ("disttf predict trained --labels lab\t", "[predict][trained][--labels][labels.idx]"),
    ("disttf launch --train_dir tra\t", "[launch][--train_dir][trained/]"),
    ("disttf serve tra\t", "[serve][trained/]"),
    ("disttf render stateful\t", "[render][statefulset]"),
    ("disttf checkpoint ver\t tra\t", "[checkpoint][verify][trained/]"),
]
START = {
    "bash": (["bash", "--noprofile", "--norc", "-i"], "source {script}; bind 'set bell-style none'"),
    "zsh": (["zsh", "-f", "-i"], "setopt no_auto_remove_slash; autoload -Uz compinit; compinit -u -D; source {script}"),
    "fish": (["fish", "--no-config", "-i"], "source {script}"),
}
PATIENCE_S = 60


class Terminal:
    def __init__(self, words):
        self.said = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.execvp(words[0], words)

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, pattern):
        """Returns the match in the output from now on; exits with that output after PATIENCE_S."""
        end = time.monotonic() + PATIENCE_S
        while (found := re.search(pattern, self.said)) is None:
            if time.monotonic() > end or not select.select([self.fd], [], [], 1)[0]:
                if time.monotonic() > end:
                    raise SystemExit(f"{pattern!r} was not said:\n{self.said!r}")
                continue
            try:
                self.said += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                raise SystemExit(f"the shell has ended:\n{self.said!r}")
        self.said = self.said[found.end():]
        return found

    def end(self):
        """Waits until no process is left that could write, e.g. a history, into a folder about to be removed."""
        self.type("exit\n")
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass  # the shell has closed its side of the terminal
        os.waitpid(self.pid, 0)


def main(shell, script):
    words, start = START[shell]
    terminal = Terminal(words)
    terminal.type(start.format(script=script) + "; echo REA''DY\n")
    terminal.wait_for("READY")
    for line, expected in LINES:
        terminal.type(line + "\n")
        called = terminal.wait_for(r"CALLED(\S+)").group(1)
        if called != expected:
            raise SystemExit(f"{line!r} became {called}, not {expected}")
    terminal.end()
    print(f"{shell}: {len(LINES)} lines")


main(*sys.argv[1:])
