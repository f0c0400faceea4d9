"""The benchmark's transformer in PyTorch with gradient checkpointing: runs one step per line on stdin and prints its CPU ms."""

import json
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
torch.set_num_threads(shape["threads"])
torch.manual_seed(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        parts = self.qkv(self.norm(x)).split(width, 2)
        q, k, v = (part.view(-1, length, heads, width // heads).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(mixed.transpose(1, 2).reshape(-1, length, width))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(functional.gelu(self.up(self.norm(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(shape["vocabulary"], width)
        self.positions = nn.Parameter(0.02 * torch.randn(length, width))
        self.halves = nn.ModuleList(half() for _ in range(shape["layers"]) for half in (Attention, Perceptron))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, shape["vocabulary"])

    def forward(self, x):
        y = self.tokens(x) + self.positions
        for half in self.halves:
            y = checkpoint(half, y, use_reentrant=False)
        return self.head(self.norm(y))


model = Gpt()
inputs, targets = (torch.randint(shape["vocabulary"], (batch, length)) for _ in range(2))
print("ready", flush=True)
for _ in sys.stdin:
    start = time.process_time()
    model.zero_grad()
    functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).backward()
    print(1000 * (time.process_time() - start), flush=True)
