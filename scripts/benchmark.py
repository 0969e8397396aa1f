"""Measures how fast training and translation are on this machine: python -m scripts.benchmark

Each measurement has a process of its own. Training is train.py's: its composition, its batches, its
updates. Translation is the Translator's, from raw sentences to raw sentences, with untrained
weights and exactly 20 tokens a sentence; with --run also a trained run's, as long as it makes them.
docs/speed.md says what each column means.
"""

import argparse
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException

from cli import CONFIGS, check_overrides, command
from data.batching import TokenArray
from data.corpus import ParallelCorpus
from data.tokenizer import Tokenizer, learn_pair
from decoding import cost
from decoding.device import device_of, use_threads
from decoding.results import write_results
from decoding.run import Run, corpus_of
from decoding.translator import Translator
from evaluation.tables import number, text_table
from scripts.options import add_device
from training.machine import in_fresh_process
from training.machine import machine as machine_of

MODELS = sorted(path.stem for path in (CONFIGS / "model").glob("*.yaml"))
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
BEAMS = (1, 5)
SEARCH = ("dtype", "beam", "batch", "length")  # how a translation is looked for
LENGTH = 20  # target tokens of a translation with untrained weights
PAIRS = 30_000  # of the corpus: enough for batches of all lengths
SENTENCES = 500  # to translate
COUNTED, PROFILED = 10, 3  # updates whose products are counted; whose time is told apart
SHORT = {  # options that stand for a setting of train.py
    **{"threads": "threads", "width": "width", "vocabulary": "tokenizer.size"},
    **{"batch_tokens": "training.batch_tokens", "device": "device"},
}
PEERS = [  # the sizes at which other toolkits have been measured: docs/speed.md
    *("width=256", "tokenizer.type=unigram", "tokenizer.size=8000", "tokenizer.shared=true"),
    *("training.batch_tokens=4096", "training.dropout=0.1"),
]
DEEPER = ["model.encoder_layers=3", "model.decoder_layers=3", "model.alignment_layer=3"]
PEER_MODELS = {
    "transformer": [*DEEPER, "model.expansion=4", "model.tied=all"],
    "bahdanau": ["model.hidden=384"],
    "rnn": ["model.hidden=384"],
}

log = logging.getLogger(__name__)
Record = dict[str, Any]
Table = tuple[list[str], list[list[str]]]  # header, rows


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_intermixed_args(arguments)
    todo = list(tasks(options))
    check_overrides("train", [f"model={todo[0]['model']}", *options.overrides])
    records = [machine(options)]
    print(*(f"{name}: {value}" for name, value in records[0].items()), sep="\n")
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # or the profiler reports its start and stop
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), options)
        for done, task in enumerate(todo):
            said = ", ".join(f"{key} {value}" for key, value in task.items())
            log.info("%d of %d: %s", done + 1, len(todo), said)
            records += in_fresh_process(measure, task, Path(folder), options)
    found = dict(tables(records))
    for task, (header, rows) in found.items() if options.results else ():
        path = options.results.with_name(f"{options.results.name}_{task}.json")
        own = [record for record in records if record["task"] in ("machine", task)]
        write_results(path, header, rows, own, runs=[])
    print("\n\n".join(["", *(text_table(*table) for table in found.values())]))
    print("\nwhat the columns mean, and how to compare with other toolkits: docs/speed.md")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.benchmark",
        description="Measures how fast training and translation are on this machine.",
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="KEY=VALUE", help="settings of train.py, such as data=bible"
    )
    parser.add_argument("--models", default=",".join(MODELS), help="(default: %(default)s)")
    parser.add_argument("--dtypes", default="fp32,bf16", help="(default: %(default)s)")
    parser.add_argument("--only", choices=("train", "translate"), help="one half")
    parser.add_argument("--run", type=Path, metavar="RUN", help="translate with this one, too")
    parser.add_argument("--text", type=Path, nargs=2, metavar="FILE", help="source, target lines")
    parser.add_argument("--peer-sizes", action="store_true", help="sizes others were measured at")
    for option in ("threads", "width", "vocabulary", "batch-tokens"):
        key = SHORT[option.replace("-", "_")]
        parser.add_argument(f"--{option}", type=int, metavar="N", help=f"the same as {key}=N")
    parser.add_argument("--batches", default="1,64", help="sentences at once, at most (1,64)")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement (4)")
    add_device(parser)
    parser.add_argument(
        "--results", type=Path, metavar="NAME", help="tables and numbers: NAME_train.json, ..."
    )
    return parser


def tasks(options: argparse.Namespace) -> Iterator[Record]:
    """What is to be measured, one after the other; ValueError for what cannot be."""
    models, dtypes = options.models.split(","), options.dtypes.split(",")
    for names, known in ((models, MODELS), (dtypes, list(DTYPES))):
        for name in names:
            if name not in known:
                raise ValueError(f"{name!r} is unknown; there are {', '.join(known)}")
    if options.seconds < 0:
        raise ValueError(f"--seconds must not be negative, but is {options.seconds}")
    batches = [int(b) if b.isascii() and b.isdigit() else 0 for b in options.batches.split(",")]
    if min(batches) < 1:
        raise ValueError(f"--batches {options.batches}: not numbers from 1 on, such as 1,64")
    run = Run(options.run) if options.run else None
    if options.only != "translate":
        for model in models:
            yield from ({"task": "train", "model": model, "dtype": dtype} for dtype in dtypes)
    if options.only != "train":
        for model in [*models, *([run.name] if run else [])]:
            for beam, batch, dtype in product(BEAMS, batches, dtypes):
                about = {"model": model, "dtype": dtype, "beam": beam, "batch": batch}
                yield {"task": "translate", **about}


def machine(options: argparse.Namespace) -> Record:
    """Where this is measured."""
    use_threads(options.threads)
    device = device_of(options.device)
    return {
        "task": "machine",
        **machine_of(device),
        "torch": torch.__version__,
        "load": round(os.getloadavg()[0], 2),
    }


def prepare(folder: Path, options: argparse.Namespace) -> None:
    """Writes the text and the vocabularies that all measurements share."""
    if options.text:
        names = ("data.train_src", "data.train_tgt")
        options.overrides += ["data=files", *map("{}={}".format, names, options.text)]
    model = options.models.split(",")[0]
    config = settings(options, f"model={model}", f"data.max_pairs={PAIRS}")
    corpus = corpus_of(config.data).load("train")
    pair = learn_pair(corpus.src, corpus.tgt, **config.tokenizer, cache=folder)
    for side, tokenizer in zip(("src", "tgt"), pair, strict=True):
        lines = "".join(f"{sentence}\n" for sentence in getattr(corpus, side))
        (folder / f"train.{side}").write_text(lines, encoding="utf-8")
        (folder / f"{side}.model").write_bytes(tokenizer.model)
    # from here on the corpus is what has been written
    options.overrides = [o for o in options.overrides if not o.startswith(("data=", "data."))]


def settings(options: argparse.Namespace, *overrides: str) -> Any:
    """The settings that train.py has with these options."""
    given = {key: getattr(options, name) for name, key in SHORT.items()}
    short = [f"{key}={value}" for key, value in given.items() if value is not None]
    peers = PEERS if options.peer_sizes else []
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        try:
            return compose("train", [*peers, *short, *options.overrides, *overrides])
        except HydraException as error:  # a setting of one model that another has not
            raise ValueError(str(error)) from error


def measure(task: Record, folder: Path, options: argparse.Namespace) -> list[Record]:
    """The records of one task."""
    use_threads(options.threads)
    torch.manual_seed(1)
    device = device_of(options.device)
    if task["model"] not in MODELS:
        run = Run(options.run)
        translator = Translator.from_run(run, options.device, precision=task["dtype"])
        return [translation(task, translator, run.corpus().load("test").src, None, options)]
    files = [f"data.train_{side}={folder}/train.{side}" for side in ("src", "tgt")]
    files += ["data=files", "data.dev_share=0", "data.test_share=0"]
    sizes = PEER_MODELS.get(task["model"], []) if options.peer_sizes else []
    sizes = [*sizes, f"model={task['model']}", f"precision={task['dtype']}"]
    config = settings(options, *files, *sizes)
    if task["task"] == "train":
        return training(task, config, folder, options.seconds)
    pair = [Tokenizer.load(folder / f"{side}.model") for side in ("src", "tgt")]
    lines = (folder / "train.src").read_text(encoding="utf-8").splitlines()
    translator = cost.untrained(config.model, pair, device, task["dtype"] == "bf16")
    return [translation(task, translator, lines, LENGTH, options)]


def training(task: Record, config: Any, folder: Path, seconds: float) -> list[Record]:
    """Speed and memory of train.py's updates, and where their time goes."""
    # imported here, or the memory of translation would hold what training needs
    import train
    from training import cost as training_cost

    corpus = corpus_of(config.data).load("train")
    pair = learn_pair(corpus.src, corpus.tgt, **config.tokenizer, cache=folder)
    sides = zip(pair, (corpus.src, corpus.tgt), strict=True)
    arrays = tuple(TokenArray(tokenizer.encode(side)) for tokenizer, side in sides)
    dev = ParallelCorpus(corpus.src[:1], corpus.tgt[:1])
    data = train.Data(arrays, dev, pair, text="")
    trainer = train.trainer_of(config, train.parts_of(config, data), data, folder, writer=None)
    flops = training_cost.product_flops_per_token(trainer, COUNTED)
    speed = training_cost.speed(trainer, seconds)
    memory = cost.peak_memory_mb(trainer.device)
    kinds = training_cost.kinds_of_work(trainer, PROFILED)
    peak = training_cost.peak_flops(trainer.device, DTYPES[task["dtype"]])
    rate = None if flops is None else flops * speed.tgt_tokens_per_s
    record = {
        **task,
        "batch": config.training.batch_tokens,
        "beam": None,
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        **speed._asdict(),
        **memory,
        "product_gflops_per_s": None if rate is None else rate / 1e9,
        "peak_gflops_per_s": peak / 1e9,
        "share_of_peak": None if rate is None else rate / peak,
    }
    return [record, *({**task, "task": "profile", "kind": k, "share": s} for k, s in kinds.items())]


def translation(
    task: Record,
    translator: Translator,
    lines: Sequence[str],
    length: int | None,
    options: argparse.Namespace,
) -> Record:
    """Speed and memory of a translator."""
    speed = cost.speed(
        translator,
        lines[:: max(1, len(lines) // SENTENCES)],
        cost.search_in_batches(task["beam"], task["batch"], length),
        alone=task["batch"] == 1,
        seconds=options.seconds,
    )
    return {
        **task,
        "length": length or "its own",
        "parameters": sum(p.numel() for p in translator.model.parameters()),
        **speed._asdict(),
        **cost.peak_memory_mb(translator.device),
        "share_of_peak": None,
    }


def tables(records: Sequence[Record]) -> Iterator[tuple[str, Table]]:
    """The tables of each task: training, where its time goes, translation."""
    trained, profiles, translated = (
        [r for r in records if r["task"] == task] for task in ("train", "profile", "translate")
    )
    if trained:
        yield "train", _table(trained, {"training": "model", "dtype": "dtype"}, TRAINING)
        header = ["% of an update", *(f"{r['model']} {r['dtype']}" for r in trained)]
        rows: dict[str, list[str]] = {}
        for r in profiles:
            rows.setdefault(r["kind"], [r["kind"]]).append(number(100 * r["share"]))
        yield "profile", (header, list(rows.values()))
    if translated:
        labels = {"translation": "model", **{key: key for key in SEARCH}}
        yield "translate", _table(translated, labels, TRANSLATION)


SPEED = {"tokens/s": "tgt_tokens_per_s", "sentences/s": "sentences_per_s"}
USE = {"cores used": "cores_used", "MB": "peak_rss_mb", "GPU MB": "peak_gpu_mb"}
PRODUCTS = {"GFLOP/s": "product_gflops_per_s", "peak GFLOP/s": "peak_gflops_per_s"}
TRAINING = {**SPEED, **PRODUCTS, "share of peak": "share_of_peak", **USE}
TRANSLATION = {**SPEED, "tokens each": "mean_length", **USE}


def _table(records: Sequence[Record], labels: dict[str, str], numbers: dict[str, str]) -> Table:
    """One row a record; columns, by their headers, hold the values of these keys."""
    shown = {k: key for k, key in numbers.items() if any(r[key] is not None for r in records)}
    digits = {"share_of_peak": 2, "peak_rss_mb": 0, "tgt_tokens_per_s": 0, "cores_used": 2}
    rows = [
        [str(r[key]) for key in labels.values()]
        + [f"{r['parameters']:,}"]
        + [number(r[key], digits.get(key, 1)) for key in shown.values()]
        for r in records
    ]
    return [*labels, "parameters", *shown], rows


if __name__ == "__main__":
    main()
