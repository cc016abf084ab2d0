"""Find unordered accesses: compare the last accesses to each byte with the vector clock of each warp.

clocks            vector clocks of warps, and of asynchronous work
synchronisation   the events that move them: barriers, mbarriers, fences, groups, strong accesses
shadow            keys of the last write and the last reads of each granule of bytes
memory            compares each access with clocks and shadow
products          registers of wgmma
reports           findings, once for each pair of instructions
"""
