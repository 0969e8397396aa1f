"""The ways to make a noun phrase of each number of words, in the proportions wanted.

They are written out once for each noun, so that one random number chooses determiner, number of
modifiers and complement together.
"""

from functools import cache
from itertools import cycle, islice

from data.generator.determiners import ANY_NUMBER, LARGE_NUMBER, determiner_index
from data.generator.items import Item, Way

MOST_WORDS = 6  # wanted of one noun phrase, without what its complement adds
THE, ZERO = determiner_index("the"), determiner_index("zero")
POSSESSIVE = -3  # instead of a determiner: "the doctor's"
Kinds = tuple[int, ...]  # places in DETERMINERS, or ANY_NUMBER
_OWNED = "text object spot clothes instrument vehicle home animal thought kin"
OWNED = frozenset(_OWNED.split())

# Of a hundred noun phrases with room for it, so many have a complement; "the same", "the first" ...
# or a possessive; a possessive.
COMPLEMENT, DOUBLE, OWNER = 60, 18, 6


def ways(item: Item) -> list[list[Way]]:
    """The ways by number of wanted words, 0 to MOST_WORDS; the same for items that are alike."""
    owned = item.noun_class in OWNED
    return _ways(tuple(item.determiners), tuple(item.doubles), owned, len(item.complements))


@cache
def _ways(determiners: Kinds, doubles: Kinds, owned: bool, complements: int) -> list[list[Way]]:
    return [
        _of_room(max(want - 1, 0), determiners, doubles, owned, complements)
        for want in range(MOST_WORDS + 1)
    ]


def _of_room(
    room: int, determiners: Kinds, doubles: Kinds, owned: bool, complements: int
) -> list[Way]:
    """The ways with so many words after a determiner of one word."""
    if room < 2:
        return [(kind, 0, -1, 0) for kind in determiners]
    made: list[Way] = []
    for kind in determiners:
        large = 3 if kind == ANY_NUMBER and room >= 3 else 0  # of ten
        made += [(LARGE_NUMBER, _modifiers(room - 1), -1, 0)] * large
        made += [(kind, _modifiers(room), -1, 0)] * (10 - large)
    with_complement = COMPLEMENT if complements and room >= 3 else 0
    with_owner = OWNER if owned else 0
    with_double = DOUBLE - with_owner if doubles else 0
    one = len(made) / (100 - with_complement - with_owner - with_double)  # in a hundred
    if complements:
        # Where there is room, two in five have a modifier as well.
        owns = (1, 1, 1, 2, 2) if room >= 5 else (1,)
        after = [(THE, own - 1, k, room - own) for own in owns for k in range(complements)]
        made += islice(cycle(after), round(one * with_complement))
    kinds = islice(cycle(doubles), round(one * with_double))
    made += [(kind, _modifiers(room - 1), -1, 0) for kind in kinds]
    return made + [(POSSESSIVE, 0, -1, 0)] * round(one * with_owner)


def _modifiers(room: int) -> int:
    """How many modifiers a noun has with so much room for them and itself."""
    return min(max(room - 1, 0), 3)
