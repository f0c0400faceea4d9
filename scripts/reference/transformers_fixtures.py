"""
Makes the fixtures of test/fixtures/models: tiny checkpoints with random weights in Hugging Face's format, and for each the
logits, the gradients and the losses of three AdamW steps that `transformers` and `torch` compute.

    python3 -m venv venv && venv/bin/pip install torch transformers
    venv/bin/python scripts/reference/transformers_fixtures.py [FOLDER]

With --check, it reads folders that `admb export` has written and prints the logits of the rows in their reference.json.
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

ROOT = Path(__file__).resolve().parents[2] / "test" / "fixtures" / "models"
TEXTS = [
    "the river rises when the rain falls on the hills",
    "the rain falls and the river rises",
    "a small boat crosses the wide river at night",
    "no boat crosses the river when the rain falls",
    "the hills are green",
    "at night the small town is quiet and the lamps are lit",
]
PAIRS = [(0, 1), (2, 3), (4, 5), (1, 4)]
LENGTH = 16
STEP = 0.01
DECAY = 0.1


def randomise(model, seed):
    """Weights large enough that every part of the model changes the logits."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_scale = parameter.dim() == 1 and name.endswith("weight")
            parameter.copy_(1 + 0.1 * noise if is_scale else 0.3 * noise)
    return model.eval()


def adamw(model):
    """AdamW with no decay of biases and norms."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": DECAY},
        {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=STEP)


def train(model, loss_of):
    """The losses before each of four steps."""
    optimizer = adamw(model)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = loss_of()
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return losses


def rounded(tensor):
    return [[round(value, 6) for value in row] for row in tensor.tolist()]


def write(folder, model, loss_of, logits_of, reference):
    with torch.no_grad():
        logits = logits_of()
    loss_of().backward()
    # Tied weights are one parameter, whose gradient is the sum of both uses.
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    save_file(gradients, folder / "gradients.safetensors")
    losses = train(model, loss_of)
    result = {**reference, "step": STEP, "decay": DECAY, "logits": rounded(logits), "losses": losses}
    (folder / "reference.json").write_text(json.dumps(result) + "\n")


def word_pieces(folder):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted(set(" ".join(TEXTS).split()))
    letters = sorted(set("".join(words)))
    # Every other word is known. Training a tokenizer would give another vocabulary in each run.
    pieces = dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *words[::2], "##es", "##er"])
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(special)
    ids = {name: tokenizer.token_to_id(name) for name in special}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.save(str(folder / "tokenizer.json"))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def bert(folder, labels):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = word_pieces(folder)
    is_number = labels is None
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=12,
        num_hidden_layers=1 if is_number else 2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=40,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **({"num_labels": 1, "problem_type": "regression"} if is_number else {"id2label": dict(enumerate(labels))}),
        **({} if is_number else {"label2id": {name: i for i, name in enumerate(labels)}}),
    )
    model = randomise(BertForSequenceClassification(config), 1)
    model.save_pretrained(folder)
    if not is_number:
        # Older checkpoints hold the indices of the positions, and heads for pre-training.
        tensors = load_file(folder / "model.safetensors")
        tensors["bert.embeddings.position_ids"] = torch.arange(40).reshape(1, 40)
        tensors["cls.predictions.bias"] = torch.zeros(len(tokenizer))
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    texts = [[TEXTS[a], TEXTS[b]] for a, b in PAIRS]
    rows = tokenizer(
        [a for a, _ in texts],
        [b for _, b in texts],
        padding="max_length",
        truncation="longest_first",
        max_length=LENGTH,
        return_token_type_ids=True,
        return_tensors="pt",
    )
    targets = torch.tensor([0.5, -1.0, 2.0, 0.0]) if is_number else torch.tensor([0, 2, 1, 0])
    inputs = {key: rows[key] for key in ("input_ids", "token_type_ids", "attention_mask")}
    logits_of = lambda: model(**inputs).logits

    def loss_of():
        logits = logits_of()
        # Half the squared error, as admb defines it.
        return ((logits[:, 0] - targets) ** 2).mean() / 2 if is_number else torch.nn.functional.cross_entropy(logits, targets)

    reference = {"length": LENGTH, "texts": texts, "rows": rows["input_ids"].tolist(), "labels": targets.tolist()}
    write(folder, model, loss_of, logits_of, reference)


def byte_pairs():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=290, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def gpt2(folder):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = byte_pairs()
    # The vocabulary files of GPT-2, without a tokenizer.json.
    tokenizer.model.save(str(folder))
    config = GPT2Config(
        vocab_size=tokenizer.get_vocab_size() + 3,
        n_positions=24,
        n_embd=12,
        n_layer=2,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = randomise(GPT2LMHeadModel(config), 2)
    model.save_pretrained(folder, max_shard_size="16KB")
    language_model(folder, model, tokenizer)


def llama(folder, tied):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = byte_pairs()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=8,
        intermediate_size=12,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=24,
        rms_norm_eps=1e-5,
        rope_theta=100.0,
        tie_word_embeddings=tied,
        bos_token_id=0,
        eos_token_id=0,
    )
    randomise(LlamaForCausalLM(config), 3).to(torch.bfloat16).save_pretrained(folder)
    # The file holds rounded weights.
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    language_model(folder, model, tokenizer)


def language_model(folder, model, tokenizer):
    tokens = tokenizer.encode("\n".join(TEXTS)).ids
    count = (len(tokens) - 1) // LENGTH
    rows = torch.tensor([tokens[i * LENGTH : (i + 1) * LENGTH + 1] for i in range(count)])
    logits_of = lambda: model(input_ids=rows[:, :-1]).logits
    loss_of = lambda: torch.nn.functional.cross_entropy(logits_of().flatten(0, 1), rows[:, 1:].flatten())
    greedy = model.generate(rows[:1, :4], max_new_tokens=12, do_sample=False, pad_token_id=0, eos_token_id=None)
    reference = {"length": LENGTH, "text": "\n".join(TEXTS), "rows": rows.tolist(), "greedy": greedy[0].tolist()}
    # The logits of the last position are enough.
    write(folder, model, loss_of, lambda: logits_of()[:, -1], reference)


def check(folder):
    reference = json.loads((folder / "reference.json").read_text())
    rows = torch.tensor(reference["rows"])
    with torch.no_grad():
        if "texts" in reference:
            model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
            separators = (rows == 3).cumsum(1) - (rows == 3).long()
            kinds = ((separators > 0) & (rows != 0)).long()
            logits = model(input_ids=rows, token_type_ids=kinds, attention_mask=(rows != 0).long()).logits
        else:
            logits = AutoModelForCausalLM.from_pretrained(folder).eval()(input_ids=rows[:, :-1]).logits[:, -1]
    difference = (logits - torch.tensor(reference["logits"])).abs().max().item()
    print(f"{folder}: largest difference of the logits {difference:.2g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="*", default=[ROOT])
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.check:
        for folder in given.folder:
            check(folder)
        return
    torch.manual_seed(0)
    [root] = given.folder
    bert(root / "bert", ["other", "same", "unclear"])
    bert(root / "bert-number", None)
    gpt2(root / "gpt2")
    llama(root / "llama", False)
    llama(root / "llama-tied", True)
    for path in root.rglob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
