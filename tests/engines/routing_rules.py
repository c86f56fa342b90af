"""What a sharded PostgreSQL (Citus) accepts, judged on the parse tree of a statement.

A column that a table is distributed by is followed through the statement: equal to a value, to another table's, or
neither. `Verdict.reach` says what that makes of the statement:

    none      no distributed table is in it
    one       every distributed table in it is bound to the same value: it is sent on to one worker
    all       it asks all workers, each about its own part: the tables in it are bound to each other

Anything else is a fault, as is what no such server takes: volatile functions beside distributed tables, changes that
give a column to a stable one (the coordinator computes it before it knows the row), keys without
the distribution column, foreign keys, sequences, locks, recursive queries, savepoints, changed distribution columns,
outer joins that keep the rows of a table which every worker has, and windows over all workers. So is the size of a
table as a plain server tells it: on the coordinator a distributed table is an empty shell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pglast
from pglast import parse_sql
from pglast.enums import BoolExprType, ConstrType, JoinType, SetOperation

ast: Any = pglast.ast  # its types make everything optional
Item = tuple[Any, ...]
"""A value or a column: ("value", "$1"), ("column", 3, "root")."""

PLAIN = (
    "TransactionStmt", "ListenStmt", "VacuumStmt", "ReindexStmt", "DropStmt",
)  # fmt: skip
ROW_CONSTRAINTS = (ConstrType.CONSTR_NOTNULL, ConstrType.CONSTR_PRIMARY, ConstrType.CONSTR_UNIQUE)
SIZES = {"pg_total_relation_size", "pg_relation_size", "pg_table_size", "pg_indexes_size"}
SETTINGS = {"enable_seqscan", "idle_in_transaction_session_timeout", "lock_timeout"}


class Fault(AssertionError):
    """A statement that a sharded server refuses, or cannot pass to a worker."""


class Verdict:
    """What one statement does to the tables of a sharded server."""

    def __init__(
        self,
        statement: str,
        places: dict[str, tuple[str | None, int]],
        columns: dict[str, set[str]],
        volatility: Callable[[str], str],
    ) -> None:
        """`places`: for each table its distribution column, None where it is on every worker, and what it lives with;
        `columns`: of each table; `volatility`: of a function, the worst of its name, `v`, `s` or `i`."""
        self._statement, self._places, self._columns = statement, places, columns
        self._parents: dict[Item, Item] = {}
        self._found: list[tuple[str, Item]] = []
        self._count = 0
        self.is_change = False
        [raw] = parse_sql(statement)
        self.node: Any = raw.stmt
        self._judge()
        self.reach = self._reach()
        for name in functions(self.node):
            self._refuse_if(name in SIZES, f"{name}() sees an empty table")
            self._refuse_if(bool(self._found) and volatility(name) == "v", f"{name}() is volatile")
        for name in functions_of_columns(self.node) if self.is_change and self._found else ():
            self._refuse_if(volatility(name) == "s", f"{name}() is stable, and a change gives it a column")
        is_window = any(isinstance(each, ast.FuncCall) and each.over is not None for each in walk(self.node))
        self._refuse_if(self.reach == "all" and is_window, "a window over all workers")

    def _refuse_if(self, is_so: bool, why: str) -> None:
        if is_so:
            raise Fault(f"{why}: {self._statement}")

    def _judge(self) -> None:
        kind = type(self.node).__name__
        for each in walk(self.node):
            name = type(each).__name__
            self._refuse_if(name == "LockingClause", "it locks rows")
            self._refuse_if(name == "WithClause" and each.recursive, "it is recursive")
        for each in parameters_without_type(self.node):
            self._refuse_if(True, f"${each.number} has no type")
        match kind:
            case "SelectStmt" | "InsertStmt" | "UpdateStmt" | "DeleteStmt":
                self._query(self.node, {})
            case "CreateStmt":
                self._table()
            case "IndexStmt":
                column = self._places.get(self.node.relation.relname, (None, 0))[0]
                is_apart = column is not None and column not in [each.name for each in self.node.indexParams]
                self._refuse_if(self.node.unique and is_apart, "unique, and not of one shard")
                self._refuse_if(self.node.whereClause is not None, "a partial index")
            case "VariableSetStmt":
                self._refuse_if(self.node.name not in SETTINGS, f"it sets {self.node.name}")
            case _:
                self._refuse_if(kind not in PLAIN, f"a {kind}")
                self._refuse_if(bool(getattr(self.node, "savepoint_name", None)), "a savepoint")

    def _table(self) -> None:
        table = self.node.relation.relname
        self._refuse_if(table not in self._places, "nobody says where its rows are")
        self._refuse_if(self.node.partspec is not None or bool(self.node.inhRelations), "parts of a table")
        column = self._places[table][0]
        for each in walk(self.node):
            if type(each).__name__ == "Constraint":
                self._refuse_if(each.contype not in ROW_CONSTRAINTS, f"a constraint ({each.contype.name})")
                is_apart = column is not None and column not in [key.sval for key in each.keys or ()]
                self._refuse_if(each.keys is not None and is_apart, "a key without the shard")
                self._refuse_if(
                    each.contype != ConstrType.CONSTR_NOTNULL and each.keys is None and is_apart, "a key of one column"
                )
            elif type(each).__name__ == "TypeName":
                self._refuse_if(each.names[-1].sval.endswith("serial"), "a sequence")

    # Where columns get their values from

    def _find(self, item: Item) -> Item:
        while (above := self._parents.get(item, item)) != item:
            item = above
        return item

    def _join(self, a: Item | None, b: Item | None) -> None:
        if a is None or b is None:
            return
        a, b = self._find(a), self._find(b)
        if a[0] == "value":  # a value stays the root
            a, b = b, a
        if a != b and a[0] != "value":
            self._parents[a] = b

    def _reach(self) -> str:
        spread = [(self._places[table], self._find(item)) for table, item in self._found]
        if not spread:
            return "none"
        self._refuse_if(len({group for (_, group), _ in spread}) > 1, "tables that do not live together")
        self._refuse_if(len({item for _, item in spread}) > 1, "tables that are not bound to each other")
        if spread[0][1][0] == "value":
            return "one"
        self._refuse_if(type(self.node).__name__ in ("InsertStmt", "UpdateStmt"), "a change of all shards")
        return "all"

    def _occurs(self, table: str, scope: int) -> None:
        column = self._places.get(table, (None, 0))[0]
        if column is not None:
            self._found.append((table, ("column", scope, column)))

    def _query(self, node: Any, names: dict[str, Any]) -> dict[str, Item | None]:
        """Visits a query with the names in scope, and returns where its own columns come from."""
        names = dict(names)
        for cte in node.withClause.ctes if node.withClause is not None else ():
            self._count += 1
            names[cte.ctename] = ("derived", self._count, self._derived(cte.ctequery, names))
        match type(node).__name__:
            case "SelectStmt":
                return self._select(node, names)
            case "InsertStmt":
                return self._insert(node, names)
            case _:
                return self._change(node, names)

    def _derived(self, node: Any, names: dict[str, Any]) -> int:
        given = self._query(node, names)
        self._count += 1
        for column, item in given.items():
            self._join(("column", self._count, column), item)
        return self._count

    def _select(self, node: Any, names: dict[str, Any]) -> dict[str, Item | None]:
        if node.op != SetOperation.SETOP_NONE:
            for side in (node.larg, node.rarg):
                self._query(side, names)
            return {}
        if node.valuesLists:
            return {str(at): self._item(each, names, []) for at, each in enumerate(node.valuesLists[0])}
        scope: list[tuple[str, int, str]] = []
        for each in node.fromClause or ():
            self._from(each, names, scope)
        self._within([node.whereClause, node.havingClause], names, scope)
        out: dict[str, Item | None] = {}
        for at, target in enumerate(node.targetList or ()):
            self._within([target.val], names, scope)
            item = self._item(target.val, names, scope)
            name = target.name or (item[2] if item is not None and item[0] == "column" else str(at))
            out[name if name not in out else str(at)] = item
        return out

    def _from(self, node: Any, names: dict[str, Any], scope: list[tuple[str, int, str]]) -> None:
        match type(node).__name__:
            case "RangeVar":
                alias = node.alias.aliasname if node.alias is not None else node.relname
                known = names.get(node.relname)
                if isinstance(known, tuple) and known[0] == "derived":
                    scope.append((alias, known[2], ""))
                else:
                    self._count += 1
                    scope.append((alias, self._count, node.relname))
                    self._occurs(node.relname, self._count)
                names[alias] = ("scope", scope[-1][1])
            case "RangeSubselect":
                inner = self._derived(node.subquery, names)
                scope.append((node.alias.aliasname, inner, ""))
                names[node.alias.aliasname] = ("scope", inner)
            case "JoinExpr":
                before = len(self._found)
                self._from(node.larg, names, scope)
                between = len(self._found)
                self._from(node.rarg, names, scope)
                is_right_spread = len(self._found) > between
                is_whole = node.jointype == JoinType.JOIN_LEFT and between == before and is_right_spread
                self._refuse_if(is_whole and self._is_everywhere(node.larg), "rows that every worker has are kept")
                self._within([node.quals], names, scope)
            case "RangeFunction":
                self._count += 1
                if node.alias is not None:
                    names[node.alias.aliasname] = ("scope", self._count)
            case other:
                raise Fault(f"{other} in from: {self._statement}")

    def _is_everywhere(self, node: Any) -> bool:
        """Whether it is a table that every worker has."""
        return isinstance(node, ast.RangeVar) and self._places.get(node.relname, ("", 0))[0] is None

    def _within(self, conditions: list[Any], names: dict[str, Any], scope: list[tuple[str, int, str]]) -> None:
        """Collects equalities that must hold, and visits the queries inside conditions."""
        for condition in conditions:
            for each in conjuncts(condition):
                if isinstance(each, ast.A_Expr) and each.name and each.name[-1].sval == "=" and each.kind == 0:
                    self._join(self._item(each.lexpr, names, scope), self._item(each.rexpr, names, scope))
            for link in sublinks(condition):
                self._query(link.subselect, names)

    def _item(self, node: Any, names: dict[str, Any], scope: list[tuple[str, int, str]]) -> Item | None:
        while isinstance(node, ast.TypeCast):
            node = node.arg
        if isinstance(node, ast.ParamRef):
            return ("value", f"${node.number}")
        if isinstance(node, ast.A_Const):
            return ("value", repr(node.val))
        if not isinstance(node, ast.ColumnRef) or not hasattr(node.fields[-1], "sval"):
            return None
        column = node.fields[-1].sval
        if len(node.fields) == 2:
            known = names.get(node.fields[0].sval)
            return ("column", known[1], column) if known is not None and known[0] == "scope" else None
        holders = [(number, table) for _, number, table in scope if not table or column in self._columns.get(table, ())]
        return ("column", holders[0][0], column) if len(holders) == 1 else None

    def _insert(self, node: Any, names: dict[str, Any]) -> dict[str, Item | None]:
        self.is_change = True
        table = node.relation.relname
        given = list(self._query(node.selectStmt, names).values())
        columns = [target.name for target in node.cols or ()]
        self._count += 1
        key = self._places.get(table, (None, 0))[0]
        if key is not None:
            self._refuse_if(len(given) != len(columns), "its columns are not told")
            self._refuse_if(len(node.selectStmt.valuesLists or ()) > 1, "rows of several shards")
            self._refuse_if(key not in columns or given[columns.index(key)] is None, "its shard is computed")
            self._found.append((table, ("column", self._count, key)))
            self._join(("column", self._count, key), given[columns.index(key)])
            if node.onConflictClause is not None:
                target = node.onConflictClause.infer
                is_told = target is not None and key in [each.name for each in target.indexElems]
                self._refuse_if(not is_told, "a conflict beyond a shard")
                self._unchanged(node.onConflictClause.targetList, key)
        told = node.returningClause.exprs if node.returningClause is not None else ()
        columns = [each.val.fields[-1].sval for each in told if isinstance(each.val, ast.ColumnRef)]
        return {column: ("column", self._count, column) for column in columns}

    def _change(self, node: Any, names: dict[str, Any]) -> dict[str, Item | None]:
        self.is_change = True
        scope: list[tuple[str, int, str]] = []
        self._from(node.relation, names, scope)
        key = self._places.get(node.relation.relname, (None, 0))[0]
        if key is not None and isinstance(node, ast.UpdateStmt):
            self._unchanged(node.targetList, key)
        self._within([node.whereClause], names, scope)
        return {}

    def _unchanged(self, targets: Any, key: str) -> None:
        self._refuse_if(key in [target.name for target in targets or ()], "it changes where a row lives")


def conjuncts(node: Any) -> Iterator[Any]:
    if isinstance(node, ast.BoolExpr) and node.boolop == BoolExprType.AND_EXPR:
        for each in node.args:
            yield from conjuncts(each)
    elif node is not None:
        yield node


def walk(node: Any) -> Iterator[Any]:
    """A node and all its descendants."""
    if isinstance(node, (tuple, list)):
        for each in node:
            yield from walk(each)
    elif isinstance(node, ast.Node):
        yield node
        for name in node:
            yield from walk(getattr(node, name))


def sublinks(node: Any) -> Iterator[Any]:
    """The queries directly inside a condition."""
    if isinstance(node, (tuple, list)):
        for each in node:
            yield from sublinks(each)
    elif isinstance(node, ast.SubLink):
        yield node
    elif isinstance(node, ast.Node):
        for name in node:
            yield from sublinks(getattr(node, name))


def functions(node: Any) -> set[str]:
    return {each.funcname[-1].sval for each in walk(node) if isinstance(each, ast.FuncCall)}


def functions_of_columns(node: Any) -> set[str]:
    """The functions that are given a column."""
    calls = [each for each in walk(node) if isinstance(each, ast.FuncCall)]
    return {
        each.funcname[-1].sval for each in calls if any(isinstance(inner, ast.ColumnRef) for inner in walk(each.args))
    }


def parameters_without_type(node: Any) -> list[Any]:
    typed = {id(each.arg) for each in walk(node) if isinstance(each, ast.TypeCast)}
    return [each for each in walk(node) if isinstance(each, ast.ParamRef) and id(each) not in typed]
