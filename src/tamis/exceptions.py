"""Errors and warnings of tamis.

Every message names what was needed, what was given, and what to write instead. Each error also
inherits from the built-in exception that scikit-learn users catch::

    TamisError
    ├── IncompatibleCriterion (TypeError)   search, criterion and choice do not fit together
    ├── InvalidParameter (ValueError)       a parameter has a value that is not allowed
    ├── InvalidTarget (ValueError)          y is missing, or the criterion cannot use it
    ├── InvalidScore (ValueError)           a criterion returned NaN
    ├── InvalidStep (ValueError)            a search yielded an invalid step
    ├── InvalidSpec (ValueError)            an expression cannot be read
    ├── InvalidTable (ValueError)           a file or table cannot be used as data
    ├── NothingSelected (ValueError)        no feature passes the threshold
    ├── SingularScatter (ValueError)        a scatter matrix cannot be inverted
    │   └── NothingToAdd                    every other column depends on the selected ones
    ├── RecordMismatch (ValueError)         a record belongs to other data or another search
    ├── NotEnoughMemory (MemoryError)       a computation needs more memory than is free
    ├── PathTooLarge (ValueError)           a regularization path needs too much memory or time
    ├── PathLost (ValueError)               a regularization path cannot be started
    ├── InvalidStore (ValueError)           a file cannot store the results of an experiment
    ├── ClusterLost (RuntimeError)          the workers of a cluster are gone
    │   └── ClusterUnreachable              no scheduler answers
    └── MissingExtra (ImportError)          an optional dependency is not installed

Warnings mark results that are valid but doubtful::

    TamisWarning (UserWarning)
    ├── DegenerateData      columns or classes contain no information
    ├── NothingFound        no column is selected, because none is better than chance
    ├── TableAlert          columns of a table are left out, or may leak the target
    ├── TiedScores          several columns had the same score, and the lowest index was selected
    ├── NothingGained       a smaller subset was at least as good as the selected one
    ├── NotProvenOptimal    an exact search ran out of budget
    ├── NotCertified        a regularization path, or the best C on it, could not be certified
    ├── NotConverged        the training of a model did not converge
    ├── SelectedOutside     a selection used the rows on which it is evaluated
    ├── UnlabelledRows      rows have the label that means "unlabelled"
    ├── DeviceWarning       a computation runs on the CPU although a device was requested
    ├── LoopInstead         a tree model is evaluated on altered copies of the rows (slower)
    ├── CacheUnusable       compiled loops cannot be stored, so each process compiles them again
    ├── PiecesFailed        a part of an experiment could not be run
    └── DamagedRow          a row in a file of results is damaged
"""


class TamisError(Exception):
    """Base class of all errors of tamis. The message is a single line."""

    def __init__(self, *args: object):
        # scikit-learn wraps the representations of estimators
        super().__init__(*(_unwrap(arg) if isinstance(arg, str) else arg for arg in args))


def _unwrap(message: str) -> str:
    return " ".join(line.strip() for line in message.split("\n"))


class IncompatibleCriterion(TamisError, TypeError):
    """The search, the criterion and the choice do not fit together."""


class InvalidParameter(TamisError, ValueError):
    """A parameter has a value that is not allowed."""


class InvalidTarget(TamisError, ValueError):
    """The target is missing or is not of a kind that the criterion can use."""


class InvalidScore(TamisError, ValueError):
    """A criterion returned NaN instead of a score."""


#: Former name of InvalidScore.
InvalidPrice = InvalidScore


class InvalidStep(TamisError, ValueError):
    """A search yields an invalid step, or one that contradicts its class attributes."""


class InvalidSpec(TamisError, ValueError):
    """An expression cannot be read, or names something unknown."""


class InvalidTable(TamisError, ValueError):
    """A file or table cannot be used as data."""


class NothingSelected(TamisError, ValueError):
    """No feature passes the threshold."""


class SingularScatter(TamisError, ValueError):
    """A scatter matrix cannot be inverted."""


class NothingToAdd(SingularScatter):
    """Every column that could be added depends linearly on the selected columns."""


class RecordMismatch(TamisError, ValueError):
    """A record belongs to different data or to a different search."""


class NotEnoughMemory(TamisError, MemoryError):
    """A computation needs more memory than is free."""


class PathTooLarge(TamisError, ValueError):
    """A regularization path would need too much memory or time."""


class PathLost(TamisError, ValueError):
    """A regularization path cannot be started, because its kernel is inexact or invalid."""


class InvalidStore(TamisError, ValueError):
    """A file does not contain the results of an experiment, or cannot store them."""


class ClusterLost(TamisError, RuntimeError):
    """The workers of a cluster cannot be reached, or are gone."""


class ClusterUnreachable(ClusterLost):
    """No scheduler of a cluster answers."""


class MissingExtra(TamisError, ImportError):
    """An optional dependency is not installed."""


class TamisWarning(UserWarning):
    """Base class of all warnings of tamis: the result is valid but doubtful."""


class DegenerateData(TamisWarning):
    """Columns or classes contain no information."""


class NothingFound(TamisWarning):
    """No column is selected, because none is better than chance."""


class TableAlert(TamisWarning):
    """Columns of a table are left out, or may leak the target."""


class TiedScores(TamisWarning):
    """Columns had the same score, and the one with the lowest index was selected."""


class NothingGained(TamisWarning):
    """A smaller subset was at least as good as the selected one."""


class NotProvenOptimal(TamisWarning):
    """An exact search ran out of budget. The message states how much better the optimum can be."""


class NotCertified(TamisWarning):
    """A regularization path, or the best C on it, could not be certified."""


class NotConverged(TamisWarning):
    """The training of a model did not converge. The best result so far is used."""


class SelectedOutside(TamisWarning):
    """A selection used the rows on which it is evaluated, so its score is optimistic."""


class DeviceWarning(TamisWarning):
    """A computation runs on the CPU although a GPU or other device was requested."""


class LoopInstead(TamisWarning):
    """A tree model is evaluated on altered copies of the rows, which takes longer."""


class CacheUnusable(TamisWarning):
    """Compiled loops cannot be stored on disk, so each process compiles them again."""


class UnlabelledRows(TamisWarning):
    """Rows have the label that means "unlabelled", and are not used for training."""


class PiecesFailed(TamisWarning):
    """A part of an experiment could not be run. The other results are valid."""


class DamagedRow(TamisWarning):
    """A row in a file of results is damaged. Its task is computed again."""
