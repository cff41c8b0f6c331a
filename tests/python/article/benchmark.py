import time
import torch

def benchmark(model, input_tensor, warmup=3, runs=10):
    # 预热
    for _ in range(warmup):
        _ = model(input_tensor)
    torch.npu.synchronize()

    # 正式测试
    times = []
    for _ in range(runs):
        start = time.time()
        _ = model(input_tensor)
        torch.npu.synchronize()
        times.append(time.time() - start)

    return {
        "avg": sum(times) / len(times) * 1000,
        "min": min(times) * 1000,
        "max": max(times) * 1000
    }

# 测试配置
batch, seq, dim = 1, 2048, 768 # 长序列测试
x = torch.randn(batch, seq, dim).npu()

# 基线：无 GE 优化
baseline_model = SimpleAttention().npu()
baseline_stats = benchmark(baseline_model, x)

# 优化后：GE 编译 + 内存复用
optimized_model = load_om_model("simple_attention.om")
optimized_stats = benchmark(lambda inp: run_om(optimized_model, inp), x)

print(f"基线延迟: {baseline_stats['avg']:.2f}ms")
print(f"优化后延迟: {optimized_stats['avg']:.2f}ms")
print(f"提升: {(1 - optimized_stats['avg']/baseline_stats['avg'])*100:.1f}%")
