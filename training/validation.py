"""What is measured on the dev set while a model trains, and how TensorBoard shows it."""

import logging
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from sacrebleu.metrics import BLEU, CHRF
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

from data.batching import TokenArray, evaluation_batches
from data.corpus import ParallelCorpus
from data.tokenizer import PAD, Tokenizer
from decoding.translator import ALIGNMENT, MAX_SOURCE_TOKENS, Search, Translator
from evaluation.alignment import MEAN, select, selection, word_alignment, words
from evaluation.bleu import bleu_by_length
from evaluation.figures import alignment_figure
from models.seq2seq import Seq2Seq

SHOWN = 8  # translations written out at each validation, at most
MAX_DRAWN = 200  # tokens of a sentence whose alignment is drawn

log = logging.getLogger(__name__)


class Scores(NamedTuple):
    """A model's quality on the dev set."""

    loss: float  # nats a token, free of label smoothing
    perplexity: float  # exp(loss)
    bleu: float
    chrf: float


@torch.inference_mode()
def negative_log_likelihood(
    model: Seq2Seq, src: TokenArray, tgt: TokenArray, batch_tokens: int, device: torch.device
) -> float:
    """Mean over all target tokens, EOS counted, in nats; no label smoothing, no dropout."""
    model.eval()
    total, tokens = 0.0, 0
    for batch in evaluation_batches(src, tgt, batch_tokens):
        batch = batch.to(device)
        logits = model(batch.src, batch.src_mask, batch.tgt_in).logits
        total += nn.functional.cross_entropy(
            logits.float().flatten(0, 1), batch.tgt_out.flatten(), ignore_index=PAD, reduction="sum"
        ).item()
        tokens += int((batch.tgt_out != PAD).sum())
    return total / tokens


class Validation:
    """Measures the translator's model on the dev set and writes what it finds to TensorBoard."""

    def __init__(
        self,
        translator: Translator,
        dev: ParallelCorpus,
        search: Search,
        writer: SummaryWriter | None,
        *,
        batch_tokens: int,
        edges: Sequence[int],
        minimum: int,
    ) -> None:
        self.translator, self.dev, self.search, self.writer = translator, dev, search, writer
        self.batch_tokens, self.edges, self.minimum = batch_tokens, edges, minimum
        # made once: a cache of sacreBLEU's keeps every line under every metric that has read it
        self.bleu, self.chrf = BLEU(), CHRF()
        self.src = _tokens(translator.src_tokenizer, dev.src)
        self.tgt = _tokens(translator.tgt_tokenizer, dev.tgt)
        self.shown = self._illustrative()

    def _illustrative(self) -> int | None:
        """The sentence whose alignment is drawn: the one nearest 12 words, the first if several."""
        nearest = min(range(len(self.dev)), key=lambda i: abs(len(words(self.dev.src[i])) - 12))
        longest = max(self.src.lengths[nearest], self.tgt.lengths[nearest])
        return nearest if longest <= MAX_DRAWN else None

    def __call__(self, step: int) -> Scores:
        model, dev = self.translator.model, self.dev
        loss = negative_log_likelihood(
            model, self.src, self.tgt, self.batch_tokens, self.translator.device
        )
        if not math.isfinite(loss):  # then there is nothing to choose a translation by
            return Scores(loss, loss, 0.0, 0.0)
        begun = time.perf_counter()
        hypotheses = [t.text for t in self.translator.translate(dev.src, self.search)]
        seconds = time.perf_counter() - begun
        references = [dev.tgt, *dev.extra_references]
        scores = Scores(
            loss,
            math.exp(min(loss, 100.0)),
            self.bleu.corpus_score(hypotheses, references).score,
            self.chrf.corpus_score(hypotheses, references).score,
        )
        for name, value in scores._asdict().items():
            self.writer.add_scalar(f"valid/{name}", value, step)
        self.writer.add_scalar("valid/sentences_per_second", len(dev) / seconds, step)
        self._write_lengths(hypotheses, references, step)
        self._write_translations(hypotheses, step)
        if self.translator.has_attention and self.shown is not None:
            try:
                self._write_alignment(self.shown, step)
            except ValueError as error:  # what cannot be drawn ends no training
                log.warning("no alignment of dev sentence %d: %s", self.shown + 1, error)
        return scores

    def _write_lengths(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], step: int
    ) -> None:
        rows = bleu_by_length(
            hypotheses, references, self.dev.src, edges=self.edges, minimum=self.minimum
        )
        for row in rows:
            if row["bleu"] is not None:
                words = f"{row['from']}+" if row["to"] is None else f"{row['from']}-{row['to']}"
                self.writer.add_scalar(f"valid/bleu_by_length/{words}", row["bleu"], step)

    def _write_translations(self, hypotheses: Sequence[str], step: int) -> None:
        lines = ["| source | reference | hypothesis |", "|---|---|---|"]
        for i in spread(len(hypotheses)):
            cells = (self.dev.src[i], self.dev.tgt[i], hypotheses[i])
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        self.writer.add_text("valid/translations", "\n".join(lines), step)

    def _write_alignment(self, shown: int, step: int) -> None:
        source, target = self.dev.src[shown], self.dev.tgt[shown]
        found = self.translator.attention([source], [target])[0]
        weights = found.maps[ALIGNMENT].weights
        layer = getattr(self.translator.model, "alignment_layer", len(weights))
        drawn = word_alignment(
            select(weights, layer, MEAN),
            found.src_pieces,
            found.tgt_pieces,
            src_words=words(source),
            tgt_words=words(target),
        )
        title = f"step {step}, forced to the reference"
        where = selection(weights.shape[:2], layer, MEAN)
        caption = f"{where} · </s> left out, rows rescaled to 1 · black 0, white 1"
        figure = alignment_figure(
            drawn.matrix, drawn.src_words, drawn.tgt_words, title=title, caption=caption
        )
        figure.set_dpi(200)  # or its small letters are a blur
        self.writer.add_figure("valid/alignment", figure, step)


def _tokens(tokenizer: Tokenizer, sentences: Sequence[str]) -> TokenArray:
    """The sentences' tokens, of each as many as are read in translating, or memory had no bound."""
    tokens = tokenizer.encode(sentences)
    longer = sum(len(sentence) > MAX_SOURCE_TOKENS for sentence in tokens)
    if longer:
        log.warning(
            "dev loss: of %d sentences only the first %d tokens count", longer, MAX_SOURCE_TOKENS
        )
    return TokenArray([sentence[:MAX_SOURCE_TOKENS] for sentence in tokens])


def write_hyperparameters(writer: SummaryWriter, settings: dict) -> None:
    """The run's settings for TensorBoard's HParams table, beside its best scores (best/bleu, ...).

    Written through the run's own writer, as `add_hparams` would make a run of its own; and without
    the list of columns that it adds, as TensorBoard would take one run's list for all runs.
    """
    flat = {name: settings["chosen"][name] for name in ("data", "model")}
    flat |= {name: settings[name] for name in ("width", "seed", "precision")}
    for group in ("data", "model", "training", "tokenizer", "search"):
        for name, value in settings[group].items():
            if not isinstance(value, dict | list) and value is not None and name != "_target_":
                flat[f"{group}.{name}"] = value
    plain = {k: v if isinstance(v, bool | int | float) else str(v) for k, v in flat.items()}
    _, start, _ = hparams(plain, {})
    writer.file_writer.add_summary(start)


def spread(count: int) -> list[int]:
    """Which of so many sentences are written out: SHOWN of them, from the whole of the dev set."""
    return sorted({k * count // SHOWN for k in range(SHOWN)})
