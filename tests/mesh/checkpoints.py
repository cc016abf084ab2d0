"""Checkpoints of four families of models, whole and divided by tensor parallelism, written by numpy slices alone.

The numbers of heads, experts and ranks are those of the public configurations; every width is a 32nd of them, so that a
head has 4 rows where it has 128. Nothing here uses the library: it is what the library is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HEAD = 4
METADATA = {"format": "pt"}


@dataclass(frozen=True)
class Family:
    """One model. Sources: config.json of the named model, as its publisher has it."""

    name: str
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    fused_qkv: bool = False
    fused_gate_up: bool = False
    bias: bool = False
    experts: int = 0
    layers: int = 1

    @property
    def plan(self) -> dict[str, str]:
        """Pattern -> placement, as a user writes it."""
        lines = {}
        if self.fused_qkv:
            lines["*.qkv_proj.*"] = f"fused-qkv(heads={self.heads}, kv_heads={self.kv_heads}, head_dim={HEAD})"
        else:
            kv = f"kv-heads(kv_heads={self.kv_heads}, head_dim={HEAD})" if self.kv_heads < 8 else "column-parallel"
            lines |= {"*.q_proj.weight": "column-parallel", "*.[kv]_proj.weight": kv}
        lines["*.o_proj.weight"] = "row-parallel"
        if self.experts:
            lines |= {"*.gate.weight": "replicate", "*.w[13].weight": "column-parallel", "*.w2.weight": "row-parallel"}
        else:
            if self.fused_gate_up:
                lines["*.gate_up_proj.weight"] = "gate-up"
            else:
                lines |= {"*.gate_proj.weight": "column-parallel", "*.up_proj.weight": "column-parallel"}
            lines["*.down_proj.weight"] = "row-parallel"
        return lines | {
            "*norm.weight": "replicate",
            "*embed_tokens.weight": "embedding",
            "lm_head.weight": "column-parallel",
        }

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...], str]]:
        """Name, shape of the whole, and how it is divided."""
        q, kv, hidden, inner = self.heads * HEAD, self.kv_heads * HEAD, self.hidden, self.intermediate
        yield "model.embed_tokens.weight", (self.vocabulary, hidden), "rows"
        yield "lm_head.weight", (self.vocabulary, hidden), "rows"
        yield "model.norm.weight", (hidden,), "all"
        for layer in range(self.layers):
            at = f"model.layers.{layer}"
            yield f"{at}.input_layernorm.weight", (hidden,), "all"
            yield f"{at}.post_attention_layernorm.weight", (hidden,), "all"
            yield f"{at}.self_attn.o_proj.weight", (hidden, q), "columns"
            if self.fused_qkv:
                yield f"{at}.self_attn.qkv_proj.weight", (q + 2 * kv, hidden), "qkv"
                if self.bias:
                    yield f"{at}.self_attn.qkv_proj.bias", (q + 2 * kv,), "qkv"
            else:
                yield f"{at}.self_attn.q_proj.weight", (q, hidden), "rows"
                yield f"{at}.self_attn.k_proj.weight", (kv, hidden), "kv"
                yield f"{at}.self_attn.v_proj.weight", (kv, hidden), "kv"
            if self.experts:
                yield f"{at}.block_sparse_moe.gate.weight", (self.experts, hidden), "all"
                for expert in range(self.experts):
                    one = f"{at}.block_sparse_moe.experts.{expert}"
                    yield f"{one}.w1.weight", (inner, hidden), "rows"
                    yield f"{one}.w3.weight", (inner, hidden), "rows"
                    yield f"{one}.w2.weight", (hidden, inner), "columns"
            elif self.fused_gate_up:
                yield f"{at}.mlp.gate_up_proj.weight", (2 * inner, hidden), "gate up"
                yield f"{at}.mlp.down_proj.weight", (hidden, inner), "columns"
            else:
                yield f"{at}.mlp.gate_proj.weight", (inner, hidden), "rows"
                yield f"{at}.mlp.up_proj.weight", (inner, hidden), "rows"
                yield f"{at}.mlp.down_proj.weight", (hidden, inner), "columns"

    def whole(self) -> dict[str, np.ndarray]:
        """Every tensor, of random half-precision numbers."""
        made = np.random.default_rng(len(self.name))
        return {name: made.standard_normal(shape).astype(np.float16) for name, shape, _ in self.tensors()}

    def shard(self, whole: Mapping[str, np.ndarray], ranks: int, rank: int) -> dict[str, np.ndarray]:
        """What one rank holds, as vLLM's layers load it."""
        return {name: self._part(whole[name], how, ranks, rank) for name, _, how in self.tensors()}

    def _part(self, x: np.ndarray, how: str, ranks: int, rank: int) -> np.ndarray:
        if how == "all":
            return x
        if how == "rows":
            return np.split(x, ranks)[rank]
        if how == "columns":
            return np.ascontiguousarray(np.split(x, ranks, axis=1)[rank])
        if how == "gate up":
            return np.concatenate([np.split(half, ranks)[rank] for half in np.split(x, 2)])
        if how == "kv":
            return self._kv(x, ranks, rank)
        q, kv = self.heads * HEAD, self.kv_heads * HEAD
        k, v = x[q : q + kv], x[q + kv :]
        return np.concatenate([np.split(x[:q], ranks)[rank], self._kv(k, ranks, rank), self._kv(v, ranks, rank)])

    def _kv(self, x: np.ndarray, ranks: int, rank: int) -> np.ndarray:
        """The heads of a rank; where there are more ranks than heads, ranks beside each other hold the same one."""
        if self.kv_heads >= ranks:
            return np.split(x, ranks)[rank]
        return np.split(x, self.kv_heads)[rank // (ranks // self.kv_heads)]


FAMILIES = (
    Family("Llama-3.1-8B", 128, 32, 8, 448, 4008),
    Family("Qwen2.5-14B", 160, 40, 8, 432, 4752, fused_qkv=True, fused_gate_up=True, bias=True),
    Family("Yi-6B", 128, 32, 4, 344, 2000, fused_qkv=True),
    Family("Yi-6B, apart", 128, 32, 4, 344, 2000),
    Family("Mixtral-8x7B", 128, 32, 8, 448, 1000, experts=8),
)


def written_plan(
    folder: Path, source: tuple[int, str], destination: tuple[int, str], placements: Mapping[str, str]
) -> Path:
    """A plan file: (ranks, folder of the files) of both sides."""
    lines = []
    for side, (ranks, name) in (("source", source), ("destination", destination)):
        (folder / name).mkdir(exist_ok=True)
        lines.append(f'[{side}]\nmesh = [{ranks}]\nfiles = "{name}/{{device}}.safetensors"\n')
    lines.append("[placements]")
    lines += [f'"{pattern}" = "{text}"' for pattern, text in placements.items()]
    path = folder / f"{source[1]}-{destination[1]}.toml"
    path.write_text("\n".join(lines))
    return path
