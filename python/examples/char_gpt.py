"""A GPT of characters, with local steps: each peer has its own pages of Python's own documentation.

    python char_gpt.py 0
    python char_gpt.py 1 ADDRESS
"""

import argparse
import inspect
import sys
import typing

import torch
from admb.torch import Learner

SITES, LENGTH, WIDTH, HEADS, LAYERS = 2, 32, 64, 4, 2
site, join = int(sys.argv[1]), sys.argv[2:3]

text = torch.tensor(list("".join(map(inspect.getsource, (argparse, typing))).encode("ascii", "replace")))
own = text[: len(text) // LENGTH * LENGTH].view(-1, LENGTH)[site::SITES]


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(128, WIDTH)
        self.places = torch.nn.Embedding(LENGTH, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, 128)

    def forward(self, characters):
        length = characters.shape[1]
        mask = torch.nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.tokens(characters) + self.places(torch.arange(length))
        return self.head(self.layers(hidden, mask=mask, is_causal=True))


def loss_of(model, rows):
    scores = model(rows[:, :-1])
    return torch.nn.functional.cross_entropy(scores.reshape(-1, 128), rows[:, 1:].reshape(-1))


torch.manual_seed(1)
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
first = loss_of(model, own[:64]).item()
with Learner(model, optimizer=optimizer, local_steps=10, batch=SITES * 160, join=join, state=f"state-{site}") as learner:
    for rows in learner.spans(len(own), batch=16, epochs=1, shuffle=True):
        learner.step(loss_of(model, own[rows]))
    learner.finish()
    with learner.averaged(), torch.no_grad():
        print(f"{learner.updates} updates, loss {first:.2f} {loss_of(model, own[:64]).item():.2f}")
