"""The settings of a training: what they may be, and what a resumed one has changed."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evaluation.bleu import buckets

MAX_ACCUMULATED = 10_000  # batches of an update


def check_ranges(config: Mapping[str, Any]) -> None:
    """Raises ValueError for numbers with which no training is possible."""
    settings = config["training"]
    least = {"max_steps": 1, "accumulate": 1, "validate_every": 1, "log_every": 1, "patience": 1}
    for name, lowest in (least | {"keep": 0, "warmup_steps": 0}).items():
        if settings[name] is not None and settings[name] < lowest:
            raise ValueError(f"training.{name} must be at least {lowest}, not {settings[name]}")
    if settings["accumulate"] > MAX_ACCUMULATED:  # they are held in memory together
        raise ValueError(f"training.accumulate must be at most {MAX_ACCUMULATED}")
    if not 0 <= settings["concatenate"] <= 1:
        raise ValueError(f"training.concatenate must be from 0 to 1, not {settings['concatenate']}")
    if not 0 <= settings["label_smoothing"] < 1:
        raise ValueError(
            f"training.label_smoothing must be from 0 to below 1, not {settings['label_smoothing']}"
        )
    if settings["clip_norm"] <= 0:
        raise ValueError(f"training.clip_norm must be above 0, not {settings['clip_norm']}")
    if settings["muon"] is not None and settings["muon"] <= 0:
        raise ValueError(f"training.muon must be above 0 or null, not {settings['muon']}")
    alpha, kind = settings["subword_sampling"], config["tokenizer"]["type"]
    if not 0 <= alpha <= 1:
        raise ValueError(f"training.subword_sampling must be from 0 (none) to 1, not {alpha}")
    if alpha and kind not in ("bpe", "unigram"):
        raise ValueError(
            f"training.subword_sampling={alpha} needs tokenizer.type bpe or unigram: "
            f"with {kind} a sentence has one segmentation"
        )
    try:
        buckets([], settings["length_edges"])
    except ValueError as error:
        raise ValueError(f"training.{error}") from None
    if config["seed"] < 0:
        raise ValueError(f"seed must not be negative, but is {config['seed']}")


def changes(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    given: Collection[str] = (),
    group: str = "",
) -> list[str]:
    """The dotted names of the settings that differ.

    A key that came into being after the first was made counts only if it is among those `given`.
    """
    names = []
    for key in {**before, **after}:
        old, new, name = before.get(key), after.get(key), f"{group}{key}"
        if isinstance(old, dict) and isinstance(new, dict):
            names += changes(old, new, given, f"{name}.")
        elif old != new and (key in before or name in given):
            names.append(name)
    return names


def changed_overrides(
    overrides: Sequence[str], before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[str]:
    """The overrides by which a run was begun, with what was changed since in place of what it was.

    Changed can be only what stands in one group or none, and is a number, a text or null.
    """
    names = changes(before, after)
    kept = [o for o in overrides if o.lstrip("+").split("=")[0] not in names]
    for name in names:
        *group, key = name.split(".")
        value = (after[group[0]] if group else after)[key]
        kept.append(f"{name}={'null' if value is None else value}")
    return kept
