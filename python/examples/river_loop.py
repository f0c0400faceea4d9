"""Test-then-train, one row at a time, as in River, at a peer of a model with the columns a and b. Other peers learn it too.

    python river_loop.py http://127.0.0.1:7280
"""

import random
import sys

from admb_client import Peer

peer = Peer(sys.argv[1])
chance = random.Random(3)
hits = 0
for number in range(400):
    x = {"a": chance.gauss(0, 1), "b": chance.gauss(0, 1)}
    y = "yes" if x["a"] > x["b"] else "no"
    if number >= 200:
        hits += peer.predict_one(x) == y
    peer.learn_one(x, y)
print(f"accuracy {hits / 200:.3f}, {peer.predict_proba_one(x)[y] > 0.5}")
