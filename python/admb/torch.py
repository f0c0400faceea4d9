"""A model of PyTorch as the learner of an admb peer.

    learner = Learner(model, rule="adamw,step=0.0003", batch=4096, join="/ip4/…/p2p/…", state="state")
    for rows in learner.spans(len(x), batch=32):
        learner.step(loss_fn(model(x[rows]), y[rows]))
    with learner.averaged():
        evaluate(model)
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from typing import Any, Iterator, Sequence

import torch

from .worker import INVALID, USED, Block, Lost, Refused, Worker, start_peer

__all__ = ["Learner", "Lost", "Refused"]


class Learner:
    """Learns a model together with the other peers of a network.

    model: its parameters that require gradients are learned; those that are shared by name count once, and buffers stay local.
    Their device and type do not matter. All peers start from the same parameters: call `torch.manual_seed` before the model is
    made.

    rule, average: as in `admb train --rule help`, for gradients. optimizer, local_steps: instead of gradients, the optimizer makes
    H steps between contributions, and the network averages the copies. batch: b, inputs per update of the network.

    join: addresses of peers of a network. state: directory of the peer, with which it and its inputs survive a crash. options:
    further options of `admb peer`. socket: joins the peer there, and starts none if one listens. fingerprint: text that all
    programs have in common, such as a version of the loss. wait: seconds for which it waits for the peer.

    Raises Lost if the peer goes (then call `resume`), and Refused, with the reason, if it takes neither model nor gradients.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        *,
        rule: str | None = None,
        average: str | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        local_steps: int = 1,
        batch: int | None = None,
        join: str | Sequence[str] = (),
        state: str | None = None,
        socket: str | None = None,
        options: Sequence[str] = (),
        command: Sequence[str] | None = None,
        log: Any = None,
        fingerprint: str = "",
        wait: float = 60.0,
    ) -> None:
        if (optimizer is not None) != (local_steps > 1):
            raise ValueError("local steps need an optimizer, and an optimizer needs local_steps of at least 2")
        self.model = model
        self.optimizer = optimizer
        self._given = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not self._given:
            raise ValueError("no parameter of the model requires gradients")
        blocks = [Block(name, p.numel(), p.dim() < 2) for name, p in self._given.items()]
        start = [p.detach().to("cpu", torch.float32).contiguous().view(-1).numpy() for p in self._given.values()]
        if socket is None:
            socket = f"{os.path.abspath(state)}.sock" if state else os.path.join(tempfile.mkdtemp(prefix="admb-"), "peer.sock")
        self._process = None
        if not _is_served(socket):
            steps = None if local_steps == 1 else local_steps
            settings = {"rule": rule, "average": average, "batch": batch, "local_steps": steps}
            self._launch = lambda: start_peer(
                socket, **settings, join=join, state=state, options=options, command=command, log=log
            )
            self._process = self._launch()
        self._has_state = state is not None
        self._local = local_steps
        #: Local steps that are not handed over yet, and their first input, end and loss.
        self._steps, self._first, self._end, self._loss = 0, 0, 0, 0.0
        #: Local steps that were handed over before there were H of them.
        self._ahead = 0
        #: Inputs of local steps since the last predictor, and what was handed over of them.
        self._inputs = 0
        self._handed: list[torch.Tensor] = []
        #: Whether these steps are of inputs that are learned again.
        self._is_again = False
        self._span: tuple[int, int, bool] | None = None
        self._seen = -1
        name = type(model).__name__
        try:
            self.worker = _Joining(self._process, blocks, start, socket, fingerprint, name, wait).worker
            self._check_steps()
        except BaseException:
            self._end_process()
            raise
        self._map()
        self._load()

    def resume(self) -> None:
        """Joins the peer again after Lost, as soon as it is there.

        A peer that this program started is started again if it has a state directory.
        """
        if self._process is not None and self._has_state:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
                if not _is_served(self.worker.socket_path):
                    self._process = self._launch()
        self.worker.resume()
        self._check_steps()
        self._map()
        self._steps, self._seen, self._span = 0, -1, None
        self._load()

    def _check_steps(self) -> None:
        """Gradients must not be taken for differences of copies, and conversely."""
        steps = self.worker.local_steps
        if steps != self._local:
            self.worker.close()
            wanted = "give no optimizer and no local_steps" if steps == 1 else f"give an optimizer and local_steps={steps}"
            raise Refused(f"the network learns with {steps} local steps, and this program makes {self._local}: {wanted}")

    @property
    def updates(self) -> int:
        """Number of updates of the predictor that the model holds."""
        return self.worker.updates

    @property
    def digest(self) -> str:
        """Identifies the parameters and the state of the predictor: equal on all peers that hold it."""
        return self.worker.digest

    # --- inputs

    def spans(
        self, total: int, batch: int = 32, epochs: int = 1, shuffle: bool = False, seed: int = 0
    ) -> Iterator[slice | torch.Tensor]:
        """Yields the rows of each step, until all inputs of the epochs have been handed over: first those to learn again.

        total: number of rows. shuffle: the rows of each epoch are in an order that follows from `seed`. Returns slices, or index
        tensors if rows are shuffled. `step` follows for each.
        """
        if batch < 1:
            raise ValueError(f"a batch of {batch} rows: it has at least 1")
        orders: dict[int, torch.Tensor] = {}
        while True:
            # Inputs of a sum are all new, or all learned again.
            again, end = self.worker.again
            is_again = self._is_again if self._steps > 0 else again < end
            first = self._end if self._steps > 0 else again if is_again else max(self.worker.next, self._end)
            end = end if is_again else epochs * total
            if first < end:
                epoch = first // total
                count = min(batch, end - first, (epoch + 1) * total - first)
                self._span = (first, count, is_again)
                row = first - epoch * total
                if not shuffle:
                    yield slice(row, row + count)
                    continue
                if epoch not in orders:
                    generator = torch.Generator().manual_seed(seed + epoch)
                    orders = {epoch: torch.randperm(total, generator=generator)}
                yield orders[epoch][row : row + count]
            elif self._steps > 0:
                self._contribute()
            elif self._settle() and self.worker.again[0] >= self.worker.again[1]:
                if self.worker.next >= end:
                    return

    def step(self, loss: torch.Tensor, count: int | None = None) -> bool:
        """Computes the gradients of a loss, and hands them over.

        loss: the mean over the inputs, of shape (). count: number of inputs of a stream that cannot be read again. @default those
        of the last span. Returns False if the gradients, or those of the step before, were too old: `spans` yields the inputs again.
        """
        if loss.dim() != 0:
            raise ValueError(f"the loss has the shape {tuple(loss.shape)}: give the mean over the inputs")
        if count is not None:
            self._span = (max(self.worker.next, self._end), count, False)
        if self._span is None:
            raise ValueError("step needs the number of inputs: give count, or take the rows from spans")
        first, count, is_again = self._span
        (self.optimizer or self.model).zero_grad()
        loss.backward()
        if self._local == 1:
            return self._hand_gradients(first, count, float(loss.detach()))
        return self._step_locally(first, count, is_again, float(loss.detach()))

    def _hand_gradients(self, first: int, count: int, loss: float) -> bool:
        with torch.no_grad():
            for view, p in zip(self._sums[self._slot], self._given.values()):
                if p.grad is None:
                    view.zero_()
                else:
                    view.copy_((p.grad.to_dense() if p.grad.is_sparse else p.grad).reshape(-1))
                    view.mul_(count)
        # Without these, the network cannot make an update yet, and the next gradients are computed meanwhile.
        return self._hand_over(first, count, loss, waits=count >= self.worker.missing)

    def _step_locally(self, first: int, count: int, is_again: bool, loss: float) -> bool:
        assert self.optimizer is not None
        self.optimizer.step()
        if self._steps == 0:
            self._first, self._is_again = first, is_again
        self._steps += 1
        self._inputs += count
        self._end = first + count
        self._loss = loss
        # The peer adds and updates while the program makes further steps. When it has another predictor, what has been done until
        # now is handed over, and then the copy begins with that predictor.
        worker = self.worker
        if worker.has_outcome and not self._settle():
            return False
        steps = self._ahead + self._steps
        is_last = is_again and self._end >= worker.again[1]
        if not (steps >= self._local or is_last or worker.generation != self._seen):
            if worker.newest > worker.updates and not worker.is_pending:
                # The peer copies its newest predictor.
                worker.add(self._slot, 0, 0, 0.0, waits=False)
            return True
        self._ahead = 0 if steps >= self._local else steps
        return self._contribute(waits=False)

    def _contribute(self, waits: bool = True) -> bool:
        """Hands over n times the difference from the predictor, less what was handed over before: the update is the mean."""
        with torch.no_grad():
            # Only a copy that goes on needs to know what was handed over.
            goes_on = self.worker.generation == self._seen
            for k, (view, start, p) in enumerate(zip(self._sums[self._slot], self._start, self._given.values())):
                torch.sub(start, p.detach().to("cpu", torch.float32).reshape(-1), out=view).mul_(self._inputs)
                if k < len(self._handed):
                    self._handed[k].add_(view.sub_(self._handed[k]))
                elif goes_on:
                    self._handed.append(view.clone())
        self._steps = 0
        return self._hand_over(self._first, self._end - self._first, self._loss, waits)

    def _hand_over(self, first: int, count: int, loss: float, waits: bool = True) -> bool:
        outcome = self.worker.add(self._slot, first, count, loss, waits, generation=self._seen)
        self._slot = 1 - self._slot
        return self._finish(outcome)

    def _settle(self) -> bool:
        """Waits until the peer has read what was handed over last. Returns whether it uses it."""
        outcome = self.worker.settle()
        return outcome == USED or self._finish(outcome)

    def _finish(self, outcome: int) -> bool:
        """Begins with the newest predictor that is known, unless it is the one that the copy began with."""
        if outcome != USED:
            # A copy with steps that were not taken must not go on.
            self._seen, self._steps, self._end = -1, 0, 0
        self._load()
        if outcome == INVALID:
            raise ValueError(f"the loss or the gradients of inputs from {self.worker.next} on are not finite: use a smaller step")
        return outcome == USED

    # --- predictors

    def take(self) -> None:
        """Gives the model the newest predictor of the peer, after local steps until now are handed over."""
        if self._steps > 0:
            self._contribute()
        self._settle()
        self.worker.take()
        self._load()

    def finish(self) -> None:
        """Says that no further inputs are expected, so that the last gradients make an update."""
        self.worker.bye()

    @contextlib.contextmanager
    def averaged(self) -> Iterator[torch.nn.Module]:
        """The model has the running average of the newest predictor within this context."""
        if self._steps > 0:
            self._contribute()
        self._settle()
        self.worker.average()
        # Gradients that follow count as those of the newest predictor.
        self._load()
        kept = [p.detach().clone() for p in self._given.values()]
        try:
            with torch.no_grad():
                for view, p in zip(self._average, self._given.values()):
                    p.copy_(view.view(p.shape))
            yield self.model
        finally:
            with torch.no_grad():
                for p, before in zip(self._given.values(), kept):
                    p.copy_(before)

    def state_dict(self, average: bool = True) -> dict[str, torch.Tensor]:
        """The state of the model, with the running average of its learned parameters, or the newest ones."""
        if not average:
            self.take()
            return {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        with self.averaged():
            return {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def close(self) -> None:
        """Ends the connection, and the peer that was started for it."""
        self.worker.close()
        self._end_process()

    def __enter__(self) -> Learner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)

    def _map(self) -> None:
        """Tensors over the memory that is shared with the peer."""

        def tensors(vector: int) -> list[torch.Tensor]:
            return [
                torch.frombuffer(self.worker.memory, dtype=torch.float32, count=length, offset=offset)
                for offset, length in self.worker.vector_offsets(vector)
            ]

        self._parameters = [tensors(0), tensors(1)]
        self._sums = [tensors(2), tensors(3)]
        self._slot = 0
        self._average = tensors(4)

    def _load(self) -> None:
        if self._seen == self.worker.generation:
            return
        self._seen = self.worker.generation
        self._start = self._parameters[self._seen & 1]
        with torch.no_grad():
            for view, p in zip(self._start, self._given.values()):
                p.copy_(view.view(p.shape))
        if self._local > 1:
            self._inputs, self._steps, self._end = 0, 0, 0
            self._handed = []


class _Joining:
    """Joins a peer, unless its process ends before."""

    def __init__(self, process: Any, blocks: Any, start: Any, socket: str, fingerprint: str, name: str, wait: float) -> None:
        waited = 0.0
        while True:
            try:
                self.worker = Worker(blocks, start, socket, fingerprint, name, wait=0.2)
                self.worker.wait = wait
                return
            except Lost:
                if process is not None and process.poll() is not None:
                    raise Lost(f"admb peer has ended with code {process.returncode}: see its output") from None
                waited += 0.2
                if waited > wait:
                    raise


def _is_served(path: str) -> bool:
    import socket

    with socket.socket(socket.AF_UNIX) as tried:
        try:
            tried.connect(path)
        except OSError:
            return False
        return True
