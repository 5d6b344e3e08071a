"""A GGUF file as a float32 transformers model, held to what the file's metadata says."""
import os

import torch
from gguf import GGUFReader
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

# What the gemma3 architecture fixes without metadata: the base of the local layers' rotation, and
# every sixth layer attending to all positions.
GEMMA3_LOCAL_ROPE_BASE = 10000.0
GEMMA3_LAYER_PERIOD = 6


def read_metadata(path):
    """Every key of the file but the long vocabulary lists, plus `tied`: whether it has no output matrix."""
    reader = GGUFReader(path)
    lists = ("tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type", "tokenizer.ggml.merges")
    metadata = {key: field.contents() for key, field in reader.fields.items() if key not in lists}
    metadata["tied"] = all(tensor.name != "output.weight" for tensor in reader.tensors)
    return metadata


def expected_config(metadata):
    """The transformers configuration that the metadata asks for, field by field."""
    architecture = metadata["general.architecture"]

    def key(name, default=None):
        return metadata.get(f"{architecture}.{name}", default)

    if any(".rope.scaling." in name for name in metadata):
        raise ValueError("scaled rotary embeddings are not checked here")
    layers, width, heads = key("block_count"), key("embedding_length"), key("attention.head_count")
    head_dim = key("attention.key_length", width // heads)
    rope = {"rope_theta": key("rope.freq_base"), "rope_type": "default"}
    expected = {
        "num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads, "head_dim": head_dim,
        "num_key_value_heads": key("attention.head_count_kv"), "intermediate_size": key("feed_forward_length"),
        "rms_norm_eps": key("attention.layer_norm_rms_epsilon"), "tie_word_embeddings": metadata["tied"],
        "rope_parameters": rope}
    if architecture == "gemma3":
        local = {"rope_theta": key("rope.freq_base_swa", GEMMA3_LOCAL_ROPE_BASE), "rope_type": "default"}
        kinds = ["sliding_attention" if (i + 1) % GEMMA3_LAYER_PERIOD else "full_attention" for i in range(layers)]
        expected |= {
            "sliding_window": key("attention.sliding_window"), "layer_types": kinds, "query_pre_attn_scalar": head_dim,
            "hidden_activation": "gelu_pytorch_tanh", "attn_logit_softcapping": None, "final_logit_softcapping": None,
            "use_bidirectional_attention": False,
            "rope_parameters": {"full_attention": rope, "sliding_attention": local}}
    elif architecture == "llama":
        expected |= {"hidden_act": "silu", "attention_bias": False, "mlp_bias": False}
    else:
        raise ValueError(f"no rules for architecture {architecture}")
    return expected


def load_tokenizer(path, metadata):
    """The file's tokenizer; its beginning-of-sequence token is added exactly where the metadata asks for one."""
    folder, name = os.path.split(os.path.abspath(path))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    if metadata.get("tokenizer.ggml.pre") == "smollm":
        # transformers ignores this key; SmolLM parts digits before GPT-2's rule sees the spaces around them.
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    begins = tokenizer("a").input_ids[0] == metadata["tokenizer.ggml.bos_token_id"]
    if begins != metadata["tokenizer.ggml.add_bos_token"]:
        raise ValueError("the tokenizer and tokenizer.ggml.add_bos_token disagree")
    return tokenizer


def load(path):
    """(model, tokenizer, metadata): float32, eager attention, evaluation mode, no parameter asking for a gradient."""
    metadata = read_metadata(path)
    folder, name = os.path.split(os.path.abspath(path))
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=name, dtype=torch.float32, attn_implementation="eager")
    for field, want in expected_config(metadata).items():
        got = getattr(model.config, field)
        if got != want:
            raise ValueError(f"{field} is {got!r}, the file asks for {want!r}")
    model.eval().requires_grad_(False)
    return model, load_tokenizer(path, metadata), metadata
