"""SVMs with squared losses, trained by Newton's method on the active samples."""

from tamis.svm.newton.estimators import NewtonSVC, NewtonSVR
from tamis.svm.newton.machine import NewtonMachine

__all__ = ["NewtonMachine", "NewtonSVC", "NewtonSVR"]
