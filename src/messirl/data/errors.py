"""The error for unusable data: where, what is wrong, and what to do."""

from __future__ import annotations


class InputError(ValueError):
    """Error for data that cannot be used. The message is `file, row 7: what is wrong: what to do`.

    Rows are counted as a spreadsheet counts them: the header is row 1, the first row of data is row 2. Parquet files
    and tables in memory are counted the same way.

    Parameters
    ----------
    where : str
        The file, table or argument at fault.
    what : str
        What is wrong.
    remedy : str
        What to do about it.
    row : int, optional
        The row at fault; None if it is not a single row.
    """

    def __init__(self, where: str, what: str, remedy: str, row: int | None = None) -> None:
        self.where, self.what, self.remedy, self.row = where, what, remedy, row
        place = where if row is None else f"{where}, row {row}"
        super().__init__(f"{place}: {what}: {remedy}")

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str, int | None]]:
        return InputError, (self.where, self.what, self.remedy, self.row)
