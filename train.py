"""Trains one model: configuration -> corpus, vocabularies, batches, model, Trainer -> run folder.

python train.py model=bahdanau data=bible        configs/ holds the choices; any key can be given
python train.py resume=runs/bible/bahdanau/NAME  goes on exactly where that run stopped
"""

import logging
import sys
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from torch.utils.tensorboard import SummaryWriter

from cli import CONFIGS, check_types, hydra_command
from data.batching import TokenArray, TrainingBatches
from data.corpus import ParallelCorpus
from data.download import corpora_root
from data.prepared import prepare, tokens
from data.tokenizer import Tokenizer, learn_pair
from decoding.device import device_of, use_threads, wants_bf16
from decoding.run import Run, corpus_of
from decoding.translator import Search, Translator, search_of
from models import checkpoint as checkpoints
from models.seq2seq import Seq2Seq
from training import run_folder
from training.machine import timed
from training.optimizer import Together, optimizer_of
from training.processes import ALONE, Processes, join_processes
from training.run_folder import RUNS, RunLog
from training.schedule import Schedule, schedule
from training.settings import changed_overrides, changes, check_ranges
from training.signals import Stop
from training.trainer import Trainer
from training.validation import Validation, write_hyperparameters

CHANGEABLE = ("training.max_steps", "training.patience", "device", "threads")  # when resuming

log = logging.getLogger(__name__)


@hydra_command("train")
def main(config: DictConfig) -> None:
    _make_paths_absolute(config.data)
    with join_processes() as processes, RunLog.listening() as run_log, ExitStack() as held:
        run = processes.tell(_run_to_go_on(config) if processes.is_first else None)
        begin = partial(_go_on, run) if run else _start
        trainer = begin(config, processes, run_log, held)
        _describe(trainer)
        go_on = f"python train.py resume={trainer.folder}"
        try:
            with timed(trainer.folder, trainer.device) if processes.is_first else nullcontext():
                progress = trainer.fit()
        except Stop as stop:
            log.info("stopped and saved; go on with: %s", go_on)
            sys.exit(128 + stop.signal_number)  # as the shell says it
        except OSError as error:
            where = "" if str(trainer.folder) in str(error) else f"{trainer.folder}: "
            raise OSError(f"{where}{error}; when that is mended, go on with: {go_on}") from error
        log.info("best dev BLEU %.2f at step %d", progress.best_bleu, progress.best_step)
        log.info("next: python evaluate.py run=%s    or: tensorboard --logdir %s",
                 trainer.folder, RUNS)  # fmt: skip


def _start(config: DictConfig, processes: Processes, run_log: RunLog, held: ExitStack) -> Trainer:
    """A new training; its folder comes into being once all of it is known to be sound."""
    settings = _settings(config)
    place = run_folder.place(settings)
    if processes.is_first:
        run_folder.new_folder(*place)  # or it would be refused only when all the rest is done
    with processes.first_before_others():
        data = data_of(config)
    parts = parts_of(config, data, processes)
    folder, writer = None, None
    if processes.is_first:
        overrides = HydraConfig.get().overrides.task
        folder = run_folder.write(*place, settings, overrides, data.tokenizers)
        held.enter_context(run_folder.locked(folder))
        run_log.begin(folder)
        # TensorBoard takes only the second start that it sees for a restart; this is the first
        writer = held.enter_context(run_folder.curves(folder, first_step=0))
        write_hyperparameters(writer, settings)
    folder = processes.tell(folder)
    return trainer_of(config, parts, data, folder, writer, processes)


def _run_to_go_on(config: DictConfig) -> Run | None:
    """The run that resume= names; with resume=auto that of this training's name, if it is there."""
    if config.resume != "auto":
        return None if config.resume is None else Run(config.resume)
    if config.name is None:
        raise ValueError("resume=auto goes on with the run of a name: give name=")
    folder = RUNS.joinpath(*run_folder.place(_settings(config)))
    return Run(folder) if folder.exists() else None


def _go_on(
    run: Run, config: DictConfig, processes: Processes, run_log: RunLog, held: ExitStack
) -> Trainer:
    """The training of a run, in the state of its last checkpoint; the beginning if it has none."""
    config = _resumed_config(run, config)
    if processes.is_first:
        held.enter_context(run_folder.locked(run.folder))
    last = run.folder / "checkpoints" / "last.pt"
    state = checkpoints.load(last) if last.is_file() else None
    tokenizers = run.tokenizers()
    if state:
        checkpoints.check_vocabularies(last, state, [t.digest for t in tokenizers])
        if not {"optimizer", "batches", "random", "progress"} <= state.keys():
            raise ValueError(f"{last}: has weights alone, from which training cannot go on")
    with processes.first_before_others():
        data = data_of(config, tokenizers)
    if state and state.get("text", data.text) != data.text:
        raise ValueError(
            f"{run.folder}: the training or dev text is not what it was when this run began; "
            "train on it in a run of its own"
        )
    parts = parts_of(config, data, processes)
    writer = None
    if processes.is_first:
        checkpoints.clear_unfinished(last.parent)
        run_log.begin(run.folder)
        settings = OmegaConf.to_container(config)
        overrides = changed_overrides(run.overrides, run.config, settings)
        run_folder.write_settings(run.folder, settings, "config")
        run_folder.write_settings(run.folder, overrides, "overrides")
        # events after the checkpoint belong to the part that is now done again
        done = state["progress"]["step"] if state else -1
        writer = held.enter_context(run_folder.curves(run.folder, first_step=done + 1))
        if state is None:
            write_hyperparameters(writer, settings)
    trainer = trainer_of(config, parts, data, run.folder, writer, processes)
    if state:
        trainer.resume(state)
    return trainer


class Data(NamedTuple):
    """What a training learns from."""

    train: tuple[TokenArray, TokenArray]
    dev: ParallelCorpus
    tokenizers: tuple[Tokenizer, Tokenizer]
    text: str  # a hash of the training and dev text


def data_of(config: DictConfig, tokenizers: tuple[Tokenizer, Tokenizer] | None = None) -> Data:
    """Training tokens, dev pairs, vocabularies (learnt if not given), found if made before."""
    prepared = prepare(corpus_of(OmegaConf.to_container(config.data, resolve=True)))
    src, tgt, dev = prepared
    log.info("%d training pairs, %d dev pairs", len(src), len(dev))
    if tokenizers is None:
        cache = corpora_root() / "vocabularies"
        tokenizers = learn_pair(src, tgt, **config.tokenizer, cache=cache)
    train = tokens(src, tokenizers[0]), tokens(tgt, tokenizers[1])
    return Data(train, dev, tokenizers, prepared.digest)


class _Parts(NamedTuple):
    """What a training is made of."""

    model: Seq2Seq
    batches: TrainingBatches
    optimizer: torch.optim.Optimizer | Together
    schedule: Schedule
    search: Search
    device: torch.device
    bf16: bool


def _make_paths_absolute(data: DictConfig) -> None:
    """Files given relative to here are found again when the run is resumed from elsewhere."""
    for key, value in data.items():
        is_path = key in ("source", "tsv") or key.endswith(("_src", "_tgt"))
        if is_path and isinstance(value, str) and Path(value).exists():
            data[key] = str(Path(value).absolute())  # a link keeps its name, whose ending tells


def parts_of(
    config: DictConfig,
    data: Data,
    processes: Processes = ALONE,
) -> _Parts:
    """Everything that can be wrong with the settings is found out here."""
    settings, tokenizers = config.training, data.tokenizers
    check_ranges(config)
    use_threads(config.threads)
    torch.manual_seed(config.seed)
    model = checkpoints.build(config.model, *(tokenizer.size for tokenizer in tokenizers))
    device = device_of(processes.device(config.device))
    resample = None
    if settings.subword_sampling:
        resample = [partial(t.resample, alpha=settings.subword_sampling) for t in tokenizers]
    model.to(device)
    return _Parts(
        model,
        TrainingBatches(
            *data.train,
            batch_tokens=settings.batch_tokens,
            seed=config.seed,
            concatenate=settings.concatenate,
            resample=resample,
        ),
        optimizer_of(
            OmegaConf.to_container(settings.optimizer, resolve=True), model, settings.muon
        ),
        schedule(settings.schedule, settings.warmup_steps, settings.max_steps),
        search_of(OmegaConf.to_container(config.search, resolve=True)),
        device,
        wants_bf16(config.precision, device),
    )


def trainer_of(
    config: DictConfig,
    parts: _Parts,
    data: Data,
    folder: Path,
    writer: SummaryWriter | None,
    processes: Processes = ALONE,
) -> Trainer:
    """The trainer with its validation; of several processes, the first one alone has a writer."""
    settings = config.training
    validate = Validation(
        Translator(parts.model, *data.tokenizers, parts.device),
        data.dev,
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
        processes,
        identity={
            "model": OmegaConf.to_container(config.model, resolve=True),
            "vocabularies": [tokenizer.size for tokenizer in data.tokenizers],
            "digests": [tokenizer.digest for tokenizer in data.tokenizers],
            "text": data.text,
        },
        device=parts.device,
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


def _settings(config: DictConfig) -> dict[str, Any]:
    """All settings of a new training, resolved; under `chosen` the names of the choices."""
    choices = HydraConfig.get().runtime.choices.items()
    settings = OmegaConf.to_container(config, resolve=True)
    chosen = {group: name for group, name in choices if "hydra" not in group}
    return {"chosen": chosen, **settings, "resume": None}


def _resumed_config(run: Run, given: DictConfig) -> DictConfig:
    """The run's own settings; only how long and where it trains may change.

    What is given anew are the overrides; with resume=auto, as they are those of a new training,
    what differs from the run.
    """
    own = run.config
    keys = [override.lstrip("+").split("=")[0] for override in HydraConfig.get().overrides.task]
    if given.resume == "auto":
        keys = changes(own, _settings(given), keys)
    changed = [key for key in keys if key != "resume"]
    for key in changed:
        if key not in CHANGEABLE:
            raise ValueError(
                f"{key} cannot change when resuming: the run keeps its settings "
                f"({run.folder}/config.yaml); only {', '.join(CHANGEABLE)} may be given"
            )
    try:
        check_types(own, {**OmegaConf.to_container(given, resolve=True), "resume": None})
    except ValueError as error:
        raise ValueError(f"{run.folder}/config.yaml: {error}") from error
    # a run of an earlier build lacks the options that came later: their defaults are what it had
    defaults = OmegaConf.to_container(OmegaConf.load(CONFIGS / "training" / "default.yaml"))
    config = OmegaConf.create({**own, "training": defaults | own["training"]})
    for key in changed:
        OmegaConf.update(config, key, OmegaConf.select(given, key))
    return config


def _describe(trainer: Trainer) -> None:
    parameters = sum(p.numel() for p in trainer.model.parameters())
    log.info(
        "%s with %s parameters on %s in %s, %d threads%s -> %s",
        type(trainer.model).__name__,
        f"{parameters:,}",
        trainer.device,
        "bf16" if trainer.bf16 else "fp32",
        torch.get_num_threads(),
        f", {trainer.processes.count} processes" if trainer.processes.count > 1 else "",
        trainer.folder,
    )


if __name__ == "__main__":
    main()
