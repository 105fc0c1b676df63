"""Numbers as regular expressions, for headers that hold one."""

from collections.abc import Iterator


def larger_than(number: int) -> str:
    """A regular expression (RE2) for the decimal numbers above a number, which need not be the shortest form."""
    return f"0*({'|'.join(_larger(str(number)))})"


def _larger(digits: str) -> Iterator[str]:
    # One digit more; or the same number of digits, of which the first that differs is higher.
    yield f"[1-9][0-9]{{{len(digits)},}}"
    for place, digit in enumerate(digits):
        if digit != "9":
            rest = len(digits) - place - 1
            higher = chr(ord(digit) + 1)
            yield f"{digits[:place]}[{higher}-9]" + (f"[0-9]{{{rest}}}" if rest else "")
