"""A small CNN on the digits of scikit-learn, each peer with its own images. The buffers of batch norms stay local.

    python digits_cnn.py 0
    python digits_cnn.py 1 ADDRESS     # the address that the first one prints
"""

import sys

import torch
from admb.torch import Learner
from sklearn.datasets import load_digits
from torch.nn import BatchNorm2d, Conv2d, Flatten, Linear, MaxPool2d, ReLU, Sequential

SITES = 3
site, join = int(sys.argv[1]), sys.argv[2:3]

digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
y = torch.tensor(digits.target)
is_test = torch.arange(len(x)) % 5 == 4
x_own, y_own = x[~is_test][site::SITES], y[~is_test][site::SITES]

torch.manual_seed(1)
model = Sequential(
    Conv2d(1, 16, 3, padding=1), BatchNorm2d(16), ReLU(), MaxPool2d(2), Conv2d(16, 32, 3, padding=1), ReLU(), Flatten(), Linear(512, 10)
)
loss_fn = torch.nn.CrossEntropyLoss()

optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
settings = {"optimizer": optimizer, "local_steps": 5, "batch": SITES * 160}
with Learner(model, **settings, join=join, state=f"state-{site}") as learner:
    for rows in learner.spans(len(x_own), batch=32, epochs=20, shuffle=True):
        learner.step(loss_fn(model(x_own[rows]), y_own[rows]))
    learner.finish()
    model.eval()
    with learner.averaged(), torch.no_grad():
        accuracy = (model(x[is_test]).argmax(1) == y[is_test]).float().mean().item()
    print(f"{learner.updates} updates, accuracy {accuracy:.3f}")
