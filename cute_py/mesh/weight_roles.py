"""Derive the placement of a weight from its name, and check whether the shapes agree.

A row of `ROLES` contains the module's name, the dimensions of its whole weight in terms of the model's sizes, and the
divisions that tensor parallelism uses for it. The sizes come from the checkpoint: the shape of each whole weight is
computed once according to the plan and once according to its role, and each result votes for its sizes. The value with
the most votes counts as known.

    the plan divides as the role does          judged by name; by shape if the sizes are known
    the plan differs, and only its             judged by shape: the checkpoint is not divided as in tensor
        shape fits the sizes                   parallelism, but for example as FSDP does
    the plan differs, and only the             a warning, with the placement that fits
        role's shape fits
    the shapes do not decide                   a warning by name
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cute_py.diagnostics import Diagnostic
from cute_py.errors import given
from cute_py.mesh.placements import Replicate, SectionedShard, Shard
from cute_py.mesh.weight_placements import FusedQkv, GateUp, KvHeads, Sections, WeightPlacement

WHOLE, ROWS, COLUMNS, GATE_UP, QKV, KV_HEADS = "whole", "rows", "columns", "gate and up", "q, k and v", "KV heads"
"""Divisions: which part of a weight a rank holds."""

ONE_DEVICE, SEVERAL = "one device", "several modes"
"""Values that replace a division: the mesh has one device, or several of its modes divide the weight."""

QKV_COLUMNS = "q, k and v by columns"
"""Division of a weight (inputs, outputs), as in GPT-2's Conv1D."""

MIDDLE, SECTIONED_MIDDLE = "middle", "gate and up of the middle"
"""Divisions of stacked experts, (experts, outputs, inputs), along their outputs."""

HIDDEN, QUERY, KEY, INTERMEDIATE, VOCABULARY = "hidden", "query rows", "key rows", "intermediate", "vocabulary"
QUERY_RANK, KEY_RANK = "rank of the query", "rank of keys and values"

_PER_MODEL = (HIDDEN, VOCABULARY)
"""Sizes that all layers share; all other sizes belong to one module."""

TWICE = "2 x intermediate"
FUSED = "query + 2 x key rows"


@dataclass(frozen=True, slots=True)
class WeightRole:
    """A row of `ROLES`: names of a module, the sizes of its weight, and how tensor parallelism divides it."""

    modules: tuple[str, ...]
    sizes: tuple[str, ...]
    """Size of each dimension of the whole weight; '' for a size that no other weight shares."""

    divisions: tuple[str, ...]
    """Divisions in use; hints suggest the first."""

    placement: str
    """The placement for the first division, as it is written in a plan."""

    source: str
    biased: bool = True
    """Whether `module.bias` has a separate row: divided as the rows are, or whole."""

    usually_divided: bool = True
    """Whether a plan that divides other weights must divide this one too."""

    note: str = ""
    """The reason why the name alone does not determine the division."""

    @property
    def kind(self) -> str:
        """The role's name in messages: the placement, and the name of a module."""
        return f"a {self.placement.partition('(')[0]} weight ({self.modules[0]})"


_LLAMA = "transformers modeling_llama.py; vLLM model_executor/models/llama.py"
_MIXTRAL = "transformers modeling_mixtral.py, modeling_qwen2_moe.py; vLLM fused_moe/layer.py"
_DEEPSEEK = "transformers modeling_deepseek_v3.py; vLLM models/deepseek_v2.py"
_OPT = "transformers modeling_opt.py, modeling_gpt_neox.py; vLLM models/opt.py, gpt_neox.py"
_QKV = "vLLM QKVParallelLinear; transformers modeling_phi3.py"
_GATE_UP = "vLLM MergedColumnParallelLinear; transformers modeling_phi3.py"
_MEGATRON = "Megatron-LM megatron/core/transformer/attention.py, mlp.py"

ROLES: tuple[WeightRole, ...] = (
    WeightRole(("q_proj", "wq"), (QUERY, HIDDEN), (ROWS,), "column-parallel", _LLAMA),
    WeightRole(("k_proj", "v_proj", "wk", "wv"), (KEY, HIDDEN), (ROWS, KV_HEADS), "column-parallel", _LLAMA),
    WeightRole(("o_proj", "wo", "out_proj"), (HIDDEN, QUERY), (COLUMNS,), "row-parallel", _LLAMA),
    WeightRole(("gate_proj", "up_proj", "w1", "w3"), (INTERMEDIATE, HIDDEN), (ROWS,), "column-parallel", _LLAMA),
    WeightRole(("down_proj", "w2"), (HIDDEN, INTERMEDIATE), (COLUMNS,), "row-parallel", _LLAMA),
    WeightRole(
        ("qkv_proj", "qkv", "Wqkv", "W_pack", "attn_qkv", "in_proj_weight"),
        (FUSED, HIDDEN),
        (QKV,),
        "fused-qkv(heads=..., kv_heads=..., head_dim=...)",
        _QKV,
    ),
    WeightRole(
        ("c_attn",),
        ("", ""),
        (QKV_COLUMNS, QKV),
        "SectionedShard(1, (hidden, hidden, hidden))",
        "transformers modeling_gpt2.py",
    ),
    WeightRole(("gate_up_proj", "gate_up", "w13"), (TWICE, HIDDEN), (GATE_UP,), "gate-up", _GATE_UP),
    WeightRole(
        ("linear_qkv", "query_key_value", "wqkv"),
        (FUSED, HIDDEN),
        (ROWS, QKV),
        "column-parallel",
        _MEGATRON,
        note="the rows are Q, K and V alternating by group of heads (column-parallel), or all of Q first (fused-qkv)",
    ),
    WeightRole(
        ("linear_fc1",),
        ("", HIDDEN),
        (GATE_UP, ROWS),
        "gate-up",
        _MEGATRON,
        note="the rows are gate and up in a gated network (gate-up), or one block in another network (column-parallel)",
    ),
    WeightRole(("fc1", "dense_h_to_4h"), (INTERMEDIATE, HIDDEN), (ROWS,), "column-parallel", _OPT),
    WeightRole(("fc2", "dense_4h_to_h", "linear_fc2"), (HIDDEN, INTERMEDIATE), (COLUMNS,), "row-parallel", _OPT),
    WeightRole(("linear_proj", "dense"), (HIDDEN, QUERY), (COLUMNS,), "row-parallel", _MEGATRON),
    WeightRole(
        (
            "input_layernorm",
            "post_attention_layernorm",
            "pre_feedforward_layernorm",
            "post_feedforward_layernorm",
            "self_attn_layer_norm",
            "final_layer_norm",
            "final_layernorm",
            "attention_norm",
            "ffn_norm",
            "norm",
            "ln_f",
        ),
        (HIDDEN,),
        (WHOLE,),
        "replicate",
        _LLAMA,
        biased=False,
    ),
    WeightRole(("q_norm", "k_norm"), ("",), (WHOLE,), "replicate", "transformers modeling_qwen3.py", biased=False),
    WeightRole(
        ("embed_tokens", "tok_embeddings", "word_embeddings", "wte"),
        (VOCABULARY, HIDDEN),
        (ROWS,),
        "embedding",
        _LLAMA,
        usually_divided=False,
    ),
    WeightRole(
        ("lm_head", "embed_out", "output_layer"),
        (VOCABULARY, HIDDEN),
        (ROWS,),
        "column-parallel",
        _LLAMA,
        usually_divided=False,
    ),
    WeightRole(("gate", "router", "shared_expert_gate"), ("", HIDDEN), (WHOLE,), "replicate", _MIXTRAL, biased=False),
    WeightRole(("w13_weight",), ("", TWICE, HIDDEN), (ROWS, SECTIONED_MIDDLE), "Shard(0)", _MIXTRAL),
    WeightRole(("w2_weight",), ("", HIDDEN, INTERMEDIATE), (COLUMNS, ROWS), "row-parallel", _MIXTRAL),
    WeightRole(("q_a_proj",), (QUERY_RANK, HIDDEN), (WHOLE,), "replicate", _DEEPSEEK, biased=False),
    WeightRole(("kv_a_proj_with_mqa",), ("", HIDDEN), (WHOLE,), "replicate", _DEEPSEEK, biased=False),
    WeightRole(("q_a_layernorm",), (QUERY_RANK,), (WHOLE,), "replicate", _DEEPSEEK, biased=False),
    WeightRole(("kv_a_layernorm",), (KEY_RANK,), (WHOLE,), "replicate", _DEEPSEEK, biased=False),
    WeightRole(("q_b_proj",), ("", QUERY_RANK), (ROWS,), "column-parallel", _DEEPSEEK),
    WeightRole(("kv_b_proj",), ("", KEY_RANK), (ROWS,), "column-parallel", _DEEPSEEK),
)

_ROLE_OF: Mapping[str, WeightRole] = {module: role for role in ROLES for module in role.modules}


def role_of(name: str) -> WeightRole | None:
    """Return the role of a tensor by its name; None if no row has the name.

    >>> role_of("model.layers.0.mlp.down_proj.weight").placement
    'row-parallel'
    >>> role_of("model.layers.0.mlp.down_proj.bias").placement, role_of("model.layers.0.mlp.down_proj.scales")
    ('replicate', None)
    """
    path, _, leaf = name.rpartition(".")
    if leaf.endswith("_weight"):
        return _ROLE_OF.get(leaf)
    module = path.rpartition(".")[2]
    role = _ROLE_OF.get(module)
    if role is None and leaf in ("weight", "bias"):  # to_qkv, attn_qkv_proj, and the like
        role = _ROLE_OF["qkv_proj"] if "qkv" in module.lower() else None
    if role is None or leaf == "weight":
        return role
    if leaf != "bias":
        return None
    if not role.biased or COLUMNS in role.divisions:
        return WeightRole(role.modules, role.sizes[:1], (WHOLE,), "replicate", role.source)
    return WeightRole(
        role.modules, role.sizes[:1], role.divisions, role.placement, role.source, usually_divided=role.usually_divided
    )


def division_of(placement: WeightPlacement, shape: Sequence[int]) -> str:
    """Return which part of a weight with this shape a rank holds: one of the divisions of this module, or another
    string."""
    if isinstance(placement, Replicate):
        return WHOLE
    if isinstance(placement, GateUp):
        return GATE_UP
    if isinstance(placement, KvHeads):
        return KV_HEADS
    if isinstance(placement, FusedQkv):
        return QKV
    if isinstance(placement, Sections):
        rows = placement.rows
        halves, three = len(rows) == 2 and rows[0] == rows[1], len(rows) == 3 and rows[1] == rows[2]
        return GATE_UP if halves else QKV if three else "sections"
    dim = getattr(placement, "dim", None)
    if isinstance(placement, Shard):
        return ROWS if dim == 0 else COLUMNS if dim == len(shape) - 1 else MIDDLE if len(shape) == 3 else "other"
    if isinstance(placement, SectionedShard) and dim == 1:
        return SECTIONED_MIDDLE if len(shape) == 3 else QKV_COLUMNS
    return "other"


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor of the checkpoint, as the input of `judge`.

    Attributes: `shape`, the shape of the whole tensor according to the plan; `local`, the shape of the shard of device
        0; `ranks`, the number of ranks of the only source mode that divides the tensor or could divide it (0: several
        modes); `here` and `there`, the divisions of source and destination; `sections`, the rows of a fused weight, by
        label.
    """

    name: str
    shape: tuple[int, ...]
    local: tuple[int, ...]
    ranks: int
    here: str
    there: str
    sections: Mapping[str, int]


@dataclass(slots=True)
class Judgement:
    """The judgement of one weight from its name and shape."""

    judged: list[str] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)


_Size = tuple[str, str]
"""(scope, name of the size)"""


def judge(weights: Sequence[Weight]) -> list[Judgement]:
    """Judge the placements of weights by names and shapes; return one judgement for each weight."""
    scopes = _Scopes([one.name for one in weights])
    roles = [role_of(one.name) for one in weights]
    votes: dict[_Size, Counter[int]] = {}
    for weight, role in zip(weights, roles, strict=True):
        if role is None or len(role.sizes) != len(weight.shape):
            continue
        ways = [(weight.shape, weight.sections)]
        assumed = _assumed(weight, role)
        if assumed is not None:
            ways.append((assumed, {}))
        led_to = {one for shape, sections in ways for one in _sizes(role, shape, sections, weight.name, scopes)}
        for size, number in led_to:
            votes.setdefault(size, Counter())[number] += 1
    known = {size: value for size, counter in votes.items() if (value := _winner(counter)) is not None}
    pairs = [(weight, role) for weight, role in zip(weights, roles, strict=True) if role is not None]
    divides = any(weight.there in role.divisions and WHOLE not in role.divisions for weight, role in pairs)
    by_rows = any(_is_by_rows(weight, role, known, scopes) for weight, role in pairs)
    return [_judged(weight, role, known, scopes, divides, by_rows) for weight, role in zip(weights, roles, strict=True)]


def _is_by_rows(weight: Weight, role: WeightRole, known: Mapping[_Size, int], scopes: _Scopes) -> bool:
    """Whether the shape of a weight shows that it is divided by rows, although tensor parallelism divides it by
    columns."""
    assumed = _assumed(weight, role)
    if weight.here != ROWS or role.divisions[0] != COLUMNS or assumed is None:
        return False
    mine, usual = [_contradictions(role, shape, {}, weight.name, known, scopes) for shape in (weight.shape, assumed)]
    return bool(usual) and not mine


class _Scopes:
    """The scope of weights that share a size: one module, or one stack of layers and the weights around it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._stacks = list(dict.fromkeys(stack for name in names if (stack := _stack(name)) is not None))

    def of(self, name: str, size: str) -> str:
        """Return the scope of a size of a weight. A weight outside layers belongs to the stack with the most similar
        name."""
        if size not in _PER_MODEL:
            return name.rpartition(".")[0].rpartition(".")[0]
        own = _stack(name)
        if own is not None or not self._stacks:
            return own or ""
        alike = [_common(name, stack) for stack in self._stacks]
        return self._stacks[alike.index(max(alike))] if alike.count(max(alike)) == 1 else f"{name} alone"


def _stack(name: str) -> str | None:
    """Return the name up to the index of the layer; None if the name has no index."""
    parts = name.split(".")
    numbers = [i for i, part in enumerate(parts) if part.isascii() and part.isdigit()]
    return ".".join(parts[: numbers[0]]) if numbers else None


def _common(name: str, stack: str) -> int:
    """Return the number of leading components that two names have in common."""
    count = 0
    for one, other in zip(name.split("."), stack.split("."), strict=False):
        if one != other:
            break
        count += 1
    return count


def _winner(counter: Counter[int]) -> int | None:
    """Return the value with the most votes, if it has at least two; otherwise None."""
    first, *others = [*counter.most_common(2), (0, 0)]
    return first[0] if first[1] > max(1, others[0][1]) else None


def _sizes(
    role: WeightRole, shape: Sequence[int], sections: Mapping[str, int], name: str, scopes: _Scopes
) -> Iterator[tuple[_Size, int]]:
    """Yield the sizes that follow from a shape of the whole weight."""
    for size, value in zip(role.sizes, shape, strict=True):
        if size == TWICE:
            yield (scopes.of(name, INTERMEDIATE), INTERMEDIATE), value // 2
        elif size == FUSED:
            for label, its in (("q", QUERY), ("k", KEY)):
                if label in sections:
                    yield (scopes.of(name, its), its), sections[label]
        elif size:
            yield (scopes.of(name, size), size), value


def _assumed(weight: Weight, role: WeightRole) -> tuple[int, ...] | None:
    """Return the shape of the whole weight if its shards were divided according to the role; None if it is unknown, or
    the plan divides in this way."""
    if weight.here in role.divisions or not weight.ranks or len(role.sizes) != len(weight.local):
        return None
    division, local = role.divisions[0], list(weight.local)
    dim = {ROWS: 0, GATE_UP: 0, QKV: 0, COLUMNS: len(local) - 1, MIDDLE: 1, SECTIONED_MIDDLE: 1}.get(division)
    if dim is not None:
        local[dim] *= weight.ranks
    return tuple(local) if dim is not None or division == WHOLE else None


def _judged(
    weight: Weight,
    role: WeightRole | None,
    known: Mapping[_Size, int],
    scopes: _Scopes,
    destination_divides: bool,
    by_rows: bool,
) -> Judgement:
    found = Judgement()
    if role is None or len(role.sizes) != len(weight.shape):
        why = (
            ("no role has this name")
            if role is None
            else f"it has {len(weight.shape)} dimensions; its role has {len(role.sizes)}"
        )
        found.not_judged.append(f"placement by name: {why}")
        return found
    if role.note and weight.here != ONE_DEVICE:
        found.not_judged.append(f"order of the rows: {role.note}")
    plan = _contradictions(role, weight.shape, weight.sections, weight.name, known, scopes)
    assumed = _assumed(weight, role)
    usual = () if assumed is None else _contradictions(role, assumed, {}, weight.name, known, scopes)
    confirmed = weight.here in role.divisions
    if weight.here == ONE_DEVICE:
        found.judged.append("source: one device")
    elif confirmed and plan:
        found.warnings.append(_warning(weight, role, f"the plan states {'; '.join(plan)}", ()))
    elif confirmed:
        found.judged.append(f"placement by name: {role.placement}")
    elif weight.here == SEVERAL and not plan:
        found.not_judged.append("placement by name: several modes of the mesh divide the weight")
    elif assumed is not None and usual and not plan:
        confirmed = True
        found.judged.append(f"placement by shape: {weight.shape} fits; {assumed} of {role.placement} does not")
    elif by_rows and weight.here == ROWS and role.divisions[0] in (QKV, GATE_UP):
        confirmed = True
        found.judged.append("placement by neighbouring weights: all are divided by rows")
    elif weight.here == WHOLE and not plan:
        confirmed = True
        found.judged.append("placement by data: every rank holds the same data")
    else:
        said = "; ".join(plan) or "its shape does not decide"
        fits = f"; with {role.placement} its shape is {assumed}, which fits" if plan and assumed and not usual else ""
        text = (
            f"with the placement of the plan its shape is {weight.shape}: {said}; its name suggests {role.kind}{fits}"
        )
        found.warnings.append(_warning(weight, role, text, _offers(weight, role, known, scopes)))
    if not plan and _is_known(role, weight, known, scopes):
        found.judged.append("shape by neighbouring weights")
    if not _destination_fits(weight, role, confirmed, destination_divides):
        text = f"the destination divides it by {weight.there}, but its name suggests {role.kind}"
        found.warnings.append(_warning(weight, role, text, _offers(weight, role, known, scopes)))
    return found


def _destination_fits(weight: Weight, role: WeightRole, confirmed: bool, destination_divides: bool) -> bool:
    """Whether the destination divides a weight as the role or the source does, or does not divide it at all."""
    if weight.there in (weight.here, ONE_DEVICE, SEVERAL) or weight.there in role.divisions:
        return True
    return weight.there == WHOLE and not (destination_divides and role.usually_divided)


def _is_known(role: WeightRole, weight: Weight, known: Mapping[_Size, int], scopes: _Scopes) -> bool:
    return any(size in known for size, _ in _sizes(role, weight.shape, weight.sections, weight.name, scopes))


def _contradictions(
    role: WeightRole,
    shape: Sequence[int],
    sections: Mapping[str, int],
    name: str,
    known: Mapping[_Size, int],
    scopes: _Scopes,
) -> list[str]:
    """Return the sizes of a shape that contradict the other weights."""
    return [
        f"{size[1]} = {value}; other weights have {known[size]}"
        for size, value in _sizes(role, shape, sections, name, scopes)
        if known.get(size, value) != value
    ]


def _offers(weight: Weight, role: WeightRole, known: Mapping[_Size, int], scopes: _Scopes) -> tuple[str, ...]:
    """Return the placement of the role; for fused rows, also a placement with the numbers of rows, if other weights
    determine them."""
    query = known.get((scopes.of(weight.name, QUERY), QUERY)) if role.divisions[0] == QKV else None
    rest = weight.shape[0] - query if query is not None else 0
    if query is None or rest <= 0 or rest % 2:
        return (role.placement,)
    return role.placement, f"SectionedShard(0, ({query}, {rest // 2}, {rest // 2})), if ranks do not share KV heads"


def _warning(weight: Weight, role: WeightRole, text: str, fixes: tuple[str, ...]) -> Diagnostic:
    usual = f"; usual: {' or '.join(fixes)}" if fixes else ""
    return Diagnostic(
        "reshard-role",
        weight.name,
        text=f"{given(weight.name)}: {text}{usual}",
        source=role.source,
        severity="warning",
        fixes=fixes,
    )
