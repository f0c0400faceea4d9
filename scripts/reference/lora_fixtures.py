"""
Makes lora.json and adapter.safetensors in folders of test/fixtures/models: random LoRA adapters in the format of `peft`, with
the logits and the losses of three AdamW steps of a LoRA in plain torch. `peft` must compute the same logits and losses.

    python3 -m venv venv && venv/bin/pip install torch transformers peft
    venv/bin/python scripts/reference/lora_fixtures.py
"""

import json

import torch
from peft import LoraConfig, get_peft_model
from peft.utils import get_peft_model_state_dict
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from transformers_fixtures import DECAY, ROOT, STEP, train

# Modules of transformers with adapters, for each value of --lora layers=….
CASES = {
    "bert": ("attention", 2, 4, ["query", "key", "value", "attention.output.dense"], ["classifier"]),
    "llama": ("all", 3, 3, ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], None),
}


class LoraLinear(torch.nn.Module):
    def __init__(self, base, a, b, scale):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = torch.nn.Parameter(a.clone())
        self.b = torch.nn.Parameter(b.clone())
        self.scale = scale

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.a.T @ self.b.T)


def load(name):
    kind = AutoModelForSequenceClassification if name == "bert" else AutoModelForCausalLM
    return kind.from_pretrained(ROOT / name, dtype=torch.float32).eval()


def forward_of(name, model):
    reference = json.loads((ROOT / name / "reference.json").read_text())
    rows = torch.tensor(reference["rows"])
    if name != "bert":
        logits_of = lambda: model(input_ids=rows[:, :-1]).logits
        loss_of = lambda: torch.nn.functional.cross_entropy(logits_of().flatten(0, 1), rows[:, 1:].flatten())
        return lambda: logits_of()[:, -1], loss_of
    separators = (rows == 3).cumsum(1) - (rows == 3).long()
    kinds = ((separators > 0) & (rows != 0)).long()
    logits_of = lambda: model(input_ids=rows, token_type_ids=kinds, attention_mask=(rows != 0).long()).logits
    labels = torch.tensor(reference["labels"])
    return logits_of, lambda: torch.nn.functional.cross_entropy(logits_of(), labels)


def steps(name, model):
    logits_of, loss_of = forward_of(name, model)
    with torch.no_grad():
        logits = logits_of()
    return logits, train(model, loss_of)


def main():
    for name, (layers, rank, alpha, targets, heads) in CASES.items():
        config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, modules_to_save=heads)
        with_peft = get_peft_model(load(name), config).eval()
        generator = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for key, parameter in with_peft.named_parameters():
                if "lora_" in key:
                    # B is random as well, so that every gradient counts.
                    parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
        adapters = {key: value.clone() for key, value in get_peft_model_state_dict(with_peft).items() if "lora_" in key}
        plain = load(name).requires_grad_(False)
        for path in sorted({key.removeprefix("base_model.model.").split(".lora_")[0] for key in adapters}):
            parent, _, child = path.rpartition(".")
            a, b = (adapters[f"base_model.model.{path}.lora_{part}.weight"] for part in "AB")
            module = plain.get_submodule(parent)
            setattr(module, child, LoraLinear(getattr(module, child), a, b, alpha / rank))
        for head in heads or []:
            plain.get_submodule(head).requires_grad_(True)
        logits, losses = steps(name, plain)
        other_logits, other_losses = steps(name, with_peft)
        assert torch.allclose(logits, other_logits, atol=1e-5), name
        assert all(abs(a - b) < 1e-5 for a, b in zip(losses, other_losses)), (name, losses, other_losses)
        save_file(adapters, ROOT / name / "adapter.safetensors")
        rounded = [[round(value, 6) for value in row] for row in logits.tolist()]
        lora = {"rank": rank, "alpha": alpha, "layers": layers}
        result = {"lora": lora, "step": STEP, "decay": DECAY, "logits": rounded, "losses": losses}
        (ROOT / name / "lora.json").write_text(json.dumps(result) + "\n")
        print(name, losses)


main()
