"""No public function that makes tensors goes without a row."""

import inspect
import pathlib

import mesh_tf2 as mtf

from tests.conformance.table import ELSEWHERE, NO_TENSORS, ROWS

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _covered():
  names = {r.name for r in ROWS}
  return names.union(*(r.covers for r in ROWS))


def test_every_public_function_that_makes_tensors_has_a_row():
  functions = {n for n in dir(mtf) if inspect.isfunction(getattr(mtf, n))}
  missing = functions - _covered() - set(ELSEWHERE) - NO_TENSORS
  assert not missing, (
    f"{sorted(missing)}: add a row to a file tests/conformance/rows_*.py"
  )


def test_every_row_is_of_a_public_function():
  known = _covered() | NO_TENSORS
  assert not {n for n in known if not hasattr(mtf, n)}


def test_what_is_tested_elsewhere_is_mentioned_there():
  for name, file in ELSEWHERE.items():
    assert name in (ROOT / file).read_text(encoding="utf-8"), (name, file)


def test_no_two_rows_have_one_name():
  names = [str(r) for r in ROWS]
  assert len(set(names)) == len(names)
