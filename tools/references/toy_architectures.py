"""Log-probabilities and LoRA gradients of the tests' toy models, by transformers in double precision.

For each model NAME of tests/support/toy_models.cc writes tests/data/toy_NAME.json: the SHA-256 of its GGUF file, token
ids, -log p of every token but the first, and of an adapter on every matrix of the blocks the gradient of their mean,
the adapter and what is stored of the gradient as in lora_gradient.py.

  ./dev build toy_model
  tools/references/toy_architectures.py [NAME …]

The transformers model is made from the GGUF's metadata and tensors here, not by transformers' own GGUF reader, which
does not know every architecture; each row of ARCHITECTURES says how the two correspond.
"""
import hashlib
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np
import torch
import transformers

import lora_gradient as lora
import numbers_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "toy_model"
TOKENS = 70
TOP = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
       "output.weight": "lm_head.weight"}
LLAMA = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
FUSED = LLAMA | {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}
HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
GEMMA = LLAMA | {
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm"}


class File:
    """Metadata and tensors of a GGUF file, numbers in double."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = {key: field.contents() for key, field in reader.fields.items()}
        self.architecture = self.fields["general.architecture"]
        self.tensors = {t.name: torch.from_numpy(np.array(t.data)).double() for t in reader.tensors}

    def key(self, name, otherwise=None):
        return self.fields.get(f"{self.architecture}.{name}", otherwise)


def common(file):
    """Configuration that every architecture has."""
    heads, width = file.key("attention.head_count"), file.key("embedding_length")
    return dict(
        vocab_size=len(file.tensors["token_embd.weight"]), hidden_size=width,
        intermediate_size=file.key("feed_forward_length"), num_hidden_layers=file.key("block_count"),
        num_attention_heads=heads, num_key_value_heads=file.key("attention.head_count_kv"),
        head_dim=file.key("attention.key_length", width // heads), rms_norm_eps=file.key("attention.layer_norm_rms_epsilon"),
        max_position_embeddings=file.key("context_length"), tie_word_embeddings="output.weight" not in file.tensors,
        rope_parameters={"rope_type": "default", "rope_theta": file.key("rope.freq_base")}, attn_implementation="eager",
        pad_token_id=None, bos_token_id=None, eos_token_id=None)


def windows(file, layers, period):
    """Every `period`-th layer attends to all keys."""
    return ["full_attention" if (i + 1) % period == 0 else "sliding_attention" for i in range(layers)]


def llama(file):
    window = file.key("attention.sliding_window")
    if window:
        return transformers.MistralForCausalLM(transformers.MistralConfig(**common(file), sliding_window=window))
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**common(file)))
    divisors = file.tensors.get("rope_freqs.weight", torch.ones(1)) * file.key("rope.scaling.factor", 1)
    model.model.rotary_emb.inv_freq /= divisors.float()
    return model


def qwen2(file):
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**common(file), use_sliding_window=False))


def qwen3(file):
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**common(file), use_sliding_window=False))


def phi3(file):
    config = common(file)
    rotated = file.key("rope.dimension_count") / config.pop("head_dim")
    rope = config["rope_parameters"] | {"partial_rotary_factor": rotated}
    original = file.key("rope.scaling.original_context_length", config["max_position_embeddings"])
    if "rope_factors_long.weight" in file.tensors:
        rope |= {"rope_type": "longrope", "long_factor": file.tensors["rope_factors_long.weight"].tolist(),
                 "short_factor": file.tensors["rope_factors_short.weight"].tolist(),
                 "attention_factor": file.key("rope.scaling.attn_factor"), "original_max_position_embeddings": original}
    return transformers.Phi3ForCausalLM(transformers.Phi3Config(
        **config | {"rope_parameters": rope}, original_max_position_embeddings=original,
        sliding_window=file.key("attention.sliding_window")))


def gemma2(file):
    config = common(file)
    return transformers.Gemma2ForCausalLM(transformers.Gemma2Config(
        **config, sliding_window=file.key("attention.sliding_window"), query_pre_attn_scalar=config["head_dim"],
        layer_types=windows(file, config["num_hidden_layers"], 2), hidden_activation="gelu_pytorch_tanh",
        attn_logit_softcapping=file.key("attn_logit_softcapping"),
        final_logit_softcapping=file.key("final_logit_softcapping")))


def gemma3(file):
    config = common(file)
    full = config.pop("rope_parameters")
    local = full | {"rope_theta": file.key("rope.freq_base_swa", 10000.0)}
    period = file.key("attention.sliding_window_pattern", 6)
    return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
        **config, rope_parameters={"full_attention": full, "sliding_attention": local},
        sliding_window=file.key("attention.sliding_window"), query_pre_attn_scalar=config["head_dim"],
        layer_types=windows(file, config["num_hidden_layers"], period), hidden_activation="gelu_pytorch_tanh",
        attn_logit_softcapping=None, final_logit_softcapping=None))


# The transformers model, the module behind each tensor of a block, what the file adds to norm weights, and whether the
# rows of attn_q and attn_k are stored with rotary pairs as neighbours.
ARCHITECTURES = {
    "llama": (llama, LLAMA, 0, True),
    "qwen2": (qwen2, LLAMA, 0, False),
    "qwen3": (qwen3, LLAMA | HEAD_NORMS, 0, False),
    "phi3": (phi3, FUSED, 0, False),
    "gemma2": (gemma2, GEMMA, 1, False),
    "gemma3": (gemma3, GEMMA | HEAD_NORMS, 1, False),
}


def row_order(rows, heads):
    """Index of the transformers row behind each row of the file where rotary pairs are neighbours."""
    return torch.arange(rows).reshape(heads, 2, rows // heads // 2).transpose(1, 2).reshape(-1)


def load(file):
    """(model, {GGUF matrix of a block: (module, index of the file's row for each row of the module)})."""
    make, modules, norm_offset, neighbours = ARCHITECTURES[file.architecture]
    model = make(file).double().eval().requires_grad_(False)
    heads = {"attn_q": model.config.num_attention_heads, "attn_k": model.config.num_key_value_heads}
    state, matrices = {}, {}
    for name, tensor in file.tensors.items():
        if name.startswith("rope_"):
            continue
        if not name.startswith("blk."):
            state[TOP[name]] = tensor - (norm_offset if "norm" in name else 0)
            continue
        _, layer, short, kind = name.split(".")
        path = f"model.layers.{layer}.{modules[short]}"
        rows = torch.arange(len(tensor))
        if neighbours and short in heads:
            rows = row_order(len(tensor), heads[short]).argsort()
        state[f"{path}.{kind}"] = tensor[rows] - (norm_offset if "norm" in short else 0)
        if tensor.dim() == 2:
            matrices[name] = (model.get_submodule(path), rows)
    missing, unknown = model.load_state_dict(state, strict=False)
    missing = [name for name in missing if not (name == "lm_head.weight" and model.config.tie_word_embeddings)]
    if missing or unknown:
        raise ValueError(f"without a tensor: {missing}; without a parameter: {unknown}")
    model.tie_weights()
    return model, matrices


def attach(matrices):
    """Adds the adapter of lora_gradient.py; returns {name: leaf tensor}, rows in the order of the file."""
    leaves = {}
    for name, (module, order) in matrices.items():
        rows, cols = module.weight.shape
        a = lora.counter_values(f"{name}.lora_a", lora.RANK, cols, cols**-0.5).double().requires_grad_()
        b = lora.counter_values(f"{name}.lora_b", rows, lora.RANK, lora.B_AMPLITUDE).double().requires_grad_()
        scale = lora.ALPHA / lora.RANK
        module.register_forward_hook(
            lambda _, inputs, y, a=a, b=b, rows=order: y + scale * (inputs[0] @ a.T @ b[rows].T))
        leaves |= {f"{name}.lora_a": a, f"{name}.lora_b": b}
    return leaves


def token_ids(vocabulary):
    draws = lora.splitmix64(np.arange(TOKENS, dtype=np.uint64))
    return [int(x) for x in draws % np.uint64(vocabulary)]


def nll(model, ids):
    logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, :-1]
    return torch.nn.functional.cross_entropy(logits.double(), torch.tensor(ids[1:]), reduction="none")


def reference(name, path):
    file = File(path)
    model, matrices = load(file)
    ids = token_ids(model.config.vocab_size)
    digits = numbers_file.significant
    base = nll(model, ids)
    leaves = attach(matrices)
    adapted = nll(model, ids)
    found = dict(zip(leaves, torch.autograd.grad(adapted.mean(), list(leaves.values()))))
    tensors = {
        key: {"norm": digits(gradient.norm().item()), "projections": [digits(p) for p in lora.projections(key, gradient)]}
        for key, gradient in found.items()}
    return {
        "model": name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "ids": ids,
        "nll": [digits(x) for x in base.tolist()], "rank": lora.RANK, "alpha": lora.ALPHA,
        "adapted_nll": [digits(x) for x in adapted.tolist()], "tensors": tensors}


def main():
    names = sys.argv[1:] or subprocess.run([PROGRAM], capture_output=True, check=True, text=True).stdout.split()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = pathlib.Path(folder) / f"{name}.gguf"
            subprocess.run([PROGRAM, name, path], check=True)
            numbers = reference(name, path)
            numbers_file.write(ROOT / "tests" / "data" / f"toy_{name}.json", numbers)
            print(f"{name}: mean {np.mean(numbers['nll']):.6f}, with the adapter {np.mean(numbers['adapted_nll']):.6f}")


if __name__ == "__main__":
    main()
