"""Many single instructions through ptxas, in few calls.

ptxas reports every semantic error of a file with its line, so a batch is one file with one instruction a line; the
lines with errors are taken out and the rest assembled again until it passes (some errors appear only then).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cute_py.ptx.module import assemble_module, ptx_module
from cute_py.targets import Version

_SYMBOLS = (".extern .global .align 128 .b8 gmap[128];", ".extern .shared .align 1024 .b8 smem[];")
_REGISTERS = ".reg .b16 %h<32>; .reg .b32 %r<300>; .reg .b64 %rd<64>; .reg .f32 %f<16>; .reg .pred %p<8>;"


def assemble_each(texts: Sequence[str], arch: str, version: Version) -> list[str | None]:
    """For each instruction: None if ptxas takes it for `arch` at `version`, else its messages.

    Each text uses the registers %h, %r, %rd, %q, %rq, %f, %p and the symbols gmap (global), smem (shared), pmap
    (param).

    Raises:
        DeviceError: there is no ptxas.
    """
    verdicts: list[str | None] = [None] * len(texts)
    # 128-bit registers came with PTX 8.3 and sm_70.
    wide = " .reg .b128 %q<8>; .reg .b128 %rq<8>;" if version >= (8, 3) else ""
    lines, parameters = [_REGISTERS + wide, "// instructions", "ret;"], [".align 64 .b8 pmap[128]"]
    frame = ptx_module("one_instruction_a_line", lines, arch, version, parameters=parameters, symbols=_SYMBOLS)
    before, after = frame.split(lines[1])
    first = before.count("\n") + 1
    live = list(range(len(texts)))
    while live:
        body = "\n".join(" ".join(texts[index].split()) for index in live)
        accepted, messages, _ = assemble_module(f"{before}{body}{after}", arch)
        if accepted:
            break
        found: dict[int, list[str]] = {}
        for line, message in re.findall(r"line (\d+); (?:error|fatal)\s*: (.*)", messages):
            position = int(line) - first
            if 0 <= position < len(live):
                found.setdefault(live[position], []).append(message.strip())
        if not found:
            # No line named: look at each half alone.
            if len(live) == 1:
                verdicts[live[0]] = messages or "ptxas failed without a message"
                break
            middle = len(live) // 2
            for part in (live[:middle], live[middle:]):
                for index, verdict in zip(part, assemble_each([texts[i] for i in part], arch, version), strict=True):
                    verdicts[index] = verdict
            break
        for index, lines in found.items():
            verdicts[index] = " | ".join(lines)
        live = [index for index in live if index not in found]
    return verdicts
