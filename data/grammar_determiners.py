"""Determiners of the generated corpus, alone and contracted with prepositions (de + le = du)."""

from data.grammar_words import Fragment, fragment, starts_with_vowel

Words = list[tuple[str, tuple[int, ...]]]  # French words with the English positions they translate

SHAPES = 32  # gender and number 0..3, +4 French vowel, +8 French adjective first, +16 English vowel

UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
UNITS = [*UNITS.split(), *"fifteen sixteen seventeen eighteen nineteen".split()]
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
UNITÉS = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze"
UNITÉS = [*UNITÉS.split(), "seize", "dix-sept", "dix-huit", "dix-neuf"]
DIZAINES = "vingt trente quarante cinquante soixante".split()

POSSESSIVES = {
    "my": ("mon", "ma", "mes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
ORDINALS = {
    "first": ("premier", "première"),
    "last": ("dernier", "dernière"),
    "second": ("deuxième", "deuxième"),
    "third": ("troisième", "troisième"),
}


def number_words(
    number: int, feminine: bool
) -> tuple[list[str], list[tuple[str, tuple[int, ...]]]]:
    """English and annotated French words of 2 to 9,999, as they stand before a noun."""
    if number >= 100:
        scale, en_scale, fr_scale = (
            (1000, "thousand", "mille") if number >= 1000 else (100, "hundred", "cent")
        )
        count, rest = divmod(number, scale)
        if scale == 100 and count > 1 and not rest:
            fr_scale = "cents"  # "deux cents" but "deux cent trois"
        head = [] if count == 1 else [(UNITÉS[count], (0,))]
        head.append((fr_scale, (0, 1) if count == 1 else (1,)))
        en = ["one" if count == 1 else UNITS[count], en_scale]
        if not rest:
            return en, head
        en_rest, fr_rest = number_words(rest, feminine)
        joint = ["and"] if rest < 100 else []
        shift = len(en) + len(joint)
        return en + joint + en_rest, head + [
            (word, tuple(i + shift for i in places)) for word, places in fr_rest
        ]
    if number < 20:
        return [UNITS[number]], [("une" if number == 1 and feminine else UNITÉS[number], (0,))]
    ten, unit = divmod(number, 10)
    english = TENS[ten - 2] + (f"-{UNITS[unit]}" if unit else "")
    if ten < 7:
        base, rest = DIZAINES[ten - 2], unit
    else:
        base, rest = ("soixante", number - 60) if ten == 7 else ("quatre-vingt", number - 80)
    one = "une" if feminine and rest == 1 else UNITÉS[rest]
    if not rest:
        words = ["quatre-vingts" if number == 80 else base]
    elif rest in (1, 11) and number < 80:
        words = [base, "et", one]
    else:
        words = [f"{base}-{one}"]
    return [english], [(word, (0,)) for word in words]


def determiner(kind: str, shape: int) -> tuple[list[str], list[tuple[str, tuple[int, ...]]]]:
    """English and annotated French words of a determiner before a noun phrase of this shape.

    Positions are from the determiner's start; a French article without an English counterpart
    is aligned with the noun that follows.
    """
    plural, feminine, adjective_first = shape & 2, shape & 1, shape & 8
    vowel = shape & 4
    the = "les" if plural else "l'" if vowel else "la" if feminine else "le"
    one = "une" if feminine else "un"
    de = "d'" if vowel else "de"
    if kind == "none":
        return [], []
    if kind == "zero":
        return [], [(the, (0,))]
    if kind == "the":
        return ["the"], [(the, (0,))]
    if kind == "a":
        return ["an" if shape & 16 else "a"], [(one, (0,))]
    if kind == "this":
        singular = "cette" if feminine else "cet" if vowel else "ce"
        return ["these" if plural else "this"], [("ces" if plural else singular, (0,))]
    if kind in POSSESSIVES:
        masculine, feminine_form, many = POSSESSIVES[kind]
        singular = feminine_form if feminine and not vowel else masculine
        return [kind], [(many if plural else singular, (0,))]
    if kind == "every":
        return ["every"], [("chaque", (0,))]
    if kind == "some":
        if plural:
            return ["some"], [(de if adjective_first else "des", (0,))]
        partitive = [("de", (0,)), (the, (0,))] if vowel or feminine else [("du", (0,))]
        return ["some"], partitive
    if kind == "several":
        return ["several"], [("plusieurs", (0,))]
    if kind == "many":
        return ["many"], [("beaucoup", (0,)), (de, (0,))]
    if kind == "all":
        return ["all", "the"], [("toutes" if feminine else "tous", (0,)), ("les", (1,))]
    if kind in ("a_not", "any"):
        return ["any" if kind == "any" else "an" if shape & 16 else "a"], [(de, (0,))]
    if kind == "no":
        return ["no"], [(de, (0,))]
    if kind in ORDINALS:
        form = ORDINALS[kind][feminine] + ("s" if plural else "")
        article = "les" if plural else "la" if feminine else "le"
        return ["the", kind], [(article, (0,)), (form, (1,))]
    if kind == "other":
        return ["the", kind], [
            ("les" if plural else "l'", (0,)),
            ("autres" if plural else "autre", (1,)),
        ]
    if kind == "same":
        article = "les" if plural else "la" if feminine else "le"
        return ["the", kind], [(article, (0,)), ("mêmes" if plural else "même", (1,))]
    return number_words(int(kind), bool(feminine))


SINGLE_DETERMINERS = (
    "none zero the a this my his her our their every some several many a_not any no"
)
DOUBLE_DETERMINERS = ("first", "last", "second", "third", "other", "same", "all")
NUMBERS = tuple(str(n) for n in (*range(2, 100), *range(100, 1000, 50), *range(1000, 10000, 1000)))
DETERMINERS = (*SINGLE_DETERMINERS.split(), *DOUBLE_DETERMINERS, *NUMBERS)
ANY_NUMBER = -1  # in place of an index into DETERMINERS: one of NUMBER_CHOICES
NUMBER_CHOICES = [  # one-word numbers, small ones oftener
    DETERMINERS.index(str(n)) for n in [*range(2, 13)] * 6 + [*range(13, 100)]
]


def determiner_index(name: str) -> int:
    """The place in DETERMINERS of a name in classes.tsv."""
    return ANY_NUMBER if name == "number" else DETERMINERS.index(name)


def prepositional(en_prep: str, fr_prep: str, kind: str, shape: int) -> Fragment:
    """The fragment of a preposition and a determiner, contracted where French contracts.

    A French preposition that English lacks ("-") is aligned with the English word before. "de0"
    and "en" take no article before the name of a feminine country.
    """
    en, fr = determiner(kind, shape)
    no_article = fr_prep == "de0" and (kind != "zero" or shape & 1)
    no_article |= fr_prep == "en" and shape & 1
    if no_article:
        en, fr = [], []
    elif fr_prep == "en":
        fr_prep = "à"
    fr_prep = fr_prep.removesuffix("0")
    preps = [] if en_prep == "-" else en_prep.split()
    shift = len(preps)
    own = tuple(range(shift)) or (-1,)
    rest = [(word, tuple(i + shift for i in places)) for word, places in fr]
    if fr_prep == "-":
        # An English preposition that French lacks is aligned with the verb's translation before.
        whole = fragment(preps + en, rest)
        return whole
    heads = fr_prep.split()
    last = heads[-1]
    vowel = rest and starts_with_vowel(rest[0][0]) or not rest and shape & 4
    if rest and rest[0][0] in ("des", "du", "de", "d'") and last == "de":
        if rest[0][0] in ("des", "du"):  # de + des, de + du: "de" alone
            rest = [("d'" if shape & 4 else "de", own + rest[0][1])]
        elif kind == "some":  # de + de la, de + de l', de + de (before an adjective)
            rest = [("d'" if shape & 4 else "de", own + rest[0][1])]
    elif rest and (last, rest[0][0]) in CONTRACTED:
        rest[0] = (CONTRACTED[last, rest[0][0]], own + rest[0][1])
    else:
        rest.insert(0, ("d'" if last == "de" and vowel else last, own))
    rest = [(word, own) for word in heads[:-1]] + rest
    return fragment(preps + en, rest)


