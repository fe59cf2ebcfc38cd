"""Changes of a module for `mutate.py`: mutants, and a module that notes its lines."""

import ast
import copy
import itertools

# What replaces what, in both directions.
_PAIRS = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq)]
_PAIRS += [(ast.Is, ast.IsNot), (ast.In, ast.NotIn), (ast.And, ast.Or)]
_PAIRS += [(ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr)]
_PAIRS += [("reduce_sum", "reduce_max"), ("reduce_any", "reduce_all"), ("min", "max")]
_PAIRS += [("minimum", "maximum"), ("equal", "not_equal"), ("any", "all")]
_PAIRS += [("ones_like", "zeros_like"), ("cumsum", "cumprod")]
OTHER = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
# In one direction.
OTHER |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult}
OTHER |= {"reduce_min": "reduce_max", "divide_no_nan": "multiply"}

NEGATIONS = (ast.Not, ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
TEXTS = {"__repr__", "__str__", "rule", "listed", "shortened", "did_you_mean"}


def changes(node):
    """The small changes of a node, as new nodes."""

    def with_(**fields):
        new = copy.copy(node)
        for field, value in fields.items():
            setattr(new, field, value)
        return new

    match node:
        case ast.Constant(value=bool(value)):
            yield with_(value=not value)
        case ast.Constant(value=int() | float() as value):
            yield with_(value=value + 1)
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                if type(op) in OTHER:
                    yield with_(ops=[*ops[:i], OTHER[type(op)](), *ops[i + 1 :]])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OTHER:
            yield with_(op=OTHER[type(op)]())
        case ast.AugAssign(op=op):
            yield with_(op=OTHER[type(op)]())
            yield ast.Pass()
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
            yield operand
        case ast.Name(id=name, ctx=ast.Load()) if name in OTHER:
            yield with_(id=OTHER[name])
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in OTHER:
            yield with_(attr=OTHER[name])
        case ast.Call(
            func=ast.Attribute(attr="where") | ast.Name(id="select"), args=[a, b, c]
        ):
            yield with_(args=[a, c, b])
        case ast.If(test=test) | ast.IfExp(test=test):
            ops = getattr(test, "ops", [getattr(test, "op", None)])
            if not isinstance(ops[0], NEGATIONS):  # else the test itself is negated
                yield with_(test=ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=[test]):
            yield with_(ifs=[ast.UnaryOp(ast.Not(), test)])
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Continue():
            yield ast.Pass()


class _Change(ast.NodeTransformer):
    """Makes one change: the one with this number."""

    def __init__(self, number):
        self.left = number
        self.statement = self.before = self.after = None

    def visit(self, node):
        if _is_text(node):
            return node
        outer = self.statement
        if isinstance(node, ast.stmt):
            self.statement = node
        for new in changes(node):
            self.left -= 1
            if self.left == -1:
                self.before, self.after = node, new
                self.lines = _lines(self.statement)
                return ast.copy_location(new, node)
        if isinstance(node, ast.AnnAssign):
            node.value = node.value and self.visit(node.value)
        elif not isinstance(node, (ast.Raise, ast.arg)):  # errors, and annotations
            returns = node.__dict__.pop("returns", None)
            self.generic_visit(node)
            if isinstance(node, ast.FunctionDef):
                node.returns = returns
        self.statement = outer
        return node


def _is_text(node):
    """Whether a node is for people or for type checkers."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    is_text = isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom))
    return is_text or getattr(node, "name", None) in TEXTS


def _lines(statement):
    """The lines of a statement, without those of the statements inside it."""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) else statement.end_lineno
    return range(statement.lineno, max(statement.lineno, last) + 1)


class Mutant:
    """A module with one of its changes: the one with this number."""

    def __init__(self, package, path, number):
        change, self._tree = _Change(number), ast.parse(path.read_text("utf-8"))
        change.visit(self._tree)
        self.path, self.module = path, str(path.relative_to(package))
        self.lines = {f"{self.module}:{line}" for line in change.lines}
        before, after = (
            ast.unparse(each).partition("\n")[0][:70]
            for each in (change.before, change.after)
        )
        at = getattr(change.before, "lineno", change.lines[0])
        column = getattr(change.before, "col_offset", 0)
        self.name = f"{self.module}:{at}:{column}  {before}  ->  {after}"

    def code(self):
        """The module, compiled."""
        return compile(ast.fix_missing_locations(self._tree), str(self.path), "exec")


def count(path):
    """How many changes of a module there are."""
    change = _Change(10**9)
    change.visit(ast.parse(path.read_text("utf-8")))
    return 10**9 - change.left


def noting_lines(package, path):
    """A module that calls `note_line` before each statement of a function, compiled."""
    module, tree = path.relative_to(package), ast.parse(path.read_text("utf-8"))

    def noted(statement):
        if isinstance(getattr(statement, "value", None), ast.Constant):
            return [statement]  # a docstring must stay the first statement
        line = ast.Constant(f"{module}:{statement.lineno}")
        call = ast.Call(ast.Name("note_line", ast.Load()), [line], [])
        return [ast.copy_location(ast.Expr(call), statement), statement]

    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    for node in {node for function in functions for node in ast.walk(function)}:
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                setattr(node, field, [*itertools.chain(*map(noted, body))])
    return compile(ast.fix_missing_locations(tree), str(path), "exec")
