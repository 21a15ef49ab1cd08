# SPDX-License-Identifier: Apache-2.0
"""Findings about a model file. ``{message}`` is the reader's sentence: what is wrong, with the field's name."""

from __future__ import annotations

from reports.catalogue.entry import Entry
from reports.contract import Severity

_AGAIN = "Compare size and sha256 with the publisher's and fetch the file again where they differ."
_MAKER = (
    "Convert or quantise the model anew with a current llama.cpp; if it comes out alike, report it to the publisher."
)


def _error(code: str, rank: int, why: str, *fix: str) -> Entry:
    return Entry(code=code, severity=Severity.ERROR, what="{message}.", why=why, fix=fix, rank=rank)


def _warning(code: str, rank: int, why: str, *fix: str) -> Entry:
    return Entry(code=code, severity=Severity.WARNING, what="{message}.", why=why, fix=fix, rank=rank)


ENTRIES: tuple[Entry, ...] = (
    _error(
        "NPU-F010",
        52,
        "A count, a length or a nesting depth that the file cannot hold: it is cut short, damaged or hostile.",
        _AGAIN,
    ),
    _error(
        "NPU-F011",
        52,
        "Sizes like this overflow in readers that count in 64 bits; no real model has them.",
        _AGAIN,
    ),
    _error("NPU-F012", 52, "An empty dimension or name makes readers divide by zero or mix up tensors.", _AGAIN),
    _error(
        "NPU-F013",
        53,
        "The header asks for more than any published model needs; the reader stops before it allocates that.",
        _AGAIN,
        "If the file is known to be sound: python -m reference_engine inspect --large FILE",
    ),
    _error("NPU-F014", 53, "The data of this tensor is not where the header says; its weights would be noise.", _AGAIN),
    _error(
        "NPU-F015",
        51,
        "The download or the copy ended early. Tools that do not check load such a file and produce garbage.",
        _AGAIN,
    ),
    _error("NPU-F016", 50, "This is another kind of file, so there is no model to read.", "head -c 200 FILE", _AGAIN),
    _warning(
        "NPU-F017",
        430,
        "Two tensors that share data are legal to some writers, but mostly a sign of a damaged header.",
        _AGAIN,
    ),
    _error(
        "NPU-F018",
        54,
        "Big-endian files are for mainframes; the boards this kit is for are little-endian.",
        "Fetch the little-endian file, or convert it: gguf-convert-endian FILE little (from the gguf package).",
    ),
    _error("NPU-F019", 54, "Version 1 counted in 32 bits and is extinct; newer ones are not known yet.", _MAKER),
    _error("NPU-F020", 53, "The rest of the header cannot be read past a value of unknown size.", _AGAIN),
    _error("NPU-F021", 54, "Without its block size neither its data nor that of the others can be found.", _MAKER),
    _error("NPU-F022", 53, "Readers differ in which of the two they take, so they would run different models.", _MAKER),
    _error("NPU-F023", 53, "Readers differ in which of the two they take, so they would run different models.", _MAKER),
    _error("NPU-F024", 53, "Quantised rows are whole blocks; the data of this tensor cannot be laid out.", _MAKER),
    _error("NPU-F025", 53, "Names are UTF-8 by specification; bytes like these are a sign of damage.", _AGAIN),
    _error(
        "NPU-F026",
        51,
        "A split model is read as one; with a part missing or foreign it is not whole.",
        "Put all parts into one folder under the names they were published with.",
        "Or join them: llama-gguf-split --merge FIRST-PART OUTPUT.gguf",
    ),
    _error("NPU-F027", 55, "The engine needs this key in the type the converters write.", _MAKER),
    _error(
        "NPU-F028",
        55,
        "The file is readable but its structure is incomplete; a matching hash does not change that.",
        _MAKER,
    ),
    _error("NPU-F029", 55, "With this hyper-parameter the model cannot be computed as its architecture says.", _MAKER),
    _warning(
        "NPU-F030",
        431,
        "The file was read, but its hyper-parameters and tensor shapes were not checked and the engine cannot run it.",
        "python -m reference_engine architectures    # what is known",
    ),
    _error(
        "NPU-F031",
        55,
        "The model cannot be computed without this tensor; a matching hash does not change that.",
        _MAKER,
    ),
    _error("NPU-F032", 55, "Header and weights contradict each other, so one of them is wrong.", _MAKER),
    _warning(
        "NPU-F035",
        432,
        "Readers ignore such an id, so a model may miss its begin or end of text.",
        "Look whether the text ends where it should; if not, convert the model anew.",
    ),
    _error("NPU-F033", 50, "Nothing could be read.", "ls -l FILE    # is it there, and may this user read it?"),
    _error(
        "NPU-F034", 50, "This is not the file whose hash was given.", "Fetch the file again.", "Check the hash given."
    ),
)
