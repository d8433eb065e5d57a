"""Vector operations on 64 entries, or on the 64 bits of a word.

The operations are written as LLVM vector code, which the compiler translates into the fastest
instructions that the CPU has.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

#: Number of 64-bit words in a run of 8192 rows. A run is short enough for the L1 cache to hold the
#: bit planes and level sets of two columns, one of them with ten levels.
RUN = 128

WORD = ir.IntType(64)
#: Vector of eight words, which fills the widest registers. For narrower registers, the compiler
#: splits the vector.
EIGHT = ir.VectorType(WORD, 8)
NOTHING = ir.Constant(EIGHT, None)


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


def _trailing_zeros(typingctx: Any, word: Any) -> Any:
    """Return the position of the lowest set bit of a word that is not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


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


def _met(n_rows: int) -> Any:
    """Return an intrinsic that compares a bit set with each of ``n_rows`` other bit sets.

    It counts the bits that are set in both. Each bit set covers the rows of one run.
    """

    def typed(typingctx: Any, rows: Any, first: Any, own: Any) -> Any:
        answer = types.UniTuple(types.uint64, n_rows)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            own_data = context.make_array(signature.args[2])(context, builder, args[2]).data

            def eight(pointer: Any, offset: Any) -> Any:
                place = builder.bitcast(builder.gep(pointer, [offset]), EIGHT.as_pointer())
                return builder.load(place, align=8)

            count = _named(builder.module, "llvm.ctpop.v8i64", EIGHT)
            add = _named(builder.module, "llvm.vector.reduce.add.v8i64", WORD)
            begin, sums = builder.mul(args[1], ir.Constant(WORD, RUN)), [NOTHING] * n_rows
            for word in range(0, RUN, 8):
                mine = eight(own_data, ir.Constant(WORD, word))
                for k in range(n_rows):
                    theirs = eight(data, builder.add(begin, ir.Constant(WORD, k * RUN + word)))
                    both = builder.call(count, [builder.and_(mine, theirs)])
                    sums[k] = builder.add(sums[k], both)
            return context.make_tuple(builder, answer, [builder.call(add, [one]) for one in sums])

        return answer(rows, types.intp, own), codegen

    return typed


def _named(module: Any, name: str, answer: Any) -> Any:
    """Return the LLVM intrinsic with this name, which takes a vector of eight words."""
    known = module.globals.get(name)
    return known or ir.Function(module, ir.FunctionType(answer, [EIGHT]), name)


met_by_one: Any = intrinsic(_met(1))
met_by_three: Any = intrinsic(_met(3))
reached_bits: Any = intrinsic(_reached)
lowest_bit: Any = intrinsic(_trailing_zeros)
add_bits: Any = intrinsic(_add_bits)
