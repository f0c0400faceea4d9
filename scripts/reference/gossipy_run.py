"""One run of the gossip simulator gossipy (https://github.com/makgyver/gossipy), for `npm run -s bench -- gossipy`.

    python scripts/reference/gossipy_run.py NODES ROUNDS

The settings are those of its example of Ormándi et al. (2013): each node has one row, a tenth of the messages is lost, and a
node is online a fifth of the time. The rows are drawn here, as the data set of the example is a download. `PYTHONPATH` names a
clone of gossipy; torch, torchvision, pandas, scikit-learn, networkx, matplotlib, dill, tqdm and rich are installed. With a new
scikit-learn, `.astype(float)` after `roc_auc_score(…)` in the clone has to go. The last line of the output is JSON: the seconds
of CPU time of the simulation alone, and the accuracy at its end.
"""

import json
import sys
import time

import torch
from gossipy import set_seed
from gossipy.core import AntiEntropyProtocol, CreateModelMode, StaticP2PNetwork, UniformDelay
from gossipy.data import DataDispatcher
from gossipy.data.handler import ClassificationDataHandler
from gossipy.model.handler import PegasosHandler
from gossipy.model.nn import AdaLine
from gossipy.node import GossipNode
from gossipy.simul import GossipSimulator, SimulationReport

DIMENSION = 20
ROUND = 100
HELD_OUT = 0.1


def simulate(nodes: int, rounds: int) -> dict:
    set_seed(42)
    rows = round(nodes / (1 - HELD_OUT)) + 1
    x = torch.randn(rows, DIMENSION)
    y = 2 * (x @ torch.randn(DIMENSION) > 0).long() - 1
    data = DataDispatcher(ClassificationDataHandler(x, y, test_size=HELD_OUT), n=nodes, eval_on_user=False)
    model = PegasosHandler(net=AdaLine(DIMENSION), learning_rate=0.01, create_model_mode=CreateModelMode.MERGE_UPDATE)
    simulator = GossipSimulator(
        nodes=GossipNode.generate(
            data_dispatcher=data,
            p2p_net=StaticP2PNetwork(data.size(), None),
            model_proto=model,
            round_len=ROUND,
            sync=False,
        ),
        data_dispatcher=data,
        delta=ROUND,
        protocol=AntiEntropyProtocol.PUSH,
        delay=UniformDelay(0, 10),
        online_prob=0.2,
        drop_prob=0.1,
        sampling_eval=0.1,
    )
    report = SimulationReport()
    simulator.add_receiver(report)
    simulator.init_nodes(seed=42)
    start = time.process_time()
    simulator.start(n_rounds=rounds)
    seconds = time.process_time() - start
    return {"seconds": seconds, "accuracy": float(report.get_evaluation(False)[-1][1]["accuracy"])}


if __name__ == "__main__":
    print(json.dumps(simulate(int(sys.argv[1]), int(sys.argv[2]))))
