"""Simulates coverage, the size and power of tests, and the power of gates of `compare`.

Writes the tables of tests/README.md:

    python tests/interval_coverage.py
"""

import functools
import pathlib
import re
import zlib

import numpy as np
import scipy.stats

import tfrankmetrics as trm

PAGE = pathlib.Path(__file__).parent / "README.md"
SAMPLES, QUERIES = 4000, (10, 20, 50, 300)
TESTED, RESAMPLES = 2000, 1000
POPULATION = 2_000_000  # whose mean is the true one
TESTS = ["randomization", "t", "bootstrap"]
OF_PEOPLE = [f"{n} {of}" for n in (20, 50, 100) for of in ("means", "differences")]
OF_PEOPLE.append("width")
POWERS = ["t-test", "gate", "gate, margin from the interval"]


def hits(share):
    return lambda rng, shape: (rng.random(shape) < share).astype(float)


def reciprocal_ranks(zeros):
    def draw(rng, shape):
        ranks = np.minimum(rng.zipf(1.8, shape), 1000)
        return np.where(rng.random(shape) < zeros, 0, 1 / ranks)

    return draw


def ndcg(zeros):
    """Values with ties: multiples of 0.1, and many zeros."""

    def draw(rng, shape):
        values = np.round(rng.beta(2, 2.5, shape), 1)
        return np.where(rng.random(shape) < zeros, 0, values)

    return draw


MODELS = {
    "0 or 1, mean 0.02": hits(0.02),
    "0 or 1, mean 0.05": hits(0.05),
    "0 or 1, mean 0.3": hits(0.3),
    "0 or 1, mean 0.95": hits(0.95),
    "reciprocal ranks, 20% zeros": reciprocal_ranks(0.2),
    "reciprocal ranks, 70% zeros": reciprocal_ranks(0.7),
    "NDCG, 50% zeros": ndcg(0.5),
    "NDCG, 80% zeros": ndcg(0.8),
    "NDCG, 95% zeros": ndcg(0.95),
    "NDCG near 0.8, no ties": lambda rng, shape: rng.beta(40, 10, shape),
}
WEIGHTS = {
    "": lambda rng, shape: np.ones(shape),
    ", weights 1 to 4": lambda rng, shape: rng.integers(1, 5, shape).astype(float),
    ", log-normal weights": lambda rng, shape: rng.lognormal(0, 1, shape),
}
WEIGHTED = ["0 or 1, mean 0.05", "reciprocal ranks, 70% zeros", "NDCG, 50% zeros"]
# The share of queries for which both models have the same value.
EQUAL = {"0 or 1, mean 0.05": 0.2, "0 or 1, mean 0.3": 0.5, "NDCG, 50% zeros": 0.3}
EQUAL |= {"reciprocal ranks, 20% zeros": 0.6, "NDCG near 0.8, no ties": 0.0}
JUDGES = "good", "inflated", "useless"
JUDGED = "NDCG, 50% zeros", "reciprocal ranks, 20% zeros"
PAIRS = [(model, "") for model in EQUAL]
LOG_NORMAL = ", log-normal weights"
PAIRS += [(model, LOG_NORMAL) for model in [*EQUAL][2:]]


def rng_of(*parts):
    """A generator that depends on what is drawn, and not on what was drawn before."""
    return np.random.default_rng(zlib.crc32(repr(parts).encode()))


def model_of(values, weights):
    """A model whose metrics are samples of queries, both `[queries, samples]`."""
    names = [f"sample {number}" for number in range(values.shape[1])]
    return trm.QueryValues(
        dict(zip(names, values.T)),
        dict(zip(names, weights.T)),
        ranges=dict.fromkeys(names, (0.0, 1.0)),
    )


def covers(estimates, true):
    return np.mean([each.low <= true <= each.high for each in estimates])


@functools.cache
def true_mean(model):
    return MODELS[model](rng_of(model), POPULATION).mean()


def coverage_of_means(model, weights, queries):
    """The share of samples whose interval covers the true mean."""
    rng = rng_of(model, weights, queries)
    shape = queries, SAMPLES
    drawn = model_of(MODELS[model](rng, shape), WEIGHTS[weights](rng, shape))
    return covers(trm.compare({"A": drawn}).means, true_mean(model))


def pair(model, weights, queries, number, own=0):
    """Two models with the same distribution of values.

    The logarithms of their weights have the standard deviation `own` besides that of
    the query.
    """
    rng = rng_of(model, "pair", queries)
    first, other = (MODELS[model](rng, (queries, number)) for _ in range(2))
    is_equal = rng.random(first.shape) < EQUAL[model]
    second, common = (
        np.where(is_equal, first, other),
        WEIGHTS[weights](rng, first.shape),
    )
    return {
        name: model_of(values, common * rng.lognormal(0, own, first.shape))
        for name, values in (("A", first), ("B", second))
    }


def differences(model, weights, queries, **options):
    """The differences of pairs of models, none of which is better."""
    models = pair(model, weights, queries, SAMPLES, **options)
    return trm.compare(models, test="t", correction=None).differences


def coverage_of_differences(model, weights, queries, **options):
    """The share of samples whose interval covers 0, the true difference."""
    return covers(differences(model, weights, queries, **options), 0)


def powers(model, weights, queries):
    """How often the t-test detects a true difference, and how often gates pass.

    The true difference is `detectable_difference()`. The gates have it as their margin,
    and the margin that the page on comparing models states.
    """
    found = differences(model, weights, queries)
    columns = "difference", "low", "high", "standard_error", "effective_queries"
    difference, low, high, error, number = (
        np.array([getattr(each, name) for each in found]) for name in columns
    )
    detectable = np.array([each.detectable_difference() for each in found])
    least = scipy.stats.t.ppf(0.975, number - 1) * error
    of_page = (high - low) / 2 + 0.84 * error
    return [
        np.mean(difference + detectable > least),
        np.mean(low > -detectable),
        np.mean(low > -of_page),
    ]


def rejections(model, weights, queries):
    """The share of samples with p < 0.05, for each test, if no model is better."""
    models, found = pair(model, weights, queries, TESTED), {}
    for test in TESTS:
        compared = trm.compare(models, test=test, resamples=RESAMPLES)
        found[test] = np.mean([each.p < 0.05 for each in compared.differences])
    return found


def judge_of(kind, values, draw, rng):
    """The judge copies 85% of the values; an inflated one grants 1 to 30% of all."""
    others = draw(rng, values.shape)
    if kind == "useless":
        return others
    judged = np.where(rng.random(values.shape) < 0.15, others, values)
    if kind == "inflated":
        judged = np.where(rng.random(values.shape) < 0.3, 1.0, judged)
    return judged


def corrected_and_alone(name, kind, queries):
    """Two equal models by people, with a judge of four times as many queries, or alone.

    Each metric is a sample. Half of the values of both models are equal.
    """
    draw, rng = MODELS[name], rng_of(name, kind, queries)
    first = draw(rng, (4 * queries, TESTED))
    is_equal = rng.random(first.shape) < 0.5
    people = {"A": first, "B": np.where(is_equal, first, draw(rng, first.shape))}
    judge = {model: judge_of(kind, each, draw, rng) for model, each in people.items()}
    is_graded = np.arange(4 * queries)[:, np.newaxis] < queries
    some = {model: np.where(is_graded, each, np.nan) for model, each in people.items()}
    few = {model: each[:queries] for model, each in people.items()}
    judge, some, few = (
        {model: model_of(each, np.ones_like(each)) for model, each in models.items()}
        for models in (judge, some, few)
    )
    corrected = trm.compare(judge, people=some, correction=None)
    return corrected, trm.compare(few, test="t", correction=None)


def width(estimates):
    return np.mean([each.high - each.low for each in estimates])


def rows_of_people():
    for name in JUDGED:
        for kind in JUDGES:
            cells = []
            for n in (20, 50, 100):
                corrected, alone = corrected_and_alone(name, kind, n)
                means = [each for each in corrected.means if each.model == "A"]
                cells.append(f"{covers(means, true_mean(name)):.1%}")
                cells.append(f"{covers(corrected.differences, 0):.1%}")
            narrower = width(corrected.means) / width(alone.means)
            yield [name, kind, *cells, f"{narrower:.0%}"]


def rows_of_means():
    cases = [(model, "") for model in MODELS]
    cases += [(model, each) for model in WEIGHTED for each in [*WEIGHTS][1:]]
    for model, weights in cases:
        shares = [coverage_of_means(model, weights, n) for n in QUERIES]
        yield [model + weights, *(f"{share:.1%}" for share in shares)]


def rows_of_differences():
    for model, weights in PAIRS:
        shares = [coverage_of_differences(model, weights, n) for n in QUERIES]
        yield [model + weights, *(f"{share:.1%}" for share in shares)]


def rows_of_tests():
    for model, weights in PAIRS:
        for n in QUERIES[:3]:
            shares = rejections(model, weights, n).values()
            yield [model + weights, str(n), *(f"{share:.1%}" for share in shares)]


def rows_of_powers():
    for model, weights in PAIRS[2:]:
        for n in QUERIES[1:]:
            shares = powers(model, weights, n)
            yield [model + weights, str(n), *(f"{share:.1%}" for share in shares)]


def table(head, rows):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main():
    text, sizes = PAGE.read_text("utf-8"), [f"{n} queries" for n in QUERIES]
    tables = {
        "means": table(["values", *sizes], rows_of_means()),
        "differences": table(["values of both models", *sizes], rows_of_differences()),
        "tests": table(["values of both models", "queries", *TESTS], rows_of_tests()),
        "power": table(["values of both models", "queries", *POWERS], rows_of_powers()),
        "people": table(["values", "judge", *OF_PEOPLE], rows_of_people()),
    }
    for name, content in tables.items():
        print(content)
        pattern = rf"(<!-- coverage: {name} -->\n\n).*?(\n\n<!-- end -->)"
        text, number = re.subn(pattern, rf"\1{content}\2", text, flags=re.DOTALL)
        assert number == 1
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
