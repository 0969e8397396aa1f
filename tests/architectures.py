"""Every architecture in configs/model, with its options, built small, for the contract tests."""

from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf

from models import checkpoint
from models.seq2seq import Seq2Seq

CONFIGS = Path(__file__).resolve().parent.parent / "configs" / "model"
NAMES = sorted(path.stem for path in CONFIGS.glob("*.yaml"))
SMALL = {"embedding": 12, "hidden": 16, "d_model": 16, "heads": 2, "layers": 1}
OPTIONS = {
    "rnn": [{"cell": "lstm"}, {"layers": 2}, {"reverse_source": True}],
    "bahdanau": [{"cell": "lstm"}],
    "luong": [
        {"cell": "gru", "encoder_layers": 2},
        {"score": "dot", "bidirectional": False},
        {"score": "concat"},
        {"input_feeding": True},
        {"input_feeding": True, "cell": "gru", "bidirectional": False},
    ],
    "transformer": [{"norm": "post"}, {"tied": "output"}, {"alignment_layer": 1}],
    "decoder_only": [
        {"prefix": "causal"},
        {"norm": "post"},
        {"tied": "all"},
        {"decoder_layers": 1, "alignment_layer": 1},
    ],
}
VARIANTS = [(name, {}) for name in NAMES] + [
    (name, option) for name in NAMES for option in OPTIONS.get(name, [])
]
IDS = ["-".join([name, *(f"{k}={v}" for k, v in option.items())]) for name, option in VARIANTS]
VOCABULARY = 11


def config(name: str, **options: Any) -> dict[str, Any]:
    """The settings of configs/model/NAME.yaml with small sizes and no dropout."""
    loaded = OmegaConf.load(CONFIGS / f"{name}.yaml")
    sizes = {key: value for key, value in SMALL.items() if key in loaded}
    changed = OmegaConf.merge(loaded, sizes, {"dropout": 0.0, "width": 16}, options)
    settings = OmegaConf.to_container(changed, resolve=True)
    del settings["width"]  # what others refer to
    return settings


def small(name: str, vocabulary: int = VOCABULARY, seed: int = 0, **options: Any) -> Seq2Seq:
    """An untrained small model in evaluation mode; larger weights make its choices distinct."""
    torch.manual_seed(seed)
    model = checkpoint.build(config(name, **options), vocabulary, vocabulary).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model
