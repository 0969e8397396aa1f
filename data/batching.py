"""Token ids become padded batches of sentence pairs of similar length, within a token budget."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from data.tokenizer import BOS, EOS, PAD

LENGTH_STEP = 4  # padded lengths are multiples of this, and
ROWS_STEP = 8  # numbers of rows of that: few distinct shapes, which matrix libraries prepare once
WINDOW = 1 << 20  # most training pairs that are sorted by length at once

log = logging.getLogger(__name__)


Resample = Callable[[Sequence[Sequence[int] | np.ndarray], int], list[list[int]]]


@dataclass(frozen=True)
class Batch:
    """Padded sentence pairs; the target twice, as what is read and as what is to be predicted."""

    src: Tensor  # (batch, src_len), EOS at each end
    tgt_in: Tensor  # (batch, tgt_len), BOS at each beginning
    tgt_out: Tensor  # (batch, tgt_len), EOS at each end

    @property
    def src_mask(self) -> Tensor:
        """(batch, src_len), True on tokens."""
        return self.src != PAD

    @property
    def tgt_tokens(self) -> int:
        """How many real target tokens are to be predicted, EOS counted."""
        return int((self.tgt_out != PAD).sum())

    def to(self, device: torch.device) -> "Batch":
        return Batch(self.src.to(device), self.tgt_in.to(device), self.tgt_out.to(device))

    def share(self, number: int, count: int) -> "Batch":
        """The rows number, number + count, ...: one of `count` shares; it may have no row.

        Neighbouring rows are of similar length, so the shares are about equally long.
        """
        rows = slice(number, None, count)
        return Batch(self.src[rows], self.tgt_in[rows], self.tgt_out[rows])


class TokenArray:
    """The tokens of many sentences, end to end in one array: 2 or 4 bytes each, no Python lists."""

    def __init__(self, sentences: Sequence[Sequence[int]]) -> None:
        self.lengths = np.fromiter((len(s) for s in sentences), np.int64, len(sentences))
        self.starts = np.concatenate([[0], self.lengths.cumsum()])
        self.tokens = np.fromiter((t for s in sentences for t in s), np.int32, self.starts[-1])

    @classmethod
    def mapped(cls, folder: Path, dtype: type[np.integer]) -> "TokenArray":
        """What `write_tokens` has written, read from the files as it is needed."""
        array = cls([])
        array.tokens = np.asarray(np.memmap(folder / "tokens", dtype, "r"))
        array.starts = np.asarray(np.memmap(folder / "starts", np.int64, "r"))
        array.lengths = np.diff(array.starts).astype(np.int32)
        return array

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, sentence: int) -> np.ndarray:
        return self.tokens[self.starts[sentence] : self.starts[sentence + 1]]


def write_tokens(
    chunks: Iterable[Sequence[Sequence[int]]], folder: Path, dtype: type[np.integer]
) -> None:
    """Writes the tokens of sentences, given some at a time, and where each sentence begins."""
    written = 0
    with (folder / "tokens").open("wb") as tokens, (folder / "starts").open("wb") as starts:
        starts.write(np.zeros(1, np.int64))
        for chunk in chunks:
            array = TokenArray(chunk)
            tokens.write(array.tokens.astype(dtype))
            starts.write(array.starts[1:] + written)
            written += len(array.tokens)


def pad(rows: Sequence[Sequence[int] | np.ndarray], step: int = 1) -> Tensor:
    """(batch, longest row rounded up to a multiple of step), PAD after each row's end."""
    longest = max(len(row) for row in rows)
    padded = np.full((len(rows), -(-longest // step) * step), PAD, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return torch.from_numpy(padded)


def collate(
    src: Sequence[Sequence[int] | np.ndarray],
    tgt: Sequence[Sequence[int] | np.ndarray],
    step: int = 1,
) -> Batch:
    """One batch of sentence pairs given as token ids without BOS and EOS."""
    return Batch(
        pad([[*s, EOS] for s in src], step),
        pad([[BOS, *t] for t in tgt], step),
        pad([[*t, EOS] for t in tgt], step),
    )


def by_length(lengths: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Sentence numbers in groups of similar length, longest padded length times rows in budget.

    lengths: (sentences, sides), EOS counted. Shortest first; every sentence in exactly one group.
    """
    padded = -(-lengths // LENGTH_STEP) * LENGTH_STEP
    order = np.lexsort(padded.T)
    longer = padded.max(axis=1)[order]
    groups, begin = [], 0
    while begin < len(order):
        # lengths only nearly grow along the order: take rows while the longest of them fits
        most = batch_tokens // longer[begin]
        longest = np.maximum.accumulate(longer[begin : begin + most])
        rows = int(np.searchsorted(longest * np.arange(1, len(longest) + 1), batch_tokens, "right"))
        rows = max(1, rows - rows % ROWS_STEP if rows > ROWS_STEP else rows)
        groups.append(order[begin : begin + rows])
        begin += rows
    return groups


class TrainingBatches:
    """An endless stream of batches; a new order each epoch; its position can be saved.

    An epoch holds each pair exactly once, in an order drawn over all of them and cut into windows
    of at most WINDOW pairs. Within a window, which is sorted when it begins, pairs of similar
    length form batches, and these come in an order drawn again. All of it depends on the seed and
    the epoch alone, so that (epoch, window, position) is all there is to remember.

    Where concatenation is wanted, that share of a window's pairs is put together two by two, others
    in each epoch (Nguyen et al. 2021, arXiv 2105.01691: words get more neighbours, lengths and
    positions than a small corpus has). What is too long for a batch together stays apart.
    """

    def __init__(
        self,
        src: TokenArray,
        tgt: TokenArray,
        *,
        batch_tokens: int,
        seed: int,
        concatenate: float = 0.0,
        resample: tuple[Resample, Resample] | None = None,
    ) -> None:
        """Raises ValueError if no pair fits into batch_tokens; longer pairs are left out.

        concatenate: the share of the pairs that are put together two by two.

        resample: for each side, from tokens and a seed other tokens of the same sentences. Batches
        are formed before that, and may then be somewhat larger than batch_tokens.
        """
        self.src, self.tgt, self.batch_tokens, self.seed = src, tgt, batch_tokens, seed
        self.concatenate, self.resample = concatenate, resample
        longest = np.maximum(src.lengths, tgt.lengths) + 1  # EOS
        padded = -(-longest // LENGTH_STEP) * LENGTH_STEP
        self.usable = np.flatnonzero(padded <= batch_tokens)
        if len(self.usable) == 0:
            raise ValueError(
                f"no training pair fits into training.batch_tokens={batch_tokens}: "
                f"the shortest has {padded.min()} tokens"
            )
        if len(self.usable) < len(src):
            log.warning(
                "%d training pairs are longer than training.batch_tokens=%d and left out",
                len(src) - len(self.usable),
                batch_tokens,
            )
        self.windows = -(-len(self.usable) // WINDOW)
        self.epoch, self.window, self.position = 0, 0, 0
        self.order = self._order()

    def _order(self) -> list[np.ndarray]:
        """The batches of the present window, each (rows, 2): a pair, and the one after it or -1."""
        random = np.random.default_rng([self.seed, self.epoch])
        pairs = np.array_split(random.permutation(self.usable), self.windows)[self.window]
        rows = self._rows(pairs)
        groups = [rows[group] for group in by_length(self._lengths(rows), self.batch_tokens)]
        return [groups[i] for i in random.permutation(len(groups))]

    def _rows(self, pairs: np.ndarray) -> np.ndarray:
        """The pairs, the first ones two by two: (rows, 2), with -1 where there is but one."""
        half = round(self.concatenate * len(pairs)) // 2
        two = pairs[: 2 * half].reshape(half, 2)
        padded = -(-self._lengths(two) // LENGTH_STEP) * LENGTH_STEP
        fits = (padded <= self.batch_tokens).all(axis=1)
        apart = np.concatenate([two[~fits].flatten(), pairs[2 * half :]])
        return np.concatenate([two[fits], np.stack([apart, np.full_like(apart, -1)], axis=1)])

    def _lengths(self, rows: np.ndarray) -> np.ndarray:
        """(rows, 2): the source and the target tokens of each row, EOS counted."""
        first, second = rows.T
        sides = (
            side.lengths[first] + np.where(second < 0, 0, side.lengths[second])
            for side in (self.src, self.tgt)
        )
        return np.stack(list(sides), axis=1) + 1

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self.position == len(self.order):
            following = self.epoch * self.windows + self.window + 1
            self.epoch, self.window = divmod(following, self.windows)
            self.position, self.order = 0, self._order()
        rows = self.order[self.position].tolist()
        sides = [
            [side[i] if j < 0 else np.concatenate([side[i], side[j]]) for i, j in rows]
            for side in (self.src, self.tgt)
        ]
        if self.resample is not None:
            place = [self.seed, self.epoch, self.window, self.position]
            seeds = np.random.SeedSequence(place).generate_state(2).tolist()
            sides = [f(*one) for f, *one in zip(self.resample, sides, seeds, strict=True)]
        self.position += 1
        return collate(*sides, LENGTH_STEP)

    def _size(self) -> dict[str, int]:
        """By which a text is known again, whatever fits into a batch."""
        tokens = {"src_tokens": int(self.src.starts[-1]), "tgt_tokens": int(self.tgt.starts[-1])}
        return {"pairs": len(self.src), **tokens}

    def state_dict(self) -> dict[str, int]:
        place = {"epoch": self.epoch, "window": self.window, "position": self.position}
        return place | self._size()

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Raises ValueError for a place that this text does not have, or that of another text."""
        for what, now in self._size().items():
            if state.get(what, now) != now:
                raise ValueError(
                    f"the training text has changed: it had {state[what]:,} {what}, and now has "
                    f"{now:,}; train on it in a run of its own"
                )
        if "window" not in state and self.windows > 1:
            raise ValueError(
                f"the checkpoint is older than the order in which over {WINDOW:,} pairs are now"
                " trained on: going on from it would repeat some and miss others"
            )
        self.epoch, self.position = state["epoch"], state["position"]
        self.window = state.get("window", 0)
        self.order = self._order() if 0 <= self.window < self.windows else []
        if not 0 <= self.position <= len(self.order) or not self.order:
            raise ValueError(
                f"training stopped after {self.position} batches of part {self.window} of an epoch,"
                f" but there are {len(self.order)}: has the training text changed?"
            )


def evaluation_batches(src: TokenArray, tgt: TokenArray, batch_tokens: int) -> Iterator[Batch]:
    """Every pair once, in groups of similar length, in no order that matters."""
    lengths = np.stack([src.lengths, tgt.lengths], axis=1) + 1
    for pairs in by_length(lengths, batch_tokens):
        yield collate([src[i] for i in pairs], [tgt[i] for i in pairs], LENGTH_STEP)
