"""A trained run, ready to use: sentences in; translations or alignments out."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from data.batching import Batch, by_length, collate, pad
from data.corpus import normalise
from data.tokenizer import EOS, PAD, UNK, Tokenizer
from decoding.device import device_of, wants_bf16
from decoding.run import Run
from decoding.search import Hypothesis, beam_search
from models import checkpoint as checkpoints
from models.seq2seq import ALIGNMENT, AttentionMap, Seq2Seq

MAX_SOURCE_TOKENS = 1_000  # of longer sources only so many tokens are read, with a warning
BATCH_TOKENS = 4_000  # source tokens translated at once, fewer with a beam
WIDE_BEAM = 8  # that is wider than this, so that memory is bounded
MAX_BEAM, MAX_PENALTY = 1_000, 100.0

log = logging.getLogger(__name__)


class Search(Protocol):
    """`beam_search` with its options set, as configs/search gives it."""

    def __call__(
        self, model: Seq2Seq, src: Tensor, src_mask: Tensor, *, max_len: Tensor
    ) -> list[list[Hypothesis]]: ...


class Translation(NamedTuple):
    """A sentence's translation, and how it came about."""

    text: str
    tokens: list[int]  # what the search returned, without BOS and EOS
    pieces: list[str]
    score: float
    log_prob: float
    length_capped: bool
    unknown_tokens: int


class Alignment(NamedTuple):
    """Where the decoder looked while it produced a given target."""

    src_pieces: list[str]  # the last one is "</s>"
    tgt_pieces: list[str]  # the last one is "</s>"
    weights: np.ndarray  # (tgt_pieces, src_pieces), rows sum to 1


class WeightMap(NamedTuple):
    """A model's `AttentionMap` of one sentence pair, without padding."""

    weights: np.ndarray  # (layers, heads, queries, keys): each query's weights sum to 1
    queries: str  # source, target, or both: the source's positions, then the target's
    keys: str


class Attention(NamedTuple):
    """All the attention with which a model produced a given target."""

    src_pieces: list[str]  # the last one is "</s>"
    tgt_pieces: list[str]  # what each step of the decoder predicts; the last one is "</s>"
    maps: dict[str, WeightMap]  # by name; models.seq2seq.ALIGNMENT is among them


def search_with(beam_size: int, length_penalty: float) -> Search:
    """`beam_search` with these options; ValueError if they are impossible."""
    if not 1 <= beam_size <= MAX_BEAM:
        bound = "at least 1" if beam_size < 1 else f"at most {MAX_BEAM}"
        raise ValueError(f"search.beam_size must be {bound}, not {beam_size}")
    if not 0 <= length_penalty <= MAX_PENALTY:
        raise ValueError(
            f"search.length_penalty must be from 0 to {MAX_PENALTY:g}, not {length_penalty}"
        )
    return partial(beam_search, beam_size=beam_size, length_penalty=length_penalty)


def search_of(settings: Mapping[str, Any]) -> Search:
    """`search_with` the options that a `search` config gives; ValueError for another function.

    Settings may come from a run folder that is anybody's.
    """
    options = {key: value for key, value in settings.items() if key != "_target_"}
    if settings.get("_target_") != f"{__name__}.search_with":
        raise ValueError(f"search._target_ must be {__name__}.search_with")
    try:
        return search_with(**options)
    except TypeError as error:
        raise ValueError(f"search: {error}") from error


class Translator:
    """A model with its two vocabularies. Sentences are normalised here as they were in training.

    A translation has at most 2 tokens for each source token, and 10 more.
    """

    def __init__(
        self,
        model: Seq2Seq,
        src_tokenizer: Tokenizer,
        tgt_tokenizer: Tokenizer,
        device: torch.device,
        bf16: bool = False,
    ) -> None:
        """bf16: matrix products of the search in bfloat16; alignments are always in float32."""
        self.model, self.device, self.bf16 = model.to(device), device, bf16
        self.src_tokenizer, self.tgt_tokenizer = src_tokenizer, tgt_tokenizer

    @classmethod
    def from_run(
        cls,
        run: Run,
        device: str = "auto",
        checkpoint: str | Sequence[str] = "best",
        precision: str = "fp32",
    ) -> "Translator":
        """The translator of a run; checkpoint: best, last, a file, or several or `kept` to average.

        precision: of the search's matrix products, fp32, bf16 or auto.
        """
        tokenizers = run.tokenizers()
        model = checkpoints.restore(run.checkpoints(checkpoint), [t.digest for t in tokenizers])
        place = device_of(device)
        return cls(model, *tokenizers, place, wants_bf16(precision, place))

    @property
    def has_attention(self) -> bool:
        """Whether the model says where it looks."""
        self.model.eval()
        src = torch.tensor([[EOS]], device=self.device)
        with torch.inference_mode():
            return self.model(src, src == EOS, src).alignment is not None

    def translate(self, sentences: Sequence[str], search: Search) -> list[Translation]:
        """The best translation of each sentence, in the order given; of a blank one, a blank."""
        return [found[0] for found in self.alternatives(sentences, search)]

    def alternatives(
        self, sentences: Sequence[str], search: Search, first_line: int = 1
    ) -> list[list[Translation]]:
        """The translations that the search ended with for each sentence, the best first.

        first_line: the number of the first sentence, for warnings.
        """
        sources = [normalise(sentence) for sentence in sentences]
        results = [[Translation("", [], [], 0.0, 0.0, False, 0)] for _ in sources]
        present = [i for i, source in enumerate(sources) if source]
        tokens = self._read(sources, first_line)
        self.model.eval()
        beam_size = getattr(search, "keywords", {}).get("beam_size", 1)
        budget = BATCH_TOKENS * WIDE_BEAM // max(WIDE_BEAM, beam_size)
        for group in self._groups("translating", [tokens[i] for i in present], budget=budget):
            numbers = [present[i] for i in group]
            src = pad([[*tokens[i], EOS] for i in numbers]).to(self.device)
            src_mask = src != PAD
            max_len = 2 * src_mask.sum(dim=1) + 10
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
                found = search(self.model, src, src_mask, max_len=max_len)
            for i, hypotheses in zip(numbers, found, strict=True):
                if not hypotheses:  # no score is above minus infinity
                    raise ValueError("the model's scores are not numbers: are its weights damaged?")
                results[i] = [self._write(hypothesis) for hypothesis in hypotheses]
        return results

    def align(
        self, sources: Sequence[str], targets: Sequence[str | Translation]
    ) -> list[Alignment]:
        """The model's alignment while it is made to produce `targets`: forced decoding.

        A translation is aligned as the very tokens that the search returned, which need not be
        those that its text would be split into. Raises ValueError for a model without attention.
        """

        def look(batch: Batch) -> dict[str, AttentionMap]:
            alignment = self.model(batch.src, batch.src_mask, batch.tgt_in).alignment
            return {ALIGNMENT: AttentionMap(alignment[:, None, None], "target", "source")}

        found = self._attention(sources, targets, look)
        return [Alignment(src, tgt, maps[ALIGNMENT].weights[0, 0]) for src, tgt, maps in found]

    def attention(
        self,
        sources: Sequence[str],
        targets: Sequence[str | Translation],
        first_line: int = 1,
    ) -> list[Attention]:
        """All of the model's attention while it is made to produce `targets`, like `align`."""

        def look(batch: Batch) -> dict[str, AttentionMap]:
            return self.model.attention_maps(batch.src, batch.src_mask, batch.tgt_in)

        return self._attention(sources, targets, look, first_line)

    def log_probs(
        self, sources: Sequence[str], targets: Sequence[str | Translation]
    ) -> list[np.ndarray]:
        """The log-probability of each target piece and of "</s>", while they are produced by force.

        (target pieces + 1,) of each pair; the pieces are those of `align`.
        """
        src, tgt = self._pairs(sources, targets)
        results = [np.zeros(0)] * len(src)
        self.model.eval()
        for group in self._groups("scoring", src, tgt):
            batch = collate([src[i] for i in group], [tgt[i] for i in group]).to(self.device)
            with torch.inference_mode():
                logits = self.model(batch.src, batch.src_mask, batch.tgt_in).logits.float()
                of_all = logits.log_softmax(dim=-1)
                found = of_all.gather(2, batch.tgt_out.unsqueeze(2)).squeeze(2).cpu().numpy()
            for i, row in zip(group, found, strict=True):
                results[i] = row[: len(tgt[i]) + 1]
        return results

    def _attention(
        self,
        sources: Sequence[str],
        targets: Sequence[str | Translation],
        look: Callable[[Batch], dict[str, AttentionMap]],
        first_line: int = 1,
    ) -> list[Attention]:
        if not self.has_attention:
            name = type(self.model).__name__
            raise ValueError(f"{name} has no attention, so there is no alignment to show")
        src, tgt = self._pairs(sources, targets, first_line)
        results: list[Attention | None] = [None] * len(src)
        self.model.eval()
        for group in self._groups("aligning", src, tgt):
            batch = collate([src[i] for i in group], [tgt[i] for i in group]).to(self.device)
            with torch.inference_mode():
                maps = look(batch)
            for row, i in enumerate(group):
                src_pieces = [*self.src_tokenizer.pieces(src[i]), "</s>"]
                tgt_pieces = [*self.tgt_tokenizer.pieces(tgt[i]), "</s>"]
                places = _places(len(src_pieces), len(tgt_pieces), batch.src.size(1))
                own = {
                    name: WeightMap(
                        found.weights[row][:, :, places[found.queries]][..., places[found.keys]]
                        .float()
                        .cpu()
                        .numpy(),
                        found.queries,
                        found.keys,
                    )
                    for name, found in maps.items()
                }
                results[i] = Attention(src_pieces, tgt_pieces, own)
        return results

    def _pairs(
        self,
        sources: Sequence[str],
        targets: Sequence[str | Translation],
        first_line: int = 1,
    ) -> tuple[list[list[int]], list[list[int]]]:
        """The tokens of both sides; of a translation, the very ones that the search returned."""
        src = self._read([normalise(source) for source in sources], first_line)
        tgt = [
            target.tokens
            if isinstance(target, Translation)
            else self.tgt_tokenizer.encode([normalise(target)])[0]
            for target in targets
        ]
        return src, tgt

    def _read(self, sources: Sequence[str], first_line: int = 1) -> list[list[int]]:
        """Source tokens, cut at MAX_SOURCE_TOKENS with a warning that names the line."""
        tokens = self.src_tokenizer.encode(sources)
        for number, sentence in enumerate(tokens, start=first_line):
            if len(sentence) > MAX_SOURCE_TOKENS:
                log.warning(
                    "line %d has %d tokens: only the first %d are read",
                    number,
                    len(sentence),
                    MAX_SOURCE_TOKENS,
                )
                del sentence[MAX_SOURCE_TOKENS:]
        return tokens

    def _write(self, hypothesis: Hypothesis) -> Translation:
        tokens = hypothesis.tokens
        return Translation(
            self.tgt_tokenizer.decode(tokens),
            tokens,
            self.tgt_tokenizer.pieces(tokens),
            hypothesis.score,
            hypothesis.log_prob,
            hypothesis.length_capped,
            tokens.count(UNK),
        )

    @staticmethod
    def _groups(
        doing: str, *sides: Sequence[Sequence[int]], budget: int = BATCH_TOKENS
    ) -> Iterator[list[int]]:
        """Sentence numbers in groups of similar length, with a progress bar.

        budget: padded tokens of a group, on its longer side if there are two.
        """
        if not sides[0]:
            return
        lengths = np.array([[len(sentence) + 1 for sentence in side] for side in sides]).T
        with tqdm(
            total=len(lengths), desc=doing, unit="sentence", disable=None, leave=False
        ) as bar:
            for group in by_length(lengths, budget):
                yield group.tolist()
                bar.update(len(group))


def attentive(run: Run, device: str, checkpoint: str) -> Translator:
    """The translator of a run whose model says where it looks; ValueError for another."""
    translator = Translator.from_run(run, device, checkpoint)
    if not translator.has_attention:
        raise ValueError(f"{run.name} has no attention, so there is no alignment to show")
    return translator


def _places(src: int, tgt: int, padded_src: int) -> dict[str, Tensor]:
    """The positions of a pair's own tokens in a padded batch."""
    source, target = torch.arange(src), torch.arange(tgt)
    return {
        "source": source,
        "target": target,
        "both": torch.cat([source, padded_src + target]),
    }
