"""The stop list and the encoding of probabilities, for both table builders."""

import math

# Function words without a meaning of their own. The analyser has the same list (strata-language).
STOP = frozenset(
    """a an the and or but if of at by for with about to from in on is are was were be been being am do does did
    doing have has had having i me my we our you your he him his she her it its they them their this that these those
    what which who whom whose when where why how as so than then there here not no nor can could will would shall
    should may might must s t d ll m re ve""".split()
)

LOGP_SCALE = 25.0  # a probability is stored as round(-log10(p) * 25) in one byte: 0.1 to 10 decades


def quantise_probability(p):
    """Probability -> byte. 255 means «not seen»."""
    if p <= 0.0:
        return 255
    return min(254, max(0, round(-math.log10(p) * LOGP_SCALE)))
