"""Determiners and numbers, alone and contracted with prepositions (de + le = du)."""

from data.generator.fragments import Fragment, Places, Words, fragment, starts_with_vowel

# What determiners agree with, in one number: gender and number of the noun (0..3), then bits for
# a French vowel next, a French adjective next (des -> de), an English vowel next (a -> an).
FEMININE, PLURAL, FR_VOWEL, ADJECTIVE, EN_VOWEL = 1, 2, 4, 8, 16

_UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_FR_UNITS = """zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze
    quinze seize dix-sept dix-huit dix-neuf"""
_FR_TENS = "vingt trente quarante cinquante soixante"
UNITS, TENS = _UNITS.split(), _TENS.split()
FR_UNITS, FR_TENS = _FR_UNITS.split(), _FR_TENS.split()

POSSESSIVES = {
    "my": ("mon", "ma", "mes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
SECOND_WORDS = {  # after "the": masculine and feminine
    "first": ("premier", "première"),
    "last": ("dernier", "dernière"),
    "second": ("deuxième", "deuxième"),
    "third": ("troisième", "troisième"),
    "same": ("même", "même"),
    "other": ("autre", "autre"),
}
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}

# Enough numbers to show every rule of French ones.
_NUMBERS = """2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 25 30 32 40 43 50 54 60 65 70 71
    72 76 80 81 83 90 91 94 97 100 200 250 300 380 400 500 600 800 1000 1200 2000 3000 5000"""
NUMBERS = _NUMBERS.split()
_SINGLE = "none zero the a this my his her our their every some several many a_not any no"
DETERMINERS = [*_SINGLE.split(), *SECOND_WORDS, "all", *NUMBERS]
ANY_NUMBER, LARGE_NUMBER = -1, -2  # instead of an index into DETERMINERS
SHORT_NUMBERS = [DETERMINERS.index(n) for n in NUMBERS[:10] * 2 + NUMBERS if int(n) < 100]
LONG_NUMBERS = [DETERMINERS.index(n) for n in NUMBERS if int(n) >= 100]  # of several words


def determiner_index(name: str) -> int:
    """The place in DETERMINERS of a name in classes.tsv."""
    return ANY_NUMBER if name == "number" else DETERMINERS.index(name)


def number_words(number: int, feminine: bool) -> tuple[list[str], Words]:
    """English and French words of 2 to 9,999, as they stand before a noun."""
    if number >= 100:
        return _large_number_words(number, feminine)
    if number < 20:
        return [UNITS[number]], [("une" if number == 1 and feminine else FR_UNITS[number], (0,))]
    ten, unit = divmod(number, 10)
    english = TENS[ten - 2] + (f"-{UNITS[unit]}" if unit else "")
    if ten < 7:
        base, rest = FR_TENS[ten - 2], unit
    else:  # soixante-dix, quatre-vingts, quatre-vingt-dix
        base, rest = ("soixante", number - 60) if ten == 7 else ("quatre-vingt", number - 80)
    last = "une" if feminine and rest == 1 else FR_UNITS[rest]
    if not rest:
        words = ["quatre-vingts" if number == 80 else base]
    elif rest in (1, 11) and number < 80:
        words = [base, "et", last]
    else:
        words = [f"{base}-{last}"]
    return [english], [(word, (0,)) for word in words]


def _large_number_words(number: int, feminine: bool) -> tuple[list[str], Words]:
    scale, en_scale, fr_scale = (
        (1000, "thousand", "mille")
        if number >= 1000
        else (
            100,
            "hundred",
            "cent",
        )
    )
    count, rest = divmod(number, scale)
    if scale == 100 and count > 1 and not rest:
        fr_scale = "cents"  # "deux cents" but "deux cent cinquante"
    fr: Words = [] if count == 1 else [(FR_UNITS[count], (0,))]
    fr.append((fr_scale, (0, 1) if count == 1 else (1,)))
    en = [UNITS[count], en_scale]
    if rest:
        en += ["and"] if rest < 100 else []
        shift = len(en)
        en_rest, fr_rest = number_words(rest, feminine)
        en += en_rest
        fr += [(word, tuple(i + shift for i in places)) for word, places in fr_rest]
    return en, fr


def determiner(kind: str, shape: int) -> tuple[list[str], Words]:
    """English and French words of a determiner before a noun phrase of this shape.

    A French article that English lacks ("zero") is aligned with the noun, the next English word.
    """
    plural, feminine, vowel = shape & PLURAL, shape & FEMININE, shape & FR_VOWEL
    the = "les" if plural else "l'" if vowel else "la" if feminine else "le"
    whole = "les" if plural else "la" if feminine else "le"  # before a word of our own
    de = "d'" if vowel else "de"
    a = "an" if shape & EN_VOWEL else "a"
    only: Places = (0,)
    if kind in POSSESSIVES:
        masculine, feminine_form, many = POSSESSIVES[kind]
        singular = feminine_form if feminine and not vowel else masculine
        return [kind], [(many if plural else singular, only)]
    if kind in SECOND_WORDS:
        second = SECOND_WORDS[kind][1 if feminine else 0] + ("s" if plural else "")
        article = "l'" if kind == "other" and not plural else whole
        return ["the", kind], [(article, only), (second, (1,))]
    if kind == "this":
        singular = "cette" if feminine else "cet" if vowel else "ce"
        return ["these" if plural else "this"], [("ces" if plural else singular, only)]
    if kind == "some" and plural:
        return ["some"], [(de if shape & ADJECTIVE else "des", only)]
    if kind == "some":
        return ["some"], [("de", only), (the, only)] if vowel or feminine else [("du", only)]
    if kind == "all":
        return ["all", "the"], [("toutes" if feminine else "tous", only), ("les", (1,))]
    fixed: dict[str, tuple[list[str], Words]] = {
        "none": ([], []),
        "zero": ([], [(the, only)]),
        "the": (["the"], [(the, only)]),
        "a": ([a], [("une" if feminine else "un", only)]),
        "every": (["every"], [("chaque", only)]),
        "several": (["several"], [("plusieurs", only)]),
        "many": (["many"], [("beaucoup", only), (de, only)]),
        "a_not": ([a], [(de, only)]),  # after a negation: "pas de maison"
        "any": (["any"], [(de, only)]),
        "no": (["no"], [(de, only)]),
    }
    return fixed[kind] if kind in fixed else number_words(int(kind), bool(feminine))


def prepositional(en_prep: str, fr_prep: str, kind: str, shape: int) -> Fragment:
    """The fragment of a preposition and a determiner, contracted where French contracts.

    A French preposition that English lacks ("-") is aligned with the English word before. "de0"
    and "en" take no article before the name of a feminine country, "de-" never takes any.
    """
    en, fr = determiner(kind, shape)
    feminine_country = kind == "zero" and shape & FEMININE
    if fr_prep == "de-" or (fr_prep in ("de0", "en") and feminine_country):
        en, fr = [], []
    elif fr_prep == "en":
        fr_prep = "à"
    *heads, last = fr_prep.rstrip("0-").split()
    preps = [] if en_prep == "-" else en_prep.split()
    shift = len(preps)
    own: Places = tuple(range(shift)) or (-1,)
    rest = [(word, tuple(i + shift for i in places)) for word, places in fr]
    first = rest[0][0] if rest else ""
    if last == "de" and kind == "some" and rest:  # de + du, de + des, de + de la: "de" alone
        rest = [("d'" if shape & FR_VOWEL else "de", own + rest[0][1])]
    elif (last, first) in CONTRACTED:
        rest[0] = (CONTRACTED[last, first], own + rest[0][1])
    else:
        vowel = starts_with_vowel(first) if rest else shape & FR_VOWEL
        rest.insert(0, ("d'" if last == "de" and vowel else last, own))
    return fragment(preps + en, [(word, own) for word in heads] + rest)


class Shapes(dict[int, Fragment]):
    """One preposition and determiner before noun phrases of each shape, made at first use."""

    def __init__(self, en: str, fr: str, kind: str) -> None:
        super().__init__()
        self.key = en, fr, kind

    def __missing__(self, shape: int) -> Fragment:
        en, fr, kind = self.key
        made = prepositional(en, fr, kind, shape) if en else fragment(*determiner(kind, shape))
        self[shape] = made
        return made


Preposition = list[Shapes]  # by place in DETERMINERS


def preposition(en: str, fr: str) -> Preposition:
    """The fragments of a preposition with each determiner; without a preposition for "", ""."""
    return [Shapes(en, fr, kind) for kind in DETERMINERS]
