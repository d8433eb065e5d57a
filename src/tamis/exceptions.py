"""How tamis fails.

Every error is a sentence: who speaks, what was needed, what came, what to write instead. Each leaf
also inherits the built-in that a scikit-learn user already catches::

    TamisError
    ├── IncompatibleCriterion (TypeError)   search, criterion and choice do not fit together
    ├── InvalidParameter (ValueError)       a parameter outside what is possible
    ├── InvalidTarget (ValueError)          y is missing, or not what the criterion can use
    ├── InvalidScore (ValueError)           a criterion answered NaN
    ├── InvalidStep (ValueError)            a search that breaks its promises
    ├── InvalidSpec (ValueError)            an expression that cannot be read
    ├── InvalidTable (ValueError)           a file or table that cannot be used
    ├── NothingSelected (ValueError)        no feature passes the asked threshold
    ├── SingularScatter (ValueError)        a scatter matrix that cannot be inverted
    │   └── NothingToAdd                    every column left depends on those chosen
    ├── RecordMismatch (ValueError)         a record of other data or another search
    ├── NotEnoughMemory (MemoryError)       work that needs more memory than is free
    ├── PathTooLarge (ValueError)           a regularization path that cannot be held in memory
    ├── PathLost (ValueError)               a regularization path that cannot be begun
    ├── InvalidStore (ValueError)           a file that cannot keep the results of an experiment
    ├── ClusterLost (RuntimeError)          the machines of a cluster are gone
    │   └── ClusterUnreachable              no scheduler answers
    └── MissingExtra (ImportError)          an optional dependency is not installed

Warnings are for results that stand but deserve doubt::

    TamisWarning (UserWarning)
    ├── DegenerateData      columns or classes that carry no information
    ├── TableAlert          columns of a table that are left out, or may betray the target
    ├── TiedScores          equal scores, so that the lowest index decided
    ├── NothingGained       a walk on which a smaller subset was worth as much as the one kept
    ├── NotProvenOptimal    an exact search that ran out of budget
    ├── NotCertified        a path or a best C that could not be vouched for
    ├── NotConverged        a model whose training did not come to rest
    ├── SelectedOutside     a selection that saw the rows on which it is judged
    ├── UnlabelledRows      rows whose label was read as "none"
    ├── DeviceWarning       work that a device was asked for and that runs on the processor
    ├── LoopInstead         a tree model that is asked by altered copies of the rows
    ├── PiecesFailed        part of an experiment that could not be run
    └── DamagedRow          a row of a store that is not as it was written
"""


class TamisError(Exception):
    """Root of every error that tamis raises on purpose."""


class IncompatibleCriterion(TamisError, TypeError):
    """The search, the criterion and the choice do not fit together."""


class InvalidParameter(TamisError, ValueError):
    """A parameter has a value outside what is possible."""


class InvalidTarget(TamisError, ValueError):
    """The target is missing or is not of a kind that the criterion can use."""


class InvalidScore(TamisError, ValueError):
    """A criterion answered NaN where a score was asked."""


#: The first name of it, for those who catch it.
InvalidPrice = InvalidScore


class InvalidStep(TamisError, ValueError):
    """A search yields a step that contradicts itself or what the search promises."""


class InvalidSpec(TamisError, ValueError):
    """An expression cannot be read, or names something unknown."""


class InvalidTable(TamisError, ValueError):
    """A file or table cannot be used as data."""


class NothingSelected(TamisError, ValueError):
    """No feature passes the asked threshold."""


class SingularScatter(TamisError, ValueError):
    """A scatter matrix cannot be inverted."""


class NothingToAdd(SingularScatter):
    """Every column that is left depends on those chosen."""


class RecordMismatch(TamisError, ValueError):
    """A record belongs to other data or to another search."""


class NotEnoughMemory(TamisError, MemoryError):
    """Work needs more memory than is free."""


class PathTooLarge(TamisError, ValueError):
    """A regularization path needs more memory or time than is sensible."""


class PathLost(TamisError, ValueError):
    """A regularization path cannot be begun: its kernel is too inexact, or none."""


class InvalidStore(TamisError, ValueError):
    """A file cannot keep, or does not hold, the results of an experiment."""


class ClusterLost(TamisError, RuntimeError):
    """The machines of a cluster cannot be reached, or are gone."""


class ClusterUnreachable(ClusterLost):
    """No scheduler of a cluster answers."""


class MissingExtra(TamisError, ImportError):
    """An optional dependency is not installed."""


class TamisWarning(UserWarning):
    """Root of every warning: the result stands, but deserves doubt."""


class DegenerateData(TamisWarning):
    """Columns or classes that carry no information."""


class NothingFound(TamisWarning):
    """No column is kept, which is an answer: none can be told from chance."""


class TableAlert(TamisWarning):
    """Columns of a table are left out, or may betray the target."""


class TiedScores(TamisWarning):
    """Columns scored the same, and which of them is kept was decided by their index."""


class NothingGained(TamisWarning):
    """More columns are kept than a walk gained anything by."""


class NotProvenOptimal(TamisWarning):
    """An exact search ran out of budget; the remaining gap is reported."""


class NotCertified(TamisWarning):
    """A regularization path, or the best C on it, could not be vouched for."""


class NotConverged(TamisWarning):
    """The training of a model did not come to rest; the best that it found is used."""


class SelectedOutside(TamisWarning):
    """A selection was made with the rows on which it is judged, so it flatters."""


class DeviceWarning(TamisWarning):
    """A device was asked for what can only be computed on the processor."""


class LoopInstead(TamisWarning):
    """A tree model cannot be followed: altered copies of the rows are made, which takes longer."""


class UnlabelledRows(TamisWarning):
    """Rows that carry the label which stands for none, and train nothing."""


class PiecesFailed(TamisWarning):
    """A part of an experiment could not be run; the rest stands."""


class DamagedRow(TamisWarning):
    """A row of a store is not as it was written; its task is computed again."""
