"""A program that computes the gradients of an admb peer, which is another process on the same machine.

The peer (`admb peer --learner external`) keeps the network, the updates and the journal. Vectors are in a file that both have
mapped, and short messages go through a Unix socket: docs/reference/external.md describes both. This module needs only Python.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Sequence

VERSION = 1
_JOIN, _WELCOME, _REFUSED, _ADD, _ADDED, _AVERAGE, _AVERAGED, _CHANGED, _BYE = range(1, 10)
USED, STALE, DUPLICATE, INVALID = range(4)
_PAGE = 4096
_ALIGNMENT = 16
_PARAMETERS, _SUMS, _AVERAGES, _VECTORS = 0, 2, 4, 5
_ADD_FORMAT = struct.Struct("<BIqId")
_ADDED_FORMAT = struct.Struct("<BI5q16s")
#: Seconds between two attempts to reach the peer.
_RETRY = 0.1


class Lost(ConnectionError):
    """The peer has gone, or has not come."""


class Refused(RuntimeError):
    """The peer does not take this program, or what it sends. The text says why."""


@dataclass(frozen=True)
class Block:
    """Some parameters of a model.

    name: unique in the model. length: number of float32 numbers. is_vector: whether they are biases or scales, which weight
    decay leaves out.
    """

    name: str
    length: int
    is_vector: bool = False


class Worker:
    """Hands gradients of the inputs of this process to a peer, and takes its predictors.

    Inputs have numbers, which the peer assigns in order: `next` is the next new one. Inputs that a crash or another predictor has
    left unused are in `again`, and are learned again. A sum of gradients is written into `sums[slot]`, and handed over with `add`.

        worker = Worker([Block("w", 10)], start=[array("f", [0] * 10)], socket_path="peer.sock")
        for number in range(worker.next, 1000):
            ...  # the gradient at worker.parameters[0], into worker.sums[0][0]
            worker.add(0, number, 1, loss)

    blocks: what the model consists of. start: the parameters that it starts from, for each block a buffer of float32 numbers; all
    programs of a network start from the same. fingerprint: text that they have in common. name: of this program, for messages to
    people. wait: seconds for which it waits for the peer. A forked process cannot use it.

    Raises Lost if the peer does not come or goes, and Refused if it refuses.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        start: Sequence[Any],
        socket_path: str,
        fingerprint: str = "",
        name: str = "a Python program",
        wait: float = 60.0,
    ) -> None:
        if len(start) != len(blocks):
            raise ValueError(f"{len(start)} blocks of parameters for {len(blocks)} blocks")
        self.blocks = list(blocks)
        self.socket_path = socket_path
        self.fingerprint = fingerprint
        self.name = name
        self.wait = wait
        self._owner = os.getpid()
        self._offsets: list[int] = []
        at = 0
        for block in self.blocks:
            self._offsets.append(at)
            at += -(-block.length // _ALIGNMENT) * _ALIGNMENT
        self._stride = at
        self._is_pending = False
        #: A peer without a checkpoint begins with them again, as its inputs begin with 0.
        self._begin = [bytes(memoryview(values).cast("B")) for values in start]
        self.resume()

    def resume(self) -> None:
        """Joins the peer as soon as it is there, and takes its newest predictor."""
        until = time.monotonic() + self.wait
        while True:
            try:
                return self._join(self._begin)
            except Lost:
                if time.monotonic() > until:
                    raise
                time.sleep(_RETRY)

    def _join(self, start: Sequence[Any]) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(max(1.0, self.wait))
        try:
            self._socket.connect(self.socket_path)
        except OSError as error:
            self._socket.close()
            if error.errno is None:
                raise ValueError(f"no socket can be at {self.socket_path} ({error}): give a shorter path") from error
            raise Lost(f"no peer listens at {self.socket_path} ({error})") from error
        self._buffer = bytearray()
        place = "/dev/shm" if os.path.isdir("/dev/shm") else None
        descriptor, path = tempfile.mkstemp(dir=place, prefix="admb-")
        try:
            size = _PAGE + 4 * self._stride * _VECTORS
            os.ftruncate(descriptor, size)
            if hasattr(os, "posix_fallocate"):
                # A full file system would end this process later.
                os.posix_fallocate(descriptor, 0, size)
            memory = mmap.mmap(descriptor, size)
            self.memory = memory
            floats = memoryview(memory)[_PAGE:].cast("f")
            self._newest = memoryview(memory)[:8].cast("q")
            self._vectors = [
                [floats[v * self._stride + o : v * self._stride + o + b.length] for o, b in zip(self._offsets, self.blocks)]
                for v in range(_VECTORS)
            ]
            for view, values in zip(self._vectors[_PARAMETERS], start):
                view[:] = memoryview(values).cast("f")
            #: Counts the predictors that were taken.
            self.generation = 0
            layout = [
                {"name": b.name, "length": b.length, **({"vectors": [[0, b.length]]} if b.is_vector else {})} for b in self.blocks
            ]
            join = {"version": VERSION, "name": self.name, "fingerprint": self.fingerprint, "memory": path, "blocks": layout}
            self._send(_JOIN, json.dumps(join).encode())
            # The peer may wait for its network first.
            self._socket.settimeout(None)
            welcome = json.loads(self._receive(_WELCOME))
        finally:
            # Both have mapped the file. Without a name, it ends with them.
            os.close(descriptor)
            os.unlink(path)
        #: Peer id, number of its run, b, and H.
        self.peer: str = welcome["self"]
        self.run: int = welcome["run"]
        self.batch: int = welcome["batch"]
        self.local_steps: int = welcome["localSteps"]
        self.next: int = welcome["next"]
        self.again: tuple[int, int] = (0, 0)
        self.updates: int = welcome["updates"]
        self.missing = 0
        self.digest = ""
        self._is_pending = False
        self.take()

    # --- vectors

    @property
    def parameters(self) -> list[memoryview]:
        """The predictor that was taken last, by block."""
        return self._vectors[_PARAMETERS + (self.generation & 1)]

    @property
    def sums(self) -> list[list[memoryview]]:
        """The two sums, each by block. One can be written while the peer reads the other."""
        return self._vectors[_SUMS : _SUMS + 2]

    def vector_offsets(self, vector: int) -> list[tuple[int, int]]:
        """Offset in bytes and length of each block in `memory`: vectors 0, 1 are parameters, 2, 3 sums, 4 the average."""
        return [(_PAGE + 4 * (vector * self._stride + o), b.length) for o, b in zip(self._offsets, self.blocks)]

    @property
    def newest(self) -> int:
        """Number of updates of the newest predictor of the peer, which may not be taken yet."""
        return int(self._newest[0])

    # --- messages

    def add(
        self, slot: int, first: int, count: int, loss: float, waits: bool = True, generation: int | None = None
    ) -> int:
        """Hands over the sum in `sums[slot]`: of inputs [first, first + count), with their mean loss.

        Returns USED; STALE if the gradients are of an old predictor; DUPLICATE if other inputs come next, or INVALID if numbers
        are not finite. The newest predictor is taken then. With `waits=False` the outcome follows from `settle`. generation: of the
        predictor at which they were computed. @default the one taken last, or before the outcome of the last `add`
        """
        self._check_owner()
        if generation is None:
            generation = self.generation
        if self._is_pending:
            outcome = self.settle()
            if outcome != USED:
                return outcome
        self._send(_ADD, _ADD_FORMAT.pack(slot, generation, first, count, loss))
        self._is_pending = True
        if waits:
            return self.settle()
        if count > 0:
            again, end = self.again
            self.again = (first + count, end) if first == again < end else (again, end)
            self.next = max(self.next, first + count)
            self.missing = max(0, self.missing - count)
        return USED

    @property
    def is_pending(self) -> bool:
        """Whether the outcome of the last `add` is not known yet."""
        return self._is_pending

    @property
    def has_outcome(self) -> bool:
        """Whether `settle` need not wait for the peer."""
        while self._is_pending and self._next(_ADDED) is None:
            if not select.select([self._socket], [], [], 0)[0]:
                return False
            self._read()
        return True

    def settle(self) -> int:
        """The outcome of the last `add`, if it is not known yet; otherwise USED."""
        if not self._is_pending:
            return USED
        self._is_pending = False
        reply = self._receive(_ADDED)
        outcome, self.generation, self.updates, self.next, again, end, self.missing, digest = _ADDED_FORMAT.unpack(reply)
        self.again = (again, end)
        self.digest = digest.hex()
        return int(outcome)

    def take(self) -> None:
        """Takes the newest predictor."""
        self._check_owner()
        self.settle()
        self._send(_ADD, _ADD_FORMAT.pack(0, 0, 0, 0, 0.0))
        self._is_pending = True
        self.settle()

    def average(self) -> list[memoryview]:
        """The running average of the newest predictor, by block, until the next call."""
        self.take()
        self._send(_AVERAGE)
        self._receive(_AVERAGED)
        return self._vectors[_AVERAGES]

    def bye(self) -> None:
        """Says that no further inputs are expected, so that the last gradients make an update."""
        self._check_owner()
        self.settle()
        self._send(_BYE)

    def close(self) -> None:
        """Ends the connection. The peer goes on without gradients of this process."""
        self._socket.close()

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError("a forked process cannot use the worker: create it in the process that learns")

    def _send(self, kind: int, content: bytes = b"") -> None:
        try:
            self._socket.sendall(struct.pack("<IB", len(content) + 1, kind) + content)
        except OSError as error:
            raise Lost(f"the peer at {self.socket_path} has gone ({error})") from error

    def _receive(self, wanted: int) -> bytes:
        while (found := self._next(wanted)) is None:
            self._read()
        end = 4 + int.from_bytes(self._buffer[:4], "little")
        del self._buffer[:end]
        return found

    def _next(self, wanted: int) -> bytes | None:
        """The content of the first message, if it has arrived and is wanted. Others before it are dropped."""
        while len(self._buffer) >= 5:
            length, kind = struct.unpack_from("<IB", self._buffer)
            if len(self._buffer) < 4 + length:
                return None
            content = bytes(self._buffer[5 : 4 + length])
            if kind == _REFUSED:
                raise Refused(json.loads(content)["error"])
            if kind == wanted:
                return content
            del self._buffer[: 4 + length]
        return None

    def _read(self) -> None:
        try:
            received = self._socket.recv(1 << 16)
        except OSError as error:
            raise Lost(f"the peer at {self.socket_path} has gone ({error})") from error
        if not received:
            raise Lost(f"the peer at {self.socket_path} has gone")
        self._buffer += received


def start_peer(
    socket_path: str,
    *,
    rule: str | None = None,
    average: str | None = None,
    batch: int | None = None,
    local_steps: int | None = None,
    join: str | Sequence[str] = (),
    state: str | None = None,
    options: Sequence[str] = (),
    command: Sequence[str] | None = None,
    log: Any = None,
) -> subprocess.Popen[bytes]:
    """Starts `admb peer --learner external`, which waits for a program at the socket.

    join: addresses of peers. state: its directory. options: further options, such as ("--name", "left"). command: how `admb` is
    called. @default the environment variable ADMB, `admb` on the path, or `npx admb`. log: file that receives its output.
    @default that of this process
    """
    if command is None:
        given = os.environ.get("ADMB")
        command = given.split() if given else ["admb"] if shutil.which("admb") else ["npx", "admb"]
    places = [join] if isinstance(join, str) else list(join)
    arguments = [*command, "peer", "--learner", f"external,socket={socket_path}"]
    values = {"--rule": rule, "--average": average, "--batch": batch, "--local-steps": local_steps, "--dir": state}
    for option, value in values.items():
        if value is not None:
            arguments += [option, str(value)]
    for place in places:
        arguments += ["--peer", place]
    return subprocess.Popen([*arguments, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
