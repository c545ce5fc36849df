#!/usr/bin/python3
"""Records session.txt: a person's keys in bash, vim, less, menus and at prompts for passwords, each with what the programs
answered, in a pty of 80 columns and 24 rows.

    /usr/bin/python3 record.py session.txt

One line a key: the part of the session, the pause before it in ms, the terminal's modes after the answer (E: ECHO, C: ICANON), the
key, and the answer, with tabs between them. Pauses are drawn from a seeded generator: a typist of some 60 words a minute on a link of
600 ms, who mostly waits for a prompt, reads what a command wrote, and at times types ahead.
"""

import os
import pty
import random
import select
import shutil
import sys
import termios
import time
import fcntl
import struct

HOME = "/tmp/alice"
COLUMNS, ROWS = 80, 24
chance = random.Random(1985)
lines = []


def escape(data):
    out = []
    for byte in data:
        if byte == 0x1B:
            out.append("\\e")
        elif byte == 0x0D:
            out.append("\\r")
        elif byte == 0x0A:
            out.append("\\n")
        elif byte == 0x09:
            out.append("\\t")
        elif byte == 0x5C:
            out.append("\\\\")
        elif 0x20 <= byte < 0x7F:
            out.append(chr(byte))
        else:
            out.append("\\x%02x" % byte)
    return "".join(out)


class Session:
    def __init__(self):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(HOME)
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], {
                "HOME": HOME, "TERM": "xterm-256color", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
                "PS1": "alice@harbour:\\w$ ", "HISTFILE": "/dev/null", "LESSHISTFILE": "-", "LC_ALL": "C.UTF-8",
                "GIT_CONFIG_GLOBAL": "/dev/null", "MANPAGER": "less"})
        self.pid = pid
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.part, self.next_pause, self.secret = "shell", 1200, False
        first = self.answer(0.6)
        lines.append(("start", 0, self.modes(), b"", first))

    def modes(self):
        flags = termios.tcgetattr(self.fd)[3]
        return ("E" if flags & termios.ECHO else "-") + ("C" if flags & termios.ICANON else "-")

    def answer(self, quiet):
        data = b""
        while select.select([self.fd], [], [], quiet)[0]:
            try:
                data += os.read(self.fd, 65536)
            except OSError:
                break
        return data

    def key(self, key, quiet=0.03):
        if isinstance(key, str):
            key = key.encode()
        pause, self.next_pause = self.next_pause, self.gap()
        os.write(self.fd, key)
        answer = self.answer(quiet)
        part = "password" if self.secret else self.part
        lines.append((part, pause, self.modes(), key, answer))

    @staticmethod
    def gap():
        """Between two letters: 60 words a minute, with the spread of people."""
        return int(min(900, chance.lognormvariate(5.1, 0.45)))

    def think(self, low, high):
        self.next_pause = chance.randint(low, high)

    def text(self, text):
        """Letters, now and then a wrong one that is taken back."""
        for letter in text:
            if letter.isalpha() and chance.random() < 0.025:
                self.key(chance.choice("abcdefghijklmnopqrstuvwxyz"))
                self.think(150, 500)
                self.key("\x7f")
            self.key(letter)

    def enter(self, quiet=0.12):
        self.key("\r", quiet)

    def command(self, text, quiet=0.12):
        self.text(text)
        self.enter(quiet)
        if chance.random() < 0.12:
            self.think(180, 450)
        else:
            self.think(1100, 4200)


def files():
    shutil.rmtree(HOME, ignore_errors=True)
    os.makedirs(HOME + "/harbour/logs")
    os.makedirs(HOME + "/harbour/src")
    words = ("ship crane tide berth pilot cargo rope anchor buoy signal channel depth water wind harbour master light tower "
             "ballast manifest customs container north south east west arrival departure").split()
    draw = random.Random(7)
    with open(HOME + "/harbour/logs/arrivals.log", "w") as out:
        for number in range(400):
            out.write("2026-03-%02d %02d:%02d %s %s %s at berth %d\n" % (
                1 + number // 20, draw.randrange(24), draw.randrange(60), draw.choice(words), draw.choice(words),
                draw.choice(["arrived", "left", "delayed", "waits"]), draw.randrange(1, 40)))
    with open(HOME + "/harbour/notes.txt", "w") as out:
        for number in range(12):
            out.write(" ".join(draw.choice(words) for _ in range(draw.randrange(5, 11))) + "\n")
    with open(HOME + "/harbour/src/tide.py", "w") as out:
        out.write("import math\n\n\ndef height(hour):\n    return 2.4 + 1.8 * math.sin(hour / 12.42 * math.tau)\n\n\n"
                  "for hour in range(6):\n    print(f'{hour:2} {height(hour):.2f}')\n")
    with open(HOME + "/harbour/berth", "w") as out:
        out.write("#!/bin/bash\nPS3='Berth? '\nselect berth in north south quay dock done; do\n"
                  "  [ \"$berth\" = done ] && break\n  echo \"berth: $berth\"\ndone\n"
                  "read -r -p 'Name of the ship: ' ship\nread -r -p \"Book $ship? [y/n] \" answer\n"
                  "read -r -s -p 'Harbour code: ' code\necho\necho \"booked: ${#code}\"\n")
    with open(HOME + "/harbour/unlock", "w") as out:
        out.write("#!/usr/bin/python3\nimport getpass\nuser = input('User: ')\n"
                  "word = getpass.getpass('Password: ')\nprint('welcome', user, len(word))\n")
    with open(HOME + "/harbour/menu", "w") as out:
        out.write("""#!/usr/bin/python3
import curses


def main(screen):
    curses.curs_set(0)
    items = ['Arrivals', 'Departures', 'Berths', 'Pilots', 'Weather', 'Leave']
    at, chosen = 0, ''
    while True:
        screen.erase()
        screen.box()
        screen.addstr(1, 4, 'Harbour office ' + chosen)
        for row, item in enumerate(items):
            screen.addstr(3 + row, 6, item, curses.A_REVERSE if row == at else 0)
        screen.refresh()
        key = screen.getch()
        if key == curses.KEY_DOWN:
            at = min(at + 1, len(items) - 1)
        elif key == curses.KEY_UP:
            at = max(at - 1, 0)
        elif key in (10, 13):
            chosen = items[at]
            if at == len(items) - 1:
                return


curses.wrapper(main)
""")
    for name in ("berth", "unlock", "menu"):
        os.chmod(HOME + "/harbour/" + name, 0o755)


UP, RIGHT, LEFT = "\x1b[A", "\x1b[C", "\x1b[D"
# What the arrows send to programs that ask for the keypad's application mode.
MENU_UP, MENU_DOWN = "\x1bOA", "\x1bOB"


def shell_one(s):
    s.part = "shell"
    s.command("cd harbour")
    s.command("ls -l | awk '{print $5, $9}'")
    s.command("grep -c delayed logs/arrivals.log")
    s.command("sort -k3 logs/arrivals.log | head -n 5")
    s.text("cut -d' ' -f4 logs/arr")
    s.key("\t")
    s.think(700, 1000)
    s.command("| sort | uniq -c | sort -rn | head")
    s.command("for day in 01 02 03; do grep -c \"2026-03-$day\" logs/arrivals.log; done")
    s.key(UP)
    s.think(700, 1100)
    for _ in range(5):
        s.key(LEFT)
    s.text("; echo --")
    s.key("\x05")
    s.enter()
    s.think(1200, 2500)
    s.command("echo 'the pilot boat is at the north berth' >> notes.txt")
    s.command("wc notes.txt; tail -n 2 notes.txt")
    s.command("python3 src/tide.py", 0.3)
    s.text("grp -n berth notes.txt")
    s.key("\x01")
    s.key(RIGHT)
    s.key("e")
    s.think(200, 400)
    s.enter()
    s.think(900, 2000)


def shell_two(s):
    s.part = "shell"
    s.command("mkdir -p backup/2026-03 && cp logs/arrivals.log backup/2026-03/")
    s.command("gzip -9 backup/2026-03/arrivals.log && ls backup/2026-03")
    s.command("zcat backup/2026-03/arrivals.log.gz | grep -v arrived | wc -l")
    s.command("echo Grüße aus Zürich, 港口 und café")
    s.text("sed -i 's/crane/kran/g' notes.txt")
    s.key("\x03", 0.12)
    s.think(900, 1500)
    s.command("sed 's/crane/kran/g' notes.txt | head -n 3")
    s.command("cat > todo.txt")
    s.command("paint the north buoy before the spring tide")
    s.command("order two coils of rope and a new signal lamp")
    s.command("ask customs for the manifest of the container ship")
    s.key("\x04", 0.12)
    s.think(900, 1500)
    s.command("nl todo.txt")
    s.key("\x12")
    s.text("zcat")
    s.think(700, 1200)
    s.enter()
    s.think(1500, 2500)
    s.command("awk '$4 == \"delayed\" {print $1, $2, $7}' logs/arrivals.log | head -n 4")


def shell_three(s):
    s.part = "shell"
    s.command("date -u -d '2026-03-01 12:00' '+%A, %d %B %Y'")
    s.command("printf '%s\\n' north south east west | paste -sd, -")
    s.command("tar -czf /tmp/alice/harbour.tar.gz . && tar -tzf /tmp/alice/harbour.tar.gz | head -n 6")
    s.command("test -s todo.txt && echo there are $(wc -l < todo.txt) things to do")
    s.command("chmod -x src/tide.py; stat -c '%a %n' src/tide.py berth")
    s.command("cd ..; du -s --apparent-size harbour | cut -f2; cd harbour")


def editor(s, text_lines, name):
    s.part = "editor"
    s.text("vim -u NONE -N --cmd 'set noswapfile' " + name)
    s.enter(0.5)
    s.think(1200, 2200)
    s.key("G")
    s.think(400, 800)
    s.key("o")
    s.think(300, 700)
    for number, line in enumerate(text_lines):
        s.text(line)
        if number + 1 < len(text_lines):
            s.enter(0.05)
    s.think(200, 500)
    s.key("\x1b", 0.05)
    s.think(300, 800)
    for key in "kkbb":
        s.key(key, 0.04)
        s.think(180, 350)
    s.key("i")
    s.think(300, 600)
    s.text("about ")
    s.key("\x1b", 0.05)
    s.think(500, 1000)
    s.key("x")
    s.think(400, 800)
    s.key("u")
    s.think(500, 900)
    s.text(":w")
    s.enter(0.1)
    s.think(900, 1500)
    s.text(":q")
    s.enter(0.3)
    s.think(1100, 2000)


def pager(s, words, moves):
    s.part = "pager"
    s.text("less logs/arrivals.log")
    s.enter(0.3)
    s.think(1200, 2500)
    for word in words:
        s.key("/")
        s.text(word)
        s.enter(0.1)
        s.think(1100, 2500)
        s.key("n", 0.06)
        s.think(900, 2000)
    for key in moves:
        s.key(key, 0.05)
        s.think(250, 1500)
    s.key("q", 0.2)
    s.think(1000, 2000)


def secrets(s, name, word):
    s.part = "menu"
    s.text("./unlock")
    s.enter(0.4)
    s.think(1000, 1800)
    s.text(name)
    s.enter(0.1)
    s.think(900, 1600)
    s.secret = True
    s.text(word)
    s.enter(0.2)
    s.secret = False
    s.think(1100, 2000)


def menus(s, answers, ship, keys):
    s.part = "menu"
    s.text("./berth")
    s.enter(0.2)
    s.think(1100, 2000)
    for answer in answers:
        s.text(answer)
        s.enter(0.08)
        s.think(1000, 1900)
    s.text(ship)
    s.enter(0.08)
    s.think(1000, 1500)
    s.text("y")
    s.enter(0.08)
    s.think(1000, 1500)
    s.secret = True
    s.text("tr0ub4dor&3")
    s.enter(0.2)
    s.secret = False
    s.think(1100, 2000)
    s.text("./menu")
    s.enter(0.4)
    s.think(1100, 2000)
    for key in keys:
        s.key(key, 0.06)
        s.think(250, 900)
    s.key("\r", 0.3)
    s.think(1100, 2000)


def main():
    files()
    s = Session()
    shell_one(s)
    pager(s, ["delayed", "berth 12"], "   bjjjjkkGg" + "jj")
    secrets(s, "alice", "correct horse battery")
    editor(s, [
        "The crane at the south quay needs new brakes before summer.",
        "Until then nothing heavier than ten tons is lifted there.",
        "",
        "Pilots report that the light on the east tower is weak.",
    ], "notes.txt")
    shell_two(s)
    menus(s, ["2", "4", "5"], "Perla del Norte", [MENU_DOWN, MENU_DOWN, "\r", MENU_UP, "\r", MENU_DOWN, MENU_DOWN, MENU_DOWN, MENU_DOWN])
    pager(s, ["pilot cargo", "2026-03-09", "waits at berth 3"], "  bjjjkdu")
    editor(s, [
        "def next_high(hour):",
        "    while height(hour + 0.1) > height(hour):",
        "        hour += 0.1",
        "    return round(hour, 1)",
    ], "src/tide.py")
    shell_three(s)
    secrets(s, "harbour-master", "low tide at 6:15")
    pager(s, ["left at berth", "tower"], "    jjjkkb")
    menus(s, ["1", "9", "5"], "Kong Harald", [MENU_DOWN, "\r", MENU_DOWN, MENU_DOWN, MENU_DOWN, "\r", MENU_DOWN, MENU_DOWN])
    shutil.rmtree(HOME, ignore_errors=True)
    with open(sys.argv[1], "w") as out:
        for part, pause, modes, key, answer in lines:
            out.write("\t".join([part, str(pause), modes, escape(key), escape(answer)]) + "\n")
    counts = {}
    for part, *_ in lines[1:]:
        counts[part] = counts.get(part, 0) + 1
    print(counts, sum(counts.values()))


main()
