"""Streams, graphs and arrays of PyTorch and CuPy; launches from threads."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from typing import Any

import pytest

from cute_py.copies.prepared import prepare_copy
from cute_py.errors import DeviceError, InvalidValueError
from cute_py.gpu.arrays import array_view
from cute_py.gpu.device import Device, DeviceBuffer
from cute_py.tensor.array_views import stream_handle


@pytest.fixture
def torch(device: Device) -> Any:
    """PyTorch. A graph of an earlier test that Python collects during a capture would end that capture with an error:
    PyTorch frees its memory pool then."""
    gc.collect()
    return pytest.importorskip("torch")


def test_torch_arrays_and_streams(device: Device, torch: Any) -> None:
    stream = torch.cuda.Stream()
    a = torch.randn(1024, 512, device="cuda", dtype=torch.bfloat16)
    b = torch.zeros_like(a)
    torch.cuda.synchronize()
    assert array_view(a).dtype.name == "bfloat16"
    assert stream_handle(stream) == stream.cuda_stream
    prepared = prepare_copy(a, b, device=device)
    prepared.launch(stream)
    prepared.check(stream)
    assert torch.equal(a, b)
    c = torch.zeros(512, 1024, device="cuda", dtype=torch.bfloat16)
    turned = prepare_copy(a.t(), c, device=device)
    turned.launch()
    turned.check()
    assert torch.equal(a.t(), c)
    d = torch.zeros(100, 128, device="cuda", dtype=torch.bfloat16)
    window = prepare_copy(a[3:103, 5:133], d, device=device)
    assert window.plans[0].form == "realigned"
    window.launch()
    window.check()
    assert torch.equal(a[3:103, 5:133], d)


def test_graph_capture(device: Device, torch: Any) -> None:
    """One graph with a ring and a one-shot copy, neither launched on the stream before, replayed on changed data."""
    from cute_py.copies.boxes import Tuning

    stream = torch.cuda.Stream()
    a, b, c = (torch.zeros(2048, 1024, device="cuda", dtype=torch.int32) for _ in range(3))
    first = prepare_copy(a, b, device=device, tuning=Tuning(form="ring"))
    second = prepare_copy(b, c, device=device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        first.launch(stream)
        second.launch(stream)
    for seed in range(3):
        torch.manual_seed(seed)
        a.copy_(torch.randint(-(2**31), 2**31 - 1, a.shape, device="cuda", dtype=torch.int32))
        torch.cuda.synchronize()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(a, c)
    first.check()
    second.check()


def test_operators_in_a_graph(device: Device, torch: Any) -> None:
    """Operators of PyTorch, captured without a call before, and replayed on changed data.

    The first call of an operator imports torch._dynamo. In a process where JAX uses the GPU, that import ended the
    capture with an error, so there it comes first.
    """
    import cute_py.torch as ct

    if "jax" in sys.modules:
        importlib.import_module("torch._dynamo")
    a = torch.zeros(256, 512, device="cuda", dtype=torch.bfloat16)
    index = torch.zeros(100, device="cuda", dtype=torch.int32)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        data, scales, _ = ct.quantize(a, "mxfp8()")
        back = ct.dequantize(data, scales, None, "mxfp8()", a.shape, torch.float32)
        rows = torch.ops.cute_py.gather_rows(a, index)
        turned = torch.ops.cute_py.relayout(a.reshape(-1), "(256,512):(512,1)", "(256,512):(1,256)")
    for seed in range(3):
        torch.manual_seed(seed)
        a.copy_(torch.randn_like(a))
        index.copy_(torch.randint(0, 256, index.shape, device="cuda"))
        graph.replay()
        torch.cuda.synchronize()
        wanted = ct.quantize(a.cpu(), "mxfp8()")
        assert torch.equal(data.cpu().view(torch.uint8), wanted[0].view(torch.uint8))
        assert torch.equal(scales.cpu().view(torch.uint8), wanted[1].view(torch.uint8))
        assert torch.equal(back.cpu(), ct.dequantize(*wanted, "mxfp8()", a.shape, torch.float32))
        assert torch.equal(rows, a[index.long()])
        assert torch.equal(turned.reshape(512, 256), a.t())


def test_memory_is_freed_while_a_graph_is_captured(device: Device, torch: Any) -> None:
    """As the garbage collector does it, at any time."""
    buffer = DeviceBuffer(device, 1 << 20)
    a = torch.zeros(64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        buffer.close()
        b = a + 1
    graph.replay()
    assert bool((b == 1).all())


def test_a_tensor_scale_on_the_device_is_not_read_in_a_capture(device: Device, torch: Any) -> None:
    import cute_py.torch as ct

    a = torch.ones(128, 128, device="cuda", dtype=torch.bfloat16)
    scale = torch.ones((), device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(InvalidValueError, match="capture"):
            ct.quantize(a, "nvfp4()", scale)
        data, scales, _ = ct.quantize(a, "nvfp4()", torch.ones(()))
    graph.replay()
    torch.cuda.synchronize()
    wanted = ct.quantize(a.cpu(), "nvfp4()", torch.ones(()))
    assert torch.equal(data.cpu(), wanted[0])
    assert torch.equal(scales.cpu().view(torch.uint8), wanted[1].view(torch.uint8))


def test_two_streams_at_once(device: Device, torch: Any) -> None:
    """The same prepared ring on two streams: each stream has its own counter."""
    from cute_py.copies.boxes import Tuning

    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    a = torch.randint(-(2**31), 2**31 - 1, (8192, 2048), device="cuda", dtype=torch.int32)
    b, c = torch.zeros_like(a), torch.zeros_like(a)
    torch.cuda.synchronize()
    one = prepare_copy(a, b, device=device, tuning=Tuning(form="ring"))
    two = prepare_copy(a, c, device=device, tuning=Tuning(form="ring"))
    for _ in range(20):
        for stream in streams:
            one.launch(stream)
            two.launch(stream)
    for stream in streams:
        one.check(stream)
        two.check(stream)
    assert torch.equal(a, b)
    assert torch.equal(a, c)


def test_more_streams_than_spare_counters(device: Device, torch: Any) -> None:
    from cute_py.copies.boxes import Tuning
    from cute_py.copies.prepared_copy import SPARE_STREAMS

    a = torch.randint(-(2**31), 2**31 - 1, (2048, 1024), device="cuda", dtype=torch.int32)
    b = torch.zeros_like(a)
    torch.cuda.synchronize()
    prepared = prepare_copy(a, b, device=device, tuning=Tuning(form="ring"))
    for _ in range(SPARE_STREAMS + 3):
        stream = torch.cuda.Stream()
        prepared.launch(stream)
        prepared.check(stream)
    assert torch.equal(a, b)


def test_both_on_a_stream_waits_for_it(device: Device, torch: Any) -> None:
    """The comparison reads what the stream has written, not what was there before."""
    import cute_py as cute

    stream = torch.cuda.Stream()
    x = torch.randn(512, 512, device="cuda", dtype=torch.float16)
    y = torch.zeros_like(x)
    torch.cuda.synchronize()
    gmem = cute.make_tensor(cute.make_gmem_ptr(x.data_ptr(), "float16"), cute.Layout((512, 512), (512, cute.Int(1))))
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, cute.Layout((cute.Int(64), cute.Int(64)), cute.LayoutRight))
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
    result = cute.tma.copy(atom, x, y, backend="both", stream=stream)
    assert result.equal, result.difference
    assert torch.equal(x, y)


def test_cupy_arrays(device: Device) -> None:
    cupy = pytest.importorskip("cupy")
    a = cupy.arange(128 * 256, dtype=cupy.float32).reshape(128, 256)
    b = cupy.zeros((64, 256), cupy.float32)
    prepared = prepare_copy(a[::2], b, device=device)
    prepared.launch(cupy.cuda.get_current_stream())
    prepared.check()
    assert bool((a[::2] == b).all())


def test_a_thread_without_a_context(device: Device, torch: Any) -> None:
    a = torch.randn(256, 256, device="cuda")
    b = torch.zeros_like(a)
    torch.cuda.synchronize()
    prepared = prepare_copy(a, b, device=device)
    problems: list[BaseException] = []

    def work() -> None:
        try:
            prepared.launch()
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    prepared.check()
    assert not problems
    assert torch.equal(a, b)


def test_torch_on_the_host_is_refused(device: Device, torch: Any) -> None:
    with pytest.raises(DeviceError, match="host memory"):
        prepare_copy(torch.zeros(64, 64), torch.zeros(64, 64, device="cuda"), device=device)
