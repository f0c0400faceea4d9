"""
A GPT of characters that learns as one of several peers, or alone, and what a step costs with admb.

    python scripts/reference/gpt.py learn --data TEXT.gz --socket PATH --site 0 --sites 4 --log FILE
    python scripts/reference/gpt.py alone --data TEXT.gz --inputs 8000
    ADMB="node dist/program/admb.js" python scripts/reference/gpt.py overhead --data TEXT.gz --rows 16 --length 64 --neighbours 1

An input is a sequence of characters. Each site has every n-th sequence; the last tenth of the text is held out. `learn` runs until
SIGTERM, and writes JSON lines with the time in seconds since the start and of computing; `test/nemesis/gpt.ts` runs it.
`overhead` measures steps in PyTorch, in turns with steps with H = 10 and H = 1 at a peer on this machine, which has neighbours that
only follow.
"""

import argparse
import gzip
import json
import re
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import torch

parser = argparse.ArgumentParser()
parser.add_argument("mode", choices=["learn", "alone", "overhead"])
parser.add_argument("--data", required=True)
parser.add_argument("--socket")
parser.add_argument("--site", type=int, default=0)
parser.add_argument("--sites", type=int, default=1)
parser.add_argument("--log")
parser.add_argument("--inputs", type=int, default=0)
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--width", type=int, default=384)
parser.add_argument("--length", type=int, default=32)
parser.add_argument("--rows", type=int, default=4)
parser.add_argument("--local-steps", type=int, default=10)
parser.add_argument("--step", type=float, default=3e-4)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--neighbours", type=int, default=0)
options = parser.parse_args()
torch.set_num_threads(options.threads)

characters = gzip.open(options.data, "rb").read()
alphabet = sorted(set(characters))
table = bytearray(256)
for i, c in enumerate(alphabet):
    table[c] = i
codes = torch.frombuffer(bytearray(characters.translate(bytes(table))), dtype=torch.uint8).long()
sequences = codes[: len(codes) // (options.length + 1) * (options.length + 1)].view(-1, options.length + 1)
learned, held = sequences[: len(sequences) * 9 // 10], sequences[len(sequences) * 9 // 10 :][::8]


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        width = options.width
        self.tokens = torch.nn.Embedding(len(alphabet), width)
        self.places = torch.nn.Embedding(options.length, width)
        layer = torch.nn.TransformerEncoderLayer(width, width // 64 or 1, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, options.layers, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, len(alphabet))

    def forward(self, rows):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(rows.shape[1])
        hidden = self.tokens(rows) + self.places(torch.arange(rows.shape[1]))
        return self.head(self.layers(hidden, mask=mask, is_causal=True))


def loss_of(model, rows):
    scores = model(rows[:, :-1])
    return torch.nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), rows[:, 1:].reshape(-1))


def held_out(model):
    with torch.no_grad():
        return sum(loss_of(model, rows).item() * len(rows) for rows in held.split(64)) / len(held)


def begin():
    torch.manual_seed(1)
    model = GPT()
    return model, torch.optim.AdamW(model.parameters(), lr=options.step)


def write(**values):
    with open(options.log, "a") as file:
        file.write(json.dumps({"time": time.time(), **values}) + "\n")


def learn():
    from admb.torch import Learner, Lost, _is_served

    model, optimizer = begin()
    own = learned[options.site :: options.sites]
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
    # A peer that was killed has left its socket.
    while not _is_served(options.socket):
        time.sleep(0.2)
    batch = options.sites * options.local_steps * options.rows
    learner = Learner(model, optimizer=optimizer, local_steps=options.local_steps, batch=batch, socket=options.socket, wait=300)
    weights = sum(p.numel() for p in model.parameters())
    begun = time.time()
    computing, started, steps = 0.0, 0.0, 0
    step = optimizer.step

    def timed(*given):
        nonlocal computing
        step(*given)
        computing += time.time() - started

    optimizer.step = timed
    try:
        for rows in learner.spans(len(own), batch=options.rows, epochs=1000, shuffle=True, seed=options.site):
            steps, started = steps + 1, time.time()
            learner.step(loss_of(model, own[rows]))
            if steps % options.local_steps == 0:
                write(kind="steps", seconds=time.time() - begun, computing=computing, steps=steps, updates=learner.updates, weights=weights)
            if ending:
                break
        learner.take()
        learner.finish()
        at = time.time()
        newest = learner.worker.newest
        # Fewer than b gradients are left, which peers use when nothing has changed for some time.
        while time.time() - at < 40:
            time.sleep(0.5)
            if newest != learner.worker.newest:
                newest, at = learner.worker.newest, time.time()
        learner.take()
        write(kind="end", updates=learner.updates, digest=learner.digest, loss=held_out(model), inputs=learner.worker.next)
    except Lost:
        write(kind="lost")


def alone():
    model, optimizer = begin()
    order = torch.randperm(len(learned), generator=torch.Generator().manual_seed(0))
    begun = time.time()
    for first in range(0, options.inputs, options.rows):
        rows = [order[i % len(order)] for i in range(first, min(first + options.rows, options.inputs))]
        loss = loss_of(model, learned[torch.stack(rows)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(json.dumps({"loss": held_out(model), "seconds": time.time() - begun, "inputs": options.inputs, "rows": options.rows}))


def cpu_of(processes):
    """CPU time of processes and of this one, in seconds."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    fields = [Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split() for process in processes]
    return own.ru_utime + own.ru_stime + sum(int(f[11]) + int(f[12]) for f in fields) / 100


def learner_with_neighbours(folder, **settings):
    """A learner with its peer, and neighbours that take its updates."""
    from admb.torch import Learner

    all = []
    for number in range(options.neighbours + 1):
        log = folder / f"peer-{number}.log"
        place = []
        if number > 0:
            place = [re.findall(r"/ip4/127\S+", (folder / "peer-0.log").read_text())[0]]
        model, optimizer = begin()
        if "local_steps" in settings:
            settings["optimizer"] = optimizer
        own = ("--listen", "/ip4/127.0.0.1/tcp/0", "--http", "off")
        all.append(Learner(model, **settings, join=place, state=str(folder / f"state-{number}"), options=own, log=log.open("w")))
        time.sleep(3)
    return all


def overhead():
    folder = Path(tempfile.mkdtemp(prefix="admb-"))
    (folder / "10").mkdir()
    (folder / "1").mkdir()
    rows, steps = options.rows, options.local_steps
    model, optimizer = begin()
    local = learner_with_neighbours(folder / "10", average="none", local_steps=steps, batch=steps * rows)
    each = learner_with_neighbours(folder / "1", average="none", rule=f"adamw,step={options.step}", batch=rows)

    def plain(index):
        loss = loss_of(model, learned[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def step(learner):
        def run(index):
            learner.step(loss_of(learner.model, learned[index]), count=rows)

        return run

    kinds = {"plain": (plain, []), f"H={steps}": (step(local[0]), [local[0]._process]), "H=1": (step(each[0]), [each[0]._process])}
    seconds = {name: [] for name in kinds}
    cpu = {name: [] for name in kinds}
    order = torch.Generator().manual_seed(0)
    for turn in range(options.rounds + 1):
        for name, (run, processes) in kinds.items():
            at, before = time.time(), cpu_of(processes)
            for _ in range(steps):
                run(torch.randint(len(learned), (rows,), generator=order))
            # The first turn is a warm-up.
            if turn > 0:
                seconds[name].append((time.time() - at) / steps)
                cpu[name].append((cpu_of(processes) - before) / steps)
    for learner in [*reversed(local), *reversed(each)]:
        learner.close()
    weights = sum(p.numel() for p in model.parameters())
    for name in kinds:
        least, used = min(seconds[name]), min(cpu[name])
        longer = least / min(seconds["plain"]) - 1
        more = used / min(cpu["plain"]) - 1
        print(json.dumps({"kind": name, "weights": weights, "seconds": least, "longer": longer, "cpu": used, "more": more}))


{"learn": learn, "alone": alone, "overhead": overhead}[options.mode]()
