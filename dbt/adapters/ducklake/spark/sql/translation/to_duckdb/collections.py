"""Functions on arrays and structs, from Spark to DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from .. import types as t
from ..expressions import Expression, Untranslatable
from .arithmetic import coerce, typed
from .words import quote, string


def array(elements: Sequence[Expression]) -> Expression:
    if not elements:
        raise Untranslatable("an array without elements")
    type_ = elements[0].type
    for element in elements[1:]:
        wider = t.widest(type_, element.type)
        if wider is None:
            raise Untranslatable("an array of elements of several types")
        type_ = wider
    has_null = any(element.type == t.NULL for element in elements)
    texts = [typed(coerce(element, type_)) for element in elements]
    return Expression(f"[{', '.join(texts)}]", ArrayType(type_, has_null))


def concat_arrays(arrays: Sequence[Expression]) -> Expression:
    """Returns arrays in a row; NULL if one of them is NULL."""
    first = arrays[0].type
    if any(not t.same_type(a.type, first) for a in arrays):
        raise Untranslatable("concat() of arrays of several types")
    missing = " OR ".join(f"{a.operand} IS NULL" for a in arrays)
    joined = arrays[0].sql
    for other in arrays[1:]:
        joined = f"list_concat({joined}, {other.sql})"
    return Expression(f"CASE WHEN {missing} THEN NULL ELSE {joined} END", first)


def size(value: Expression) -> Expression:
    if not isinstance(value.type, ArrayType):
        raise Untranslatable(f"size() of {value.type.simpleString()}")
    return Expression(f"CAST(len({value.sql}) AS INTEGER)", t.INT)


def get(value: Expression, index: Expression) -> Expression:
    """Returns an element counted from 0; NULL if there is none."""
    element_type, position = _element_type(value), _index(index)
    if index.is_constant and isinstance(index.constant, int) and index.constant >= 0:
        return Expression(f"{value.operand}[{index.constant + 1}]", element_type)
    return Expression(f"CASE WHEN {position} >= 0 THEN {value.operand}[{position} + 1] END", element_type)


def element(value: Expression, index: Expression) -> Expression:
    """Returns an element counted from 0; an error if there is none."""
    element_type, position = _element_type(value), _index(index)
    outside = f"{position} < 0 OR {position} >= len({value.sql})"
    if index.is_constant and isinstance(index.constant, int) and index.constant >= 0:
        outside = f"len({value.sql}) <= {index.constant}"
        position = str(index.constant)
        element_sql = f"{value.operand}[{index.constant + 1}]"
    else:
        element_sql = f"{value.operand}[{position} + 1]"
    return Expression(f"CASE WHEN {outside} THEN {_outside()} ELSE {element_sql} END", element_type)


def element_at(value: Expression, index: Expression) -> Expression:
    """Returns an element counted from 1, or from the end; an error if there is none."""
    element_type, position = _element_type(value), _index(index)
    outside = f"{position} = 0 OR abs({position}) > len({value.sql})"
    sql = f"CASE WHEN {outside} THEN {_outside()} ELSE {value.operand}[{position}] END"
    return Expression(sql, element_type)


def _outside() -> str:
    return f"error({string('The index is outside of the array')})"


def _element_type(value: Expression) -> DataType:
    if not isinstance(value.type, ArrayType):
        raise Untranslatable(f"an element of {value.type.simpleString()}")
    return value.type.elementType


def _index(index: Expression) -> str:
    if index.is_constant and isinstance(index.constant, int):
        return index.operand
    if index.type not in t.INTEGRAL_TYPES[:3]:
        raise Untranslatable("an index that is no integer")
    return index.operand


def named_struct(arguments: Sequence[Expression]) -> Expression:
    names, values = arguments[::2], arguments[1::2]
    if len(names) != len(values) or not names or not all(isinstance(name.constant, str) for name in names):
        raise Untranslatable("named_struct() with names that are no literals")
    if any(not t.is_atomic_type(value.type) for value in values):
        raise Untranslatable("named_struct() of values that are not simple")
    texts = [f"{quote(str(n.constant))}: {typed(v)}" for n, v in zip(names, values, strict=True)]
    fields = [StructField(str(n.constant), v.type, True) for n, v in zip(names, values, strict=True)]
    return Expression("{" + ", ".join(texts) + "}", StructType(fields))


def field(value: Expression, name: str) -> Expression:
    if not isinstance(value.type, StructType):
        raise Untranslatable(f"a field of {value.type.simpleString()}")
    found = [f for f in value.type.fields if f.name.lower() == name.lower()]
    if len(found) != 1:
        raise Untranslatable(f"the field {name}")
    return Expression(f"struct_extract({value.sql}, {string(found[0].name)})", found[0].dataType)


def array_join(value: Expression, delimiter: Expression) -> Expression:
    if not t.same_type(value.type, ArrayType(t.STRING)) or delimiter.type != t.STRING:
        raise Untranslatable("array_join() of something else than texts")
    missing = f"{value.operand} IS NULL OR {delimiter.operand} IS NULL"
    # DuckDB makes NULL of an array of NULLs.
    joined = f"coalesce(array_to_string({value.sql}, {delimiter.sql}), '')"
    return Expression(f"CASE WHEN {missing} THEN NULL ELSE {joined} END", t.STRING)


def sort_array(value: Expression, ascending: Expression | None = None) -> Expression:
    if not t.is_atomic_type(_element_type(value)):
        raise Untranslatable(f"sort_array() of {value.type.simpleString()}")
    is_ascending = ascending is None or ascending.constant
    if not isinstance(is_ascending, bool):
        raise Untranslatable("sort_array() in an order that is no literal")
    order = "'ASC', 'NULLS FIRST'" if is_ascending else "'DESC', 'NULLS LAST'"
    return Expression(f"list_sort({value.sql}, {order})", value.type)


def explode(value: Expression) -> Expression:
    return Expression(f"unnest({value.sql})", _element_type(value))


FUNCTIONS: Mapping[str, Callable[..., Expression]] = {
    "size": size,
    "cardinality": size,
    "array_size": size,
    "get": get,
    "element_at": element_at,
    "array_join": array_join,
    "sort_array": sort_array,
    "explode": explode,
}
