"""Damaged adapters: refused in one sentence, or read; never a traceback."""

from __future__ import annotations

import shutil
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from explorer.checkpoints.target import load_target
from explorer.checkpoints.target_adapter import read_adapter
from tests.faults.test_checkpoints import FUZZ, damage_one, try_to_load
from tests.support.goldens import FOLDER
from tests.support.medusa2_files import write_medusa2

DECODER = load_target(str(FOLDER / "base_b")).model.get_decoder()


@given(data=st.data())
@FUZZ
def test_a_damaged_adapter(tmp_path: Path, data: st.DataObject) -> None:
    shutil.rmtree(tmp_path, ignore_errors=True)
    tmp_path.mkdir()
    folder = write_medusa2(tmp_path)
    (folder / "medusa_lm_head.safetensors").unlink()  # damaged heads are tried elsewhere
    damage_one(folder, data)
    try_to_load(lambda: read_adapter(str(folder), DECODER))
