"""Find unordered accesses: compare the last accesses to each byte with the clocks of each warp.

clocks            vector clocks of warps, and of asynchronous work
synchronisation   the events that move them: barriers, mbarriers, fences, groups, strong accesses
shadow            of each few bytes, keys of the last write and the last reads
memory            each access against both
products          registers of wgmma
reports           findings, once for each pair of instructions
"""
