"""Machines of squared losses with any kernel, by Newton's method on the active samples."""

from tamis.svm.newton.classification import NewtonSVC
from tamis.svm.newton.machine import NewtonMachine
from tamis.svm.newton.regression import NewtonSVR

__all__ = ["NewtonMachine", "NewtonSVC", "NewtonSVR"]
