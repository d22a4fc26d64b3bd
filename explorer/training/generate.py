"""Training text that the target writes itself: it fills the open user turn, then answers.

A drafter must predict this target, so text of any other origin teaches it habits the target does not have.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from explorer.checkpoints.target import LoadedTarget
from explorer.errors import SettingError
from explorer.training.corpus import FIELDS
from explorer.training.openings import choose_opening
from explorer.training.slots import SlotDecoder
from explorer.training.storage import read_npz, write_npz

_MARK = "the-user-turn-goes-here"
# Dropping conversations copies every key and value that stays, so it is done for an eighth of them at a time.
_DROP_BELOW = 7 / 8


@dataclass(frozen=True)
class GenerateOptions:
    """num_tokens: answer tokens to write in all. max_length and max_instruction are tokens of a conversation and of
    its user turn; greedy_share: share of answers decoded greedily, the others are sampled like the instructions.
    openings: first words of user turns instead of our own."""

    num_tokens: int = 1_000_000
    seed: int = 0
    shard_conversations: int = 384
    max_length: int = 512
    max_instruction: int = 96
    temperature: float = 0.8
    top_k: int = 64
    greedy_share: float = 0.67
    openings: tuple[str, ...] = ()


@dataclass
class Conversation:
    """One slot's text while it grows. forced: tokens that are fed before the target may choose again."""

    tokens: list[int]
    forced: deque[int]
    temperature: float
    start: int | None = None
    is_done: bool = False
    instruction: list[int] = field(default_factory=list)

    def next_input(self) -> int:
        """The token to feed now; what a conversation that is done is fed has no effect."""
        return self.forced.popleft() if self.forced else self.tokens[-1]


def generate(target: LoadedTarget, folder: Path, options: GenerateOptions) -> Path:
    """Write shards `text-00000.npz`, ... until their answers hold `num_tokens`; existing shards are kept.

    Each shard depends on the seed and its number alone, so a killed run repeats only the shard it was in.
    Raises SettingError if the tokenizer has no chat template.
    """
    frame = ChatFrame(target.tokenizer)
    done = number = 0
    with tqdm(total=options.num_tokens, unit="token", unit_scale=True, desc="generate", mininterval=5) as bar:
        while done < options.num_tokens:
            path = folder / f"text-{number:05d}.npz"
            if not path.exists():
                write_npz(path, _to_arrays(_write_shard(target, frame, options, number, bar)))
                arrays = read_npz(path, FIELDS)
            else:
                arrays = read_npz(path, FIELDS)
                bar.update(int((arrays["lens"] - arrays["start"]).sum()))
            done += int((arrays["lens"] - arrays["start"]).sum())
            number += 1
    return folder


class ChatFrame:
    """The chat template cut open at the user's turn: token ids before it, and from its end to the answer."""

    def __init__(self, tokenizer: Any) -> None:
        if not tokenizer.chat_template:
            raise SettingError("this target has no chat template, so it cannot write instructions; give --text files")
        turn = [{"role": "user", "content": _MARK}]
        text: str = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
        before, after = text.split(_MARK)
        self._tokenizer = tokenizer
        self.before: list[int] = self.encode(before)
        self.after: list[int] = self.encode(after)

    def encode(self, text: str) -> list[int]:
        """Token ids of a piece of the rendered template, nothing added."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids


def _write_shard(
    target: LoadedTarget, frame: ChatFrame, options: GenerateOptions, number: int, bar: tqdm
) -> list[Conversation]:
    source = random.Random(f"{options.seed}/{number}")
    generator = torch.Generator().manual_seed(source.getrandbits(62))
    conversations = [_open(frame, options, source) for _ in range(options.shard_conversations)]
    active = list(conversations)
    decoder = SlotDecoder(target.model, len(active), options.max_length)
    while active:
        # One that is done is still fed, until enough have ended to be worth dropping.
        inputs = torch.tensor([conversation.next_input() for conversation in active])
        choosing = [i for i, conversation in enumerate(active) if not conversation.forced and not conversation.is_done]
        logits = decoder.step(inputs, choosing)
        temperatures = [
            active[index].temperature if active[index].start is not None else options.temperature for index in choosing
        ]
        chosen = _choose(logits, temperatures, options.top_k, generator)
        for index, token in zip(choosing, chosen, strict=True):
            bar.update(_advance(active[index], token, frame, target.stop_ids, options))
        kept = [index for index, conversation in enumerate(active) if not conversation.is_done]
        if len(kept) <= _DROP_BELOW * len(active):
            active = [active[index] for index in kept]
            decoder.keep(kept)
    return [conversation for conversation in conversations if conversation.start is not None]


def _open(frame: ChatFrame, options: GenerateOptions, source: random.Random) -> Conversation:
    opening = frame.encode(choose_opening(source, options.openings))
    temperature = 0.0 if source.random() < options.greedy_share else options.temperature
    tokens = frame.before + opening
    return Conversation(list(tokens), deque(tokens), temperature, instruction=list(opening))


def _advance(
    conversation: Conversation, token: int, frame: ChatFrame, stop_ids: frozenset[int], options: GenerateOptions
) -> int:
    """Take the chosen token into the text; returns how many answer tokens that made (0 or 1)."""
    if conversation.start is not None:
        conversation.tokens.append(token)
        conversation.forced.append(token)
        conversation.is_done = token in stop_ids or len(conversation.tokens) >= options.max_length
        return 1
    is_full = len(conversation.instruction) >= options.max_instruction
    if token in stop_ids or is_full:
        conversation.is_done = not conversation.instruction  # it asked nothing: nothing to answer
        if not conversation.is_done:
            conversation.tokens += frame.after
            conversation.forced.extend(frame.after)
            conversation.start = len(conversation.tokens)
    else:
        conversation.instruction.append(token)
        conversation.tokens.append(token)
        conversation.forced.append(token)
    return 0


def _choose(logits: Tensor, temperatures: list[float], top_k: int, generator: torch.Generator) -> list[int]:
    """One token per row of logits [R, V]: the argmax at temperature 0, else a draw from the top k."""
    values, ids = logits.float().topk(min(top_k, logits.shape[-1]))
    scale = torch.tensor(temperatures)[:, None]
    drawn = torch.multinomial((values / scale.clamp(min=1e-5)).softmax(-1), 1, generator=generator)
    picks = torch.where(scale > 0, drawn, torch.zeros_like(drawn))
    chosen: list[int] = ids.gather(1, picks)[:, 0].tolist()
    return chosen


def _to_arrays(conversations: list[Conversation]) -> dict[str, np.ndarray]:
    flat = [token for conversation in conversations for token in conversation.tokens]
    tokens = np.array(flat, dtype=np.uint32)
    return {
        "tokens": tokens.astype(np.uint16) if tokens.max(initial=0) <= np.iinfo(np.uint16).max else tokens,
        "lens": np.array([len(conversation.tokens) for conversation in conversations], dtype=np.int32),
        "start": np.array([conversation.start for conversation in conversations], dtype=np.int32),
        "temp": np.array([conversation.temperature for conversation in conversations], dtype=np.float32),
    }
