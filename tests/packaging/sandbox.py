#!/usr/bin/env python3
"""Runs a program under the filter of system calls that systemd would make of a unit:
sandbox.py UNIT PROGRAM ARGUMENT...

SystemCallFilter=, RestrictAddressFamilies= and MemoryDenyWriteExecute= are taken from the unit, the
sets from `systemd-analyze syscall-filter`. A call that is not allowed ends the process by SIGSYS,
whatever error the unit would have it fail with. Needs systemd-analyze and a C compiler's headers.
"""

import ctypes
import os
import pathlib
import platform
import re
import struct
import subprocess
import sys

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# linux/bpf_common.h and linux/seccomp.h
LOAD, EQUAL, SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, KILL = 0x7FFF0000, 0x80000000
NUMBER, ARCH, ARGUMENTS = 0, 4, 16
PROT_WRITE, PROT_EXEC = 2, 4
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2


def settings(unit):
    """Values of each setting, in order."""
    found = {}
    for line in pathlib.Path(unit).read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def sets():
    """Names of systemd's sets with what is in them, sets among it."""
    told = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout
    found, current = {}, None
    for line in told.splitlines():
        word = line.strip()
        if line.startswith("@"):
            current = found.setdefault(word, set())
        elif line.startswith("#"):
            current = None
        elif word and not word.startswith("#") and current is not None:
            current.add(word)
    return found


def members(name, known):
    if not name.startswith("@"):
        return {name}
    return set().union(*(members(each, known) for each in known[name]))


def allowed(lines, known):
    """As systemd.exec(5) has it: the first line says that the list is of what is allowed."""
    names = members("@default", known)
    for line in lines:
        taken = line.startswith("~")
        for word in line.removeprefix("~").split():
            names = names - members(word, known) if taken else names | members(word, known)
    return names


def numbers():
    macros = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    values = dict(re.findall(r"^#define (__NR\w*) (\w+)$", macros, re.M))
    found = {}
    for name, value in values.items():
        value = values.get(value, value)
        if name.startswith("__NR_") and value.isdigit():
            found[name.removeprefix("__NR_")] = int(value)
    return found


def program(unit):
    said, known, number = settings(unit), sets(), numbers()
    names = allowed(said["SystemCallFilter"], known)

    def instruction(code, value, then=0, other=0):
        return struct.pack("HBBI", code, then, other, value)

    def argument(at):
        return instruction(LOAD, ARGUMENTS + 8 * at)

    code = [instruction(LOAD, ARCH), instruction(EQUAL, AUDIT_ARCH[platform.machine()], 1, 0),
            instruction(RETURN, KILL), instruction(LOAD, NUMBER)]

    def check(name, body):
        """Of one call: `body` ends with what is returned."""
        code.append(instruction(EQUAL, number[name], 0, len(body)))
        code.extend(body)

    if said.get("MemoryDenyWriteExecute") == ["yes"]:
        check("mmap", [argument(2), instruction(SET, PROT_EXEC, 0, 2), instruction(SET, PROT_WRITE, 0, 1),
                       instruction(RETURN, KILL), instruction(RETURN, ALLOW)])
        check("mprotect", [argument(2), instruction(SET, PROT_EXEC, 0, 1), instruction(RETURN, KILL),
                           instruction(RETURN, ALLOW)])
        names -= {"pkey_mprotect"}
    families = said["RestrictAddressFamilies"][0].split()
    body = [argument(0)]
    for family in families:
        body += [instruction(EQUAL, FAMILIES[family], 0, 1), instruction(RETURN, ALLOW)]
    check("socket", body + [instruction(RETURN, KILL)])
    for each in sorted(number[name] for name in names if name in number):
        code += [instruction(EQUAL, each, 0, 1), instruction(RETURN, ALLOW)]
    code.append(instruction(RETURN, KILL))
    return b"".join(code)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def main(unit, command):
    code = program(unit)
    libc = ctypes.CDLL(None, use_errno=True)
    whole = Program(len(code) // 8, code)
    for call in [(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(whole), 0, 0)]:
        if libc.prctl(*call) != 0:
            sys.exit(f"sandbox: no filter here: {os.strerror(ctypes.get_errno())}")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
