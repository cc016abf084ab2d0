"""Rules about several instructions of a PTX module, which `cute_py.ptx.order` applies to each function."""
