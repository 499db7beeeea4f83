"""TPC-C's database and two of its transactions, payment and new-order.

Source: TPC Benchmark C, revision 5.11; clauses are cited where a number comes from one.
"""
