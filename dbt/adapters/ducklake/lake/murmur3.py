"""The standard Murmur3 hash, in Python and in Spark SQL."""

from __future__ import annotations

import struct

_MASK = 0xFFFFFFFF

# The constants of the algorithm: of the block step and of the finalizer.
_C1, _C2, _N = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_M1, _M2 = 0x85EBCA6B, 0xC2B2AE35

SPARK_SEED_ZERO = -1693959553
"""The integer that Spark's `hash`, which starts at seed 42, hashes to 0: further arguments start at seed 0."""


def murmur3(data: bytes) -> int:
    """Murmur3 x86 32-bit with seed 0, as a signed number."""
    hashed = 0
    whole_blocks = len(data) & ~3
    for (block,) in struct.iter_unpack("<I", data[:whole_blocks]):
        hashed = _rotate(hashed ^ _mix(block), 13) * 5 + _N & _MASK
    hashed ^= _mix(int.from_bytes(data[whole_blocks:], "little")) ^ len(data)
    hashed = (hashed ^ hashed >> 16) * _M1 & _MASK
    hashed = (hashed ^ hashed >> 13) * _M2 & _MASK
    return _signed(hashed ^ hashed >> 16)


def murmur3_bytes_sql(binary_sql: str) -> str:
    """The Spark SQL expression for `murmur3` of a binary expression, built from Spark's non-standard `hash`.

    Spark's `hash` differs from the standard only in the last bytes of a binary whose length is not a multiple of
    four. So the expression pads the binary with zeros to the next multiple of four, at least by one byte, and hashes
    it. Then it undoes the finalizer and the last step of the padded block. That leaves the state on which the standard
    does `^ length` and the finalizer. The expression applies the finalizer by another `hash`: of the one integer that
    leads to that state.

    SQL has no names for intermediate results, so each step uses the previous one as few times as possible. Shifts
    and multiplications use 64 bits, which never overflow here.
    """
    length = f"octet_length({binary_sql})"
    padded_length = f"(shiftright({length}, 2) * 4 + 4)"
    state = f"hash({SPARK_SEED_ZERO}, rpad({binary_sql}, {padded_length}, X'00'))"
    state = _undo_multiplication_sql(_xor_shifts_sql(state, 16), _M2)
    state = _undo_multiplication_sql(_xor_shifts_sql(state, 13, 26), _M1)
    state = f"(CAST({_xor_shifts_sql(state, 16)} ^ {padded_length} AS BIGINT) & {_MASK}L)"
    state = f"({_undo_block_step_sql(state)} ^ {length} ^ 4L)"
    block = f"({_signed_sql(f'({_undo_block_step_sql(state)} ^ 42L)')} * {_inverse(_C2)}L)"
    block = f"({_signed_sql(_rotate_sql(block, 17))} * {_inverse(_C1)}L)"
    return f"hash(CAST({_signed_sql(block)} AS INT))"


def _mix(block: int) -> int:
    return _rotate(block * _C1 & _MASK, 15) * _C2 & _MASK


def _rotate(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) & _MASK


def _signed(number: int) -> int:
    number &= _MASK
    return number - 2**32 if number >> 31 else number


def _inverse(factor: int) -> int:
    """The inverse of an odd factor modulo 2^32, as a signed number."""
    return _signed(pow(factor, -1, 2**32))


def _undo_block_step_sql(state: str) -> str:
    """Undoes `rotate(x, 13) * 5 + n`."""
    return _rotate_sql(f"(({state} - {_N}L) * {_inverse(5)}L)", 19)


def _xor_shifts_sql(number: str, *bits: int) -> str:
    return "(" + " ^ ".join([number, *(f"shiftrightunsigned({number}, {b})" for b in bits)]) + ")"


def _undo_multiplication_sql(number: str, factor: int) -> str:
    """Undoes the multiplication of an INT by the factor, modulo 2^32."""
    return f"CAST({_signed_sql(f'CAST({number} AS BIGINT) * {_inverse(factor)}L')} AS INT)"


def _signed_sql(number: str) -> str:
    """The low 32 bits of a BIGINT as a signed number."""
    return f"shiftright(shiftleft({number}, 32), 32)"


def _rotate_sql(number: str, bits: int) -> str:
    """The low 32 bits rotated left, as a multiplication modulo 2^32 - 1. The shift by one keeps all-ones bits."""
    return f"((({number} & {_MASK}L) * {2**bits}L - 1L) % {_MASK}L + 1L)"
