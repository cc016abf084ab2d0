"""A transformer of two layers in bfloat16, whose weights the tests convert."""

from __future__ import annotations

from typing import Any

HIDDEN, WIDE, HEADS, WORDS = 128, 256, 4, 64


def make(torch: Any, seed: int = 0) -> Any:
    """The model, with the names that checkpoints use."""
    torch.manual_seed(seed)
    nn = torch.nn

    class Layer(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
                setattr(self, name, nn.Linear(HIDDEN, HIDDEN, bias=False))
            self.up_proj, self.down_proj = nn.Linear(HIDDEN, WIDE, bias=False), nn.Linear(WIDE, HIDDEN, bias=False)
            self.input_norm, self.post_norm = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)

        def forward(self, x: Any) -> Any:
            h = self.input_norm(x)
            q, k, v = (
                part(h).unflatten(-1, (HEADS, -1)).transpose(-2, -3) for part in (self.q_proj, self.k_proj, self.v_proj)
            )
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o_proj(mixed.transpose(-2, -3).flatten(-2))
            return x + self.down_proj(nn.functional.silu(self.up_proj(self.post_norm(x))))

    class Transformer(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed_tokens = nn.Embedding(WORDS, HIDDEN)
            self.layers = nn.ModuleList([Layer(), Layer()])
            self.norm = nn.RMSNorm(HIDDEN)
            self.lm_head = nn.Linear(HIDDEN, WORDS, bias=False)

        def forward(self, words: Any) -> Any:
            x = self.embed_tokens(words)
            for layer in self.layers:
                x = layer(x)
            return self.lm_head(self.norm(x))

    return Transformer().to(torch.bfloat16)
