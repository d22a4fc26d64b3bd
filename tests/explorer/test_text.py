"""Labels show a token exactly and hide nothing; prompts become the ids the target should read."""

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from explorer.errors import PromptError
from explorer.text import Labeler, check_messages, decode, prompt_from_ids, render_prompt, show_text
from explorer.trace import Label
from tests.support.goldens import FOLDER

TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'system' and m['content'] == 'forbidden' %}"
    "{{ raise_exception('no such system') }}{% endif %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def byte_level(*extra_pieces):
    """A byte-level BPE as GPT-2's: one token a byte, then whole pieces, then an added and two special tokens."""
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *extra_pieces]
    core = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_tokens([AddedToken("<think>", special=False)])
    core.add_special_tokens(["<|end|>", "[PAD]"])
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|end|>", chat_template=TEMPLATE)


def sentencepiece():
    """A Llama-2 style BPE: ▁ for a space, <0xNN> where nothing else fits."""
    pieces = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "▁the", "▁▁▁▁", "a", "x▁y"]
    core = Tokenizer(
        models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[], byte_fallback=True, unk_token="<unk>")
    )
    core.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never", split=False)
    core.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    core.add_special_tokens(["<s>", "<unk>"])
    return PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>", unk_token="<unk>")


def label_of(tokenizer, piece):
    return Labeler(tokenizer).label(tokenizer.convert_tokens_to_ids(piece))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" the", "␣the"),
        ("    x", "␣×4x"),
        ("a b", "a␣b"),
        ("\n\n", "↵↵"),
        ("\t\r", "⇥␍"),
        ("\x00\x07\x7f", "⟨U+0000⟩⟨U+0007⟩⟨U+007F⟩"),
        ("\u200b\u202e\ufeff\u2066", "⟨U+200B⟩⟨U+202E⟩⟨U+FEFF⟩⟨U+2066⟩"),
        ("\u00a0\u3000\u2028", "⟨U+00A0⟩⟨U+3000⟩⟨U+2028⟩"),
        ("\ufffd", "⟨U+FFFD⟩"),
        ("\u0301", "◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("❤\ufe0f", "❤⟨U+FE0F⟩"),
        ("\ue000", "⟨U+E000⟩"),
        ("שלום", "שלום"),
        ("<b>&amp;", "<b>&amp;"),
        ("", ""),
    ],
)
def test_show_text(text, shown):
    assert show_text(text) == shown


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        ("Ġthe", Label("␣the", "text", "20746865")),
        ("Ċ", Label("↵", "space", "0a")),
        ("ĠĠĠĠ", Label("␣×4", "space", "20202020")),
        ("âĸ", Label("⟨E2 96⟩", "bytes", "e296")),
        ("Ġâ", Label("␣⟨E2⟩", "bytes", "20e2")),
        ("Ã©", Label("é", "text", "c3a9")),
        ("ï¿½", Label("⟨U+FFFD⟩", "text", "efbfbd")),
        ("<think>", Label("<think>", "text", "3c7468696e6b3e")),
        ("<|end|>", Label("‹|end|›", "special", "3c7c656e647c3e")),
        ("[PAD]", Label("‹[PAD]›", "special", "5b5041445d")),
    ],
)
def test_byte_level_labels(piece, expected):
    tokenizer = byte_level("Ġthe", "ĠĠĠĠ", "âĸ", "Ġâ", "Ã©", "ï¿½")
    assert label_of(tokenizer, piece) == expected


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        ("▁the", Label("␣the", "text", "20746865")),
        ("▁▁▁▁", Label("␣×4", "space", "20202020")),
        ("x▁y", Label("x␣y", "text", "782079")),
        ("<0x0A>", Label("↵", "space", "0a")),
        ("<0xE2>", Label("⟨E2⟩", "bytes", "e2")),
        ("<0x41>", Label("A", "text", "41")),
        ("<s>", Label("‹s›", "special", "3c733e")),
    ],
)
def test_sentencepiece_labels(piece, expected):
    assert label_of(sentencepiece(), piece) == expected


def test_an_id_beyond_the_tokenizer_shows_its_number():
    assert Labeler(byte_level()).label(50_000) == Label("‹50000›", "special")


@pytest.mark.parametrize("name", ["base_a", "base_b"])
def test_golden_tokenizers(name):
    tokenizer = AutoTokenizer.from_pretrained(FOLDER / name)
    labeler, special = Labeler(tokenizer), set(tokenizer.all_special_ids)
    for token in range(len(tokenizer)):
        label = labeler.label(token)
        text = tokenizer.decode([token], clean_up_tokenization_spaces=False)
        assert labeler.token_bytes(token).decode("utf-8", "replace") == text
        assert label.label and not set(label.label) & set("ĠĊĉ▁\ufffd ")
        assert show_text(label.label) == label.label  # nothing hidden is left
        assert (label.kind == "special") == (token in special)
        assert (label.kind == "bytes") == ("\ufffd" in text)


def test_labels_are_a_vocabulary():
    labeler = Labeler(sentencepiece())
    assert labeler.labels([3, 3, 4]) == {"3": labeler.label(3), "4": labeler.label(4)}


def test_the_template_writes_the_only_beginning_of_text():
    tokenizer = AutoTokenizer.from_pretrained(FOLDER / "base_a")
    prompt = render_prompt(tokenizer, "Hi", system="Be brief")
    assert prompt.rendered.startswith("<s><|im_start|>system\nBe brief<|im_end|>\n")
    assert prompt.rendered.endswith("<|im_start|>assistant\n")
    assert prompt.text == "Hi" and prompt.token_ids.count(1) == 1 and prompt.token_ids[0] == 1


def test_several_turns_in_order():
    turns = [
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "+1?"},
    ]
    prompt = render_prompt(byte_level(), turns, system="sums")
    assert prompt.rendered == "[system]sums[user]1+1?[assistant]2[user]+1?[assistant]"
    assert prompt.text == "+1?"


def test_without_a_template_the_tokenizer_adds_its_own_beginning():
    tokenizer = AutoTokenizer.from_pretrained(FOLDER / "base_a")
    prompt = render_prompt(tokenizer, "Hi", use_chat_template=False)
    assert prompt.rendered == "<s>Hi" and prompt.token_ids == tokenizer("Hi")["input_ids"]
    assert render_prompt(sentencepiece(), "a").rendered == "a"  # no template to apply


@pytest.mark.parametrize(
    ("prompt", "options", "says"),
    [
        ("", {}, "empty"),
        (" \n\t", {}, "empty"),
        ("\ud800", {}, "not valid text"),
        ("Hi", {"system": "caf\udce9"}, "not valid text"),
        ("Hi", {"system": "x", "use_chat_template": False}, "switched off"),
        ("Hi", {"system": "forbidden"}, "no such system"),
        ([{"role": "system", "content": "a"}, {"role": "user", "content": "b"}], {"system": "c"}, "two system prompts"),
        ([], {}, "at least one"),
        ([{"role": "user"}], {}, r"messages\[0\]"),
        ([{"role": "user", "content": 3}], {}, r"messages\[0\]"),
        ([{"role": "bot", "content": "x"}], {}, "'bot'.*system, user, assistant"),
        ([{"role": "user", "content": "x"}, {"role": "system", "content": "x"}], {}, "only first"),
        ([{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}], {}, "last message"),
        ([{"role": "system", "content": "x"}], {}, "last message"),
    ],
)
def test_bad_prompts_are_refused_in_a_sentence(prompt, options, says):
    with pytest.raises(PromptError, match=says):
        render_prompt(byte_level(), prompt, **options)


def test_a_missing_template_is_named():
    with pytest.raises(PromptError, match="does not exist for this target"):
        render_prompt(sentencepiece(), "a", system="b")


def test_messages_may_come_from_anywhere():
    for wrong in ({"role": "user", "content": "x"}, "text", None, 3):
        with pytest.raises(PromptError, match="must be a list"):
            check_messages(wrong)


def test_ids_pass_by_template_and_tokenizer():
    tokenizer = byte_level()
    ids = tokenizer("hi<|end|>", add_special_tokens=False)["input_ids"]
    prompt = prompt_from_ids(tokenizer, tuple(ids), vocab_size=1000)
    assert (prompt.text, prompt.rendered, prompt.token_ids) == ("hi", "hi<|end|>", ids)
    prompt_from_ids(tokenizer, [999], vocab_size=1000)  # a padded row of the vocabulary
    for wrong in ([], [-1], [1000], [10**20]):
        with pytest.raises(PromptError, match="0 to 999"):
            prompt_from_ids(tokenizer, wrong, vocab_size=1000)


def test_decode_leaves_special_tokens_out():
    tokenizer = byte_level()
    ids = tokenizer("a b<|end|>", add_special_tokens=False)["input_ids"]
    assert decode(tokenizer, ids) == "a b" and decode(tokenizer, ids, show_special=True) == "a b<|end|>"
