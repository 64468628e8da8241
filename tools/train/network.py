"""The body that both networks share: the transformer of gte-small, 12 layers of 384 dimensions."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

LAYERS = 12
WIDTH = 384
INNER_WIDTH = 1536
ATTENTION_HEADS = 12
VOCABULARY_SIZE = 30522
LONGEST_INPUT = 512
NORM_EPSILON = 1e-12
DROPOUT = 0.1
# The products of a layer, with the widths of their values and results.
PRODUCTS = {
    "query": (WIDTH, WIDTH),
    "key": (WIDTH, WIDTH),
    "value": (WIDTH, WIDTH),
    "attended": (WIDTH, WIDTH),
    "widen": (WIDTH, INNER_WIDTH),
    "narrow": (INNER_WIDTH, WIDTH),
}
ADAPTER_RANK = 8


class Linear(nn.Linear):
    """A product that can be rounded as the int8 file rounds it, so that training adapts to what the rounding does."""

    is_rounded = False

    def forward(self, value: Tensor) -> Tensor:
        if not self.is_rounded:
            return super().forward(value)
        return functional.linear(rounded_values(value), rounded_weight(self.weight), self.bias)


def rounded_weight(weight: Tensor) -> Tensor:
    """One scale for each output, symmetric, as `quantize_dynamic` does it."""
    scale = weight.detach().abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
    return weight + ((weight / scale).round() * scale - weight).detach()


def rounded_values(value: Tensor) -> Tensor:
    """One scale for each row of the batch, as `DynamicQuantizeLinear` finds it where every row is read alone."""
    plain = value.detach().float()
    places = list(range(1, plain.ndim))
    least, greatest = plain.amin(places, keepdim=True).clamp(max=0), plain.amax(places, keepdim=True).clamp(min=0)
    scale = ((greatest - least) / 255).clamp(min=1e-12)
    zero = (-least / scale).round()
    rounded = (((plain / scale).round() + zero).clamp(0, 255) - zero) * scale
    return value + (rounded.to(value.dtype) - value).detach()


def round_as_int8(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, Linear):
            module.is_rounded = True


class Adapter(nn.Module):
    """A small change of a product, of a low rank; none at the start."""

    def __init__(self, width: int, result: int) -> None:
        super().__init__()
        self.down = Linear(width, ADAPTER_RANK, bias=False)
        self.up = Linear(ADAPTER_RANK, result, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, value: Tensor) -> Tensor:
        return self.up(self.down(value))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for name, widths in PRODUCTS.items():
            setattr(self, name, Linear(*widths))
        self.attended_norm = nn.LayerNorm(WIDTH, eps=NORM_EPSILON)
        self.narrow_norm = nn.LayerNorm(WIDTH, eps=NORM_EPSILON)

    def forward(self, hidden: Tensor, mask: Tensor, adapters: nn.ModuleDict | None = None) -> Tensor:
        def product(name: str, value: Tensor) -> Tensor:
            plain = getattr(self, name)(value)
            return plain if adapters is None else plain + adapters[name](value)

        query, key, value = (_split_heads(product(name, hidden)) for name in ("query", "key", "value"))
        attention = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        attended = product("attended", attention.transpose(1, 2).reshape(hidden.shape))
        hidden = self.attended_norm(hidden + functional.dropout(attended, DROPOUT, self.training))
        narrow = product("narrow", functional.gelu(product("widen", hidden)))
        return self.narrow_norm(hidden + functional.dropout(narrow, DROPOUT, self.training))


def adapters_of_layers() -> nn.ModuleList:
    """An adapter for every product of every layer."""
    return nn.ModuleList(
        nn.ModuleDict({name: Adapter(*widths) for name, widths in PRODUCTS.items()}) for _ in range(LAYERS)
    )


class Body(nn.Module):
    """Ids to hidden states. `mask` is true for real pieces; `segments` are token types, all 0 if left out."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY_SIZE, WIDTH)
        self.positions = nn.Embedding(LONGEST_INPUT, WIDTH)
        self.segments = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=NORM_EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, adapters: nn.ModuleList | None = None
    ) -> Tensor:
        segment = self.segments.weight[0] if segments is None else self.segments(segments)
        hidden = self.norm(self.words(ids) + self.positions.weight[: ids.shape[1]] + segment)
        hidden = functional.dropout(hidden, DROPOUT, self.training)
        for number, layer in enumerate(self.layers):
            hidden = layer(hidden, mask[:, None, None, :], None if adapters is None else adapters[number])
        return hidden


def mean_over(hidden: Tensor, kept: Tensor) -> Tensor:
    """The mean of the hidden states whose place is kept."""
    weights = kept.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1)


def load_body(body: Body, weights: dict[str, np.ndarray]) -> None:
    body.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})


def read_weights(path: str) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return {name: file[name].astype(np.float32) for name in file.files}


def save_weights(path: str, network: nn.Module) -> None:
    np.savez(path, **{name: tensor.detach().float().cpu().numpy() for name, tensor in network.state_dict().items()})


def device_of(cpu: bool) -> torch.device:
    """The GPU, or the processor for a trial run."""
    if not cpu and not torch.cuda.is_available():
        raise SystemExit("no GPU is there; `--cpu` runs on the processor, which is far too slow for a whole training")
    return torch.device("cpu" if cpu else "cuda")


def half_precision(device: torch.device) -> torch.autocast:
    """bfloat16 on a GPU, single precision on a processor."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def set_learning_rate(optimizer: torch.optim.Optimizer, share: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * share


def adam(
    device: torch.device, body: list[nn.Parameter], body_peak: float, heads: list[nn.Parameter], heads_peak: float
) -> torch.optim.AdamW:
    """AdamW with one peak learning rate for the body and another for what starts untrained."""
    groups = [
        {"params": body, "lr": body_peak, "peak": body_peak},
        {"params": heads, "lr": heads_peak, "peak": heads_peak},
    ]
    return torch.optim.AdamW(groups, weight_decay=0.01, fused=device.type == "cuda")


def descend(loss: Tensor, network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()


def _split_heads(projected: Tensor) -> Tensor:
    batch, length, _ = projected.shape
    return projected.view(batch, length, ATTENTION_HEADS, WIDTH // ATTENTION_HEADS).transpose(1, 2)
