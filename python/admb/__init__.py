"""Masterless online learning with peers of admb.

`Peer` is a client of a running peer (`admb_client`). `Worker` computes the gradients of a peer in this process, for a model of
any kind; `admb.torch.Learner` does so for a model of PyTorch.
"""

from admb_client import Peer, PeerError

from .worker import Block, Lost, Refused, Worker

__all__ = ["Block", "Lost", "Peer", "PeerError", "Refused", "Worker"]
