"""Studies beyond the paper: what selection, diagnosis and learnt dynamics are worth. Each writes a table and a figure.

python -m studies.choosing gridworld --jobs 2 --out results
"""
