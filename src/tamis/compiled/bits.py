"""Vector operations on 64 entries, or on the 64 bits of a word.

The operations are written as LLVM vector code, which the compiler translates into the fastest
instructions that the CPU has.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _reached(typingctx: Any, row: Any, first: Any, cut: Any) -> Any:
    """Return a 64-bit word whose bit i is set if row[first + i] >= cut."""
    if row.layout != "C" or row.dtype not in types.number_domain:
        return None  # the entries are not contiguous

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
    """Return the LLVM instruction that converts numbers to double precision."""
    if isinstance(kind, types.Float):
        return ir.IRBuilder.fpext
    return ir.IRBuilder.sitofp if kind.signed else ir.IRBuilder.uitofp


def _repeated(builder: Any, value: Any, vector: Any) -> Any:
    """Return a vector in which all entries have the given value."""
    zero = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, zero)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), lanes)


def _add_bits(typingctx: Any, codes: Any, first: Any, word: Any, weight: Any) -> Any:
    """Add a weight to codes[first + i] for each bit i that is set in a 64-bit word.

    This takes a few vector instructions. A loop over the bits would take hundreds.
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
add_bits: Any = intrinsic(_add_bits)
