"""A hook of MkDocs: words that lead to a page, and a test of the search.

Readers type words that a page may not contain, or that occur more often on another.
The words of `WORDS` become tags of the page, which count most in the theme's search.
After each build, this very search, which is a script for browsers, answers them: each
must lead to its page in the first two hits.
"""

import json
import pathlib

from mkdocs.exceptions import PluginError
from py_mini_racer import MiniRacer

WORDS = {
    "conventions.md": ["denominator"],
    "glossary.md": ["ground truth"],
    "guide/accumulate.md": ["PyTorch loop"],
    "guide/backends.md": [
        "checkpoint",
        "GPU",
        "JAX",
        "load model",
        "multi-GPU",
        "PyTorch",
        "save model",
        "TPU",
    ],
    "guide/beyond-accuracy.md": ["diversity", "fairness", "novelty"],
    "guide/clicks-and-propensities.md": ["extreme classification", "position bias"],
    "guide/compare.md": [
        "A/B test",
        "confidence interval",
        "p-value",
        "statistical significance",
        "t-test",
    ],
    "guide/custom-metrics.md": ["custom metric", "own metric"],
    "guide/datasets.md": ["cold start", "implicit feedback", "leave-one-out"],
    "guide/fit.md": ["early stopping", "EarlyStopping", "mode", "pairwise"],
    "guide/getting-started.md": ["learning to rank", "LTR"],
    "guide/inputs.md": ["catalogue", "sample_weight"],
    "guide/installation.md": ["Colab", "install"],
    "guide/large-tables.md": ["Beam", "Spark", "SQL"],
    "guide/padding.md": ["mask", "padding", "ragged", "tf.data"],
    "guide/pitfalls.md": [
        "mixed precision",
        "negative sampling",
        "sampled metrics",
        "ties",
    ],
    "guide/rag.md": ["RAG"],
    "guide/retrieval.md": ["BM25", "two tower"],
    "guide/tables.md": ["qrels", "query id", "TREC", "user id"],
    "guide/tfx.md": ["TFX Evaluator"],
    "guide/tracking.md": [
        "LambdaRank",
        "LightGBM",
        "mlflow",
        "Optuna",
        "wandb",
        "XGBoost",
    ],
    "metrics/index.md": ["map@10", "ndcg@10"],
    "metrics/relevance.md": [
        "hit rate",
        "hit ratio",
        "MAP@k",
        "mean average precision",
        "MRR",
        "recall@k",
    ],
    "moving/torchmetrics-scikit-learn.md": ["multi-label", "sklearn", "top-k accuracy"],
    "support.md": ["cite"],
    "troubleshooting.md": ["NaN"],
}
# They contain many words, and explain few of them.
LAST = ["changelog.md", "contributing.md", "validation.md"]
BROWSER = """
var self = this, answer = null, handle = null;
var console = {warn: () => null};
function addEventListener(_, listener) { handle = listener; }
function postMessage(message) { answer = message; }
"""
SETUP, QUERY = 0, 2  # the types of messages that the script receives


def on_page_markdown(markdown, page, **_):
    """Gives a page its words, and its weight among the results."""
    uri = page.file.src_uri
    if uri in WORDS:
        page.meta["tags"] = WORDS[uri]
    if uri in LAST:
        page.meta["search"] = {"boost": 0.1}


def on_post_build(config, **_):
    """Searches for each word."""
    site = pathlib.Path(config.site_dir)
    (script,) = site.glob("assets/javascripts/workers/search.*.js")
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    with MiniRacer() as browser:
        browser.eval(BROWSER + script.read_text("utf-8"))
        _send(browser, SETUP, index | {"options": {}})
        lost = [
            f"{word!r} must lead to {page}, and leads to {found}"
            for page, words in WORDS.items()
            for word in words
            if _address(page) not in (found := _first_two(browser, word))
        ]
    if lost:
        raise PluginError("\n".join(["Searches (website/search.py):", *lost]))


def _address(page):
    return page.replace("index.md", "").replace(".md", "/")


def _first_two(browser, word):
    hits = _send(browser, QUERY, word)["data"]["items"]
    return [hit[0]["location"].partition("#")[0] for hit in hits[:2]]


def _send(browser, kind, data):
    message = json.dumps({"data": {"type": kind, "data": data}})
    browser.eval(f"handle({message}); null")
    return json.loads(browser.eval("JSON.stringify(answer)"))
