"""Every loop that numba compiles, one module a topic.

numba takes longer to load than most criteria run, so nothing above imports these modules at its
top: :mod:`tamis.compiled.thresholds`, which needs no numba, says from which size on a loop pays,
and the loop is imported where that size is met. What numpy would answer, a loop answers too.
"""
