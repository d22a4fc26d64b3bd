"""What enters a layer is what transformers itself reports as its hidden states, and a pass unwatched is untouched."""

from __future__ import annotations

import pytest
import torch

from explorer.models.layer_inputs import decoder_layers, layer_inputs
from tests.support.tiny import ARCHITECTURES, tiny_model

IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.inference_mode()
def test_they_are_the_hidden_states_between_layers(architecture: str) -> None:
    model = tiny_model(architecture=architecture, num_hidden_layers=5)
    model.set_attn_implementation("sdpa")
    decoder = model.get_decoder()
    expected = decoder(input_ids=IDS, use_cache=False, output_hidden_states=True).hidden_states
    entered = dict.fromkeys((4, 0, 2), torch.empty(0))
    with layer_inputs(decoder, entered):
        decoder(input_ids=IDS, use_cache=False)
    assert entered.keys() == {4, 0, 2}
    for layer, states in entered.items():
        assert states.shape == (2, 5, 32)
        torch.testing.assert_close(states, expected[layer], atol=1e-5, rtol=0)


@torch.inference_mode()
def test_nothing_is_left_behind() -> None:
    model = tiny_model()
    model.set_attn_implementation("sdpa")
    decoder = model.get_decoder()
    with layer_inputs(decoder, {}):
        assert not any(layer._forward_pre_hooks for layer in decoder_layers(decoder))
        decoder(input_ids=IDS, use_cache=False)
    with pytest.raises(TypeError), layer_inputs(decoder, {1: IDS}):
        decoder(input_ids="no tokens", use_cache=False)
    assert not any(layer._forward_pre_hooks for layer in decoder_layers(decoder))
