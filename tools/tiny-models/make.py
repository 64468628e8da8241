"""Makes the two tiny ONNX models for the tests of strata-models: real graphs and real tokenizers of a few kilobytes.

    pip install -r requirements.txt && python make.py ../../crates/strata-models/tests/data

`tiny-encoder` gives each token of a small vocabulary a fixed direction, so that the mean over a text is its bag of words.
`tiny-reranker` counts the words that a question and a text share. Its logit is three times that count, minus 2.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS = (
    "[PAD] [UNK] [CLS] [SEP] a b c d e f g h i j k l m n o p q r s t u v w x y z "
    "cat dog tea coffee likes drinks lives in paris berlin the user : ? ."
).split()
PIECES = WORDS + ["##" + c for c in "abcdefghijklmnopqrstuvwxyz"]
VOCABULARY = {piece: number for number, piece in enumerate(PIECES)}


def tokenizer():
    special = [
        {"id": VOCABULARY[t], "content": t, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": VOCABULARY},
    }


def save(folder, name, nodes, outputs, constants):
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"])
              for n in ("input_ids", "attention_mask", "token_type_ids")]
    graph = helper.make_graph(nodes, name, inputs, outputs,
                              [numpy_helper.from_array(value, key) for key, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="strata")
    model.ir_version = 8
    onnx.checker.check_model(model)
    target = pathlib.Path(folder) / name
    target.mkdir(parents=True, exist_ok=True)
    onnx.save(model, target / "model.onnx")
    (target / "tokenizer.json").write_text(json.dumps(tokenizer(), indent=1) + "\n")


def encoder(folder):
    directions = np.random.default_rng(1).normal(size=(len(PIECES), 8)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["directions", "input_ids"], ["last_hidden_state"], axis=0),
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "length", 8])
    save(folder, "tiny-encoder", nodes, [output], {"directions": directions})


def reranker(folder):
    # An identity matrix over the pieces; the rows of special pieces and punctuation are zero.
    identity = np.eye(len(PIECES), dtype=np.float32)
    for piece in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", ":", "?", "."):
        identity[VOCABULARY[piece]] = 0
    nodes = [
        helper.make_node("Gather", ["identity", "input_ids"], ["rows"], axis=0),
        helper.make_node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "second"], ["first"]),
        helper.make_node("Unsqueeze", ["first", "last"], ["first3"]),
        helper.make_node("Unsqueeze", ["second", "last"], ["second3"]),
        helper.make_node("Mul", ["rows", "first3"], ["question_rows"]),
        helper.make_node("Mul", ["rows", "second3"], ["text_rows"]),
        helper.make_node("ReduceMax", ["question_rows"], ["question"], axes=[1], keepdims=0),
        helper.make_node("ReduceMax", ["text_rows"], ["text"], axes=[1], keepdims=0),
        helper.make_node("Mul", ["question", "text"], ["both"]),
        helper.make_node("ReduceSum", ["both", "last1"], ["shared"], keepdims=1),
        helper.make_node("Mul", ["shared", "three"], ["scaled"]),
        helper.make_node("Sub", ["scaled", "two"], ["logits"]),
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])
    constants = {
        "identity": identity,
        "one": np.float32(1), "two": np.float32(2), "three": np.float32(3),
        "last": np.array([2], np.int64), "last1": np.array([1], np.int64),
    }
    save(folder, "tiny-reranker", nodes, [output], constants)


if __name__ == "__main__":
    encoder(sys.argv[1])
    reranker(sys.argv[1])
