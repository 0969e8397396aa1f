"""Trains one model: configuration -> corpus, vocabularies, batches, model, Trainer -> run folder.

python train.py model=bahdanau data=bible        configs/ holds the choices; any key can be given
python train.py resume=runs/bible/bahdanau/NAME  goes on exactly where that run stopped
"""

import logging
import sys
from pathlib import Path
from typing import NamedTuple

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from torch.utils.tensorboard import SummaryWriter

from cli import hydra_command
from data.batching import TokenArray, TrainingBatches
from data.corpus import ParallelCorpus
from data.download import corpora_root
from data.tokenizer import Tokenizer, learn_pair
from decoding.run import Run
from decoding.translator import Search, Translator, device_of, use_threads
from models import checkpoint as checkpoints
from models.seq2seq import Seq2Seq
from training import run_folder
from training.run_folder import RUNS, RunLog
from training.schedule import Schedule, schedule
from training.trainer import Stop, Trainer
from training.validation import Validation, write_hyperparameters

CHANGEABLE = ("training.max_steps", "training.patience", "device", "threads")  # when resuming

log = logging.getLogger(__name__)


@hydra_command("train")
def main(config: DictConfig) -> None:
    with RunLog.listening() as run_log:
        if config.resume is None:
            trainer = _start(config, run_log)
        else:
            trainer = _go_on(Run(config.resume), run_log)
        _describe(trainer)
        try:
            progress = trainer.fit()
        except Stop:
            log.info("stopped and saved; go on with: python train.py resume=%s", trainer.folder)
            sys.exit(130)
        finally:
            trainer.writer.close()
        log.info("best dev BLEU %.2f at step %d", progress.best_bleu, progress.best_step)
        log.info("next: python evaluate.py run=%s    or: tensorboard --logdir %s",
                 trainer.folder, RUNS)  # fmt: skip


def _start(config: DictConfig, run_log: RunLog) -> Trainer:
    """A new training; its folder comes into being once all of it is known to be sound."""
    job = HydraConfig.get()
    chosen = {group: name for group, name in job.runtime.choices.items() if "hydra" not in group}
    name = None if config.name is None else str(config.name)
    folder = run_folder.new_folder(chosen["data"], chosen["model"], name)
    _make_paths_absolute(config.data)
    train, dev = _corpus(config)
    cache = corpora_root() / "vocabularies"
    tokenizers = learn_pair(train.src, train.tgt, **config.tokenizer, cache=cache)
    parts = _parts(config, train, tokenizers)
    settings = {"chosen": chosen, **OmegaConf.to_container(config, resolve=True)}
    run_folder.write(folder, settings, job.overrides.task, tokenizers)
    run_log.begin(folder)
    # TensorBoard takes only the second start that it sees for a restart; this is the first
    writer = SummaryWriter(str(folder), purge_step=0)
    write_hyperparameters(writer, _flat(settings))
    return _compose(config, parts, dev, tokenizers, folder, writer)


def _go_on(run: Run, run_log: RunLog) -> Trainer:
    """The training of a run, in the state of its last checkpoint; the beginning if it has none."""
    config = _resumed_config(run, list(HydraConfig.get().overrides.task))
    last = run.folder / "checkpoints" / "last.pt"
    state = checkpoints.load(last) if last.is_file() else None
    train, dev = _corpus(config)
    tokenizers = run.tokenizers()
    if state:
        checkpoints.check_vocabularies(last, state, [t.digest for t in tokenizers])
    parts = _parts(config, train, tokenizers)
    run_log.begin(run.folder)
    run_folder.write_settings(run.folder, OmegaConf.to_container(config), "config")
    # events after the checkpoint belong to the part that is now done again
    done = state["progress"]["step"] if state else -1
    writer = SummaryWriter(str(run.folder), purge_step=done + 1)
    trainer = _compose(config, parts, dev, tokenizers, run.folder, writer)
    if state is None:
        write_hyperparameters(writer, _flat(OmegaConf.to_container(config, resolve=True)))
    else:
        trainer.resume(state)
    return trainer


class _Parts(NamedTuple):
    """What a training is made of."""

    model: Seq2Seq
    batches: TrainingBatches
    optimizer: torch.optim.Optimizer
    schedule: Schedule
    search: Search
    bf16: bool


def _corpus(config: DictConfig) -> tuple[ParallelCorpus, ParallelCorpus]:
    """The training and dev pairs."""
    corpus = instantiate(config.data)
    train, dev = corpus.load("train"), corpus.load("dev")
    log.info("%d training pairs, %d dev pairs", len(train), len(dev))
    return train, dev


def _check_ranges(config: DictConfig) -> None:
    """Raises ValueError for numbers with which no training is possible."""
    settings = config.training
    least = {"max_steps": 1, "accumulate": 1, "validate_every": 1, "log_every": 1, "patience": 1}
    for name, lowest in (least | {"keep": 0, "warmup_steps": 0}).items():
        if settings[name] is not None and settings[name] < lowest:
            raise ValueError(f"training.{name} must be at least {lowest}, not {settings[name]}")
    if not 0 <= settings.label_smoothing < 1:
        raise ValueError(
            f"training.label_smoothing must be from 0 to below 1, not {settings.label_smoothing}"
        )
    if settings.clip_norm <= 0:
        raise ValueError(f"training.clip_norm must be above 0, not {settings.clip_norm}")
    edges = list(settings.length_edges)
    if not edges or edges != sorted(set(edges)) or edges[0] < 1:
        raise ValueError(f"training.length_edges must be positive and increasing, not {edges}")
    if config.seed < 0:
        raise ValueError(f"seed must not be negative, but is {config.seed}")


def _make_paths_absolute(data: DictConfig) -> None:
    """Files given relative to here are found again when the run is resumed from elsewhere."""
    for key, value in data.items():
        is_path = key in ("source", "tsv") or key.endswith(("_src", "_tgt"))
        if is_path and isinstance(value, str) and Path(value).exists():
            data[key] = str(Path(value).resolve())


def _parts(
    config: DictConfig, train: ParallelCorpus, tokenizers: tuple[Tokenizer, Tokenizer]
) -> _Parts:
    """Everything that can be wrong with the settings is found out here."""
    settings = config.training
    _check_ranges(config)
    use_threads(config.threads)
    torch.manual_seed(config.seed)
    model = checkpoints.build(config.model, *(tokenizer.size for tokenizer in tokenizers))
    device = device_of(config.device)
    model.to(device)
    sides = zip(tokenizers, (train.src, train.tgt), strict=True)
    return _Parts(
        model,
        TrainingBatches(
            *(TokenArray(tokenizer.encode(side)) for tokenizer, side in sides),
            batch_tokens=settings.batch_tokens,
            seed=config.seed,
        ),
        instantiate(settings.optimizer)(model.parameters()),
        schedule(settings.schedule, settings.warmup_steps, settings.max_steps),
        instantiate(config.search),
        _bf16(config.precision, device),
    )


def _compose(
    config: DictConfig,
    parts: _Parts,
    dev: ParallelCorpus,
    tokenizers: tuple[Tokenizer, Tokenizer],
    folder: Path,
    writer: SummaryWriter,
) -> Trainer:
    """The trainer with its validation."""
    settings, device = config.training, device_of(config.device)
    validate = Validation(
        Translator(parts.model, *tokenizers, device),
        dev,
        parts.search,
        writer,
        batch_tokens=settings.batch_tokens,
        edges=settings.length_edges,
        minimum=settings.length_minimum,
    )
    return Trainer(
        parts.model,
        parts.optimizer,
        parts.schedule,
        parts.batches,
        validate,
        folder,
        writer,
        identity={
            "model": OmegaConf.to_container(config.model, resolve=True),
            "vocabularies": [tokenizer.size for tokenizer in tokenizers],
            "digests": [tokenizer.digest for tokenizer in tokenizers],
        },
        device=device,
        bf16=parts.bf16,
        **{name: settings[name] for name in _TRAINER_SETTINGS},
    )


_TRAINER_SETTINGS = (
    "max_steps",
    "accumulate",
    "clip_norm",
    "label_smoothing",
    "validate_every",
    "patience",
    "log_every",
    "keep",
)


def _resumed_config(run: Run, overrides: list[str]) -> DictConfig:
    """The run's own settings; only how long and where it trains may change."""
    config = OmegaConf.create(run.config)
    for override in overrides:
        key = override.lstrip("+").split("=")[0]
        if key == "resume":
            continue
        if key not in CHANGEABLE:
            raise ValueError(
                f"{key} cannot change when resuming: the run keeps its settings "
                f"({run.folder}/config.yaml); only {', '.join(CHANGEABLE)} may be given"
            )
        config.merge_with_dotlist([override])
    return config


def _bf16(precision: str, device: torch.device) -> bool:
    """Whether matrix products run in bfloat16; auto: where the hardware has units for it."""
    if precision not in ("auto", "fp32", "bf16"):
        raise ValueError(f"precision must be auto, fp32 or bf16, not {precision!r}")
    if precision != "auto":
        return precision == "bf16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    able = torch.cpu.get_capabilities()
    return bool(able.get("amx_bf16") or able.get("avx512_bf16"))


def _describe(trainer: Trainer) -> None:
    parameters = sum(p.numel() for p in trainer.model.parameters())
    log.info(
        "%s with %s parameters on %s in %s, %d threads -> %s",
        type(trainer.model).__name__,
        f"{parameters:,}",
        trainer.device,
        "bf16" if trainer.bf16 else "fp32",
        torch.get_num_threads(),
        trainer.folder,
    )


def _flat(settings: dict) -> dict:
    """The settings as one level of dotted names, for TensorBoard."""
    flat = {name: settings["chosen"][name] for name in ("data", "model")}
    flat |= {name: settings[name] for name in ("width", "seed", "precision")}
    for group in ("data", "model", "training", "tokenizer", "search"):
        for name, value in settings[group].items():
            if not isinstance(value, dict | list) and value is not None and name != "_target_":
                flat[f"{group}.{name}"] = value
    return flat


if __name__ == "__main__":
    main()
