"""Trains one model: configuration -> corpus, vocabularies, batches, model, Trainer -> run folder.

python train.py model=bahdanau data=bible        configs/ holds the choices; any key can be given
python train.py resume=runs/bible/bahdanau/NAME  goes on exactly where that run stopped
"""

import logging
import shutil
import sys
from datetime import datetime
from pathlib import Path

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf, open_dict
from torch.utils.tensorboard import SummaryWriter

from cli import hydra_command
from data.batching import TokenArray, TrainingBatches
from data.corpus import ParallelCorpus
from data.download import corpora_root
from data.tokenizer import Tokenizer, learn_pair
from decoding.run import Run
from decoding.translator import Translator, device_of
from models import checkpoint as checkpoints
from training.schedule import schedule
from training.trainer import Stop, Trainer
from training.validation import Validation, write_hyperparameters

RUNS = "runs"
CHANGEABLE = ("training.max_steps", "training.patience", "device", "threads")  # when resuming

log = logging.getLogger(__name__)


@hydra_command("train")
def main(config: DictConfig) -> None:
    started_with = list(HydraConfig.get().overrides.task)
    if config.resume is not None:
        run = Run(config.resume)
        config = _resumed_config(run, started_with)
        folder = run.folder
    else:
        folder = _new_folder(config)
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    corpus = instantiate(config.data)
    train, dev = corpus.load("train"), corpus.load("dev")
    if config.resume is not None:
        tokenizers = run.tokenizers()
    else:
        tokenizers = learn_pair(
            train.src, train.tgt, **config.tokenizer, cache=corpora_root() / "vocabularies"
        )
    log.info("%d training pairs, %d dev pairs; vocabularies of %d and %d pieces",
             len(train), len(dev), *(t.size for t in tokenizers))  # fmt: skip
    trainer = _compose(config, train, dev, tokenizers, folder)
    _describe(config, trainer)
    try:
        progress = trainer.fit()
    except Stop:
        log.info("stopped and saved; go on with: python train.py resume=%s", folder)
        sys.exit(130)
    finally:
        trainer.writer.close()
    log.info("best dev BLEU %.2f at step %d", progress.best_bleu, progress.best_step)
    log.info("next: python evaluate.py run=%s    or look: tensorboard --logdir %s", folder, RUNS)


def _compose(
    config: DictConfig,
    train: ParallelCorpus,
    dev: ParallelCorpus,
    tokenizers: tuple[Tokenizer, Tokenizer],
    folder: Path,
) -> Trainer:
    """Puts the training together; the run folder comes into being once all of it is sound."""
    src_tokenizer, tgt_tokenizer = tokenizers
    settings, device = config.training, device_of(config.device)
    torch.manual_seed(config.seed)
    vocabularies = (src_tokenizer.size, tgt_tokenizer.size)
    model = checkpoints.build(config.model, *vocabularies).to(device)
    translator = Translator(model, src_tokenizer, tgt_tokenizer, device)
    batches = TrainingBatches(
        TokenArray(src_tokenizer.encode(train.src)),
        TokenArray(tgt_tokenizer.encode(train.tgt)),
        batch_tokens=settings.batch_tokens,
        seed=config.seed,
    )
    optimizer = instantiate(settings.optimizer)(model.parameters())
    rate = schedule(settings.schedule, settings.warmup_steps, settings.max_steps)
    search = instantiate(config.search)
    state = None
    if config.resume is None:
        _write_folder(folder, config, tokenizers)
    elif (folder / "checkpoints" / "last.pt").is_file():
        state = checkpoints.load(folder / "checkpoints" / "last.pt")
    _log_to(folder / "train.log")
    # events after the checkpoint belong to the part that is now done again
    purge = None if config.resume is None else (state["progress"]["step"] + 1 if state else 0)
    writer = SummaryWriter(str(folder), purge_step=purge)
    validate = Validation(
        translator,
        dev,
        search,
        writer,
        batch_tokens=settings.batch_tokens,
        edges=settings.length_edges,
        minimum=settings.length_minimum,
    )
    trainer = Trainer(
        model,
        optimizer,
        rate,
        batches,
        validate,
        folder,
        writer,
        identity={
            "model": OmegaConf.to_container(config.model, resolve=True),
            "vocabularies": list(vocabularies),
        },
        device=device,
        bf16=_bf16(config.precision, device),
        **{name: settings[name] for name in _TRAINER_SETTINGS},
    )
    if state is not None:
        trainer.resume(state)
    else:
        write_hyperparameters(writer, _flat(config))
    return trainer


_TRAINER_SETTINGS = (
    "max_steps",
    "accumulate",
    "clip_norm",
    "label_smoothing",
    "validate_every",
    "patience",
    "log_every",
)


def _new_folder(config: DictConfig) -> Path:
    """runs/corpus/model/name, which must not exist yet; the time is the name where none is given."""
    chosen = HydraConfig.get().runtime.choices
    parent = Path(RUNS) / chosen["data"] / chosen["model"]
    if config.name is not None:
        folder = parent / str(config.name)
        if folder.exists():
            raise ValueError(
                f"{folder} exists and is not overwritten: give another name=, "
                f"or go on with resume={folder}"
            )
        return folder
    time = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    names = [time, *(f"{time}-{n}" for n in range(2, 1000))]
    return next(parent / name for name in names if not (parent / name).exists())


def _write_folder(
    folder: Path, config: DictConfig, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    """Makes the run folder: resolved settings, overrides, vocabularies."""
    job = HydraConfig.get()
    chosen = {group: name for group, name in job.runtime.choices.items() if "hydra" not in group}
    folder.mkdir(parents=True)
    (folder / "checkpoints").mkdir()
    (folder / "tokenizers").mkdir()
    for side, tokenizer in zip(("src", "tgt"), tokenizers, strict=True):
        (folder / "tokenizers" / f"{side}.model").write_bytes(tokenizer.model)
    OmegaConf.save(OmegaConf.create(list(job.overrides.task)), folder / "overrides.yaml")
    kept = OmegaConf.create(OmegaConf.to_container(config, resolve=True))
    OmegaConf.save(OmegaConf.merge({"chosen": chosen}, kept), folder / "config.yaml")


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
    config.resume = str(run.folder)
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


def _describe(config: DictConfig, trainer: Trainer) -> None:
    parameters = sum(p.numel() for p in trainer.model.parameters())
    log.info(
        "%s with %s parameters on %s in %s, %d threads -> %s",
        type(trainer.model).__name__,
        f"{parameters:,}",
        trainer.device,
        "bf16" if trainer.bf16 else "fp32",
        torch.get_num_threads(),
        trainer.checkpoints.parent,
    )


def _log_to(path: Path) -> None:
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.getLogger().addHandler(handler)


def _flat(config: DictConfig) -> dict:
    """The settings as one level of dotted names, for TensorBoard."""
    flat = {}
    for group in ("data", "model", "training", "tokenizer", "search"):
        for name, value in OmegaConf.to_container(config[group], resolve=True).items():
            if not isinstance(value, dict | list) and value is not None:
                flat[f"{group}.{name}"] = value
    return {**flat, "seed": config.seed}


if __name__ == "__main__":
    main()
