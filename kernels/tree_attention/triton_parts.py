"""The two kernels of triton.py. A tile holds BLOCK_M queries: all rows, times the heads that share the keys it loads.

Tensors and constants come as tuples. Numbers that change from pass to pass stand alone, because only so can Triton be
told not to specialise on them: a growing prefix never compiles anew. Offsets are 64 bits wide: a slot times its stride
leaves 32.
"""

import triton
import triton.language as tl

MAX_PARTS = 32  # what one program of the merge holds
WORD_BITS = tl.constexpr(64)
_MAX_PARTS = tl.constexpr(MAX_PARTS)


@triton.jit
def _load(base, index, stride, slots, HOW: tl.constexpr, bound):
    """Keys or values [BLOCK_N, BLOCK_D] of the positions ``index``; those from ``bound`` on are zero."""
    DIM: tl.constexpr = HOW[1]
    BLOCK_D: tl.constexpr = HOW[2]
    HAS_SLOTS: tl.constexpr = HOW[6]
    UPCAST: tl.constexpr = HOW[9]
    inside = index < bound
    place = index.to(tl.int64)
    if HAS_SLOTS:
        place = tl.load(slots + place, mask=inside, other=0).to(tl.int64)
    columns = tl.arange(0, BLOCK_D)
    pointers = base + place[:, None] * stride + columns[None, :]
    block = tl.load(pointers, mask=inside[:, None] & (columns < DIM)[None, :], other=0.0)
    if UPCAST:
        block = block.to(tl.float32)
    return block


@triton.jit
def _fold(queries, keys, values, seen, state, HOW: tl.constexpr):
    """One block of keys into the running softmax (best score, sum of weights, weighted sum), base 2."""
    SCALE: tl.constexpr = HOW[10]
    best, total, summed = state
    scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * SCALE
    scores = tl.where(seen, scores, float("-inf"))
    new_best = tl.maximum(best, tl.max(scores, 1))
    shift = tl.where(new_best == float("-inf"), 0.0, new_best)  # nothing seen yet: no weight, and no nan
    weights = tl.exp2(scores - shift[:, None])
    rescale = tl.exp2(best - shift)
    total = total * rescale + tl.sum(weights, 1)
    summed = summed * rescale[:, None] + tl.dot(weights.to(values.dtype), values, input_precision="ieee")
    return new_best, total, summed


@triton.jit
def _prefix_part(prefix_len, BLOCK_N: tl.constexpr):
    """(first, end) of the prefix keys that this program reads, whole blocks but for the last part."""
    num_parts = tl.num_programs(1)
    size = tl.cdiv(tl.cdiv(prefix_len, num_parts), BLOCK_N) * BLOCK_N
    first = tl.minimum(tl.program_id(1) * size, prefix_len)
    return first, tl.minimum(first + size, prefix_len)


@triton.jit
def _seen_tail(words, columns, row, sizes, HOW: tl.constexpr):
    """[BLOCK_M, BLOCK_N]: which of the tail's keys ``columns`` each row may look at; its 64 bits stay in a register."""
    num_rows, num_tail = sizes
    HAS_WORDS: tl.constexpr = HOW[5]
    inside = (columns < num_tail)[None, :]
    if HAS_WORDS:
        num_words = tl.cdiv(num_tail, WORD_BITS)
        first = tl.min(columns, 0)
        word = tl.load(words + row * num_words + first // WORD_BITS, mask=row < num_rows, other=0)
        seen = (word[:, None] >> (columns % WORD_BITS).to(tl.int64)[None, :]) & 1
        return (seen != 0) & inside
    return (columns[None, :] <= (row + num_tail - num_rows)[:, None]) & inside


@triton.jit(do_not_specialize=["num_rows", "num_tail", "prefix_len"])
def attend_part(tensors, strides, num_rows, num_tail, prefix_len, HOW: tl.constexpr):
    """Grid: blocks of queries, parts of the prefix, key-value heads. The last part has the tail as well.

    tensors: query, key, value, mask words, slots, prefix length, [parts, rows, heads, dim] normalised sums, [parts,
    rows, heads] their log-sum-exp; with one part, the sums are the result. strides: of head and row, of query, key and
    value. HOW: group, dim, padded dim, block_m, block_n; flags: has words, has slots, has prefix length, is split,
    computes in float32; the scale of the scores, in base 2.
    """
    query, key, value, words, slots, prefix_at, output, weights = tensors
    query_head, query_row, key_head, key_row, value_head, value_row = strides
    GROUP: tl.constexpr = HOW[0]
    BLOCK_M: tl.constexpr = HOW[3]
    BLOCK_N: tl.constexpr = HOW[4]
    BLOCK_D: tl.constexpr = HOW[2]
    HAS_WORDS: tl.constexpr = HOW[5]
    HAS_PREFIX_LEN: tl.constexpr = HOW[7]
    if HAS_PREFIX_LEN:
        prefix_len = tl.load(prefix_at)
    kv_head = tl.program_id(2).to(tl.int64)
    index = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    row, head = index // GROUP, kv_head * GROUP + index % GROUP
    queries = _load_queries(query, head * query_head + row.to(tl.int64) * query_row, row < num_rows, HOW)
    key += kv_head * key_head
    value += kv_head * value_head
    best = tl.full([BLOCK_M], float("-inf"), tl.float32)
    state = (best, tl.zeros([BLOCK_M], tl.float32), tl.zeros([BLOCK_M, BLOCK_D], tl.float32))
    block = tl.arange(0, BLOCK_N)
    first, end = _prefix_part(prefix_len, BLOCK_N)
    for start in tl.range(first, end, BLOCK_N):
        at = start + block
        keys = _load(key, at, key_row, slots, HOW, end)
        values = _load(value, at, value_row, slots, HOW, end)
        state = _fold(queries, keys, values, (at < end)[None, :], state, HOW)
    tail_end = tl.where(tl.program_id(1) == tl.num_programs(1) - 1, num_tail, 0)
    if not HAS_WORDS:  # causal: nothing is seen beyond the block's last row
        tail_end = tl.minimum(tail_end, tl.max(row, 0) + 1 + num_tail - num_rows)
    for start in tl.range(0, tail_end, BLOCK_N):
        columns = start + block
        keys = _load(key, prefix_len + columns, key_row, slots, HOW, prefix_len + num_tail)
        values = _load(value, prefix_len + columns, value_row, slots, HOW, prefix_len + num_tail)
        seen = _seen_tail(words, columns, row, (num_rows, num_tail), HOW)
        state = _fold(queries, keys, values, seen, state, HOW)
    _store((output, weights), state, row, head, num_rows, HOW)


@triton.jit
def _load_queries(query, offsets, is_row, HOW: tl.constexpr):
    """[BLOCK_M, BLOCK_D], zero where there is no row and beyond the head size."""
    DIM: tl.constexpr = HOW[1]
    BLOCK_D: tl.constexpr = HOW[2]
    UPCAST: tl.constexpr = HOW[9]
    columns = tl.arange(0, BLOCK_D)
    mask = is_row[:, None] & (columns < DIM)[None, :]
    queries = tl.load(query + offsets[:, None] + columns[None, :], mask=mask, other=0.0)
    if UPCAST:
        queries = queries.to(tl.float32)
    return queries


@triton.jit
def _store(outputs, state, row, head, num_rows, HOW: tl.constexpr):
    """The part's normalised sum, and its log-sum-exp where there are several parts."""
    GROUP: tl.constexpr = HOW[0]
    DIM: tl.constexpr = HOW[1]
    BLOCK_D: tl.constexpr = HOW[2]
    IS_SPLIT: tl.constexpr = HOW[8]
    output, weights = outputs
    best, total, summed = state
    num_heads = tl.num_programs(2) * GROUP
    place = (tl.program_id(1).to(tl.int64) * num_rows + row) * num_heads + head
    columns = tl.arange(0, BLOCK_D)
    is_row = row < num_rows
    result = summed / tl.where(total > 0, total, 1.0)[:, None]
    mask = is_row[:, None] & (columns < DIM)[None, :]
    tl.store(output + place[:, None] * DIM + columns[None, :], result.to(output.dtype.element_ty), mask=mask)
    if IS_SPLIT:
        tl.store(weights + place, best + tl.log2(total), mask=is_row)


@triton.jit(do_not_specialize=["num_parts", "num_results"])
def merge_parts(parts, weights, output, num_parts, num_results, SHAPE: tl.constexpr):
    """One program a row and head: parts [parts, rows * heads, dim] weighted by their log-sum-exp, into [., dim].

    num_results: rows times heads. SHAPE: dim, padded dim.
    """
    DIM: tl.constexpr = SHAPE[0]
    BLOCK_D: tl.constexpr = SHAPE[1]
    result = tl.program_id(0).to(tl.int64)
    part, columns = tl.arange(0, _MAX_PARTS), tl.arange(0, BLOCK_D)
    place = part * num_results + result
    logs = tl.load(weights + place, mask=part < num_parts, other=float("-inf"))
    best = tl.max(logs, 0)
    shares = tl.exp2(logs - tl.where(best == float("-inf"), 0.0, best))
    mask = (part < num_parts)[:, None] & (columns < DIM)[None, :]
    sums = tl.load(parts + place[:, None] * DIM + columns[None, :], mask=mask, other=0.0)
    total = tl.sum(shares, 0)
    merged = tl.sum(sums * shares[:, None], 0) / tl.where(total > 0, total, 1.0)
    tl.store(output + result * DIM + columns, merged.to(output.dtype.element_ty), mask=columns < DIM)
