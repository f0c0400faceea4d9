"""Factors of users and items: embeddings with sparse gradients. Each peer has the ratings of its own users.

    python embedding.py 0
    python embedding.py 1 ADDRESS
"""

import sys

import torch
from admb.torch import Learner

SITES, USERS, ITEMS, RANK = 2, 200, 100, 4
site, join = int(sys.argv[1]), sys.argv[2:3]

world = torch.Generator().manual_seed(7)
truth = torch.randn(USERS, RANK, generator=world) @ torch.randn(RANK, ITEMS, generator=world)
chosen = torch.Generator().manual_seed(10 + site)
users = torch.randint(USERS // SITES, (8000,), generator=chosen) * SITES + site
items = torch.randint(ITEMS, (8000,), generator=chosen)
ratings = truth[users, items]


class Factors(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.users = torch.nn.Embedding(USERS, RANK, sparse=True)
        self.items = torch.nn.Embedding(ITEMS, RANK, sparse=True)

    def forward(self, users, items):
        return (self.users(users) * self.items(items)).sum(1)


torch.manual_seed(1)
model = Factors()
with Learner(model, rule="adam,step=0.1", batch=256, join=join, state=f"state-{site}") as learner:
    for rows in learner.spans(len(users), batch=64, epochs=3, shuffle=True):
        learner.step(torch.nn.functional.mse_loss(model(users[rows], items[rows]), ratings[rows]))
    learner.finish()
    with learner.averaged(), torch.no_grad():
        error = torch.nn.functional.mse_loss(model(users, items), ratings) / ratings.var()
    print(f"{learner.updates} updates, error {error.item():.3f}")
