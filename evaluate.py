"""Evaluates a run: split -> translations, BLEU, chrF, TER, BLEU by source length.

python evaluate.py run=runs/bible/bahdanau/NAME split=test search=beam

The model, its vocabularies and its corpus come from the run, so that evaluation cannot contradict
training. Results go to RUN/evaluation/<split>/.
"""

import csv
import io
import json
import logging
import time
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, ListConfig, OmegaConf

from cli import hydra_command
from data.corpus import ParallelCorpus
from data.text import write_whole
from decoding.device import use_threads
from decoding.run import Run
from decoding.translator import Translation, Translator, search_of
from evaluation.bleu import buckets, scores
from evaluation.figures import bleu_by_length_figure, save
from evaluation.moses import moses_bleu

log = logging.getLogger(__name__)


@hydra_command("evaluate")
def main(config: DictConfig) -> None:
    if config.run is None:
        raise ValueError("which run? give run=runs/<data>/<model>/<name>")
    run = Run(config.run)
    use_threads(config.threads)
    names = config.checkpoint
    names = list(names) if isinstance(names, ListConfig) else str(names)
    search = search_of(OmegaConf.to_container(config.search, resolve=True))
    buckets([], config.length_edges)  # refuses impossible edges now, not after all the work
    translator = Translator.from_run(run, config.device, names, config.precision)
    source = run.corpus()
    corpus = source.load(config.split)
    begun = time.perf_counter()
    translations = translator.translate(corpus.src, search)
    seconds = time.perf_counter() - begun
    hypotheses = [translation.text for translation in translations]
    references = [corpus.tgt, *corpus.extra_references]
    measured = scores(
        hypotheses,
        references,
        corpus.src,
        edges=list(config.length_edges),
        minimum=config.length_minimum,
        ter=config.ter,
    )
    if config.moses:
        measured["moses_bleu"] = moses_bleu(hypotheses, references, source.languages[1])
    measured |= {
        "length_capped": sum(t.length_capped for t in translations),
        "unknown_tokens": sum(t.unknown_tokens for t in translations),
        "run": run.name,
        "parameters": sum(p.numel() for p in translator.model.parameters()),
        "checkpoint": names,
        "overrides": [o for o in HydraConfig.get().overrides.task if not o.startswith("run=")],
        "search": {k: v for k, v in OmegaConf.to_container(config.search).items() if k[0] != "_"},
        "precision": "bf16" if translator.bf16 else "fp32",
        "seconds": seconds,
        "sentences_per_second": len(hypotheses) / seconds,
    }
    folder = run.folder / "evaluation" / config.split
    _write(folder, corpus, source.languages, translations, measured, run)
    _warn(measured)
    bleu = measured["bleu"]
    low, high = bleu["ci95"]
    print(f"{run.name}: BLEU {bleu['score']:.2f} [{low:.2f}, {high:.2f}] on {config.split}")
    log.info("look: %s    all numbers: %s", folder / "bleu_by_length.png", folder / "scores.json")


def _write(
    folder: Path,
    corpus: ParallelCorpus,
    languages: tuple[str, str],
    translations: list[Translation],
    measured: dict[str, Any],
    run: Run,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scores.json").unlink(missing_ok=True)  # of an evaluation before
    src, tgt = languages
    texts = {f"sources.{src}": corpus.src, f"references.{tgt}": corpus.tgt}
    for number, reference in enumerate(corpus.extra_references, start=2):
        texts[f"references.{number}.{tgt}"] = reference
    texts[f"hypotheses.{tgt}"] = [translation.text for translation in translations]
    for name, lines in texts.items():
        write_whole(folder / name, "".join(f"{line}\n" for line in lines))
    write_whole(folder / "bleu_by_length.csv", _table(measured["by_length"]))
    save(bleu_by_length_figure({run.name: measured["by_length"]}), folder / "bleu_by_length.png")
    # the scores come last: where they are, all of it is
    write_whole(folder / "scores.json", json.dumps(measured, indent=2, ensure_ascii=False) + "\n")


def _table(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["from", "to", "sentences", "bleu", "ci95_low", "ci95_high"])
    for row in rows:
        low, high = row["ci95"] or (None, None)
        writer.writerow([row["from"], row["to"], row["sentences"], row["bleu"], low, high])
    return text.getvalue()


def _warn(measured: dict[str, Any]) -> None:
    for key, meaning in (
        ("length_capped", "translations were cut off by the length limit"),
        ("unknown_tokens", 'unknown tokens are in the output, written as "⁇"'),
    ):
        if measured[key]:
            log.warning("%d %s", measured[key], meaning)


if __name__ == "__main__":
    main()
