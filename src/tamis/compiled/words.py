"""What a machine does with 64 entries, or the 64 bits of a word, at once.

Written as vectors to the compiler, which picks the instructions that the processor has.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _reached(typingctx: Any, row: Any, first: Any, cut: Any) -> Any:
    """Bit i: whether row[first + i] reaches the cut, for 64 entries that follow each other.

    To the compiler these are a vector and its comparison a word.
    """
    if row.layout != "C" or row.dtype not in types.number_domain:
        return None  # entries that do not follow each other

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0].dtype
        numbers = ir.VectorType(ir.DoubleType(), 64)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        stored = ir.VectorType(context.get_value_type(kind), 64)
        place = builder.bitcast(builder.gep(data, [args[1]]), stored.as_pointer())
        entries = builder.load(place, align=kind.bitwidth // 8)
        if kind != types.float64:
            entries = _widened(kind)(builder, entries, numbers)
        cuts = _repeated(builder, args[2], numbers)
        return builder.bitcast(builder.fcmp_ordered(">=", entries, cuts), ir.IntType(64))

    return types.uint64(row, types.intp, types.float64), codegen


def _widened(kind: Any) -> Any:
    """How entries become double precision."""
    if isinstance(kind, types.Float):
        return ir.IRBuilder.fpext
    return ir.IRBuilder.sitofp if kind.signed else ir.IRBuilder.uitofp


def _repeated(builder: Any, value: Any, vector: Any) -> Any:
    """A vector of one value."""
    zero = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, zero)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), lanes)


def _trailing_zeros(typingctx: Any, word: Any) -> Any:
    """Where the lowest bit of a word stands, which is not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


def _add_bits(typingctx: Any, codes: Any, first: Any, word: Any, weight: Any) -> Any:
    """Add a weight to those of 64 codes, from the first on, whose bit is set in a word.

    A word is a vector of 64 bits to the compiler, which takes a few instructions here and hundreds
    where each bit is shifted by itself.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes, bits = (ir.VectorType(ir.IntType(n), 64) for n in (16, 1))
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), lanes.as_pointer())
        is_set, weights = builder.bitcast(args[2], bits), _repeated(builder, args[3], lanes)
        added = builder.select(is_set, weights, ir.Constant(lanes, None))
        found = builder.add(builder.load(place, align=2), added)
        builder.store(found, place, align=2)
        return context.get_dummy_value()

    return types.void(codes, types.intp, types.uint64, types.uint16), codegen


reached_bits: Any = intrinsic(_reached)
lowest_bit: Any = intrinsic(_trailing_zeros)
add_bits: Any = intrinsic(_add_bits)
