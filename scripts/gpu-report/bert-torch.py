"""The report's BERT in PyTorch: a row for each precision, with and without gradient checkpointing, as JSON lines on stdout.

The argument is the shape as JSON, with `seconds` as the time for all rows. A row that fails has its error among the details.
"""

import gc
import json
import statistics
import sys
import time
import warnings

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")
shape = json.loads(sys.argv[1])
width, length, batch, heads = shape["width"], shape["length"], shape["batch"], shape["heads"]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
MOST_STEPS = 20


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x):
        parts = self.qkv(x).split(width, 2)
        q, k, v = (part.view(-1, length, heads, width // heads).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        return self.norm(x + self.out(mixed.transpose(1, 2).reshape(-1, length, width)))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(width, shape["inner"]), nn.Linear(shape["inner"], width)
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x):
        return self.norm(x + self.down(functional.gelu(self.up(x), approximate="tanh")))


class Bert(nn.Module):
    def __init__(self, checkpoints):
        super().__init__()
        self.checkpoints = checkpoints
        self.tokens = nn.Embedding(shape["vocabulary"], width)
        self.positions = nn.Parameter(0.02 * torch.randn(length, width))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.halves = nn.ModuleList(half() for _ in range(shape["layers"]) for half in (Attention, Perceptron))
        self.head = nn.Linear(width, shape["classes"])

    def forward(self, x):
        y = self.norm(self.tokens(x) + self.positions)
        for half in self.halves:
            y = checkpoint(half, y, use_reentrant=False) if self.checkpoints else half(y)
        return self.head(y.mean(1))


def synchronize():
    if device.type == "cuda":
        torch.cuda.synchronize()


def measure(precision, checkpoints, adam, seconds):
    """Milliseconds of a step, their number, and the most bytes on the device."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.manual_seed(1)
    model = Bert(checkpoints).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, fused=device.type == "cuda") if adam else None
    inputs = torch.randint(shape["vocabulary"], (batch, length), device=device)
    targets = torch.randint(shape["classes"], (batch,), device=device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    steps, end = [], time.perf_counter() + seconds
    # The first step sets up libraries, and does not count.
    while len(steps) < 2 or (len(steps) <= MOST_STEPS and time.perf_counter() < end):
        start = time.perf_counter()
        model.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            loss = functional.cross_entropy(model(inputs), targets)
        loss.backward()
        if optimizer:
            optimizer.step()
        synchronize()
        steps.append(1000 * (time.perf_counter() - start))
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    return statistics.median(steps[1:]), len(steps) - 1, peak, loss.item()


def row(precision, checkpoints, adam, seconds):
    work = "forward and backward" + (" with Adam" if adam else "")
    name = f"PyTorch, {precision}, {'checkpoints' if checkpoints else 'no checkpoints'}: {work}"
    details = {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
    }
    try:
        ms, steps, peak, loss = measure(precision, checkpoints, adam, seconds)
        figures = {"samplesPerSecond": 1000 * batch / ms, "steps": steps, "peakDeviceBytes": peak, "loss": loss}
        details = {**details, **figures}
    except RuntimeError as error:
        ms, details = 0, {**details, "error": str(error).split("\n")[0]}
    print(json.dumps({"name": name, "value": ms, "unit": "ms", "details": details}), flush=True)
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


# TF32 exists on GPUs only.
precisions = ["fp32", "tf32", "bf16"] if device.type == "cuda" else ["fp32", "bf16"]
rows = [(precision, checkpoints, False) for precision in precisions for checkpoints in (False, True)]
rows += [("fp32", True, True)]
for arguments in rows:
    row(*arguments, shape["seconds"] / len(rows))
