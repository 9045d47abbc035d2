"""A Transformer in plain NumPy, from the formulas of the papers.

One sentence at a time, one head at a time, float64: slow, and easy to believe.
Attention Is All You Need (2017) for the architecture; RMSNorm (Zhang and
Sennrich, 2019) before each layer, and scores that are not divided by sqrt(d_kv)
since that is part of the initial value of the queries' projection.
"""

import numpy as np

INVISIBLE = -1e9


def softmax(x):
  e = np.exp(x - x.max(axis=-1, keepdims=True))
  return e / e.sum(axis=-1, keepdims=True)


def log_sum_exp(x):
  top = x.max(axis=-1, keepdims=True)
  return (top + np.log(np.exp(x - top).sum(axis=-1, keepdims=True)))[..., 0]


def rms_norm(x, scale, epsilon=1e-6):
  return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * scale


def gelu(x):
  return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


class NumpyTransformer:
  """A model whose weights are arrays under the names of checkpoints.

  Args:
    weights: float64 arrays.
    d_kv: the size of a head.
    blocks: how many blocks encoder and decoder have.
    vocab_size: how many ids are real.
  """

  def __init__(self, weights, *, d_kv, blocks, vocab_size):
    self.weights = {n: w.astype(np.float64) for n, w in weights.items()}
    self.d_kv = d_kv
    self.blocks = blocks
    self.vocab_size = vocab_size

  # Layers: `x` is length, d_model.

  def attention(self, scope, x, memory, visible):
    w = {n: self.weights[f"{scope}/{n}"] for n in "qkvo"}
    found = []
    for begin in range(0, w["q"].shape[1], self.d_kv):
      head = slice(begin, begin + self.d_kv)
      q, k = x @ w["q"][:, head], memory @ w["k"][:, head]
      scores = q @ k.T + np.where(visible, 0.0, INVISIBLE)
      found.append(softmax(scores) @ (memory @ w["v"][:, head]))
    return np.concatenate(found, axis=-1) @ w["o"]

  def feed_forward(self, scope, x):
    w = self.weights
    if f"{scope}/wi_0/kernel" in w:
      gate = gelu(x @ w[f"{scope}/wi_0/kernel"])
      hidden = gate * (x @ w[f"{scope}/wi_1/kernel"])
    else:
      hidden = np.maximum(x @ w[f"{scope}/wi/kernel"], 0)
    return hidden @ w[f"{scope}/wo/kernel"]

  def norm(self, scope, x):
    return rms_norm(x, self.weights[f"{scope}/rms_norm/scale"])

  def stack(self, scope, x, layers, segment):
    real = (segment != 0)[:, None]
    for block in range(self.blocks):
      for i, layer in enumerate(layers):
        at = f"{scope}/block_{block:03d}/layer_{i:03d}"
        x = x + layer(at, self.norm(at, x) * real)
    return self.norm(scope, x) * real

  # Models: ids are whole rows of one example.

  def embed(self, scope, ids, position):
    tables = scope if f"{scope}/embedding" in self.weights else "shared"
    scope_of_positions = (
      scope if f"{scope}/positional_embedding" in self.weights else "shared"
    )
    table = self.weights[f"{tables}/embedding"]
    positions = self.weights[f"{scope_of_positions}/positional_embedding"]
    return table[np.abs(ids)] + positions[position]

  def encode(self, ids, segment, position):
    same = segment[:, None] == segment[None, :]

    def attend(at, x):
      return self.attention(f"{at}/SelfAttention", x, x, same)

    def feed(at, x):
      return self.feed_forward(f"{at}/DenseReluDense", x)

    x = self.embed("encoder", ids, position)
    return self.stack("encoder", x, [attend, feed], segment)

  def decode(
    self, scope, targets, segment, position, encoded=None, encoder_segment=None
  ):
    """Logits for each position: length, real ids."""
    length = len(targets)
    same = segment[:, None] == segment[None, :]
    causal = np.arange(length)[:, None] >= np.arange(length)[None, :]

    def attend(at, x):
      return self.attention(f"{at}/SelfAttention", x, x, same & causal)

    def attend_encoder(at, x):
      visible = segment[:, None] == encoder_segment[None, :]
      return self.attention(f"{at}/EncDecAttention", x, encoded, visible)

    def feed(at, x):
      return self.feed_forward(f"{at}/DenseReluDense", x)

    layers = [attend, feed]
    if encoded is not None:
      layers = [attend, attend_encoder, feed]
    x = self.embed(scope, inputs_of(targets, segment), position)
    x = self.stack(scope, x, layers, segment)
    if f"{scope}/logits/kernel" in self.weights:
      logits = x @ self.weights[f"{scope}/logits/kernel"]
    else:
      tables = scope if f"{scope}/embedding" in self.weights else "shared"
      table = self.weights[f"{tables}/embedding"]
      logits = x @ table.T * x.shape[-1] ** -0.5
    return logits[:, : self.vocab_size]


def inputs_of(targets, segment):
  """What a decoder reads: the id before, 0 at the start of a segment."""
  inputs = np.zeros_like(targets)
  for i in range(1, len(targets)):
    if segment[i] == segment[i - 1]:
      inputs[i] = abs(targets[i - 1])
  return inputs


def cross_entropy(logits, targets, smoothing=0.0, z_loss=0.0):
  """The loss of each position: length. Unscored positions are 0."""
  losses = np.zeros(len(targets))
  count = logits.shape[-1]
  for i, target in enumerate(targets):
    if target > 0:
      wanted = np.full(count, smoothing / count)
      wanted[target] += 1 - smoothing
      log_z = log_sum_exp(logits[i])
      losses[i] = -np.sum(wanted * (logits[i] - log_z)) + z_loss * log_z**2
  return losses
