"""Operations of two operands need a tensor among them."""

import pytest

import mesh_tf2 as mtf


@pytest.mark.parametrize("fn", [mtf.add, mtf.multiply, mtf.divide])
def test_two_numbers_are_an_error(fn):
  with pytest.raises(ValueError, match="neither"):
    fn(1.0, 2.0)
