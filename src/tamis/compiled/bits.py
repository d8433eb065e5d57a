"""What a machine does with 64 entries, or the 64 bits of a word, at once.

Written as vectors to the compiler, which picks the instructions that the processor has.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

#: Words of a run: 8192 rows, of which the planes and level sets of a column and a pivot of ten
#: levels stay in the first cache.
RUN = 128

WORD = ir.IntType(64)
#: What the widest registers hold; the compiler cuts it where they are narrower.
EIGHT = ir.VectorType(WORD, 8)
NOTHING = ir.Constant(EIGHT, None)


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


def _met(n_rows: int) -> Any:
    """How many bits the words of a run share with each of some rows that follow each other."""

    def typed(typingctx: Any, rows: Any, first: Any, own: Any) -> Any:
        answer = types.UniTuple(types.uint64, n_rows)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            beside = context.make_array(signature.args[2])(context, builder, args[2]).data

            def eight(pointer: Any, offset: Any) -> Any:
                place = builder.bitcast(builder.gep(pointer, [offset]), EIGHT.as_pointer())
                return builder.load(place, align=8)

            count = _named(builder.module, "llvm.ctpop.v8i64", EIGHT)
            add = _named(builder.module, "llvm.vector.reduce.add.v8i64", WORD)
            begin, sums = builder.mul(args[1], ir.Constant(WORD, RUN)), [NOTHING] * n_rows
            for word in range(0, RUN, 8):
                mine = eight(beside, ir.Constant(WORD, word))
                for k in range(n_rows):
                    theirs = eight(data, builder.add(begin, ir.Constant(WORD, k * RUN + word)))
                    both = builder.call(count, [builder.and_(mine, theirs)])
                    sums[k] = builder.add(sums[k], both)
            return context.make_tuple(builder, answer, [builder.call(add, [one]) for one in sums])

        return answer(rows, types.intp, own), codegen

    return typed


def _named(module: Any, name: str, answer: Any) -> Any:
    """An operation on a vector of eight words that the compiler knows by a name."""
    known = module.globals.get(name)
    return known or ir.Function(module, ir.FunctionType(answer, [EIGHT]), name)


met_by_one: Any = intrinsic(_met(1))
met_by_three: Any = intrinsic(_met(3))
reached_bits: Any = intrinsic(_reached)
lowest_bit: Any = intrinsic(_trailing_zeros)
add_bits: Any = intrinsic(_add_bits)
