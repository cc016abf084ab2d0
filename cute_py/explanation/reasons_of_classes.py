"""Why each kind of error exists, and what to do in general: one row for each class of `cute_py.errors`."""

from __future__ import annotations

from typing import Final

from cute_py.explanation.reason import Reason

CLASS_REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "CuteError",
        "One root, so that a program can catch what this library refuses on purpose and nothing else.",
        "Read the headline, which is the rule with the value; compare the facts; the hint, if there is one, works.",
    ),
    Reason(
        "InvalidTypeError",
        "A float, a bool or a text as a size is mostly a mistake that would show much later.",
        "Convert the argument; sizes, strides and coordinates are Int, int, numpy or sympy integers.",
    ),
    Reason(
        "InvalidValueError",
        "The type is right and the value has no meaning here.",
        "Take a value that the headline names.",
    ),
    Reason(
        "LayoutError",
        "Not every operation of the algebra has a result for every pair of layouts.",
        "Look at steps(operation, ...) for the mode that has none.",
    ),
    Reason(
        "StaticAssertError",
        "CuTe C++ would refuse to compile this; a result here would be one that no kernel can have.",
        "Find the modes that do not divide in the facts, and change the tile or the shape that is tiled; write sizes "
        "that must be static as Int(8).",
    ),
    Reason(
        "CoordinateError",
        "A coordinate has the profile of the shape, or of a coarser one; another profile addresses nothing.",
        "Give one entry for each mode (nested where the mode is), or a single index.",
    ),
    Reason(
        "CompositionMismatchError",
        "composition(A, B) may differ from A(B(i)) where B's steps do not divide A's modes; CuTe C++ says nothing.",
        "Change the tile so that its sizes divide the modes of A, or leave strict out to get C++'s result.",
    ),
    Reason(
        "ParseError",
        "The text is not one that CuTe prints.",
        "Look at the character at `position`; str() of any object of this library can be parsed.",
    ),
    Reason(
        "TensorAccessError",
        "A bare pointer says where elements would be, and there is no memory behind it here.",
        "Make the tensor over an array (make_tensor(numpy_array)), or ask the layout for offsets.",
    ),
    Reason(
        "TmaError",
        "The root of everything between a tensor and a TMA copy.",
        "Look at the class that was raised; it names the stage.",
    ),
    Reason(
        "GBasisError",
        "One instruction moves one box; some pairs of tile and shared layout have no box in common.",
        "Read `condition`, CuTe's own; explain(error) tells it apart, explain(atom) shows the stages of one that "
        "works.",
    ),
    Reason(
        "TmaLimitError",
        "The driver returns CUDA_ERROR_INVALID_VALUE and not a word more; all broken rules are told here at once.",
        "Go through `violations`; find_fixes and the hint propose tiles and swizzles that were tried.",
    ),
    Reason(
        "TmaVerifyError",
        "The verifier asks eleven questions in a fixed order and stops at the first that fails.",
        "Read `step`; STEPS has its name, and explain(error) its reason.",
    ),
    Reason(
        "TmaBuildError",
        "A builder, a binding or a lowering entry point was given operands that its reference page does not take.",
        "The headline is the page's own diagnostic: compare the operands with what it names.",
    ),
    Reason(
        "UnknownFactError",
        "What was neither documented nor measured is not guessed: a wrong bit of a map moves wrong bytes silently.",
        "Let the driver of such a GPU encode it (cute_py.tma.driver_encode), or stay with what is known.",
    ),
    Reason(
        "TmaTrap",
        "On a GPU this ends the CUDA context with an error that names neither the instruction nor the rule.",
        "Read `cause`; explain(error) tells the rule. The emulator raises it before anything is lost.",
    ),
    Reason(
        "WouldHangError",
        "A barrier that waits for bytes that never come stops a kernel for ever, without a word.",
        "Compare `expected` with `arrived`: announce atom.transaction_bytes for each tile.",
    ),
    Reason(
        "RaceError",
        "An asynchronous copy that is read or overwritten too early is wrong now and then, on some machines.",
        "Put the wait, fence or group that the rule names between the two.",
    ),
    Reason(
        "EmissionError",
        "ptxas would refuse the instruction, or the architecture does not have it.",
        "Take a form and an architecture of the table CAPABILITIES; `why` says which part does not exist.",
    ),
    Reason(
        "TmemError",
        "A tcgen05.cp moves fixed shapes to fixed lanes; not every pair of layouts is one of them.",
        "The text names the requirement; FORMS has the shapes, plan_form tells which one a tile takes.",
    ),
    Reason(
        "DeviceError",
        "Something that only a machine has is missing, or failed: GPU, driver, compiler, a launch.",
        "`cute-py doctor` tells what is there, what is not, and why; everything but the run itself works without.",
    ),
    Reason(
        "FileFormatError",
        "A file can't be read as the tensor, or written as the picture, that was asked for.",
        "Check name, ending and shape; the text says which of them.",
    ),
    Reason(
        "MissingPackageError",
        "The core needs numpy and sympy only; other packages are for single features.",
        "Install the extra that the hint names.",
    ),
)
