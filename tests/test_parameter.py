"""Parameters and scopes: NNabla's rules for names, sharing and need_grad; errors that change nothing; threads."""

import asyncio
import threading
import time

import numpy as np
import pytest

import nnrs as nn
from nnrs import parameter
from nnrs.parameter import get_parameter, get_parameter_or_create, pop_parameter, set_parameter


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    yield
    nn.clear_parameters()


def scope_of(name, scope=None):
    with nn.parameter_scope(name, scope) as inner:
        assert inner is nn.get_current_parameter_scope()
        return inner


def test_scopes_nest_and_end():
    with nn.parameter_scope("a/b"):
        get_parameter_or_create("w", (2, 3))
        with nn.parameter_scope("c"):
            get_parameter_or_create("x/y", (2,), need_grad=False)
    assert list(nn.get_parameters()) == ["a/b/w"]
    assert list(nn.get_parameters(grad_only=False)) == ["a/b/w", "a/b/c/x/y"]
    with nn.parameter_scope("a"):
        assert list(nn.get_parameters()) == ["b/w"]
        assert list(nn.get_parameters(path="p")) == ["p/b/w"]


@pytest.mark.parametrize("name", ["", "/"])
def test_empty_scope_name_stays(name):
    assert scope_of(name) is nn.get_current_parameter_scope()


def test_slashes_around_and_within_names_do_not_matter():
    inner = scope_of("x//y/")
    assert scope_of("/x/y") is inner
    with nn.parameter_scope("x"):
        get_parameter_or_create("/abs", (1,))
    assert list(nn.get_parameters()) == ["x/abs"]


def test_scope_in_a_dict_of_ones_own():
    mine = {}
    with nn.parameter_scope("a", mine):
        get_parameter_or_create("w", (1,))
    assert list(mine["a"]) == ["w"] and not nn.get_parameters()
    with nn.parameter_scope("", mine):
        assert list(nn.get_parameters()) == ["a/w"]


def test_scope_ends_when_the_block_raises():
    outside = nn.get_current_parameter_scope()
    with pytest.raises(KeyError), nn.parameter_scope("a"), nn.parameter_scope("b"):
        raise KeyError
    assert nn.get_current_parameter_scope() is outside


def test_new_parameter_is_shared_but_each_use_is_its_own():
    a = get_parameter_or_create("x/w", (2,), np.ones(2))
    stored = get_parameter("x/w")
    assert a is not stored and a.name == "w" and str(a.data.dtype) == "float64"
    a.d = 5
    assert stored.d.tolist() == [5, 5]
    assert get_parameter_or_create("x/w", (2,)).d.tolist() == [5, 5]


def test_default_is_zeros_and_callables_get_the_shape():
    assert get_parameter_or_create("z", (2,)).d.tolist() == [0, 0]
    made = get_parameter_or_create("c", (2, 2), lambda shape: np.full(shape, 3, np.int32))
    assert made.d.tolist() == [[3, 3], [3, 3]] and str(made.data.dtype) == "int32"
    assert get_parameter_or_create("n", None, np.ones((2, 3), np.float32)).shape == (2, 3)
    assert get_parameter_or_create("s", (), np.array(2.0)).shape == ()
    assert get_parameter_or_create("e", (0, 3)).shape == (0, 3)


@pytest.mark.parametrize(
    ("need_grad", "as_need_grad", "stored", "used"),
    [(True, None, True, True), (True, False, True, False), (False, True, False, True), (False, None, False, False)],
)
def test_need_grad_of_the_stored_and_of_the_use(need_grad, as_need_grad, stored, used):
    use = get_parameter_or_create("w", (2,), None, need_grad, as_need_grad)
    assert (get_parameter("w").need_grad, use.need_grad) == (stored, used)
    get_parameter_or_create("w", (2,), need_grad=not need_grad)
    assert get_parameter("w").need_grad is not stored


def test_no_grad_is_about_the_use():
    with nn.no_grad():
        assert not get_parameter_or_create("w", (2,), as_need_grad=True).need_grad
    assert get_parameter("w").need_grad


def test_set_get_pop():
    v = nn.Variable((2,))
    set_parameter("a/b", v)
    assert get_parameter("a/b") is v and get_parameter("a/c") is None and get_parameter("n/o") is None
    assert pop_parameter("a/c") is None and pop_parameter("n/o") is None
    assert list(nn.get_current_parameter_scope()) == ["a"]
    assert pop_parameter("a/b") is v
    assert list(pop_parameter("a")) == []


def test_get_parameters_adds_to_a_given_dict():
    get_parameter_or_create("w", (1,))
    mine = {"old": 1}
    assert nn.get_parameters(mine, "p") is mine
    assert list(mine) == ["old", "p/w"]


def test_clear_is_about_the_current_scope():
    for name in ("a/w", "a/b/w"):
        get_parameter_or_create(name, (1,))
    with nn.parameter_scope("a/b"):
        nn.clear_parameters()
    assert list(nn.get_parameters()) == ["a/w"]


def test_other_shape_names_both_and_the_way_out():
    get_parameter_or_create("a/w", (2, 3))
    with pytest.raises(ValueError) as caught:
        get_parameter_or_create("a/w", (2, 4))
    assert isinstance(caught.value, nn._core.Error)
    assert str(caught.value) == (
        "get_parameter_or_create: parameter 'a/w' has shape (2, 3), but shape (2, 4) is asked for\n"
        "  hint: use another name or parameter_scope, or remove the old one with pop_parameter or clear_parameters"
    )


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: get_parameter("a"), ValueError, "get_parameter: argument 'key': expected the name of a parameter"),
        (lambda: get_parameter(""), ValueError, "a name with at least one letter"),
        (lambda: get_parameter(5), TypeError, "get_parameter: argument 'key': expected .* as a str, got int 5"),
        (lambda: get_parameter_or_create("a", (1,)), ValueError, "there is a scope 'a', so it cannot be a parameter"),
        (lambda: get_parameter_or_create("a/w/x", (1,)), ValueError, "there is a parameter 'a/w'"),
        (lambda: get_parameter_or_create(5, (1,)), TypeError, "argument 'name'"),
        (lambda: get_parameter_or_create("q"), ValueError, "a shape for the new parameter 'q'"),
        (lambda: get_parameter_or_create("q", (-1,)), ValueError, "argument 'shape'"),
        (lambda: get_parameter_or_create("q", "ab"), TypeError, "argument 'shape': expected a tuple of integers"),
        (lambda: get_parameter_or_create("q", (2,), 3), ValueError, "argument 'initializer'"),
        (lambda: get_parameter_or_create("q", (2,), np.ones(3)), ValueError, r"expected values of shape \(2,\)"),
        (lambda: get_parameter_or_create("q/r", (2,), lambda shape: 1 / 0), ZeroDivisionError, "division"),
        (lambda: set_parameter("q", np.ones(2)), TypeError, "expected a Variable, got ndarray"),
        (lambda: set_parameter("a/w/x", nn.Variable((1,))), ValueError, "there is a parameter 'a/w'"),
        (lambda: pop_parameter(None), TypeError, "pop_parameter: argument 'key'"),
        (lambda: scope_of("a/w"), ValueError, "there is a parameter 'a/w', so it cannot be a scope"),
        (lambda: scope_of(3), TypeError, "parameter_scope: argument 'name'"),
        (lambda: scope_of("x", 3), ValueError, "parameter_scope: argument 'scope': expected a dict"),
        (lambda: nn.get_parameters(3), TypeError, "argument 'params'"),
    ],
)
def test_errors_help_and_change_nothing(call, kind, text):
    get_parameter_or_create("a/w", (2,), np.ones(2))
    before = list(nn.get_parameters(grad_only=False))
    with pytest.raises(kind, match=text):
        call()
    assert list(nn.get_parameters(grad_only=False)) == before == ["a/w"]
    assert list(nn.get_current_parameter_scope()) == ["a"]


def test_threads_have_places_of_their_own_in_one_tree():
    meet = threading.Barrier(4)

    def work(i):
        with nn.parameter_scope(f"t{i}"):
            meet.wait()
            for j in range(50):
                get_parameter_or_create(f"w{j}", (1,))
            meet.wait()
            found[i] = list(nn.get_parameters())

    found = {}
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    with nn.parameter_scope("main"):
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert all(found[i] == [f"w{j}" for j in range(50)] for i in range(4))
    assert len(nn.get_parameters()) == 200 and nn.get_parameters()["t3/w49"].shape == (1,)


def test_threads_that_make_the_same_parameter_share_it():
    meet = threading.Barrier(8)
    made = []

    def work(i):
        def values(shape):
            meet.wait()  # all are inside their initializer at once
            return np.full(shape, i, np.float32)

        made.append(get_parameter_or_create("w", (1,), values))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({float(v.d[0]) for v in made}) == 1


def test_async_tasks_have_places_of_their_own():
    async def work(name):
        with nn.parameter_scope(name):
            await asyncio.sleep(0)
            get_parameter_or_create("w", (1,))
            await asyncio.sleep(0)

    async def both():
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(both())
    assert sorted(nn.get_parameters()) == ["a/w", "b/w"]


def test_parameters_are_cleared_while_others_read_and_make_them():
    stop, errors = threading.Event(), []

    def work(job):
        try:
            while not stop.is_set():
                job()
        except BaseException as e:
            errors.append(e)

    def make():
        for k in range(20):
            with nn.parameter_scope(f"block{k % 5}"):
                nn.parameter.get_parameter_or_create(f"w{k}", (2,))

    def read():
        nn.get_parameters()
        with nn.parameter_scope("block1"):
            nn.get_parameters()
            nn.parameter.get_parameter("w1")

    threads = [threading.Thread(target=work, args=(job,)) for job in (make, make, read, read, nn.clear_parameters)]
    for t in threads:
        t.start()
    time.sleep(0.5)
    stop.set()
    for t in threads:
        t.join()
    nn.clear_parameters()
    assert not errors, errors[0]


def test_what_nnabla_keeps_in_variables_of_the_module_can_be_read() -> None:
    """Libraries (nnabla-nas) ask `nnabla.parameter.current_no_grad`, others the scopes."""
    assert parameter.root_scope is parameter.current_scope is parameter.get_current_parameter_scope()
    assert parameter.current_no_grad is False and parameter.no_grad is nn.no_grad
    with nn.no_grad(), nn.parameter_scope("inner"):
        assert parameter.current_no_grad is True
        assert parameter.current_scope is parameter.get_current_parameter_scope() is not parameter.root_scope
