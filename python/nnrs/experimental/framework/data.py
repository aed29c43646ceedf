"""The base of what gives a training its batches: `Data`."""

from __future__ import annotations

from typing import Any

from ..._borrowed import borrower


class _DataSourceClass:
    """The class attribute `CustomDataSource`: a subclass of `DataSource`, made when it is asked for."""

    def __get__(self, instance: object, owner: type) -> type:
        from ...utils.data_source import DataSource

        made = type("CustomDataSource", (DataSource,), {"__doc__": "A data source; override it in a subclass."})
        Data.CustomDataSource = made
        return made


class Data:
    """Base of what gives batches: a data source, and an iterator over it.

    A subclass gives either the class `CustomDataSource` and the method `__data_iterator__`, or an `__init__` and a
    `next` of its own.

    >>> from nnrs.utils.data_iterator import data_iterator
    >>> class Digits(Data):
    ...     class CustomDataSource(Data.CustomDataSource):
    ...         def __init__(self):
    ...             super().__init__()
    ...             self._size, self._variables = 4, ("x",)
    ...         def _get_data(self, i):
    ...             return (float(i),)
    ...     def __data_iterator__(self, source):
    ...         return data_iterator(source, batch_size=2)
    >>> digits = Digits()
    >>> digits.size(), digits.next()[0].tolist()
    (4, [0.0, 1.0])
    >>> digits._data_iterator.close()
    """

    CustomDataSource: Any = _DataSourceClass()
    """Class of the data source: a subclass of `nnrs.utils.data_source.DataSource`."""

    def __init__(self) -> None:
        self._data_source = self.__data_source__()
        self._data_iterator = self.__data_iterator__(self._data_source)

    def __data_source__(self) -> Any:
        """Make the data source."""
        return self.CustomDataSource()

    def __data_iterator__(self, data_source: Any) -> Any:
        """Make the iterator, with `nnrs.utils.data_iterator.data_iterator` for instance.

        Raises:
            NotImplementedError: If the subclass does not give it.
        """
        raise NotImplementedError(f"{type(self).__name__}.__data_iterator__ is missing: it makes the data iterator")

    def reset(self) -> None:
        """Begin anew, before an epoch. This one does nothing."""

    def next(self) -> Any:
        """The next batch."""
        return self._data_iterator.next()

    def size(self) -> Any:
        """Number of samples."""
        return self._data_iterator.size


__getattr__ = borrower(__name__)
