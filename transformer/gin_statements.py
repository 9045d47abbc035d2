"""The text of a gin file, cut into statements that know where they stand.

gin itself reports a mistake by the place in the text it was handed, and reads
an included file by itself. Here a file is cut up first, so that an error names
the line of the user's file, files are found by short names, and the names of
Mesh TensorFlow become ours. Nothing here needs gin or TensorFlow.
"""

import ast
import collections.abc
import dataclasses
import io
import tokenize

ORIGINAL = "mesh_tensorflow"
OURS = "mesh_tf2"

# The original has a second copy of this function in another module; here both
# names stand for one. From module and name to the module.
MOVED = {
  ("optimize", "product_learning_rate"): "transformer.learning_rate_schedules"
}


class GinFileError(ValueError):
  """A mistake in a gin file or a gin parameter, told in a line or two."""


@dataclasses.dataclass(frozen=True)
class Source:
  """Where a statement stands: a file, a line from 1, and that line's text."""

  file: str
  line: int
  text: str

  def error(self, message: str) -> GinFileError:
    """The error that says `message` of this line."""
    return GinFileError(
      f"{self.file}, line {self.line}: {message}\n  {self.text}"
    )


@dataclasses.dataclass(frozen=True)
class Name:
  """A name used in a value, and the place where it is used."""

  name: str
  source: Source


@dataclasses.dataclass(frozen=True)
class Include:
  """`include "path"`."""

  source: Source
  path: str


@dataclasses.dataclass(frozen=True)
class Import:
  """`import module`, with the statement as gin is to see it."""

  source: Source
  module: str
  text: str


@dataclasses.dataclass(frozen=True)
class Block:
  """`scope/selector:`, the head of a block of bindings."""

  source: Source
  selector: str


@dataclasses.dataclass(frozen=True)
class Binding:
  """`scope/selector.parameter = value`; without a parameter it is a macro.

  Attributes:
    source: where it stands.
    scope: the scopes, joined by slashes, or "".
    selector: the name of a configurable, maybe with modules in front; or of a
      macro.
    parameter: the parameter, or "" for a macro.
    references: the configurables that the value names with `@`.
    macros: the macros that the value names with `%`.
    text: the statement as gin is to see it.
  """

  source: Source
  scope: str
  selector: str
  parameter: str
  references: tuple[Name, ...]
  macros: tuple[Name, ...]
  text: str


Statement = Include | Import | Block | Binding


def statements(text: str, file: str) -> collections.abc.Iterator[Statement]:
  """Cuts the text of a gin file into statements.

  Names that begin with `mesh_tensorflow.` come out with `mesh_tf2.` instead,
  and those in `MOVED` under their one module; comments and strings stay as they
  are.

  Args:
    text: what the file holds.
    file: how to call the file in errors.

  Yields:
    The statements, in their order.

  Raises:
    GinFileError: if the text cannot be cut up, with the line.
  """
  lines = io.StringIO(text).readlines()
  head = None  # of the block that is open
  for line in _logical_lines(lines, file):
    if not line.indented:
      head = None
    if head is None and line.strings[-1] == ":":
      head = line.part(0, -1)
      yield Block(line.source, _split(head + ".")[1])
    elif line.strings[0] == "include":
      yield _include(line)
    elif line.strings[0] in ("import", "from") and line.strings[1:2] != ["="]:
      yield _import(line)
    else:
      yield _binding(line, "" if head is None else f"{head}.")


@dataclasses.dataclass(frozen=True)
class _Line:
  """A logical line: its tokens, without comments and line ends."""

  file: str
  lines: list[str]
  tokens: list[tokenize.TokenInfo]
  indented: bool

  @property
  def strings(self) -> list[str]:
    return [token.string for token in self.tokens]

  @property
  def source(self) -> Source:
    return self.source_of(self.tokens[0])

  def source_of(self, token: tokenize.TokenInfo) -> Source:
    row = token.start[0]
    return Source(self.file, row, self.lines[row - 1].strip())

  def part(self, begin: int, end: int | None = None) -> str:
    """The text of some of the tokens, with the names of the original ours."""
    tokens = self.tokens[begin:end]
    if not tokens:
      return ""
    first, last = tokens[0], tokens[-1]
    rows = self.lines[first.start[0] - 1 : last.end[0]]
    rows[-1] = rows[-1][: last.end[1]]
    followed = zip(
      tokens, self.tokens[begin + 1 :], self.tokens[begin + 2 :], strict=False
    )
    for token, dot, member in reversed(list(followed)):
      old = token.string
      new = OURS if old == ORIGINAL else MOVED.get((old, member.string))
      if new and dot.string == ".":
        row, column = token.start[0] - first.start[0], token.start[1]
        rest = rows[row][column + len(old) :]
        rows[row] = rows[row][:column] + new + rest
    rows[0] = rows[0][first.start[1] :]
    return "".join(rows)

  def names_after(self, mark: str) -> tuple[Name, ...]:
    """The names that follow a mark, `@` or `%`."""
    found = []
    for i, token in enumerate(self.tokens):
      if token.string == mark:
        end = i + 1
        while end < len(self.tokens) and _continues_name(self.tokens[end]):
          end += 1
        found.append(Name(self.part(i + 1, end), self.source_of(token)))
    return tuple(found)


def _continues_name(token: tokenize.TokenInfo) -> bool:
  return token.type == tokenize.NAME or token.string in (".", "/")


def _logical_lines(
  lines: list[str], file: str
) -> collections.abc.Iterator[_Line]:
  tokens: list[tokenize.TokenInfo] = []
  depth, last = 0, 1
  try:
    for token in tokenize.generate_tokens(iter([*lines, ""]).__next__):
      if token.type == tokenize.INDENT:
        depth += 1
      elif token.type == tokenize.DEDENT:
        depth -= 1
      elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
        if tokens:
          yield _Line(file, lines, tokens, depth > 0)
        tokens = []
      elif token.type not in (tokenize.COMMENT, tokenize.NL):
        tokens.append(token)
        last = token.start[0]
  except (tokenize.TokenError, SyntaxError) as error:
    # An open bracket is noticed at the end of the file, which helps nobody;
    # what matters is where the statement began.
    row = tokens[0].start[0] if tokens else _row(error, last)
    row = min(row, len(lines))
    source = Source(file, row, lines[row - 1].strip())
    raise source.error(f"cannot be read ({_reason(error)})") from None


def _row(error: Exception, otherwise: int) -> int:
  if isinstance(error, SyntaxError):
    return error.lineno or otherwise
  return error.args[1][0] if len(error.args) > 1 else otherwise


def _reason(error: Exception) -> str:
  message = error.msg if isinstance(error, SyntaxError) else error.args[0]
  if "EOF in multi-line" in message or "unexpected EOF" in message:
    return "a bracket or a string that begins here is not closed"
  return str(message)


def _split(key: str) -> tuple[str, str, str]:
  """`a/b/c.d.e` is scope `a/b`, selector `c.d` and parameter `e`."""
  scope, _, rest = key.rpartition("/")
  selector, dot, parameter = rest.rpartition(".")
  return (scope, selector, parameter) if dot else (scope, rest, "")


def _include(line: _Line) -> Include:
  if len(line.tokens) != 2 or line.tokens[1].type != tokenize.STRING:
    raise line.source.error('wanted a file: include "models/tiny.gin"')
  return Include(line.source, ast.literal_eval(line.strings[1]))


def _import(line: _Line) -> Import:
  words = line.part(0).split()
  module = words[1] if len(words) > 1 else ""
  if words[0] == "from" and len(words) > 3:
    module += "." + words[3]
  return Import(line.source, module, line.part(0))


def _binding(line: _Line, head: str) -> Binding:
  if "=" not in line.strings:
    raise line.source.error("wanted `name.parameter = value`")
  equals = line.strings.index("=")
  scope, selector, parameter = _split(head + line.part(0, equals))
  return Binding(
    source=line.source,
    scope=scope,
    selector=selector,
    parameter=parameter,
    references=line.names_after("@"),
    macros=line.names_after("%"),
    text=head + line.part(0),
  )
