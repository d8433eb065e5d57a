"""Changes of Gaussian kernels when a column is removed or added, for all columns at once.

Removing or adding a column x multiplies the kernel by exp(±γ (x - x')²). In units z = √(2γ) x,
centred on the middle of the column's range, and with s = 1 for removing and s = -1 for adding,

    exp(s (z - z')² / 2) - 1 = v + v' + v v' + Σ_k (-s)^k / k! w_k w_k',   k = 1, 2, ...,
    v = expm1(s z² / 2),  w_k = (1 + v) z^k,

is a short sum if the column's range is small compared with the width of the kernel. Each term
becomes a matrix product for many columns. All terms are as small as the change itself, so no digits
are lost. Steep columns, which need too many terms, are computed elementwise, one at a time.

Arrays may be of any library with the array API. Only a strip of rows of a kernel matrix is in
memory at a time.
"""
